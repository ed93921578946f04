"""Computes how many rollout workers one trainer can serve: ``python -m benchmarks.scaling``.

A chunk is the transitions of one message. First, the script measures how long Redis and the trainer need for a chunk,
because all workers share them. The trainer reads, decodes and stores a chunk, and learns from it. These times are
processor times, so other work of the machine changes them little. Then the script simulates any number of workers with
these times. Each worker plays a chunk and sends it. It waits while four of its chunks are not confirmed. The network,
Redis and the trainer process one chunk after the other.
"""

from __future__ import annotations

import argparse
import collections
import heapq
import pathlib
import sys
import tempfile
import time
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from rich.console import Console
from rich.table import Table

from benchmarks.transport import CAPACITY, RUN, WINDOW, columns
from rl_coach.agents.core.transport import played_in
from rl_coach.coach import CoachInterface
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.memories.backend.connection import Connection
from rl_coach.memories.backend.ledger import Ledger
from rl_coach.memories.backend.streams import TrainerLink, WorkerLink
from rl_coach.memories.backend.wire import Chunk, EncodedChunk
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis

Framework = Literal["tensorflow", "jax"]
WORKERS = (1, 3, 10, 30, 100, 300, 1000)
FILE_WIDTH = 140  # width of the tables in characters if they are not printed on a terminal
PATIENCE = 10.0  # seconds to wait for the first answer of Redis
UPDATES, HEATUP = 200, 400
BUSY = 0.95  # a part that is busy for at least this share of the time is the limit


@dataclass(frozen=True)
class Experience:
    """The experience that workers send.

    :param kind: ``vectors``: observations of CartPole's size; ``frames``: stacks of four frames of 84x84
    :param rows: transitions in a chunk
    :param preset: the preset whose agent learns from the chunks
    :param level: the level of the preset; None for its default
    :param updates_per_row: updates for each transition
    """

    kind: str
    rows: int
    preset: str
    level: str | None
    updates_per_row: float


EXPERIENCES = (
    Experience("vectors", 32, "CartPole_DQN", None, 1.0),
    Experience("frames", 256, "Atari_DQN", "pong", 0.25),
)


@dataclass(frozen=True)
class Costs:
    """Seconds for one chunk in each part that all workers share."""

    network: float
    redis: float
    receiving: float
    storing: float
    learning: float

    @property
    def servers(self) -> dict[str, float]:
        """Seconds for one chunk in the network, in Redis and in the trainer. Each of them processes one chunk at a
        time.
        """
        return {"network": self.network, "Redis": self.redis, "trainer": self.receiving + self.storing + self.learning}


def measure(experience: Experience, chunks: int, network: float, framework: Framework) -> tuple[Costs, int]:
    """Measure the costs of a chunk.

    :param chunks: number of chunks that are sent
    :param network: speed of the network to Redis and from Redis, in bytes per second
    :return: the costs of a chunk, and its size in bytes
    """
    played = columns(experience.kind, experience.rows)
    with tempfile.TemporaryDirectory() as directory:
        redis = EmbeddedRedis(directory)
        redis.start()
        try:
            seconds = _transport(redis, played, experience.rows, chunks)
        finally:
            redis.stop()
    size = EncodedChunk(_chunk("worker-0.1", 1, experience.rows, played)).size
    learning = experience.rows * experience.updates_per_row * seconds_of_an_update(experience, framework)
    return Costs(size / network, *seconds, learning), size


def _transport(redis: EmbeddedRedis, played: Any, rows: int, chunks: int) -> tuple[float, float, float]:
    """Processor seconds of a chunk: in Redis, for reading and decoding in the trainer, and for storing in the memory of
    the trainer.
    """
    connection = Connection(redis.url, redis.password)
    connection.check(PATIENCE)
    assert redis.process is not None
    worker, trainer = WorkerLink(connection, RUN, "worker-0", "1", WINDOW), TrainerLink(connection, RUN, Ledger())
    memory = ExperienceReplay((MemoryGranularity.Transitions, CAPACITY))
    trainer.say(incarnation=1, version=1)
    trainer.push()
    receiving = storing = 0.0
    taken, before = 0, _cpu_seconds(redis.process.pid)
    while taken < chunks:
        while not worker.outbox.is_full:
            number = worker.outbox.next_number
            worker.outbox.add(EncodedChunk(_chunk(worker.sender, number, rows, played)))
        worker.exchange()
        began = time.process_time()
        trainer.push()
        while (found := trainer.next()) is not None:
            decoded = time.process_time()
            arrived = played_in(found[1]).columns
            assert arrived is not None
            memory.store_columns(arrived)
            stored = time.process_time()
            trainer.acknowledge(*found, is_stored=True)
            taken += 1
            receiving, storing = receiving + decoded - began, storing + stored - decoded
            began = stored
        trainer.push()
        receiving += time.process_time() - began
    return (_cpu_seconds(redis.process.pid) - before) / taken, receiving / taken, storing / taken


