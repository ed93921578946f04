"""A loss that becomes NaN ends the run in one line that says where the NaN came from."""

from __future__ import annotations

import pytest

from rl_coach.coach import main
from tests.frameworks import FRAMEWORK

ENVIRONMENT = '''
import gymnasium
import numpy as np


class Walk(gymnasium.Env):
    """Gives NaN from step ``bad`` on, as its observation or its reward."""

    observation_space = gymnasium.spaces.Box(-9, 9, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, bad=0, what="observation"):
        self.bad, self.what, self.steps, self.all_steps = bad, what, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._observation(False), {}

    def step(self, action):
        self.steps += 1
        self.all_steps += 1
        is_bad = 0 < self.bad <= self.all_steps
        reward = np.nan if is_bad and self.what == "reward" else 1.0
        return self._observation(is_bad and self.what == "observation"), reward, self.steps == 25, False, {}

    def _observation(self, is_bad):
        return np.array([(self.steps + 1) / 26, np.nan if is_bad else 0.5, 1.0], np.float32)
'''
PRESET = """
import numpy as np

from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import SimpleSchedule


class Logarithm(ObservationFilter):
    def filter(self, observation, update_internal_state=True):
        return np.log(observation - 0.6 * (observation[0] > 0.9))  # of a negative number from step 23 on

    def get_filtered_observation_space(self, input_observation_space):
        return input_observation_space


agent_params = DQNAgentParameters()
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_observation_filter("observation", "logarithm", Logarithm())
environment = GymVectorEnvironment("walk.py:Walk")
graph_manager = BasicRLGraphManager(agent_params, environment, SimpleSchedule(EnvironmentSteps(400)))
graph_manager.heatup_steps = EnvironmentSteps(30)
"""


@pytest.fixture
def end_of_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "walk.py").write_text(ENVIRONMENT)
    (tmp_path / "logarithm.py").write_text(PRESET)
    monkeypatch.chdir(tmp_path)

    def end(*arguments: str) -> str:
        assert main([*arguments, "-f", FRAMEWORK.name]) == 1
        error = capsys.readouterr().err
        assert "Traceback" not in error
        return error.strip().splitlines()[-1]

    return end


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("observation", "the observation 'observation' that the environment gave in step 14 of episode 6 has nan"),
        ("reward", "the reward that the environment gave in step 14 of episode 6 is nan"),
    ],
)
def test_of_the_environment(end_of_run, what, said):
    # the first of its 140 steps tries the environment out, before the run
    own = f"env_params.additional_simulator_parameters={{'bad': 140, 'what': '{what}'}}"
    line = end_of_run("-p", "CartPole_DQN", "-lvl", "walk.py:Walk", "-cp", f"heatup_steps=EnvironmentSteps(150); {own}")
    assert "the loss of network 'main' became nan at update" in line
    assert said in line and "learning_rate" not in line


def test_of_a_filter(end_of_run):
    line = end_of_run("-p", "logarithm.py")
    assert "that the input filter computed from finite numbers in step 23 of episode 1 has nan" in line


def test_of_the_network(end_of_run):
    changes = "agent_params.network_wrappers['main'].learning_rate=1e30; heatup_steps=EnvironmentSteps(50)"
    line = end_of_run("-p", "CartPole_DQN", "-cp", changes)
    assert "all numbers of the update are finite: try a smaller learning_rate" in line


def test_of_an_action(end_of_run):
    """Adam divides by zero, and the pendulum that gets no number answers with none."""
    changes = "agent_params.network_wrappers['policy'].optimizer_epsilon=0; heatup_steps=EnvironmentSteps(40)"
    line = end_of_run("-p", "tuned/Pendulum_SAC", "-cp", changes)
    assert "the action that the network chose in step" in line and "environment" not in line
