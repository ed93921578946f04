"""Parameters of PPO with clipping."""

from __future__ import annotations

from typing import ClassVar, Mapping

from rl_coach.agents.policy_gradient_rescaler import PolicyGradientRescaler
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import PPOHeadParameters, VHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, NetworkParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.categorical import CategoricalParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace
from rl_coach.utilities.constraints import FLAG, FRACTION, Constraint, member, number, optional, schedule, whole


class ClippedPPONetworkParameters(NetworkParameters):
    """A critic and a policy that share nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(activation_function="tanh")}
        self.middleware_parameters = FCMiddlewareParameters(activation_function="tanh")
        self.heads_parameters = [VHeadParameters(), PPOHeadParameters()]
        self.batch_size = 64
        self.optimizer_type = "Adam"
        self.clip_gradients = None
        self.use_separate_networks_per_head = True
        self.async_training = False
        self.l2_regularization = 0
        self.create_target_network = True
        self.shared_optimizer = True
        self.scale_down_gradients_by_number_of_workers_for_sync_training = True


class ClippedPPOAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of PPO.

    :ivar policy_gradient_rescaler: ``GAE``, or ``A_VALUE`` for returns minus values
    :ivar gae_lambda: 0 is one-step advantages, 1 is Monte Carlo
    :ivar clip_likelihood_ratio_using_epsilon: the ratio counts within 1 - epsilon and 1 + epsilon
    :ivar estimate_state_value_using_gae: the critic learns lambda-returns instead of discounted returns
    :ivar beta_entropy: the weight of the policy's entropy; 0 does not keep it random
    :ivar num_consecutive_playing_steps: steps or episodes played with one policy
    :ivar optimization_epochs: number of times that each transition is learned from
    :ivar clipping_decay_schedule: multiplies epsilon; one step for each environment step
    :ivar clip_value_using_epsilon: the critic's squared error counts from within so much of its old value where that is
        worse; None does not clip. Beyond Coach: Schulman's own code has it (0.2), the paper has not.
    :ivar target_kl_divergence: no further epoch once the divergence from the policy that played exceeds one and a half
        times this, in nats; None makes all epochs. Beyond Coach, as in Spinning Up and SB3.
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "policy_gradient_rescaler": member(PolicyGradientRescaler),
        "beta_entropy": number(),
        "gae_lambda": FRACTION,
        "estimate_state_value_using_gae": FLAG,
        "num_episodes_in_experience_replay": whole(1),
        "use_kl_regularization": FLAG,
        "clip_likelihood_ratio_using_epsilon": number(above=0),
        "optimization_epochs": whole(1),
        "clipping_decay_schedule": schedule(number(0)),
        "clip_value_using_epsilon": optional(number(above=0)),
        "target_kl_divergence": optional(number(above=0)),
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_episodes_in_experience_replay = 1000000
        self.policy_gradient_rescaler = PolicyGradientRescaler.GAE
        self.gae_lambda = 0.95
        self.use_kl_regularization = False
        self.clip_likelihood_ratio_using_epsilon = 0.2
        self.estimate_state_value_using_gae = True
        self.beta_entropy = 0.01
        self.num_consecutive_playing_steps = EnvironmentSteps(2048)
        self.optimization_epochs = 10
        self.normalization_stats = None
        self.clipping_decay_schedule = ConstantSchedule(1)
        self.clip_value_using_epsilon: float | None = None
        self.target_kl_divergence: float | None = None
        self.act_for_full_episodes = True
        self.update_pre_network_filters_state_on_train = True
        self.update_pre_network_filters_state_on_inference = False


class ClippedPPOAgentParameters(AgentParameters):
    """PPO that samples from the policy."""

    def __init__(self) -> None:
        super().__init__(
            algorithm=ClippedPPOAlgorithmParameters(),
            exploration={
                DiscreteActionSpace: CategoricalParameters(),
                BoxActionSpace: AdditiveNoiseParameters(),
            },
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": ClippedPPONetworkParameters()},
        )

    @property
    def path(self) -> str:
        return "rl_coach.agents.clipped_ppo_agent:ClippedPPOAgent"
