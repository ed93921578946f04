"""The log of a cell: entries of each process in order. Environments import it, so it needs no framework."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pickle
import time
from typing import Any, Iterator


def record(directory: str, kind: str, **values: Any) -> None:
    """Write an entry into the log of this process. All processes of a machine share the clock of its time."""
    with open(os.path.join(directory, f"{os.getpid()}.log"), "ab") as file:
        pickle.dump({"kind": kind, "time": time.monotonic(), **values}, file)


def entries(directory: pathlib.Path) -> Iterator[list[dict[str, Any]]]:
    """The entries of each process."""
    for path in sorted(directory.glob("*.log")):
        found = []
        # a process that was ended may have written a part of its last entry
        with open(path, "rb") as file, contextlib.suppress(EOFError, pickle.UnpicklingError):
            while True:
                found.append(pickle.load(file))
        yield found
