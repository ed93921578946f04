"""Distributed runs with real processes and a real redis-server, to be watched and hurt."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from rl_coach.memories.backend.connection import Connection, Keys
from rl_coach.memories.backend.wire import UNREADABLE, unpack
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis
from rl_coach.orchestrators.run_order import Limits, RunOrder

ROOT = pathlib.Path(__file__).parents[2]
TOO_LONG = 900  # seconds, for anything that a test waits for: only a run that hangs needs so many
PROGRAM = (
    "import sys; from rl_coach.coach import exit_code_of; "
    "from rl_coach.orchestrators.local_orchestrator import LocalOrchestrator; "
    "from rl_coach.orchestrators.run_order import RunOrder; "
    "sys.exit(exit_code_of(lambda: LocalOrchestrator(RunOrder.read(sys.argv[1]), keeps_logs=True).run()))"
)
SMALL = (
    "agent_params.network_wrappers['main'].batch_size=8; agent_params.memory.max_size=(MemoryGranularity.Transitions,"
    " 5000); heatup_steps=EnvironmentSteps(50); evaluation_steps=EnvironmentEpisodes(0); "
    "agent_params.network_wrappers['main'].middleware_parameters.scheme=MiddlewareScheme.Empty; "
    "improve_steps=EnvironmentSteps(10000000)"
)
SLOW_POLE = f"{pathlib.Path(__file__).parent / 'slow_pole.py'}:SlowPole"


def wait_until(condition, what, seconds=TOO_LONG):
    """Look until a condition holds. :return: its value"""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s in vain: {what}")


def _plain(document):
    """The numbers of a receipt, None where somebody has written something else."""
    try:
        numbers = unpack(document)
    except UNREADABLE:
        return None
    return numbers if isinstance(numbers, list) and len(numbers) == 3 else None


class DistributedRun:
    """A run whose Redis is the test's.

    :param directory: where everything is written
    :param arguments: of ``coach``, after the preset's
    :param agents: those that have streams of their own; one with an empty name has the only one
    :param program: what runs the order
    """

    def __init__(
        self, directory, *arguments, num_workers=2, redis=None, preset="CartPole_DQN", agents=("",), program=PROGRAM,
        **limits,
    ):  # fmt: skip
        self.directory = directory
        self.redis = redis or EmbeddedRedis(directory)
        if self.redis.process is None:
            self.redis.start()
        self.experiment = directory / "experiment"
        order = RunOrder(
            "test", ["-p", preset, *arguments], self.redis.url, num_workers, str(self.experiment),
            str(self.redis.password_file), limits=Limits(**limits),
        )  # fmt: skip
        self.order = dataclasses.replace(order, run="test")
        self.order.write(directory / "order.json")
        self.connection = Connection(self.redis.url, self.redis.password)
        self.connection.check(10)
        self.client, self.agents = self.connection.client, agents
        self.keys = Keys("test", agents[0])
        self.output = directory / "output.txt"
        settings = {"PYTHONPATH": f"{directory}:{ROOT}", "PYTHONUNBUFFERED": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        with open(self.output, "w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program, str(directory / "order.json")], stdout=output, stderr=output,
                cwd=directory, start_new_session=True, env={**os.environ, **settings},
            )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in [self.process.pid, *self.children().values()]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        self.redis.stop()

    def children(self):
        """The processes of the run by name."""
        found = {}
        for place in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                command = (place / "cmdline").read_text().split("\0")
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if str(self.directory) not in " ".join(command) and not self._is_of_run(place, command):
                continue
            if state == "Z":
                continue
            if "rl_coach.rollout_worker" in command:
                found[command[command.index("--name") + 1]] = int(place.name)
            elif "rl_coach.training_worker" in command:
                found["trainer"] = int(place.name)
        return found

    def _is_of_run(self, place, command):
        if "--order" not in command:
            return False
        # a path below /dev/fd names a file that this process has open
        path = command[command.index("--order") + 1].replace("/dev/fd", str(place / "fd"))
        try:
            plain = json.loads(pathlib.Path(path).read_text())
        except (OSError, ValueError):  # the process has gone, or another run's order is being written
            return False
        return plain["experiment_path"] == str(self.experiment)

    def taken(self):
        """[last, stored, discarded] by sender, as Redis knows them."""
        found = {name: _plain(value) for name, value in self.taken_documents().items()}
        return {name: numbers for name, numbers in found.items() if numbers is not None}

    def taken_documents(self):
        """The same by sender, as the bytes that Redis has."""
        try:
            return {name.decode(): value for name, value in self.client.hgetall(self.keys.taken).items()}
        except self.connection.errors:
            return {}

    def stored(self):
        """Steps in the trainer's memory, as Redis knows them."""
        return sum(stored for _, stored, _ in self.taken().values())

    def senders(self):
        """Those that something was stored of."""
        return {name for name, (_, stored, _) in self.taken().items() if stored}

    def wait_for_learning(self, steps=200, senders=None):
        """Wait until so much has been stored, of so many workers."""
        wanted = senders or self.order.num_workers
        wait_until(lambda: self.stored() >= steps and len(self.senders()) >= wanted, f"{steps} steps\n{self.text()}")

    def wait_for_more(self, steps=200):
        """Wait until so many more steps have been stored."""
        before = self.stored()
        wait_until(lambda: self.stored() >= before + steps, f"{steps} more than {before} steps\n{self.text()}")

    def kill(self, name, number=signal.SIGKILL):
        """Send a process of the run a signal. :return: its pid"""
        pid = self.children()[name]
        os.kill(pid, number)
        return pid

    def text(self):
        """What the run has said so far."""
        return self.output.read_text()

    def stop(self):
        """Press Ctrl-C. :return: the totals"""
        os.kill(self.process.pid, signal.SIGINT)
        code = self.process.wait(TOO_LONG)
        assert code == 130, (code, self.text())
        assert self.children() == {}, "nothing is left"
        return self.totals()

    def totals(self):
        """The trainer's totals."""
        return json.loads((self.experiment / "distributed.json").read_text())

    def acknowledged(self, agent=""):
        """Steps of an agent that each worker which ended by itself had a receipt of, by sender."""
        found, stream = {}, f":{agent}" if agent else ""
        for log in (self.experiment / "workers").glob("worker-*.log"):
            # its last life: one that was ended earlier may have missed its last receipt
            for name, steps in re.findall(rf"(\S+){stream}: (\d+) steps acknowledged", log.read_text())[-1:]:
                found[name] = int(steps)
        return found

    def check_totals(self, totals, gone_back=False):
        """The equations that hold however the run went.

        :param gone_back: a trainer died: what it had taken since its checkpoint is lost to learning
        """
        for agent in self.agents:
            self._check_totals_of(agent, totals["agents"][agent] if agent else totals, gone_back)

    def _check_totals_of(self, agent, totals, gone_back):
        assert totals["steps"] == totals["stored"]
        accounts = totals["workers"].values()
        assert totals["stored"] == sum(one["stored"] for one in accounts)
        acknowledged = self.acknowledged(agent)
        assert acknowledged, "a worker lived to the end"
        for sender, steps in acknowledged.items():
            account = totals["workers"].get(sender, {"stored": 0, "discarded": 0})
            known = account["stored"] + account["discarded"]
            assert steps >= known if gone_back else steps == known, (sender, steps, account)
