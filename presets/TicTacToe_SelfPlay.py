"""Double DQN learns tic-tac-toe against its own past policies."""

from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.self_play import SelfPlayParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.observation_space_type import ObservationSpaceType
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.graph_managers.multi_agent_graph_manager import MultiAgentGraphManager
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import LinearSchedule

# Schedule, in steps of the game. Half of these steps are actions of the learner
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentEpisodes(20000)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(2000)
schedule_params.evaluation_steps = EnvironmentEpisodes(200)
schedule_params.heatup_steps = EnvironmentSteps(1000)

# Agent
agent_params = DDQNAgentParameters()
agent_params.network_wrappers["main"].learning_rate = 0.0005
agent_params.network_wrappers["main"].batch_size = 64
agent_params.network_wrappers["main"].input_embedders_parameters["observation"].scheme = [Dense(128)]
agent_params.network_wrappers["main"].middleware_parameters.scheme = [Dense(128)]
agent_params.algorithm.discount = 1.0
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(500)
agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.05, 20000)
agent_params.exploration.evaluation_epsilon = 0.0
agent_params.memory.max_size = (MemoryGranularity.Transitions, 50000)

# Environment. Observations are two planes, of crosses and noughts, and a mask of the free fields
env_params = PettingZooEnvironmentParameters(level="pettingzoo.classic.tictactoe_v3")
env_params.observation_space_type = ObservationSpaceType.Vector

# The target reward: victories minus defeats, against a player that acts at random
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 0.8
preset_validation_params.max_episodes_to_achieve_reward = 20000

graph_manager = MultiAgentGraphManager(
    agents_params=[agent_params],
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
    self_play=SelfPlayParameters(learner="agent_0", every=TrainingSteps(1000), pool_size=20, newest_share=0.5),
)
