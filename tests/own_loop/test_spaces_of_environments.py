"""Agents in environments with unusual spaces, which assert that they get values of them."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import concatenate, create_empty_array

from rl_coach import make_agent
from rl_coach.core_types import EnvironmentSteps
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.policy import Policy
from rl_coach.spaces import DiscreteActionSpace, MultiDiscreteActionSpace
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK

V3 = spaces.Box(-1, 1, (3,), np.float32)
SMALL = {"middleware_parameters": {"scheme": []}}


class Strict(gymnasium.Env):
    """Random observations, episodes of 12 steps, and no action that is not in the space."""

    def __init__(self, action_space, observation_space=V3, mask=None):
        self.action_space, self.observation_space = action_space, observation_space
        self.mask, self.given = mask, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), self.info()

    def info(self):
        return {} if self.mask is None else {"action_mask": self.mask}

    def step(self, action):
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self.given.append(action)
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps >= 12, False, self.info()


def train(algorithm, env, steps=30, **settings):
    """Train an agent for a few steps. :return: the agent"""
    agent = make_agent(algorithm, env, heatup_steps=20, seed=0, framework=FRAMEWORK.name, **{**SMALL, **settings})
    return agent.learn(steps)


@pytest.mark.parametrize("algorithm", ["SAC", "TD3", "DDPG", "NAF", "A2C", "PG", "AdaptivePPO", "ClippedPPO"])
def test_a_box_may_have_several_axes(algorithm):
    env = Strict(spaces.Box(-0.1, 0.1, (2, 3), np.float32))
    agent = train(algorithm, env)
    action = agent.predict(np.zeros(3, np.float32))
    assert env.action_space.contains(action)
    assert agent.predict(np.zeros((2, 3), np.float32)).shape == (2, 2, 3)
    assert env.action_space.contains(agent.act(np.zeros(3, np.float32)))


MASKED = [
    (spaces.Discrete(4, start=5), [0, 1, 0, 1], [[6, 8]]),
    (spaces.MultiDiscrete([3, 2]), [1, 0, 0, 1, 1], [[0], [0, 1]]),
    (spaces.MultiBinary(3), [0, 1, 1, 0, 0, 0], [[1], [0], [0, 1]]),
]


@pytest.mark.parametrize("algorithm", ["DQN", "A2C", "ClippedPPO"])
@pytest.mark.parametrize(("space", "mask", "allowed"), MASKED)
def test_masks_are_obeyed(algorithm, space, mask, allowed):
    env = Strict(space, mask=np.array(mask, np.int8))
    agent = train(algorithm, env)
    given = [*env.given, agent.predict(np.zeros(3, np.float32), infos={"action_mask": env.mask})]
    for action in given:
        assert all(part in choices for part, choices in zip(np.ravel(action), allowed))


@pytest.mark.parametrize("algorithm", ["DQN", "ClippedPPO"])
def test_multi_binary_actions(algorithm):
    env = Strict(spaces.MultiBinary(3))
    agent = train(algorithm, env)
    assert env.action_space.contains(agent.predict(np.zeros(3, np.float32)))
    assert len({one.tobytes() for one in env.given}) > 4


def test_a_mask_of_an_own_loop_may_be_of_parts():
    agent = make_agent(
        "DQN", observation_space=V3, action_space=spaces.MultiDiscrete([3, 2]), action_mask=True, seed=0,
        framework=FRAMEWORK.name, batch_size=4, **SMALL,
    )  # fmt: skip
    mask = np.array([0, 0, 1, 1, 0], np.int8)
    for _ in range(20):
        assert agent.act(np.zeros(3, np.float32), infos={"action_mask": mask}).tolist() == [2, 0]
        agent.observe(0.0, True, next_states=np.zeros(3, np.float32), infos={"action_mask": mask})
    assert agent.predict(np.zeros(3, np.float32), infos={"action_mask": mask}).tolist() == [2, 0]
    assert agent.predict(np.zeros((1, 3), np.float32), infos=[{"action_mask": mask}]).tolist() == [[2, 0]]


def test_images_with_channels_first():
    env = Strict(spaces.Discrete(2), spaces.Box(0, 255, (3, 40, 44), np.uint8))
    memory = {"max_size": (MemoryGranularity.Transitions, 200)}
    agent = make_agent("DQN", env, heatup_steps=10, seed=0, framework=FRAMEWORK.name, memory=memory, batch_size=4)
    agent.learn(6)
    policy, images = agent._acting_policy(), np.stack([env.observation_space.sample() for _ in range(9)])
    assert policy.observation_shapes == {"observation": (3, 40, 44)}
    one_by_one = [agent.predict(image) for image in images]
    assert agent.predict(images).tolist() == one_by_one
    assert [policy.act(image.transpose(1, 2, 0)) for image in images] == one_by_one


ONE_SIDED = spaces.Box(np.array([0, -np.inf], np.float32), np.array([np.inf, 1], np.float32))


OBSERVATIONS = {
    "the key action": spaces.Dict({"action": V3, "position": spaces.Discrete(3)}),
    "numbers as keys": spaces.Dict({1: V3, 2: spaces.Box(-1, 1, (2,), np.float32)}),
    "slashes": spaces.Dict({"a/b": V3, "a": spaces.Dict({"c": V3})}),
    "a tuple": spaces.Tuple([spaces.Discrete(32), spaces.Discrete(11), V3]),
}


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, ()),
        spaces.Box(-1, 1, (2, 2)),
        spaces.Box(-1, 1, (1, 4)),
        spaces.Box(0, 255, (36, 36), np.uint8),
        spaces.Dict(table=spaces.Box(-1, 1, (4, 1)), number=spaces.Box(-1, 1, ())),
        spaces.Tuple([spaces.Box(-1, 1, (2, 2)), spaces.Discrete(3)]),
    ],
    ids=str,
)
def test_a_state_or_a_batch_of_states_is_predicted(space):
    agent = make_agent("DQN", observation_space=space, action_space=spaces.Discrete(3), framework=FRAMEWORK.name)
    space.seed(1)
    states = [space.sample() for _ in range(3)]
    batch = concatenate(space, states, create_empty_array(space, 3))
    single = [agent.predict(one) for one in states]
    assert [np.shape(one) for one in single] == [()] * 3
    assert agent.predict(batch).tolist() == single


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_observations_of_several_parts(name, tmp_path):
    env = Strict(spaces.Discrete(2), OBSERVATIONS[name])
    agent = train("DQN", env)
    seen = [env.observation_space.sample() for _ in range(5)]
    actions = [int(agent.predict(one)) for one in seen]
    policy = Policy.load(agent.export_model(tmp_path / "policy"))
    assert [policy.act(one) for one in seen] == actions
    rows = create_empty_array(env.observation_space, n=5)
    assert agent.predict(concatenate(env.observation_space, seen, rows)).tolist() == actions
    agent.save(tmp_path / "agent")


@pytest.mark.parametrize(
    ("algorithm", "name", "actions"),
    [
        ("TD3", "the key action", spaces.Box(-1, 1, (2, 2))),
        ("DQN", "a tuple", spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3)])),
        ("A2C", "a tuple", spaces.Dict({"a": spaces.MultiDiscrete([99, 99]), "b": spaces.Discrete(3)})),
    ],
)
def test_parts_of_several_environments_of_an_own_loop(algorithm, name, actions):
    space, count = OBSERVATIONS[name], 3
    agent = make_agent(
        algorithm, observation_space=space, action_space=actions, num_envs=count, seed=0, heatup_steps=4,
        framework=FRAMEWORK.name, **SMALL,
    )  # fmt: skip
    envs = gymnasium.vector.SyncVectorEnv([lambda: Strict(actions, space)] * count)
    states, _ = envs.reset()
    for _ in range(8):
        states, rewards, terminated, truncated, _ = envs.step(agent.act(states))
        agent.observe(rewards, terminated, truncated, next_states=states)
    assert agent.total_steps == 8 * count


@pytest.mark.parametrize("algorithm", ["ClippedPPO", "A2C", "PG", "AdaptivePPO"])
@pytest.mark.parametrize("space", [spaces.Box(-np.inf, np.inf, (2,), np.float32), ONE_SIDED])
def test_a_gaussian_policy_needs_no_bounds(algorithm, space):
    env = Strict(space)
    agent = train(algorithm, env)
    assert env.action_space.contains(agent.predict(np.zeros(3, np.float32)))
    settings = {"noise_as_percentage_from_action_space": False}
    for given in (settings, {"exploration": {"BoxActionSpace": settings}}):
        make_agent(algorithm, env, framework=FRAMEWORK.name, **given)


@pytest.mark.parametrize("algorithm", ["SAC", "TD3", "DDPG", "NAF"])
def test_others_name_agents_that_need_none(algorithm):
    with pytest.raises(
        CoachError, match="choose ClippedPPO or A2C, which need no bounds, or give the action space bounds"
    ):
        train(algorithm, Strict(ONE_SIDED))


MANY = [
    spaces.MultiDiscrete([11] * 5, start=[2] * 5),
    spaces.MultiBinary(40),
    spaces.Dict({"move": spaces.MultiDiscrete([90, 2]), "fire": spaces.Discrete(100, start=1)}),
]


@pytest.mark.parametrize("algorithm", ["ClippedPPO", "A2C", "PG", "AdaptivePPO", "TRPO", "IMPALA"])
@pytest.mark.parametrize("space", MANY)
def test_a_policy_makes_many_choices_at_once(algorithm, space, tmp_path):
    env = Strict(space)
    agent = train(algorithm, env) if algorithm != "TRPO" else train(algorithm, env, middleware_parameters={})
    policy = Policy.load(agent.export_model(tmp_path / "policy"), seed=0)
    for _ in range(5):
        seen = V3.sample()
        assert space.contains(agent.predict(seen))
        assert str(policy.act(seen)) == str(agent.predict(seen))
        assert space.contains(policy.act(seen, deterministic=False))


def test_a_policy_learns_each_of_many_choices(monkeypatch):
    """The reward is the share of right choices, of which there are 4^7 combinations."""
    env = Strict(spaces.MultiDiscrete([4] * 7))
    right = np.arange(7) % 4
    step = env.step

    def rewarded(action):
        observation, _, *ends = step(action)
        return observation, float(np.mean(action == right)), *ends

    monkeypatch.setattr(env, "step", rewarded)
    agent = make_agent(
        "ClippedPPO", env, seed=0, framework=FRAMEWORK.name, num_consecutive_playing_steps=EnvironmentSteps(256),
        learning_rate=0.003, discount=0.0, **SMALL,
    )  # fmt: skip
    agent.learn(4000)
    assert np.mean([np.mean(agent.predict(V3.sample()) == right) for _ in range(20)]) > 0.9


def test_few_combinations_are_parts_for_policies_and_actions_for_values():
    space = spaces.MultiDiscrete([2, 3])
    for algorithm, kind in (("A2C", MultiDiscreteActionSpace), ("IMPALA", MultiDiscreteActionSpace),
                            ("DQN", DiscreteActionSpace), ("ACER", DiscreteActionSpace)):  # fmt: skip
        agent = make_agent(algorithm, Strict(space), framework=FRAMEWORK.name)
        assert type(agent.graph_manager.get_agent().spaces.action) is kind
        assert space.contains(agent.act(V3.sample()))


@pytest.mark.parametrize("algorithm", ["ClippedPPO", "A2C", "AdaptivePPO"])
def test_masks_of_many_choices(algorithm):
    mask = np.isin(np.arange(153), [7, 100, 102, 152]).astype(np.int8)
    env = Strict(spaces.MultiDiscrete([100, 3, 50]), mask=mask)
    agent = train(algorithm, env, num_envs=1)
    given = [*env.given, agent.predict(V3.sample(), infos={"action_mask": mask})]
    assert {tuple(one.tolist()) for one in given} == {(7, 0, 49), (7, 2, 49)}


@pytest.mark.parametrize("algorithm", ["DQN", "Rainbow", "ACER"])
def test_agents_of_one_number_name_those_of_many_choices(algorithm):
    with pytest.raises(CoachError, match="more than 4096: choose ClippedPPO or A2C, which make each choice separately"):
        make_agent(algorithm, Strict(MANY[0]), framework=FRAMEWORK.name)


@pytest.mark.parametrize(
    ("algorithm", "space"),
    [
        ("DQN", spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2, start=5)])),
        ("A2C", spaces.Dict({1: spaces.MultiBinary(2), "b": spaces.Discrete(3)})),
        ("TD3", spaces.Dict({"arm": spaces.Box(-1, 1, (2, 2)), "grip": spaces.Box(0, 5, (2,), np.int64)})),
        ("ClippedPPO", spaces.Tuple([spaces.Discrete(3), spaces.Box(-1, 1, (2,))])),
    ],
)
def test_actions_of_several_parts(algorithm, space, tmp_path):
    agent = train(algorithm, Strict(space))
    policy = Policy.load(agent.export_model(tmp_path / "policy"))
    seen = V3.sample()
    assert space.contains(policy.act(seen)) and str(policy.act(seen)) == str(agent.predict(seen))
