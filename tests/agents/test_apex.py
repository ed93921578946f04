"""Ape-X: the priorities that a worker computes are those of the paper, and those that the trainer's memory has."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.apex_agent import ApexDQNAgentParameters
from rl_coach.core_types import Batch, EnvironmentSteps, RunPhase
from rl_coach.exploration_policies.per_worker_e_greedy import PerWorkerEGreedy
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.rollout_worker import worker_index
from rl_coach.schedules import ConstantSchedule, LinearSchedule
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import CoachError
from tests.agents.test_false_messages import Split
from tests.zoo import parameters
from tests.zoo.environments import Lottery
from tests.zoo.graphs import graph, schedule


def errors_of(agent, batch: Batch) -> np.ndarray:
    """Horgan et al. 2018, algorithm 1: |G_t - Q(s_t, a_t)| of n-step returns, one step after the other."""
    main, discount = agent.networks["main"], agent.ap.algorithm.discount
    found = []
    for step in batch:
        q, q_next = (
            main.online_network.predict({name: np.asarray(state[name])[None] for name in main.input_names})[0]
            for state in (step.state, step.next_state)
        )
        bootstrap = 0.0 if step.terminated else discount**step.n_steps * float(q_next.max())
        found.append(abs(float(step.reward) + bootstrap - float(q[int(step.action)])))
    return np.array(found)


def test_first_priorities_are_the_errors_of_n_step_returns(tmp_path):
    manager = graph(parameters.apex(), Lottery, tmp_path, schedule(1000))
    manager.phase = RunPhase.TRAIN
    manager.act(EnvironmentSteps(60))
    agent = manager.get_agent()
    columns = agent.memory.transitions
    assert {1, 2, 3} == set(columns.n_steps().tolist()) and columns.terminateds().any()
    expected = errors_of(agent, columns)
    assert agent.first_priorities(columns) == pytest.approx(expected, abs=1e-5)
    memory = agent.memory.get_state()["priorities"]
    settings = agent.ap.memory
    assert memory == pytest.approx((expected + settings.epsilon) ** settings.alpha, rel=1e-3, abs=1e-4)


def test_priorities_in_the_trainers_tree_are_the_workers(tmp_path):
    split = Split(parameters.apex, Lottery, tmp_path)
    settings = split.learner.ap.memory
    for _ in range(3):
        stored = split.learner.memory.num_transitions()
        split.take_in(split.message())
        state = split.learner.memory.get_state()
        columns = split.learner.memory.transitions_at(np.arange(stored, split.learner.memory.num_transitions()))
        expected = (errors_of(split.player, columns) + settings.epsilon) ** settings.alpha
        assert state["priorities"][stored:] == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert len(set(np.round(state["priorities"], 6))) > 3  # not the largest one for all


def test_a_memory_without_first_priorities_is_refused(tmp_path):
    agent = parameters.apex()
    agent.memory = ExperienceReplayParameters()
    with pytest.raises(CoachError, match="stores transitions with priorities, but its memory"):
        graph(agent, Lottery, tmp_path)


def epsilon_of(policy: PerWorkerEGreedy) -> float:
    policy.change_phase(RunPhase.TRAIN)
    return policy._epsilon()


def test_each_worker_has_an_epsilon_of_its_own():
    """0.4^(1 + 7 i / 3) for four workers, worked out by hand."""
    found = []
    for index in range(4):
        policy = PerWorkerEGreedy(DiscreteActionSpace(3), ConstantSchedule(0.4), 0.01)
        policy.set_worker(index, 4)
        found.append(epsilon_of(policy))
    assert found == pytest.approx([0.4, 0.0471558, 0.0055592, 0.00065536], rel=1e-4)
    policy.change_phase(RunPhase.TEST)
    assert policy._epsilon() == 0.01
    alone = PerWorkerEGreedy(DiscreteActionSpace(3), ConstantSchedule(0.4), 0.01)
    alone.set_worker(0, 1)
    assert epsilon_of(alone) == 0.4


@pytest.mark.parametrize("in_columns", [False, True])
def test_a_worker_is_random_as_often_as_its_epsilon_says(in_columns):
    policy = PerWorkerEGreedy(DiscreteActionSpace(3), ConstantSchedule(0.4), 0.01)
    policy.seed(0)
    policy.set_worker(3, 4)
    policy.change_phase(RunPhase.TRAIN)
    values = np.array([0.0, 1.0, 0.0])
    if in_columns:
        actions = policy.get_actions(lambda: np.tile(values, (1000, 1)), 1000)
    else:
        actions = np.array([policy.get_action(values)[0] for _ in range(1000)])
    assert np.count_nonzero(actions != 1) < 10, "epsilon is 0.00066; worker 0 has 0.4, which gives about 270"


def test_a_policy_that_a_worker_receives_does_not_change_its_epsilon():
    trainer, worker = (PerWorkerEGreedy(DiscreteActionSpace(3), LinearSchedule(0.4, 0.2, 10), 0.01) for _ in range(2))
    worker.set_worker(3, 4)
    trainer.change_phase(RunPhase.TRAIN)
    trainer.advance(10)
    worker.set_state(trainer.get_state())
    assert epsilon_of(trainer) == pytest.approx(0.2) and epsilon_of(worker) == pytest.approx(0.2**8)


@pytest.mark.parametrize("name, index", [("worker-0", 0), ("worker-3", 3), ("pod-5", 1), ("alone", 0)])
def test_a_workers_name_tells_its_number(name, index):
    assert worker_index(name, 4) == index


def test_defaults_are_the_papers():
    agent = ApexDQNAgentParameters()
    assert agent.algorithm.n_step == 3 and agent.network_wrappers["main"].batch_size == 512
    assert agent.exploration.epsilon_schedule.current_value == 0.4 and agent.exploration.epsilon_alpha == 7
