"""A distributed run on a Ray cluster. The workers are actors of Ray. If a node is lost, Ray restarts its actors on
other nodes. The trainer runs on the machine of the command."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import pathlib
import signal
import socket
import sys
import time
import uuid
from typing import Any, Callable

from rl_coach.installation import missing_package
from rl_coach.logger import screen
from rl_coach.orchestrators.distributed_settings import DistributedSettings, PodSettings, quantity
from rl_coach.orchestrators.local_orchestrator import ONE_THREAD, LocalOrchestrator
from rl_coach.orchestrators.private_directory import private_directory, write_secret
from rl_coach.orchestrators.run_order import ROLLOUT_PROGRAM, RunOrder
from rl_coach.orchestrators.watched_process import FAILED, LocalProcess, WatchedProcess
from rl_coach.utilities.stop_signals import SIGNALS, stop_signals
from rl_coach.utilities.system import handling
from rl_coach.utils import CoachError

_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_FOR_AN_ANSWER = 5.0
_SECONDS_TO_SAY_SO = 2.0
_FOR_EVER = -1


class RayOrchestrator(LocalOrchestrator):
    """Orchestrator with workers on the nodes of a Ray cluster. Trainer and Redis run on this machine, as in
    ``LocalOrchestrator``.

    :param order: the settings of the run; without the address of Redis if the run starts its own Redis. This Redis
        listens on this node's address in the cluster
    :param settings: the cluster's address, the resources of trainer and workers, and the time to wait for them
    :param keeps_logs: True writes the workers' output to the experiment's directory
    :raises CoachError: if Ray is not installed, no cluster responds, or the cluster has not enough free resources
    """

    def __init__(self, order: RunOrder, settings: DistributedSettings, keeps_logs: bool = False):
        self._ray = _import_ray()
        self._settings = settings
        self._bundle = _resources(settings.worker, default_cpus=1)  # the resources of each worker
        # undone if a later line of the constructor fails
        with contextlib.ExitStack() as undo:
            # Ray's own handlers of signals are replaced: they would end this process without a checkpoint
            with handling(SIGNALS, stop_signals.ask):
                self._connect()
            undo.callback(self._ray.shutdown)
            self._room = self._reserve(order.num_workers)
            gpus = self._reserve_for_trainer()
            super().__init__(order, keeps_logs, self._ray.util.get_node_ip_address())
            self._actors: list[_ActorProcess] = []
            undo.callback(self._let_actors_leave)
            self._trainer_environment = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))} if gpus else {}
            # the constructor has succeeded, so the cleanup runs at the end of the run
            self._cleanup.push(undo.pop_all())

    def _connect(self) -> None:
        address = self._settings.ray_address
        try:
            if address != "auto":  # check the address first: Ray would try to connect for minutes
                host, _, port = address.rpartition(":")
                socket.create_connection((host, int(port)), _SECONDS_FOR_AN_ANSWER).close()
            self._ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError) as error:
            raise CoachError(
                f"[coach] ray_address = {address}: no Ray cluster answers ({' '.join(str(error).split())[:200]}); "
                "start one with: ray start --head"
            ) from error

    def _reserve(self, num_workers: int) -> Any:
        """Reserve the resources of all workers. :return: the placement group of Ray"""
        bundle = self._bundle
        # Use different nodes if possible, so that the loss of a node stops few workers.
        group = self._ray.util.placement_group([bundle] * num_workers, strategy="SPREAD")
        self._wait_for(group.ready(), f"the workers ({num_workers}, of {_in_words(bundle)} each)")
        return group

    def _reserve_for_trainer(self) -> list[Any]:
        """Reserve the resources of [trainer] on this node, with an actor. :return: the numbers of the GPUs"""
        bundle = _resources(self._settings.trainer, default_cpus=0)
        if not bundle:
            return []
        here = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            self._ray.get_runtime_context().get_node_id(), soft=False
        )
        # Ray ends an actor, and frees its resources, when no handle of it is left.
        self._held = self._ray.remote(_Reservation).options(**_options(bundle), scheduling_strategy=here).remote()
        return self._wait_for(self._held.gpus.remote(), f"the trainer, which asks for {_in_words(bundle)} on this node")

    def _wait_for(self, answer: Any, what: str) -> Any:
        seconds = self._settings.start_seconds
        deadline, is_said = time.monotonic() + seconds, False
        while not self._ray.wait([answer], timeout=_SECONDS_BETWEEN_LOOKS)[0]:
            stop_signals.stop_if_asked()
            left = deadline - time.monotonic()
            if not is_said and left < seconds - _SECONDS_TO_SAY_SO:
                screen.log(f"waiting for room for {what} in the Ray cluster, {seconds} s at most")
                is_said = True
            if left < 0:
                free = _in_words(self._ray.available_resources())
                raise CoachError(
                    f"the Ray cluster has no room for {what}: it has {free or 'nothing'} free; "
                    f"waited for {seconds} s (start_seconds)"
                )
        return self._ray.get(answer)

    def _worker(self, name: str, order: pathlib.Path) -> WatchedProcess:
        run = RunOrder.read(order)
        place = self._ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(self._room, len(self._workers))
        # If an actor is lost before it responds to a call, Ray repeats the call with the restarted actor. Without
        # retries, `look` would raise an error after each loss of a node.
        actor = self._ray.remote(_Worker).options(
            name=f"coach-{run.run}-{name}", scheduling_strategy=place, max_restarts=_FOR_EVER,
            max_task_retries=_FOR_EVER, **_options(self._bundle),
        )  # fmt: skip
        arguments = (name, run, run.password(), os.getcwd(), os.environ.get("PYTHONPATH", ""))
        self._actors.append(_ActorProcess(name, lambda: actor.remote(*arguments), self._ray))
        return self._actors[-1]

    def _let_actors_leave(self) -> None:
        """Let the actors remove their files on their nodes."""
        answers = [answer for one in self._actors if (answer := one.leave()) is not None]
        if answers:
            self._ray.wait(answers, num_returns=len(answers), timeout=_SECONDS_FOR_AN_ANSWER)


class _ActorProcess(WatchedProcess):
    """The process of a worker, which an actor starts on a node of the cluster.

    Requests to the actor are asynchronous. If its node is lost, there is no response until Ray has restarted the actor
    on another node.

    :param name: the worker's name
    :param make_actor: makes the actor, which starts the process at once
    :param ray: the module ``ray``
    """

    def __init__(self, name: str, make_actor: Callable[[], Any], ray: Any):
        super().__init__(name)
        self._make_actor, self._ray = make_actor, ray
        self._actor: Any = None
        self._question: Any = None
        self._code: int | None = None
        self._life = self._why_dead = ""

    def _start(self) -> None:
        self._code, self._question = None, None
        if self._actor is None:
            self._actor, self._life = self._make_actor(), ""
        else:
            self._actor.start.remote()

    @property
    def code(self) -> int | None:
        if self._code is None and self._actor is not None:
            self._look()
        return self._code

    def _look(self) -> None:
        if self._question is None:
            self._question = self._actor.look.remote()
        # Do not wait for the response, because a lost node does not respond.
        if not self._ray.wait([self._question], timeout=0)[0]:
            return
        question, self._question = self._question, None
        try:
            life, node, self._code = self._ray.get(question)
        except self._ray.exceptions.RayError as error:
            # the actor could not be created; Ray itself restarts an actor after the loss of its node or process
            self._code, self._actor, self._why_dead = FAILED, None, _last_line(error)
            return
        if self._life and life != self._life:
            screen.warning(f"{self.name} was lost with its node or its actor: Ray has restarted it on {node}")
        self._life = life

    def signal(self, number: int) -> None:
        if self._actor is not None:
            self._actor.signal.remote(number)

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.code is None and self._actor is not None:
            if time.monotonic() >= deadline:
                self.signal(signal.SIGKILL)
                return
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def leave(self) -> Any:
        """Let the actor remove its directory. :return: Ray's reference to the answer; None without an actor"""
        return None if self._actor is None else self._actor.leave.remote()

    def log(self) -> str:
        if self._actor is None:
            return self._why_dead
        try:
            return self._ray.get(self._actor.log.remote(), timeout=_SECONDS_FOR_AN_ANSWER)
        except self._ray.exceptions.RayError as error:
            return f"its output is lost: {_last_line(error)}"


