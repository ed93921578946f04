"""Both ends of a stream of experience in Redis: workers send, the trainer receives.

Only the trainer writes ``state`` and ``taken``. Redis may lose everything at any time: the trainer writes its keys
again, and workers send again all chunks that were not acknowledged.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from rl_coach.core_types import PlayUnit, RunPhase
from rl_coach.memories.backend.connection import Connection, Keys, reason_of
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
from rl_coach.utilities.sound_values import is_count, is_finite, is_text

MOST_ENTRIES_AT_ONCE = 8
_KEYS_AT_ONCE = 1000
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
    :param resend: when this or the incarnation changes, workers send all unacknowledged chunks again
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
    def read(cls, document: bytes | None) -> RunState | None:
        """The state in a document; None if it holds none, whoever wrote it."""
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
    """The receipt of a sender; None if the document is not a receipt."""
    try:
        last, stored, discarded = unpack(document)
    except UNREADABLE:
        return None
    return Account(last, stored, discarded) if all(map(is_count, (last, stored, discarded))) else None


def stored_by_sender(connection: Connection, run: str) -> dict[str, int] | None:
    """The steps in the trainer's memory, by sender, of all streams of a run; None if there is no Redis.

    It searches all keys of Redis for the streams, so call it seldom.
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
    """A worker's end.

    :param connection: to Redis
    :param run: the run's id
    :param name: the worker's
    :param life: tells this start of the worker from others
    :param window: chunks that may be on their way
    :param agent: the agent whose stream it is; empty for the only one of a run
    """

    def __init__(self, connection: Connection, run: str, name: str, life: str, window: int, agent: str = ""):
        self.sender = f"{name}.{life}"
        self.outbox = Outbox(window)
        self._connection = connection
        self._keys = Keys(run, agent)
        self._name = name
        self._times_connected = connection.times_connected
        self._asked: tuple[int, int] | None = None  # the trainer's last request to send again

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
            receipt = _read_taken(taken)
            if receipt is None:
                self.outbox.send_again()  # the trainer writes a receipt anew for what it has taken already
            else:
                self.outbox.acknowledge(receipt.last)
        found = RunState.read(state)
        if found is None:
            return None
        # A new trainer begins to count its requests anew, and may not have what the one before it has taken.
        if (found.incarnation, found.resend) != self._asked:
            self.outbox.send_again()
            self._asked = (found.incarnation, found.resend)
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
    :param agent: the agent whose stream it is; empty for the only one of a run

    :ivar state: the instructions to the workers
    :ivar trouble: why there is no Redis now; empty if it answered the last time
    :ivar is_superseded: another trainer has taken over the run
    :ivar times_restored: how often the trainer wrote its keys into a Redis that did not know the run; once at the start
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
        except self._connection.errors as error:
            self._lose(error)
            return False
        self.trouble = ""
        return True

    def push_if_due(self) -> None:
        """Push if the last push was some time ago, so that chunks of a stream come while others have chunks too."""
        if time.monotonic() >= self._push_at:
            self.push()

    def wait(self) -> None:
        """Fetch chunks, and wait for them for a moment."""
        wait_for_chunks([self])

    def _lose(self, error: BaseException) -> None:
        """Redis is gone, refuses, or has forgotten everything. What was fetched and not decided on comes again."""
        if not self.trouble:
            self._lost_at = time.monotonic()
        self.trouble = reason_of(error)
        # Entries that were fetched but not acknowledged stay pending in the group, so they are read again from the
        # group's start; if Redis was emptied, the workers send them again.
        self._is_group_due = self._reads_pending = True
        self._entries.clear()

    @property
    def seconds_lost(self) -> float:
        """Seconds without Redis so far; 0 while it answers."""
        return time.monotonic() - self._lost_at if self.trouble else 0.0

    def _put_everything_back(self) -> None:
        client, keys = self._connection.client, self._keys
        # Something else under a key of the run would be an error at each push.
        for key, kind in ((keys.experience, b"stream"), (keys.taken, b"hash")):
            if client.type(key) not in (kind, b"none"):
                client.unlink(key)
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
        # Exactly what the ledger holds, which may be that of a checkpoint: a worker that came later has receipts of
        # chunks that nobody has any more, and sends those again that it still has.
        pipeline = client.pipeline(transaction=True)
        pipeline.delete(keys.taken)
        if self.ledger.accounts:
            pipeline.hset(keys.taken, mapping={name: _taken(one) for name, one in self.ledger.accounts.items()})
        pipeline.execute()

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

    def _read(self, client: Any, position: str) -> Any:
        """Fetch entries. :param client: a pipeline, which answers later"""
        keys = self._keys
        return client.xreadgroup(keys.GROUP, keys.GROUP, {keys.experience: position}, count=MOST_ENTRIES_AT_ONCE)

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
        state = self._state_in_redis()
        return 0 if state is None else state.incarnation

    def look_for_others(self) -> None:
        """Find out whether another trainer has taken over the run. It goes on saying so; a false state is overwritten
        once and does not come back."""
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
        """The reports of those workers that have left one of late."""
        if not names or self.trouble:
            return {}
        try:
            found = self._connection.client.mget([self._keys.worker(name) for name in names])
        except self._connection.errors:
            return {}
        read = {name: read_document(document, _REPORT) for name, document in zip(names, found)}
        return {name: report for name, report in read.items() if report is not None}

    def forget_run(self, seconds: int) -> None:
        """Let Redis forget all of the run after a while, in which workers still hear that it is over. A Redis that is
        gone forgets by itself."""
        client, keys = self._connection.client, self._keys
        with contextlib.suppress(*self._connection.errors):
            # emptied, not removed: a worker that has not heard yet would make it anew, to stay for ever
            client.xtrim(keys.experience, maxlen=0, approximate=False)
            for key in (keys.experience, keys.state, keys.taken):
                client.expire(key, seconds)


def wait_for_chunks(links: Sequence[TrainerLink]) -> None:
    """Fetch chunks, and wait for a moment until one comes.

    :param links: the ends of the streams of one run
    """
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
