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
from rl_coach.agents.td3_exp_agent import (
    TD3ExplorationAgentParameters,
    TD3GoalBasedAgentParameters,
    TD3IntrinsicRewardAgentParameters,
)
from rl_coach.agents.wolpertinger_agent import WolpertingerAgentParameters
from rl_coach.base_parameters import AgentParameters, TaskParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.state_dependent_noise import StateDependentNoiseParameters
from rl_coach.filters.action import BoxDiscretization
from rl_coach.filters.filter import OutputFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from tests.frameworks import FRAMEWORK

SEEDS, STEPS = 10, 3000
# PPO plays 5000 before it learns; the others make 20 updates a step
STEPS_OF = {"PPO": 12000, "REDQ": 150, "DroQ": 150}


def _exploring(make: Callable[[], AgentParameters]) -> AgentParameters:
    agent = make()
    agent.algorithm.env_obs_key = agent.algorithm.agent_obs_key = "observation"
    return agent


def _goals() -> AgentParameters:
    agent = _exploring(TD3GoalBasedAgentParameters)
    agent.algorithm.agent_obs_key = "obs-goal"
    for name in ("actor", "critic"):
        embedders = agent.network_wrappers[name].input_embedders_parameters
        embedders["obs-goal"] = embedders.pop("observation")
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


def _many_updates(agent: AgentParameters) -> AgentParameters:
    """20 updates of the critics for each of the policy, at each step."""
    algorithm = agent.algorithm
    algorithm.policy_uses_mean_of_critics = True
    algorithm.num_consecutive_training_steps = algorithm.update_policy_every_x_training_steps = 20
    algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
    return agent


def _random_pairs_of_critics() -> AgentParameters:
    agent = _many_updates(SoftActorCriticAgentParameters(use_value_network=False))
    agent.network_wrappers["q"].heads_parameters[0].num_critics, agent.algorithm.num_critics_in_target = 10, 2
    return agent


def _dropout() -> AgentParameters:
    agent = _many_updates(SoftActorCriticAgentParameters(use_value_network=False))
    head = agent.network_wrappers["q"].heads_parameters[0]
    head.dropout_rate, head.layernorm = 0.01, True
    return agent


def _state_dependent(agent: AgentParameters) -> AgentParameters:
    agent.exploration = StateDependentNoiseParameters(agent)
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
    "DroQ": _dropout,
    "NAF": NAFAgentParameters,
    "PG": PolicyGradientsAgentParameters,
    "PPO": PPOAgentParameters,
    "REDQ": _random_pairs_of_critics,
    "SAC": SoftActorCriticAgentParameters,
    "SAC with gSDE": lambda: _state_dependent(SoftActorCriticAgentParameters(use_value_network=False)),
    "SAC without a value network": lambda: SoftActorCriticAgentParameters(use_value_network=False),
    "TD3": TD3AgentParameters,
    "TD3 beside novelty": lambda: _exploring(TD3ExplorationAgentParameters),
    "TD3 by novelty": lambda: _exploring(TD3IntrinsicRewardAgentParameters),
    "TD3 towards goals": _goals,
    "TQC": _quantile_critics,
    "Wolpertinger": _wolpertinger,
}
LEVELS = {"TD3 towards goals": "tests.zoo.pendulum_with_goal:PendulumWithGoal"}


@pytest.mark.golden
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("agent", AGENTS)
def test_losses_and_weights_stay_finite(agent: str, seed: int, tmp_path: Any) -> None:
    schedule = ScheduleParameters()
    schedule.heatup_steps, schedule.improve_steps = EnvironmentSteps(400), EnvironmentSteps(STEPS_OF.get(agent, STEPS))
    schedule.steps_between_evaluation_periods = EnvironmentEpisodes(1000)
    schedule.evaluation_steps = EnvironmentEpisodes(0)
    visualization = VisualizationParameters(dump_parameters_documentation=False, dump_csv=False)
    environment = GymVectorEnvironment(level=LEVELS.get(agent, "Pendulum-v1"))
    manager = BasicRLGraphManager(AGENTS[agent](), environment, schedule, visualization)
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=seed))
    manager.improve()  # a loss that is not finite is a TrainingError
    trained = manager.get_agent()
    assert trained.training_iteration > 0
    for network in trained.networks.values():
        assert all(np.isfinite(array).all() for array in network.online_network.get_weights())
