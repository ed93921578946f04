"""Ctrl-C, SIGTERM and SIGHUP (a closed terminal) end a run between two of its steps."""

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
"""Signals within this number of seconds are one request: ``timeout`` sends its signal to the process and then to its
group."""
_STANDARD_STREAMS = 3
_SHORTEST_TIMER = 0.001


class Terminated(SystemExit):
    """Raised after SIGTERM or SIGHUP.

    :param number: the signal's number
    """

    code: int

    def __init__(self, number: int):
        super().__init__(128 + number)
        self.name = signal.Signals(number).name


class BudgetOver(Terminated):
    """Raised after the time of ``ending_after``."""


class StopSignals:
    """Handles the signals that stop a program. The first signal is only stored, and the next ``stop_if_asked`` ends the
    program. A second Ctrl-C or SIGTERM ends it immediately.

    An exception in a signal handler could be lost: Python discards exceptions in callbacks of its garbage collector,
    and JAX has such a callback. The exception could also interrupt the writing of a checkpoint.

    Only the main thread can handle signals. In other threads ``listening`` does nothing.

    :ivar asked: the number of the received signal; None without a signal
    :ivar stopped_between_steps: the last run was ended after a complete step, so its state is consistent
    :ivar has_reader: False if the program that reads the output through a pipe has ended
    """

    def __init__(self) -> None:
        self.has_reader = True
        self.stopped_between_steps = False
        self.asked: int | None = None
        self._asked_at = 0.0
        self._is_listening = False
        self._ends_at_once = False

    def __deepcopy__(self, memo: dict[int, Any]) -> StopSignals:
        """Return this object: copies of a graph handle the same signals."""
        return self

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Handle signals, and restore the old handlers at the end. Inside another ``listening``, this method does
        nothing.

        A SIGHUP is not handled if the process ignores it, as with ``nohup``.
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
        """Inside this context, the first signal ends the program at once. For code that has nothing to save or waits
        for input."""
        self.stop_if_asked()
        before, self._ends_at_once = self._ends_at_once, True
        try:
            yield
        finally:
            self._ends_at_once = before

    @contextlib.contextmanager
    def ending_after(self, seconds: float) -> Iterator[None]:
        """Ask the program to end after some time. ``stop_if_asked`` then raises ``BudgetOver``. Only for the main
        thread."""
        with handling([signal.SIGALRM], self._note_alarm):
            signal.setitimer(signal.ITIMER_REAL, max(seconds, _SHORTEST_TIMER))
            try:
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                self.asked = None if self.asked == signal.SIGALRM else self.asked

    def _note_alarm(self, number: int, frame: FrameType | None) -> None:
        """Store that the time is over, unless the program is already ending."""
        self.asked = number if self.asked is None else self.asked

    def ask(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal.

        :raises KeyboardInterrupt: if the second signal is Ctrl-C
        :raises Terminated: if the second signal is SIGTERM
        """
        now = time.monotonic()
        if self.asked in (None, signal.SIGALRM):  # a request after the end of the time is a first request, too
            self.asked, self._asked_at = number, now
            if self._ends_at_once:
                raise _exception_of(number)
        # a closed terminal sends SIGHUP several times, so a repeated SIGHUP is not a second request
        elif signal.SIGHUP not in (number, self.asked) and now - self._asked_at >= SECONDS_OF_ONE_REQUEST:
            raise _exception_of(number)

    def lose_reader(self) -> None:
        """Stop as after SIGHUP, because the program that reads the output has ended."""
        self.has_reader = False
        self.ask(signal.SIGHUP)

    def stop_if_asked(self) -> None:
        """End the program if a signal was received. Coach calls this method after each complete step with its training,
        between the parts of a run's start, and while it waits for a person.

        :raises KeyboardInterrupt: if Ctrl-C was pressed
        :raises Terminated: if SIGTERM or SIGHUP was received, or the time of ``ending_after`` is over
        """
        if self.asked is not None:
            self.stopped_between_steps = True
            if self.asked == signal.SIGHUP:
                leave_lost_terminal()
            raise _exception_of(self.asked)

    def have_raised(self, error: BaseException) -> bool:
        """True if a signal has caused the error; False if the run's own code has raised it."""
        is_of_a_signal = isinstance(error, (KeyboardInterrupt, Terminated))
        return is_of_a_signal and (self.asked is not None or not self._is_listening)


stop_signals = StopSignals()
"""The stop signals of this process."""


def _exception_of(number: int) -> BaseException:
    if number == signal.SIGINT:
        return KeyboardInterrupt()
    return BudgetOver(number) if number == signal.SIGALRM else Terminated(number)


def _not_ignored() -> list[int]:
    return [one for one in SIGNALS if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN]


@contextlib.contextmanager
def _masked(how: int) -> Iterator[None]:
    before = signal.pthread_sigmask(how, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def held_back() -> contextlib.AbstractContextManager[None]:
    """Inside this context, started processes block signals until they handle or ignore signals themselves. Otherwise, a
    signal during their imports would end them with a traceback.
    """
    return _masked(signal.SIG_BLOCK)


def let_through() -> contextlib.AbstractContextManager[None]:
    """Inside this context, ``held_back`` has no effect on started processes."""
    return _masked(signal.SIG_UNBLOCK)


def ignore() -> None:
    """Ignore the signals. For a process that another process ends, or that is about to exit."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def leave_lost_terminal() -> None:
    """Discard all further output if the terminal has been closed, because writing to it would fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(_STANDARD_STREAMS):
        # a closed terminal is not a terminal any more, but still a character device
        if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
            os.dup2(nowhere, stream)
    os.close(nowhere)
