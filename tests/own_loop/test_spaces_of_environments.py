"""Agents in environments with unusual spaces, which assert that they get values of them."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rl_coach import make_agent
from rl_coach.memories.memory import MemoryGranularity
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
    with pytest.raises(CoachError, match="choose ClippedPPO or A2C, which need none, or give the action space bounds"):
        train(algorithm, Strict(ONE_SIDED))
