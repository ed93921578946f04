"""PPO learns Pong in 5.2 million frames."""

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import Atari
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import as_ppo

# Schedule. A step is four frames
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(0)
schedule_params.improve_steps = EnvironmentSteps(1280 * 1024)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(64 * 1024)
schedule_params.evaluation_steps = EnvironmentEpisodes(3)

# Agent
agent_params = ClippedPPOAgentParameters()
network = agent_params.network_wrappers["main"]
for part in (*network.input_embedders_parameters.values(), network.middleware_parameters):
    part.activation_function = "relu"
network.middleware_parameters.scheme = [Dense(512)]
network.use_separate_networks_per_head = False
as_ppo(network, learning_rate=0.00025, batch_size=256)
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(8 * 128)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(8 * 128)
agent_params.algorithm.clip_likelihood_ratio_using_epsilon = 0.1
agent_params.algorithm.optimization_epochs = 4
agent_params.algorithm.gae_lambda = 0.95
agent_params.algorithm.discount = 0.99
agent_params.algorithm.beta_entropy = 0.01

# Environment
env_params = Atari(level="PongNoFrameskip-v4")
env_params.num_environments = 8

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
