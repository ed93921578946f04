"""Parameters of PPO with a penalty on the divergence."""

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
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace
from rl_coach.utilities.constraints import FLAG, FRACTION, Constraint, member, number, optional


class PPOCriticNetworkParameters(NetworkParameters):
    """A critic."""

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(activation_function="tanh")}
        self.middleware_parameters = FCMiddlewareParameters(activation_function="tanh")
        self.heads_parameters = [VHeadParameters()]
        self.async_training = True
        self.l2_regularization = 0
        self.create_target_network = True
        self.batch_size = 128


class PPOActorNetworkParameters(NetworkParameters):
    """A policy."""

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(activation_function="tanh")}
        self.middleware_parameters = FCMiddlewareParameters(activation_function="tanh")
        self.heads_parameters = [PPOHeadParameters()]
        self.optimizer_type = "Adam"
        self.async_training = True
        self.l2_regularization = 0
        self.create_target_network = True
        self.batch_size = 128


class PPOAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of PPO with a penalty.

    :ivar policy_gradient_rescaler: ``GAE``, or ``A_VALUE`` for returns minus values
    :ivar gae_lambda: 0 is one-step advantages, 1 is Monte Carlo
    :ivar target_kl_divergence: how far, in nats, the policy is meant to move in a training phase
    :ivar initial_kl_coefficient: the penalty's first weight; it grows where the policy moved further than meant, and
        shrinks where it moved less
    :ivar high_kl_penalty_coefficient: weight of the squared excess over twice the target; 0 for none
    :ivar clip_likelihood_ratio_using_epsilon: the ratio counts within 1 - epsilon and 1 + epsilon; None does not clip
    :ivar value_targets_mix_fraction: of the L-BFGS optimizer, which Coach 1.0.1 had; without effect
    :ivar estimate_state_value_using_gae: the critic learns lambda-returns instead of discounted returns
    :ivar use_kl_regularization: penalise the divergence at all
    :ivar beta_entropy: the weight of the policy's entropy; 0 does not keep it random
    :ivar num_consecutive_playing_steps: steps or episodes played with one policy
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "policy_gradient_rescaler": member(PolicyGradientRescaler),
        "gae_lambda": FRACTION,
        "target_kl_divergence": number(above=0),
        "initial_kl_coefficient": number(0),
        "high_kl_penalty_coefficient": number(0),
        "clip_likelihood_ratio_using_epsilon": optional(number(above=0)),
        "value_targets_mix_fraction": FRACTION,
        "estimate_state_value_using_gae": FLAG,
        "use_kl_regularization": FLAG,
        "beta_entropy": number(),
    }

    def __init__(self) -> None:
        super().__init__()
        self.policy_gradient_rescaler = PolicyGradientRescaler.GAE
        self.gae_lambda = 0.96
        self.target_kl_divergence = 0.01
        self.initial_kl_coefficient = 1.0
        self.high_kl_penalty_coefficient = 1000
        self.clip_likelihood_ratio_using_epsilon: float | None = None
        self.value_targets_mix_fraction = 0.1
        self.estimate_state_value_using_gae = True
        self.use_kl_regularization = True
        self.beta_entropy = 0.01
        self.num_consecutive_playing_steps = EnvironmentSteps(5000)
        self.act_for_full_episodes = True


class PPOAgentParameters(AgentParameters):
    """PPO with a penalty, sampling from the policy."""

    def __init__(self) -> None:
        super().__init__(
            algorithm=PPOAlgorithmParameters(),
            exploration={
                DiscreteActionSpace: CategoricalParameters(),
                BoxActionSpace: AdditiveNoiseParameters(),
            },
            memory=EpisodicExperienceReplayParameters(),
            networks={"critic": PPOCriticNetworkParameters(), "actor": PPOActorNetworkParameters()},
        )

    @property
    def path(self) -> str:
        return "rl_coach.agents.ppo_agent:PPOAgent"
