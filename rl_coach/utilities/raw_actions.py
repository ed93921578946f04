"""Conversion between rows of numbers and actions in an environment's own form: arrays, tuples and dicts.

A form describes the actions. It is plain data, so that exported policies can contain it. The form of an array is a dict
with the keys ``shape``, ``dtype`` and ``start``, a number (or one for each element) that is added. ``choices`` is the
number of choices of each element; continuous numbers are then rounded down to a choice. With ``is_number``, the action
is a NumPy scalar. ``{"parts": [...]}`` is the form of a tuple; with ``"names"`` it is the form of a dict.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, Sequence

import numpy as np

Form = dict[str, Any]


def size(form: Form) -> int:
    """The length of a row of numbers for this form."""
    return sum(map(size, form["parts"])) if "parts" in form else math.prod(form["shape"])


def build(form: Form, numbers: np.ndarray) -> Any:
    """The action of a row of numbers, or the actions of several rows in the form of a vector environment.

    :param numbers: [size], or [N, size]
    """
    if "parts" not in form:
        return _leaf(form, numbers)
    built, begin = [], 0
    for part in form["parts"]:
        built.append(build(part, numbers[..., begin : begin + size(part)]))
        begin += size(part)
    return dict(zip(form["names"], built)) if "names" in form else tuple(built)


# Each step of an environment builds an action, so the meaning of a leaf is cached. The cache also keeps the
# form, so that its id is not reused.
_LEAVES: dict[int, tuple[Form, tuple[np.dtype, tuple[int, ...], Any, Any]]] = {}


def _meaning(form: Form) -> tuple[np.dtype, tuple[int, ...], Any, Any]:
    """The dtype, the shape, the start (None for 0) and the last choice of each element (None without choices)."""
    known = _LEAVES.get(id(form))
    if known is None:
        start = np.ravel(form.get("start", 0))
        last = np.ravel(form["choices"]) - 1 if "choices" in form else None
        meaning = (np.dtype(form["dtype"]), tuple(form["shape"]), start if start.any() else None, last)
        known = _LEAVES[id(form)] = (form, meaning)
    return known[1]


def _leaf(form: Form, numbers: np.ndarray) -> Any:
    dtype, shape, start, last = _meaning(form)
    if last is not None:
        numbers = np.clip(np.floor(numbers), 0, last)
    elif dtype.kind in "iu" and numbers.dtype.kind == "f":
        info = np.iinfo(dtype)
        # floats cannot hold the largest whole numbers of 64 bits; a larger float would become a negative number
        last_float = info.max if int(float(info.max)) <= info.max else np.nextafter(float(info.max), 0.0)
        numbers = np.clip(np.rint(numbers).astype(np.float64), float(info.min), last_float)
    array = (numbers if start is None else numbers + start).astype(dtype)
    if len(shape) != 1:
        array = array.reshape((*numbers.shape[:-1], *shape))
    return array[()] if not array.ndim and form.get("is_number") else array


def together(actions: Sequence[Any]) -> Any:
    """Several actions in the form of a vector environment: [N, ...] at the leaves of tuples and dicts."""
    if isinstance(actions[0], dict):
        return {name: together([one[name] for one in actions]) for name in actions[0]}
    if isinstance(actions[0], tuple):
        return tuple(map(together, zip(*actions)))
    return np.asarray(actions)


def flatten(form: Form, action: Any) -> np.ndarray:
    """The numbers of an action, [size]; the inverse of ``build``. Parts with another form give NaN."""
    if "parts" not in form:
        array = np.asarray(action)
        if array.dtype.kind not in "biuf" or array.size != size(form):
            return np.full(size(form), np.nan)
        numbers = np.ravel(array) - np.ravel(form.get("start", 0)) if np.any(form.get("start", 0)) else np.ravel(array)
        return numbers + 0.5 if "choices" in form else numbers  # the middle of the choice's interval
    keys = form.get("names", range(len(form["parts"])))
    given = action if "names" in form else dict(enumerate(action)) if isinstance(action, (tuple, list)) else None
    if not isinstance(given, Mapping) or any(key not in given for key in keys):
        return np.full(size(form), np.nan)
    return np.concatenate([flatten(part, given[key]) for part, key in zip(form["parts"], keys)])
