"""Memories as plain data: what a checkpoint holds, and ``.npz`` files without pickle."""

from __future__ import annotations

import json
import os
import pathlib
import zipfile
from typing import Any

import numpy as np

from rl_coach.utils import CoachError

_TREE = "tree"


def pack(column: np.ndarray, name: str) -> np.ndarray | list[str]:
    """A column as plain data: numbers as they are, objects as JSON text.

    :param name: what the column is called, for the error
    :raises CoachError: an object that JSON has no words for
    """
    if column.dtype != object:
        return column
    return [_to_json(value, name) for value in column]


def unpack(packed: Any) -> np.ndarray:
    """The column that ``pack`` took."""
    if isinstance(packed, np.ndarray):
        return packed
    column = np.empty(len(packed), dtype=object)
    column[:] = [json.loads(text, object_hook=_array_from_json) for text in packed]
    return column


def _to_json(value: Any, name: str) -> str:
    def plain(part: Any) -> Any:
        if isinstance(part, np.ndarray) and part.dtype != object:
            return {"__array__": part.tolist(), "dtype": part.dtype.str, "shape": part.shape}
        if isinstance(part, np.generic):
            return part.item()
        raise CoachError(f"'{name}' in the memory holds a {type(part).__name__}, which cannot be saved")

    return json.dumps(value, default=plain)


def _array_from_json(part: dict[str, Any]) -> Any:
    if "__array__" not in part:
        return part
    return np.asarray(part["__array__"], dtype=np.dtype(part["dtype"])).reshape(part["shape"])


def write_npz(file_path: str | os.PathLike, state: dict[str, Any]) -> None:
    """Write nested dicts of arrays, numbers, text and lists as one ``.npz`` file, whole or not at all."""
    arrays: dict[str, np.ndarray] = {}
    tree = json.dumps(_without_arrays(state, arrays))
    path = pathlib.Path(file_path)
    unfinished = path.with_name(path.name + ".part")
    try:
        with open(unfinished, "wb") as file:
            np.savez(file, allow_pickle=False, **{_TREE: np.asarray(tree), **arrays})
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise CoachError(f"cannot write '{file_path}': {error.strerror}") from error


def _without_arrays(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(node, dict):
        return {key: _without_arrays(value, arrays) for key, value in node.items()}
    if not isinstance(node, np.ndarray):
        return node
    name = f"array_{len(arrays)}"
    arrays[name] = node
    return {"__member__": name}


def read_npz(file_path: str | os.PathLike) -> dict[str, Any]:
    """What ``write_npz`` wrote.

    :raises CoachError: no such file, or not one of ours
    """
    try:
        with np.load(file_path, allow_pickle=False) as file:
            return _with_arrays(json.loads(str(file[_TREE])), file)
    except FileNotFoundError:
        raise CoachError(f"no file '{file_path}'") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise CoachError(f"'{file_path}' is not a memory that this project saved: {error}") from error


def _with_arrays(node: Any, file: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if "__member__" in node:
        return file[node["__member__"]]
    return {key: _with_arrays(value, file) for key, value in node.items()}
