"""When an agent learns: counters in, numbers out."""

from __future__ import annotations

from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.utils import CoachError


class TrainingClock:
    """Knows when training phases, and updates of target networks, are due.

    A training phase follows ``num_consecutive_playing_steps`` and makes ``num_consecutive_training_steps`` updates;
    targets are updated every ``num_steps_between_copying_online_weights_to_target``.

    :param algorithm: the settings; they are read at each question, so that they may change while a run goes on
    :param owner: the agent's name, for messages

    :ivar steps_at_once: environment steps that are counted together, because that many copies of the environment are
        stepped at once or steps arrive in chunks
    :ivar last_phase: the count of steps, or of episodes, at the last training phase
    :ivar last_target_update: the count, of the kind of the targets' period, at the last update of the targets
    """

    def __init__(self, algorithm: AlgorithmParameters, owner: str = "agent"):
        self._algorithm = algorithm
        self._owner = owner
        self.steps_at_once = 1
        self.last_phase = 0
        self.last_target_update = 0

    @property
    def counts_episodes(self) -> bool:
        """True if training phases are so many episodes apart, not steps."""
        return isinstance(self._algorithm.num_consecutive_playing_steps, EnvironmentEpisodes)

    def is_due(self, steps: int, episodes: int, in_episode: bool = False) -> bool:
        """True if the playing steps since the last training phase are over.

        :param steps: environment steps taken so far; ``episodes`` likewise
        :param in_episode: an episode is in progress that a phase would have to wait for, if the algorithm acts for full
            episodes
        """
        period = self._algorithm.num_consecutive_playing_steps
        if isinstance(period, EnvironmentSteps):
            waits = in_episode and self._algorithm.act_for_full_episodes
            return steps - self.last_phase >= period.num_steps and not waits
        if isinstance(period, EnvironmentEpisodes):
            return episodes - self.last_phase >= period.num_steps
        raise CoachError(
            f"num_consecutive_playing_steps of agent '{self._owner}' counts EnvironmentSteps or "
            f"EnvironmentEpisodes, not {period!r}"
        )

    def start_phases(self, steps: int, episodes: int) -> int:
        """Begin the training phases that are due, of which there can be several where several steps are counted at
        once, and count anew from here.

        :return: how many
        """
        if self.counts_episodes:
            self.last_phase = episodes
            return 1
        passed, self.last_phase = steps - self.last_phase, steps
        if self.steps_at_once == 1:
            return 1
        phases, rest = divmod(passed, max(1, self._algorithm.num_consecutive_playing_steps.num_steps))
        if phases > self.most_phases:
            return 1  # the steps before training began are not caught up with
        self.last_phase -= rest
        return phases

    @property
    def most_phases(self) -> int:
        """How many training phases can be due at once."""
        if self.steps_at_once == 1 or self.counts_episodes:
            return 1
        return -(-self.steps_at_once // max(1, self._algorithm.num_consecutive_playing_steps.num_steps))

    def updates_due(self, phases: int, updates_left: int | None) -> int:
        """How many updates some training phases make, at most ``updates_left``."""
        updates = phases * self._algorithm.num_consecutive_training_steps
        return updates if updates_left is None else min(updates, updates_left)

    def updates_before_targets(self, updates: int, training_iteration: int) -> tuple[int, bool]:
        """How many updates can be made in one call before targets are due, and whether they are due after each.

        :param updates: how many are wanted
        """
        period = self._algorithm.num_steps_between_copying_online_weights_to_target
        if isinstance(period, EnvironmentSteps):
            return updates, self._algorithm.num_consecutive_training_steps == 1 and period.num_steps <= 1
        if period.num_steps <= 1:
            return updates, True
        due_in = period.num_steps - (training_iteration - self.last_target_update)
        return min(updates, max(1, due_in)), False

    def targets_due(self, steps: int, training_iteration: int) -> bool:
        """True if the targets are to be updated now; if so, the time counts anew."""
        period = self._algorithm.num_steps_between_copying_online_weights_to_target
        if isinstance(period, TrainingSteps):
            now = training_iteration
        elif isinstance(period, EnvironmentSteps):
            now = steps
        else:
            raise CoachError(
                f"num_steps_between_copying_online_weights_to_target of agent '{self._owner}' counts "
                f"EnvironmentSteps or TrainingSteps, not {period!r}"
            )
        if now - self.last_target_update < period.num_steps:
            return False
        self.last_target_update = now
        return True

    def get_state(self) -> dict[str, int]:
        """The counts at the last phase and the last update of the targets."""
        return {"last_phase": self.last_phase, "last_target_update": self.last_target_update}

    def set_state(self, state: dict[str, int]) -> None:
        """Go on from ``get_state``."""
        self.last_phase, self.last_target_update = state["last_phase"], state["last_target_update"]
