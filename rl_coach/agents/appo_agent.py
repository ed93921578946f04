"""APPO, asynchronous PPO: PPO's clipped surrogate with the segments and the V-trace of IMPALA (RLlib's APPO; Luo et al.
2020, "IMPACT: Importance Weighted Asynchronous Architectures with Clipped Target Networks")."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rl_coach.agents.core.segments import Segment, SegmentSettings, outputs_of
from rl_coach.agents.impala_agent import IMPALAAgent, IMPALAAgentParameters, IMPALAAlgorithmParameters
from rl_coach.agents.rules.proximal_policy import asynchronous_ppo_rule
from rl_coach.architectures.update import UpdateRule
from rl_coach.core_types import Batch
from rl_coach.utilities.requirements import number, whole


class APPOAlgorithmParameters(IMPALAAlgorithmParameters):
    """Hyperparameters of APPO.

    :ivar clip_likelihood_ratio_using_epsilon: the loss clips the ratio to the policy before the update to 1 - epsilon
        and 1 + epsilon
    :ivar optimization_epochs: number of epochs on the segments of an update. With 1, APPO is IMPALA, because the ratio
        is 1 in the first epoch
    """

    constraints = {"clip_likelihood_ratio_using_epsilon": number(above=0), "optimization_epochs": whole(1)}

    def __init__(self) -> None:
        super().__init__()
        self.clip_likelihood_ratio_using_epsilon = 0.2
        self.optimization_epochs = 4


class APPOAgentParameters(IMPALAAgentParameters):
    """APPO that samples from the policy; value and policy share embedders and middleware."""

    path = "rl_coach.agents.appo_agent:APPOAgent"
    algorithm: APPOAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = APPOAlgorithmParameters()


class APPOAgent(IMPALAAgent):
    """Makes several epochs on the segments of an update. V-trace corrects for the difference between the policies that
    acted and the policy before the update. The clipped ratio keeps the new policy near the policy before the update."""

    network_requirements = IMPALAAgent.network_requirements

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.signals.use_for_rule("Entropy", self.entropy)

    def segment_settings(self) -> SegmentSettings:
        return replace(super().segment_settings(), epochs=self.ap.algorithm.optimization_epochs)

    def make_update_rule(self) -> UpdateRule:
        algorithm = self.ap.algorithm
        value, policy = self.ap.network_wrappers["main"].heads_parameters
        return asynchronous_ppo_rule(
            algorithm.clip_likelihood_ratio_using_epsilon, algorithm.beta_entropy, value.loss_weight,
            policy.loss_weight, self.spaces.action_mask_name,
        )  # fmt: skip

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        segment = Segment.of(batch)
        segment.outputs = segment.outputs or outputs_of(self.networks["main"], [segment])[0]
        before = self._log_probabilities(segment, segment.outputs)
        return {**super().learning_columns(segment), "extra/behaviour_log_probs": before}
