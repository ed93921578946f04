"""Quantile regression DQN (Dabney et al. 2018, "Distributional reinforcement learning with quantile regression")."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.core.requirements import HeadRequirement, NetworkRequirement
from rl_coach.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters, DQNNetworkParameters
from rl_coach.agents.rules.q_learning import allowed_values, greedy_by_target
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.head_parameters import QuantileRegressionQHeadParameters
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
from rl_coach.utilities.requirements import number, whole

QUANTILES = HeadRequirement("QuantileRegressionQHeadParameters", ("quantiles", "q"))


class QuantileRegressionDQNNetworkParameters(DQNNetworkParameters):
    """A network that predicts quantiles of the return for each action."""

    def __init__(self) -> None:
        super().__init__()
        self.heads_parameters = [QuantileRegressionQHeadParameters()]
        self.learning_rate = 0.00005
        self.optimizer_epsilon = 0.01 / 32


class QuantileRegressionDQNAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of quantile regression DQN.

    :ivar atoms: number of quantiles; 1 learns a median
    :ivar huber_loss_interval: kappa; the loss is quadratic for errors below kappa. 0 is quantile regression without a
        Huber loss
    """

    constraints = {"atoms": whole(1), "huber_loss_interval": number(0)}

    def __init__(self) -> None:
        super().__init__()
        self.atoms = 200
        self.huber_loss_interval: float = 1


class QuantileRegressionDQNAgentParameters(DQNAgentParameters):
    """Quantile regression DQN."""

    algorithm_names = ("QR-DQN", "QuantileRegressionDQN")
    path = "rl_coach.agents.qr_dqn_agent:QuantileRegressionDQNAgent"
    algorithm: QuantileRegressionDQNAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = QuantileRegressionDQNAlgorithmParameters()
        self.network_wrappers = {"main": QuantileRegressionDQNNetworkParameters()}


def huber_within(ops: Any, errors: Any, kappa: float) -> Any:
    """The Huber losses of errors x: x^2 / 2 for |x| <= kappa, otherwise kappa (|x| - kappa / 2) (equation 9); |x| if
    kappa is 0.
    """
    size = ops.abs(errors)
    if kappa == 0:
        return size
    return ops.where(size <= kappa, 0.5 * errors * errors, kappa * (size - 0.5 * kappa))


def quantile_regression_rule(atoms: int, kappa: float, mask_name: str | None, loss_weight: float = 1.0) -> UpdateRule:
    """The loss sum_i E_j |tau_i - [u_ij < 0]| huber(u_ij), with u_ij = r + discount_t theta'_j(s', a') - theta_i(s, a)
    (algorithm 1).

    a' has the largest mean of the target network's quantiles. The errors for prioritized replay are the losses of the
    rows.

    :param atoms: N; tau_i are the midpoints (i - 1/2) / N
    :param kappa: the width of the Huber loss
    :param mask_name: the observation that masks actions, if there is one
    """
    midpoints = ((np.arange(atoms) + 0.5) / atoms).astype(np.float32)[None, :, None]

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, actions=batch.actions, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        main = networks["main"]
        theta_tm1 = select_rows(ops, main.online(batch.states)[0]["quantiles"], batch.actions)
        following = main.target(batch.next_states)[0]
        q_t = allowed_values(ops, following["q"], batch.next_states, mask_name)
        theta_t = select_rows(ops, following["quantiles"], greedy_by_target(ops, q_t, q_t, batch))
        target_tm1 = ops.stop_gradient(batch.rewards[:, None] + batch.discounts[:, None] * theta_t)
        errors = target_tm1[:, None, :] - theta_tm1[:, :, None]
        tilt = ops.abs(ops.convert_to_tensor(midpoints) - ops.cast(errors < 0, "float32"))
        losses = ops.sum(ops.mean(tilt * huber_within(ops, errors, kappa), axis=2), axis=1)
        return Update({"main": loss_weight * weighted_mean(ops, losses, batch.weights)}, errors=losses)

    return rule


class QuantileRegressionDQNAgent(ValueOptimizationAgent):
    """DQN that learns quantiles of the return for each action."""

    network_requirements = {"main": NetworkRequirement((QUANTILES,), has_target=True)}
    learns_from_stored_states = True
    supports_curiosity = True

    def create_networks(self) -> dict[str, NetworkWrapper]:
        for head in self.ap.network_wrappers["main"].heads_parameters:
            if hasattr(head, "atoms"):  # other heads, such as a user's own head, may have no atoms
                head.atoms = self.ap.algorithm.atoms
        return super().create_networks()

    def get_q_values(self, quantile_values: np.ndarray) -> np.ndarray:
        """[B, A], the means of quantiles [B, A, N]."""
        return quantile_values.mean(axis=-1)

    def make_update_rule(self) -> UpdateRule:
        algorithm, (_, mask_name, loss_weight) = self.ap.algorithm, self.loss_settings
        return quantile_regression_rule(algorithm.atoms, algorithm.huber_loss_interval, mask_name, loss_weight)
