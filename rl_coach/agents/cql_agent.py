"""Conservative Q-learning for continuous actions (Kumar et al. 2020, "Conservative Q-learning for offline reinforcement
learning"), on soft actor-critic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rl_coach.agents.discrete_cql_agent import add_learned_weight
from rl_coach.agents.rules.conservative import ALPHA, ConservativeSettings
from rl_coach.agents.rules.offline_actor_critic import conservative_critics_rule
from rl_coach.agents.soft_actor_critic_agent import (
    SoftActorCriticAgent,
    SoftActorCriticAgentParameters,
    SoftActorCriticAlgorithmParameters,
)
from rl_coach.architectures.update import Stages
from rl_coach.core_types import Batch, TrainingSteps
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utilities.requirements import number, optional, whole


class CQLAlgorithmParameters(SoftActorCriticAlgorithmParameters):
    """Hyperparameters of soft actor-critic, and the weight of the penalty.

    :ivar conservative_weight: alpha, weight of the penalty on the values of actions that are not in the data. The
        squared error of each critic has the weight 1/2; alpha = 0 gives soft actor-critic
    :ivar gap_threshold: None keeps alpha constant. With a number, alpha starts at ``conservative_weight`` and is
        learned, so that the gap of each critic stays near this number; the signal ``Conservative Gap`` is the sum of
        the gaps
    :ivar num_sampled_actions: N, number of actions that are drawn for each state uniformly, and again from the policy;
        a larger N makes the estimate of the penalty more exact
    """

    constraints = {
        "conservative_weight": number(0),
        "gap_threshold": optional(number()),
        "num_sampled_actions": whole(1),
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
        self.conservative_weight: float = 5
        self.gap_threshold: float | None = None
        self.num_sampled_actions = 10


class CQLAgentParameters(SoftActorCriticAgentParameters):
    """Conservative soft actor-critic without a value network; the policy has a smaller learning rate than the critics,
    as in the paper."""

    path = "rl_coach.agents.cql_agent:CQLAgent"
    algorithm: CQLAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(use_value_network=False)
        self.algorithm = CQLAlgorithmParameters()
        self.memory = EpisodicExperienceReplayParameters()
        self.network_wrappers["policy"].learning_rate = 0.0001


class CQLAgent(SoftActorCriticAgent):
    """Soft actor-critic that lowers the values of actions that are not in the data."""

    network_requirements = {name: one for name, one in SoftActorCriticAgent.network_requirements.items() if name != "v"}

    def __init__(self, agent_parameters: Any, parent: Any = None):
        add_learned_weight(agent_parameters)
        super().__init__(agent_parameters, parent)

    def make_update_rule(self) -> Stages:
        critics, policy = super().make_update_rule()
        algorithm = self.ap.algorithm
        settings = ConservativeSettings(algorithm.conservative_weight, algorithm.gap_threshold)
        taught = critics.networks if settings.gap_threshold is None else (*critics.networks, ALPHA)
        return replace(critics, networks=taught, rule=conservative_critics_rule(critics.rule, settings)), policy

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = super().learning_columns(batch)
        rows, elements = columns["actions"].shape
        size = (rows, self.ap.algorithm.num_sampled_actions, elements)
        columns["extra/uniform_actions"] = self.rng.uniform(-1, 1, size).astype(np.float32)
        columns["extra/sampling_noise"] = self.rng.standard_normal(size, np.float32)
        return columns
