"""Categorical DQN, C51 (Bellemare et al. 2017, "A distributional perspective on reinforcement learning")."""

from __future__ import annotations

from typing import Any, ClassVar, Mapping

import numpy as np

from rl_coach.agents.dqn_agent import (
    DQNAgentParameters,
    DQNAlgorithmParameters,
    DQNNetworkParameters,
    SelectActions,
    allowed_values,
    greedy_by_target,
)
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.head_parameters import CategoricalQHeadParameters
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    select_rows,
    weighted_mean,
)
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.schedules import LinearSchedule
from rl_coach.utilities.constraints import Constraint, number, whole
from rl_coach.utils import CoachError


class CategoricalDQNNetworkParameters(DQNNetworkParameters):
    """A network of distributions."""

    def __init__(self) -> None:
        super().__init__()
        self.heads_parameters = [CategoricalQHeadParameters()]


class CategoricalDQNAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of categorical DQN.

    :ivar v_min: the smallest return that is told apart; what is below counts as this one
    :ivar v_max: the largest
    :ivar atoms: number of returns from ``v_min`` to ``v_max`` that the distribution is over
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "v_min": number(),
        "v_max": number(),
        "atoms": whole(2),
    }

    def __init__(self) -> None:
        super().__init__()
        self.v_min = -10.0
        self.v_max = 10.0
        self.atoms = 51


class CategoricalDQNExplorationParameters(EGreedyParameters):
    """Epsilon-greedy, nearly greedy in evaluations."""

    def __init__(self) -> None:
        super().__init__()
        self.epsilon_schedule = LinearSchedule(1, 0.01, 1000000)
        self.evaluation_epsilon = 0.001


class CategoricalDQNAgentParameters(DQNAgentParameters):
    """Categorical DQN."""

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = CategoricalDQNAlgorithmParameters()
        self.exploration = CategoricalDQNExplorationParameters()
        self.network_wrappers = {"main": CategoricalDQNNetworkParameters()}

    @property
    def path(self) -> str:
        return "rl_coach.agents.categorical_dqn_agent:CategoricalDQNAgent"


def projected(ops: Any, returns: Any, probabilities: Any, support: np.ndarray) -> Any:
    """[B, N], a distribution over ``returns`` [B, N] as one over the support [N]: the probability of each return goes
    to its two neighbours, the more the nearer they are, and what lies outside to the ends (algorithm 1)."""
    step = float(support[1] - support[0])
    clipped = ops.clip(returns, float(support[0]), float(support[-1]))
    distances = ops.abs(clipped[:, :, None] - ops.convert_to_tensor(support))
    shares = ops.maximum(1.0 - distances / step, 0.0)
    return ops.sum(probabilities[:, :, None] * shares, axis=1)


def categorical_rule(
    support: np.ndarray,
    mask_name: str | None,
    select_actions: SelectActions,
    needs_online: bool,
    loss_weight: float = 1.0,
) -> UpdateRule:
    """The cross-entropy of the distribution of r + discount_t Z_target(s', a') and that of Z(s, a) (algorithm 1).

    Errors are the Kullback-Leibler divergence of the two, by which Rainbow replays (Hessel et al. 2018, section 4).

    :param support: [N], the returns that distributions are over, evenly spaced
    :param mask_name: the observation that masks actions, if there is one
    :param select_actions: as for ``q_learning_rule``, of the distributions' means; ``needs_online`` likewise
    :param loss_weight: the head's
    """
    support = support.astype(np.float32)

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, actions=batch.actions, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        main = networks["main"]
        z_tm1 = main.online(batch.states)[0]
        z_t = main.target(batch.next_states)[0]
        assert_rank(3, z_t=z_t["distribution"])
        q_t_online = main.online(batch.next_states)[0]["q"] if needs_online else z_t["q"]
        q_t, q_t_online = (allowed_values(ops, q, batch.next_states, mask_name) for q in (z_t["q"], q_t_online))
        a_t = select_actions(ops, q_t_online, q_t, batch)
        returns = batch.rewards[:, None] + batch.discounts[:, None] * ops.convert_to_tensor(support)
        target = ops.stop_gradient(projected(ops, returns, select_rows(ops, z_t["distribution"], a_t), support))
        cross_entropy = -ops.sum(target * select_rows(ops, z_tm1["log_distribution"], batch.actions), axis=-1)
        entropy = -ops.sum(target * ops.log(ops.maximum(target, 1e-30)), axis=-1)
        loss = loss_weight * weighted_mean(ops, cross_entropy, batch.weights)
        return Update({"main": loss}, errors=cross_entropy - entropy)

    return rule


class CategoricalDQNAgent(ValueOptimizationAgent):
    """See the module."""

    bootstrap_actions: tuple[SelectActions, bool] = (greedy_by_target, False)
    learns_from_stored_states = True

    @property
    def is_on_policy(self) -> bool:
        return False

    @property
    def z_values(self) -> np.ndarray:
        """[N], the returns that distributions are over."""
        algorithm = self.ap.algorithm
        return np.linspace(algorithm.v_min, algorithm.v_max, algorithm.atoms)

    def create_networks(self) -> dict[str, NetworkWrapper]:
        algorithm = self.ap.algorithm
        if algorithm.v_min >= algorithm.v_max:
            raise CoachError(
                f"algorithm.v_min is {algorithm.v_min}; it must be below v_max, which is {algorithm.v_max}"
            )
        for head in self.ap.network_wrappers["main"].heads_parameters:
            head.v_min, head.v_max, head.atoms = algorithm.v_min, algorithm.v_max, algorithm.atoms
        return super().create_networks()

    def distribution_prediction_to_q_values(self, prediction: np.ndarray) -> np.ndarray:
        """[B, A], the means of distributions [B, A, N]."""
        return np.dot(prediction, self.z_values)

    def make_update_rule(self) -> UpdateRule:
        main = self.ap.network_wrappers["main"]
        return categorical_rule(
            self.z_values,
            self.spaces.action_mask_name,
            *self.bootstrap_actions,
            loss_weight=main.heads_parameters[0].loss_weight,
        )
