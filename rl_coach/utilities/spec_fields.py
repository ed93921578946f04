"""Reads specifications (dicts, JSON, YAML or files), and checks their keys and values."""

from __future__ import annotations

import json
import math
import numbers
import os
import pathlib
from typing import Any, Callable, Iterable, Mapping

import numpy as np

from rl_coach.utilities.safe_reading import read_text
from rl_coach.utils import CoachError, choose_from

_ENDINGS = (".json", ".yaml", ".yml")
_LONGEST_SHOWN = 60
_MOST_NUMBERS = 10**8

Read = Callable[[Any, str], Any]
"""Function of a value and its key. It checks and converts the value, and raises a ``CoachError`` for a wrong value."""


def read_spec(source: Any) -> dict[str, Any]:
    """Read a specification.

    :param source: a dict, its JSON or YAML text, or the path of a file with one of these
    :raises CoachError: if the source has another form
    """
    content = read_data(source)
    if not isinstance(content, dict):
        raise CoachError(f"a spec must be a dict with a 'type', not {shown(content)}")
    return underscored(content)


def read_data(source: Any) -> Any:
    """Read a dict or a list.

    :param source: the dict or list itself, its JSON or YAML text, or the path of a file with one of these
    :raises CoachError: if the source has another form
    """
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, (str, os.PathLike)) and _is_path(source):
        try:
            source = read_text(source)
        except FileNotFoundError as error:
            raise CoachError(f"a spec is a dict, JSON, YAML, or a file of these: {error}") from None
    if not isinstance(source, str):
        raise CoachError(f"a spec must be a dict, JSON, YAML, or a file of these, not {shown(source)}")
    return _parsed(source)


def _is_path(source: Any) -> bool:
    return not isinstance(source, str) or pathlib.PurePath(source.strip()).suffix in _ENDINGS


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise CoachError("the spec is nested too deeply") from None
    except ValueError:
        try:
            import yaml  # comes with Bokeh, which is not installed everywhere
        except ImportError:
            raise CoachError("the spec is not JSON, and YAML needs the package PyYAML: pip install pyyaml") from None
        try:
            return yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise CoachError(f"the spec is neither JSON nor YAML: {' '.join(str(error).split())}") from None


def shown(value: Any) -> str:
    """A value for a message of one line."""
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # a whole number with thousands of digits, or deeply nested lists
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def is_number(value: Any) -> bool:
    """True for a finite number; not for a truth value."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that is larger than any float
        return False


def whole(low: int = 1, high: int = 10**9) -> Read:
    """A whole number within bounds. A float such as 1e6 is allowed."""

    def read(value: Any, where: str) -> int:
        if not is_number(value) or value != int(value) or not low <= value <= high:
            raise CoachError(f"the spec's '{where}' must be a whole number from {low} to {high:,}, not {shown(value)}")
        return int(value)

    return read


def number(low: float = -math.inf, high: float = math.inf) -> Read:
    """A finite number within bounds."""

    def read(value: Any, where: str) -> float:
        if not is_number(value) or not low <= value <= high:
            limits = "" if (low, high) == (-math.inf, math.inf) else f" from {low:g} to {high:g}"
            raise CoachError(f"the spec's '{where}' must be a number{limits}, not {shown(value)}")
        return float(value)

    return read


def flag(value: Any, where: str) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise CoachError(f"the spec's '{where}' must be true or false, not {shown(value)}")
    return bool(value)


def underscored(given: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dictionary with underscores instead of the hyphens of its keys.

    :raises CoachError: if a key occurs in both forms
    """
    found = {name.replace("-", "_") if isinstance(name, str) else name: value for name, value in given.items()}
    if len(found) < len(given):
        twice = next(name for name in found if name in given and str(name).replace("_", "-") in given and "_" in name)
        raise CoachError(f"the spec has '{twice}' twice: a hyphen counts as an underscore")
    return found


def plain(name: str) -> str:
    """A name in small letters, with underscores instead of hyphens."""
    return name.lower().replace("-", "_")


def choice(choices: Iterable[str]) -> Read:
    """A name from ``choices``. Hyphens count as underscores. The error names the nearest choice."""
    known = {plain(one): one for one in choices}

    def read(value: Any, where: str) -> str:
        if isinstance(value, str) and plain(value) in known:
            return known[plain(value)]
        suggestion = choose_from(value if isinstance(value, str) else "", known.values())
        raise CoachError(f"the spec's '{where}' {shown(value)} is not supported{suggestion}")

    return read


