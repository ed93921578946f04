"""A trainer and a worker of one of the zoo's agents, on a real Redis; what was played, and what arrived."""

from __future__ import annotations

import contextlib
import signal
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable

import numpy as np

from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.base_parameters import AgentParameters, TaskParameters, VisualizationParameters
from rl_coach.core_types import ActionInfo, Batch, EnvResponse, StateType
from rl_coach.data_stores.data_store import DataStoreParameters
from rl_coach.data_stores.redis_data_store import RedisDataStore, RedisDataStoreParameters
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.memories.backend.connection import Connection
from rl_coach.memories.backend.redis import RedisPubSubMemoryBackendParameters
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis
from rl_coach.orchestrators.run_order import Limits
from rl_coach.rollout_worker import RolloutWorker, rollout_worker
from rl_coach.training_worker import training_worker
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import SmallEnvironment, SmallEnvironmentParameters

_LIMITS = Limits(chunk_seconds=0.02, silence_seconds=300)  # a busy machine compiles for long, meanwhile nothing is said


@dataclass
class Step:
    """A step as the environment knows it.

    :param recurrent: state of the agent's network ``main`` before it chose the action
    """

    state: StateType
    action: Any
    response: EnvResponse
    recurrent: dict[str, np.ndarray]


class RecordedGraph(BasicRLGraphManager):
    """A graph that takes down each step of its environments, and each chunk that arrives.

    :ivar steps: the steps that were played here, in order
    :ivar received: the chunks that other processes have played
    """

    def __init__(self, *settings: Any):
        super().__init__(*settings)
        self.steps: list[Step] = []
        self.received: list[ExperienceChunk] = []
        self._recurrent: dict[str, np.ndarray] = {}

    def _create_environment(self, seed: int) -> Any:
        environment = super()._create_environment(seed)
        step = environment.step

        def recorded(action: Any) -> EnvResponse:
            before = environment.last_env_response.next_state
            response = step(action)
            self.steps.append(Step(before, action, response, self._recurrent))
            return response

        environment.step = recorded
        return environment

    def _create_agent(self, task_parameters: TaskParameters) -> Any:
        agent: Any = super()._create_agent(task_parameters)
        take_in, act = agent.take_in, agent.act

        def recorded(played: ExperienceChunk) -> None:
            take_in(played)
            self.received.append(played)

        def acted(action: Any = None) -> Any:
            if agent.is_recurrent:
                self._recurrent = {name: np.array(array) for name, array in agent.recurrent_state.items()}
            return act(action)

        agent.take_in, agent.act = recorded, acted
        return agent


@dataclass
class SplitRun:
    """A run that has ended.

    :ivar trainer: its graph
    :ivar workers: those of the workers
    :ivar player: the workers, in the order in which they ended
    """

    trainer: RecordedGraph
    workers: list[RecordedGraph]
    player: list[RolloutWorker] = field(default_factory=list)

    @property
    def learner(self) -> Any:
        """The trainer's agent."""
        return self.trainer.get_agent()

    @property
    def worker(self) -> RecordedGraph:
        """The graph of the first worker."""
        return self.workers[0]

    @property
    def actor(self) -> Any:
        """The first worker's agent."""
        return self.worker.get_agent()

    def received(self, column: Callable[[Any], np.ndarray]) -> np.ndarray:
        """[N, ...] a column of all that arrived. :param column: gives it, of a batch"""
        batches = [played.columns for played in self.trainer.received if played.columns is not None]
        return np.concatenate([np.asarray(column(batch)) for batch in batches])

    def reverse_action(self, action: Any) -> Any:
        """An action of the environment as the agent's memory has it."""
        return self.actor.output_filter.reverse_filter(ActionInfo(action)).action

    def rows(self) -> list[tuple[Batch, int, Step]]:
        """For each row that arrived its chunk, its place there, and the step that it is of.

        :raises AssertionError: a row is of no step that was played, or not in order
        """
        batches = [played.columns for played in self.trainer.received if played.columns is not None]
        steps = iter(self.worker.steps)
        return [(batch, row, self._step_of(batch, row, steps)) for batch in batches for row in range(len(batch))]

    def _step_of(self, batch: Batch, row: int, steps: Iterable[Step]) -> Step:
        """The step whose state, action and reward are those of a row."""
        columns, sums = batch.state_columns, self.learner.ap.algorithm.n_step > 1
        for step in steps:
            is_seen = all(_is_seen(np.asarray(columns[name])[row], step.state[name]) for name in columns)
            is_done = np.allclose(batch.actions()[row], self.reverse_action(step.action), rtol=1e-6)
            if is_seen and is_done and (sums or batch.rewards()[row] == np.float64(step.response.reward)):
                return step
        raise AssertionError(f"row {row} of a chunk was never played")


