"""Parameters of actor-critic with experience replay."""

from __future__ import annotations

from typing import ClassVar, Mapping

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import ACERPolicyHeadParameters, QHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, NetworkParameters
from rl_coach.exploration_policies.categorical import CategoricalParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utilities.constraints import FLAG, Constraint, number, whole


class ACERAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of ACER.

    :ivar apply_gradients_every_x_episodes: without effect, as in Coach 1.0.1: each segment is an update (algorithm 1)
    :ivar num_steps_between_gradient_updates: the longest segment that is learned from at once
    :ivar ratio_of_replay: replayed segments for each new one, on average; 0 replays none
    :ivar num_transitions_to_start_replay: nothing is replayed before the memory has so many
    :ivar rate_for_copying_weights_to_target: share of the weights that the average policy takes over after each update
    :ivar importance_weight_truncation: c, the largest importance weight of what was done; actions that the policy has
        come to prefer by more are learned from the critic instead
    :ivar use_trust_region_optimization: keep near the average policy
    :ivar max_KL_divergence: how far from the average policy, in nats, the trust region goes
    :ivar beta_entropy: the weight of the policy's entropy; 0 does not keep it random
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "num_steps_between_gradient_updates": whole(1),
        "ratio_of_replay": number(0),
        "num_transitions_to_start_replay": whole(0),
        "importance_weight_truncation": number(above=0),
        "use_trust_region_optimization": FLAG,
        "max_KL_divergence": number(0),
        "beta_entropy": number(),
    }

    def __init__(self) -> None:
        super().__init__()
        self.apply_gradients_every_x_episodes = 5
        self.num_steps_between_gradient_updates = 5000
        self.ratio_of_replay = 4
        self.num_transitions_to_start_replay = 10000
        self.rate_for_copying_weights_to_target = 0.01
        self.importance_weight_truncation = 10.0
        self.use_trust_region_optimization = True
        self.max_KL_divergence = 1.0
        self.beta_entropy = 0


class ACERNetworkParameters(NetworkParameters):
    """Q(s, a) and a policy on one body; the target network is the average policy."""

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters()}
        self.middleware_parameters = FCMiddlewareParameters()
        self.heads_parameters = [QHeadParameters(loss_weight=0.5), ACERPolicyHeadParameters(loss_weight=1.0)]
        self.optimizer_type = "Adam"
        self.async_training = True
        self.clip_gradients = 40.0
        self.create_target_network = True


class ACERAgentParameters(AgentParameters):
    """ACER that samples from the policy."""

    def __init__(self) -> None:
        super().__init__(
            algorithm=ACERAlgorithmParameters(),
            exploration={DiscreteActionSpace: CategoricalParameters()},
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": ACERNetworkParameters()},
        )

    @property
    def path(self) -> str:
        return "rl_coach.agents.acer_agent:ACERAgent"
