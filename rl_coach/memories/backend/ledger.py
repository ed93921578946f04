"""Records of sender and receiver of a stream of chunks. The two records agree even if chunks are lost, repeated or
reordered.

This module does not use Redis.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from enum import Enum
from typing import Any, Iterator

from rl_coach.core_types import PlayUnit
from rl_coach.memories.backend.wire import EncodedChunk


class Verdict(Enum):
    """The decision on a received chunk.

    :cvar NEXT: the chunk is the sender's next chunk: accept it
    :cvar DUPLICATE: the chunk was accepted before: acknowledge it again
    :cvar GAP: an earlier chunk is missing: drop the chunk. The sender still has both chunks and sends them again in
        order
    """

    NEXT = "next"
    DUPLICATE = "duplicate"
    GAP = "gap"


@dataclass
class Account:
    """Numbers of the acknowledged chunks of one sender.

    :param last: the number of the last acknowledged chunk
    :param stored: number of steps that were stored in the memory
    :param discarded: number of steps that were acknowledged but not stored
    """

    last: int = 0
    stored: int = 0
    discarded: int = 0


class Ledger:
    """The trainer's record of the chunks that it has accepted, by their numbers.

    A chunk is the next chunk in two cases: its number follows the last number, or its number is ``first``, the number
    of the sender's oldest unacknowledged chunk. The second case occurs after the trainer was restarted from a
    checkpoint: the trainer does not know which chunks it accepted after that checkpoint.

    :ivar refused: number of refused messages, by reason
    """

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.refused: Counter[str] = Counter()

    def judge(self, sender: str, number: int, first: int) -> Verdict:
        """Decide on a chunk. :param first: the number of the sender's oldest unacknowledged chunk"""
        last = self.accounts[sender].last if sender in self.accounts else 0
        if number <= last:
            return Verdict.DUPLICATE
        # A chunk after a gap is dropped, and the sender sends everything again in order. If it was accepted, the
        # earlier chunks would look like duplicates and would be lost.
        return Verdict.NEXT if number == max(last + 1, first) else Verdict.GAP

    def settle(self, sender: str, number: int, stored: int = 0, discarded: int = 0) -> Account:
        """Record a chunk as acknowledged. :return: the sender's account"""
        account = self.accounts.setdefault(sender, Account())
        account.last = number
        account.stored += stored
        account.discarded += discarded
        return account

    @property
    def stored(self) -> int:
        """The number of steps of all senders that were stored in the memory."""
        return sum(account.stored for account in self.accounts.values())

    @property
    def discarded(self) -> int:
        """The number of steps of all senders that were acknowledged but not stored."""
        return sum(account.discarded for account in self.accounts.values())

    def get_state(self) -> dict[str, Any]:
        """The state as plain data, for a checkpoint."""
        return {sender: [one.last, one.stored, one.discarded] for sender, one in self.accounts.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from ``get_state``."""
        self.accounts = {sender: Account(*map(int, numbers)) for sender, numbers in state.items()}


class Outbox:
    """A worker's record of its unacknowledged chunks, oldest first. The newest chunks may not have been sent.

    :param window: the largest number of unacknowledged chunks
    :ivar acknowledged: number of steps that the trainer has acknowledged
    """

    def __init__(self, window: int):
        self.window = window
        self.acknowledged = 0
        self._outstanding: deque[EncodedChunk] = deque()
        self._unsent = 0  # the number of the newest chunks that have not been sent
        self._last = 0

    @property
    def next_number(self) -> int:
        """The number of the next chunk."""
        return self._last + 1

    @property
    def is_full(self) -> bool:
        """True if there are ``window`` unacknowledged chunks: no chunk may be added before a receipt arrives."""
        return len(self._outstanding) >= self.window

    @property
    def steps(self) -> int:
        """The number of steps in unacknowledged chunks."""
        return sum(chunk.steps for chunk in self._outstanding)

    def count(self, unit: PlayUnit) -> int:
        """The number of steps, ended episodes or segments in unacknowledged chunks. :param unit: what is counted"""
        return sum(chunk.played[unit] for chunk in self._outstanding)

    def add(self, chunk: EncodedChunk) -> None:
        """Add the next chunk to send. Its number must be ``next_number``."""
        # Without gaps in the numbers, one number in a receipt acknowledges all earlier chunks.
        assert chunk.number == self.next_number and not self.is_full
        self._last = chunk.number
        self._outstanding.append(chunk)
        self._unsent += 1

    def to_send(self) -> Iterator[dict[bytes, Any]]:
        """The fields of the chunks to send now, in order."""
        # A restarted trainer needs the first number, to know that no earlier chunk will arrive.
        first = self._outstanding[0].number if self._outstanding else self.next_number
        for index in range(len(self._outstanding) - self._unsent, len(self._outstanding)):
            yield self._outstanding[index].fields(first)

    def sent(self) -> None:
        """Record that all chunks of ``to_send`` have been sent."""
        self._unsent = 0

    def send_again(self) -> None:
        """Mark all unacknowledged chunks to be sent again, in order, before new chunks."""
        # All chunks, because the trainer drops a later chunk if an earlier chunk is missing.
        self._unsent = len(self._outstanding)

    def acknowledge(self, last: int) -> None:
        """Remove acknowledged chunks. :param last: the number of the last chunk that the trainer accepted"""
        # One number acknowledges all chunks before it, because the trainer accepts them only in order.
        while self._outstanding and self._outstanding[0].number <= last:
            self.acknowledged += self._outstanding.popleft().steps
        # A late receipt may acknowledge chunks that wait to be sent again.
        self._unsent = min(self._unsent, len(self._outstanding))
