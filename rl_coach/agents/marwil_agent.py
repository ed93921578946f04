"""MARWIL, monotonic advantage re-weighted imitation learning (Wang et al. 2018, "Exponentially Weighted Imitation
Learning for Batched Historical Data")."""

from __future__ import annotations

from typing import Iterator

import numpy as np

from rl_coach.agents.bc_agent import BCAgentParameters, BCAlgorithmParameters
from rl_coach.agents.core.requirements import POLICY, MemoryRequirement, NetworkRequirement, V
from rl_coach.agents.imitation_agent import ImitationAgent
from rl_coach.agents.mmc_agent import columns_with_returns
from rl_coach.agents.rules.imitation import NORMALISER, weighted_imitation_rule
from rl_coach.architectures.head_parameters import VHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.update import Stage, Stages
from rl_coach.architectures.values import ValuesParameters
from rl_coach.core_types import Batch
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utilities.requirements import FRACTION, number


class MARWILAlgorithmParameters(BCAlgorithmParameters):
    """Hyperparameters of MARWIL. With ``num_consecutive_playing_steps`` of ``EnvironmentSteps(0)``, the agent learns
    only from recorded episodes. Otherwise the agent also plays, and learns from its own episodes too.

    :ivar beta: 0 gives all actions the same weight, as in behavioural cloning; with a larger number, better actions
        have larger weights
    :ivar normaliser_rate: the share of the newest batch in c^2, the moving average of squared advantages. With 1, only
        the newest batch counts. With 0, c^2 never changes. It begins with
        ``network_wrappers['normaliser'].kept['mean_squared_advantage']``
    """

    constraints = {"beta": number(0), "normaliser_rate": FRACTION}

    def __init__(self) -> None:
        super().__init__()
        self.beta: float = 1.0
        self.normaliser_rate = 1e-8


class MARWILAgentParameters(BCAgentParameters):
    """MARWIL that learns from the episodes of its memory: recorded episodes, its own episodes, or both. Evaluations
    have noise by default, as with ``BCAgentParameters``.
    """

    path = "rl_coach.agents.marwil_agent:MARWILAgent"
    algorithm: MARWILAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = MARWILAlgorithmParameters()
        self.memory = EpisodicExperienceReplayParameters()
        self.network_wrappers["value"] = FullyConnectedParameters(VHeadParameters())
        self.network_wrappers[NORMALISER] = ValuesParameters(kept={"mean_squared_advantage": 100.0})


class MARWILAgent(ImitationAgent):
    """Imitates the actions of its memory. Actions that were followed by a higher return have larger weights."""

    network_requirements = {"main": NetworkRequirement((POLICY,)), "value": NetworkRequirement((V,))}
    memory_requirement = MemoryRequirement.RETURNS
    acting_networks = ("main",)
    max_n_step = 0
    acts_in_parts = True

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        if NORMALISER not in self.ap.network_wrappers:
            yield f"agent '{self.name}' needs a network '{NORMALISER}': take it from MARWILAgentParameters()"

    def make_update_rule(self) -> Stages:
        algorithm, networks = self.ap.algorithm, self.ap.network_wrappers
        policy, value = (networks[name].heads_parameters[0].loss_weight for name in ("main", "value"))
        rule = weighted_imitation_rule(algorithm.beta, algorithm.normaliser_rate, policy, value)
        return (Stage(("main", "value"), rule),)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        return columns_with_returns(super().learning_columns(batch), batch)
