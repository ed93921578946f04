"""Asynchronous advantage actor-critic with an LSTM plays an Atari game: ``coach -p Atari_A3C_LSTM -lvl pong -n 8``."""

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import MiddlewareScheme, PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.environment import SingleLevelSelection
from rl_coach.environments.gym_environment import Atari, atari_deterministic_v4
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(10000000000)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(100)
schedule_params.evaluation_steps = EnvironmentEpisodes(3)
schedule_params.heatup_steps = EnvironmentSteps(10000)

# Agent
agent_params = ActorCriticAgentParameters()
agent_params.algorithm.apply_gradients_every_x_episodes = 1
agent_params.algorithm.num_steps_between_gradient_updates = 20
agent_params.algorithm.beta_entropy = 0.05
agent_params.network_wrappers["main"].learning_rate = 0.0001
agent_params.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(
    scheme=MiddlewareScheme.Medium, number_of_lstm_cells=256
)

# Environment
env_params = Atari(level=SingleLevelSelection(atari_deterministic_v4))

# The levels that the trace tests play
preset_validation_params = PresetValidationParameters()
preset_validation_params.trace_test_levels = ["breakout", "pong", "space_invaders"]

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
