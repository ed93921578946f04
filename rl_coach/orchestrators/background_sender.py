"""Sends messages over a pipe without blocking the caller."""

from __future__ import annotations

import queue
import threading
from multiprocessing.connection import Connection
from typing import Any


class BackgroundSender:
    """Sends messages through a pipe in order, from its own thread.

    If two processes both write before they read, they block forever when the pipe is full in both directions. A process
    that never waits for the reader prevents this. Unread messages are stored here.

    :param connection: the pipe; nothing else may write to it
    """

    def __init__(self, connection: Connection):
        self._connection = connection
        # A SimpleQueue's ``put`` is reentrant: a signal handler may post while the same thread is posting.
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send, name="sender", daemon=True)
        self._thread.start()

    def post(self, message: Any) -> None:
        """Send a message. It is dropped if the reader is gone. Signal handlers may call this method."""
        # In a tuple: the empty tuple of ``close`` ends the thread, and no message looks like it.
        self._messages.put((message,))

    def close(self) -> None:
        """Send the pending messages and end the thread. The reader must read until then, or be gone."""
        self._messages.put(())
        self._thread.join()

    def _send(self) -> None:
        is_heard = True
        while posted := self._messages.get():
            if is_heard:
                try:
                    self._connection.send(posted[0])
                except (BrokenPipeError, ConnectionError):
                    # Drop further messages without an error: the end of a process is noticed elsewhere.
                    is_heard = False
