"""DreamerV3 learns tasks of the DeepMind Control Suite from images: ``coach -p ControlSuitePixels_DreamerV3``."""

from rl_coach.agents.dreamer_v3_agent import DreamerV3AgentParameters
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.control_suite_environment import ControlSuiteEnvironmentParameters, ObservationType
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_rescale_to_size_filter import ObservationRescaleToSizeFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import as_small_dreamer
from rl_coach.spaces import ImageObservationSpace

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(5000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(1250)
schedule_params.evaluation_steps = EnvironmentEpisodes(2)
schedule_params.heatup_steps = EnvironmentSteps(1000)

# Agent
agent_params = DreamerV3AgentParameters()
as_small_dreamer(agent_params)

# Environment
env_params = ControlSuiteEnvironmentParameters(level="cartpole:swingup")
env_params.observation_type = ObservationType.Image
resize = ObservationRescaleToSizeFilter(ImageObservationSpace((64, 64, 3), high=255))
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_observation_filter("pixels", "resize", resize)

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
)
