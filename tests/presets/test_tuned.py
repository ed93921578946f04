"""Presets at today's best known values: found, listed apart, and able to train."""

from __future__ import annotations

import pytest

from rl_coach.base_parameters import TaskParameters
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import LinearSchedule
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.graphs import agents_parameters

TUNED = preset_catalogue.list_tuned_presets()
AT_ONCE = ("tuned/CartPole_A2C", "tuned/CartPole_PPO", "tuned/Pendulum_PPO")


def test_they_are_found_in_any_case_and_named_apart_from_coachs():
    assert preset_catalogue.expand("TUNED/cartpole_dqn").endswith("presets/tuned/CartPole_DQN.py")
    assert preset_catalogue.name_of("tuned/cartpole_dqn") == "tuned_CartPole_DQN"
    assert preset_catalogue.name_of("cartpole_dqn") == "CartPole_DQN"
    assert not set(TUNED) & set(preset_catalogue.list_all_presets())
    with pytest.raises(CoachError, match=r"no preset 'tuned/CartPole_DNQ'; did you mean 'tuned/CartPole_DQN'"):
        preset_catalogue.load("tuned/CartPole_DNQ")


def test_each_says_what_it_is():
    for summary in preset_catalogue.summaries(TUNED):
        assert summary.name.startswith("tuned/")
        assert summary.environment.startswith(summary.name.split("/")[1].split("_")[0])
        assert summary.algorithm, summary.name


def test_rates_fall_for_as_long_as_training_goes_on():
    """They go by updates, those of PPO by training phases; neither need be as many as there are steps. IMPALA makes an
    update of the segments of all copies of the environment. Agents that train once per episode (those of HAC) are left
    out: how many updates they make depends on how long their episodes last."""
    fall, last = {}, {}
    for name in TUNED:
        manager = preset_catalogue.load(name)
        for agent in agents_parameters(manager):
            algorithm = agent.algorithm
            if isinstance(algorithm.num_consecutive_playing_steps, EnvironmentEpisodes):
                continue
            steps = algorithm.num_consecutive_playing_steps.num_steps
            if hasattr(algorithm, "segments_per_update"):
                steps = algorithm.num_steps_between_gradient_updates * manager.env_params.num_environments
            num_phases = manager.improve_steps.num_steps / steps
            per_phase = 1 if hasattr(algorithm, "optimization_epochs") else algorithm.num_consecutive_training_steps
            for network in agent.network_wrappers.values():
                if isinstance(network.learning_rate, LinearSchedule):
                    fall[name], last[name] = network.learning_rate.decay_steps, num_phases * per_phase
    assert fall and fall == pytest.approx(last, abs=1)


@pytest.mark.parametrize("name", [n if n in AT_ONCE else pytest.param(n, marks=pytest.mark.slow) for n in TUNED])
def test_starts_and_trains(name, tmp_path):
    manager = preset_catalogue.load(name)
    steps = 600
    for agent in agents_parameters(manager):
        period = agent.algorithm.num_consecutive_playing_steps
        period.num_steps = min(period.num_steps, 32 * manager.env_params.num_environments)
        if hasattr(agent.algorithm, "optimization_epochs"):
            agent.algorithm.optimization_epochs = 1
        if agent.memory.max_size and agent.memory.max_size[0] is MemoryGranularity.Transitions:
            agent.memory.max_size = (MemoryGranularity.Transitions, 2048)
        steps = max(steps, period.num_steps, 1000 if isinstance(period, EnvironmentEpisodes) else 0)
    try:
        manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=3))
    except CoachError as error:
        if "pip install" not in str(error):
            raise
        pytest.skip(str(error))
    manager.heatup(EnvironmentSteps(min(300, manager.heatup_steps.num_steps)))
    manager.train_and_act(EnvironmentSteps(steps))
    manager.close()
    assert all(level.agent.training_iteration > 0 for level in manager.level_managers)
