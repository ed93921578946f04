"""The state of a graph: everything that another process needs to continue the run exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from rl_coach.core_types import RunPhase, TotalStepsCounter
from rl_coach.graph_managers.improvement import Improvement
from rl_coach.graph_managers.run_seeds import RunSeeds
from rl_coach.graph_managers.schedule_parameters import UNITS
from rl_coach.level_manager import LevelManager
from rl_coach.logger import screen
from rl_coach.runs.progress import Progress


@dataclass
class GraphState:
    """The parts of a run that have a state.

    :param counters: the counters of each phase
    :param levels: the graph's levels, the topmost first
    :param progress: the evaluations so far
    :param improvement: the part of the run after heatup: training and evaluation in turn
    :param seeds: the random streams
    """

    counters: Mapping[RunPhase, TotalStepsCounter]
    levels: Sequence[LevelManager]
    progress: Progress
    improvement: Improvement
    seeds: RunSeeds

    def get(self, reset_required: bool, force_next_reset: bool) -> dict[str, Any]:
        """The state of all parts, as nested dicts of arrays and plain values.

        :param reset_required: the next step begins an episode
        :param force_next_reset: it also resets a simulator that could continue its episode
        """
        return {
            "counters": {
                phase.name: {unit.__name__: count for unit, count in counter.counters.items()}
                for phase, counter in self.counters.items()
                if phase is not RunPhase.WAITING  # nothing is counted in it
            },
            "reset_required": [reset_required, force_next_reset],
            "levels": {level.name: level.get_state() for level in self.levels},
            "progress": self.progress.get_state(),
            **self.improvement.get_state(),
            **self.seeds.get_state(),
        }

    def set(self, state: dict[str, Any]) -> None:
        """Restore the state of all parts. The next step must begin a new episode."""
        for phase, counts in state["counters"].items():
            for unit, count in counts.items():
                self.counters[RunPhase[phase]][UNITS[unit]] = count
        for level in self.levels:
            level.set_state(state["levels"][level.name])
        self.improvement.set_state(state)
        self.progress.set_state(state["progress"])
        self.seeds.set_state(state)

    def resume_episode(self, state: dict[str, Any]) -> tuple[bool, bool]:
        """Continue the episode that was in progress when the state was saved. Call ``set`` before.

        :return: ``reset_required`` and ``force_next_reset``; no reset is required if the episode continues
        """
        is_over, is_forced = state["reset_required"]
        if is_over:
            return True, is_forced
        # the lowest level holds the environment; if the environment cannot continue, no level can
        levels = reversed(self.levels)
        is_resumed = all(level.resume_saved_episode(state["levels"][level.name]) for level in levels)
        if not is_resumed:
            screen.warning("the episode of the checkpoint cannot be continued: a new episode begins")
        return not is_resumed, not is_resumed


def lost_episode(state: dict[str, Any]) -> bool:
    """True if the state lacks an episode that was in progress."""
    is_over, _ = state["reset_required"]
    return not is_over and any(level["episode"] is None for level in state["levels"].values())
