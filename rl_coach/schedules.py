"""Schedules: values that change with the number of steps taken, such as epsilon or a noise level."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from rl_coach.core_types import EnvironmentSteps, StepMethod
from rl_coach.utilities.overrides import OverrideTable

OVERRIDES = OverrideTable({"advance": ("step",), "values_at": ("value_at",)})


class Schedule:
    """A value that starts at ``initial_value`` and may change with each call of ``step``.

    :ivar current_value: the current value
    :ivar num_steps: number of times that ``step()`` has been called
    """

    def __init__(self, initial_value: float):
        self.initial_value = initial_value
        self.current_value = initial_value
        self.num_steps = 0

    def step(self) -> None:
        """Advance by one step."""
        self.num_steps += 1
        self.current_value = self.value_at(self.num_steps)

    def advance(self, steps: int) -> None:
        """Advance by several steps. If a subclass overrides ``step``, each step calls ``step``.

        :param steps: number of steps
        """
        if steps == 1 or OVERRIDES.is_replaced(self, "advance"):  # most loops advance by one step at a time
            for _ in range(steps):
                self.step()
        elif steps:
            self.num_steps += steps
            self.current_value = self.value_at(self.num_steps)

    def next_values(self, count: int) -> np.ndarray:
        """Return the current value and the values of the following steps, and advance by ``count`` steps.

        :return: [count] float64
        """
        if OVERRIDES.is_replaced(self, "advance"):
            values = np.zeros(count)
            for index in range(count):
                values[index] = self.current_value
                self.step()
            return values
        values = self.values_at(self.num_steps, count)
        values[0] = self.current_value
        self.advance(count)
        return values

    def value_at(self, step: int) -> float:
        """The value after ``step`` steps. It must depend only on ``step``, so that a resumed run has the same
        values."""
        raise NotImplementedError(f"{type(self).__name__} must define value_at")

    def values_at(self, first: int, count: int) -> np.ndarray:
        """The values after ``first``, ``first + 1``, … steps. :return: [count] float64"""
        return np.asarray([self.value_at(step) for step in range(first, first + count)], np.float64)

    def get_state(self) -> dict[str, Any]:
        """The state of the schedule."""
        return {"num_steps": self.num_steps, "current_value": self.current_value}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned."""
        self.num_steps = state["num_steps"]
        self.current_value = state["current_value"]

    def __repr__(self) -> str:
        settings = {name: value for name, value in vars(self).items() if name not in ("current_value", "num_steps")}
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in settings.items())})"


class ConstantSchedule(Schedule):
    """A value that does not change."""

    def value_at(self, step: int) -> float:
        return self.initial_value


class LinearSchedule(Schedule):
    """A value that changes linearly from ``initial_value`` to ``final_value`` over ``decay_steps`` steps, and is then
    constant."""

    def __init__(self, initial_value: float, final_value: float, decay_steps: int):
        super().__init__(initial_value)
        if decay_steps < 1:
            raise ValueError(f"LinearSchedule needs decay_steps of at least 1, got {decay_steps}")
        self.final_value = final_value
        self.decay_steps = decay_steps

    def value_at(self, step: int) -> float:
        if step >= self.decay_steps:
            return self.final_value
        return self.initial_value + (self.final_value - self.initial_value) * (step / self.decay_steps)

    def values_at(self, first: int, count: int) -> np.ndarray:
        if OVERRIDES.is_replaced(self, "values_at"):
            return super().values_at(first, count)
        if first >= self.decay_steps:
            return np.full(count, self.final_value, np.float64)
        shares = np.arange(first, first + count) / self.decay_steps
        line = self.initial_value + (self.final_value - self.initial_value) * shares
        return np.where(shares < 1, line, self.final_value)


class ExponentialSchedule(Schedule):
    """The value ``initial_value * decay_coefficient ** step``, which stops at ``final_value``.

    :param initial_value: the first value
    :param final_value: the last value
    :param decay_coefficient: the factor of each step; below 1 the value falls, above 1 it rises
    """

    def __init__(self, initial_value: float, final_value: float, decay_coefficient: float):
        super().__init__(initial_value)
        falls = decay_coefficient <= 1 and final_value <= initial_value
        rises = decay_coefficient >= 1 and final_value >= initial_value
        if not (falls or rises):
            raise ValueError(
                f"ExponentialSchedule cannot go from {initial_value} to {final_value} "
                f"with a decay_coefficient of {decay_coefficient}: below 1 it falls, above 1 it rises"
            )
        self.final_value = final_value
        self.decay_coefficient = decay_coefficient

    def value_at(self, step: int) -> float:
        try:
            value = self.initial_value * self.decay_coefficient**step
        except OverflowError:
            return self.final_value
        limit = max if self.final_value <= self.initial_value else min
        return limit(value, self.final_value)


