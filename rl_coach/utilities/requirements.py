"""Requirements on settings, which the classes of the settings declare, and the function that checks a graph's settings.

A class of settings declares a table, ``constraints``, with the allowed values of its settings by name. A subclass
inherits the table and adds or replaces entries. The method ``unmet`` checks requirements between settings. The errors
of ``check`` name a setting by its path, as for ``-cp``.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from enum import Enum
from typing import Any, Callable, ClassVar, Iterable, Iterator, Mapping

import numpy as np

from rl_coach.core_types import StepMethod
from rl_coach.schedules import PieceWiseSchedule, Schedule
from rl_coach.utilities.errors import refuse
from rl_coach.utilities.spec_fields import is_number, shown
from rl_coach.utils import public_attributes


@dataclass(frozen=True)
class Constraint:
    """The values that a parameter may have.

    :param allowed: description of the allowed values, which the error shows after "it must be"
    :param holds: returns True for an allowed value
    """

    allowed: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Constraint) -> Constraint:
        return Constraint(f"{self.allowed} or {other.allowed}", lambda value: self.holds(value) or other.holds(value))


class Constrained:
    """The base of classes that declare requirements on their attributes.

    :cvar constraints: constraints by the attribute's name, in addition to the base classes' constraints
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {}

    def unmet(self) -> Iterable[str]:
        """A line for each requirement between attributes that is not met. The line begins with the attribute and ends
        with advice. This method is called only if all attributes meet their constraints."""
        return ()


def exactly(value: Any) -> Constraint:
    """The given value and no other. NumPy's form of a whole number, True or False is also allowed."""
    if isinstance(value, bool):
        return Constraint(str(value), lambda other: _is_flag(other) and bool(other) is value)
    kind = numbers.Integral if isinstance(value, int) else type(value)
    return Constraint(
        str(value), lambda other: isinstance(other, kind) and not isinstance(other, bool) and bool(other == value)
    )


def optional(constraint: Constraint) -> Constraint:
    """None, or a value that another constraint allows."""
    return Constraint(f"None or {constraint.allowed}", lambda value: value is None or constraint.holds(value))


def number(
    low: float = -math.inf, high: float = math.inf, above: float = -math.inf, below: float = math.inf
) -> Constraint:
    """Finite real numbers within bounds. Only ``limit`` also allows infinity.

    :param low: the smallest allowed number
    :param high: the largest allowed number
    :param above: all numbers must be above this number
    :param below: all numbers must be below this number
    """

    def holds(value: Any) -> bool:
        return is_number(value) and low <= value <= high and above < value < below

    return Constraint(f"a number{_range_text(low, high, above, below)}", holds)


def limit(low: float = 0) -> Constraint:
    """A number that limits other numbers; infinity is no limit."""
    return Constraint(f"a number{_range_text(low, math.inf)}", lambda value: _is_real(value) and low <= value)


def whole(low: int, high: float = math.inf) -> Constraint:
    """Whole numbers within bounds."""

    def holds(value: Any) -> bool:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool) and low <= int(value) <= high

    return Constraint(f"a whole number{_range_text(low, high)}", holds)


def steps(*units: type[StepMethod], low: float = 0) -> Constraint:
    """Durations in some units, such as ``EnvironmentSteps(1000)``."""

    def holds(value: Any) -> bool:
        return type(value) in units and is_number(value.num_steps) and value.num_steps >= low

    kinds = " or ".join(f"{unit.__name__}(n)" for unit in units)
    return Constraint(f"{kinds} with n from {low:g}", holds)


def schedule(values: Constraint) -> Constraint:
    """Schedules with values that another constraint allows."""

    def holds(value: Any) -> bool:
        is_schedule = isinstance(value, Schedule) or (hasattr(value, "current_value") and hasattr(value, "step"))
        return is_schedule and all(values.holds(one) for one in _ends(value))

    text = values.allowed.replace("a number", "numbers", 1)
    return Constraint(f"a schedule of {text}, such as LinearSchedule(1, 0.1, 10000)", holds)


def _ends(value: Any) -> Iterator[Any]:
    """The first and last values of a schedule and of its pieces."""
    if isinstance(value, PieceWiseSchedule):
        for piece, _ in value.schedules:
            yield from _ends(piece)
        return
    for name in ("initial_value", "final_value"):
        if hasattr(value, name):
            yield getattr(value, name)


def member(enum: type[Enum], *usual: Enum) -> Constraint:
    """Members of an enum.

    :param usual: the members that the error lists, if the owner of the settings checks the others; by default all
    """
    names = ", ".join(f"{enum.__name__}.{one.name}" for one in usual or enum)
    return Constraint(f"one of {names}", lambda value: isinstance(value, enum))


def one_of(*texts: str, any_case: bool = False) -> Constraint:
    """A text from ``texts``. :param any_case: the case of letters does not matter"""
    known = {text.lower() for text in texts} if any_case else set(texts)

    def holds(value: Any) -> bool:
        return isinstance(value, str) and (value.lower() if any_case else value) in known

    return Constraint(f"{', '.join(texts[:-1])} or {texts[-1]}", holds)


def instance(kind: type | tuple[type, ...], allowed: str) -> Constraint:
    """Instances of a class. :param allowed: description of the instances, for the error"""
    return Constraint(allowed, lambda value: isinstance(value, kind))


