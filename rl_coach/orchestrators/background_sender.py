"""Messages over a pipe that never keep their sender waiting."""

from __future__ import annotations

import queue
import threading
from multiprocessing.connection import Connection
from typing import Any


class BackgroundSender:
    """Sender of messages through a pipe, in order, from its own thread.

    If two processes both write before they read, they block forever when the pipe is full in both directions. A process
    that never waits for the reader prevents this. Messages that are not read yet are kept here.

    :param connection: the pipe; nothing else may write to it
    """

    def __init__(self, connection: Connection):
        self._connection = connection
        # A SimpleQueue's ``put`` is reentrant: a signal handler may post while the same thread is posting.
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send, name="sender", daemon=True)
        self._thread.start()

    def post(self, message: Any) -> None:
        """Have a message sent; a reader that has gone hears nothing. Signal handlers may call it."""
        self._messages.put((message,))

    def close(self) -> None:
        """Send the rest and end. The reader reads until then, or has gone."""
        self._messages.put(())
        self._thread.join()

    def _send(self) -> None:
        is_heard = True
        while posted := self._messages.get():
            if is_heard:
                try:
                    self._connection.send(posted[0])
                except (BrokenPipeError, ConnectionError):
                    # Further messages are dropped, not an error: the end of a process is noticed elsewhere.
                    is_heard = False
