"""Proximal policy optimisation with an adaptive penalty on the divergence (Schulman et al. 2017, section 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.needs import PPO_POLICY, NetworkNeed, V
from rl_coach.agents.ppo_parameters import (
    PPOActorNetworkParameters,
    PPOAgentParameters,
    PPOAlgorithmParameters,
    PPOCriticNetworkParameters,
)
from rl_coach.agents.proximal_policy import DIVERGENCE, ProximalPolicyAgent
from rl_coach.agents.proximal_policy_rules import adapted_coefficient, ppo_rule
from rl_coach.architectures.update import UpdateRule
from rl_coach.core_types import Batch

__all__ = [
    "PPOActorNetworkParameters",
    "PPOAgent",
    "PPOAgentParameters",
    "PPOAlgorithmParameters",
    "PPOCriticNetworkParameters",
]

_POLICY_EPOCHS, _VALUE_EPOCHS = 10, 1
_POLICY_SIGNALS = ["Policy Loss", "Entropy", DIVERGENCE]


class PPOAgent(ProximalPolicyAgent):
    """See the module."""

    network_needs = {"actor": NetworkNeed((PPO_POLICY,)), "critic": NetworkNeed((V,))}
    batch_network = "actor"
    acting_networks = ("actor",)
    policy_network, value_network = "actor", "critic"
    recurrent_network = "actor"

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.kl_coefficient = float(agent_parameters.algorithm.initial_kl_coefficient)
        self.kl_coefficients = self.register_signal("KL Coefficient")

    def make_update_rule(self) -> UpdateRule:
        algorithm = self.ap.algorithm
        return ppo_rule(
            algorithm.target_kl_divergence,
            algorithm.high_kl_penalty_coefficient if algorithm.use_kl_regularization else None,
            algorithm.beta_entropy,
            self.spaces.action_mask_name,
            algorithm.clip_likelihood_ratio_using_epsilon,
        )

    def learning_scalars(self) -> dict[str, float]:
        return {"kl_coefficient": self.kl_coefficient}

    def behaviour_columns(
        self, values: np.ndarray, log_probs: np.ndarray, policy: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        names = [name.split("_", 2)[2] for name in self._policy_output_names]
        old = {f"extra/behaviour_{name}": output for name, output in zip(names, policy)}
        return {"extra/behaviour_log_probs": log_probs, **old}

    def learn_from_played(self, columns: dict[str, np.ndarray]) -> float:
        self.train_value_network(columns, _VALUE_EPOCHS)
        loss = self.train_policy_network(columns, _POLICY_EPOCHS)
        self.update_kl_coefficient()
        self.training_iteration += 1
        self.update_loop.close_phase()
        return loss

    def train_value_network(self, dataset: dict[str, np.ndarray], epochs: int) -> float:
        """Let the critic learn; the policy stays as it is.

        :param dataset: the columns that ``fill_advantages`` gave
        :return: the mean loss
        """
        how = self._minibatches_of(dataset, epochs)
        result = self.update_loop.update_alone("critic", signal_names=["Value Loss"], **how)
        return float(result.losses["critic"].mean())

    def train_policy_network(self, dataset: dict[str, np.ndarray], epochs: int) -> float:
        """Let the policy learn; the critic stays as it is. Parameters as for ``train_value_network``."""
        how = self._minibatches_of(dataset, epochs)
        result = self.update_loop.update_alone("actor", signal_names=_POLICY_SIGNALS, **how)
        return self.note_policy(result, epochs)

    def _minibatches_of(self, dataset: dict[str, np.ndarray], epochs: int) -> dict[str, Any]:
        return self.minibatches(dataset, epochs, max(epochs, _POLICY_EPOCHS), self.update_loop.batch_size)

    def concat_state_and_timestep(self, dataset: Batch) -> np.ndarray:
        """[N, D + 1], the flat observation of each row, and the number of its step in its episode, from 0 on.

        :param dataset: whole episodes, one after the other
        """
        starts = np.append(0, np.flatnonzero(dataset.game_overs())[:-1] + 1)
        lengths = np.diff(np.append(starts, len(dataset)))
        steps = np.arange(len(dataset)) - np.repeat(starts, lengths)
        observations = dataset.state_columns["observation"].reshape(len(dataset), -1)
        return np.column_stack([observations, steps])

    def update_kl_coefficient(self) -> None:
        """Penalise more if the last epoch's policy was too far from the one that played, less if it was too near."""
        target = self.ap.algorithm.target_kl_divergence
        self.kl_coefficient = adapted_coefficient(self.kl_coefficient, self.divergence, target)
        self.kl_coefficients.add_sample(self.kl_coefficient)

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "kl_coefficient": self.kl_coefficient}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.kl_coefficient = state["kl_coefficient"]
