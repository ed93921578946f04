"""Base of the agents that learn from demonstrations what to do, not from rewards."""

from __future__ import annotations

from rl_coach.agents.core.requirements import POLICY, NetworkRequirement
from rl_coach.agents.policy_optimization_agent import PolicyAgent
from rl_coach.agents.rules.imitation import imitation_rule
from rl_coach.architectures.update import UpdateRule


class ImitationAgent(PolicyAgent):
    """Learns to choose the actions that are in its memory."""

    network_requirements = {"main": NetworkRequirement((POLICY,))}
    explores_by_parameter = True

    @property
    def is_on_policy(self) -> bool:
        return False

    def make_update_rule(self) -> UpdateRule:
        return imitation_rule(self.ap.network_wrappers["main"].heads_parameters[0].loss_weight)
