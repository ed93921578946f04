"""Conservative Q-learning for discrete actions (Kumar et al. 2020, "Conservative Q-learning for offline reinforcement
learning"), on double DQN."""

from __future__ import annotations

import math
from typing import Any

from rl_coach.agents.ddqn_agent import DDQNAgent
from rl_coach.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from rl_coach.agents.rules.conservative import ALPHA, ConservativeSettings
from rl_coach.agents.rules.q_learning import conservative_rule
from rl_coach.architectures.update import Stage, Stages, UpdateRule
from rl_coach.architectures.values import ValuesParameters
from rl_coach.utilities.requirements import number, optional
from rl_coach.utils import CoachError


class DiscreteCQLAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of DQN, and the weight of the penalty.

    :ivar conservative_weight: alpha, weight of the penalty on the values of actions that are not in the data. The
        squared error has the weight 1/2; alpha = 0 gives double DQN
    :ivar gap_threshold: None keeps alpha constant. With a number, alpha starts at ``conservative_weight`` and is
        learned, so that the gap (the signal ``Conservative Gap``) stays near this number
    """

    constraints = {"conservative_weight": number(0), "gap_threshold": optional(number())}

    def __init__(self) -> None:
        super().__init__()
        self.conservative_weight: float = 1
        self.gap_threshold: float | None = None


class DiscreteCQLAgentParameters(DQNAgentParameters):
    """Conservative double DQN. The other settings are DQN's."""

    path = "rl_coach.agents.discrete_cql_agent:DiscreteCQLAgent"
    algorithm: DiscreteCQLAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = DiscreteCQLAlgorithmParameters()


class DiscreteCQLAgent(DDQNAgent):
    """Double DQN that lowers the values of actions that are not in the data."""

    network_requirements = DDQNAgent.network_requirements

    def __init__(self, agent_parameters: Any, parent: Any = None):
        add_learned_weight(agent_parameters)
        super().__init__(agent_parameters, parent)

    def make_update_rule(self) -> UpdateRule | Stages:  # type: ignore[override]
        algorithm = self.ap.algorithm
        settings = ConservativeSettings(algorithm.conservative_weight, algorithm.gap_threshold)
        is_huber, mask_name, loss_weight = self.loss_settings
        rule = conservative_rule(super().make_update_rule(), settings, mask_name, is_huber, loss_weight)
        return rule if settings.gap_threshold is None else (Stage(("main", ALPHA), rule),)


def add_learned_weight(agent_parameters: Any) -> None:
    """Add alpha to the values that the agent learns, if ``gap_threshold`` is set.

    :raises CoachError: if ``conservative_weight`` is 0: its logarithm is learned
    """
    algorithm = agent_parameters.algorithm
    if algorithm.gap_threshold is None or ALPHA in agent_parameters.network_wrappers:
        return
    if not algorithm.conservative_weight > 0:
        raise CoachError(
            "algorithm.conservative_weight is 0, but algorithm.gap_threshold is set, so the weight is learned: set "
            "conservative_weight to the first value of the weight, a number above 0"
        )
    trained = {"log_alpha": math.log(algorithm.conservative_weight)}
    agent_parameters.network_wrappers[ALPHA] = ValuesParameters(trained, learning_rate=0.0003)
