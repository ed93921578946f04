"""Records of both ends of a stream of chunks. They must agree even if chunks are lost, repeated or reordered.

Pure bookkeeping: nothing here knows Redis.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from enum import Enum
from typing import Any, Iterator

from rl_coach.core_types import PlayUnit
from rl_coach.memories.backend.wire import EncodedChunk


class Verdict(Enum):
    """Fate of a chunk that arrives.

    :cvar NEXT: the next one of its sender: take it
    :cvar DUPLICATE: taken before: acknowledge it again
    :cvar GAP: one before it is missing: drop it, its sender has it still and sends all again in order
    """

    NEXT = "next"
    DUPLICATE = "duplicate"
    GAP = "gap"


@dataclass
class Account:
    """Chunks of one sender.

    :param last: the number of the last one that was acknowledged
    :param stored: steps that went into the memory
    :param discarded: steps that did not
    """

    last: int = 0
    stored: int = 0
    discarded: int = 0


class Ledger:
    """Chunks that a trainer has accepted, by their numbers.

    A chunk is the next one if its number follows the last one, or if the sender says that no earlier chunk is missing
    (``first``). The second case is needed by a trainer that went back to a checkpoint: it does not know which chunks
    it accepted after that.

    :ivar refused: number of messages that were refused, by reason
    """

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.refused: Counter[str] = Counter()

    def judge(self, sender: str, number: int, first: int) -> Verdict:
        """The fate of a chunk. :param first: the sender's oldest that it knows no receipt of"""
        last = self.accounts[sender].last if sender in self.accounts else 0
        if number <= last:
            return Verdict.DUPLICATE
        # A gap is refused, not stored out of order: the sender then sends everything again in order. If a later chunk
        # had been accepted first, the earlier ones would look like duplicates and be lost.
        return Verdict.NEXT if number == max(last + 1, first) else Verdict.GAP

    def settle(self, sender: str, number: int, stored: int = 0, discarded: int = 0) -> Account:
        """Write down a chunk as acknowledged. :return: the sender's account"""
        account = self.accounts.setdefault(sender, Account())
        account.last = number
        account.stored += stored
        account.discarded += discarded
        return account

    @property
    def stored(self) -> int:
        """Steps of all senders that went into the memory."""
        return sum(account.stored for account in self.accounts.values())

    @property
    def discarded(self) -> int:
        """Steps of all senders that were acknowledged and not stored."""
        return sum(account.discarded for account in self.accounts.values())

    def get_state(self) -> dict[str, Any]:
        """State as plain data, for a checkpoint."""
        return {sender: [one.last, one.stored, one.discarded] for sender, one in self.accounts.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``."""
        self.accounts = {sender: Account(*map(int, numbers)) for sender, numbers in state.items()}


class Outbox:
    """Chunks that a worker has sent or will send, and that are not acknowledged yet.

    :param window: the largest number of such chunks
    :ivar acknowledged: steps that the trainer has acknowledged
    """

    def __init__(self, window: int):
        self.window = window
        self.acknowledged = 0
        self._outstanding: deque[EncodedChunk] = deque()
        self._unsent = 0  # of the newest
        self._last = 0

    @property
    def next_number(self) -> int:
        """The number of the next chunk."""
        return self._last + 1

    @property
    def is_full(self) -> bool:
        """True if no chunk may be added before a receipt comes."""
        return len(self._outstanding) >= self.window

    @property
    def steps(self) -> int:
        """Steps without a receipt."""
        return sum(chunk.steps for chunk in self._outstanding)

    def count(self, unit: PlayUnit) -> int:
        """Steps, episodes that ended or segments without a receipt."""
        return sum(chunk.played[unit] for chunk in self._outstanding)

    def add(self, chunk: EncodedChunk) -> None:
        """Add the next chunk to send; its number is ``next_number``."""
        assert chunk.number == self.next_number and not self.is_full
        self._last = chunk.number
        self._outstanding.append(chunk)
        self._unsent += 1

    def to_send(self) -> Iterator[dict[bytes, Any]]:
        """The entries to be sent now, in order."""
        # The first outstanding number tells a trainer that went back to a checkpoint which numbers it will never see.
        first = self._outstanding[0].number if self._outstanding else self.next_number
        for index in range(len(self._outstanding) - self._unsent, len(self._outstanding)):
            yield self._outstanding[index].fields(first)

    def sent(self) -> None:
        """Take down that all of ``to_send`` has been sent."""
        self._unsent = 0

    def send_again(self) -> None:
        """Send everything outstanding again, in order, before anything new."""
        self._unsent = len(self._outstanding)

    def acknowledge(self, last: int) -> None:
        """Take a receipt. :param last: the number of the last chunk that the trainer has taken"""
        # One number acknowledges all chunks before it, because the trainer accepts them only in order.
        while self._outstanding and self._outstanding[0].number <= last:
            self.acknowledged += self._outstanding.popleft().steps
        self._unsent = min(self._unsent, len(self._outstanding))
