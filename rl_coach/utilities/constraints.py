"""Constraints on parameters, declared beside them, and the walk that checks all of a graph's at once.

A class of parameters declares a table, ``constraints``, from the names of its parameters to what they may be; a
subclass inherits the table and adds to it, or replaces an entry. ``check_constraints`` then names what does not hold
by the path that ``-cp`` would take.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from enum import Enum
from typing import Any, Callable, ClassVar, Iterator, Mapping

import numpy as np

from rl_coach.core_types import StepMethod
from rl_coach.schedules import PieceWiseSchedule, Schedule
from rl_coach.utils import CoachError, public_attributes

_LONGEST_VALUE = 60


@dataclass(frozen=True)
class Constraint:
    """The values that a parameter may have.

    :param allowed: in words, after "it must be"
    :param holds: True for a value that is one of them
    """

    allowed: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Constraint) -> Constraint:
        return Constraint(f"{self.allowed} or {other.allowed}", lambda value: self.holds(value) or other.holds(value))


class Constrained:
    """Base of what declares constraints on its attributes.

    :cvar constraints: by the attribute's name; those of the classes above hold too
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {}


def exactly(value: Any) -> Constraint:
    """The given value and no other."""
    return Constraint(str(value), lambda other: type(other) is type(value) and other == value)


def optional(constraint: Constraint) -> Constraint:
    """None, or what another constraint allows."""
    return Constraint(f"{constraint.allowed} or None", lambda value: value is None or constraint.holds(value))


def number(
    low: float = -math.inf, high: float = math.inf, above: float = -math.inf, below: float = math.inf
) -> Constraint:
    """Real numbers within bounds, NaN never, infinity only where ``high`` is given as such.

    :param low: the smallest
    :param high: the largest
    :param above: a bound that is not reached itself
    :param below: likewise
    """

    def holds(value: Any) -> bool:
        return _is_number(value) and low <= value <= high and above < value < below

    return Constraint(f"a number{_range_text(low, high, above, below)}", holds)


def limit(low: float = 0) -> Constraint:
    """A number that bounds others, infinity for no bound."""
    return Constraint(f"a number from {low:g}", lambda value: _is_real(value) and low <= value)


def whole(low: int, high: float = math.inf) -> Constraint:
    """Whole numbers within bounds."""

    def holds(value: Any) -> bool:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool) and low <= int(value) <= high

    return Constraint(f"a whole number{_range_text(low, high)}", holds)


def steps(*units: type[StepMethod], low: float = 0) -> Constraint:
    """Durations in some units, such as ``EnvironmentSteps(1000)``."""

    def holds(value: Any) -> bool:
        return type(value) in units and _is_number(value.num_steps) and value.num_steps >= low

    kinds = " or ".join(f"{unit.__name__}(n)" for unit in units)
    return Constraint(f"{kinds} with n from {low:g}", holds)


def schedule(values: Constraint) -> Constraint:
    """Schedules, all of whose values another constraint allows."""

    def holds(value: Any) -> bool:
        is_schedule = isinstance(value, Schedule) or (hasattr(value, "current_value") and hasattr(value, "step"))
        return is_schedule and all(values.holds(one) for one in _ends(value))

    text = values.allowed.replace("a number", "numbers", 1)
    return Constraint(f"a schedule of {text}, such as LinearSchedule(1, 0.1, 10000)", holds)


def _ends(value: Any) -> Iterator[Any]:
    """The values between which a schedule stays."""
    if isinstance(value, PieceWiseSchedule):
        for piece, _ in value.schedules:
            yield from _ends(piece)
        return
    for name in ("initial_value", "final_value"):
        if hasattr(value, name):
            yield getattr(value, name)


def member(enum: type[Enum]) -> Constraint:
    """Members of an enum."""
    names = ", ".join(f"{enum.__name__}.{one.name}" for one in enum)
    return Constraint(f"one of {names}", lambda value: isinstance(value, enum))


