"""A rollout worker: a process that acts with the trainer's policies and sends its experience to the trainer.

``python -m rl_coach.rollout_worker --order FILE --name NAME`` runs a rollout worker. It imports no training framework.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import time
import uuid
from types import FrameType
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.episode import EpisodeReport
from rl_coach.agents.core.experience import EnvironmentProgress
from rl_coach.agents.core.transport import FILTERS, about_played
from rl_coach.architectures.blueprint import NetworkBlueprint
from rl_coach.base_parameters import Frameworks, TaskParameters, TaskRole
from rl_coach.checkpoint import CheckpointStateReader
from rl_coach.core_types import EnvironmentSteps, PlayUnit, RunPhase
from rl_coach.data_stores.data_store import DataStore, SyncFiles
from rl_coach.data_stores.data_store_impl import open_data_store
from rl_coach.graph_managers.graph_manager import GraphManager
from rl_coach.launcher import DONE, CoachLauncher, exit_code_of
from rl_coach.logger import screen
from rl_coach.memories.backend.connection import Connection, of_agent
from rl_coach.memories.backend.streams import RunState, WorkerLink
from rl_coach.memories.backend.wire import MOST_ROWS, UNREADABLE, Chunk, ChunkError, EncodedChunk, unpack
from rl_coach.memories.outgoing import OutgoingMemory, OutgoingMemoryParameters
from rl_coach.orchestrators.private_directory import private_directory
from rl_coach.orchestrators.run_order import Limits, RunOrder
from rl_coach.utilities.standard_streams import drop_lost_output
from rl_coach.utils import CoachError, TrainingError

GAVE_UP = 3
"""The exit code of a worker that received nothing from its trainer for too long."""
_PAUSE = 0.02  # longest time between two requests of a worker that waits, in seconds
_FIRST_PAUSE = 0.001  # the first pause in seconds; each next pause is 1.5 times as long
_SECONDS_OF_A_SHARE = 0.02  # the shortest time of acting for a chunk: without a limit, chunks would become ever smaller
_PATIENCE_WITH_OTHERS = 3  # wait for other workers 3 times as long as this worker needed for its segment
_ONE_STEP = EnvironmentSteps(1)
_REPORTS_UNTIL_EXPIRY = 10
_POLICY = {"networks", "filters", "exploration", "updates", "incarnation", "version"}


class Silence(Exception):
    """Raised if the worker has received nothing from the trainer for too long."""


class StopAsked(Exception):
    """Raised if a signal ends the worker before the end of the run. :param number: the number of the signal"""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


class Patience:
    """Raises ``Silence`` if the trainer's state does not change for too long.

    :param seconds: the longest time without a change
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._last: RunState | None = None
        self._heard_at = time.monotonic()

    def note(self, state: RunState | None) -> None:
        """Compare the trainer's state, None if none was received, with its last state.

        :raises Silence: if the state has not changed for too long
        """
        if state is not None and state != self._last:
            self._last, self._heard_at = state, time.monotonic()
        elif time.monotonic() - self._heard_at > self._seconds:
            raise Silence


