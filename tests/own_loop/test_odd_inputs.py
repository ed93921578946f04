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


def test_an_independent_action_keeps_to_its_mask():
    agent = tensorforce.DQNAgent({"type": "float", "shape": 2}, {"num_actions": 3}, action_mask=True, **SETTINGS)
    for allowed in (0, 1, 2):
        info = {"action_mask": np.eye(3, dtype=np.int8)[allowed]}
        assert agent.act(ZERO, independent=True, infos=info) == allowed


class Masked(gymnasium.Env):
    """An environment that allows one action in each state, and counts other actions."""

    observation_space, action_space = gymnasium.spaces.Box(-1, 1, (2,)), gymnasium.spaces.Discrete(3)
    wrong = 0

    def reset(self, seed=None, options=None):
        self.step_number = 0
        return ZERO, self.info

    @property
    def info(self):
        return {"action_mask": np.eye(3, dtype=np.int8)[self.step_number % 3]}

    def step(self, action):
        self.wrong += not self.info["action_mask"][action]
        self.step_number += 1
        return np.full(2, self.step_number / 20, np.float32), 1.0, self.step_number == 8, False, self.info


def spaces_of_masked():
    return Masked.observation_space, Masked.action_space


def test_a_runner_gives_masks_to_its_agent():
    env = Masked()
    tensorforce.Runner(tensorforce.DQNAgent(*spaces_of_masked(), action_mask=True, **SETTINGS), env).run(4)
    assert env.wrong == 0


@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_gives_masks_to_its_agent(count):
    made = []
    agent = rlgraph.DQNAgent(*spaces_of_masked(), network_spec=DENSE, action_mask=True, num_envs=count, **SETTINGS)
    rlgraph.SingleThreadedWorker(lambda: made.append(Masked()) or made[-1], agent, count).execute_episodes(4)
    assert [env.wrong for env in made] == [0] * count
    for call in (lambda: agent.get_action(ZERO), lambda: agent.observe(ZERO, 1, [], 1.0, ONE, False)):
        one_line(call, "have no argument for an action_mask: add it to the states")


def test_masks_that_the_agent_does_not_use_are_a_warning(caplog):
    tensorforce.Runner(tensorforce.DQNAgent(*spaces_of_masked(), **SETTINGS), Masked()).run(2)
    assert [one.message for one in caplog.records if "action_mask" in one.message] == [
        "the infos have an action_mask that the agent does not use: make it with action_mask=True"
    ]


def test_an_environment_of_the_old_gym_is_one_line(monkeypatch):
    agent, env = tensorforce.RandomAgent(*spaces_of_masked(), **SETTINGS), Masked()
    monkeypatch.setattr(Masked, "step", lambda self, action: (ONE, 1.0, True, {}))
    one_line(lambda: tensorforce.Runner(agent, env).run(1), "must answer an action with state, reward, terminated, t")
    monkeypatch.setattr(Masked, "reset", lambda self, seed=None: ZERO)
    one_line(lambda: tensorforce.Runner(agent, env).run(1), "the environment must answer reset with state, info, not")


class Executed:
    """An environment of TensorForce with given answers."""

    def __init__(self, *answer):
        self.answer = answer

    def reset(self):
        return ZERO

    def execute(self, action):
        return self.answer


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((ONE, 1.0, True), "the terminal is 1.0 and the reward is True: exchange them"),
        ((ONE, True), "the environment must answer an action with state, terminal, reward"),
        ((ONE, True, 1.0, {}), "the environment must answer an action with state, terminal, reward"),
        ((ONE, True, None), "the reward of the environment is None, not a number"),
        ((ONE, "no", 1.0), "the terminal of the environment is 'no', not True or False"),
    ],
)
def test_an_answer_of_another_form_is_one_line(answer, reason):
    agent = tensorforce.RandomAgent({"type": "float", "shape": 2}, {"num_actions": 3}, **SETTINGS)
    one_line(lambda: tensorforce.Runner(agent, Executed(*answer)).run(1), reason)
    if isinstance(answer[1], float):
        agent.reset()
        agent.act(ZERO)
        one_line(lambda: agent.observe(*answer[1:]), reason)  # TensorForce 0.2 had this order


def test_a_best_action_uses_the_earlier_states_of_each_environment():
    steps = [{"type": "sequence", "sequence_length": 2}]
    agent = rlgraph.DQNAgent(
        FloatBox(shape=2), 50, network_spec=DENSE, preprocessing_spec=steps, num_envs=2, **SETTINGS
    )
    for number, name in enumerate(agent.env_names):
        agent.observe(ZERO - 100 * number, 1, [], 1.0, ONE, False, name)
    found = [agent.get_action(np.stack([ONE, ONE]), use_exploration=False).tolist() for _ in range(2)]
    assert found[0] == found[1] == agent.act([ONE, ONE], deterministic=True)
    assert found[0][0] != found[0][1]


def test_best_actions_of_several_environments_do_not_share_earlier_states():
    steps = [{"type": "sequence", "sequence_length": 2}]
    agent = rlgraph.DQNAgent(
        FloatBox(shape=2), 50, network_spec=DENSE, preprocessing_spec=steps, num_envs=3, **SETTINGS
    )
    first = np.stack([ZERO, 100 * ONE, -100 * ONE])
    second = np.stack([100 * ONE, -100 * ONE, ZERO])
    alone = []
    for states in zip(first, second):
        agent.reset()
        alone.append([agent.get_action(state, use_exploration=False) for state in states])
    agent.reset()
    together = [agent.get_action(states, use_exploration=False).tolist() for states in (first, second)]
    assert list(map(list, zip(*together))) == alone and len(np.unique(alone)) > 1


def test_the_noise_of_tensorforce_moves_in_each_timestep():
    states, actions = {"type": "float", "shape": 2}, gymnasium.spaces.Box(-1, 1, (1,))
    noise = {"type": "ornstein_uhlenbeck", "theta": 0.5}
    agent = tensorforce.NAFAgent(states, actions, actions_exploration=noise, **SETTINGS)
    process = agent.graph_manager.get_agent().exploration_policy
    assert (process.dt, process.sigma, process.theta) == (1.0, 0.3, 0.5)


def test_a_clip_ratio_that_is_no_line_from_the_first_step_stays_with_a_warning(caplog):
    curve = {"type": "exponential_decay", "from": 0.2, "to": 0.1}
    for given, is_ignored in ((curve, True), ([0.2, 0.1, 100, 50], True), ([0.2, 0.1], False), (0.2, False)):
        caplog.clear()
        agent = rlgraph.PPOAgent(FloatBox(shape=2), 3, network_spec=DENSE, clip_ratio=given, **SETTINGS)
        assert agent.graph_manager.agent_params.algorithm.clip_likelihood_ratio_using_epsilon == 0.2
        assert ("the spec's 'clip_ratio' stays at 0.2" in caplog.text) is is_ignored


def test_one_value_for_an_action_without_a_name():
    states = {"type": "float", "shape": 2}
    one_line(
        lambda: tensorforce.ConstantAgent(states, {"num_actions": 3}, action_values={"a": 1, "b": 2}, **SETTINGS),
        "'action_values' has 'a'; give one value, because the action has no name",
    )
