"""Advantage weighted actor-critic from a fixed data set (Nair et al. 2020, "AWAC: Accelerating Online Reinforcement
Learning with Offline Datasets")."""

from __future__ import annotations

from rl_coach.agents.core.requirements import NetworkRequirement
from rl_coach.agents.rules.offline_actor_critic import advantage_weighted_stages
from rl_coach.agents.rules.soft_actor_critic import MaximumEntropySettings
from rl_coach.agents.soft_actor_critic_agent import (
    FixedDataActorCriticAgent,
    SoftActorCriticAgent,
    SoftActorCriticAgentParameters,
    SoftActorCriticAlgorithmParameters,
)
from rl_coach.architectures.update import Stages
from rl_coach.core_types import TrainingSteps
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utilities.requirements import number


class AWACAlgorithmParameters(SoftActorCriticAlgorithmParameters):
    """Hyperparameters of advantage weighted actor-critic. The entropy settings of soft actor-critic have no effect.

    :ivar advantage_temperature: lambda, in units of values. With a small number, the policy imitates only the best
        actions of the data; with a very large number, it imitates all actions
    """

    constraints = {"advantage_temperature": number(above=0)}

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
        self.advantage_temperature: float = 1


class AWACAgentParameters(SoftActorCriticAgentParameters):
    """Advantage weighted actor-critic, with the networks of soft actor-critic without a value network."""

    path = "rl_coach.agents.awac_agent:AWACAgent"
    algorithm: AWACAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(use_value_network=False)
        del self.network_wrappers["temperature"]
        self.algorithm = AWACAlgorithmParameters()
        self.algorithm.temperature = 0
        self.memory = EpisodicExperienceReplayParameters()


class AWACAgent(FixedDataActorCriticAgent):
    """Learns the values of its policy. The policy imitates the better actions of the data."""

    network_requirements = {
        "policy": SoftActorCriticAgent.network_requirements["policy"],
        "q": NetworkRequirement(SoftActorCriticAgent.network_requirements["q"].heads, has_target=True),
    }

    def make_update_rule(self) -> Stages:
        settings = MaximumEntropySettings(temperature=0, target_entropy=0)
        return advantage_weighted_stages(self.ap.algorithm.advantage_temperature, settings)
