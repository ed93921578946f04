"""IMPALA: V-trace against the sum of the paper in float64, and how segments of older policies are learned from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.segments import Segment
from rl_coach.agents.impala_agent import BEHAVIOUR
from rl_coach.agents.rules.advantages import n_step_advantages
from rl_coach.agents.rules.vtrace import vtrace
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import Batch, EnvironmentSteps
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.utils import CoachError
from tests.agents.test_received_segments import play_segment, split, weights_of
from tests.zoo.environments import Bandit, Lottery, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import actor_critic, impala
from tests.zoo.runs import recurrent_impala

SEGMENT = 4


def explicit_sum(
    rewards: np.ndarray,
    values: np.ndarray,
    ratios: np.ndarray,
    discount: float,
    rho_bar: float,
    c_bar: float,
    lam: float,
) -> np.ndarray:
    """v_s = V(x_s) + sum_t gamma^(t-s) (prod_{i<t} c_i) delta_t V, term by term (equation 1, remark 2)."""
    steps = len(rewards)
    targets = []
    for s in range(steps):
        terms = []
        for t in range(s, steps):
            product = math.prod(lam * min(c_bar, float(ratios[i])) for i in range(s, t))
            delta = min(rho_bar, float(ratios[t])) * (rewards[t] + discount * values[t + 1] - values[t])
            terms.append(discount ** (t - s) * product * delta)
        targets.append(values[s] + math.fsum(terms))
    return np.asarray(targets)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("rho_bar", "c_bar", "lam"), [(1, 1, 1), (2.5, 0.7, 1), (10, 10, 0.9), (0.5, 0.1, 0.3), (1, 1, 0)]
)
def test_targets_and_advantages_are_those_of_the_paper(rho_bar, c_bar, lam, seed):
    rng = np.random.default_rng(seed)
    rewards, values, ratios = rng.normal(size=30), rng.normal(size=31), np.exp(rng.normal(size=30))
    advantages, targets = vtrace(rewards, values, ratios, 0.97, rho_bar, c_bar, lam)
    expected = explicit_sum(rewards, values, ratios, 0.97, rho_bar, c_bar, lam)
    np.testing.assert_allclose(targets, expected, rtol=0, atol=1e-12)
    following = np.append(expected[1:], values[-1])
    gradients = np.minimum(rho_bar, ratios) * (rewards + 0.97 * following - values[:-1])
    np.testing.assert_allclose(advantages, gradients, rtol=0, atol=1e-12)


def test_without_a_lag_the_numbers_are_those_of_actor_critic_bit_for_bit():
    rng = np.random.default_rng(1)
    rewards, values = rng.normal(size=50), rng.normal(size=51).astype(np.float32)
    for mine, theirs in zip(vtrace(rewards, values, np.ones(50), 0.99), n_step_advantages(rewards, values, 0.99)):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("environment", "copies"), [(Lottery, 1), (Lottery, 3), (Target, 2)])
def test_in_one_process_an_update_is_that_of_a2c_bit_for_bit(environment, copies, tmp_path):
    mine, theirs = impala(), actor_critic()
    theirs.algorithm.learns_from_copies_together = True
    for agent in (mine, theirs):
        agent.algorithm.num_steps_between_gradient_updates, agent.algorithm.beta_entropy = SEGMENT, 0.01
    agents = []
    for name, parameters in (("mine", mine), ("theirs", theirs)):
        manager = graph(parameters, environment, tmp_path / name, schedule(1000), copies=copies)
        # an override keeps A2C off columns, whose networks predict other numbers of rows together and round otherwise
        manager.get_agent().update_log = manager.get_agent().update_log
        manager.train_and_act(EnvironmentSteps(120))
        agents.append(manager.get_agent())
    assert agents[0].training_iteration == agents[1].training_iteration >= 120 // (SEGMENT * copies) - 1
    for a, b in zip(*map(weights_of, agents)):
        np.testing.assert_array_equal(a, b)


def of_segments(make: Any, segments: int) -> Any:
    def parameters() -> AgentParameters:
        agent = make()
        agent.algorithm.num_steps_between_gradient_updates = SEGMENT
        agent.algorithm.segments_per_update = segments
        return agent

    return parameters


def together(first: Any, second: Any) -> Any:
    """Two segments in one message."""
    columns = (first.columns, second.columns)
    first.columns = Batch([one[i] for one in columns for i in range(len(one))])
    for name in ("episode_lengths", "reports", "segment_starts"):
        setattr(first, name, getattr(first, name) + getattr(second, name))
    first.steps += second.steps
    return first


@pytest.mark.parametrize("make", [impala, recurrent_impala])
def test_an_update_has_its_number_of_segments_and_the_network_is_asked_once(make, tmp_path):
    worker, trainer = split(of_segments(make, 3), tmp_path)
    learner = trainer.get_agent()
    network, asked, rows = learner.networks["main"].online_network, [], []
    ask = "unroll" if network.recurrent_state else "predict"
    original, update = getattr(network, ask), learner.update_loop.update

    def counted(*values: Any, **how: Any) -> Any:
        asked.append(1)
        return original(*values, **how)

    def noted(columns: Any, **how: Any) -> Any:
        rows.append(int(np.count_nonzero(columns["weights"])))
        return update(columns, **how)

    setattr(network, ask, counted)
    learner.update_loop.update = noted
    lengths: list[int] = []
    for number in range(1, 8):
        played = together(play_segment(worker), play_segment(worker))
        lengths += played.episode_lengths
        learner.take_in(played)
        learner.train()
        assert learner.training_iteration == len(asked) == len(rows) == 2 * number // 3
    assert rows == [sum(lengths[i : i + 3]) for i in range(0, 12, 3)]


def test_segments_for_several_updates_may_come_at_once(tmp_path):
    worker, trainer = split(of_segments(impala, 1), tmp_path)
    learner = trainer.get_agent()
    learner.take_in(together(play_segment(worker), play_segment(worker)))
    learner.train()
    assert learner.training_iteration == 2 and not learner.should_train()


def test_no_more_updates_are_made_than_are_left(tmp_path):
    worker, trainer = split(of_segments(impala, 1), tmp_path)
    learner = trainer.get_agent()
    learner.updates_left = 1
    learner.take_in(together(play_segment(worker), play_segment(worker)))
    learner.train()
    assert learner.training_iteration == 1 and learner.should_train()


def density(policy: list[np.ndarray], action: Any) -> float:
    """log pi(a|s) of one state in float64."""
    if len(policy) == 1:
        return math.log(float(policy[0][int(action)]))
    return sum(
        -0.5 * ((float(a) - float(m)) / float(s)) ** 2 - math.log(float(s)) - 0.5 * math.log(2 * math.pi)
        for a, m, s in zip(np.ravel(action), *policy)
    )


def policies_of(agent: Any, segment: Segment) -> list[list[np.ndarray]]:
    """The policy in each state of a segment, step by step from the state before it."""
    wrapper = agent.networks["main"]
    network = wrapper.online_network
    state = segment.state_before(network.recurrent_state)
    found = []
    for i in range(len(segment)):
        inputs = {name: segment.state_columns[name][i : i + 1] for name in wrapper.input_names}
        if state:
            outputs = network.unroll({name: column[:, None] for name, column in inputs.items()}, state)
            state = {name: outputs[output][:, 0] for name, output in network.recurrent_outputs.items()}
            found.append([outputs[name][0, 0] for name in agent._policy_output_names])
        else:
            outputs = dict(zip(network.output_names, network.predict(inputs, squeeze_output=False)))
            found.append([outputs[name][0] for name in agent._policy_output_names])
    return found


@pytest.mark.parametrize(
    ("make", "environment", "scale"), [(impala, Lottery, 0.5), (recurrent_impala, Lottery, 0.5), (impala, Target, 0.1)]
)
def test_the_correction_is_that_of_the_policies_that_acted_and_learn(make, environment, scale, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.agents.test_received_segments.Lottery", environment)
    parameters = of_segments(make, 1)
    worker, trainer = split(parameters, tmp_path)
    learner, player = trainer.get_agent(), worker.get_agent()
    rng = np.random.default_rng(3)
    for agent in (learner, player):  # far enough from each other that ratios lie on both sides of 1
        network = agent.networks["main"].online_network
        network.set_weights([array + rng.normal(scale=scale, size=array.shape) for array in network.get_weights()])
    seen = []
    for _ in range(6):
        played = play_segment(worker)
        received = Batch(played.columns)
        learner.take_in(played)
        segment = learner.learning._arrived()[0]
        acted = [density(*one) for one in zip(policies_of(player, segment), segment.action_column)]
        np.testing.assert_allclose(received.info(BEHAVIOUR), acted, atol=1e-5)
        wanted = [density(*one) for one in zip(policies_of(learner, segment), segment.action_column)]
        ratios = np.exp(np.asarray(wanted) - np.asarray(acted))
        seen += list(ratios)
        values = segment.outputs["output_0_v"].astype(np.float64)
        values[-1] *= not segment.terminateds()[-1]
        columns = learner.learning_columns(segment)
        targets = explicit_sum(segment.rewards(), values, ratios, 0.5, 1.0, 1.0, 1.0)
        np.testing.assert_allclose(columns["extra/returns"], targets, atol=1e-4)
        following = np.append(targets[1:], values[-1])
        advantages = np.minimum(1.0, ratios) * (segment.rewards() + 0.5 * following - values[:-1])
        np.testing.assert_allclose(columns["extra/advantages"], advantages, atol=1e-4)
    assert min(seen) < 0.9 and max(seen) > 1.1


@pytest.mark.parametrize("change", [None, math.nan, math.inf, "text", "wide", "masked"])
def test_segments_without_probabilities_are_refused_and_change_nothing(change, tmp_path):
    worker, trainer = split(of_segments(impala, 1), tmp_path)
    played, learner = play_segment(worker), trainer.get_agent()
    rows = len(played.columns)
    info = {
        None: {},
        "text": {BEHAVIOUR: np.asarray(["much"] * rows)},
        "wide": {BEHAVIOUR: np.zeros((rows, 2), np.float32)},
        "masked": {BEHAVIOUR: np.ma.masked_all(rows, np.float32)},
    }
    played.columns.info_columns = info.get(change) or (
        {} if change is None else {BEHAVIOUR: np.full(rows, change, np.float32)}
    )
    with pytest.raises(CoachError, match=BEHAVIOUR):
        learner.take_in(played)
    assert learner.total_steps_counter == learner.memory.num_transitions() == 0


def test_segments_of_one_update_that_wait_are_part_of_a_checkpoint(tmp_path):
    parameters = of_segments(recurrent_impala, 3)
    worker, trainer = split(parameters, tmp_path)
    learner = trainer.get_agent()
    learner.take_in(together(play_segment(worker), play_segment(worker)))
    learner.train()
    assert learner.training_iteration == 0
    _, other = split(parameters, tmp_path / "other")
    resumed = other.get_agent()
    resumed.set_state(learner.get_state())
    for _ in range(4):
        played = play_segment(worker)
        for agent in (learner, resumed):
            agent.take_in(played)
            agent.train()
    assert learner.training_iteration == resumed.training_iteration == 2
    for a, b in zip(weights_of(learner), weights_of(resumed)):
        np.testing.assert_array_equal(a, b)


def test_a_trace_longer_than_the_correction_is_refused(tmp_path):
    parameters = impala()
    parameters.algorithm.c_bar = 2.0
    with pytest.raises(CoachError, match=r"algorithm.c_bar is 2.0, above rho_bar"):
        graph(parameters, Bandit, tmp_path)


def test_exploration_whose_probabilities_nobody_knows_is_refused(tmp_path):
    parameters = impala()
    parameters.exploration = OUProcessParameters()
    with pytest.raises(CoachError, match="needs the probabilities of its actions"):
        graph(parameters, Target, tmp_path)
