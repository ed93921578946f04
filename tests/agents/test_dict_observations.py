"""Environments with several observations train with presets that were written for one."""

from __future__ import annotations

import textwrap

import pytest

from rl_coach.coach import CoachInterface
from tests.frameworks import FRAMEWORK

ENVIRONMENT = """\
    import gymnasium as gym
    import numpy as np

    class Rover(gym.Env):
        observation_space = gym.spaces.Dict({
            "position": gym.spaces.Box(-1, 1, (3,), np.float32),
            "camera": gym.spaces.Box(0, 255, (12, 12, 3), np.uint8),
            "gear": gym.spaces.Discrete(4),
        })
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.steps = 0
            return self.observation_space.sample(), {}

        def step(self, action):
            self.steps += 1
            return self.observation_space.sample(), float(action), self.steps == 10, False, {}
    """

PRESET = """\
    from rl_coach.agents.{module} import {agent}AgentParameters
    from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
    from rl_coach.base_parameters import EmbedderScheme
    from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
    from rl_coach.environments.gym_environment import GymVectorEnvironment
    from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
    from rl_coach.graph_managers.graph_manager import SimpleSchedule

    agent_params = {agent}AgentParameters()
    for network in agent_params.network_wrappers.values():
        network.input_embedders_parameters["observation"].scheme = EmbedderScheme.Shallow
        network.batch_size = 4
    schedule = SimpleSchedule(EnvironmentSteps(60), EnvironmentEpisodes(10), EnvironmentEpisodes(1))
    schedule.heatup_steps = EnvironmentSteps(20)
    graph_manager = BasicRLGraphManager(agent_params, GymVectorEnvironment("rover.py:Rover"), schedule)
    """


@pytest.mark.parametrize(
    ("module", "agent"),
    [("dqn_agent", "DQN"), ("clipped_ppo_agent", "ClippedPPO"), ("actor_critic_agent", "ActorCritic")],
)
def test_they_train_without_more_words(tmp_path, monkeypatch, caplog, module, agent):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rover.py").write_text(textwrap.dedent(ENVIRONMENT))
    (tmp_path / "preset.py").write_text(textwrap.dedent(PRESET).format(module=module, agent=agent))
    manager = CoachInterface(preset="preset.py", seed=0, no_summary=True, framework=FRAMEWORK.name).run()
    assert sorted(manager.get_agent().networks["main"].input_names) == ["camera", "gear", "position"]
    assert manager.get_agent().training_iteration > 0 or agent == "ClippedPPO"
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "network 'main' embeds 'observation', but the environment has no such observation: each observation of the "
        "environment gets an embedder: 'camera' (image), 'gear' (vector), 'position' (vector)"
    ]
