"""Conditional imitation learning from recorded drives through a town of CARLA. You need the recording
``datasets/carla_train_set_replay_buffer.p``.
"""

import numpy as np

from rl_coach.agents.cil_agent import CILAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import RegressionHeadParameters
from rl_coach.architectures.layers import BatchnormActivationDropout, Conv2d, Dense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, PickledReplayBuffer, TrainingSteps
from rl_coach.environments.carla_environment import CarlaEnvironmentParameters
from rl_coach.environments.carla_routes import CoRL2017
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_crop_filter import ObservationCropFilter
from rl_coach.filters.observation.observation_reduction_by_sub_parts_name_filter import (
    ObservationReductionBySubPartsNameFilter,
)
from rl_coach.filters.observation.observation_rescale_to_size_filter import ObservationRescaleToSizeFilter
from rl_coach.filters.observation.observation_to_uint8_filter import ObservationToUInt8Filter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.schedules import ConstantSchedule
from rl_coach.spaces import ImageObservationSpace

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(10000000000)
schedule_params.steps_between_evaluation_periods = TrainingSteps(500)
schedule_params.evaluation_steps = EnvironmentEpisodes(5)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Network: the convolutions of the paper with batch normalization, and a branch for each of the four commands
agent_params = CILAgentParameters()
main = agent_params.network_wrappers["main"]
convolutions = [(32, 5, 2), (32, 3, 1), (64, 3, 2), (64, 3, 1), (128, 3, 2), (128, 3, 1), (256, 3, 1), (256, 3, 1)]
camera_scheme: list = []
for filters, kernel, stride in convolutions:
    camera_scheme.append(Conv2d(filters, kernel, stride))
    camera_scheme.append(BatchnormActivationDropout(batchnorm=True, activation_function="tanh"))
for _ in range(2):
    camera_scheme.append(Dense(512))
    camera_scheme.append(BatchnormActivationDropout(activation_function="tanh", dropout_rate=0.3))
main.input_embedders_parameters = {
    "CameraRGB": InputEmbedderParameters(scheme=camera_scheme, activation_function="none"),
    "measurements": InputEmbedderParameters(
        scheme=[
            Dense(128),
            BatchnormActivationDropout(activation_function="tanh", dropout_rate=0.5),
            Dense(128),
            BatchnormActivationDropout(activation_function="tanh", dropout_rate=0.5),
        ],
        activation_function="none",
    ),
}
main.middleware_parameters = FCMiddlewareParameters(
    scheme=[Dense(512), BatchnormActivationDropout(activation_function="tanh", dropout_rate=0.5)],
    activation_function="none",
)
main.heads_parameters = [
    RegressionHeadParameters(
        scheme=[
            Dense(256),
            BatchnormActivationDropout(activation_function="tanh", dropout_rate=0.5),
            Dense(256),
            BatchnormActivationDropout(activation_function="tanh"),
        ],
        num_output_head_copies=4,
    )
]
main.batch_size = 120
main.learning_rate = 0.0002

# The sky and the bonnet are cut off the pictures. The speed is the only measurement that the network sees.
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_observation_filter(
    "CameraRGB",
    "cropping",
    ObservationCropFilter(crop_low=np.array([115, 0, 0]), crop_high=np.array([510, -1, -1])),
)
agent_params.input_filter.add_observation_filter(
    "CameraRGB",
    "rescale",
    ObservationRescaleToSizeFilter(ImageObservationSpace(np.array([88, 200, 3]), high=255)),
)
agent_params.input_filter.add_observation_filter("CameraRGB", "to_uint8", ObservationToUInt8Filter(0, 255))
agent_params.input_filter.add_observation_filter(
    "measurements",
    "select_speed",
    ObservationReductionBySubPartsNameFilter(
        ["forward_speed"], reduction_method=ObservationReductionBySubPartsNameFilter.ReductionMethod.Keep
    ),
)

# The agent learns only from the recording. It acts only in evaluation.
agent_params.exploration = AdditiveNoiseParameters()
agent_params.exploration.noise_schedule = ConstantSchedule(0)
agent_params.exploration.evaluation_noise = 0
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(0)
agent_params.memory.load_memory_from_file_path = PickledReplayBuffer("./datasets/carla_train_set_replay_buffer.p")
agent_params.memory.state_key_with_the_class_index = "high_level_command"
agent_params.memory.num_classes = 4

# Environment
env_params = CarlaEnvironmentParameters()
env_params.cameras = ["CameraRGB"]
env_params.camera_height = 600
env_params.camera_width = 800
env_params.separate_actions_for_throttle_and_brake = True
env_params.allow_braking = True
env_params.quality = CarlaEnvironmentParameters.Quality.EPIC
env_params.experiment_suite = CoRL2017("Town01")

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
)
