"""The times at which a run saves checkpoints."""

from __future__ import annotations

import math
import time
from typing import Any

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, StepMethod, TotalStepsCounter

# In the middle of an episode a checkpoint is larger, and some simulators cannot continue from it. So a checkpoint that
# is due by the clock waits for the end of the episode, but at most this long (seconds).
_LONGEST_WAIT_FOR_EPISODE_END = 60.0


class CheckpointSchedule:
    """Knows when the next checkpoint is due, by the clock or by the training counters.

    Checkpoints are due at multiples of the counters. So a resumed run saves at the same counts as an uninterrupted run.

    :param steps: environment steps between two checkpoints; None for no checkpoints by steps. ``episodes`` and
        ``seconds`` have the same meaning
    """

    def __init__(
        self,
        counter: TotalStepsCounter,
        steps: int | None = None,
        episodes: int | None = None,
        seconds: float | None = None,
    ):
        self._seconds = seconds
        periods = {EnvironmentSteps: steps, EnvironmentEpisodes: episodes}
        self._periods = {unit: period for unit, period in periods.items() if period}
        self._counts = counter.counters
        self._due: dict[Any, int] = {}
        self._due_at = math.inf
        self.restart()

    @property
    def is_regular(self) -> bool:
        """True if the run saves checkpoints at regular times."""
        return bool(self._periods) or self._seconds is not None

    def restart(self) -> None:
        """Restart the clock, after a checkpoint or at the start of a run."""
        self._due_at = math.inf if self._seconds is None else time.monotonic() + self._seconds
        self._due = {unit: (self._counts[unit] // period + 1) * period for unit, period in self._periods.items()}

    def next_count(self, unit: type[StepMethod]) -> int | None:
        """The count of training steps or episodes at the next checkpoint; None if no checkpoints are due by this
        unit."""
        return self._due.get(unit)

    def is_due(self, is_between_episodes: bool = True) -> bool:
        """True if a checkpoint must be saved now. Called after each step."""
        for unit, due in self._due.items():
            if self._counts[unit] >= due:
                return True
        if self._due_at is math.inf:
            return False
        overdue = time.monotonic() - self._due_at
        return overdue >= 0 and (is_between_episodes or overdue >= _LONGEST_WAIT_FOR_EPISODE_END)
