"""TD3 makes a half cheetah run in a million steps, with the settings of Fujimoto et al. 2018 and rl-zoo's networks."""

from rl_coach.agents.td3_agent import TD3AgentParameters
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.presets.tuned._networks import a_million_steps, as_td3_of_mujoco

# Schedule
schedule_params = a_million_steps()

# Agent
agent_params = TD3AgentParameters()
as_td3_of_mujoco(agent_params)

# Environment
env_params = GymVectorEnvironment(level="HalfCheetah-v5")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
