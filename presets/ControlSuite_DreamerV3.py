"""DreamerV3 learns tasks of the DeepMind Control Suite: ``coach -p ControlSuite_DreamerV3 -f jax -lvl walker:walk``."""

from rl_coach.agents.dreamer_v3_agent import DreamerV3AgentParameters
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.control_suite_environment import ControlSuiteEnvironmentParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import as_small_dreamer

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(10000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(2500)
schedule_params.evaluation_steps = EnvironmentEpisodes(2)
schedule_params.heatup_steps = EnvironmentSteps(1000)

# Agent
agent_params = DreamerV3AgentParameters()
as_small_dreamer(agent_params)

# Environment
env_params = ControlSuiteEnvironmentParameters(level="cartpole:swingup")

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
)