def shape_of(value: Any, where: str) -> tuple[int, ...]:
    """A shape, from a list of whole numbers or a single one. None is the shape of a single number.

    :raises CoachError: if the value is not a shape, or the shape has too many numbers for an observation
    """
    sizes = [] if value is None else value if isinstance(value, (list, tuple)) else [value]
    shape = tuple(map(whole(), sizes, [where] * len(sizes)))
    if math.prod(shape) > _MOST_NUMBERS:
        raise CoachError(f"the spec's '{where}' has more than {_MOST_NUMBERS:,} numbers: {shown(value)}")
    return shape


class Fields:
    """A dictionary of a specification. Each method reads a known key, and returns None for a missing key. ``finish``
    refuses keys that no method has read.

    :param given: the dictionary
    :param where: the key of the dictionary itself, for messages
    :raises CoachError: if the value is not a dictionary with texts as keys
    """

    def __init__(self, given: Any, where: str = ""):
        if not isinstance(given, Mapping):
            raise CoachError(f"the spec's '{where}' must be a dict, not {shown(given)}")
        for name in given:
            if not isinstance(name, str):
                raise CoachError(f"a key of a spec must be a text, not {shown(name)}")
        self._given = underscored(given)
        self._where = where
        self._known: set[str] = set()
        self._below: dict[str, Fields] = {}

    def path(self, name: str) -> str:
        """A key with all keys above it, such as ``optimizer.type``."""
        return f"{self._where}.{name}" if self._where else name

    def get(self, name: str, *older: str) -> Any:
        """The value of a key; None if it is missing. :param older: older names of the key"""
        self._known |= {name, *older}
        present = [one for one in (name, *older) if self._given.get(one) is not None]
        if len(present) > 1:
            raise CoachError(f"the spec's '{self.path(present[0])}' and '{present[1]}' mean the same: give one of them")
        return self._given[present[0]] if present else None

    def read(self, read: Read, name: str, *older: str) -> Any:
        """The value of a key, checked and converted. :param read: the reader of the value :param older: as for
        ``get``"""
        value = self.get(name, *older)
        return None if value is None else read(value, self.path(name))

    def number(self, name: str, low: float = -math.inf, high: float = math.inf, *older: str) -> float | None:
        """See the function ``number``."""
        return self.read(number(low, high), name, *older)

    def whole(self, name: str, *older: str, low: int = 1, high: int = 10**9) -> int | None:
        """See the function ``whole``."""
        return self.read(whole(low, high), name, *older)

    def flag(self, name: str) -> bool | None:
        """See the function ``flag``."""
        return self.read(flag, name)

    def choice(self, name: str, choices: Iterable[str], *older: str) -> str | None:
        """See the function ``choice``."""
        return self.read(choice(choices), name, *older)

    def fields(self, name: str, *older: str) -> Fields | None:
        """The dictionary of a key. A text stands for ``{"type": text}``, and False for no dictionary. ``finish`` also
        checks the dictionary's keys."""
        value = self.get(name, *older)
        if value is None or value is False:
            return None
        if name not in self._below:
            self._below[name] = Fields({"type": value} if isinstance(value, str) else value, self.path(name))
        return self._below[name]

    def at(self, keys: str) -> tuple[Any, str]:
        """A value at any depth, and its full key. :param keys: as in ``Row.keys``"""
        *above, last = keys.split(".")
        fields: Fields | None = self
        for name in above:
            fields = None if fields is None else fields.fields(*name.split("|"))
        names = last.split("|")
        return (None, keys) if fields is None else (fields.get(*names), fields.path(names[0]))

    def missing(self, name: str) -> Any:
        """Raise the error for a missing key.

        :raises CoachError: always
        """
        raise CoachError(f"the spec's '{self.path(name)}' is missing")

    def is_type(self, name: str) -> bool:
        """True if the ``type`` of the dictionary is ``name``."""
        kind = self.get("type")
        return isinstance(kind, str) and plain(kind) == name

    def refuse(self, reason: str, *names: str) -> None:
        """Refuse keys that Coach does not support.

        :raises CoachError: if one of the keys has a value
        """
        for name in names:
            value = self.get(name)
            if not (value is None or value is False or (isinstance(value, (list, tuple, dict)) and not value)):
                raise CoachError(f"the spec's '{self.path(name)}': {reason}")

    def finish(self) -> None:
        """Refuse keys that no method has read.

        :raises CoachError: if there is another key; the message names the nearest key
        """
        for name in self._given:
            if name not in self._known:
                suggestion = choose_from(name, sorted(self._known))
                raise CoachError(f"the spec's '{self.path(name)}' is not supported{suggestion}")
        for fields in self._below.values():
            fields.finish()
