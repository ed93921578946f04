"""VDN in the two-step game, with the settings of TwoStep_QMIX. It finds the payoff 7, but not 8."""

from rl_coach.agents.vdn_agent import VDNAgentParameters
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.presets.TwoStep_QMIX import two_step_game

env_params = PettingZooEnvironmentParameters(level="rl_coach.environments.toy_problems.two_step_game:TwoStepGame")
graph_manager = two_step_game(VDNAgentParameters(), env_params)
