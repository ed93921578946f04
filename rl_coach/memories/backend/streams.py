"""Sender and receiver of a Redis stream of experience: workers send, the trainer receives.

Only the trainer writes the keys ``state`` and ``taken``. If Redis loses its data, the trainer writes these keys again,
and the workers send all unacknowledged chunks again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from rl_coach.core_types import PlayUnit, RunPhase
from rl_coach.memories.backend.connection import Connection, Keys
from rl_coach.memories.backend.ledger import Account, Ledger, Outbox, Verdict
from rl_coach.memories.backend.wire import (
    UNREADABLE,
    Chunk,
    ChunkError,
    PolicyName,
    decode,
    pack,
    read_document,
    unpack,
)
from rl_coach.utilities.errors import reason_of
from rl_coach.utilities.sound_values import is_count, is_finite, is_text

MOST_ENTRIES_AT_ONCE = 8
_KEYS_AT_ONCE = 1000
_MILLISECONDS_OF_WAITING = 50
# the longest delay of a receipt while fetched chunks wait, so that one push can send many receipts
_SECONDS_OF_A_RECEIPT = 0.01


@dataclass(frozen=True)
class RunState:
    """The trainer's instructions to the workers.

    :param incarnation: number of this start of the trainer; later starts have larger numbers
    :param version: version of the newest policy in this incarnation
    :param phase: name of the phase in which the workers play
    :param left: number of steps, episodes or segments that are still needed with this policy; None for no limit
    :param unit: name of the ``PlayUnit`` that ``left`` counts
    :param resend: a number. If this number or the incarnation changes, workers send all unacknowledged chunks again
    :param beat: a number that changes continuously as long as the trainer runs
    :param is_over: True if the run has ended
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
    def read(cls, document: bytes | None) -> RunState | None:
        """Read the state from a document. Return None if the document is not a valid state."""
        # The values are checked, because any client of Redis can write this key.
        found = read_document(document, _STATE)
        return None if found is None else cls(**found)

    def packed(self) -> bytes:
        """The state as a document."""
        return pack(dataclasses.asdict(self))


_PHASES = {phase.name for phase in (RunPhase.UNDEFINED, RunPhase.HEATUP, RunPhase.TRAIN)}
_STATE = {
    "incarnation": is_count, "version": is_count, "phase": _PHASES.__contains__,
    "left": lambda left: left is None or is_count(left), "unit": PlayUnit.__members__.__contains__,
    "resend": is_count, "beat": is_count, "is_over": lambda value: isinstance(value, bool),
}  # fmt: skip
_PHASES_OF_WORKERS = {phase.name for phase in (RunPhase.WAITING, RunPhase.HEATUP, RunPhase.TRAIN)}
_REPORT = {
    "phase": _PHASES_OF_WORKERS.__contains__, "rate": lambda rate: is_finite(rate) and rate >= 0, "steps": is_count,
    "acknowledged": is_count, "outstanding": is_count, "life": is_text, "pid": is_count,
}  # fmt: skip


def _read_taken(document: bytes) -> Account | None:
    """Read the receipt of a sender. Return None if the document is not a valid receipt."""
    try:
        last, stored, discarded = unpack(document)
    except UNREADABLE:
        return None
    return Account(last, stored, discarded) if all(map(is_count, (last, stored, discarded))) else None


def stored_by_sender(connection: Connection, run: str) -> dict[str, int] | None:
    """The number of stored steps by sender, in all streams of a run; None if Redis does not answer. Do not call this
    function often, because it scans all keys of Redis.
    """
    stored: Counter[str] = Counter()
    try:
        for key in connection.client.scan_iter(match=f"{Keys(run).taken}*", count=_KEYS_AT_ONCE):
            for sender, document in connection.client.hgetall(key).items():
                receipt = _read_taken(document)
                stored[sender.decode(errors="replace")] += 0 if receipt is None else receipt.stored
    except connection.errors:
        return None
    return {sender: steps for sender, steps in stored.items() if steps}


