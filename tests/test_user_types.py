"""Type checkers see the mistakes in a user's script, with the package as it is installed here."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

SCRIPT = """\
from rl_coach import make_agent
from rl_coach.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.coach import CoachInterface
from rl_coach.dashboard import app
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.CartPole_DQN import graph_manager
from rl_coach.schedules import LinearSchedule


class MyAlgorithmParameters(DQNAlgorithmParameters):
    def __init__(self):
        super().__init__()
        self.mine = 1


schedule_params, agent_params = ScheduleParameters(), DQNAgentParameters()
agent_params.algorithm = MyAlgorithmParameters()
agent_params.algorithm.mine = 2
agent_params.network_wrappers["main"].learning_rate = LinearSchedule(1e-3, 1e-4, 1000)
agent_params.memory.max_size = 5
app.main([])

agent_params.algorithm.discont = 0.9  # mistake
agent_params.algorithm.discount = "high"  # mistake
agent_params.network_wrappers["main"].learning_rate = "fast"  # mistake
schedule_params.improve_steps = 5000  # mistake
GymVectorEnvironment(levl="CartPole-v1")  # mistake
CoachInterface(preset="CartPole_DQN", framework="theano")  # mistake
make_agent("DQN", "CartPole-v1", seed="zero").act(graph_manager)  # mistake
VisualizationParameters(render="yes")  # mistake
"""
OWN_LOOP = """\
from rl_coach import make_agent
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward import RewardRescaleFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters

agent_params, memory, schedule_params = ClippedPPOAgentParameters(), ExperienceReplayParameters(), ScheduleParameters()
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_reward_filter("rescale", RewardRescaleFilter(0.1))
memory.max_size = (MemoryGranularity.Transitions, 5000)
agent = make_agent(agent_params, "CartPole-v1", framework="jax", num_envs=2, env_ids=["north", "south"])
steps: int = agent.learn(100).total_steps
BasicRLGraphManager(agent_params, GymVectorEnvironment(level="CartPole-v1"), schedule_params)

agent_params.input_filter = RewardRescaleFilter(0.1)  # mistake
memory.max_size = 5000  # mistake
make_agent("DQN", "CartPole-v1", framework="theano")  # mistake
make_agent("DQN", "CartPole-v1", env_ids=2)  # mistake
BasicRLGraphManager(agent_params, "CartPole-v1", schedule_params)  # mistake
loss: str = agent.update()  # mistake
agent.learn(EnvironmentSteps(1000))  # mistake
agent_params.algorithm.clip_likelihood_ratio = 0.2  # mistake
"""


@pytest.mark.parametrize("script", [SCRIPT, OWN_LOOP], ids=["preset", "own_loop"])
def test_pyright_finds_each_mistake_and_no_other(script, tmp_path):
    mistakes = [number for number, line in enumerate(script.splitlines(), 1) if line.endswith("# mistake")]
    pyright = [sys.executable, "-m", "pyright"]
    if subprocess.run([*pyright, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(
            "pyright cannot be run: pip install 'pyright[nodejs]', which loads a package of npm at its first call"
        )
    (tmp_path / "script.py").write_text(script)
    command = [*pyright, "--pythonpath", sys.executable, "--outputjson", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    assert [one["range"]["start"]["line"] + 1 for one in found] == mistakes, found


def test_the_package_is_found_without_an_import_hook():
    """An import hook of an editable installation hides the package from type checkers and editors."""
    import rl_coach

    places = [pathlib.Path(place) for place in sys.path if place]
    package = pathlib.Path(rl_coach.__file__).parent
    assert any((place / "rl_coach").is_dir() and (place / "rl_coach").samefile(package) for place in places)
    for name in ("presets", "dashboard"):
        assert (package / name / "__init__.py").is_file()
