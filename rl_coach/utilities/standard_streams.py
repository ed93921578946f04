"""Standard output and error that cannot be written: a run does not depend on who reads what it says."""

from __future__ import annotations

import errno
import io
import signal
import sys
from typing import Any

from rl_coach.utilities.stop_signals import stop_signals

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Output(io.FileIO):
    """A file descriptor that drops what cannot be written."""

    def write(self, data: Any) -> int:
        """Write bytes. :return: the number of those that are done with"""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE:
                # as if its terminal had been closed: nobody will hear of the run, which saves a checkpoint and ends
                stop_signals.ask(signal.SIGHUP)
            elif error.errno not in _NO_ROOM:
                raise
            return len(data)


def drop_lost_output() -> None:
    """Go on where a file of standard output or error has no room, and stop as after SIGHUP where a pipe has no reader.

    For programs: it replaces ``sys.stdout`` and ``sys.stderr``, those of a terminal excepted.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper) or stream.isatty():
            continue
        stream.flush()
        raw = Output(stream.fileno(), "wb", closefd=False)
        through, by_line = stream.write_through, stream.line_buffering  # the first is PYTHONUNBUFFERED
        buffer: Any = raw if through else io.BufferedWriter(raw)
        replacement = io.TextIOWrapper(buffer, stream.encoding, stream.errors, None, by_line, through)
        setattr(sys, name, replacement)
