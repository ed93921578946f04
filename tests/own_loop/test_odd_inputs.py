"""Inputs of odd forms: they work, or give one line."""

from __future__ import annotations

import functools

import gymnasium
import numpy as np
import pytest

from rl_coach.own_loop import rlgraph, tensorforce
from rl_coach.own_loop.rlgraph import BoolBox, FloatBox, IntBox, Tuple
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK

SETTINGS = {"framework": FRAMEWORK.name, "seed": 1}
DENSE = [{"type": "dense", "units": 4}]
ZERO, ONE = np.zeros(2, np.float32), np.ones(2, np.float32)
BATCH = {
    "states": np.ones((4, 2)), "actions": [0, 1, 2, 0], "rewards": np.ones(4), "terminals": np.ones(4, bool),
    "next_states": np.ones((4, 2)),
}  # fmt: skip


def one_line(call, reason):
    with pytest.raises(CoachError, match=reason) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 1


@functools.cache
def dqn():
    return rlgraph.DQNAgent(FloatBox(shape=2), 3, network_spec=DENSE, num_envs=2, **SETTINGS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rewards": 1.0}, "'rewards' of the recorded steps is 1.0: give a list with one reward for each step"),
        ({"actions": ["a"] * 4}, "the action .* is not a whole number"),
        ({"actions": [0.5, 1, 2, 0]}, "the action 0.5 is not a whole number"),
        ({"actions": [np.nan, 1, 2, 0]}, "the action nan is not a whole number"),
        ({"actions": [0, 1]}, "'actions' of the recorded steps has 2 rows, and 'rewards' has 4"),
        ({"terminals": "abcd"}, "'terminals' of the recorded steps has 1 rows"),
        ({"states": np.ones((4, 3))}, "has the shape"),
    ],
)
def test_a_wrong_column_is_one_line(change, reason):
    for call in (dqn().update, dqn().get_td_loss, dqn().import_observations):
        one_line(lambda call=call: call({**BATCH, **change}), reason)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((ZERO, "x", [], 1.0, ONE, False, "a"), "the action 'x' is not a whole number"),
        ((ZERO, 0.5, [], 1.0, ONE, False, "a"), "the action 0.5 is not a whole number"),
        ((ZERO, 1, [], 1.0, ONE, False, ["a"]), "env_id must be the name of one environment"),
        ((ZERO, 1, [], 1.0, ONE, False, {"a": 1}), "env_id must be the name of one environment"),
        ((ZERO, 1, [], "1", ONE, False, "a"), "the reward of environment 0 is '1', not a number"),
        ((ZERO, 1, [], 1.0, ONE, "False", "a"), "'terminals' is 'False', not True or False"),
        ((ZERO, 1, [], 1.0, ONE, np.nan, "a"), "'terminals' is nan, not True or False"),
        (
            ([ZERO, ONE], [1, 0, 2], [], [1.0, 1.0], [ONE, ONE], [False, True], "a"),
            "has 3 rows, and there are 2 states",
        ),
        (([ZERO, ONE], [1, 0], [], [1.0, 1.0, 5.0], [ONE, ONE], [False, True], "a"), "has 3 rows, and there are 2"),
        (([ZERO, ONE], [1, 0], [], [1.0, 1.0], [ONE] * 3, [False, True], "a"), "has 3 rows, and there are 2 states"),
        (([ZERO, ONE], [1, 0], [], [1.0, 1.0], [ONE, ONE], [False] * 3, "a"), "has 3 rows, and there are 2 states"),
    ],
)
def test_a_wrong_step_is_one_line(arguments, reason):
    one_line(lambda: dqn().observe(*arguments), reason)


def test_no_states_have_no_actions():
    assert dqn().get_action(np.zeros((0, 2))).shape == (0,)


STATES = Tuple(FloatBox(shape=(2,)), IntBox(3))


