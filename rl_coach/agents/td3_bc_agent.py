"""TD3 that stays near the actions of a fixed data set (Fujimoto and Gu 2021, "A Minimalist Approach to Offline
Reinforcement Learning")."""

from __future__ import annotations

from rl_coach.agents.rules.deterministic_policy import cloning_actor_rule
from rl_coach.agents.td3_agent import TD3Agent, TD3AgentParameters, TD3AlgorithmParameters
from rl_coach.architectures.update import Stage, Stages
from rl_coach.utilities.requirements import number


class TD3BCAlgorithmParameters(TD3AlgorithmParameters):
    """Hyperparameters of TD3, and the weight of the value against imitation.

    :ivar value_weight: alpha, the weight of the critic's value, which is scaled to a mean absolute value of 1; 0
        imitates the data only
    """

    constraints = {"value_weight": number(0)}

    def __init__(self) -> None:
        super().__init__()
        self.value_weight: float = 2.5


class TD3BCAgentParameters(TD3AgentParameters):
    """TD3 with behavioural cloning. The other settings are TD3's."""

    algorithm_names = ("TD3+BC",)
    path = "rl_coach.agents.td3_bc_agent:TD3BCAgent"
    algorithm: TD3BCAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = TD3BCAlgorithmParameters()


class TD3BCAgent(TD3Agent):
    """TD3 with an actor that increases the critic's value and stays near the actions of the data."""

    network_requirements = TD3Agent.network_requirements

    def make_update_rule(self) -> Stages:
        algorithm = self.ap.algorithm
        critics, _ = super().make_update_rule()
        actor = cloning_actor_rule("first", algorithm.value_weight, self.spaces.action, algorithm.action_penalty)
        return critics, Stage(("actor",), actor)
