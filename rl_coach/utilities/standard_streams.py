"""Standard output and standard error that work on a full disk or after their reader has ended."""

from __future__ import annotations

import errno
import io
import sys
from typing import Any

from rl_coach.utilities.stop_signals import stop_signals

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Output(io.FileIO):
    """A file descriptor that drops output that cannot be written."""

    def write(self, data: Any) -> int:
        """Write bytes. :return: the number of written or dropped bytes"""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE:
                # no program reads the output any more: the run saves a checkpoint and ends, as after a closed terminal
                stop_signals.lose_reader()
            elif error.errno not in _NO_ROOM:
                raise
            return len(data)


def drop_lost_output() -> None:
    """Continue if the file of standard output or error is full, and stop as after SIGHUP if a pipe has lost its reader.

    The function replaces ``sys.stdout`` and ``sys.stderr``, except on a terminal. Only programs should call it, not
    libraries.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper) or stream.isatty():
            continue
        stream.flush()
        raw = Output(stream.fileno(), "wb", closefd=False)
        through, by_line = stream.write_through, stream.line_buffering  # the first term is PYTHONUNBUFFERED
        buffer: Any = raw if through else io.BufferedWriter(raw)
        replacement = io.TextIOWrapper(buffer, stream.encoding, stream.errors, None, by_line, through)
        setattr(sys, name, replacement)
