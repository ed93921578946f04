"""Base class of the agents that learn from demonstrations, without rewards."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.core.recorded_values import learn_statistics_of
from rl_coach.agents.core.requirements import POLICY, NetworkRequirement
from rl_coach.agents.policy_optimization_agent import PolicyAgent
from rl_coach.agents.rules.imitation import imitation_rule
from rl_coach.architectures.update import Stages, UpdateRule
from rl_coach.policy.action_choice import PolicyDescription


class ImitationAgent(PolicyAgent):
    """Learns to choose the actions that are in its memory."""

    network_requirements = {"main": NetworkRequirement((POLICY,))}
    explores_by_parameter = True
    is_on_policy = False

    def before_training(self) -> None:
        """Normalise observations with the statistics of the demonstrations, if the agent learns without playing."""
        if self.ap.algorithm.num_consecutive_playing_steps.num_steps == 0:
            learn_statistics_of(self.memory, self.pre_network_filter)

    def policy_outputs(self, predictions: list[np.ndarray]) -> list[np.ndarray]:
        return self.extract_action_values(predictions)

    def extract_action_values(self, prediction: list[np.ndarray]) -> list[np.ndarray]:
        """The network's outputs from which the action is chosen."""
        return super().policy_outputs(prediction)

    def policy_description(self) -> PolicyDescription | None:
        """The outputs of ``policy_outputs``, and the rule by which a deployed policy chooses from them."""
        return super().policy_description()

    def make_update_rule(self) -> UpdateRule | Stages:
        return imitation_rule(self.ap.network_wrappers["main"].heads_parameters[0].loss_weight)
