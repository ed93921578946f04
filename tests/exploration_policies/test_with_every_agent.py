"""Every exploration policy with every agent that it is for: it starts, heats up, trains, and goes on to act."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.boltzmann import BoltzmannParameters
from rl_coach.exploration_policies.bootstrapped import BootstrappedParameters
from rl_coach.exploration_policies.categorical import CategoricalParameters
from rl_coach.exploration_policies.continuous_entropy import ContinuousEntropyParameters
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.exploration_policies.greedy import GreedyParameters
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.exploration_policies.parameter_noise import ParameterNoiseParameters
from rl_coach.exploration_policies.state_dependent_noise import StateDependentNoiseParameters
from rl_coach.exploration_policies.truncated_normal import TruncatedNormalParameters
from rl_coach.exploration_policies.ucb import UCBParameters
from rl_coach.schedules import ConstantSchedule
from tests.zoo import continuous, parameters
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph
from tests.zoo.parameters import acer, ppo

Make = Callable[[], AgentParameters]
Explore = Callable[[AgentParameters], Any]


def heads(make: type) -> Explore:
    def explore(agent: AgentParameters) -> Any:
        exploration = make()
        exploration.architecture_num_q_heads = 3
        return exploration

    return explore


def temperature(agent: AgentParameters) -> Any:
    exploration = BoltzmannParameters()
    exploration.temperature_schedule = ConstantSchedule(0.5)
    return exploration


def plain(make: type) -> Explore:
    return lambda agent: make()


OF_VALUES = (
    parameters.dqn, parameters.ddqn, parameters.dueling, parameters.mixed_monte_carlo, parameters.categorical,
    parameters.persistent_advantage_learning, parameters.quantile_regression, parameters.n_step_q,
    parameters.neural_episodic_control, parameters.munchausen, parameters.pqn,
    parameters.direct_future_prediction,
)  # fmt: skip
OF_POLICIES = (parameters.policy_gradients, parameters.actor_critic, parameters.clipped_ppo, ppo, parameters.trpo)
OF_KNOWN_PROBABILITIES = (*OF_POLICIES, parameters.impala)
OF_POINTS = (continuous.ddpg, continuous.td3, parameters.normalized_advantages, continuous.wolpertinger)
OF_LEARNED_NOISE = (*OF_POLICIES, continuous.ddpg, continuous.td3, continuous.maximum_entropy)
DISCRETE: dict[str, tuple[Explore, tuple[Make, ...]]] = {
    "epsilon-greedy": (plain(EGreedyParameters), OF_VALUES),
    "greedy": (plain(GreedyParameters), (*OF_VALUES, *OF_POLICIES, acer)),
    "Boltzmann": (temperature, OF_VALUES),
    "noisy networks": (ParameterNoiseParameters, (*OF_VALUES[:7], parameters.rainbow)),
    "categorical": (plain(CategoricalParameters), (*OF_KNOWN_PROBABILITIES, acer)),
    "bootstrapped": (heads(BootstrappedParameters), (parameters.bootstrapped,)),
    "UCB": (heads(UCBParameters), (parameters.upper_confidence_bounds,)),
}
CONTINUOUS: dict[str, tuple[Explore, tuple[Make, ...]]] = {
    "additive": (plain(AdditiveNoiseParameters), (*OF_POINTS, *OF_KNOWN_PROBABILITIES, parameters.soft_actor_critic)),
    "truncated normal": (plain(TruncatedNormalParameters), (*OF_POINTS, *OF_POLICIES)),
    "Ornstein-Uhlenbeck": (plain(OUProcessParameters), (*OF_POINTS, *OF_POLICIES)),
    "continuous entropy": (plain(ContinuousEntropyParameters), OF_KNOWN_PROBABILITIES),
    "gSDE": (StateDependentNoiseParameters, OF_LEARNED_NOISE),
    "epsilon-greedy": (plain(EGreedyParameters), OF_POINTS),
    "greedy, of points": (plain(GreedyParameters), (*OF_POINTS, *OF_POLICIES)),
    "noisy networks": (ParameterNoiseParameters, (continuous.ddpg,)),
}


def pairs() -> list[Any]:
    """Each policy with its first agent in every run, the other pairs in ``make soak``."""
    return [
        pytest.param(
            environment, explore, make, id=f"{name} {make.__name__}", marks=[pytest.mark.slow] * (make is not agents[0])
        )
        for environment, policies in ((Bandit, DISCRETE), (Target, CONTINUOUS))
        for name, (explore, agents) in policies.items()
        for make in agents
    ]


@pytest.mark.parametrize(("environment", "explore", "make"), pairs())
def test_starts_heats_up_trains_and_acts(environment, explore, make, tmp_path):
    agent = make()
    agent.exploration = explore(agent)
    manager = graph(agent, environment, tmp_path)
    manager.heatup(EnvironmentSteps(40))
    manager.train_and_act(EnvironmentSteps(140))
    trained = manager.get_agent()
    assert trained.training_iteration > 0
    weights = [array for network in trained.networks.values() for array in network.online_network.get_weights()]
    assert all(np.isfinite(array).all() for array in weights)
    again = trained.exploration_policy.get_state()
    trained.exploration_policy.set_state(again)
    manager.train_and_act(EnvironmentSteps(10))
    manager.close()
