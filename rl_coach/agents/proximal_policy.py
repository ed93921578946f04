"""Base class of the agents with proximal policy optimisation (Schulman et al. 2017, algorithm 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.actor_critic_agent import AdvantageAgent
from rl_coach.agents.core.epochs import EpisodeColumns, EpochLearning
from rl_coach.agents.core.requirements import PPO_POLICY, MemoryRequirement, NetworkRequirement, V
from rl_coach.core_types import Batch


class ProximalPolicyAgent(AdvantageAgent):
    """Plays for a period with one policy, then makes several epochs of minibatch updates on the steps of this period.

    A subclass defines the columns that its update rule needs about the policy that played (``behaviour_columns``), and
    makes the updates (``learn_from_played``).

    :cvar value_network: the network with the critic
    """

    memory_requirement = MemoryRequirement.EPISODES
    rescalers = AdvantageAgent.rescalers
    learns_from_stored_states = True
    value_network = "main"
    learning: EpochLearning

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.signals.use_for_rule("Entropy", self.entropy)
        self.value_targets = self.register_signal("Value Targets")

    def make_learning(self) -> EpochLearning:
        return EpochLearning(
            self,
            self.networks[self.policy_network],
            columns=lambda batch: self.fill_advantages(batch),
            make_updates=lambda columns: self.learn_from_played(columns),
        )

    def fill_advantages(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns to learn from: advantages, the critic's targets and the log probabilities of the actions taken.

        :param batch: whole episodes, one after the other
        """
        return EpisodeColumns(self).of(batch)

    def behaviour_columns(
        self, values: np.ndarray, log_probs: np.ndarray, policy: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The columns that the update rule needs about the policy that played.

        :param values: [B], the critic's values
        :param log_probs: [B], the log probabilities of the actions taken
        :param policy: the network's outputs: probabilities [B, A], or mean and standard deviation [B, D]
        """
        raise NotImplementedError(f"{type(self).__name__} must define behaviour_columns")

    def learn_from_played(self, columns: dict[str, np.ndarray]) -> float:
        """Make the updates on the steps that were played. :return: the mean loss"""
        raise NotImplementedError(f"{type(self).__name__} must define learn_from_played")

    def post_training_commands(self) -> None:
        """Clear the memory, because the rule cannot learn from steps of an old policy."""
        self.memory.clean()


ACTOR_AND_CRITIC = {"actor": NetworkRequirement((PPO_POLICY,)), "critic": NetworkRequirement((V,))}


class SeparateNetworksAgent(ProximalPolicyAgent):
    """Has its policy and its critic in two networks, ``actor`` and ``critic``. Its rule needs the whole distribution of
    the policy that played: ``extra/behaviour_probabilities``, or ``extra/behaviour_mean`` and
    ``extra/behaviour_standard_deviation``.
    """

    batch_network = "actor"
    acting_networks = ("actor",)
    policy_network, value_network = "actor", "critic"
    recurrent_network = "actor"

    def behaviour_columns(
        self, values: np.ndarray, log_probs: np.ndarray, policy: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        names = [name.split("_", 2)[2] for name in self._policy_output_names]
        old = {f"extra/behaviour_{name}": output for name, output in zip(names, policy)}
        return {"extra/behaviour_log_probs": log_probs, **old}
