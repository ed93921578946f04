"""Every preset whose environment is installed starts, heats up and trains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import TaskParameters
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.environment import SingleLevelSelection
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo import carla_server, starcraft
from tests.zoo.graphs import agents_parameters

LEVELS = {"Atari": "pong", "ControlSuite": "cartpole:swingup", "Fetch": "reach", "Mujoco": "inverted_pendulum"}


def shortened(preset: str) -> Any:
    """The preset's graph manager with one of its levels, small batches, small memories and short playing phases."""
    manager = preset_catalogue.load(preset)
    level = manager.env_params.level
    if isinstance(level, SingleLevelSelection):
        level.select(LEVELS[preset.split("_")[0]])
    for agent in agents_parameters(manager):
        _shorten(agent)
    if isinstance(manager, BatchRLGraphManager):
        manager.heatup_steps, manager.improve_steps = EnvironmentSteps(80), TrainingSteps(2)
        manager.evaluation_steps, manager.reward_model_num_epochs = EnvironmentEpisodes(1), 1
        if manager.experience_generating_agent_params is not None:
            schedule = manager.experience_generating_schedule_params
            schedule.heatup_steps, schedule.improve_steps = EnvironmentSteps(600), TrainingSteps(20)
    return manager


def _shorten(agent: Any) -> None:
    for network in agent.network_wrappers.values():
        network.batch_size = min(network.batch_size, 8)
    if getattr(agent.memory, "max_size", None) and agent.memory.max_size[0] is MemoryGranularity.Transitions:
        agent.memory.max_size = (MemoryGranularity.Transitions, 2048)
    period = agent.algorithm.num_consecutive_playing_steps
    period.num_steps = min(period.num_steps, 64 if isinstance(period, EnvironmentSteps) else 1)
    agent.algorithm.apply_gradients_every_x_episodes = 1
    if hasattr(agent.algorithm, "dnd_size"):
        agent.algorithm.dnd_size, agent.algorithm.number_of_knn = 500, 3


def simulate(preset: str, monkeypatch: Any) -> None:
    """Have a preset whose simulator is no package of Python train with a simulated one."""
    simulators = {"CARLA": carla_server, "Starcraft": starcraft}
    if (simulator := simulators.get(preset.split("_")[0])) is not None:
        simulator.install(monkeypatch)


AT_ONCE = ("BitFlip_DQN", "CartPole_A3C", "CartPole_ACER", "CartPole_QR_DQN", "InvertedPendulum_PG")


def of_all() -> list[Any]:
    """All presets; a few stand for the others where there is little time."""
    names = preset_catalogue.list_all_presets()
    return [pytest.param(name, marks=() if name in AT_ONCE else [pytest.mark.slow]) for name in names]


def weights_of(agent: Any) -> list[np.ndarray]:
    """Copies of the weights of all networks of an agent."""
    return [np.array(array) for network in agent.networks.values() for array in network.online_network.get_weights()]


@pytest.mark.parametrize("preset", of_all())
def test_starts_heats_up_and_trains(preset, tmp_path, monkeypatch):
    simulate(preset, monkeypatch)
    manager = shortened(preset)
    try:
        manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=3))
    except CoachError as error:
        if not any(
            hint in str(error)
            for hint in (
                "pip install",
                "not installed",
                "cannot read",
                "no file",
                "came with Coach 1.0.1",
                "learns only on",
            )
        ):
            raise
        pytest.skip(str(error))
    agents = [agent for level in manager.level_managers for agent in level.agents.values()]
    if isinstance(manager, BatchRLGraphManager):
        before = [weights_of(agent) for agent in agents]
        manager.improve()
        assert_trained(agents, before)
        return
    manager.heatup(EnvironmentSteps(80))
    before = [weights_of(agent) for agent in agents]
    for _ in range(40):
        manager.train_and_act(EnvironmentSteps(64))
        if all(agent.training_iteration for agent in agents):
            break
    manager.close()
    assert_trained(agents, before)


def assert_trained(agents: list[Any], before: list[list[np.ndarray]]) -> None:
    """All networks are finite, and each agent has changed some since ``before``."""
    for agent, weights in zip(agents, before):
        after = weights_of(agent)
        assert agent.training_iteration > 0
        assert all(np.isfinite(array).all() for array in after)
        assert any(not np.array_equal(one, other) for one, other in zip(weights, after))
