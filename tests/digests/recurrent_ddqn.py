"""Double DQN with a dueling head and an LSTM, which replays sequences from their stored states."""

from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.architectures.head_parameters import DuelingQHeadParameters
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import MiddlewareScheme
from rl_coach.core_types import EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import SimpleSchedule
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.schedules import LinearSchedule

agent_params = DDQNAgentParameters()
agent_params.memory = EpisodicExperienceReplayParameters()
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(50)
agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.1, 400)
network = agent_params.network_wrappers["main"]
network.batch_size = 8
network.heads_parameters = [DuelingQHeadParameters()]
network.middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=16, scheme=MiddlewareScheme.Empty)
network.middleware_parameters.sequence_length, network.middleware_parameters.burn_in = 4, 2

graph_manager = BasicRLGraphManager(
    agent_params=agent_params, env_params=GymVectorEnvironment(level="CartPole-v1"), schedule_params=SimpleSchedule()
)
