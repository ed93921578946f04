"""Double DQN with one network for three agents that learn independently. They spread over three landmarks."""

from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward import RewardRescaleFilter
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.graph_managers.multi_agent_graph_manager import MultiAgentGraphManager
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import LinearSchedule

# Schedule, in steps of the environment
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(400000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(20000)
schedule_params.evaluation_steps = EnvironmentEpisodes(40)
schedule_params.heatup_steps = EnvironmentSteps(1000)

# Agent. It counts its own steps, which are three in each step of the environment
agent_params = DDQNAgentParameters()
agent_params.network_wrappers["main"].learning_rate = 0.0005
agent_params.network_wrappers["main"].batch_size = 128
agent_params.network_wrappers["main"].input_embedders_parameters["observation"].scheme = [Dense(64)]
agent_params.network_wrappers["main"].middleware_parameters.scheme = [Dense(64)]
agent_params.algorithm.discount = 0.95
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(12)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(500)
agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.05, 150000)
agent_params.exploration.evaluation_epsilon = 0.0
agent_params.memory.max_size = (MemoryGranularity.Transitions, 600000)
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_reward_filter("rescale", RewardRescaleFilter(0.1))

# Environment
env_params = PettingZooEnvironmentParameters(level="mpe2.simple_spread_v3")

graph_manager = MultiAgentGraphManager(
    agents_params=[agent_params],
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
)
