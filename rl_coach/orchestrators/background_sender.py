"""Sends messages through a pipe without blocking the caller."""

from __future__ import annotations

import queue
import threading
from multiprocessing.connection import Connection
from typing import Any


class BackgroundSender:
    """Sends messages through a pipe in order, in a separate thread. The caller never waits for the reader.

    Two processes that both write before they read block forever if the pipe is full in both directions. They do not
    block if one of them uses this class. Messages that do not fit into the pipe yet are stored in memory.

    :param connection: the pipe; other code must not write to it
    """

    def __init__(self, connection: Connection):
        self._connection = connection
        # A SimpleQueue's ``put`` is reentrant: a signal handler may post while the same thread is posting.
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send, name="sender", daemon=True)
        self._thread.start()

    def post(self, message: Any) -> None:
        """Send a message. If the reader has ended, the message is ignored. Signal handlers may call this method."""
        # Put the message in a tuple, because ``close`` sends an empty tuple to end the thread.
        self._messages.put((message,))

    def close(self) -> None:
        """Send the pending messages and end the thread. The method waits until the reader has read or has ended."""
        self._messages.put(())
        self._thread.join()

    def _send(self) -> None:
        is_heard = True
        while posted := self._messages.get():
            if is_heard:
                try:
                    self._connection.send(posted[0])
                except (BrokenPipeError, ConnectionError):
                    # Ignore further messages without an error: other code finds that the process has ended.
                    is_heard = False
