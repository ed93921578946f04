"""A terminal to run programs in, and what a person would see on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from dataclasses import dataclass
from typing import Iterator, Sequence

import pyte

ROWS = 50


@dataclass(frozen=True)
class Sight:
    """The terminal at one moment.

    :param seconds: since the program's start
    :param lines: the lines that are not empty
    """

    seconds: float
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def _take_terminal() -> None:
    """Let the program hear what is typed as Ctrl-C, and that its terminal was closed."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A pseudo-terminal of so many columns with a program in it.

    :param command: the program and its arguments
    """

    def __init__(self, command: Sequence[str], columns: int, cwd: os.PathLike | str, **environment: str):
        self.screen = pyte.Screen(columns, ROWS)
        self.sights: list[Sight] = []
        self._rows: dict[int, str] = {}
        self._stream = pyte.ByteStream(self.screen)
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        self._started = time.monotonic()
        variables = {**os.environ, "TERM": "xterm-256color", **environment}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI"):
            variables.pop(name, None)
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=variables, start_new_session=True,
            preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(theirs)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def lines(self) -> list[str]:
        """The lines that are not empty. Those that did not change are not put together again."""
        for row in self.screen.dirty:
            cells = self.screen.buffer[row]
            self._rows[row] = "".join(cells[column].data for column in range(max(cells, default=-1) + 1)).rstrip()
        self.screen.dirty.clear()
        return [self._rows[row] for row in range(self.screen.lines) if self._rows.get(row)]

    def shows(self, start: str) -> bool:
        """Whether a line begins so."""
        return any(line.startswith(start) for line in self.lines())

    def watch(self, seconds: float, until: str | None = None) -> bool:
        """Look on until the program ends, or a text is to be seen.

        :return: whether the text was seen, or the program has ended where none was asked for
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self._take(deadline - time.monotonic()):
                return until is None
            if until is not None and until in "\n".join(self.lines()):
                return True
        return False

    def _take(self, seconds: float) -> bool:
        """:return: False once the program has closed the terminal"""
        if not select.select([self._ours], [], [], max(0.0, seconds))[0]:
            return True
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:
            data = b""
        self._stream.feed(data)
        self.sights.append(Sight(self.seconds, self.lines()))
        return bool(data)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    @property
    def return_code(self) -> int:
        return self._process.wait(30)

    def hang_up(self) -> None:
        """Close the terminal while the program runs."""
        os.close(self._ours)
        self._ours = -1

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._ours >= 0:
            os.close(self._ours)


@contextlib.contextmanager
def terminal(command: Sequence[str], columns: int, cwd: os.PathLike | str, **environment: str) -> Iterator[Terminal]:
    """A program in a terminal, ended at the latest with the block."""
    opened = Terminal(command, columns, cwd, **environment)
    try:
        yield opened
    finally:
        opened.close()