@pytest.mark.parametrize("states", [STATES, STATES.to_gymnasium()])
@pytest.mark.parametrize(
    ("kind", "actions"),
    [("dqn", IntBox(2)), ("dqn", Tuple(IntBox(2), BoolBox())), ("ppo", Tuple(IntBox(2), FloatBox(0.0, 1.0)))],
)
def test_states_and_actions_of_tuples(kind, states, actions, tmp_path):
    spec = {"type": kind, "network_spec": DENSE, "update_spec": {"batch_size": 2}}
    agent = rlgraph.Agent.from_spec(spec, state_space=states, action_space=actions, **SETTINGS)
    assert agent.action_space == actions
    for step in range(4):
        state = STATES.sample()
        action = agent.get_action(state)
        assert actions.contains(action)
        agent.observe(state, action, [], 1.0, STATES.sample(), step % 2 == 1)
        agent.update()
    found = agent.get_action(STATES.with_batch_rank().sample(5))
    assert len(found) == 5 and all(map(actions.contains, found))
    agent.save(tmp_path)
    assert rlgraph.Agent.load(tmp_path).action_space == actions


def test_tuples_are_preprocessed():
    states, steps = Tuple(FloatBox(shape=2), FloatBox(shape=1)), [{"type": "multiply", "factor": 2.0}]
    agent = rlgraph.DQNAgent(states, 2, preprocessing_spec=steps, **SETTINGS)
    found = agent.preprocess_states((ONE, np.ones(1, np.float32)))
    assert isinstance(found, tuple) and [part.tolist() for part in found] == [[2, 2], [2]]
    agent.observe(found, agent.get_action(found, apply_preprocessing=False), [], 1.0, found, True)


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "dqn", "memory-spec": {"type": "replay", "capacity": 100}},
        {"type": "dqn", "optimizer-spec": {"type": "adam", "learning-rate": ["linear", 1e-3, 0.0]}},
        {"type": "dqn", "double-q": False, "dueling-q": False, "n-step": 3},
        {"type": "dqn", "update-spec": {"update-interval": 2, "batch-size": 2}},
        {"type": "random", "update_spec": {"do_updates": False}, "optimizer_spec": {"type": "adam"}},
    ],
)
def test_hyphens_are_underscores_in_keys(spec):
    agent = rlgraph.Agent.from_spec(spec, state_space=FloatBox(shape=2), action_space=3, **SETTINGS)
    agent.observe(ZERO, agent.get_action(ZERO), [], 1.0, ONE, True)
    assert agent.timesteps == 1


def test_a_key_with_hyphens_and_underscores_is_one_line():
    spec = {"type": "dqn", "n-step": 3, "n_step": 3}
    one_line(lambda: rlgraph.Agent.from_spec(spec, state_space=2, action_space=3, **SETTINGS), "'n_step' twice")
    spec = {"type": "dqn", "update_spec": {"batch-size": 3, "batch_size": 3}}
    one_line(lambda: rlgraph.Agent.from_spec(spec, state_space=2, action_space=3, **SETTINGS), "'batch_size' twice")


def test_agents_of_specifications_take_masks():
    agent = tensorforce.PPOAgent({"type": "float", "shape": 2}, {"num_actions": 3}, action_mask=True, **SETTINGS)
    for allowed in (0, 1, 2, 1, 0):
        info = {"action_mask": np.eye(3, dtype=np.int8)[allowed]}
        assert agent.act(ZERO, infos=info) == allowed
        agent.observe(terminal=True, reward=1.0, infos=info)


def test_the_noise_of_tensorforce_moves_in_each_timestep():
    states, actions = {"type": "float", "shape": 2}, gymnasium.spaces.Box(-1, 1, (1,))
    noise = {"type": "ornstein_uhlenbeck", "theta": 0.5}
    agent = tensorforce.NAFAgent(states, actions, actions_exploration=noise, **SETTINGS)
    process = agent.graph_manager.get_agent().exploration_policy
    assert (process.dt, process.sigma, process.theta) == (1.0, 0.3, 0.5)