def _is_seen(received: np.ndarray, played: Any) -> bool:
    """True if an observation is the environment's, or the newest of those that are stacked in it."""
    newest = received[..., -1] if received.ndim > np.ndim(played) else received
    return newest.shape == np.shape(played) and np.array_equal(newest, np.asarray(played, received.dtype))


def run_split(
    redis: EmbeddedRedis,
    directory: Any,
    make_agent: Callable[[], AgentParameters],
    environment: type[SmallEnvironment] | Callable[[], EnvironmentParameters],
    schedule_parameters: Any,
    seed: int = 1,
    num_workers: int = 1,
    players: int = 1,
) -> SplitRun:
    """Train an agent by a trainer, in this thread, and workers, each in another, until the schedule is over.

    :param num_workers: that the trainer expects
    :param players: workers that play
    """
    name = uuid.uuid4().hex
    graphs = [_graph(redis, name, make_agent(), environment, schedule_parameters) for _ in range(1 + players)]
    run = SplitRun(graphs[0], graphs[1:])
    run.player = run_graphs(redis, name, directory, run.trainer, run.workers, seed, num_workers)
    return run


def run_graphs(
    redis: EmbeddedRedis,
    name: str,
    directory: Any,
    trainer: Any,
    workers: list[Any],
    seed: int = 1,
    num_workers: int = 1,
) -> list[RolloutWorker]:
    """Have graphs train as a trainer, in this thread, and as its workers, each in another.

    :param name: the run's
    :param num_workers: that the trainer expects
    :return: the workers, in the order in which they ended
    """
    ended: list[RolloutWorker] = []
    failures: list[BaseException] = []

    def play(number: int) -> None:
        task = TaskParameters(experiment_path=str(directory / f"worker-{number}"), seed=seed + number)
        try:
            ended.append(
                rollout_worker(workers[number], _store(redis, name), 1, task, name=f"worker-{number}", limits=_LIMITS)
            )
        except BaseException as error:
            failures.append(error)
            trainer.stop_signals.ask(signal.SIGTERM)  # nobody plays for it any more
            raise

    threads = [threading.Thread(target=play, args=(number,), daemon=True) for number in range(len(workers))]
    for thread in threads:
        thread.start()
    task = TaskParameters(FRAMEWORK, experiment_path=str(directory / "trainer"), seed=seed)
    with contextlib.suppress(SystemExit):
        training_worker(trainer, task, _store(redis, name), num_workers=num_workers)
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads) and not failures, failures
    return ended


def backend_of(redis: EmbeddedRedis, run: str) -> RedisPubSubMemoryBackendParameters:
    """Where the memories of a run's agents find Redis."""
    return RedisPubSubMemoryBackendParameters("127.0.0.1", redis.port, run, {"redis_password": redis.password})


def _graph(
    redis: EmbeddedRedis, run: str, agent: AgentParameters, environment: Any, schedule_parameters: Any
) -> RecordedGraph:
    is_small = isinstance(environment, type) and issubclass(environment, SmallEnvironment)
    parameters = SmallEnvironmentParameters(environment) if is_small else environment()
    agent.memory.register_var("memory_backend_params", backend_of(redis, run))
    shown = VisualizationParameters(dump_parameters_documentation=False, dump_csv=False)
    return RecordedGraph(agent, parameters, schedule_parameters, shown)


def _store(redis: EmbeddedRedis, run: str) -> RedisDataStore:
    parameters = RedisDataStoreParameters(DataStoreParameters("redis", "", {}), redis_channel=run)
    return RedisDataStore(parameters, Connection(redis.url, redis.password))
