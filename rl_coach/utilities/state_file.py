"""State dicts as files: arrays in an ``.npz``, everything else as one JSON text beside them, never pickle."""

from __future__ import annotations

import json
import pathlib
import zipfile
from typing import Any, Union

import numpy as np

from rl_coach.utils import CoachError

State = dict[str, Any]
_REST = "rest"
_ARRAY = "__array__"


def write_state(path: Union[str, pathlib.Path], state: State) -> None:
    """Write nested dicts and lists of arrays, numbers, strings, booleans and None.

    :raises TypeError: a leaf is of any other kind
    """
    arrays: dict[str, np.ndarray] = {}
    rest = _take_arrays(state, arrays)
    with open(path, "wb") as file:
        np.savez(file, **{_REST: np.asarray(json.dumps(rest))}, **arrays)  # type: ignore[arg-type]


def read_state(path: Union[str, pathlib.Path]) -> State:
    """What ``write_state`` wrote, exactly.

    :raises CoachError: there is no such file, or it is not one of these
    """
    if not pathlib.Path(path).is_file():
        raise CoachError(f"the checkpoint has no file '{path}'")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return _put_arrays(json.loads(str(arrays[_REST])), arrays)
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise CoachError(f"'{path}' is not a state file, or it is damaged: {error}") from error


def _take_arrays(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        return {key: _take_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_take_arrays(item, arrays) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype == object:
            raise TypeError("an array of objects cannot be part of a state")
        name = f"array_{len(arrays)}"
        arrays[name] = np.asarray(value)
        return {_ARRAY: name}
    return value


def _put_arrays(value: Any, arrays: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            return arrays[value[_ARRAY]]
        return {key: _put_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_put_arrays(item, arrays) for item in value]
    return value
