"""When a run saves checkpoints, and what a graph must have in common with one to be restored from it."""

from __future__ import annotations

import math
import time
from typing import Any, Iterable

from rl_coach.base_parameters import TaskParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TotalStepsCounter
from rl_coach.utils import CoachError

# in the middle of an episode a checkpoint is larger, and some simulators do not repeat: one that is due by the clock
# waits for an episode's end, but not for ever
_LONGEST_WAIT_FOR_EPISODE_END = 60.0


class CheckpointSchedule:
    """Knows when the next checkpoint is due, by the clock or by the training counters.

    Multiples of the counters are met, not distances from the last checkpoint: a resumed run saves where an
    uninterrupted one does.

    :param task: says how often
    :param counter: the training counters
    """

    def __init__(self, task: TaskParameters, counter: TotalStepsCounter):
        self._seconds = task.checkpoint_save_secs
        periods = {EnvironmentSteps: task.checkpoint_save_steps, EnvironmentEpisodes: task.checkpoint_save_episodes}
        self._periods = {unit: period for unit, period in periods.items() if period}
        self._counts = counter.counters
        self._due: dict[Any, int] = {}
        self._due_at = math.inf
        self.restart()

    @property
    def is_regular(self) -> bool:
        """Whether any checkpoints are to be saved while the run goes on."""
        return bool(self._periods) or self._seconds is not None

    def restart(self) -> None:
        """A checkpoint has just been saved, or a run begins."""
        self._due_at = math.inf if self._seconds is None else time.monotonic() + self._seconds
        self._due = {unit: (self._counts[unit] // period + 1) * period for unit, period in self._periods.items()}

    def is_due(self, is_between_episodes: bool) -> bool:
        """Asked after every step."""
        for unit, due in self._due.items():
            if self._counts[unit] >= due:
                return True
        if self._due_at is math.inf:
            return False
        overdue = time.monotonic() - self._due_at
        return overdue >= 0 and (is_between_episodes or overdue >= _LONGEST_WAIT_FOR_EPISODE_END)


def fits_of(levels: Iterable[Any], task: TaskParameters) -> dict[str, str]:
    """What a graph must have in common with a checkpoint's, as texts by name."""
    fits = {"framework": task.framework_type.name}
    for level in levels:
        spaces = level.spaces_definition
        for name, agent in level.agents.items():
            fits |= {f"{what} of {level.name}/{name}": text for what, text in agent.fits().items()}
        for name, space in spaces.state.sub_spaces.items():
            fits[f"observation space {level.name}/{name}"] = repr(space)
        fits[f"action space {level.name}"] = repr(spaces.action)
    return fits


def check_preset(path: str, here: str | None, there: str | None) -> None:
    """Compare the names of the presets that a graph and a checkpoint are of, where both have one; a graph that a
    program has put together has none.

    :param path: the checkpoint, for the message
    :param here: the graph's preset, as ``preset_catalogue.name_of`` gives it
    :param there: the checkpoint's
    :raises CoachError: they differ
    """
    if here and there and here != there:
        raise CoachError(
            f"the checkpoint '{path}' is of the preset {there}, not of {here}: use -p {there}, with -cp and -lvl for "
            "what is to be different"
        )


def check_fit(path: str, here: dict[str, str], there: dict[str, str]) -> None:
    """Compare ``fits_of`` a graph with those that a checkpoint's manifest holds.

    :param path: the checkpoint, for the message
    :raises CoachError: they differ; the message names the first difference
    """
    for name in sorted({*here, *there}, key=_importance):
        if here.get(name) != there.get(name):
            was = f"has {there[name]} as its {name}" if name in there else f"has no {name}"
            is_here = f"here it is {here[name]}" if name in here else "here there is none"
            raise CoachError(f"the checkpoint '{path}' does not fit: it {was}, {is_here}")


def _importance(name: str) -> tuple[int, str]:
    """Other spaces make another network: what is the cause comes first."""
    order = ("framework", "agent", "observation space", "action space")
    return next((i for i, start in enumerate(order) if name.startswith(start)), len(order)), name
