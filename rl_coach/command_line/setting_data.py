"""Settings as JSON. Values that are not plain data are written as texts in the form of ``-cp``."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from rl_coach.command_line.custom_parameters import parse
from rl_coach.utils import CoachError

NOT_PLAIN = object()
"""The result for a value that has no text in the form of ``-cp``."""


def setting_as_data(value: Any) -> Any:
    """A value as JSON. Plain data are returned unchanged. Other values become the text of their constructor, such as
    ``{"call": "EnvironmentSteps(4)"}``, or ``NOT_PLAIN`` if there is no such text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        items = [setting_as_data(item) for item in value]
        if any(item is NOT_PLAIN for item in items):
            return NOT_PLAIN
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, dict):
        parts = {str(name): setting_as_data(item) for name, item in value.items()}
        return NOT_PLAIN if any(part is NOT_PLAIN for part in parts.values()) else parts
    if isinstance(value, np.generic):
        return value.item()
    text = str(value) if isinstance(value, Enum) else repr(value)
    try:
        (assignment,) = parse(f"value = {text}")
    except CoachError:
        return NOT_PLAIN
    return {"call": text} if repr(assignment.value) == repr(value) else NOT_PLAIN


def setting_from_data(value: Any) -> Any:
    """The inverse of ``setting_as_data``."""
    if isinstance(value, list):
        return [setting_from_data(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"tuple"}:
        return tuple(map(setting_from_data, value["tuple"]))
    if set(value) == {"call"}:
        return parse(f"value = {value['call']}")[0].value
    return {name: setting_from_data(part) for name, part in value.items()}


def setting_as_json(value: Any, what: str) -> Any:
    """A value as JSON, as in ``setting_as_data``.

    :param what: the name of the value, for the error's message
    :raises CoachError: if the value has parts that cannot be written
    """
    written = setting_as_data(value)
    if written is NOT_PLAIN:
        raise CoachError(f"{what} has values that cannot be saved: they are not plain data")
    return written
