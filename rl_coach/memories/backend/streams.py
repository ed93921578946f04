"""Both ends of a stream of experience in Redis: workers send, the trainer receives.

Only the trainer writes ``state`` and ``taken``. Redis may lose everything at any time: the trainer writes its keys
again, and workers send again all chunks that were not acknowledged.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Mapping

from rl_coach.core_types import PlayUnit
from rl_coach.memories.backend.connection import Connection, Keys
from rl_coach.memories.backend.ledger import Account, Ledger, Outbox, Verdict
from rl_coach.memories.backend.wire import Chunk, ChunkError, PolicyName, decode, pack, unpack

MOST_ENTRIES_AT_ONCE = 8
_MILLISECONDS_OF_WAITING = 50
_SECONDS_OF_A_RECEIPT = 0.01  # that it may wait for others, while chunks are there that nobody has looked at


@dataclass(frozen=True)
class RunState:
    """Instructions of the trainer to the workers.

    :param incarnation: number of this start of the trainer; later starts have larger numbers
    :param version: of the newest policy of that incarnation
    :param phase: the name of the phase that workers play in
    :param left: number of steps that are still needed with this policy; None for no limit
    :param unit: the name of a ``PlayUnit`` that ``left`` counts instead
    :param resend: when this changes, workers send all unacknowledged chunks again
    :param beat: changes continuously while the trainer is alive
    :param is_over: the run has ended
    """

    incarnation: int = 0
    version: int = 0
    phase: str = "UNDEFINED"
    left: int | None = None
    unit: str = PlayUnit.STEPS.name
    resend: int = 0
    beat: int = 0
    is_over: bool = False

    @property
    def policy(self) -> PolicyName:
        """The name of the newest policy."""
        return self.incarnation, self.version

    @classmethod
    def read(cls, document: bytes) -> RunState:
        """The state in a document."""
        return cls(**unpack(document))

    def packed(self) -> bytes:
        """The state as a document."""
        return pack(dataclasses.asdict(self))


class WorkerLink:
    """A worker's end.

    :param connection: to Redis
    :param run: the run's id
    :param name: the worker's
    :param life: tells this start of the worker from others
    :param window: chunks that may be on their way
    """

    def __init__(self, connection: Connection, run: str, name: str, life: str, window: int):
        self.sender = f"{name}.{life}"
        self.outbox = Outbox(window)
        self._connection = connection
        self._keys = Keys(run)
        self._name = name
        self._times_connected = connection.times_connected
        self._resend: int | None = None

    def exchange(self) -> RunState | None:
        """Send waiting chunks and read the trainer's state; one round trip.

        :return: None if there is no Redis, or Redis does not know this run
        """
        # A new connection may reach a Redis that was emptied. Sending everything again is harmless: the trainer drops
        # duplicates by their numbers.
        if self._connection.times_connected != self._times_connected:
            self._send_again()
        keys, pipeline = self._keys, self._connection.client.pipeline(transaction=False)
        for fields in self.outbox.to_send():
            pipeline.xadd(keys.experience, fields)
        pipeline.get(keys.state)
        pipeline.hget(keys.taken, self.sender)
        try:
            *_, state, taken = pipeline.execute()
        except self._connection.errors:
            # It is unknown which commands of the pipeline were executed.
            self.outbox.send_again()
            return None
        self.outbox.sent()
        if taken is not None:
            self.outbox.acknowledge(int(unpack(taken)[0]))
        if state is None:
            return None
        found = RunState.read(state)
        if found.resend != self._resend:
            self.outbox.send_again()
            self._resend = found.resend
        return found

    def _send_again(self) -> None:
        self._times_connected = self._connection.times_connected
        self.outbox.send_again()

    def report(self, about: Mapping[str, Any], seconds: float) -> None:
        """Leave a report that expires. One that cannot be left does not matter."""
        try:
            self._connection.client.set(self._keys.worker(self._name), pack(dict(about)), px=int(seconds * 1000))
        except self._connection.errors:
            return


class TrainerLink:
    """The trainer's end: the only one that reads the stream.

    :param connection: to Redis
    :param run: the run's id
    :param ledger: the chunks that were accepted so far

    :ivar state: the instructions to the workers
    :ivar is_connected: Redis answered the last time
    :ivar times_restored: how often the trainer wrote its keys into a Redis that did not know the run; once at the start
    """

    def __init__(self, connection: Connection, run: str, ledger: Ledger):
        self.ledger = ledger
        self.state = RunState()
        self.is_connected = True
        self.times_restored = 0
        self._connection = connection
        self._run = run
        self._keys = Keys(run)
        self._entries: deque[tuple[bytes, dict[bytes, bytes]]] = deque()
        self._receipts: list[tuple[bytes, str | None]] = []
        self._is_group_due = True
        self._reads_pending = True
        self._changed: dict[str, bytes] = {}
        self._has_asked = False
        self._push_at = 0.0

    # what the trainer says

    def say(self, **changes: Any) -> None:
        """Change the state; workers hear of it with the next ``push``."""
        self.state = dataclasses.replace(self.state, **changes)
        self._changed[self._keys.state] = self.state.packed()

    # chunks

    @property
    def has_entries(self) -> bool:
        """True if messages have been fetched that nobody has looked at."""
        return bool(self._entries)

    def next(self) -> tuple[bytes, Chunk] | None:
        """The next chunk to decide on; None if there is none now. All others are dealt with on the way.

        :return: its id for ``acknowledge``, and the chunk
        """
        while self._entries:
            entry, fields = self._entries.popleft()
            try:
                chunk = decode(fields, self._run)
            except ChunkError as error:
                self.ledger.refused[error.reason] += 1
                self._receipts.append((entry, None))
                continue
            verdict = self.ledger.judge(chunk.sender, chunk.number, chunk.first)
            if verdict is Verdict.NEXT:
                return entry, chunk
            self._receipts.append((entry, chunk.sender if verdict is Verdict.DUPLICATE else None))
            if verdict is Verdict.GAP:
                self.ledger.refused["gap"] += 1
                self._ask_again()
        return None

    def acknowledge(self, entry: bytes, chunk: Chunk, is_stored: bool) -> None:
        """Take down that a chunk is in the memory, or never will be. The receipt goes out with the next ``push``."""
        stored, discarded = (chunk.steps, 0) if is_stored else (0, chunk.steps)
        self.ledger.settle(chunk.sender, chunk.number, stored, discarded)
        self._receipts.append((entry, chunk.sender))

    def _ask_again(self) -> None:
        """Have workers send again what they have no receipt of; once for all gaps that are found together."""
        # One request serves all gaps: after a lost chunk, every later chunk of its sender is a gap too.
        if not self._has_asked:
            self._has_asked = True
            self.say(resend=self.state.resend + 1)

    # Redis

    def push_soon(self) -> None:
        """Push if no chunks are left, or if the last push was some time ago. So chunks that arrived together are
        acknowledged together, unless learning from each of them takes long."""
        if not self._entries or time.monotonic() >= self._push_at:
            self.push()

    def push(self, reads: bool = True) -> bool:
        """Send acknowledgements and changes of the state, and fetch new chunks if none are left; one round trip.

        :param reads: fetch chunks
        :return: False if there is no Redis
        """
        self._push_at = time.monotonic() + _SECONDS_OF_A_RECEIPT
        try:
            if self._is_group_due:
                self._put_everything_back()
            self._push(reads and not self._entries)
        except self._connection.errors:
            self.is_connected = False
            self._lose()
            return False
        except self._connection.response_error as error:
            # Redis answers, but was emptied: its group must be created again.
            if "NOGROUP" not in str(error):
                raise
            self._lose()
            return True
        self.is_connected = True
        return True

    def wait(self) -> None:
        """Fetch chunks, and wait for them for a moment."""
        if not self.is_connected or self._is_group_due:
            return
        try:
            self._take_entries(">", self._read(self._connection.client, ">", _MILLISECONDS_OF_WAITING))
        except self._connection.errors:
            self.is_connected = False
            self._lose()
        except self._connection.response_error as error:
            if "NOGROUP" not in str(error):
                raise
            self._lose()

    def _lose(self) -> None:
        """Redis is gone, or has forgotten everything. What was fetched and not decided on comes again."""
        # Entries that were fetched but not acknowledged stay pending in the group, so they are read again from the
        # group's start; if Redis was emptied, the workers send them again.
        self._is_group_due = self._reads_pending = True
        self._entries.clear()

    def _put_everything_back(self) -> None:
        client, keys = self._connection.client, self._keys
        try:
            # From the start of the stream: workers may have sent chunks before the group existed.
            client.xgroup_create(keys.experience, keys.GROUP, id="0", mkstream=True)
        except self._connection.response_error as error:
            if "BUSYGROUP" not in str(error):
                raise
        self._is_group_due = False
        # Redis may have lost chunks that workers count as sent.
        self.say(resend=self.state.resend + 1)
        self.times_restored += 1
        if self.ledger.accounts:
            client.hset(keys.taken, mapping={name: _taken(one) for name, one in self.ledger.accounts.items()})

    def _push(self, reads: bool) -> None:
        # One transaction: a chunk leaves the stream exactly when its number is recorded as taken. Otherwise a crash in
        # between could lose a chunk or make it count twice.
        keys, pipeline = self._keys, self._connection.client.pipeline(transaction=True)
        receipts, changed = list(self._receipts), dict(self._changed)
        if receipts:
            entries = [entry for entry, _ in receipts]
            pipeline.xack(keys.experience, keys.GROUP, *entries)
            pipeline.xdel(keys.experience, *entries)
            senders = {sender for _, sender in receipts if sender is not None}
            if senders:
                taken = {sender: _taken(self.ledger.accounts[sender]) for sender in senders}
                pipeline.hset(keys.taken, mapping=taken)
        for key, document in changed.items():
            pipeline.set(key, document)
        position = "0" if self._reads_pending else ">"
        if reads:
            self._read(pipeline, position)
        answers = pipeline.execute()
        self._has_asked = False
        # Only what was sent is removed, and only now: after an error, the next push sends it again.
        del self._receipts[: len(receipts)]
        for key, document in changed.items():
            if self._changed.get(key) is document:
                del self._changed[key]
        if reads:
            self._take_entries(position, answers[-1])

    def _read(self, client: Any, position: str, block: int | None = None) -> Any:
        """Fetch entries. :param client: that of the connection, or a pipeline, which answers later"""
        keys = self._keys
        return client.xreadgroup(
            keys.GROUP, keys.GROUP, {keys.experience: position}, count=MOST_ENTRIES_AT_ONCE, block=block
        )

    def _take_entries(self, position: str, answer: list) -> None:
        entries = answer[0][1] if answer else []
        if position == "0":
            self._reads_pending = bool(entries)
        gone = [entry for entry, fields in entries if fields is None]
        self._receipts += [(entry, None) for entry in gone]
        self._entries.extend((entry, fields) for entry, fields in entries if fields is not None)

    # others

    def last_incarnation(self) -> int:
        """The largest incarnation of a trainer that Redis knows of, 0 if of none."""
        document = self._connection.client.get(self._keys.state)
        return 0 if document is None else RunState.read(document).incarnation

    def is_superseded(self) -> bool:
        """True if another trainer has taken over the run."""
        try:
            return self.is_connected and self.last_incarnation() > self.state.incarnation
        except self._connection.errors:
            return False

    def reports(self, names: list[str]) -> dict[str, dict[str, Any]]:
        """The reports of those workers that have left one of late."""
        if not names or not self.is_connected:
            return {}
        try:
            found = self._connection.client.mget([self._keys.worker(name) for name in names])
        except self._connection.errors:
            return {}
        return {name: unpack(document) for name, document in zip(names, found) if document is not None}

    def forget_run(self, seconds: int) -> None:
        """Let Redis forget all of the run after a while, in which workers still hear that it is over."""
        client, keys = self._connection.client, self._keys
        client.unlink(keys.experience)
        for key in (keys.state, keys.taken):
            client.expire(key, seconds)


def _taken(account: Account) -> bytes:
    return pack([account.last, account.stored, account.discarded])
