"""Distributed runs on CartPole that takes 10 ms a step, their processes started as an orchestrator starts them."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import time
from typing import Callable

from benchmarks.measured import BenchmarkError
from rl_coach.memories.backend.connection import Connection, Keys
from rl_coach.memories.backend.streams import RunState
from rl_coach.memories.backend.wire import unpack
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis
from rl_coach.orchestrators.run_order import ROLLOUT_PROGRAM, TRAINING_PROGRAM, RunOrder

RUN = "benchmark"
LEVEL = f"{pathlib.Path(__file__).with_name('asynchronous.py')}:SlowCartPole"
WITHOUT_END = (
    f"env_params.level='{LEVEL}'; heatup_steps=EnvironmentSteps(0); evaluation_steps=EnvironmentEpisodes(0); "
    "improve_steps=EnvironmentSteps(10**9)"
)
PPO_STEPS = 512  # played with one policy
WARM_UP = 2 * PPO_STEPS + 32  # steps, in which updates are compiled
ARGUMENTS = {
    "dqn": ["-p", "CartPole_DQN", "-cp", WITHOUT_END],
    "ppo": [
        "-p", "CartPole_ClippedPPO", "-cp",
        f"{WITHOUT_END}; agent_params.algorithm.num_consecutive_playing_steps=EnvironmentSteps({PPO_STEPS})",
    ],
}  # fmt: skip
PATIENCE = 120.0  # seconds, for anything that is waited for
SETTINGS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


class SlowRun:
    """A trainer, its workers and a redis-server; the block's end ends them.

    :param directory: where everything is written
    :param algorithm: of ``ARGUMENTS``
    :param workers: number of workers

    :ivar workers: the processes of workers by name
    """

    def __init__(self, directory: pathlib.Path, algorithm: str, workers: int):
        self._directory = directory
        self._redis = EmbeddedRedis(directory)
        self._redis.start()
        order = RunOrder(
            RUN, [*ARGUMENTS[algorithm], "--nocolor"], self._redis.url, workers, str(directory / "experiment"),
            str(self._redis.password_file),
        )  # fmt: skip
        self._order = directory / "order.json"
        order.write(self._order)
        self._connection = Connection(self._redis.url, self._redis.password)
        self._connection.check(PATIENCE)
        self._trainer = self._start(TRAINING_PROGRAM)
        self.workers: dict[str, subprocess.Popen] = {}
        for index in range(workers):
            self.start_worker(f"worker-{index}")

    def __enter__(self) -> SlowRun:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
        self._connection.close()
        self._redis.stop()

    def start_worker(self, name: str) -> None:
        """Start one more worker."""
        self.workers[name] = self._start(ROLLOUT_PROGRAM, "--name", name)

    @property
    def _processes(self) -> list[subprocess.Popen]:
        return [self._trainer, *self.workers.values()]

    def _start(self, program: str, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", program, "--order", str(self._order), *arguments]
        with open(self._directory / "output.txt", "ab") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, env=self._environment())

    def _environment(self) -> dict[str, str]:
        """Modules are compiled once, as in what pip installs."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**inherited, **SETTINGS, "PYTHONPYCACHEPREFIX": str(self._directory / "compiled")}

    def stored(self) -> dict[str, int]:
        """Steps of each worker that the trainer has stored."""
        taken = self._connection.client.hgetall(Keys(RUN).taken)
        return {sender.decode().partition(".")[0]: unpack(account)[1] for sender, account in taken.items()}

    def stored_in_all(self) -> int:
        """Steps that the trainer has stored."""
        return sum(self.stored().values())

    def wait_for(self, *workers: str) -> None:
        """Wait until steps of all these workers have been stored."""
        self._wait_until(lambda: all(self.stored().get(worker) for worker in workers))

    def wait_for_learning(self) -> None:
        """Wait until all workers play and updates have been compiled."""
        self.wait_for(*self.workers)
        self._wait_until(lambda: self.stored_in_all() > WARM_UP)

    def wait_for_policy(self) -> None:
        """Wait for the next policy of the trainer."""
        before = self._version()
        self._wait_until(lambda: self._version() != before)

    def _version(self) -> int:
        return RunState.read(self._connection.client.get(Keys(RUN).state)).version

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        """
        :raises BenchmarkError: a process of the run has ended, or it has not come about in time
        """
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if any(process.poll() is not None for process in self._processes) or time.monotonic() > deadline:
                raise BenchmarkError((self._directory / "output.txt").read_text(errors="replace")[-2000:])
            time.sleep(0.005)


def steps_per_second(directory: pathlib.Path, algorithm: str, workers: int, seconds: float) -> float:
    """Steps of all workers that the trainer stores, and learns from meanwhile.

    They are counted from one policy to another, once all workers play and updates are compiled: what the trainer has
    stored of a policy's steps before it has all of them comes in pieces of up to a second.

    :param seconds: for which they are counted, at least
    """
    with SlowRun(directory, algorithm, workers) as run:
        run.wait_for_learning()
        run.wait_for_policy()
        began, before = time.perf_counter(), run.stored_in_all()
        time.sleep(seconds)
        run.wait_for_policy()
        return (run.stored_in_all() - before) / (time.perf_counter() - began)


def seconds_to_first_step(run: SlowRun, name: str) -> float:
    """Time from the start of one more worker to the moment that the trainer has stored what it played first.

    That is later than its first step by what a chunk waits for company, a tenth of a second.
    """
    began = time.perf_counter()
    run.start_worker(name)
    run.wait_for(name)
    return time.perf_counter() - began


def megabytes(process: subprocess.Popen) -> tuple[float, float]:
    """Resident set of a process, and its proportional one, in which pages that processes share count for a part."""
    lines = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    kilobytes = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
    return kilobytes["Rss:"] / 1024, kilobytes["Pss:"] / 1024
