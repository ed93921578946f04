"""A2C swings up a double pendulum."""

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import normalize_observations, value_and_policy

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(0)
schedule_params.improve_steps = EnvironmentSteps(500_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(25_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = ActorCriticAgentParameters()
value_and_policy(agent_params.network_wrappers["main"], learning_rate=0.0007)
agent_params.network_wrappers["main"].optimizer_type = "RMSProp"
agent_params.network_wrappers["main"].rms_prop_optimizer_decay = 0.99
agent_params.algorithm.learns_from_copies_together = True
agent_params.algorithm.num_steps_between_gradient_updates = 5
agent_params.algorithm.discount = 0.99
agent_params.algorithm.beta_entropy = 0
normalize_observations(agent_params)
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_reward_filter("rescale", RewardRescaleFilter(1 / 20))

# Environment
env_params = GymVectorEnvironment(level="Acrobot-v1")
env_params.num_environments = 16

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