class _Worker:
    """The actor: runs the process of a worker on the node that Ray has selected. The process ends with the actor.

    If Ray restarts the actor on another node, Ray calls the constructor there, which starts the process again.

    :param name: the worker's name
    :param order: the settings of the run
    :param password: the password of Redis; None without a password
    :param directory: the working directory, if it exists on this node
    :param python_path: value of PYTHONPATH
    """

    def __init__(self, name: str, order: RunOrder, password: str | None, directory: str, python_path: str):
        # Ray treats a restarted actor as the same actor. Only this id shows that the constructor has run again.
        self._life = uuid.uuid4().hex
        self._cleanup = contextlib.ExitStack()
        place = self._cleanup.enter_context(private_directory())
        if os.path.isdir(directory):
            os.chdir(directory)
        if password is not None:
            write_secret(place / "password", password)
            # The files with the password and the order are on the trainer's node. This node gets copies.
            order = dataclasses.replace(order, redis_password_file=str(place / "password"))
        order.write(place / "order.json")
        command = [sys.executable, "-m", ROLLOUT_PROGRAM, "--order", str(place / "order.json"), "--name", name]
        environment = {**ONE_THREAD, "PYTHONPATH": python_path}
        self._process = LocalProcess(name, command, place / "log", environment)
        self._process.start()

    def start(self) -> None:
        self._process.start()

    def look(self) -> tuple[str, str, int | None]:
        """The state of the process.

        :return: the id of this start of the actor, the address of its node, and the exit code of the process (None
            while it runs)
        """
        import ray

        return self._life, ray.util.get_node_ip_address(), self._process.code

    def signal(self, number: int) -> None:
        self._process.signal(number)

    def log(self) -> str:
        return self._process.log()

    def leave(self) -> None:
        self._cleanup.close()