class StepDecaySchedule(Schedule):
    """A value that is multiplied by a factor after each full period.

    :param initial_value: the value in the first period
    :param decay_rate: the factor
    :param decay_steps: the length of a period
    """

    def __init__(self, initial_value: float, decay_rate: float, decay_steps: int):
        super().__init__(initial_value)
        if decay_steps < 1:
            raise ValueError(f"StepDecaySchedule needs decay_steps of at least 1, got {decay_steps}")
        self.decay_rate = decay_rate
        self.decay_steps = decay_steps

    def value_at(self, step: int) -> float:
        return self.initial_value * self.decay_rate ** (step // self.decay_steps)


class HalvingSchedule(Schedule):
    """A value that approaches ``final_value``: its distance from ``final_value`` halves in equal intervals.

    :param initial_value: the first value
    :param final_value: the last value
    :param steps: number of steps to the last value
    :param half_lives: number of halvings in ``steps`` steps
    """

    def __init__(self, initial_value: float, final_value: float, steps: int, half_lives: float):
        super().__init__(initial_value)
        self.final_value = final_value
        self.steps = steps
        self.half_lives = half_lives

    def value_at(self, step: int) -> float:
        if step >= self.steps:
            return self.final_value
        share = 2.0 ** (-self.half_lives * step / self.steps)
        return self.final_value + share * (self.initial_value - self.final_value)


class PieceWiseSchedule(Schedule):
    """Several schedules one after the other. A first schedule with ``EnvironmentSteps(10)`` supplies the values up to
    step 10. The next schedule begins at step 11.

    :param schedules: pairs of a schedule and its length, ``(schedule, EnvironmentSteps(n))``; the last schedule
        continues without end
    """

    def __init__(self, schedules: Sequence[tuple[Schedule, EnvironmentSteps]]):
        if not schedules:
            raise ValueError("PieceWiseSchedule needs at least one (schedule, duration) pair")
        for pair in schedules:
            is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2
            if not (is_pair and isinstance(pair[0], Schedule) and isinstance(pair[1], StepMethod)):
                raise ValueError(f"PieceWiseSchedule needs pairs like (schedule, EnvironmentSteps(1000)), got {pair}")
        self.schedules = list(schedules)
        super().__init__(self.schedules[0][0].initial_value)

    def value_at(self, step: int) -> float:
        # the first schedule has one more value: the value before the first step
        num_values = self.schedules[0][1].num_steps + 1
        for (schedule, _), (_, next_duration) in zip(self.schedules, self.schedules[1:]):
            if step < num_values:
                return schedule.value_at(step)
            step -= num_values
            num_values = next_duration.num_steps
        return self.schedules[-1][0].value_at(step)


class LevelsOfCopies(Schedule):
    """A random noise level for each copy of the environment. Levels are drawn uniformly from [``low``, ``high``], and
    drawn again after ``steps`` steps of a copy.

    The copies take their values in turn, and each value advances the schedule by one step. The random numbers depend
    only on the step.

    :param low: the smallest level
    :param high: the largest level
    :param steps: number of steps of a copy before a new level is drawn
    :ivar copies: number of copies; an agent sets this number when it begins to act in several copies
    """

    def __init__(self, low: float, high: float, steps: int = 1000):
        if not 0 <= low <= high or steps < 1:
            raise ValueError(
                f"LevelsOfCopies needs 0 <= low <= high and steps of at least 1, got {low}, {high}, {steps}"
            )
        self.low, self.high, self.steps, self.copies = low, high, steps, 1
        super().__init__(self.value_at(0))

    def value_at(self, step: int) -> float:
        return float(self.values_at(step, 1)[0])

    def values_at(self, first: int, count: int) -> np.ndarray:
        steps = np.arange(first, first + count)
        draws = steps // (self.copies * self.steps)
        found = np.empty(count)
        for draw in np.unique(draws).tolist():
            levels = np.random.default_rng(draw).uniform(self.low, self.high, self.copies)
            found[draws == draw] = levels[steps[draws == draw] % self.copies]
        return found


def after(start: int, first: float, schedule: Schedule) -> Schedule:
    """A schedule that begins after ``start`` steps.

    :param start: number of steps with the value ``first``
    :param first: the value before the schedule begins
    """
    if not start:
        return schedule
    # the first schedule has one more value than steps: the value before its first step
    return PieceWiseSchedule([(ConstantSchedule(first), EnvironmentSteps(start - 1)), (schedule, EnvironmentSteps(1))])
