"""Ctrl-C, SIGTERM and SIGHUP (a closed terminal), which end a run between two of its steps."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
import time
from types import FrameType
from typing import Any, Iterator

from rl_coach.utilities.system import handling

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECONDS_OF_ONE_REQUEST = 0.1
"""Signals closer together are one request: ``timeout`` sends its signal to the process and then to its group."""
_STANDARD_STREAMS = 3


class Terminated(SystemExit):
    """SIGTERM or SIGHUP came.

    :param number: the signal's number
    """

    code: int

    def __init__(self, number: int):
        super().__init__(128 + number)
        self.name = signal.Signals(number).name


class StopSignals:
    """Hears the signals that stop a program. The first is only noted, and the program ends where it next asks; a second
    Ctrl-C or SIGTERM ends it immediately.

    An exception in a signal's handler could be lost: Python discards those that are raised in a callback of its garbage
    collector, and JAX has one. It could also come in the middle of a checkpoint.

    In a thread other than the main one nothing is heard, because the system notifies the main thread only.

    :ivar asked: the number of the signal that came, None if none did
    :ivar stopped_between_steps: the last run was ended where a step was complete, so that its state is worth keeping
    """

    def __init__(self) -> None:
        self.stopped_between_steps = False
        self.asked: int | None = None
        self._asked_at = 0.0
        self._is_listening = False
        self._ends_at_once = False

    def __deepcopy__(self, memo: dict[int, Any]) -> StopSignals:
        """There is one process: a copy of a graph hears the same signals."""
        return self

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Hear signals, and leave the handlers as they were. Within another ``listening`` it changes nothing.

        A SIGHUP that is ignored, as ``nohup`` does it, stays ignored.
        """
        if self._is_listening or threading.current_thread() is not threading.main_thread():
            yield
            return
        self._is_listening, self.stopped_between_steps = True, False
        try:
            with handling(_not_ignored(), self.ask):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
                yield
        finally:
            self._is_listening, self.asked = False, None

    @contextlib.contextmanager
    def ending_at_once(self) -> Iterator[None]:
        """End at the first signal, for what keeps nothing or waits for input."""
        self.stop_if_asked()
        before, self._ends_at_once = self._ends_at_once, True
        try:
            yield
        finally:
            self._ends_at_once = before

    def ask(self, number: int, frame: FrameType | None = None) -> None:
        """Take a signal, as its handler.

        :raises KeyboardInterrupt: it is the second one, Ctrl-C
        :raises Terminated: it is the second one, SIGTERM
        """
        now = time.monotonic()
        if self.asked is None:
            self.asked, self._asked_at = number, now
            if self._ends_at_once:
                raise _exception_of(number)
        # a closed terminal sends SIGHUP several times, and then nobody is in a hurry
        elif signal.SIGHUP not in (number, self.asked) and now - self._asked_at >= SECONDS_OF_ONE_REQUEST:
            raise _exception_of(number)

    def stop_if_asked(self) -> None:
        """End the program if a signal came. Called where a step is complete, the training that belongs to it included;
        between the parts of a start; and where one waits for a person.

        :raises KeyboardInterrupt: Ctrl-C was pressed
        :raises Terminated: SIGTERM or SIGHUP came
        """
        if self.asked is not None:
            self.stopped_between_steps = True
            if self.asked == signal.SIGHUP:
                leave_lost_terminal()
            raise _exception_of(self.asked)

    def have_raised(self, error: BaseException) -> bool:
        """True if a signal has caused an error; False if code that a run calls has raised it."""
        is_of_a_signal = isinstance(error, (KeyboardInterrupt, Terminated))
        return is_of_a_signal and (self.asked is not None or not self._is_listening)


stop_signals = StopSignals()
"""Those of this process."""


def _exception_of(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else Terminated(number)


def _not_ignored() -> list[int]:
    return [one for one in SIGNALS if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN]


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold the signals back from processes that are started meanwhile, until these listen or ignore them. A process
    that is still importing would otherwise end with a traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def let_through() -> Iterator[None]:
    """Undo ``held_back`` for what is started meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore() -> None:
    """Ignore the signals, in a process that another one ends, and in one that only has to exit."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def leave_lost_terminal() -> None:
    """Discard what is printed from now on, if the terminal has been closed: writing to it would fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(_STANDARD_STREAMS):
        # one that was closed is a terminal no more, but still a character device
        if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
            os.dup2(nowhere, stream)
    os.close(nowhere)
