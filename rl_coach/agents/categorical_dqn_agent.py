"""Categorical DQN, C51 (Bellemare et al. 2017, "A distributional perspective on reinforcement learning")."""

from __future__ import annotations

from typing import Iterator

import numpy as np

from rl_coach.agents.core.requirements import HeadRequirement, NetworkRequirement
from rl_coach.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters, DQNNetworkParameters
from rl_coach.agents.rules.categorical_dqn import categorical_rule
from rl_coach.agents.rules.q_learning import SelectActions, greedy_by_target
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.head_parameters import CategoricalQHeadParameters
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.update import UpdateRule
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.schedules import LinearSchedule
from rl_coach.utilities.requirements import number, whole

DISTRIBUTION = HeadRequirement("CategoricalQHeadParameters", ("distribution", "log_distribution", "q"))


class CategoricalDQNNetworkParameters(DQNNetworkParameters):
    """A network that predicts a distribution of returns for each action."""

    def __init__(self) -> None:
        super().__init__()
        self.heads_parameters = [CategoricalQHeadParameters()]


class CategoricalDQNAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of categorical DQN.

    :ivar v_min: the smallest return of the support; smaller returns are clipped to it
    :ivar v_max: the largest return of the support
    :ivar atoms: number of returns in the support, evenly spaced from ``v_min`` to ``v_max``
    """

    constraints = {"v_min": number(), "v_max": number(), "atoms": whole(2)}

    def __init__(self) -> None:
        super().__init__()
        self.v_min = -10.0
        self.v_max = 10.0
        self.atoms = 51

    def unmet(self) -> Iterator[str]:
        if self.v_min >= self.v_max:
            yield f"v_min is {self.v_min}; it must be below v_max, which is {self.v_max}"


class CategoricalDQNExplorationParameters(EGreedyParameters):
    """Epsilon-greedy, nearly greedy in evaluations."""

    def __init__(self) -> None:
        super().__init__()
        self.epsilon_schedule = LinearSchedule(1, 0.01, 1000000)
        self.evaluation_epsilon = 0.001


class CategoricalDQNAgentParameters(DQNAgentParameters):
    """Categorical DQN."""

    algorithm_names = ("C51", "CategoricalDQN")
    path = "rl_coach.agents.categorical_dqn_agent:CategoricalDQNAgent"
    algorithm: CategoricalDQNAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = CategoricalDQNAlgorithmParameters()
        self.exploration = CategoricalDQNExplorationParameters()
        self.network_wrappers = {"main": CategoricalDQNNetworkParameters()}


class CategoricalDQNAgent(ValueOptimizationAgent):
    """DQN that learns a distribution of returns for each action."""

    network_requirements = {"main": NetworkRequirement((DISTRIBUTION,), has_target=True)}
    bootstrap_actions: tuple[SelectActions, bool] = (greedy_by_target, False)
    learns_from_stored_states = True
    supports_curiosity = True

    @property
    def z_values(self) -> np.ndarray:
        """[N], the returns of the distributions' support."""
        algorithm = self.ap.algorithm
        return np.linspace(algorithm.v_min, algorithm.v_max, algorithm.atoms)

    def create_networks(self) -> dict[str, NetworkWrapper]:
        algorithm = self.ap.algorithm
        for head in self.ap.network_wrappers["main"].heads_parameters:
            if hasattr(head, "v_min"):  # other heads, such as a user's own head, may have no v_min
                head.v_min, head.v_max, head.atoms = algorithm.v_min, algorithm.v_max, algorithm.atoms
        return super().create_networks()

    def distribution_prediction_to_q_values(self, prediction: np.ndarray) -> np.ndarray:
        """[B, A], the means of distributions [B, A, N]."""
        return np.dot(prediction, self.z_values)

    def make_update_rule(self) -> UpdateRule:
        _, mask_name, loss_weight = self.loss_settings
        return categorical_rule(self.z_values, mask_name, *self.bootstrap_actions, loss_weight=loss_weight)
