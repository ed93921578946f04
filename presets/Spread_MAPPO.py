"""MAPPO with a central critic for three agents, which spread over three landmarks."""

from rl_coach.agents.mappo_agent import MAPPOAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward import RewardRescaleFilter
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.graph_managers.multi_agent_graph_manager import MultiAgentGraphManager

# Schedule, in steps of the environment
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(400000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(20000)
schedule_params.evaluation_steps = EnvironmentEpisodes(40)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent. Each of its steps is a joint action of all three agents
agent_params = MAPPOAgentParameters()
for name, observation in (("actor", "observation"), ("critic", "state")):
    network = agent_params.network_wrappers[name]
    network.learning_rate = 0.0007
    network.batch_size = 250
    network.input_embedders_parameters[observation].scheme = [Dense(64)]
    network.middleware_parameters.scheme = [Dense(64)]
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1000)
agent_params.algorithm.discount = 0.95
agent_params.algorithm.gae_lambda = 0.95
agent_params.algorithm.beta_entropy = 0.01
agent_params.algorithm.optimization_epochs = 10
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
