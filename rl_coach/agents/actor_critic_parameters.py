"""Parameters of actor-critic."""

from __future__ import annotations

from typing import ClassVar, Mapping

from rl_coach.agents.policy_gradient_rescaler import PolicyGradientRescaler
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import PolicyHeadParameters, VHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, NetworkParameters
from rl_coach.exploration_policies.categorical import CategoricalParameters
from rl_coach.exploration_policies.continuous_entropy import ContinuousEntropyParameters
from rl_coach.memories.episodic.single_episode_buffer import SingleEpisodeBufferParameters
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace
from rl_coach.utilities.constraints import FLAG, FRACTION, Constraint, member, number, whole


class ActorCriticAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of actor-critic.

    :ivar policy_gradient_rescaler: ``A_VALUE`` (n-step advantages) or ``GAE``
    :ivar apply_gradients_every_x_episodes: number of episodes that one update sums
    :ivar beta_entropy: the weight of the policy's entropy; 0 does not keep it random
    :ivar num_steps_between_gradient_updates: the longest segment that is learned from at once
    :ivar gae_lambda: 0 is one-step advantages, 1 is Monte Carlo
    :ivar estimate_state_value_using_gae: the critic learns lambda-returns instead of discounted returns
    :ivar learns_from_copies_together: with several copies of the environment, what was played in all of them since the
        last update makes one update (A2C), instead of one for each copy's segment; ``apply_gradients_every_x_episodes``
        then has no effect. Beyond Coach.
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "policy_gradient_rescaler": member(PolicyGradientRescaler),
        "beta_entropy": number(),
        "gae_lambda": FRACTION,
        "estimate_state_value_using_gae": FLAG,
        "learns_from_copies_together": FLAG,
        "num_steps_between_gradient_updates": whole(1),
    }

    def __init__(self) -> None:
        super().__init__()
        self.policy_gradient_rescaler = PolicyGradientRescaler.A_VALUE
        self.apply_gradients_every_x_episodes = 5
        self.beta_entropy = 0
        self.num_steps_between_gradient_updates = 5000
        self.gae_lambda = 0.96
        self.estimate_state_value_using_gae = False
        self.learns_from_copies_together = False


class ActorCriticNetworkParameters(NetworkParameters):
    """A critic and a policy on one body."""

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters()}
        self.middleware_parameters = FCMiddlewareParameters()
        self.heads_parameters = [VHeadParameters(loss_weight=0.5), PolicyHeadParameters(loss_weight=1.0)]
        self.optimizer_type = "Adam"
        self.clip_gradients = 40.0
        self.async_training = True


class ActorCriticAgentParameters(AgentParameters):
    """Actor-critic that samples from the policy."""

    def __init__(self) -> None:
        super().__init__(
            algorithm=ActorCriticAlgorithmParameters(),
            exploration={
                DiscreteActionSpace: CategoricalParameters(),
                BoxActionSpace: ContinuousEntropyParameters(),
            },
            memory=SingleEpisodeBufferParameters(),
            networks={"main": ActorCriticNetworkParameters()},
        )

    @property
    def path(self) -> str:
        return "rl_coach.agents.actor_critic_agent:ActorCriticAgent"
