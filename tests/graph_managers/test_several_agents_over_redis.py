"""Several agents in one environment, split into a trainer and workers: each has a stream of its own."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.experience import EnvironmentProgress, ExperienceChunk
from rl_coach.agents.self_play import SelfPlayParameters
from rl_coach.base_parameters import TaskParameters, TaskRole
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.memories.backend.connection import Connection, Keys
from rl_coach.memories.backend.ledger import Ledger
from rl_coach.memories.backend.streams import TrainerLink, WorkerLink
from rl_coach.memories.backend.wire import Chunk, EncodedChunk, unpack
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis
from rl_coach.remote_level_manager import RemoteMultiAgentLevelManager
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.orchestrators.distributed_runs import wait_until
from tests.zoo import parameters
from tests.zoo.graphs import schedule
from tests.zoo.players import Leaving, SideBySide, players_graph
from tests.zoo.split import backend_of, run_graphs

HEATUP, STEPS = 24, 240
SCHEDULE = schedule(EnvironmentSteps(STEPS), heatup=HEATUP)


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    server = EmbeddedRedis(tmp_path_factory.mktemp("redis"))
    server.start()
    connection = Connection(server.url, server.password)

    def listens():
        try:
            return connection.client.ping()
        except connection.errors:
            return False

    wait_until(listens, "Redis")
    yield server
    server.stop()


class Recorded:
    """A run of several agents over Redis that has ended.

    :ivar trainer: its graph
    :ivar played: by agent, what the trainer's agent has taken in
    :ivar workers: those that have played
    """

    def __init__(self, redis, directory, make_agents, environment, workers=1, schedule_parameters=SCHEDULE, **settings):
        name = uuid.uuid4().hex
        graphs = []
        for _ in range(1 + workers):
            graph = players_graph(make_agents(), environment, directory, schedule_parameters, create=False, **settings)
            graph.visualization_parameters.dump_csv = False
            for agent in graph.agents_params.values():
                agent.memory.register_var("memory_backend_params", backend_of(redis, name))
            graphs.append(graph)
        self.trainer = graphs[0]
        self.played: dict[str, list[Any]] = {}
        create = self.trainer._create_graph

        def recorded(task):
            levels, environments = create(task)
            for name, agent in levels[0].agents.items():
                self._record(name, agent)
            return levels, environments

        self.trainer._create_graph = recorded
        self.workers = run_graphs(redis, name, directory, self.trainer, graphs[1:], num_workers=workers)
        self.graphs = graphs[1:]

    def _record(self, name, agent):
        take_in, taken = agent.take_in, self.played.setdefault(name, [])

        def take_in_and_note(played):
            take_in(played)
            taken.append(played)

        agent.take_in = take_in_and_note

    def check_counts(self):
        """Each agent has counted what was played for it, and the graph what was played in the environment."""
        agents, counters = self.trainer.get_agents(), self.trainer.total_steps_counters
        for name, agent in agents.items():
            ledger = self.trainer.level_managers[0].ledgers[name]
            assert agent.clock.steps == ledger.stored == sum(one.steps for one in self.played[name]), name
            assert agent.clock.updates > 0, name
        told = [[one.environment for one in taken] for taken in self.played.values()]
        counted = [counters[phase] for phase in (RunPhase.HEATUP, RunPhase.TRAIN)]
        steps = [sum(one.steps for one in environments) for environments in told]
        assert min(steps) == sum(one[EnvironmentSteps] for one in counted) >= HEATUP + STEPS
        episodes = [sum(len(one.rewards) for one in environments) for environments in told]
        assert min(episodes) == sum(one[EnvironmentEpisodes] for one in counted) > 0
        return [reward for environments in told for one in environments for reward in one.rewards]


def actor_critic():
    agent = parameters.actor_critic()
    agent.algorithm.num_steps_between_gradient_updates = 4
    return agent


PAIRS = {
    "DQN and DQN": (parameters.dqn, parameters.dqn),
    "DQN, which does not wait, and PPO, which does": (parameters.dqn, parameters.clipped_ppo),
    "segments and steps": (actor_critic, parameters.clipped_ppo),
    "whole episodes and segments": (parameters.mixed_monte_carlo, actor_critic),
    "recurrent and prioritized": (parameters.recurrent_dqn, parameters.prioritized),
}


@pytest.mark.parametrize(
    "kind", [next(iter(PAIRS)), *(pytest.param(kind, marks=pytest.mark.slow) for kind in list(PAIRS)[1:])]
)
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_each_of_two_agents_learns_from_its_own_stream(kind, workers, redis, tmp_path):
    run = Recorded(redis, tmp_path, lambda: [make() for make in PAIRS[kind]], SideBySide, workers)
    run.check_counts()


@pytest.mark.parametrize("done_condition", [all, any])
def test_what_arrives_for_a_player_is_what_it_has_played(redis, tmp_path, done_condition):
    """A player's rewards are 1, 10 or 100, and it leaves after 2, 5 or 3 steps; the state is the number of the step."""
    run = Recorded(
        redis, tmp_path, lambda: [parameters.dqn() for _ in range(3)], Leaving, done_condition=done_condition
    )
    rewards = run.check_counts()
    assert set(rewards) == {352.0 if done_condition is all else 222.0}
    for index, (name, length) in enumerate(zip(("agent_0", "agent_1", "agent_2"), (2, 5, 3))):
        last = length if done_condition is all else 2
        columns = [one.columns for one in run.played[name]]
        states = np.concatenate([np.asarray(one.state_columns["observation"])[:, 0] for one in columns])
        assert {*np.concatenate([one.reward_column for one in columns])} == {10.0**index}
        np.testing.assert_array_equal(states, np.arange(len(states)) % last)
        ends = np.concatenate([one.game_over_column for one in columns])
        np.testing.assert_array_equal(ends, states == last - 1)
        terminated = np.concatenate([one.terminated_column for one in columns])
        np.testing.assert_array_equal(terminated, ends & (last == length))


