"""A loop of the user's own over plain Gymnasium is equal to a preset's run bit for bit."""

from __future__ import annotations

import pytest

from tests.frameworks import run_on, starts_another_framework, where_installed
from tests.own_loop.loops import AGENTS, Loop, agent_state, assert_equal, own_agent, preset_run

STEPS = 200
FAST = [("DQN", 1), ("ClippedPPO", 1), ("recurrent A2C", 1), ("SAC", 4)]
ALL = [pytest.param(n, c, marks=[] if (n, c) in FAST else [pytest.mark.slow]) for n in AGENTS for c in (1, 4)]


@pytest.mark.parametrize("name, num_envs", ALL)
def test_weights_memory_and_counters_are_equal(name, num_envs):
    preset = preset_run(name, num_envs, STEPS)
    agent = Loop(name, own_agent(name, num_envs), num_envs).run(STEPS)
    assert preset.get_agent().training_iteration > 0
    assert_equal(agent_state(preset), agent_state(agent))
    for phase, counter in preset.total_steps_counters.items():
        assert counter.counters == agent.graph_manager.total_steps_counters[phase].counters, phase


@pytest.mark.parametrize(
    "name", ["DQN", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ClippedPPO", "SAC", "recurrent A2C"))]
)
def test_so_is_one_in_which_the_next_state_comes_with_the_next_act(name):
    preset = preset_run(name, 1, STEPS)
    agent = Loop(name, own_agent(name), is_deferred=True).run(STEPS)
    # not the memory, in which the last state of an episode is the one before, and not what the last act has drawn
    assert_equal(agent_state(preset)["networks"], agent_state(agent)["networks"])
    assert preset.get_agent().training_iteration == agent.total_updates > 0


@starts_another_framework
@pytest.mark.slow
@where_installed("mxnet")
def test_they_are_equal_on_mxnet():
    run_on("mxnet", "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__)
