"""Safe reading of small files of unknown origin: no devices, no pipes, and a limited size."""

from __future__ import annotations

import json
import os
import pathlib
import stat
from typing import Any, Union

from rl_coach.utilities.errors import CoachError

Path = Union[str, "os.PathLike[str]"]

MOST_BYTES = 64_000_000


def require_regular(path: Path) -> None:
    """Check that a path is a regular file. Reading a device or a pipe may never end.

    :raises CoachError: if the path is a directory, a device or a pipe
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise CoachError(f"cannot read '{path}': it is not a regular file")


def read_bytes(path: Path) -> bytes:
    """The content of a regular file of any size.

    :raises CoachError: if the path is not a regular file, or cannot be read
    """
    require_regular(path)
    try:
        return pathlib.Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        raise CoachError(f"cannot read '{path}': {getattr(error, 'strerror', None) or error}") from None


def read_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """A regular file's text.

    :raises FileNotFoundError: if the file does not exist
    :raises CoachError: if the path is not a regular file, is larger than ``most_bytes``, is not UTF-8, or cannot be
        read
    """
    try:
        file_state = os.stat(path)
        if not stat.S_ISREG(file_state.st_mode):
            raise CoachError(f"'{path}' is not a regular file")
        if file_state.st_size > most_bytes:
            raise CoachError(f"'{path}' has {file_state.st_size:,} bytes; such a file may have at most {most_bytes:,}")
        return pathlib.Path(path).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"no file '{path}'") from None
    except OSError as error:
        raise CoachError(f"'{path}' cannot be read: {error.strerror}") from None
    except CoachError:
        raise
    except ValueError:
        raise CoachError(f"'{path}' is damaged: it is not a text in UTF-8") from None


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """A regular file's JSON object.

    :raises FileNotFoundError: if the file does not exist
    :raises CoachError: as in ``read_text``, or if the file does not contain a JSON object
    """
    text = read_text(path, most_bytes)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise CoachError(f"'{path}' is damaged: it is not JSON") from None
    if not isinstance(content, dict):
        raise CoachError(f"'{path}' is damaged: it does not contain a JSON object")
    return content


def read_json_if_whole(path: Path) -> dict[str, Any]:
    """A regular file's JSON object; empty if it is missing or incomplete."""
    try:
        return read_json(path)
    except (FileNotFoundError, CoachError):
        return {}
