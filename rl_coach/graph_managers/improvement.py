"""Counts of the part of a run after heatup. In this part, training and evaluation take turns."""

from __future__ import annotations

from typing import Any

from rl_coach.core_types import StepMethod, TotalStepsCounter, TrainingSteps
from rl_coach.graph_managers.schedule_parameters import PLURALS, UNITS
from rl_coach.runs.progress import Goal


class Improvement:
    """Computes from the training counters how much of ``improve_steps`` is done and when the next evaluation is due.

    Periods between evaluations are counted from the start of training. A resumed run therefore evaluates at the same
    counts as an uninterrupted run.

    :param counter: the training counters
    :param training_steps: the name of training steps in the plural, such as ``updates``

    :ivar end: the count of the end of training; None while ``improve`` does not run
    :ivar end_in_updates: training ends at this count of updates; None if the end is not counted in updates
    """

    def __init__(self, counter: TotalStepsCounter, training_steps: str = PLURALS[TrainingSteps]):
        self._counts = counter.counters
        self._plurals = {**PLURALS, TrainingSteps: training_steps}
        self._start: dict[type[StepMethod], int] | None = None
        self.end: StepMethod | None = None
        self.end_in_updates: int | None = None
        self._next_evaluation: int | None = None

    @property
    def has_begun(self) -> bool:
        """True once heatup is over, in this process or before the run was resumed."""
        return self._start is not None

    @property
    def epochs(self) -> int:
        """Passes over a data set so far; 0 if training steps are not epochs."""
        return self._counts[TrainingSteps] if self._plurals[TrainingSteps] == "epochs" else 0

    def forget(self) -> None:
        """Forget the start, so that training begins again."""
        self._start, self._next_evaluation = None, None

    def begin(self) -> None:
        """Set the start to the current counts."""
        self._start = dict(self._counts)

    def set_end(self, steps: StepMethod) -> None:
        """Set the end of training. :param steps: the length of training, counted from the start"""
        unit = type(steps)
        assert self._start is not None
        self.end = unit(self._start[unit] + steps.num_steps)
        self.end_in_updates = self.end.num_steps if self._plurals[unit] == "updates" else None

    def clear_end(self) -> None:
        """Remove the end, because ``improve`` has ended."""
        self.end = self.end_in_updates = None

    @property
    def is_over(self) -> bool:
        """True if ``improve_steps`` and the evaluation after them are done."""
        assert self.end is not None
        return self._counts[type(self.end)] >= self.end.num_steps and self._next_evaluation is None

    def left_of_period(self, length: StepMethod) -> StepMethod:
        """The training until the next evaluation; 0 if only that evaluation is left.

        :param length: the training between two evaluations
        """
        assert self._start is not None
        unit = type(length)
        now = self._counts[unit]
        if self._next_evaluation is None:
            self._next_evaluation = now + length.num_steps - (now - self._start[unit]) % length.num_steps
        return unit(self._next_evaluation - now)

    def evaluation_held(self) -> None:
        """Begin the next period between two evaluations. Call this after each evaluation."""
        self._next_evaluation = None

    def goal(self, may_end_before: bool) -> Goal | None:
        """The progress within ``improve_steps``; None while ``improve`` does not run.

        :param may_end_before: training also ends when the stop condition is met
        """
        if self.end is None or self._start is None:
            return None
        unit = type(self.end)
        start = self._start[unit]
        return Goal(self._counts[unit] - start, self.end.num_steps - start, self._plurals[unit], may_end_before)

    def get_state(self) -> dict[str, Any]:
        """The start and the next evaluation, for a checkpoint."""
        start = None if self._start is None else {unit.__name__: count for unit, count in self._start.items()}
        return {"improve_start": start, "next_evaluation": self._next_evaluation}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned."""
        start = state["improve_start"]
        self._start = None if start is None else {UNITS[unit]: count for unit, count in start.items()}
        self._next_evaluation = state["next_evaluation"]
