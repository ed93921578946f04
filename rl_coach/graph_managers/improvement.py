"""The part of a run in which training and evaluation take turns: where it began, where it ends, what comes next."""

from __future__ import annotations

from typing import Any

from rl_coach.core_types import StepMethod, TotalStepsCounter, TrainingSteps
from rl_coach.graph_managers.schedule_parameters import UNITS


class Improvement:
    """Knows how much of ``improve_steps`` is done and when the next evaluation is due, by the training counters.

    Periods between evaluations are counted from the start of the part, so that a resumed run evaluates where an
    uninterrupted one does.

    :param counter: the training counters
    """

    def __init__(self, counter: TotalStepsCounter):
        self._counts = counter.counters
        self._start: dict[type[StepMethod], int] | None = None
        self._end: StepMethod | None = None
        self._next_evaluation: int | None = None

    @property
    def has_begun(self) -> bool:
        """True once heatup is over, in this process or before it was resumed."""
        return self._start is not None

    @property
    def end(self) -> StepMethod | None:
        """The count at which training ends; None while no ``improve`` runs."""
        return self._end

    def forget(self) -> None:
        """Prepare for a part that begins anew."""
        self._start, self._next_evaluation = None, None

    def begin(self) -> None:
        """Count from here."""
        self._start = dict(self._counts)

    def set_end(self, steps: StepMethod) -> None:
        """End after ``steps`` from the start."""
        unit = type(steps)
        assert self._start is not None
        self._end = unit(self._start[unit] + steps.num_steps)

    def clear_end(self) -> None:
        """Let training go on without an end: no ``improve`` runs any more."""
        self._end = None

    @property
    def is_over(self) -> bool:
        """True if all is trained and the evaluation that follows is held."""
        assert self._end is not None
        return self._counts[type(self._end)] >= self._end.num_steps and self._next_evaluation is None

    def left_of_period(self, length: StepMethod) -> StepMethod:
        """The training until the next evaluation, 0 where that evaluation alone is left.

        :param length: the training between two evaluations
        """
        assert self._start is not None
        unit = type(length)
        now = self._counts[unit]
        if self._next_evaluation is None:
            self._next_evaluation = now + length.num_steps - (now - self._start[unit]) % length.num_steps
        return unit(self._next_evaluation - now)

    def evaluation_held(self) -> None:
        """Begin the next period."""
        self._next_evaluation = None

    def updates_left(self) -> int | None:
        """The updates until the end, where it is counted in them."""
        return self._end.num_steps - self._counts[TrainingSteps] if isinstance(self._end, TrainingSteps) else None

    @property
    def fraction_done(self) -> float:
        """The share of ``improve_steps`` that is done, 0 to 1; 0 while no ``improve`` runs."""
        if self._end is None or self._start is None:
            return 0.0
        unit = type(self._end)
        start = self._start[unit]
        return (self._counts[unit] - start) / max(1, self._end.num_steps - start)

    def get_state(self) -> dict[str, Any]:
        """The start and the next evaluation, for a checkpoint."""
        start = None if self._start is None else {unit.__name__: count for unit, count in self._start.items()}
        return {"improve_start": start, "next_evaluation": self._next_evaluation}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``."""
        start = state["improve_start"]
        self._start = None if start is None else {UNITS[unit]: count for unit, count in start.items()}
        self._next_evaluation = state["next_evaluation"]
