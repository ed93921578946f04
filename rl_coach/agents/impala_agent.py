"""IMPALA (Espeholt et al. 2018, "IMPALA: scalable distributed deep-RL with importance weighted actor-learner
architectures")."""

from __future__ import annotations

import math
from typing import Any, Iterator

import numpy as np

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters, actor_critic_rule
from rl_coach.agents.core.episode import SegmentedEpisode
from rl_coach.agents.core.requirements import POLICY, NetworkRequirement, V
from rl_coach.agents.core.segments import Segment, SegmentLearning, SegmentSettings, outputs_of
from rl_coach.agents.policy_optimization_agent import PolicyOptimizationAgent
from rl_coach.agents.rules.vtrace import vtrace
from rl_coach.architectures.policies import log_probabilities
from rl_coach.architectures.update import UpdateRule
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import Batch, Transition
from rl_coach.exploration_policies.additive_noise import AdditiveNoise
from rl_coach.exploration_policies.categorical import Categorical
from rl_coach.spaces import BoxActionSpace
from rl_coach.utilities.requirements import FRACTION, number, whole

BEHAVIOUR = "behaviour_log_prob"
"""The key of a transition's ``info`` for log mu(a|s), the log probability under the policy that acted."""


class IMPALAAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of IMPALA.

    :ivar num_steps_between_gradient_updates: the largest number of steps in a segment, n of V-trace
    :ivar segments_per_update: number of segments from rollout workers in one update. In a run without workers, an
        update learns from the segments of all copies of the environment
    :ivar rho_bar: the largest importance weight of a temporal difference. Near 0, the critic learns the value of the
        policy that acted; with a large number, the value of the policy that learns
    :ivar c_bar: the largest importance weight of later temporal differences; near 0, targets are one-step targets
    :ivar vtrace_lambda: lambda, a factor of the weights of later temporal differences; 0 gives one-step targets
    :ivar beta_entropy: weight of the entropy bonus in the policy's loss; 0 removes the bonus
    """

    constraints = {
        "num_steps_between_gradient_updates": whole(1),
        "segments_per_update": whole(1),
        "rho_bar": number(above=0),
        "c_bar": number(above=0),
        "vtrace_lambda": FRACTION,
        "beta_entropy": number(),
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_gradient_updates = 20
        self.segments_per_update = 8
        self.rho_bar = 1.0
        self.c_bar = 1.0
        self.vtrace_lambda = 1.0
        self.beta_entropy = 0.01

    def unmet(self) -> Iterator[str]:
        if self.c_bar > self.rho_bar:
            yield f"c_bar is {self.c_bar}, above rho_bar ({self.rho_bar}): set c_bar to {self.rho_bar} at most"


class IMPALAAgentParameters(ActorCriticAgentParameters):
    """IMPALA that samples from the policy; value and policy share embedders and middleware."""

    path = "rl_coach.agents.impala_agent:IMPALAAgent"
    algorithm: IMPALAAlgorithmParameters  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = IMPALAAlgorithmParameters()


class IMPALAEpisode(SegmentedEpisode):
    """An episode with the probability of its last action.

    :ivar behaviour_log_prob: log mu(a|s) of the last continuous action; 0 before the first action of a policy
    """

    def __init__(self, algorithm: AlgorithmParameters):
        super().__init__(algorithm)
        self.behaviour_log_prob = 0.0


class IMPALAAgent(PolicyOptimizationAgent):
    """Actor-critic on segments that an older policy may have played. Each step contains the probability that its action
    had under this policy, and V-trace corrects for the difference.
    """

    network_requirements = {"main": NetworkRequirement((V, POLICY))}
    trains_asynchronously = False  # rollout workers send segments, not gradients
    episode_class = IMPALAEpisode
    episode: IMPALAEpisode
    is_on_policy = False
    acts_in_parts = True

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.action_advantages = self.register_signal("Advantages")
        self.state_values = self.register_signal("Values")
        self.importance_weights = self.register_signal("Importance Weights")

    def unmet_by_networks(self) -> Iterator[str]:
        yield from super().unmet_by_networks()
        if not isinstance(self.exploration_policy, (AdditiveNoise, Categorical)):
            yield (
                f"agent '{self.name}' needs the probabilities of its actions, which exploration does not give: "
                f"set exploration to CategoricalParameters() for discrete actions, or to ContinuousEntropyParameters() "
                f"for continuous actions"
            )

    # acting

    def _draw(self, outputs: Any, mask: np.ndarray | None) -> Any:
        drawn = super()._draw(outputs, mask)
        if isinstance(self.spaces.action, BoxActionSpace):
            policy = [np.asarray(output)[None] for output in outputs]
            self.episode.behaviour_log_prob = float(log_probabilities(policy, np.asarray(drawn)[None], None)[0])
        return drawn

    def update_transition_before_adding_to_replay_buffer(self, transition: Transition) -> Transition:
        """Store log mu(a|s) with the step."""
        log_prob, chosen = self.episode.behaviour_log_prob, self.episode.last_action_info
        if chosen is not None and np.ndim(chosen.all_action_probabilities) == 2:  # one row for each part of the action
            policy, action = [chosen.all_action_probabilities[None]], np.asarray(chosen.action)[None]
            log_prob = float(log_probabilities(policy, action, None)[0])
        elif chosen is not None and np.ndim(chosen.all_action_probabilities):
            log_prob = math.log(max(chosen.all_action_probabilities[chosen.action], np.finfo(np.float32).tiny))
        transition.info[BEHAVIOUR] = np.float32(log_prob)
        return transition

    # learning

    def segment_settings(self) -> SegmentSettings:
        algorithm = self.ap.algorithm
        return SegmentSettings(
            algorithm.num_steps_between_gradient_updates,
            per_update=None,
            received_per_update=algorithm.segments_per_update,
        )

    def make_learning(self, **parts: Any) -> SegmentLearning:
        return super().make_learning(asked=self.networks["main"], needed_info=[BEHAVIOUR], **parts)

    def make_update_rule(self) -> UpdateRule:
        value, policy = self.ap.network_wrappers["main"].heads_parameters
        return actor_critic_rule(
            value.loss_weight, policy.loss_weight, self.ap.algorithm.beta_entropy, self.spaces.action_mask_name
        )

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        segment, algorithm = Segment.of(batch), self.ap.algorithm
        outputs = segment.outputs or outputs_of(self.networks["main"], [segment])[0]
        values = outputs["output_0_v"]
        values[-1] *= not segment.terminateds()[-1]
        ratios = self._ratios(segment, outputs)
        advantages, targets = vtrace(
            segment.rewards(),
            values,
            ratios,
            algorithm.discount,
            algorithm.rho_bar,
            algorithm.c_bar,
            algorithm.vtrace_lambda,
        )
        self.state_values.add_sample(values[:-1])
        self.action_advantages.add_sample(advantages)
        self.importance_weights.add_sample(ratios)
        return {
            **super().learning_columns(segment),
            "extra/advantages": advantages.astype(np.float32),
            "extra/returns": targets.astype(np.float32),
        }

    def _ratios(self, segment: Segment, outputs: dict[str, np.ndarray]) -> np.ndarray:
        """[T], pi(a|s) / mu(a|s), at most rho_bar: larger ratios have the same effect."""
        if segment.copy is not None:  # the policy has not changed since: computed ratios would only be rounded
            return np.ones(len(segment))
        log_ratios = self._log_probabilities(segment, outputs) - segment.info(BEHAVIOUR)
        return np.exp(np.minimum(log_ratios.astype(np.float64), math.log(self.ap.algorithm.rho_bar)))

    def _log_probabilities(self, segment: Segment, outputs: dict[str, np.ndarray]) -> np.ndarray:
        """[T], log pi(a|s) of the policy that learns."""
        mask_name = self.spaces.action_mask_name
        mask = None if mask_name is None else segment.state_columns[mask_name] > 0
        policy = [outputs[name][:-1] for name in self._policy_output_names]
        return log_probabilities(policy, segment.action_column, mask)
