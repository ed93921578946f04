"""Base of the agents that learn as proximal policy optimisation does (Schulman et al. 2017, algorithm 1)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rl_coach.agents.actor_critic_agent import AdvantageAgent
from rl_coach.agents.core.epochs import EpisodeColumns, EpochLearning
from rl_coach.agents.core.requirements import PPO_POLICY, MemoryRequirement, NetworkRequirement, V
from rl_coach.core_types import Batch


class ProximalPolicyAgent(AdvantageAgent):
    """Plays for a while with one policy, then makes several epochs of minibatch updates on what it played.

    A subclass says what its rule needs to know of the policy that played (``behaviour_columns``) and which epochs there
    are (``learn_from_played``).

    :cvar value_network: the network that has the critic
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
            self.phases(),
            self.update_loop,
            self.networks[self.policy_network],
            self.rng,
            columns=lambda batch: self.fill_advantages(batch),
            make_updates=lambda columns: self.learn_from_played(columns),
        )

    @cached_property
    def _episode_columns(self) -> EpisodeColumns:
        return EpisodeColumns(self)

    def fill_advantages(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns to learn from: advantages, the critic's targets and the log probability of what was done.

        :param batch: whole episodes, one after the other
        """
        return self._episode_columns.of(batch)

    def behaviour_columns(
        self, values: np.ndarray, log_probs: np.ndarray, policy: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The columns of the rule that tell of the policy that played.

        :param values: [B], the critic's
        :param log_probs: [B], of the actions that were taken
        :param policy: the network's outputs: probabilities [B, A], or mean and standard deviation [B, D]
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what its rule needs")

    def learn_from_played(self, columns: dict[str, np.ndarray]) -> float:
        """Make the updates on what was played. :return: the mean loss"""
        raise NotImplementedError(f"{type(self).__name__} does not say which updates it makes")

    def post_training_commands(self) -> None:
        """Forget what was played with the old policy: it is of no more use."""
        self.memory.clean()


ACTOR_AND_CRITIC = {"actor": NetworkRequirement((PPO_POLICY,)), "critic": NetworkRequirement((V,))}


class SeparateNetworksAgent(ProximalPolicyAgent):
    """Has its policy and its critic in two networks, ``actor`` and ``critic``. Its rule needs to know the whole policy
    that played: ``extra/behaviour_probabilities``, or ``extra/behaviour_mean`` and
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