def list_of(items: Constraint) -> Constraint:
    """Lists or tuples with items that another constraint allows."""

    def holds(value: Any) -> bool:
        return isinstance(value, (list, tuple)) and all(items.holds(item) for item in value)

    return Constraint(f"a list, each item {items.allowed}", holds)


def dictionary_of(values: Constraint, keys: str) -> Constraint:
    """Dictionaries with values that another constraint allows. :param keys: description of the keys, for the message"""

    def holds(value: Any) -> bool:
        return isinstance(value, dict) and all(values.holds(one) for one in value.values())

    return Constraint(f"a dictionary by {keys}, each value {values.allowed}", holds)


def pair(first: Constraint, second: Constraint, example: str) -> Constraint:
    """Tuples or lists of two. :param example: a pair, for the message"""

    def holds(value: Any) -> bool:
        is_pair = isinstance(value, (tuple, list)) and len(value) == 2
        return is_pair and first.holds(value[0]) and second.holds(value[1])

    return Constraint(f"a pair such as {example}, first {first.allowed}, then {second.allowed}", holds)


def bounds(example: str, above: float = -math.inf) -> Constraint:
    """Pairs of numbers, the lower one first.

    :param example: a pair, for the message
    :param above: both numbers must be above this number
    """
    of_numbers = pair(number(above=above), number(above=above), example)
    limits = _range_text(-math.inf, math.inf, above)
    allowed = f"a pair such as {example}, of two numbers{limits}, the lower number first"
    return Constraint(allowed, lambda value: of_numbers.holds(value) and value[0] < value[1])


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _range_text(low: float, high: float, above: float = -math.inf, below: float = math.inf) -> str:
    limits = {"from": low, "above": above, "to": high, "below": below}
    return "".join(f" {word} {value:g}" for word, value in limits.items() if math.isfinite(value))


def _is_flag(value: Any) -> bool:
    return value is None or (isinstance(value, (bool, np.bool_, numbers.Integral)) and value in (0, 1))


FLAG = Constraint("True or False", _is_flag)
FRACTION = number(0, 1)
TEXT = Constraint("a text", lambda value: isinstance(value, str))
PART_OF_FILE_NAME = Constraint(
    "a text of 1 to 100 printable characters without '/', because files are named after it",
    lambda value: isinstance(value, str) and 0 < len(value) <= 100 and value.isprintable() and "/" not in value,
)


def flags(*names: str) -> dict[str, Constraint]:
    """Entries of a table for settings that are True or False."""
    return dict.fromkeys(names, FLAG)


def constraints_of(kind: type) -> dict[str, Constraint]:
    """All constraints of a class, including inherited constraints."""
    tables = [vars(cls).get("constraints", {}) for cls in reversed(kind.__mro__) if issubclass(cls, Constrained)]
    return {name: constraint for table in tables for name, constraint in table.items()}


def settings_below(holder: Any, path: str = "") -> Iterator[tuple[str, Constrained]]:
    """All settings in an object and below it, each once, with its path in ``-cp``.

    :param path: the path of the object itself
    """
    yield from _below(holder, path, set())


def _below(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Constrained]]:
    if id(value) in seen:
        return
    if isinstance(value, Constrained):
        seen.add(id(value))
        yield path, value
        below = {f"{path}.{name}".lstrip("."): item for name, item in public_attributes(value).items()}
    elif isinstance(value, dict):
        below = {f"{path}[{key.__name__ if isinstance(key, type) else repr(key)}]": value[key] for key in value}
    elif isinstance(value, (list, tuple)):
        below = {f"{path}[{index}]": item for index, item in enumerate(value)}
    else:
        return
    for where, item in below.items():
        yield from _below(item, where, seen)


def check(holder: Constrained, path: str = "") -> None:
    """Check the settings in an object and below it: first each value, then the requirements between them.

    :param path: the path of the object itself
    :raises CoachError: if a requirement is not met; the message names the setting's path and the allowed values
    """
    settings = list(settings_below(holder, path))
    for where, one in settings:
        refuse(_wrong_values(one, where))
    for where, one in settings:
        refuse(f"{where}.{line}".lstrip(".") for line in one.unmet())


def check_arguments(settings: type[Constrained], path: str, **values: Any) -> None:
    """Check a constructor's arguments. Each value must meet the constraint of the setting with the same name.

    :param settings: the class with the constraints
    :param path: the name of the object in messages
    :raises CoachError: if a value is not allowed
    """
    constraints = constraints_of(settings)
    refuse(line for name, value in values.items() for line in wrong_value(f"{path}.{name}", value, constraints[name]))


def _wrong_values(holder: Constrained, path: str) -> Iterator[str]:
    for name, constraint in constraints_of(type(holder)).items():
        if hasattr(holder, name):  # a user's class may not have the attribute
            yield from wrong_value(f"{path}.{name}".lstrip("."), getattr(holder, name), constraint)


def wrong_value(path: str, value: Any, constraint: Constraint) -> Iterator[str]:
    """The message about a value that a constraint does not allow. :param path: the path of the value's setting"""
    if not constraint.holds(value):
        yield f"{path} is {shown(value)}; it must be {constraint.allowed}"