def _chunk(sender: str, number: int, rows: int, played: Any) -> Chunk:
    return Chunk(RUN, sender, number, number, (1, 1), 0, rows, [], played)


def _cpu_seconds(pid: int) -> float:
    """The processor time of a process so far, in seconds."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def seconds_of_an_update(experience: Experience, framework: Framework) -> float:
    """Seconds of one update of the preset. The agent makes many updates in one call, as in training."""
    settings = (
        f"heatup_steps=EnvironmentSteps({HEATUP}); improve_steps=EnvironmentSteps(4); "
        "evaluation_steps=EnvironmentEpisodes(0); agent_params.memory.max_size=(MemoryGranularity.Transitions, 2000)"
    )
    with tempfile.TemporaryDirectory() as directory:
        graph = CoachInterface(
            preset=experience.preset, level=experience.level, framework=framework, custom_parameter=settings,
            experiment_path=directory, seed=0, no_summary=True,
        ).run()  # fmt: skip
        assert isinstance(graph, BasicRLGraphManager)
        updates = graph.get_agent().update_loop
        float(updates.learn(UPDATES))  # the first call compiles

        began = time.perf_counter()
        float(updates.learn(UPDATES))
        return (time.perf_counter() - began) / UPDATES


def simulate(workers: int, seconds_of_a_chunk: float, costs: Costs, chunks: int = 20_000) -> tuple[float, str]:
    """Simulate workers.

    :param seconds_of_a_chunk: seconds in which a worker plays a chunk
    :param chunks: number of simulated chunks; only the second half is measured
    :return: chunks per second, and the part that is the limit: ``network``, ``Redis``, ``trainer`` or ``workers``
    """
    free = dict.fromkeys(costs.servers, 0.0)
    receipts = [collections.deque([0.0] * WINDOW, WINDOW) for _ in range(workers)]  # times of the last chunks
    # workers do not start together
    ready = [(seconds_of_a_chunk * (1 + index / workers), index) for index in range(workers)]
    heapq.heapify(ready)
    half = end = 0.0
    for number in range(chunks):
        sent, index = heapq.heappop(ready)
        end = sent
        for name, seconds in costs.servers.items():
            end = free[name] = max(end, free[name]) + seconds
        receipts[index].append(end)
        heapq.heappush(ready, (max(sent + seconds_of_a_chunk, receipts[index][0]), index))
        if number == chunks // 2:
            half = end
    rate = (chunks - 1 - chunks // 2) / (end - half)
    busiest, seconds = max(costs.servers.items(), key=lambda item: item[1])
    return rate, busiest if rate * seconds > BUSY else "workers"


def _show_costs(console: Console, measured: list[tuple[Experience, Costs, int]]) -> None:
    table = Table("a chunk of", "bytes", "network", "Redis", "trainer: reading", "storing", "learning", "most rows/s")
    for experience, costs, size in measured:
        most = experience.rows / max(costs.servers.values())
        shown = [f"{1e6 * getattr(costs, name.name):,.0f} us" for name in fields(costs)]
        table.add_row(f"{experience.rows} {experience.kind}", f"{size:,}", *shown, f"{most:,.0f}")
    console.print(table)


def _show_curve(console: Console, experience: Experience, costs: Costs, step: float) -> None:
    without = replace(costs, learning=0.0)
    table = Table("workers", f"rows/s ({experience.preset})", "limited by", "without updates", "limited by")
    for workers in WORKERS:
        row = [f"{workers:,}"]
        for one in (costs, without):
            rate, limit = simulate(workers, step * experience.rows, one)
            row += [f"{rate * experience.rows:,.0f}", limit]
        table.add_row(*row)
    console.print(f"{experience.kind}, {1000 * step:g} ms for a step of a worker")
    console.print(table)


def main() -> None:
    """Measure, simulate, and print tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=400, help="that are measured (default: %(default)s)")
    parser.add_argument("--step", type=float, default=10.0, help="of a worker, in milliseconds (default: %(default)s)")
    parser.add_argument("--gigabits", type=float, default=1.0, help="of the network a second (default: %(default)s)")
    parser.add_argument(
        "-f", "--framework", choices=get_args(Framework), default="jax", help="of the updates (default: %(default)s)"
    )
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else FILE_WIDTH)
    measured = [
        (one, *measure(one, options.chunks, options.gigabits * 1e9 / 8, options.framework)) for one in EXPERIENCES
    ]
    _show_costs(console, measured)
    for experience, costs, _ in measured:
        _show_curve(console, experience, costs, options.step / 1000)


if __name__ == "__main__":
    main()
