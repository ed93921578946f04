"""DDPG drives a car in a town of CARLA. It sees the images of three cameras."""

import copy

from rl_coach.agents.ddpg_agent import DDPGAgentParameters
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.carla_environment import CameraTypes, CarlaEnvironmentParameters, CarlaInputFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(10000000000)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(20)
schedule_params.evaluation_steps = EnvironmentEpisodes(1)
schedule_params.heatup_steps = EnvironmentSteps(1000)

# Agent
agent_params = DDPGAgentParameters()
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4)
actor, critic = agent_params.network_wrappers["actor"], agent_params.network_wrappers["critic"]
for network in (actor, critic):
    embedders = network.input_embedders_parameters
    embedders["forward_camera"] = embedders.pop("observation")
    embedders["left_camera"] = copy.deepcopy(embedders["forward_camera"])
    embedders["right_camera"] = copy.deepcopy(embedders["forward_camera"])
agent_params.input_filter = CarlaInputFilter()
agent_params.input_filter.copy_filters_from_one_observation_to_another("forward_camera", "left_camera")
agent_params.input_filter.copy_filters_from_one_observation_to_another("forward_camera", "right_camera")

# Environment
env_params = CarlaEnvironmentParameters()
env_params.cameras = [CameraTypes.FRONT, CameraTypes.LEFT, CameraTypes.RIGHT]

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
)
