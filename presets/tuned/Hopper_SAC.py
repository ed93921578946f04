"""SAC makes a leg hop in a million steps, with the settings of Haarnoja et al. 2018b, appendix D."""

from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.presets.tuned._networks import a_million_steps, as_soft_actor_critic

# Schedule
schedule_params = a_million_steps()

# Agent
agent_params = SoftActorCriticAgentParameters(use_value_network=False)
as_soft_actor_critic(agent_params, learning_rate=0.0003)

# Environment
env_params = GymVectorEnvironment(level="Hopper-v5")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
