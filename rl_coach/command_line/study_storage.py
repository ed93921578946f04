"""The storage of a study of ``coach tune``. Its URL may contain a password, so the URL is stored in a private file."""

from __future__ import annotations

import ctypes
import os
import pathlib
import random
import re
import sys
import time
from typing import Any, Callable

from rl_coach.callbacks.tuning import SECRET_MARK

SECRET_FILE = "storage.url"
"""The file with the URL of a storage with a password, in the directory of the trials. Only its owner can read the
file."""
STORAGE_VARIABLE = "COACH_TUNE_STORAGE"
"""An environment variable with the URL. Other users can see the flags of a command, but not its variables."""
_USER_AND_PASSWORD = re.compile(r"(?<=://)([^/@:]*):([^/]*)(?=@)")
SQLITE = "sqlite:///"
_HIDDEN = "***"
_BEGIN_OF_ARGUMENTS = 45  # the place of this address after the name in /proc/self/stat
_TRIES, _LONGEST_PAUSE = 20, 0.5


def lasting(storage: str) -> str:
    """The URL of a storage for later use. The path of an SQLite file becomes absolute, so that --resume works in any
    directory."""
    path = storage.removeprefix(SQLITE)
    return storage if path == storage else f"{SQLITE}{os.path.abspath(path)}"


def shown_url(url: str) -> str:
    """A URL without its password and its options. Options can contain a password, too."""
    place, mark, _ = url.partition("?")
    hidden = _USER_AND_PASSWORD.sub(rf"\1:{_HIDDEN}", place)
    return f"{hidden}{mark}{_HIDDEN}" if mark else hidden


def without_secret(text: str, url: str) -> str:
    """Hide the URL and its secret parts in a text, such as an error of a database client."""
    text = text.replace(url, shown_url(url))
    for secret in _secrets(url):
        text = text.replace(secret, _HIDDEN)
    return text


def _secrets(url: str) -> list[str]:
    place, _, options = url.partition("?")
    found = _USER_AND_PASSWORD.search(place)
    return [
        one
        for one in (options, *(option.partition("=")[2] for option in options.split("&")), found and found[2])
        if one
    ]


def hide_in_process_list(url: str) -> None:
    """Replace the secret parts of a URL in the command line of this process, which all users of the machine can see.
    This works only on Linux."""
    if sys.platform != "linux":
        return
    fields = pathlib.Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    begin, end = int(fields[_BEGIN_OF_ARGUMENTS]), int(fields[_BEGIN_OF_ARGUMENTS + 1])
    line, hidden = ctypes.string_at(begin, end - begin), os.fsencode(url)
    for secret in map(os.fsencode, _secrets(url)):
        hidden = hidden.replace(secret, b"*" * len(secret))
    ctypes.memmove(begin, line.replace(os.fsencode(url), hidden), len(line))


def recorded(url: str, directory: pathlib.Path) -> str:
    """The text of a storage for records and command lines. It is the URL. If the URL has a secret, the URL is written
    to a private file in ``directory``, and the text is ``@`` and the path of this file.
    """
    if shown_url(url) == url:
        return url
    path = directory / SECRET_FILE
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(url)
    return f"{SECRET_MARK}{path}"


def opened(open_study: Callable[[], Any]) -> Any:
    """Open a study. Try again after errors that occur while other processes create the tables of the same database.

    :raises Exception: the last error of the database client
    """
    for left in reversed(range(_TRIES)):
        try:
            return open_study()
        except Exception as error:
            if left == 0 or not _may_be_another(error):
                raise
        time.sleep(random.uniform(0.0, _LONGEST_PAUSE))
    raise AssertionError("the last try returns or raises")


def _may_be_another(error: BaseException | None) -> bool:
    """True for errors that occur if another process creates the same tables, rows or study."""
    while error is not None:
        if type(error).__name__ in ("IntegrityError", "DuplicatedStudyError"):
            return True
        text = str(error)
        if any(said in text for said in ("already exists", "is locked", "no such table", "doesn't exist")):
            return True
        error = error.__cause__ or error.__context__
    return False
