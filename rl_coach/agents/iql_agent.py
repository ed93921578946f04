"""Implicit Q-learning from a fixed data set (Kostrikov, Nair and Levine 2022, "Offline Reinforcement Learning with
Implicit Q-Learning")."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.core.requirements import NetworkRequirement, V
from rl_coach.agents.rules.implicit_q_learning import implicit_q_learning_stages
from rl_coach.agents.soft_actor_critic_agent import (
    FixedDataActorCriticAgent,
    SoftActorCriticAgent,
    SoftActorCriticAgentParameters,
    SoftActorCriticAlgorithmParameters,
)
from rl_coach.architectures.update import Stages
from rl_coach.core_types import Batch, TrainingSteps
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utilities.requirements import number


class IQLAlgorithmParameters(SoftActorCriticAlgorithmParameters):
    """Hyperparameters of implicit Q-learning. The entropy settings of soft actor-critic have no effect.

    :ivar expectile: tau. With 0.5, the value of a state is the mean value of the data's actions; near 1, it is the
        value of the best action in the data
    :ivar inverse_temperature: beta. The policy imitates actions with a higher advantage more, by exp(beta advantage); 0
        imitates all actions equally
    """

    constraints = {"expectile": number(above=0, below=1), "inverse_temperature": number(0)}

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
        self.expectile: float = 0.7
        self.inverse_temperature: float = 3


class IQLAgentParameters(SoftActorCriticAgentParameters):
    """Implicit Q-learning, with the networks of soft actor-critic. The critics have a target network; V has none."""

    path = "rl_coach.agents.iql_agent:IQLAgent"
    algorithm: IQLAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = IQLAlgorithmParameters()
        self.memory = EpisodicExperienceReplayParameters()
        self.network_wrappers["q"].create_target_network = True
        self.network_wrappers["v"].create_target_network = False


class IQLAgent(FixedDataActorCriticAgent):
    """Learns the values of the data's actions, and a policy that imitates the better actions."""

    network_requirements = {
        **SoftActorCriticAgent.network_requirements,
        "q": NetworkRequirement(SoftActorCriticAgent.network_requirements["q"].heads, has_target=True),
        "v": NetworkRequirement((V,)),
    }

    def make_update_rule(self) -> Stages:
        return implicit_q_learning_stages(self.ap.algorithm.expectile, self.ap.algorithm.inverse_temperature)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = super().learning_columns(batch)
        del columns["extra/noise"]
        return columns
