"""C51 balances a pole on a cart."""

from rl_coach.agents.categorical_dqn_agent import CategoricalDQNAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.presets.tuned._networks import as_dqn
from rl_coach.schedules import LinearSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(1_000)
schedule_params.improve_steps = EnvironmentSteps(50_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(5_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = CategoricalDQNAgentParameters()
as_dqn(agent_params.network_wrappers["main"], learning_rate=LinearSchedule(0.0023, 0, 25_000), batch_size=64)
agent_params.memory.max_size = (MemoryGranularity.Transitions, 100_000)
agent_params.algorithm.discount = 0.99
agent_params.algorithm.n_step = 10
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(256)
agent_params.algorithm.num_consecutive_training_steps = 128
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(10)
agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.04, 8_000)
agent_params.exploration.evaluation_epsilon = 0.0
agent_params.algorithm.v_min, agent_params.algorithm.v_max = 0.0, 100.0  # 100 is the return of an endless episode

# Environment
env_params = GymVectorEnvironment(level="CartPole-v1")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
