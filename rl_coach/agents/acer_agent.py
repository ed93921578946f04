"""Actor-critic with experience replay (Wang et al. 2017, "Sample efficient actor-critic with experience replay"), for
discrete actions."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.requirements import HeadRequirement, MemoryRequirement, NetworkRequirement, Q
from rl_coach.agents.core.segments import Segment, SegmentLearning, SegmentReplay, SegmentSettings
from rl_coach.agents.policy_optimization_agent import PolicyOptimizationAgent
from rl_coach.agents.rules.acer import TINY, acer_rule, retrace_targets
from rl_coach.architectures.head_parameters import ACERPolicyHeadParameters, QHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.update import UpdateRule
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.core_types import Batch
from rl_coach.exploration_policies.categorical import CategoricalParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utilities.requirements import FLAG, number, whole


class ACERAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of ACER.

    :ivar apply_gradients_every_x_episodes: has no effect, as in Coach 1.0.1; each segment makes one update (algorithm
        1)
    :ivar num_steps_between_gradient_updates: the largest number of steps in a segment
    :ivar ratio_of_replay: the mean number of replayed segments after each new segment; 0 replays none
    :ivar num_transitions_to_start_replay: replay starts when the complete episodes in the memory have more transitions
        than this number
    :ivar rate_for_copying_weights_to_target: after each update, the average policy moves towards the newest weights by
        this share
    :ivar use_target_network_for_retrace: True: the critic's targets bootstrap from the network of the average policy.
        False: they bootstrap from the network that learns, as in algorithm 2 of the paper and in Coach 1.0.1; with
        short segments the values are then overestimated
    :ivar importance_weight_truncation: c, the largest importance weight of the action taken; a correction term
        (equation 7) accounts for actions with a larger ratio
    :ivar use_trust_region_optimization: True: limit each policy update by the trust region around the average policy
    :ivar max_KL_divergence: radius of the trust region around the average policy, in nats
    :ivar beta_entropy: weight of the entropy bonus in the policy's loss; 0 removes the bonus
    """

    constraints = {
        "num_steps_between_gradient_updates": whole(1),
        "ratio_of_replay": number(0),
        "num_transitions_to_start_replay": whole(0),
        "use_target_network_for_retrace": FLAG,
        "importance_weight_truncation": number(above=0),
        "use_trust_region_optimization": FLAG,
        "max_KL_divergence": number(0),
        "beta_entropy": number(),
    }

    def __init__(self) -> None:
        super().__init__()
        self.apply_gradients_every_x_episodes = 5
        self.num_steps_between_gradient_updates = 5000
        self.ratio_of_replay: float = 4
        self.num_transitions_to_start_replay = 10000
        self.rate_for_copying_weights_to_target = 0.01
        self.use_target_network_for_retrace = True
        self.importance_weight_truncation = 10.0
        self.use_trust_region_optimization = True
        self.max_KL_divergence = 1.0
        self.beta_entropy: float = 0


class ACERNetworkParameters(FullyConnectedParameters):
    """Q(s, a) and a policy with common embedders and middleware. The target network is the average policy."""

    def __init__(self) -> None:
        super().__init__(QHeadParameters(loss_weight=0.5), ACERPolicyHeadParameters(loss_weight=1.0))
        self.async_training = True
        self.clip_gradients = 40.0
        self.create_target_network = True


class ACERAgentParameters(AgentParameters):
    """ACER that samples from the policy."""

    path = "rl_coach.agents.acer_agent:ACERAgent"
    algorithm: ACERAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=ACERAlgorithmParameters(),
            exploration={DiscreteActionSpace: CategoricalParameters()},
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": ACERNetworkParameters()},
        )


PROBABILITIES = HeadRequirement("ACERPolicyHeadParameters", ("probabilities", "log_probabilities"))


class ACERAgent(PolicyOptimizationAgent):
    """Learns from each new segment, and then from old segments of the memory."""

    memory_requirement = MemoryRequirement.EPISODES
    network_requirements = {"main": NetworkRequirement((Q, PROBABILITIES), has_target=True)}
    is_on_policy = False

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.experience.remembers_action_info = True
        self.q_values = self.register_signal("Q Values")
        self.q_targets = self.register_signal("Q Targets")
        self.importance_weights = self.register_signal("Importance Weights")

    def segment_settings(self) -> SegmentSettings:
        algorithm = self.ap.algorithm
        rates = {"main": algorithm.rate_for_copying_weights_to_target}  # the average policy is the target network
        return SegmentSettings(algorithm.num_steps_between_gradient_updates, target_rates=rates)

    def make_learning(self, **parts: Any) -> SegmentLearning:
        return super().make_learning(replay=SegmentReplay(self.memory, self.rng, self.ap.algorithm), **parts)

    def unmet_by_networks(self) -> Iterator[str]:
        yield from super().unmet_by_networks()
        if self.is_recurrent:
            yield (
                f"agent '{self.name}' cannot have a recurrent network, because its memory stores no recurrent states: "
                f"set middleware_parameters to FCMiddlewareParameters()"
            )

    def make_update_rule(self) -> UpdateRule:
        q, policy = self.ap.network_wrappers["main"].heads_parameters
        algorithm = self.ap.algorithm
        return acer_rule(
            algorithm.importance_weight_truncation,
            algorithm.max_KL_divergence if algorithm.use_trust_region_optimization else None,
            algorithm.beta_entropy,
            q.loss_weight,
            policy.loss_weight,
            self.spaces.action_mask_name,
        )

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        behaviour = batch.info("all_action_probabilities")
        rows = Segment.of(batch).states_and_following(self.update_loop.input_names)
        network = self.networks["main"]
        inputs = {name: rows[name] for name in network.input_names}
        q_values, probabilities = network.online_network.predict(inputs)
        steps, actions = np.arange(len(batch)), batch.action_column
        self.q_values.add_sample(q_values[steps, actions])
        if self.ap.algorithm.use_target_network_for_retrace:
            q_values = network.target_network.predict(inputs)[0]
        mask_name = self.spaces.action_mask_name
        if mask_name is not None:
            probabilities = probabilities * (rows[mask_name] > 0)
            probabilities = probabilities / np.maximum(probabilities.sum(axis=1, keepdims=True), TINY)
        values = (q_values * probabilities).sum(axis=1)
        values[-1] *= not batch.terminateds()[-1]
        taken, ratios = q_values[steps, actions], probabilities[steps, actions] / (behaviour[steps, actions] + TINY)
        targets = retrace_targets(batch.rewards(), values, taken, ratios, self.ap.algorithm.discount)
        self.q_targets.add_sample(targets)
        self.importance_weights.add_sample(ratios)
        return {
            **super().learning_columns(batch),
            "extra/retrace": targets.astype(np.float32),
            "extra/behaviour": behaviour.astype(np.float32),
        }