class _Reservation:
    """An actor that only reserves resources."""

    def gpus(self) -> list[Any]:
        import ray

        return ray.get_gpu_ids()


def _import_ray() -> Any:
    try:
        import ray
        import ray.util.scheduling_strategies
    except ModuleNotFoundError as error:
        raise CoachError(f"orchestrator = ray: {missing_package(error)}") from error
    return ray


def _resources(wanted: PodSettings, default_cpus: float) -> dict[str, float]:
    """Resources that a process reserves, by Ray's names; memory in bytes."""
    found = {
        "CPU": float(quantity(wanted.cpu)) if wanted.cpu else default_cpus,
        "GPU": float(wanted.gpus),
        "memory": float(quantity(wanted.memory)) if wanted.memory else 0.0,
    }
    return {name: amount for name, amount in found.items() if amount}


def _options(bundle: dict[str, float]) -> dict[str, float]:
    return {"num_cpus": bundle.get("CPU", 0), "num_gpus": bundle.get("GPU", 0), "memory": bundle.get("memory", 0)}


def _in_words(resources: dict[str, float]) -> str:
    named = {name: resources[name] for name in ("CPU", "GPU") if resources.get(name)}
    words = [f"{amount:g} {name}" for name, amount in named.items()]
    if resources.get("memory"):
        words.append(f"{resources['memory'] / 2**30:.1f} GiB of memory")
    return ", ".join(words)


def _last_line(error: Exception) -> str:
    return next((line.strip() for line in reversed(str(error).split("\n")) if line.strip()), type(error).__name__)
