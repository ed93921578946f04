"""The graph of an agent in a loop that the user has written."""

from __future__ import annotations

from rl_coach.core_types import RunPhase
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.logger import screen


class OwnLoopGraphManager(BasicRLGraphManager):
    """The graph of an agent in an environment that the user's own loop steps.

    :ivar writes_files: True if the run writes signals and checkpoints to the experiment directory
    """

    writes_files = False
    _has_warned = False

    @property
    def writes_checkpoints(self) -> bool:
        return self.writes_files and super().writes_checkpoints

    def save_checkpoint(self, failed: bool = False) -> str | None:
        if not self.writes_files and not self._has_warned:
            screen.warning("no checkpoint is saved: pass experiment_path to make_agent, or call the agent's save()")
            self._has_warned = True
        return super().save_checkpoint(failed)

    def count_from_here(self) -> None:
        """Let the next ``improve`` train for ``improve_steps`` in addition to all earlier training, including training
        in an earlier process. Heatup is not repeated.
        """
        if self.improvement.has_begun:
            self.heatup_steps = type(self.heatup_steps)(0)
            self._continues = False

    # a run of the user's loop has the phases of ``improve``

    def enter_phase(self) -> None:
        """Begin heatup, or training if heatup is over. Do nothing if a phase has begun already."""
        if self.phase is RunPhase.UNDEFINED:
            # a loaded agent may be in the last episode of its heatup
            completes_episode = self.top_level_manager.has_one_episode and not self.reset_required
            is_heatup = not self.improvement.has_begun and (self._heatup_left() > 0 or completes_episode)
            self.phase = RunPhase.HEATUP if is_heatup else RunPhase.TRAIN
            if self.phase is RunPhase.TRAIN and not self.improvement.has_begun:
                self.improvement.begin()

    def leave_heatup_if_over(self) -> None:
        """Begin training if all steps of heatup are done. With one environment, wait until its episode is over."""
        is_between = self.reset_required or not self.top_level_manager.has_one_episode
        if self.phase is RunPhase.HEATUP and self._heatup_left() <= 0 and is_between:
            self.force_next_reset = True
            self.improvement.begin()
            # improve also passes through UNDEFINED between heatup and training
            self.phase = RunPhase.UNDEFINED
            self.phase = RunPhase.TRAIN

    def _heatup_left(self) -> int:
        if self.improvement.has_begun:
            return 0
        unit = type(self.heatup_steps)
        return self.heatup_steps.num_steps - self.total_steps_counters[RunPhase.HEATUP][unit]