class WorkerLink:
    """A worker's access to a stream: the sender.

    :param connection: the connection to Redis
    :param run: the run's id
    :param name: the worker's name
    :param life: a text that differs for each start of the worker
    :param window: the largest number of unacknowledged chunks
    :param agent: the name of the agent; empty if the run has one agent

    :ivar sender: the name of the worker and of its start
    :ivar place: the address of Redis, without a password
    :ivar trouble: the last error of Redis; empty if Redis has answered the last command
    """

    def __init__(self, connection: Connection, run: str, name: str, life: str, window: int, agent: str = ""):
        self.run, self.name = run, name
        self.sender = f"{name}.{life}"
        self.place = connection.place
        self.trouble = ""
        self.outbox = Outbox(window)
        self._connection = connection
        self._keys = Keys(run, agent)
        self._times_connected = connection.times_connected
        self._asked: tuple[int, int] | None = None  # the trainer's last request to send again

    def exchange(self) -> RunState | None:
        """Send waiting chunks, and read the trainer's state and receipt, in one request.

        :return: the trainer's state; None if Redis does not answer or has no state of this run
        """
        # After a new connection, Redis may have lost its data. Sending everything again does no harm: the trainer finds
        # duplicates by their numbers.
        if self._connection.times_connected != self._times_connected:
            self._times_connected = self._connection.times_connected
            self.outbox.send_again()
        # No transaction: after an error all chunks are sent again, and the trainer finds duplicates by their numbers.
        keys, pipeline = self._keys, self._connection.client.pipeline(transaction=False)
        for fields in self.outbox.to_send():
            # Without MAXLEN, which would drop unread chunks. The window of the outbox limits the stream.
            pipeline.xadd(keys.experience, fields)
        pipeline.get(keys.state)
        pipeline.hget(keys.taken, self.sender)
        try:
            *_, state, taken = pipeline.execute()
        except self._connection.errors as error:
            # Send everything again, because it is unknown which commands were executed.
            self.outbox.send_again()
            self.trouble = reason_of(error)
            return None
        self.trouble = ""
        self.outbox.sent()
        if taken is not None:
            receipt = _read_taken(taken)
            if receipt is None:
                self.outbox.send_again()  # a duplicate makes the trainer write a valid receipt
            else:
                self.outbox.acknowledge(receipt.last)
        found = RunState.read(state)
        if found is None:
            return None
        # A new trainer may not have chunks that the last trainer accepted. It counts its requests from the start.
        if (found.incarnation, found.resend) != self._asked:
            self.outbox.send_again()
            self._asked = (found.incarnation, found.resend)
        return found

    def report(self, about: Mapping[str, Any], seconds: float) -> None:
        """Write a report that expires after ``seconds``. If Redis does not answer, the report is dropped."""
        # No second attempt, because the next report follows soon.
        try:
            self._connection.client.set(self._keys.worker(self.name), pack(dict(about)), px=int(seconds * 1000))
        except self._connection.errors:
            return


