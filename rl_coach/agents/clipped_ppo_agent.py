"""Proximal policy optimisation with a clipped ratio (Schulman et al. 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.clipped_ppo_parameters import (
    ClippedPPOAgentParameters,
    ClippedPPOAlgorithmParameters,
    ClippedPPONetworkParameters,
)
from rl_coach.agents.needs import PPO_POLICY, NetworkNeed, V
from rl_coach.agents.proximal_policy import ProximalPolicyAgent
from rl_coach.agents.proximal_policy_rules import clipped_ppo_rule
from rl_coach.architectures.update import UpdateRule
from rl_coach.core_types import RunPhase
from rl_coach.utils import CoachError

__all__ = [
    "ClippedPPOAgent",
    "ClippedPPOAgentParameters",
    "ClippedPPOAlgorithmParameters",
    "ClippedPPONetworkParameters",
]


class ClippedPPOAgent(ProximalPolicyAgent):
    """See the module."""

    network_needs = {"main": NetworkNeed((V, PPO_POLICY))}

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        if agent_parameters.algorithm.use_kl_regularization:
            raise CoachError("ClippedPPO has no KL regularisation: set use_kl_regularization to False, or use PPO")

    def make_update_rule(self) -> UpdateRule:
        algorithm = self.ap.algorithm
        value, policy = self.ap.network_wrappers["main"].heads_parameters
        return clipped_ppo_rule(
            algorithm.clip_likelihood_ratio_using_epsilon, algorithm.beta_entropy,
            value.loss_weight, policy.loss_weight, self.spaces.action_mask_name, algorithm.clip_value_using_epsilon,
        )  # fmt: skip

    def count_played(self, steps: int) -> None:
        super().count_played(steps)
        if self._phase is RunPhase.TRAIN:
            self.ap.algorithm.clipping_decay_schedule.advance(steps)

    def learning_scalars(self) -> dict[str, float]:
        return {"clipping_decay": self.ap.algorithm.clipping_decay_schedule.current_value}

    def behaviour_columns(
        self, values: np.ndarray, log_probs: np.ndarray, policy: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        columns = {"extra/behaviour_log_probs": log_probs}
        if self.ap.algorithm.clip_value_using_epsilon is not None:
            columns["extra/behaviour_values"] = values
        return columns

    def learn_from_played(self, columns: dict[str, np.ndarray]) -> float:
        epochs, target = self.ap.algorithm.optimization_epochs, self.ap.algorithm.target_kl_divergence
        if target is None:
            return self.train_network(columns, epochs)
        losses = []
        for _ in range(epochs):
            losses.append(self.make_epochs(columns, 1, self.update_loop.batch_size))
            if self.divergence > 1.5 * target:
                break
        self.training_iteration += 1
        self.update_loop.close_phase()
        return float(np.mean(losses))

    def train_network(self, columns: dict[str, np.ndarray], epochs: int) -> float:
        """All minibatches of all epochs in one compiled call.

        :param columns: [N, ...] by name
        :return: the mean loss
        """
        loss = self.make_epochs(columns, epochs, self.update_loop.batch_size)
        self.training_iteration += 1
        self.update_loop.close_phase()
        return loss

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "clipping_decay": self.ap.algorithm.clipping_decay_schedule.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.ap.algorithm.clipping_decay_schedule.set_state(state["clipping_decay"])
