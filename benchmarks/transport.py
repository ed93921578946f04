"""Measures the transport of transitions from one process to the replay memory of another process, in three ways: the
method of Coach 1.0.1, chunks, and bare streams.

A separate process sends the same transitions again and again, as fast as possible. No agent plays. The receiver stores
the transitions in a replay memory. With bare streams, the receiver only counts the transitions, and does not decode
their bytes.
"""

from __future__ import annotations

import multiprocessing
import pickle
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Any, Callable, Iterator

from benchmarks.measured import BenchmarkError
from benchmarks.memory import as_transition, frame_steps, vector_steps
from rl_coach.agents.core.transport import played_in
from rl_coach.core_types import Batch, Transition
from rl_coach.memories.backend.connection import Connection
from rl_coach.memories.backend.ledger import Ledger
from rl_coach.memories.backend.streams import MOST_ENTRIES_AT_ONCE, TrainerLink, WorkerLink
from rl_coach.memories.backend.wire import Chunk, EncodedChunk
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.memories.outgoing import OutgoingMemory
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis

RUN, CHANNEL, BARE_STREAM, BARE_GROUP = "benchmark", "transitions", "bare", "readers"
WINDOW = 4  # the largest number of chunks that are not confirmed, as in an asynchronous run
CAPACITY = 20_000
WARM_UP = 0.5  # seconds
PATIENCE = 10.0  # seconds to wait for the first answer of Redis

Source = tuple[str, str]
"""The address and the password of a redis-server."""


@dataclass(frozen=True)
class Way:
    """A way to send transitions to a replay memory.

    :param send: a function that sends until the event is set
    :param receive: a function that yields the number of transitions that were stored since the previous number
    """

    send: Callable[[Source, str, int, Event], None]
    receive: Callable[[Connection], Iterator[int]]


def transitions(kind: str, count: int) -> list[Transition]:
    """Transitions to send. :param kind: ``vectors``: CartPole's sizes; ``frames``: stacks of four frames of 84x84"""
    return [as_transition(step) for step in (vector_steps(count) if kind == "vectors" else frame_steps(count, -1))]


def columns(kind: str, rows: int) -> Batch:
    """The columns of a chunk, from the memory of a worker."""
    memory = OutgoingMemory((MemoryGranularity.Episodes, 0), traits={"stores_episodes": False})
    for transition in transitions(kind, rows):
        memory.store(transition)
    chunk, _ = memory.take()
    assert chunk is not None
    return chunk


def _connect(source: Source) -> Connection:
    connection = Connection(*source)
    connection.check(PATIENCE)
    return connection


# Coach 1.0.1: each transition is pickled, published, unpickled and stored


def publish_pickles(source: Source, kind: str, rows: int, ends: Event) -> None:
    client = _connect(source).client
    played = transitions(kind, 1000)
    while not ends.is_set():
        for transition in played:
            client.publish(CHANNEL, pickle.dumps(transition))


def receive_pickles(connection: Connection) -> Iterator[int]:
    memory = ExperienceReplay((MemoryGranularity.Transitions, CAPACITY))
    subscription = connection.client.pubsub()
    subscription.subscribe(CHANNEL)
    while True:
        message = subscription.get_message(ignore_subscribe_messages=True, timeout=1.0)
        if message is not None:
            memory.store(pickle.loads(message["data"]))
        yield int(message is not None)


# Chunks, sent and received by the classes of distributed runs


def send_chunks(source: Source, kind: str, rows: int, ends: Event) -> None:
    link = WorkerLink(_connect(source), RUN, "worker-0", "1", WINDOW)
    played, outbox = columns(kind, rows), link.outbox
    while not ends.is_set():
        while not outbox.is_full:
            number = outbox.next_number
            outbox.add(EncodedChunk(Chunk(RUN, link.sender, number, number, (1, 1), 0, rows, [], played)))
        link.exchange()


