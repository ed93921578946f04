"""Munchausen DQN (Vieillard, Pietquin and Geist 2020, "Munchausen reinforcement learning")."""

from __future__ import annotations

from rl_coach.agents.core.requirements import NetworkRequirement, Q
from rl_coach.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from rl_coach.agents.rules.q_learning import munchausen_rule
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.update import UpdateRule
from rl_coach.utilities.requirements import FRACTION, number


class MunchausenDQNAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of Munchausen DQN; the defaults are the paper's (section 4).

    :ivar temperature: tau of the policy softmax(Q_target / tau); near 0 the policy is greedy, a large tau makes it
        uniform
    :ivar munchausen_alpha: the share of the scaled log-policy that is added to the reward; 0 gives soft DQN
    :ivar smallest_log_policy: l_0, the lower bound of the scaled log-policy tau log pi(a|s); with 0, nothing is added
        to the reward
    """

    constraints = {"temperature": number(above=0), "munchausen_alpha": FRACTION, "smallest_log_policy": number(high=0)}

    def __init__(self) -> None:
        super().__init__()
        self.temperature = 0.03
        self.munchausen_alpha = 0.9
        self.smallest_log_policy = -1.0


class MunchausenDQNAgentParameters(DQNAgentParameters):
    """Munchausen DQN with the settings of DQN."""

    algorithm_names = ("MunchausenDQN", "Munchausen", "MDQN")
    path = "rl_coach.agents.munchausen_dqn_agent:MunchausenDQNAgent"
    algorithm: MunchausenDQNAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = MunchausenDQNAlgorithmParameters()


class MunchausenDQNAgent(ValueOptimizationAgent):
    """DQN with a target that is a mean over the next actions. Rewards get a negative bonus for actions that the policy
    rarely takes."""

    network_requirements = {"main": NetworkRequirement((Q,), has_target=True)}
    learns_from_stored_states = True
    supports_curiosity = True
    max_n_step = 1

    def make_update_rule(self) -> UpdateRule:
        algorithm = self.ap.algorithm
        alpha, smallest = algorithm.munchausen_alpha, algorithm.smallest_log_policy
        return munchausen_rule(algorithm.temperature, alpha, smallest, *self.loss_settings)
