"""Own loops over vector environments that reset themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rl_coach.own_loop import Agent, make_agent, rlgraph, tensorforce
from rl_coach.own_loop.agent import DEFINITION_FILE
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.counting_environments import Shifted


class Terminated(Shifted):
    """All ends are terminal."""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, False, info


def play(mode, told, steps=24, gives_infos=True, path=None, gives_states=True):
    """The stored transitions of a loop over a vector environment.

    :param told: the agent's ``autoreset_mode``
    :param gives_states: False gives the states to ``act`` only, as loops for TensorForce do
    :param path: where the agent is saved, and loaded again, before each answer
    """
    envs = SyncVectorEnv([Shifted if gives_states else Terminated] * 2, autoreset_mode=mode)
    agent = make_agent(
        "DQN", observation_space=envs.single_observation_space, action_space=envs.single_action_space, num_envs=2,
        framework=FRAMEWORK.name, seed=1,
    )  # fmt: skip
    agent.autoreset_mode = told
    states, _ = envs.reset(seed=1)
    for _ in range(steps):
        states, rewards, terminated, truncated, infos = envs.step(np.array(agent.act(states)))
        if path is not None:
            agent.save(path)
            agent = Agent.load(path)
        if gives_states:
            agent.observe(rewards, terminated, truncated, states, infos=infos if gives_infos else None)
        else:
            agent.observe(rewards, terminated)
        ended = terminated | truncated
        if mode is AutoresetMode.DISABLED and ended.any():
            states, _ = envs.reset(options={"reset_mask": ended})
    memory = agent.graph_manager.get_agent().memory
    return [memory.get(i) for i in range(memory.num_transitions())]


def place(state):
    episode = float(state["desired_goal"][0])
    return episode, round((float(state["observation"][0]) - episode) * 100)


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        (AutoresetMode.DISABLED, None),
        (AutoresetMode.DISABLED, "disabled"),
        (AutoresetMode.NEXT_STEP, AutoresetMode.NEXT_STEP),
        (AutoresetMode.NEXT_STEP, "next_step"),
        (AutoresetMode.SAME_STEP, "same_step"),
    ],
)
def test_each_step_stays_in_its_episode(mode, told):
    rows = play(mode, told)
    assert (len(rows) < 40) if mode is AutoresetMode.NEXT_STEP else len(rows) == 48
    assert len(rows) > 30
    for row in rows:
        (episode, count), (same, following) = place(row.state), place(row.next_state)
        assert same == episode and following == count + 1


@pytest.mark.parametrize("saves", [False, True])
def test_each_step_stays_in_its_episode_without_the_last_state(saves, tmp_path):
    path = tmp_path if saves else None
    rows = play(AutoresetMode.NEXT_STEP, "next_step", gives_states=False, path=path)
    assert 30 < len(rows) < 44
    for row in rows:
        (episode, count), (same, following) = place(row.state), place(row.next_state)
        assert same == episode and following == count + (not row.game_over)


class Lever:
    """All states are equal, and each step ends its episode."""

    state_space, action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)

    def reset(self):
        return np.zeros(1, np.float32)

    def step(self, action):
        return self.reset(), float(action), True, {}


def test_an_episode_may_begin_in_the_state_in_which_another_has_ended():
    agent = tensorforce.Agent.from_spec(
        {"type": "dqn_agent"}, states={"type": "float", "shape": 1}, actions={"type": "int", "num_actions": 2},
        num_envs=2, framework=FRAMEWORK.name,
    )  # fmt: skip
    for _ in range(3):
        agent.act(np.zeros((2, 1), np.float32))
        agent.observe([True, True], [1.0, 0.0])
    assert agent.episode == 6
    agent = rlgraph.Agent.from_spec(
        {"type": "dqn"}, state_space=Lever.state_space, action_space=2, num_envs=2, framework=FRAMEWORK.name
    )
    worker = rlgraph.SingleThreadedWorker(Lever, agent, num_environments=2)
    assert worker.execute_timesteps(6)["episodes_executed"] == 6
    assert agent.autoreset_mode is None


def test_an_environment_that_resets_itself_may_begin_in_its_last_state():
    agent = make_agent(
        "DQN", observation_space=Lever.state_space, action_space=Lever.action_space, num_envs=2,
        framework=FRAMEWORK.name,
    )  # fmt: skip
    agent.autoreset_mode = "next_step"
    states = np.zeros((2, 1), np.float32)
    for step in range(8):
        agent.act(states)
        agent.observe([1.0, 1.0], [step % 2 == 0] * 2, [False, False], states)
    assert agent.total_steps == 8
    agent.act(states)
    agent.observe([1.0, 1.0], [True, True])  # without the last states
    agent.reset()
    agent.act(states)
    agent.observe([1.0, 1.0], [False, False], [False, False], states)
    assert agent.total_steps == 12


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_loop_continues_between_action_and_answer(mode, tmp_path):
    rows, saved = play(mode, mode), play(mode, mode, path=tmp_path)
    assert [(place(row.state), row.action) for row in saved] == [(place(row.state), row.action) for row in rows]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_an_environment_that_resets_itself_is_refused_if_nobody_says_so(mode):
    with pytest.raises(CoachError, match=r"has ended, and act received .* set agent.autoreset_mode to 'next_step'"):
        play(mode, None, gives_infos=False)


def test_same_step_needs_the_last_states():
    with pytest.raises(CoachError, match=r"the last state of the episode of .* is missing: pass the infos"):
        play(AutoresetMode.SAME_STEP, "same_step", gives_infos=False)


def test_modes_that_do_not_exist():
    with pytest.raises(CoachError, match="there is no autoreset_mode 'later'; choose from disabled, next_step"):
        play(AutoresetMode.DISABLED, "later")


def test_a_saved_loop_is_checked_and_older_files_have_none(tmp_path):
    make_agent("DQN", "CartPole-v1", framework=FRAMEWORK.name).save(tmp_path)
    file = tmp_path / DEFINITION_FILE
    saved = json.loads(file.read_text())
    broken = [], {"waiting": []}, {"autoreset_mode": None, "waiting": ["a"]}
    for loop, reason in [
        *((one, "was not written by Agent.save") for one in broken),
        ({"autoreset_mode": "later", "waiting": []}, "there is no autoreset_mode 'later'"),
    ]:
        file.write_text(json.dumps(saved | {"loop": loop}))
        with pytest.raises(CoachError, match=reason):
            Agent.load(tmp_path)
    del saved["loop"]
    file.write_text(json.dumps(saved))
    assert Agent.load(tmp_path).autoreset_mode is None
