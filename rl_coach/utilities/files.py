"""Atomic writes of files, and reads that check every byte."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import pathlib
import stat
from typing import Any, BinaryIO, Iterable, Iterator, Union

from rl_coach.utilities import plain_data
from rl_coach.utilities.errors import CoachError
from rl_coach.utilities.safe_reading import require_regular

Path = Union[str, "os.PathLike[str]"]

_CHUNK = 1 << 22


_NOT_WRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


@contextlib.contextmanager
def refusing_unwritable(directory: Path) -> Iterator[None]:
    """Inside this context, errors of a full or read-only directory become a ``CoachError``.

    :raises CoachError: if the directory cannot be written
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        raise CoachError(f"'{os.fspath(directory)}' cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def replaced(path: Path, synced: bool = True) -> Iterator[BinaryIO]:
    """Open a file for the new content of ``path``. If the process is killed, ``path`` has the old or the new content,
    never a part of the content.

    :param synced: wait until the content is on the disk, so that it also survives a power cut
    """
    # In the same directory, because a rename is atomic only within one file system; with the number of the process,
    # because several processes may write the same file.
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            if synced:
                os.fsync(file.fileno())
        # The content is written before the name: after a power cut, a renamed file could otherwise be empty.
        os.replace(temporary, path)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise
    # The new name is an entry of the directory and has to be on the disk too.
    if synced:
        sync_directory(os.path.dirname(os.path.abspath(path)))


def write_text(path: Path, text: str, synced: bool = True) -> None:
    """Replace the text of a file, as ``replaced`` does."""
    with replaced(path, synced) as file:
        file.write(text.encode("utf-8"))


def write_json(path: Path, document: Any, indent: int | None = 2, synced: bool = True) -> None:
    """Replace the content of a file by a JSON document and a line end, as ``replaced`` does."""
    write_text(path, json.dumps(document, indent=indent, default=str) + "\n", synced)


def write_data(path: Path, value: Any) -> None:
    """Replace the content of a file by a plain tree (see ``plain_data``).

    :raises CoachError: if the file cannot be written
    :raises plain_data.UnsavableError: if the value is not plain data
    """
    try:
        with replaced(path) as file:
            plain_data.dump(value, file)
    except OSError as error:
        raise CoachError(f"cannot write '{path}': {error.strerror}") from error


def read_data(path: Path, kind: str) -> Any:
    """Read the plain tree that ``write_data`` wrote.

    :param kind: the expected kind of file, for the error
    :raises CoachError: if the file does not exist, is damaged or is of another kind
    """
    require_regular(path)
    try:
        return plain_data.load(path)
    except FileNotFoundError:
        raise CoachError(f"no file '{path}'") from None
    except (OSError, ValueError) as error:
        raise CoachError(f"'{path}' is not {kind}, or it is damaged: {error}") from error


def sync_directory(directory: Path) -> None:
    """Wait until a directory's entries are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def keep_newest(directory: pathlib.Path, most_bytes: int, pattern: str = "*") -> int:
    """Delete the oldest files of a directory until the others have no more than ``most_bytes``. Other processes may
    rename and delete files there at the same time.

    :param pattern: pattern of the names of the files
    :return: the bytes of the remaining files
    """
    found = []
    for file in directory.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            about = file.stat()
            if stat.S_ISREG(about.st_mode):
                found.append((about.st_mtime, about.st_size, file))
    total = kept = 0
    for _, size, file in sorted(found, reverse=True):
        total += size
        if total > most_bytes:
            file.unlink(missing_ok=True)
        else:
            kept = total
    return kept


# Digests


def digest(data: bytes) -> str:
    """The SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def summary(data: bytes) -> dict[str, Any]:
    """The size and the SHA-256 of bytes, for ``check_file``."""
    return {"size": len(data), "sha256": digest(data)}


def write_synced(path: Path, chunks: Iterable[Any]) -> dict[str, Any]:
    """Write a new file chunk by chunk, and wait until it is on the disk. :return: the file's size and SHA-256"""
    running = hashlib.sha256()
    size = 0
    with open(path, "wb") as file:
        for chunk in chunks:
            running.update(chunk)
            size += file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return {"size": size, "sha256": running.hexdigest()}


def check_file(path: Path, expected: dict[str, Any], owner: str, manifest: str) -> None:
    """Compare a file with its recorded size and hash.

    :param expected: the recorded size and SHA-256, from ``summary``
    :param owner: the thing that the file belongs to, such as ``checkpoint``, for the errors
    :param manifest: the name of the file that contains ``expected``, for the errors
    :raises CoachError: if the file is missing, truncated or changed
    """
    if not os.path.isfile(path):
        raise CoachError(f"the {owner}'s file '{path}' is missing")
    size = os.path.getsize(path)
    if size != expected["size"]:
        raise CoachError(f"the {owner}'s file '{path}' has {size} bytes, but its {manifest} says {expected['size']}")
    running = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            running.update(chunk)
    if running.hexdigest() != expected["sha256"]:
        raise CoachError(f"the {owner}'s file '{path}' was changed: its SHA-256 differs from the one in its {manifest}")
