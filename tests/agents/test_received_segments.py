"""Segments that another process plays teach an agent what it would have learned by playing them itself."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import MiddlewareScheme, TaskRole
from rl_coach.core_types import EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.memories.backend.wire import pack, unpack
from rl_coach.memories.outgoing import OutgoingMemoryParameters
from rl_coach.utils import CoachError
from tests.zoo import parameters
from tests.zoo.environments import Lottery
from tests.zoo.graphs import graph, schedule

SEGMENT = 4


def recurrent_actor_critic():
    agent = parameters.actor_critic()
    agent.algorithm.num_steps_between_gradient_updates = SEGMENT
    agent.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(
        number_of_lstm_cells=6, scheme=MiddlewareScheme.Empty
    )
    return agent


def policy_gradients():
    agent = parameters.policy_gradients()
    agent.algorithm.apply_gradients_every_x_episodes = 3
    return agent


def n_step_q():
    agent = parameters.n_step_q()
    agent.algorithm.num_steps_between_gradient_updates = SEGMENT
    agent.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(5)
    return agent


def play_segment(worker):
    """Play to the end of a segment. :return: what is sent of it"""
    agent, steps = worker.get_agent(), 0
    while not agent.memory.num_episodes():
        worker.act(EnvironmentSteps(1))
        steps += 1
        if agent.episode.buffer.length() >= agent.learning.segment_steps:
            agent.cut_episode()
    reports, segment_starts = list(agent.signals.reports), unpack(pack(agent.experience.segment_starts))
    agent.signals.reports.clear()
    agent.experience.segment_starts.clear()
    columns, lengths = agent.memory.take()
    return ExperienceChunk(steps, lengths, columns, reports, {}, segment_starts)


def split(make_agent, directory):
    """(the graph of a worker, that of its trainer)"""
    acting = make_agent()
    acting.memory = OutgoingMemoryParameters(acting.memory)
    worker = graph(acting, Lottery, directory / "worker", schedule(1000), role=TaskRole.ROLLOUT)
    trainer = graph(make_agent(), Lottery, directory / "trainer", schedule(1000), role=TaskRole.TRAINING)
    agent = worker.get_agent()
    agent.signals.reports, agent.experience.segment_starts = [], []
    worker.phase = trainer.phase = RunPhase.TRAIN
    return worker, trainer


def weights_of(agent):
    return agent.networks["main"].online_network.get_weights()


@pytest.mark.parametrize("make_agent", [recurrent_actor_critic, policy_gradients, n_step_q])
def test_a_split_agent_learns_what_it_would_have_learned_alone(make_agent, tmp_path):
    worker, trainer = split(make_agent, tmp_path)
    player, learner = worker.get_agent(), trainer.get_agent()
    for _ in range(25):
        learner.take_in(play_segment(worker))
        learner.train()
        player.networks["main"].online_network.set_weights(weights_of(learner))
    alone = graph(make_agent(), Lottery, tmp_path / "alone", schedule(1000))
    alone.train_and_act(EnvironmentSteps(learner.total_steps_counter))
    agent = alone.get_agent()
    assert learner.training_iteration == agent.training_iteration > 5
    for mine, theirs in zip(weights_of(learner), weights_of(agent)):
        # rewards travel in the precision that memories keep
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)


def test_segments_that_wait_are_part_of_a_checkpoint(tmp_path):
    worker, trainer = split(policy_gradients, tmp_path)
    learner = trainer.get_agent()
    learner.take_in(play_segment(worker))
    learner.train()
    assert learner.training_iteration == 0, "three episodes make an update"
    state = learner.get_state()
    _, other = split(policy_gradients, tmp_path / "other")
    resumed = other.get_agent()
    resumed.set_state(state)
    for _ in range(2):
        played = play_segment(worker)
        for agent in (learner, resumed):
            agent.take_in(played)
            agent.train()
    assert learner.training_iteration == resumed.training_iteration == 1
    for mine, theirs in zip(weights_of(learner), weights_of(resumed)):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    "segment_starts",
    [
        [],
        [{}],
        [{"first": -1, "is_complete": True, "states": {}}],
        [{"first": 10**12, "is_complete": True, "states": {}}],
        [{"first": 0, "is_complete": True, "states": {"memory": np.zeros((1, 99))}}],
        [{"first": 0, "is_complete": True, "states": 3}],
    ],
)
def test_segments_without_a_place_are_refused_and_change_nothing(segment_starts, tmp_path):
    worker, trainer = split(recurrent_actor_critic, tmp_path)
    played, learner = play_segment(worker), trainer.get_agent()
    played.segment_starts = segment_starts
    with pytest.raises(CoachError, match="segment"):
        learner.take_in(played)
    assert learner.total_steps_counter == learner.memory.num_transitions() == 0