SHARED = [
    parameters.dqn,
    pytest.param(parameters.clipped_ppo, marks=pytest.mark.slow),
    pytest.param(actor_critic, marks=pytest.mark.slow),
    pytest.param(parameters.impala, marks=pytest.mark.slow),
    pytest.param(parameters.recurrent_ppo, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("make_agent", SHARED)
@pytest.mark.parametrize("done_condition", [any, pytest.param(all, marks=pytest.mark.slow)])
def test_one_policy_of_all_players_has_one_stream(make_agent, done_condition, redis, tmp_path):
    run = Recorded(redis, tmp_path, make_agent, Leaving, done_condition=done_condition)
    run.check_counts()
    (agent,) = run.trainer.get_agents().values()
    counted = run.trainer.total_steps_counters
    steps = sum(counted[phase][EnvironmentSteps] for phase in (RunPhase.HEATUP, RunPhase.TRAIN))
    ratio = 3 if done_condition is any else 2  # players in each step, on average
    on_the_way = ratio * 40
    assert agent.clock.steps <= ratio * steps + on_the_way
    # a round's segments end at different times: what players had of the next ones when the policy came is left
    leaves_parts = agent.learning.segment_steps is not None and agent.learning.needs_newest_policy
    assert leaves_parts or agent.clock.steps >= ratio * steps - on_the_way


def test_a_step_counts_once_all_agents_have_what_they_played_in_it():
    level = RemoteMultiAgentLevelManager.__new__(RemoteMultiAgentLevelManager)
    level.environment_steps, level.agent = 0, SimpleNamespace(last_rewards={})
    level._ahead = {"hunters": EnvironmentProgress(), "prey": EnvironmentProgress()}
    seen = []
    told = [
        ("hunters", 30, [1.0, 2.0]),
        ("hunters", 10, []),
        ("prey", 25, [1.0]),
        ("prey", 20, [2.0, 3.0]),
    ]
    for stream, steps, rewards in told:
        level._count(stream, ExperienceChunk(1, environment=EnvironmentProgress(steps, rewards)))
        seen.append((level.environment_steps, level.ended_rewards))
    assert seen == [(0, []), (0, []), (25, [1.0]), (40, [2.0])]


def test_self_play_is_refused_in_one_line(tmp_path):
    graph = players_graph(
        parameters.dqn(), SideBySide, tmp_path, SCHEDULE, create=False, self_play=SelfPlayParameters()
    )
    for role in (TaskRole.TRAINING, TaskRole.ROLLOUT):
        task = TaskParameters(FRAMEWORK, experiment_path=str(tmp_path))
        task.role = role
        with pytest.raises(CoachError, match="self-play cannot be split into trainer and workers: leave out -dc"):
            graph.create_graph(task)


def test_receipts_are_trimmed_to_what_the_ledger_of_a_checkpoint_holds(redis):
    """A trainer that goes back to a checkpoint takes again what workers still have of the time after it."""
    connection, run = Connection(redis.url, redis.password), uuid.uuid4().hex

    def worker(name, agent):
        return WorkerLink(connection, run, name, "1", 4, agent)

    def send(link):
        number = link.outbox.next_number
        link.outbox.add(EncodedChunk(Chunk(run, link.sender, number, number, (1, 1), 0, 10)))
        link.exchange()

    def take_all(link):
        while link.push() and (found := link.next()) is not None:
            link.acknowledge(*found, is_stored=True)
        link.push(reads=False)

    old, new, other = worker("worker-0", "hunters"), worker("worker-1", "hunters"), worker("worker-0", "prey")
    ledger = Ledger()
    trainer, of_prey = TrainerLink(connection, run, ledger, "hunters"), TrainerLink(connection, run, Ledger(), "prey")
    for link in (trainer, of_prey):
        link.say(incarnation=1)
        link.push()
    for link in (old, other):
        send(link)
    take_all(trainer)
    take_all(of_prey)
    checkpoint = ledger.get_state()
    for link in (old, new):  # played after the checkpoint; nobody has read the receipts
        send(link)
    take_all(trainer)
    keys = Keys(run, "hunters")
    assert connection.client.xlen(keys.experience) == 0 and set(connection.client.hgetall(keys.taken)) == {
        b"worker-0.1", b"worker-1.1",
    }  # fmt: skip
    restored = Ledger()
    restored.set_state(checkpoint)
    trainer = TrainerLink(connection, run, restored, "hunters")
    trainer.say(incarnation=2)
    trainer.push()
    receipts = {name: unpack(value) for name, value in connection.client.hgetall(keys.taken).items()}
    assert receipts == {b"worker-0.1": [1, 10, 0]}
    assert len(connection.client.hgetall(Keys(run, "prey").taken)) == 1, "another agent's stream stays as it is"
    for link in (old, new):
        link.exchange()  # hears that it is to send again
        link.exchange()
    take_all(trainer)
    assert restored.get_state() == {"worker-0.1": [2, 20, 0], "worker-1.1": [1, 10, 0]}
