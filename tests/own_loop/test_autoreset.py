"""Own loops over vector environments that reset themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rl_coach.own_loop import Agent, make_agent
from rl_coach.own_loop.agent import DEFINITION_FILE
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.counting_environments import Shifted


def play(mode, told, steps=24, gives_infos=True, path=None):
    """The stored transitions of a loop over a vector environment.

    :param told: the agent's ``autoreset_mode``
    :param path: where the agent is saved, and loaded again, before each answer
    """
    envs = SyncVectorEnv([Shifted] * 2, autoreset_mode=mode)
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
        agent.observe(rewards, terminated, truncated, states, infos=infos if gives_infos else None)
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
