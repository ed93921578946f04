"""Every agent for continuous actions learns Pendulum with its default settings without a loss that is not a number."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.ddpg_agent import DDPGAgentParameters
from rl_coach.agents.naf_agent import NAFAgentParameters
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgentParameters
from rl_coach.agents.ppo_agent import PPOAgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.agents.td3_agent import TD3AgentParameters
from rl_coach.agents.td3_exp_agent import TD3IntrinsicRewardAgentParameters
from rl_coach.agents.wolpertinger_agent import WolpertingerAgentParameters
from rl_coach.base_parameters import AgentParameters, TaskParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.action import BoxDiscretization
from rl_coach.filters.filter import OutputFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from tests.frameworks import FRAMEWORK

SEEDS, STEPS = 10, 3000
STEPS_OF = {"PPO": 12000}  # it plays 5000 before it learns


def _novelty() -> AgentParameters:
    agent = TD3IntrinsicRewardAgentParameters()
    agent.algorithm.env_obs_key = agent.algorithm.agent_obs_key = "observation"
    return agent


def _wolpertinger() -> AgentParameters:
    agent = WolpertingerAgentParameters()
    agent.output_filter = OutputFilter()
    agent.output_filter.add_action_filter("discretization", BoxDiscretization(61))
    return agent


def _quantile_critics() -> AgentParameters:
    agent = SoftActorCriticAgentParameters(use_value_network=False)
    head = agent.network_wrappers["q"].heads_parameters[0]
    head.num_critics, head.num_quantiles = 5, 25
    agent.algorithm.top_quantiles_to_drop = 2
    return agent


def _without_targets() -> AgentParameters:
    agent = SoftActorCriticAgentParameters(use_value_network=False)
    agent.network_wrappers["q"].heads_parameters[0].batchnorm = True
    agent.network_wrappers["q"].create_target_network = False
    return agent


AGENTS: dict[str, Callable[[], AgentParameters]] = {
    "A3C": ActorCriticAgentParameters,
    "ClippedPPO": ClippedPPOAgentParameters,
    "CrossQ": _without_targets,
    "DDPG": DDPGAgentParameters,
    "DDPG with batch normalisation": lambda: DDPGAgentParameters(use_batchnorm=True),
    "NAF": NAFAgentParameters,
    "PG": PolicyGradientsAgentParameters,
    "PPO": PPOAgentParameters,
    "SAC": SoftActorCriticAgentParameters,
    "SAC without a value network": lambda: SoftActorCriticAgentParameters(use_value_network=False),
    "TD3": TD3AgentParameters,
    "TD3 by novelty": _novelty,
    "TQC": _quantile_critics,
    "Wolpertinger": _wolpertinger,
}


@pytest.mark.golden
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("agent", AGENTS)
def test_losses_and_weights_stay_finite(agent: str, seed: int, tmp_path: Any) -> None:
    schedule = ScheduleParameters()
    schedule.heatup_steps, schedule.improve_steps = EnvironmentSteps(400), EnvironmentSteps(STEPS_OF.get(agent, STEPS))
    schedule.steps_between_evaluation_periods = EnvironmentEpisodes(1000)
    schedule.evaluation_steps = EnvironmentEpisodes(0)
    visualization = VisualizationParameters(dump_parameters_documentation=False, dump_csv=False)
    environment = GymVectorEnvironment(level="Pendulum-v1")
    manager = BasicRLGraphManager(AGENTS[agent](), environment, schedule, visualization)
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=seed))
    manager.improve()  # a loss that is not finite is a TrainingError
    trained = manager.get_agent()
    assert trained.training_iteration > 0
    for network in trained.networks.values():
        assert all(np.isfinite(array).all() for array in network.online_network.get_weights())