class TrainerLink:
    """The trainer's access to a stream: the only receiver.

    :param ledger: the record of accepted chunks. The other parameters are the same as in ``WorkerLink``

    :ivar state: the instructions to the workers
    :ivar trouble: the last error of Redis; empty if Redis has answered the last command
    :ivar is_superseded: True if another trainer has taken over the run
    :ivar times_restored: number of times that the trainer has written all its keys, including the start
    """

    def __init__(self, connection: Connection, run: str, ledger: Ledger, agent: str = ""):
        self.ledger = ledger
        self.state = RunState()
        self.trouble = ""
        self.is_superseded = False
        self.times_restored = 0
        self._lost_at = 0.0
        self._others: RunState | None = None
        self._connection = connection
        self._run = run
        self._keys = Keys(run, agent)
        self._entries: deque[tuple[bytes, dict[bytes, bytes]]] = deque()
        self._receipts: list[tuple[bytes, str | None]] = []
        self._is_group_due = True
        # The last trainer may have fetched chunks without a receipt. They are read first.
        self._reads_pending = True
        self._changed: dict[str, bytes] = {}
        self._has_asked = False
        self._push_at = 0.0

    # Instructions to the workers

    def say(self, **changes: Any) -> None:
        """Change the state. The next ``push`` sends it to the workers."""
        self.state = dataclasses.replace(self.state, **changes)
        self._changed[self._keys.state] = self.state.packed()

    # Chunks

    @property
    def has_entries(self) -> bool:
        """True if fetched messages wait for ``next``."""
        return bool(self._entries)

    def next(self) -> tuple[bytes, Chunk] | None:
        """Return the next chunk, in the order of its sender. Duplicates are acknowledged. Invalid messages and chunks
        after a gap are dropped.

        :return: the id of the entry, for ``acknowledge``, and the chunk; None if the fetched messages contain no next
            chunk
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
        """Record that a chunk was stored or discarded. The next ``push`` sends the receipt."""
        stored, discarded = (chunk.steps, 0) if is_stored else (0, chunk.steps)
        self.ledger.settle(chunk.sender, chunk.number, stored, discarded)
        self._receipts.append((entry, chunk.sender))

    def _ask_again(self) -> None:
        """Ask all workers to send their unacknowledged chunks again, at most once per push."""
        # One request is enough: after a lost chunk, each later chunk of its sender also counts as a gap.
        if not self._has_asked:
            self._has_asked = True
            self.say(resend=self.state.resend + 1)

    # Redis

    def push_soon(self) -> None:
        """Push if no fetched chunks are left, or if the last push was 10 ms ago or earlier. So one push usually
        acknowledges all chunks that arrived together.
        """
        if not self._entries or time.monotonic() >= self._push_at:
            self.push()

    def push(self, reads: bool = True) -> bool:
        """Send receipts and changes of the state. If no fetched chunks are left, fetch chunks in the same request.

        :param reads: False to fetch no chunks
        :return: False if Redis cannot be used now
        """
        self._push_at = time.monotonic() + _SECONDS_OF_A_RECEIPT
        try:
            if self._is_group_due:
                self._put_everything_back()
            self._push(reads and not self._entries)
        except self._connection.errors as error:
            self._lose(error)
            return False
        self.trouble = ""
        return True

    def push_if_due(self) -> None:
        """Push if the last push was 10 ms ago or earlier. So this stream is also served while others have chunks."""
        if time.monotonic() >= self._push_at:
            self.push()

    def wait(self) -> None:
        """Fetch chunks. If there are none, wait up to 50 ms for a chunk."""
        wait_for_chunks([self])

    def _lose(self, error: BaseException) -> None:
        """Record that Redis cannot be used or has lost its data."""
        if not self.trouble:
            self._lost_at = time.monotonic()
        self.trouble = reason_of(error)
        # Entries that were fetched but not acknowledged stay pending in Redis' group and are read again. If Redis has
        # lost its data, the workers send them again.
        self._is_group_due = self._reads_pending = True
        self._entries.clear()

    @property
    def seconds_lost(self) -> float:
        """The number of seconds since Redis stopped answering; 0 if Redis answers."""
        return time.monotonic() - self._lost_at if self.trouble else 0.0

    def _put_everything_back(self) -> None:
        client, keys = self._connection.client, self._keys
        # Delete values of another type under these keys, because each push would fail.
        for key, kind in ((keys.experience, b"stream"), (keys.taken, b"hash")):
            if client.type(key) not in (kind, b"none"):
                client.unlink(key)
        try:
            # Read from the start of the stream, because workers may have sent chunks before the group existed.
            client.xgroup_create(keys.experience, keys.GROUP, id="0", mkstream=True)
        except self._connection.response_error as error:
            if "BUSYGROUP" not in str(error):
                raise
        self._is_group_due = False
        # Ask for all chunks, because Redis may have lost chunks that were sent.
        self.say(resend=self.state.resend + 1)
        self.times_restored += 1
        # Replace all receipts with the receipts of the ledger. If the ledger comes from a checkpoint, Redis may have
        # receipts for later chunks, which this trainer does not have. Workers send these chunks again if they have
        # them.
        pipeline = client.pipeline(transaction=True)
        pipeline.delete(keys.taken)
        if self.ledger.accounts:
            pipeline.hset(keys.taken, mapping={name: _taken(one) for name, one in self.ledger.accounts.items()})
        pipeline.execute()

    def _push(self, reads: bool) -> None:
        # One transaction removes a chunk from the stream and records its number as taken. Without it, a crash in
        # between could lose a chunk or count it twice.
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
            # All trainers of a run have one consumer name, so a new trainer gets the pending entries of the last one.
            streams = {keys.experience: position}
            pipeline.xreadgroup(keys.GROUP, keys.GROUP, streams, count=MOST_ENTRIES_AT_ONCE)
        answers = pipeline.execute()
        self._has_asked = False
        # Receipts are removed after they were sent, so that the next push sends them again after an error.
        del self._receipts[: len(receipts)]
        for key, document in changed.items():
            if self._changed.get(key) is document:
                del self._changed[key]
        if reads:
            self._take_entries(position, answers[-1])

    def _take_entries(self, position: str, answer: list) -> None:
        entries = answer[0][1] if answer else []
        if position == "0":
            self._reads_pending = bool(entries)
        # A pending entry without fields was deleted from the stream. Without a receipt, it would be read again for
        # ever.
        gone = [entry for entry, fields in entries if fields is None]
        self._receipts += [(entry, None) for entry in gone]
        self._entries.extend((entry, fields) for entry, fields in entries if fields is not None)

    # Other trainers and workers

    def last_incarnation(self) -> int:
        """The incarnation in Redis; 0 if Redis has no state of the run."""
        state = self._state_in_redis()
        return 0 if state is None else state.incarnation

    def look_for_others(self) -> None:
        """Set ``is_superseded`` if another trainer has taken over the run."""
        # A running trainer changes its state continuously. A single other state could be old, so two different states
        # of the same incarnation are needed.
        found = self._state_in_redis()
        if found is None or found.incarnation <= self.state.incarnation:
            return
        before, self._others = self._others, found
        self.is_superseded = before is not None and before != found and before.incarnation == found.incarnation

    def _state_in_redis(self) -> RunState | None:
        try:
            return RunState.read(self._connection.client.get(self._keys.state))
        except self._connection.errors:
            return None

    def reports(self, names: list[str]) -> dict[str, dict[str, Any]]:
        """The reports of workers, by name. Workers without a current report are left out."""
        if not names or self.trouble:
            return {}
        try:
            found = self._connection.client.mget([self._keys.worker(name) for name in names])
        except self._connection.errors:
            return {}
        read = {name: read_document(document, _REPORT) for name, document in zip(names, found)}
        return {name: report for name, report in read.items() if report is not None}

    def forget_run(self, seconds: int) -> None:
        """Delete the run from Redis after ``seconds``. Until then, workers can read that the run is over."""
        client, keys = self._connection.client, self._keys
        with contextlib.suppress(*self._connection.errors):
            # The stream is emptied, not deleted: a late worker would create it again, and it would never expire.
            client.xtrim(keys.experience, maxlen=0, approximate=False)
            for key in (keys.experience, keys.state, keys.taken):
                client.expire(key, seconds)


def wait_for_chunks(links: Sequence[TrainerLink]) -> None:
    """Fetch chunks of all streams of a run. If there are none, wait up to 50 ms for a chunk."""
    # After an error, the next push must restore a stream before it can be read.
    if any(link.trouble or link._is_group_due for link in links):
        return
    connection, by_key = links[0]._connection, {link._keys.experience.encode(): link for link in links}
    try:
        found = connection.client.xreadgroup(
            Keys.GROUP, Keys.GROUP, dict.fromkeys(by_key, ">"), count=MOST_ENTRIES_AT_ONCE,
            block=_MILLISECONDS_OF_WAITING,
        )  # fmt: skip
    except connection.errors as error:
        for link in links:
            link._lose(error)
        return
    for key, entries in found or ():
        by_key[key]._take_entries(">", [[key, entries]])


def _taken(account: Account) -> bytes:
    return pack([account.last, account.stored, account.discarded])