def receive_chunks(connection: Connection) -> Iterator[int]:
    memory = ExperienceReplay((MemoryGranularity.Transitions, CAPACITY))
    link = TrainerLink(connection, RUN, Ledger())
    link.say(incarnation=1, version=1)
    link.push()
    while True:
        found = link.next()
        if found is None:
            if not link.has_entries:
                link.wait()
            yield 0
            continue
        played = played_in(found[1])
        assert played.columns is not None
        memory.store_columns(played.columns)
        link.acknowledge(*found, is_stored=True)
        link.push_soon()
        yield played.steps


# Bare streams: the bytes of the same chunks, which are not decoded


def send_bare(source: Source, kind: str, rows: int, ends: Event) -> None:
    client = _connect(source).client
    fields = EncodedChunk(Chunk(RUN, "worker-0.1", 1, 1, (1, 1), 0, rows, [], columns(kind, rows))).fields(1)
    waiting = 0
    while not ends.is_set():
        pipeline = client.pipeline(transaction=False)
        for _ in range(WINDOW - waiting):
            pipeline.xadd(BARE_STREAM, {**fields, b"rows": rows})
        pipeline.xlen(BARE_STREAM)
        waiting = min(WINDOW, pipeline.execute()[-1])


def receive_bare(connection: Connection) -> Iterator[int]:
    client = connection.client
    client.xgroup_create(BARE_STREAM, BARE_GROUP, id="0", mkstream=True)
    taken: list[bytes] = []
    while True:
        pipeline = client.pipeline(transaction=False)
        if taken:
            pipeline.xack(BARE_STREAM, BARE_GROUP, *taken)
            pipeline.xdel(BARE_STREAM, *taken)
        pipeline.xreadgroup(BARE_GROUP, "reader", {BARE_STREAM: ">"}, count=MOST_ENTRIES_AT_ONCE)
        answer = pipeline.execute()[-1]
        entries = answer[0][1] if answer else []
        taken = [entry for entry, _ in entries]
        yield sum(int(fields[b"rows"]) for _, fields in entries)


PICKLES = Way(publish_pickles, receive_pickles)
CHUNKS = Way(send_chunks, receive_chunks)
BARE = Way(send_bare, receive_bare)


def rate(way: Way, kind: str, rows: int, seconds: float) -> float:
    """Transitions per second from one sender to one replay memory, over a new redis-server.

    :param rows: transitions in a chunk
    :param seconds: duration of the measurement
    """
    with tempfile.TemporaryDirectory() as directory:
        redis = EmbeddedRedis(directory)
        redis.start()
        try:
            return _rate(way, (redis.url, redis.password), kind, rows, seconds)
        finally:
            redis.stop()


def _rate(way: Way, source: Source, kind: str, rows: int, seconds: float) -> float:
    context = multiprocessing.get_context("spawn")
    ends = context.Event()
    connection = _connect(source)
    sender: Any = context.Process(target=way.send, args=(source, kind, rows, ends), daemon=True)
    arriving = way.receive(connection)
    sender.start()
    try:
        _wait_for_first(arriving, sender)
        _count(arriving, WARM_UP)
        return _count(arriving, seconds)
    finally:
        ends.set()
        sender.join(2.0)
        sender.kill()
        connection.close()


def _wait_for_first(arriving: Iterator[int], sender: Any) -> None:
    while not next(arriving):
        if not sender.is_alive():
            raise BenchmarkError("the process that sends has ended")


def _count(arriving: Iterator[int], seconds: float) -> float:
    """Transitions per second, measured for ``seconds``."""
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        count += next(arriving)
    return count / (time.perf_counter() - began)


def gathering_rate(kind: str, rows: int, seconds: float) -> float:
    """Transitions per second that a worker can store in its memory and encode as chunks, without sending."""
    played = transitions(kind, rows)
    memory = OutgoingMemory((MemoryGranularity.Episodes, 0), traits={"stores_episodes": False})
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for transition in played:
            memory.store(transition)
        EncodedChunk(Chunk(RUN, "worker-0.1", 1, 1, (1, 1), 0, rows, [], memory.take()[0]))
        count += rows
    return count / (time.perf_counter() - began)
