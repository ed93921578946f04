"""Conservative Q-learning for discrete actions (Kumar et al. 2020, "Conservative Q-learning for offline reinforcement
learning"), on double DQN."""

from __future__ import annotations

from rl_coach.agents.ddqn_agent import DDQNAgent
from rl_coach.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from rl_coach.agents.rules.q_learning import conservative_rule
from rl_coach.architectures.update import UpdateRule
from rl_coach.utilities.requirements import number


class DiscreteCQLAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of DQN, and the weight of the penalty.

    :ivar conservative_weight: alpha, how much the values of actions that the data do not have are pushed down; 0 is
        double DQN
    """

    constraints = {"conservative_weight": number(0)}

    def __init__(self) -> None:
        super().__init__()
        self.conservative_weight: float = 1


class DiscreteCQLAgentParameters(DQNAgentParameters):
    """Conservative double DQN; other settings as DQN's."""

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = DiscreteCQLAlgorithmParameters()

    @property
    def path(self) -> str:
        return "rl_coach.agents.discrete_cql_agent:DiscreteCQLAgent"


class DiscreteCQLAgent(DDQNAgent):
    """Double DQN that keeps the values of actions low that the data do not have."""

    network_requirements = DDQNAgent.network_requirements
    learns_from_stored_states = True

    def make_update_rule(self) -> UpdateRule:
        weight = self.ap.network_wrappers["main"].heads_parameters[0].loss_weight
        alpha, mask_name = self.ap.algorithm.conservative_weight, self.spaces.action_mask_name
        return conservative_rule(super().make_update_rule(), alpha, mask_name, weight)
