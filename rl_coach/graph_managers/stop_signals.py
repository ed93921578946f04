"""Ctrl-C and SIGTERM, which end a run between two of its steps."""

from __future__ import annotations

import contextlib
import signal
import threading
from types import FrameType
from typing import Iterator

from rl_coach.logger import screen
from rl_coach.utilities.system import handling


class StopSignals:
    """Listens to Ctrl-C and SIGTERM while a run goes on: the first stops it between two steps, the second at once.

    A run in a thread other than the main one hears none: the system tells only that one of signals.

    :param announces: tell the user of the first signal that it was heard; a worker leaves that to its parent

    :ivar asked: the number of the signal that came, None if none did
    :ivar stopped_between_steps: the last run was ended where a step was complete, so that its state is worth keeping
    """

    def __init__(self, announces: bool = True) -> None:
        self.stopped_between_steps = False
        self.asked: int | None = None
        self._may_announce = announces
        self._announces = announces

    @contextlib.contextmanager
    def listening(self, announces: bool = True) -> Iterator[None]:
        """Listen meanwhile, and leave the handlers as they were.

        :param announces: tell the user of the first signal that it was heard
        """
        self.stopped_between_steps = False
        self._announces = announces and self._may_announce
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        try:
            with handling((signal.SIGINT, signal.SIGTERM), self.ask):
                yield
        finally:
            self.asked = None

    def ask(self, number: int, frame: FrameType | None = None) -> None:
        """Take a signal, as its handler.

        :raises KeyboardInterrupt: it is the second one, Ctrl-C
        :raises SystemExit: it is the second one, SIGTERM
        """
        if self.asked is not None:
            raise _exception_of(number)
        self.asked = number
        if self._announces:
            screen.warning("stopping after this step; once more to exit at once, without a checkpoint")

    def stop_if_asked(self) -> None:
        """End the run if a signal came. Called where a step is complete, the training that belongs to it included; and
        where one waits for a person.

        :raises KeyboardInterrupt: Ctrl-C was pressed
        :raises SystemExit: SIGTERM came
        """
        if self.asked is not None:
            self.stopped_between_steps = True
            raise _exception_of(self.asked)


def _exception_of(signal_number: int) -> BaseException:
    return KeyboardInterrupt() if signal_number == signal.SIGINT else SystemExit(128 + signal_number)
