"""Distributed runs on CartPole with steps of 10 ms. Their processes are started as by an orchestrator."""

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
PPO_STEPS = 512  # steps that PPO plays with one policy
WARM_UP = 2 * PPO_STEPS + 32  # steps that are not measured: updates are compiled in them
ARGUMENTS = {
    "dqn": ["-p", "CartPole_DQN", "-cp", WITHOUT_END],
    "ppo": [
        "-p", "CartPole_ClippedPPO", "-cp",
        f"{WITHOUT_END}; agent_params.algorithm.num_consecutive_playing_steps=EnvironmentSteps({PPO_STEPS})",
    ],
}  # fmt: skip
PATIENCE = 120.0  # the longest time to wait, in seconds
SETTINGS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


class SlowRun:
    """A trainer, its workers and a redis-server, for use in ``with``. All processes end with the block.

    :param directory: the directory for all files
    :param algorithm: a key of ``ARGUMENTS``
    :param workers: number of workers

    :ivar workers: the processes of the workers, by their names
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
        """Start another worker with this name."""
        self.workers[name] = self._start(ROLLOUT_PROGRAM, "--name", name)

    @property
    def _processes(self) -> list[subprocess.Popen]:
        return [self._trainer, *self.workers.values()]

    def _start(self, program: str, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", program, "--order", str(self._order), *arguments]
        with open(self._directory / "output.txt", "ab") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, env=self._environment())

    def _environment(self) -> dict[str, str]:
        """Environment variables of the processes. Python compiles each module once, as in an installed package."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**inherited, **SETTINGS, "PYTHONPYCACHEPREFIX": str(self._directory / "compiled")}

    def stored(self) -> dict[str, int]:
        """Number of steps that the trainer has stored, by the name of the worker."""
        taken = self._connection.client.hgetall(Keys(RUN).taken)
        return {sender.decode().partition(".")[0]: unpack(account)[1] for sender, account in taken.items()}

    def stored_in_all(self) -> int:
        """Number of steps that the trainer has stored, the sum over all workers."""
        return sum(self.stored().values())

    def wait_for(self, *workers: str) -> None:
        """Wait until the trainer has stored steps of each of these workers."""
        self._wait_until(lambda: all(self.stored().get(worker) for worker in workers))

    def wait_for_learning(self) -> None:
        """Wait until all workers play and the updates are compiled."""
        self.wait_for(*self.workers)
        self._wait_until(lambda: self.stored_in_all() > WARM_UP)

    def wait_for_policy(self) -> None:
        """Wait until the trainer publishes another policy."""
        before = self._version()
        self._wait_until(lambda: self._version() != before)

    def _version(self) -> int:
        return RunState.read(self._connection.client.get(Keys(RUN).state)).version

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition.

        :raises BenchmarkError: if a process of the run has ended, or the condition is not true after ``PATIENCE``
            seconds
        """
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if any(process.poll() is not None for process in self._processes) or time.monotonic() > deadline:
                raise BenchmarkError((self._directory / "output.txt").read_text(errors="replace")[-2000:])
            time.sleep(0.005)


def steps_per_second(directory: pathlib.Path, algorithm: str, workers: int, seconds: float) -> float:
    """Steps per second that the trainer stores from all workers while it also learns.

    The measurement begins and ends when the trainer publishes a policy, because between two policies the steps arrive
    in large pieces. It begins after all workers play and the updates are compiled.

    :param seconds: the shortest duration of the measurement
    """
    with SlowRun(directory, algorithm, workers) as run:
        run.wait_for_learning()
        run.wait_for_policy()
        began, before = time.perf_counter(), run.stored_in_all()
        time.sleep(seconds)
        run.wait_for_policy()
        return (run.stored_in_all() - before) / (time.perf_counter() - began)


def seconds_to_first_step(run: SlowRun, name: str) -> float:
    """Seconds from the start of another worker until the trainer has stored its first steps.

    The first step itself is earlier, because a worker collects steps for a tenth of a second before it sends a chunk.
    """
    began = time.perf_counter()
    run.start_worker(name)
    run.wait_for(name)
    return time.perf_counter() - began


def megabytes(process: subprocess.Popen) -> tuple[float, float]:
    """Resident set size (RSS) and proportional set size (PSS) of a process, in MB. In the PSS, a page that n processes
    share counts for 1/n.
    """
    lines = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    kilobytes = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
    return kilobytes["Rss:"] / 1024, kilobytes["Pss:"] / 1024
