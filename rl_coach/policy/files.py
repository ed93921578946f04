"""The folder of a trained policy. Only NumPy and ONNX Runtime are needed to read its three files:

- ``policy.json``: the observations, the filters, and the choice of actions from the network's outputs, as plain data;
- ``arrays.npz``: the arrays in this data, such as running statistics;
- ``model.onnx``: the network that acts, with its weights.

``policy.json`` also contains the format's version and the SHA-256 of each file and of its own data. ``read`` raises an
error if a file is damaged.
"""

from __future__ import annotations

import io
import json
import pathlib
import zipfile
from typing import Any

import numpy as np

from rl_coach.utilities import files, plain_data
from rl_coach.utilities.files import Path
from rl_coach.utilities.safe_reading import read_json
from rl_coach.utils import CoachError

FORMAT_VERSION = 1
POLICY_FILE = "policy.json"
ARRAYS_FILE = "arrays.npz"
MODEL_FILE = "model.onnx"
_LONGEST_TEXT = 400


def as_files(document: dict[str, Any], model: bytes) -> dict[str, bytes]:
    """The files of a policy's folder, by name.

    :param document: nested dicts and lists with string keys; values are arrays, numbers, strings, booleans and None
    :param model: the serialised ONNX model
    """
    body, arrays = plain_data.separate(document, numbered=True, fold_constants=True)
    stored = io.BytesIO()
    np.savez(stored, **arrays)  # type: ignore[arg-type]
    contents = {ARRAYS_FILE: stored.getvalue(), MODEL_FILE: model}
    head = {
        "format_version": FORMAT_VERSION,
        "sha256": _digest_of(body),
        "files": {name: files.summary(data) for name, data in contents.items()},
    }
    return {POLICY_FILE: json.dumps({**head, "policy": body}, indent=1).encode(), **contents}


def read(folder: Path) -> tuple[dict[str, Any], bytes]:
    """Read and check the files of a policy's folder.

    :return: the document and the serialised ONNX model; see ``as_files``
    :raises CoachError: if a file is missing, truncated or changed, or was written by a newer version
    """
    place = pathlib.Path(folder)
    content = _parsed(place / POLICY_FILE)
    for name in (ARRAYS_FILE, MODEL_FILE):
        files.check_file(place / name, _expected(place, content, name), "policy", POLICY_FILE)
    try:
        with np.load(place / ARRAYS_FILE, allow_pickle=False) as arrays:
            # Coach does not compress arrays, and a compressed array may be far larger than its file
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in arrays.zip.infolist()):
                raise ValueError(f"{ARRAYS_FILE} is compressed")
            return plain_data.join(content["policy"], arrays), (place / MODEL_FILE).read_bytes()
    except plain_data.ARCHIVE_DAMAGE as error:
        raise CoachError(f"the policy in '{place}' is damaged: {on_one_line(repr(error))}") from error


def on_one_line(text: str) -> str:
    """Shorten a text to one line for a message, because the text of a damaged file may have any length."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…"


def _expected(place: pathlib.Path, content: dict[str, Any], name: str) -> dict[str, Any]:
    try:
        return {"size": int(content["files"][name]["size"]), "sha256": content["files"][name]["sha256"]}
    except (KeyError, OverflowError, TypeError, ValueError):
        raise CoachError(f"the policy's file '{place / POLICY_FILE}' is damaged: it does not list {name}") from None


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
            f"'{file}' has policy format {on_one_line(str(version))}, "
            f"this version reads up to {FORMAT_VERSION}; update Coach"
        )
    if digest != _digest_of(body):
        raise CoachError(f"the policy's file '{file}' was changed: its SHA-256 differs from the recorded one")
    if not isinstance(body, dict):
        raise CoachError(f"the policy's file '{file}' is damaged: its policy is not a JSON object")
    return content


def _digest_of(body: Any) -> str:
    return files.digest(json.dumps(body, sort_keys=True).encode())
