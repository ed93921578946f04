"""The folder of a trained policy: three files that need nothing but NumPy and ONNX Runtime to be read.

- ``policy.json``: what is observed, the filters, and how the network's outputs become an action, as plain data;
- ``arrays.npz``: the arrays among them, such as running statistics;
- ``model.onnx``: the network that acts, its weights inside.

``policy.json`` names the format's version, its own SHA-256 and those of the other two, so that nothing damaged is used.
"""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import zipfile
from typing import Any

import numpy as np

from rl_coach.checkpoint import Path
from rl_coach.utilities.safe_reading import read_json
from rl_coach.utils import CoachError

FORMAT_VERSION = 1
POLICY_FILE = "policy.json"
ARRAYS_FILE = "arrays.npz"
MODEL_FILE = "model.onnx"

_ARRAY = "__array__"
_CONSTANT = "__constant__"


def pack(document: dict[str, Any], model: bytes) -> dict[str, bytes]:
    """The files of a policy's folder, by name.

    :param document: nested dicts and lists with string keys; leaves are arrays, numbers, strings, booleans and None
    :param model: the serialised ONNX model
    """
    arrays: dict[str, np.ndarray] = {}
    body = _take_arrays(document, arrays)
    stored = io.BytesIO()
    np.savez(stored, **arrays)  # type: ignore[arg-type]
    files = {ARRAYS_FILE: stored.getvalue(), MODEL_FILE: model}
    head = {
        "format_version": FORMAT_VERSION,
        "sha256": _digest_of(body),
        "files": {name: {"size": len(data), "sha256": _digest(data)} for name, data in files.items()},
    }
    return {POLICY_FILE: json.dumps({**head, "policy": body}, indent=1).encode(), **files}


def read(folder: Path) -> tuple[dict[str, Any], bytes]:
    """The document and the model of a policy's folder, once every byte has been checked.

    :raises CoachError: a file is missing, truncated or changed, or was written by a newer version
    """
    place = pathlib.Path(folder)
    content = _parsed(place / POLICY_FILE)
    files = {name: _checked(place / name, content["files"]) for name in (ARRAYS_FILE, MODEL_FILE)}
    try:
        with np.load(io.BytesIO(files[ARRAYS_FILE]), allow_pickle=False) as arrays:
            _check_archive(arrays.zip)
            return _put_arrays(content["policy"], arrays), files[MODEL_FILE]
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
    ) as error:
        raise CoachError(f"the policy in '{place}' is damaged: {error!r}") from error


def _check_archive(archive: zipfile.ZipFile) -> None:
    """
    :raises ValueError: it is not stored as it was written, and may be far larger than its file
    """
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
        raise ValueError(f"{ARRAYS_FILE} is compressed")


def _parsed(file: pathlib.Path) -> dict[str, Any]:
    try:
        content = read_json(file)
        version, digest, body = content["format_version"], content["sha256"], content["policy"]
        is_newer = version > FORMAT_VERSION
    except FileNotFoundError:
        raise CoachError(f"the policy's file '{file}' is missing") from None
    except (KeyError, TypeError):
        raise CoachError(f"the policy's file '{file}' is damaged: it is not the JSON that was written") from None
    if is_newer:
        raise CoachError(
            f"'{file}' has policy format {version}, this version reads up to {FORMAT_VERSION}; update rl_coach"
        )
    if digest != _digest_of(body):
        raise CoachError(f"the policy's file '{file}' was changed: its SHA-256 is not the one that it names")
    return content


def _checked(file: pathlib.Path, expected: Any) -> bytes:
    if not file.is_file():
        raise CoachError(f"the policy's file '{file}' is missing")
    try:
        size, digest = expected[file.name]["size"], expected[file.name]["sha256"]
    except (KeyError, TypeError):
        raise CoachError(f"the policy's file '{file.parent / POLICY_FILE}' does not list {file.name}") from None
    has = file.stat().st_size
    if has != size:
        raise CoachError(f"the policy's file '{file}' has {has} bytes, its {POLICY_FILE} says {size}")
    data = file.read_bytes()
    if _digest(data) != digest:
        raise CoachError(f"the policy's file '{file}' was changed: its SHA-256 is not that of its {POLICY_FILE}")
    return data


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_of(body: Any) -> str:
    return _digest(json.dumps(body, sort_keys=True).encode())


def _take_arrays(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """``value`` with each array replaced by its name in ``arrays``, or by the one number that fills it (the bounds of
    an image's space, say)."""
    if isinstance(value, dict):
        return {key: _take_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_take_arrays(item, arrays) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    name = f"array_{len(arrays)}"
    if value.size > 1 and (value == value.flat[0]).all():
        arrays[name] = value.reshape(-1)[:1]
        return {_CONSTANT: [name, list(value.shape)]}
    arrays[name] = value
    return {_ARRAY: name}


def _put_arrays(value: Any, arrays: Any) -> Any:
    if isinstance(value, list):
        return [_put_arrays(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_ARRAY}:
        return arrays[value[_ARRAY]]
    if value.keys() == {_CONSTANT}:
        name, shape = value[_CONSTANT]
        # a view of one number, whatever shape a file claims
        return np.broadcast_to(arrays[name][0], shape)
    return {key: _put_arrays(item, arrays) for key, item in value.items()}
