"""Quantile regression DQN plays an Atari game: ``coach -p Atari_QR_DQN -lvl breakout``."""

from rl_coach.agents.qr_dqn_agent import QuantileRegressionDQNAgentParameters
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.environments.environment import SingleLevelSelection
from rl_coach.environments.gym_environment import Atari, atari_deterministic_v4, atari_schedule
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager

# Agent
agent_params = QuantileRegressionDQNAgentParameters()
agent_params.network_wrappers["main"].learning_rate = 5e-05
agent_params.algorithm.huber_loss_interval = 1

# Environment
env_params = Atari(level=SingleLevelSelection(atari_deterministic_v4))

# The levels that the trace tests play
preset_validation_params = PresetValidationParameters()
preset_validation_params.trace_test_levels = ["breakout", "pong", "space_invaders"]

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=atari_schedule,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
