"""Scripts in the form of RLgraph's examples: a file of settings, an environment, a worker and its callback."""

from __future__ import annotations

import json
import pathlib

import gymnasium
import numpy as np
import pytest

from rl_coach.own_loop.rlgraph import (
    Agent,
    Dict,
    FloatBox,
    IntBox,
    OpenAIGymEnv,
    SingleThreadedWorker,
    read_config_file,
)
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK

PUBLISHED = json.loads((pathlib.Path(__file__).parent / "published" / "rlgraph.json").read_text())
SETTINGS = {"framework": FRAMEWORK.name, "seed": 1}


def config(name, folder):
    """The settings of a published example, from a file."""
    path = folder / name
    path.write_text(json.dumps(PUBLISHED[f"examples/{name}"]))
    return read_config_file(path)


def by_reward(seen):
    return lambda reward, duration, timesteps, **kwargs: seen.append((reward, timesteps, kwargs["env_num"]))


def by_return(seen):
    return lambda episode_return, duration, timesteps: seen.append((episode_return, timesteps, 0))


def with_environment(seen):
    return lambda episode_return, duration, timesteps, env_num: seen.append((episode_return, timesteps, env_num))


@pytest.mark.parametrize(
    ("name", "level", "callback"),
    [
        ("dqn_cartpole.json", "CartPole-v0", by_reward),
        ("ppo_cartpole.json", "CartPole-v0", by_reward),
        ("actor_critic_cartpole.json", "CartPole-v0", by_reward),
        ("sac_pendulum.json", "Pendulum-v0", by_return),
    ],
)
def test_an_example_with_a_worker(name, level, callback, tmp_path, caplog):
    env = OpenAIGymEnv.from_spec({"type": "openai", "gym_env": level})
    agent = Agent.from_spec(
        config(name, tmp_path), summary_spec={"summary_regexp": "neural-network"}, state_space=env.state_space,
        action_space=env.action_space, **SETTINGS,
    )  # fmt: skip
    seen = []
    worker = SingleThreadedWorker(
        env_spec=lambda: env, agent=agent, render=True, worker_executes_preprocessing=False,
        episode_finish_callback=callback(seen),
    )  # fmt: skip
    worker.execute_timesteps(250, use_exploration=True)
    results = worker.execute_episodes(1, use_exploration=True)
    assert results["episodes_executed"] == 1 and agent.timesteps == 250 + results["timesteps_executed"]
    assert len(seen) > 1 and all(np.isfinite(total) and steps > 0 and number == 0 for total, steps, number in seen)
    assert "render has no effect" in caplog.text


@pytest.mark.parametrize("name", ["impala_cartpole.json", "impala_openai_gym_with_lstm.json"])
def test_an_example_in_which_the_agent_plays_itself(name, tmp_path):
    given = config(name, tmp_path)
    env = OpenAIGymEnv.from_spec(given["environment_spec"])
    agent = Agent.from_spec(given, state_space=env.state_space, action_space=env.action_space, **SETTINGS)
    env.terminate()
    played = 0
    for _ in range(3):
        ret = agent.update()
        records = ret[3]
        assert np.isfinite(float(ret[1])) and records["rewards"].shape == records["terminals"].shape
        played += records["rewards"].size
    assert agent.timesteps == played > 0 and agent.total_updates == ret[0] >= 3
    agent.terminate()


def test_an_agent_with_an_environment_of_its_own_may_be_given_steps():
    given = PUBLISHED["examples/impala_cartpole.json"]
    agent = Agent.from_spec(given, state_space=FloatBox(shape=4), action_space=2, **SETTINGS)
    for _ in range(20):
        agent.observe(np.zeros(4), agent.get_action(np.zeros(4)), [], 1.0, np.zeros(4), False)
    assert isinstance(agent.update(), float) and agent.timesteps == 20
    agent = Agent.from_spec(
        {**given, "environment_spec": {"type": "gridworld"}}, state_space=4, action_space=2, **SETTINGS
    )
    with pytest.raises(CoachError, match="gridworld"):
        agent.update()


class Balls:
    """An environment as ML-Agents have them: the states are many numbers. :param actions: the space of the actions"""

    def __init__(self, actions):
        self.state_space, self.action_space, self.steps = FloatBox(shape=(8,)), actions, 0

    def reset(self):
        self.steps = 0
        return np.zeros(8, np.float32)

    def step(self, actions):
        self.steps += 1
        return np.ones(8, np.float32), 1.0, self.steps == 5, {}


@pytest.mark.parametrize("name", [one for one in PUBLISHED if "examples/" in one and "mlagents" in one])
def test_an_example_with_an_environment_of_the_users_own(name):
    choices = Dict(forward=IntBox(3), turn=IntBox(2))
    env, seen = Balls(choices if "banana" in name else FloatBox(-1.0, 1.0, shape=(2,))), []
    agent = Agent.from_spec(PUBLISHED[name], state_space=env.state_space, action_space=env.action_space, **SETTINGS)
    worker = SingleThreadedWorker(
        env_spec=env, agent=agent, render=False, worker_executes_preprocessing=False,
        episode_finish_callback=with_environment(seen),
    )  # fmt: skip
    worker.execute_timesteps(20, use_exploration=True)
    assert seen == [(5.0, 5, 0)] * 4


@pytest.mark.parametrize(
    "spec",
    ["CartPole-v1", {"gym_env": "CartPole-v1"}, {"type": "open-ai-gym", "gym_env": "CartPole-v1", "visualize": 0},
     {"type": "openai-gym", "gym_env": "CartPole-v1", "visualize": -1},
     {"type": "openai", "gym_env": "CartPole-v1", "frameskip": 4, "max_num_noops": 30, "fire_reset": True}],
)  # fmt: skip
def test_the_ways_to_describe_an_environment(spec):
    env = OpenAIGymEnv.from_spec(spec)
    assert env.state_space == gymnasium.make("CartPole-v1").observation_space
    env.terminate()
