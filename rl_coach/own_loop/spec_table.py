"""Settings of a specification as a table of rows: key, path in Coach's parameters, reader."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Sequence, Union

from rl_coach.core_types import EnvironmentSteps, StepMethod
from rl_coach.own_loop.spec_parts import Definition, schedule_of
from rl_coach.utilities.spec_fields import Fields, Read, number, shown, whole
from rl_coach.utils import CoachError

logger = logging.getLogger("rl_coach")

Put = Union[str, Sequence[str], Callable[[Definition, Any], None]]
"""Path of a setting in the agent's parameters; several paths; or a function that receives the definition and the
value."""


@dataclass(frozen=True)
class Row:
    """A key of a specification.

    :param keys: the path of the key, such as ``"update_spec.batch_size"``. Older names of the last part follow after
        ``|``
    :param put: stores the value in the definition
    :param read: checks and converts the value. If it returns None, the definition does not change
    """

    keys: str
    put: Put
    read: Read


def apply_rows(rows: Iterable[Row], definition: Definition, fields: Fields) -> None:
    """Apply the rows to a specification.

    :raises CoachError: if a value is wrong
    """
    for row in rows:
        value, where = fields.at(row.keys)
        found = None if value is None else row.read(value, where)
        if found is None:
            continue
        if callable(row.put):
            row.put(definition, found)
            continue
        for path in (row.put,) if isinstance(row.put, str) else row.put:
            definition.set(path, found)


# readers


def steps(unit: type[StepMethod]) -> Read:
    """A duration, from a whole number."""
    return lambda value, where: value if isinstance(value, StepMethod) else unit(whole()(value, where))


def anything(value: Any, where: str) -> Any:
    """The value itself; ``put`` checks it."""
    return value


def first_value(value: Any, where: str) -> float:
    """A number. For a schedule, the result is the first value, with a warning."""
    schedule = schedule_of(value, where)
    if not hasattr(schedule, "value_at"):
        return float(schedule)
    first = schedule.value_at(0)
    logger.warning("the spec's '%s' stays at %g: this setting does not support a schedule", where, first)
    return float(first)


def unused(reason: str, *defaults: Any) -> Callable[..., list[Row]]:
    """Rows for keys without effect. A warning reports each key, unless its value is a default.

    :param reason: the reason in the warning
    :param defaults: values without a warning, in addition to None, False and empty values
    """

    def read(value: Any, where: str) -> None:
        is_empty = value is False or (isinstance(value, (str, list, tuple, dict)) and not value)
        if not is_empty and not any(type(value) is type(one) and value == one for one in defaults):
            logger.warning("the spec's '%s' is ignored: %s", where, reason)

    return lambda *keys: [Row(key, (), read) for key in keys]


def refused(reason: str) -> Callable[..., list[Row]]:
    """Rows for keys that Coach does not support: only empty values are allowed. :param reason: for the error"""

    def read(value: Any, where: str) -> None:
        if not (value is False or (isinstance(value, (list, tuple, dict)) and not value)):
            raise CoachError(f"the spec's '{where}': {reason}")

    return lambda *keys: [Row(key, (), read) for key in keys]


def only(reason: str, *allowed: Any) -> Read:
    """A reader that allows only these values. :param reason: for the error"""

    def read(value: Any, where: str) -> None:
        if not any(type(value) is type(one) and value == one for one in allowed):
            raise CoachError(f"the spec's '{where}' must be {shown(allowed[0])}, not {shown(value)}: {reason}")

    return read


def of_target(interval: str, share: str) -> list[Row]:
    """Rows of a target network: the number of steps between two updates, and the share by which an update moves the
    target.

    :param interval: the key of the number of steps
    :param share: the key of the share
    """
    every = "algorithm.num_steps_between_copying_online_weights_to_target"
    return [
        Row(interval, every, steps(EnvironmentSteps)),
        Row(share, "algorithm.rate_for_copying_weights_to_target", number(1e-9, 1)),
    ]


DEMONSTRATIONS = [
    # ``pretrain`` makes the updates
    Row("type", lambda definition, kind: definition.set("algorithm.pretraining_updates", 0), anything),
    Row("expert_margin", "algorithm.margin", number(0, 1e6)),
    Row("supervised_weight", "algorithm.supervised_weight", number(0, 1e6)),
]
"""The settings of DQfD. Both systems use the same names for them."""