def one_of(*texts: str, any_case: bool = False) -> Constraint:
    """Some texts. :param any_case: in upper or lower case"""
    known = {text.lower() for text in texts} if any_case else set(texts)

    def holds(value: Any) -> bool:
        return isinstance(value, str) and (value.lower() if any_case else value) in known

    return Constraint(f"{', '.join(texts[:-1])} or {texts[-1]}", holds)


def instance(kind: type | tuple[type, ...], allowed: str) -> Constraint:
    """Instances of a class. :param allowed: description of those, for the error"""
    return Constraint(allowed, lambda value: isinstance(value, kind))


def list_of(items: Constraint) -> Constraint:
    """Lists or tuples whose items another constraint allows."""

    def holds(value: Any) -> bool:
        return isinstance(value, (list, tuple)) and all(items.holds(item) for item in value)

    return Constraint(f"a list of such, each {items.allowed}", holds)


def pair(first: Constraint, second: Constraint, example: str) -> Constraint:
    """Tuples or lists of two. :param example: such a pair, for the message"""

    def holds(value: Any) -> bool:
        is_pair = isinstance(value, (tuple, list)) and len(value) == 2
        return is_pair and first.holds(value[0]) and second.holds(value[1])

    return Constraint(f"a pair such as {example}", holds)


def bounds(example: str) -> Constraint:
    """Pairs of numbers, the lower one first. :param example: such a pair, for the message"""
    of_numbers = pair(number(), number(), example)
    allowed = f"{of_numbers.allowed}, the lower number first,"
    return Constraint(allowed, lambda value: of_numbers.holds(value) and value[0] < value[1])


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _is_number(value: Any) -> bool:
    return _is_real(value) and math.isfinite(value)


def _range_text(low: float, high: float, above: float = -math.inf, below: float = math.inf) -> str:
    parts = []
    if math.isfinite(low):
        parts.append(f"from {low:g}")
    if math.isfinite(above):
        parts.append(f"above {above:g}")
    if math.isfinite(high):
        parts.append(f"to {high:g}")
    if math.isfinite(below):
        parts.append(f"below {below:g}")
    return "".join(f" {part}" for part in parts)


def _is_flag(value: Any) -> bool:
    return value is None or (isinstance(value, (bool, np.bool_, numbers.Integral)) and value in (0, 1))


FLAG = Constraint("True or False", _is_flag)
FRACTION = number(0, 1)
TEXT = Constraint("a text", lambda value: isinstance(value, str))


def constraints_of(kind: type) -> dict[str, Constraint]:
    """All constraints of a class, those that it inherits included."""
    tables = [vars(cls).get("constraints", {}) for cls in reversed(kind.__mro__) if issubclass(cls, Constrained)]
    return {name: constraint for table in tables for name, constraint in table.items()}


def check_constraints(graph: Constrained) -> None:
    """Check a graph manager's settings, and all parameters below it.

    :raises CoachError: one does not hold; the message names it by its path, its value, and what is allowed
    """
    seen: set[int] = set()
    for name, value in {"": graph, **public_attributes(graph)}.items():
        _check_below(value, name, seen)


def _check_below(value: Any, path: str, seen: set[int]) -> None:
    if id(value) in seen:
        return
    if isinstance(value, Constrained):
        seen.add(id(value))
        _check_object(value, path)
        if path:  # a graph manager's attributes are walked by ``check_constraints``
            for name, below in public_attributes(value).items():
                _check_below(below, f"{path}.{name}", seen)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_below(item, f"{path}[{key.__name__ if isinstance(key, type) else repr(key)}]", seen)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_below(item, f"{path}[{index}]", seen)


def _check_object(holder: Constrained, path: str) -> None:
    for name, constraint in constraints_of(type(holder)).items():
        if not hasattr(holder, name):
            continue  # a user's class may do without
        value = getattr(holder, name)
        if not constraint.holds(value):
            raise CoachError(f"{path}{'.' if path else ''}{name} is {shown(value)}; it must be {constraint.allowed}")


def shown(value: Any) -> str:
    """A value on one line of bounded length."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"