class AgentAtWork:
    """An agent in a rollout worker: loads policies of the trainer, and sends the agent's experience in chunks.

    :param agent: the agent, with networks that only act and an ``OutgoingMemory``
    :param link: the worker's connection to the agent's stream of chunks in Redis
    :param store: the data store of the policies
    :param policy_document: the name of the agent's policy in the store
    :param plan: the agent's settings from the trainer's document ``blueprint``
    :param num_workers: number of workers that share the needed steps
    :param chunk_seconds: a chunk is sent after this time, even if it is small
    :ivar unsent: number of the agent's steps that are not in a chunk yet
    :ivar waited: seconds that the worker has waited since its last chunk
    :ivar environment: steps and ended episodes of the environment since the last chunk
    """

    def __init__(
        self,
        agent: Agent,
        link: WorkerLink,
        store: DataStore,
        policy_document: str,
        plan: dict[str, Any],
        num_workers: int,
        chunk_seconds: float,
    ):
        self.link = link
        self.unsent = 0
        self.waited = 0.0
        self.environment = EnvironmentProgress()
        self._agent, self._store, self._policy_document = agent, store, policy_document
        self._memory: OutgoingMemory = agent.memory
        self._reports: list[EpisodeReport] = []
        agent.signals.reports = self._reports
        self._segment_starts: list[dict[str, Any]] = []
        agent.experience.segment_starts = self._segment_starts
        # predict priorities once for each chunk, not for each transition
        self._prioritize, agent.experience.prioritize = agent.experience.prioritize, None
        self._num_workers = num_workers
        agent.exploration_policy.set_worker(worker_index(link.name, num_workers), num_workers)
        self._is_synchronous = bool(plan["is_synchronous"])
        self._chunk_rows = int(plan["chunk_rows"])
        self._segment_steps = plan["segment_steps"]
        self._chunk_seconds = chunk_seconds
        self._policy_at = time.monotonic()
        self._segment_ended_at: float | None = None  # time of the last segment with the current policy
        self._policy: dict[str, Any] = {"incarnation": 0, "version": 0, "updates": 0}
        self._sent_at = time.monotonic()
        self._counted = agent.clock.steps
        self._step_seconds = 0.0  # seconds of a step when the worker acted last
        self._segments_before = 0  # number of unsent segments when the worker began to act
        for filter_name in FILTERS:
            getattr(agent, filter_name).take_gathered()

    # policies

    def take_newest_policy(self, state: RunState) -> bool:
        """Load the trainer's newest policy.

        :return: False if the agent must wait for a newer policy before it acts
        """
        # Without SYNC, the agent may act with an older policy while the data store cannot be reached.
        return self._has_newest_policy(state) or (not self._is_synchronous and self._policy["version"] > 0)

    def _has_newest_policy(self, state: RunState) -> bool:
        name = (self._policy["incarnation"], self._policy["version"])
        if name == state.policy:
            return True
        try:
            document = self._store.get(self._policy_document)
        except (OSError, CoachError):
            return False
        if document is None:
            return False
        policy = _read_policy(document)
        if policy is None or (policy["incarnation"], policy["version"]) == name:
            return False
        self._agent.take_policy(policy)
        self._policy = policy
        self._policy_at, self._segment_ended_at = time.monotonic(), None
        if self._is_synchronous:
            self._forget_old_experience()
        return True

    def _forget_old_experience(self) -> None:
        """Discard experience of older policies, from which the trainer must not learn. The episode continues."""
        self._cut_episode()
        self._memory.take()
        # episodes that ended before do not count for the new policy
        self._reports.clear()
        self._segment_starts.clear()
        self.unsent, self.environment = 0, EnvironmentProgress()

    def _cut_episode(self) -> None:
        if self._memory.stores_episodes:
            for _ in (0,) if self._agent.parallel is None else self._agent.parallel:
                self._agent.cut_episode()

    # playing

    def limit(self, state: RunState) -> int:
        """The number of unsent steps at which a chunk is due; at most ``unsent`` if no more steps are needed."""
        if not self._is_synchronous or state.left is None:
            # episodes and segments are sent whole, however long they are
            has_none = self._memory.stores_episodes and not self._memory.num_episodes()
            return self.unsent + self._chunk_rows if has_none else self._chunk_rows
        outstanding = self.link.outbox.count(PlayUnit[state.unit])
        if state.unit != PlayUnit.STEPS.name:  # their length is unknown
            is_cut = state.unit == PlayUnit.SEGMENTS.name
            waiting = self._memory.num_episodes() if is_cut else len(self._reports)
            is_wanted = state.left > outstanding + waiting and not (is_cut and self._leaves_rest_to_others())
            return self.unsent + self._chunk_rows if is_wanted else self.unsent
        # other workers act at the same time, and steps beyond the needed number are discarded
        wanted = state.left - outstanding
        return max(-(-wanted // self._num_workers), min(wanted, self._least_share))

    @property
    def _least_share(self) -> int:
        """The smallest number of steps for a chunk."""
        if not self._step_seconds:
            return self._chunk_rows
        return max(1, min(self._chunk_rows, int(_SECONDS_OF_A_SHARE / self._step_seconds)))

    def _leaves_rest_to_others(self) -> bool:
        """True if this worker has sent a segment with this policy and waits, because other workers may still act in a
        segment and further steps would be discarded. A worker that needs far longer counts as dead."""
        ended_at = self._segment_ended_at
        if ended_at is None:
            return False
        return time.monotonic() < ended_at + _PATIENCE_WITH_OTHERS * (ended_at - self._policy_at) + _PAUSE

    def begin_stretch(self) -> None:
        """Prepare for acting. Call this before several steps of the environment."""
        self._segments_before = self._memory.num_episodes()

    def end_stretch(self, step_seconds: float) -> None:
        """Record the speed of acting. Call this after several steps of the environment.

        :param step_seconds: mean seconds of an environment step
        """
        self._step_seconds = step_seconds

    def count(self, ended_rewards: Sequence[float]) -> None:
        """Count a step of the environment, and the agent's steps in it: one for each of the agent's players that acted.

        :param ended_rewards: the reward of the episode if the episode has ended; otherwise empty
        """
        self.unsent += self._agent.clock.steps - self._counted
        self._counted = self._agent.clock.steps
        self.environment.steps = min(self.environment.steps + 1, MOST_ROWS)  # bounded if an agent has left
        self.environment.rewards += ended_rewards

    def is_over_time(self) -> bool:
        """True if ``chunk_seconds`` have passed since the last chunk, so that even a small chunk is due."""
        return self.unsent > 0 and time.monotonic() - self._sent_at >= self._chunk_seconds

    def ends_segment(self) -> bool:
        """Cut the episode if its segment is complete. :return: True if a segment has ended since ``begin_stretch``"""
        if self._segment_steps is None:
            return False
        parallel = self._agent.parallel
        episodes = [self._agent.episode] if parallel is None else parallel.episodes
        buffers = [episode.buffer for episode in episodes if not episode.buffer.is_complete]
        if any(buffer.length() >= self._segment_steps for buffer in buffers):
            self._cut_episode()
        has_ended = self._memory.num_episodes() > self._segments_before
        if has_ended:
            self._segment_ended_at = time.monotonic()
        return has_ended

    # sending

    def send_if_due(self, limit: int, state: RunState) -> bool:
        """Pass a chunk to the link if a chunk is due. :return: True if a chunk was passed"""
        is_full = self.unsent >= limit
        has_segment = self._segment_steps is not None and self._memory.num_episodes() > 0
        if limit <= 0 or not (is_full or has_segment or self.is_over_time()):
            return False
        if not self.unsent or self.link.outbox.is_full:
            return False
        self._make_chunk(is_full and self._is_synchronous and state.unit == PlayUnit.STEPS.name)
        return True

    def _make_chunk(self, cuts_episode: bool) -> None:
        """Pass the experience to the link as a chunk, in whole episodes if the memory stores episodes.

        :param cuts_episode: also include the episode in progress; the trainer treats its rest as another episode
        :raises TrainingError: if the experience contains values that the trainer would refuse
        """
        # The trainer sends no receipt for a refused chunk, so the worker would wait for ever.
        if self._agent.watch.source is not None:
            raise TrainingError(self._agent.watch.source)
        if cuts_episode:
            self._agent.experience.require_parts_of_episodes()
            self._cut_episode()
        columns, lengths = self._memory.take()
        steps = sum(lengths) if self._memory.stores_episodes else self.unsent
        self._sent_at, now = time.monotonic(), self._sent_at
        if not steps:
            return
        gathered = {name: getattr(self._agent, name).take_gathered() for name in FILTERS}
        sent = {filter_name: state for filter_name, state in gathered.items() if state}
        priorities = None if columns is None or self._prioritize is None else self._prioritize(columns)
        about = about_played(self._reports, self._segment_starts, sent, priorities, self.environment)
        about["waited"] = float(min(1.0, self.waited / max(1e-9, self._sent_at - now)))
        self.waited, self.environment = 0.0, EnvironmentProgress()
        self._reports.clear()
        self._segment_starts.clear()
        outbox = self.link.outbox
        chunk = Chunk(
            self.link.run, self.link.sender, outbox.next_number, outbox.next_number,
            (self._policy["incarnation"], self._policy["version"]), self._policy["updates"], steps, lengths, columns,
            about,
        )  # fmt: skip
        try:
            outbox.add(EncodedChunk(chunk))
        except ChunkError as error:
            raise TrainingError(f"the experience cannot be sent to the trainer: {error}") from error
        self.unsent -= steps


class RolloutWorker:
    """Acts with the newest policies, and sends the experience of each agent in chunks.

    :param graph: the worker's graph after ``create_graph``, with networks that only act
    :param links: the worker's connection to each agent's stream of chunks in Redis, by the stream's name
    :param store: the data store of the policies
    :param blueprint: the trainer's document with the networks, the sizes of chunks and so on
    :param limits: times after which a chunk or a report is sent or the worker gives up
    :param stop_if_asked: raises an exception if the worker must end
    """

    def __init__(
        self,
        graph: GraphManager,
        links: Mapping[str, WorkerLink],
        store: DataStore,
        blueprint: dict[str, Any],
        limits: Limits,
        stop_if_asked: Callable[[], None],
    ):
        self._graph, self._limits = graph, limits
        self._level = graph.level_managers[0]
        num_workers = max(1, int(blueprint["num_workers"]))
        self._agents = [
            AgentAtWork(
                agent, links[stream], store, of_agent("policy", stream), blueprint["agents"][stream], num_workers,
                limits.chunk_seconds,
            )
            for stream, agent in self._level.agent.by_stream.items()
        ]  # fmt: skip
        self._links = [one.link for one in self._agents]
        self._stop_if_asked = stop_if_asked
        self._patience = Patience(limits.silence_seconds)
        self._steps = self._reported_steps = 0
        self._reported_at = time.monotonic()
        self._pause = _FIRST_PAUSE

    @property
    def acknowledged(self) -> int:
        """Steps that the trainer has acknowledged, of all agents."""
        return sum(link.outbox.acknowledged for link in self._links)

    def play(self) -> None:
        """Act until the trainer ends the run.

        :raises Silence: if the trainer has sent nothing for too long
        :raises TrainingError: if the experience cannot be learned from
        """
        while True:
            self._stop_if_asked()
            found = [link.exchange() for link in self._links]
            states = [state for state in found if state is not None]
            self._patience.note(found[0])
            if any(state.is_over for state in states):
                return
            is_waiting = len(states) < len(found) or not self._go_on(states)
            self._report(RunPhase.WAITING if is_waiting else self._graph.phase)
            if is_waiting:
                self._wait()
            else:
                self._pause = _FIRST_PAUSE

    def _wait(self) -> None:
        """Pause. The pauses become longer during a wait, so that a short wait ends early."""
        time.sleep(self._pause)
        for one in self._agents:
            one.waited += self._pause
        self._pause = min(1.5 * self._pause, _PAUSE)

    def _go_on(self, states: Sequence[RunState]) -> bool:
        """Act and send chunks if the trainer needs steps. :return: False if the trainer needs no steps now"""
        phase = RunPhase[states[0].phase]
        have_policies = [one.take_newest_policy(state) for one, state in zip(self._agents, states)]
        if phase is RunPhase.UNDEFINED or any(state.phase != phase.name for state in states) or not all(have_policies):
            return False
        if self._graph.phase is not phase:
            self._graph.phase = phase
        limits = [one.limit(state) for one, state in zip(self._agents, states)]
        if all(one.unsent < limit for one, limit in zip(self._agents, limits)):
            self._play_until(limits)
        # an agent that needs no steps keeps the others' chunks unchanged
        sent = [one.send_if_due(limit, state) for one, limit, state in zip(self._agents, limits, states)]
        return any(sent) or all(one.unsent < limit for one, limit in zip(self._agents, limits))

    def _play_until(self, limits: Sequence[int]) -> None:
        agents, graph = self._agents, self._graph
        for one in agents:
            one.begin_stretch()
        began, before = time.monotonic(), self._steps
        while all(one.unsent < limit for one, limit in zip(agents, limits)):
            graph.act(_ONE_STEP)
            self._steps += 1
            ended = [float(np.sum(self._level.total_reward_in_current_episode))] if self._graph.reset_required else []
            for one in agents:
                one.count(ended)
            have_ended = [one.ends_segment() for one in agents]
            if any(have_ended) or any(one.is_over_time() for one in agents):
                break
        for one in agents:
            one.end_stretch((time.monotonic() - began) / (self._steps - before))

    # reports for the trainer

    def _report(self, phase: RunPhase) -> None:
        now = time.monotonic()
        passed = now - self._reported_at
        if passed < self._limits.report_seconds:
            return
        rate = (self._steps - self._reported_steps) / passed
        self._reported_at, self._reported_steps = now, self._steps
        about = {
            "phase": phase.name, "rate": rate, "steps": self._steps, "acknowledged": self.acknowledged,
            "outstanding": sum(link.outbox.steps for link in self._links), "life": self._links[0].sender,
            "pid": os.getpid(),
        }  # fmt: skip
        self._links[0].report(about, _REPORTS_UNTIL_EXPIRY * self._limits.report_seconds)


def _read_policy(document: bytes) -> dict[str, Any] | None:
    """The policy in a document; None if the document is not a policy."""
    try:
        policy = unpack(document)
        return policy if policy.keys() >= _POLICY else None
    except UNREADABLE:
        return None


def wait_for(
    wait_func: Callable[[], bool], data_store: DataStore | None = None, timeout: float = 10, pause: float = _PAUSE
) -> None:
    """Wait until a condition holds.

    :param wait_func: returns True if the condition holds
    :param data_store: a data store from which files are loaded before each check; None for no data store
    :param timeout: seconds to wait
    :param pause: seconds between two checks
    :raises CoachError: if the condition did not hold within ``timeout``
    """
    deadline = time.monotonic() + timeout
    while True:
        if data_store is not None:
            data_store.load_from_store()
        if wait_func():
            return
        if time.monotonic() >= deadline:
            raise CoachError(f"waited {timeout:g} s for the trainer without an answer")
        time.sleep(pause)


def wait_for_trainer_ready(checkpoint_dir: str, data_store: DataStore | None = None, timeout: float = 10) -> None:
    """Wait for the file in the trainer's checkpoint directory that tells workers to begin.

    :raises CoachError: if the file did not appear within ``timeout`` seconds
    """
    file = os.path.join(checkpoint_dir, SyncFiles.TRAINER_READY.value)
    wait_for(lambda: os.path.exists(file), data_store, timeout)


def wait_for_checkpoint(checkpoint_dir: str, data_store: DataStore | None = None, timeout: float = 10) -> None:
    """Wait until there is a checkpoint in a directory.

    :raises CoachError: if no checkpoint appeared within ``timeout`` seconds
    """
    wait_for(lambda: CheckpointStateReader(checkpoint_dir).get_latest() is not None, data_store, timeout)


def should_stop(checkpoint_dir: str) -> bool:
    """True if a file in the trainer's checkpoint directory says that no more checkpoints follow."""
    return os.path.exists(os.path.join(checkpoint_dir, SyncFiles.FINISHED.value))


def prepare_for_playing(graph_manager: Any, blueprint: dict[str, Any]) -> None:
    """Change a graph manager for a worker, before ``create_graph``: the networks of the trainer's ``blueprint`` will
    only act, and the memory will send transitions to the trainer."""
    for stream, agent in graph_manager.parameters_by_stream.items():
        plan = blueprint["agents"][stream]
        for name, plain in plan["networks"].items():
            agent.network_wrappers[name].blueprint = NetworkBlueprint.from_plain(plain)
        agent.memory = OutgoingMemoryParameters(agent.memory, plan["segment_steps"] is not None)
        agent.algorithm.load_memory_from_file_path = None
    # chunks are made from single steps; use more workers instead of copies
    graph_manager.env_params.num_environments = 1
    shown = graph_manager.visualization_parameters
    for name in ("dump_csv", "dump_gifs", "dump_mp4", "tensorboard", "render", "native_rendering",
                 "dump_in_episode_signals", "dump_parameters_documentation", "print_networks_summary"):  # fmt: skip
        setattr(shown, name, False)


def worker_seed(seed: int | None, name: str) -> int | None:
    """The seed of a worker, which is different for each worker's name.

    :param seed: the run's seed; for None the result is None
    """
    if seed is None:
        return None
    return int(np.random.SeedSequence([seed, *name.encode()]).generate_state(1)[0])


def worker_index(name: str, num_workers: int) -> int:
    """The number at the end of a worker's name, modulo ``num_workers``; 0 for a name without a number. With the flags
    of Coach 1.0.1, this number is the id of the process.
    """
    number = re.search(r"\d+$", name)
    return int(number.group()) % num_workers if number else 0


def rollout_worker(
    graph_manager: Any,
    data_store: DataStore,
    num_workers: int,
    task_parameters: TaskParameters,
    *,
    ends: StreamEnds | None = None,
    name: str = "worker-0",
    limits: Limits | None = None,
    stop_if_asked: Callable[[], None] = lambda: None,
) -> RolloutWorker:
    """Act for a trainer until the trainer says that the run is over.

    :param graph_manager: the preset's graph manager, before ``create_graph``
    :param data_store: the data store of the trainer's policies
    :param num_workers: no effect; the trainer sends the number of workers
    :param task_parameters: the seed and the directory of this process
    :param ends: opens the worker's connections to the streams in Redis; None uses the memory's
        ``memory_backend_params``
    :param limits: limits of sizes and times; None for the defaults
    :param stop_if_asked: raises an exception if the worker must end
    :return: the worker after the end of the run
    """
    limits = limits or Limits()
    document: list[bytes] = []

    def has_come() -> bool:
        stop_if_asked()
        try:
            found = data_store.get("blueprint")
        except OSError:
            return False
        document.extend([] if found is None else [found])
        return found is not None

    try:
        wait_for(has_come, timeout=limits.silence_seconds)
    except CoachError as error:
        raise Silence from error
    blueprint = unpack(document[0])
    if ends is None:
        backend = next(iter(graph_manager.parameters_by_stream.values())).memory.memory_backend_params
        ends = StreamEnds(backend.connect(), backend.channel, name)
    prepare_for_playing(graph_manager, blueprint)
    task_parameters.role, task_parameters.framework_type = TaskRole.ROLLOUT, Frameworks.acting
    graph_manager.create_graph(task_parameters)
    links = {stream: ends.open(stream, int(plan["window"])) for stream, plan in blueprint["agents"].items()}
    worker = RolloutWorker(graph_manager, links, data_store, blueprint, limits, stop_if_asked)
    try:
        worker.play()
    finally:
        graph_manager.close()
    return worker


class StreamEnds:
    """Opens a worker's connections to the streams of chunks in Redis, one stream for each agent."""

    def __init__(self, connection: Connection, run: str, name: str):
        self._connection, self._run, self._name = connection, run, name
        self._life = uuid.uuid4().hex[:8]  # unique to this start of the worker
        self._links: dict[str, WorkerLink] = {}

    def open(self, stream: str, window: int) -> WorkerLink:
        """Open the connection to a stream. :param window: number of chunks that may be sent before a receipt"""
        self._links[stream] = WorkerLink(self._connection, self._run, self._name, self._life, window, stream)
        return self._links[stream]

    def print_acknowledged(self) -> None:
        """Print for each stream the number of steps that the trainer has acknowledged."""
        for stream, link in self._links.items():
            print(f"{of_agent(link.sender, stream)}: {link.outbox.acknowledged} steps acknowledged", flush=True)


class _Stop:
    """Records SIGTERM and Ctrl-C."""

    def __init__(self) -> None:
        self._asked: int | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = number

    def if_asked(self) -> None:
        """Raise an exception after a signal. :raises StopAsked: if a signal was received"""
        if self._asked is not None:
            raise StopAsked(self._asked)


def play_order(order: RunOrder, name: str) -> int:
    """Run a worker."""
    stop = _Stop()
    connection = Connection(order.redis_url, order.password())
    connection.check(order.limits.connect_seconds)
    launcher = CoachLauncher()
    args = launcher.get_argument_parser().parse_args(order.arguments)
    graph_manager = launcher.get_graph_manager_from_args(args)
    ends = StreamEnds(connection, order.run, name)
    with private_directory() as directory:
        task = TaskParameters(
            experiment_path=str(directory), seed=worker_seed(args.seed, name), use_cpu=True, num_threads=1
        )
        store = open_data_store(order.data_store.kind, order.data_store.settings, order.run, connection)
        try:
            rollout_worker(
                graph_manager, store, order.num_workers, task, ends=ends, name=name, limits=order.limits,
                stop_if_asked=stop.if_asked,
            )  # fmt: skip
        except StopAsked as stop:
            return 128 + stop.number
        except Silence:
            screen.warning(f"{name}: the trainer has sent nothing for {order.limits.silence_seconds:.0f} s")
            return GAVE_UP
        finally:
            ends.print_acknowledged()
    return DONE


def main(arguments: Sequence[str] | None = None) -> int:
    """The program ``python -m rl_coach.rollout_worker``.

    :param arguments: the command line's arguments; None uses the arguments of this process
    :return: the exit code: 0 the run is over, 1 a failure, 2 wrong input, 3 nothing was received from the trainer,
        128 + N a signal with the number N has ended the worker
    """
    parser = argparse.ArgumentParser(prog="python -m rl_coach.rollout_worker", description=__doc__.partition("\n")[0])
    parser.add_argument("--order", required=True, metavar="FILE", help="the JSON file with the run's settings")
    # Kubernetes sets this variable to the pod's index in its Job.
    name = f"worker-{os.environ.get('JOB_COMPLETION_INDEX', '0')}"
    parser.add_argument("--name", default=name, help="this worker's name (default: %(default)s)")
    drop_lost_output()
    args = parser.parse_args(arguments)
    return exit_code_of(lambda: play_order(RunOrder.read(args.order), args.name))


if __name__ == "__main__":
    sys.exit(main())
