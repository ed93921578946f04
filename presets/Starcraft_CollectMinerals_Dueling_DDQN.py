"""Dueling DDQN collects minerals with two marines of StarCraft II. An action is one of 16 points of the screen."""

from collections import OrderedDict

from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DuelingQHeadParameters
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.starcraft2_environment import StarCraft2EnvironmentParameters
from rl_coach.filters.action.box_discretization import BoxDiscretization
from rl_coach.filters.filter import OutputFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import LinearSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(10000000000)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(50)
schedule_params.evaluation_steps = EnvironmentEpisodes(1)
schedule_params.heatup_steps = EnvironmentSteps(50000)

# Agent
agent_params = DDQNAgentParameters()
main = agent_params.network_wrappers["main"]
main.learning_rate = 0.0001
main.input_embedders_parameters = {"screen": InputEmbedderParameters(input_rescaling={"image": 3.0})}
main.heads_parameters = [DuelingQHeadParameters()]
agent_params.memory.max_size = (MemoryGranularity.Transitions, 1000000)
agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.1, 1000000)
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4)
agent_params.output_filter = OutputFilter(
    action_filters=OrderedDict([("discretization", BoxDiscretization(num_bins_per_dimension=4, force_int_bins=True))]),
    is_a_reference_filter=False,
)

# Environment
env_params = StarCraft2EnvironmentParameters(level="CollectMineralShards")
env_params.feature_screen_maps_to_use = [5]
env_params.feature_minimap_maps_to_use = [5]

preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 50
preset_validation_params.max_episodes_to_achieve_reward = 200
preset_validation_params.num_workers = 1

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
