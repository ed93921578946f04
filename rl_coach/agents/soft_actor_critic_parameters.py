"""Settings of soft actor-critic, and which of them go together."""

from __future__ import annotations

from typing import Any, ClassVar, Mapping

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import SACPolicyHeadParameters, SACQHeadParameters, VHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.values import ValuesParameters
from rl_coach.base_parameters import (
    AgentParameters,
    AlgorithmParameters,
    EmbedderScheme,
    MiddlewareScheme,
    NetworkParameters,
)
from rl_coach.core_types import EnvironmentSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.utilities.constraints import FLAG, Constraint, number, optional, whole
from rl_coach.utils import CoachError, force_list


class _SACNetworkParameters(NetworkParameters):
    """Parameters that the three networks have in common."""

    def __init__(self, embedder: InputEmbedderParameters, middleware: FCMiddlewareParameters, head: Any):
        super().__init__()
        self.input_embedders_parameters = {"observation": embedder}
        self.middleware_parameters = middleware
        self.heads_parameters = [head]
        self.rescale_gradient_from_head_by_factor = [1]
        self.optimizer_type = "Adam"
        self.batch_size = 256
        self.async_training = False
        self.learning_rate = 0.0003
        self.create_target_network = False


class SACValueNetworkParameters(_SACNetworkParameters):
    """V(s), with the target network that the critics bootstrap from."""

    def __init__(self) -> None:
        super().__init__(
            InputEmbedderParameters(activation_function="relu"),
            FCMiddlewareParameters(activation_function="relu"),
            VHeadParameters(initializer="xavier"),
        )
        self.create_target_network = True


class SACCriticNetworkParameters(_SACNetworkParameters):
    """Two Q(s, a)."""

    def __init__(self) -> None:
        super().__init__(
            InputEmbedderParameters(scheme=EmbedderScheme.Empty),
            FCMiddlewareParameters(scheme=MiddlewareScheme.Empty),
            SACQHeadParameters(),
        )


class SACPolicyNetworkParameters(_SACNetworkParameters):
    """The policy."""

    def __init__(self) -> None:
        super().__init__(
            InputEmbedderParameters(activation_function="relu"),
            FCMiddlewareParameters(activation_function="relu"),
            SACPolicyHeadParameters(),
        )
        self.l2_regularization = 0


class SoftActorCriticAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of soft actor-critic.

    :ivar rate_for_copying_weights_to_target: the target's share of the newest weights at each update
    :ivar use_deterministic_for_evaluation: evaluate with the mean action, not with a sample
    :ivar temperature: weight of the policy's entropy, 0 for none; None: 1 with a value network, learned without one
    :ivar target_entropy: entropy that a learned temperature keeps the policy at; None is minus the number of the
        action's elements
    :ivar update_policy_every_x_training_steps: updates of the critics for each of the policy and the temperature
    :ivar num_critics_in_target: number of critics, drawn anew for each update, whose smallest value is the target; None
        takes all
    :ivar policy_uses_mean_of_critics: the policy climbs the critics' mean, not the smallest of them; always so with
        several quantiles (TQC)
    :ivar top_quantiles_to_drop: number of the largest quantiles, for each critic, that the target leaves out; 0 drops
        none, and overestimates the most
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "use_deterministic_for_evaluation": FLAG,
        "temperature": optional(number(0)),
        "target_entropy": optional(number()),
        "update_policy_every_x_training_steps": whole(1),
        "num_critics_in_target": optional(whole(1)),
        "policy_uses_mean_of_critics": FLAG,
        "top_quantiles_to_drop": whole(0),
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(1)
        self.rate_for_copying_weights_to_target = 0.005
        self.use_deterministic_for_evaluation = True
        self.temperature: float | None = None
        self.target_entropy: float | None = None
        self.update_policy_every_x_training_steps = 1
        self.num_critics_in_target: int | None = None
        self.policy_uses_mean_of_critics = False
        self.top_quantiles_to_drop = 0


class SoftActorCriticAgentParameters(AgentParameters):
    """Soft actor-critic; its policy explores by itself.

    :param use_value_network: critics bootstrap from a network V(s), as Coach's do; False: from a target network of
        their own, with a learned temperature
    """

    def __init__(self, use_value_network: bool = True) -> None:
        super().__init__(
            algorithm=SoftActorCriticAlgorithmParameters(),
            exploration=AdditiveNoiseParameters(),
            memory=ExperienceReplayParameters(),
            networks={"policy": SACPolicyNetworkParameters(), "q": SACCriticNetworkParameters()},
        )
        if use_value_network:
            self.network_wrappers["v"] = SACValueNetworkParameters()
        else:
            self.network_wrappers["q"].create_target_network = True
            self.network_wrappers["temperature"] = ValuesParameters({"log_temperature": 0.0}, learning_rate=0.0003)

    @property
    def path(self) -> str:
        return "rl_coach.agents.soft_actor_critic_agent:SoftActorCriticAgent"


def has_value_network(parameters: AgentParameters) -> bool:
    """True if the critics bootstrap from a network V(s)."""
    return "v" in parameters.network_wrappers


def require_consistent_settings(parameters: AgentParameters) -> None:
    """
    :raises CoachError: settings contradict each other
    """
    algorithm = parameters.algorithm
    head = next(iter(force_list(parameters.network_wrappers["q"].heads_parameters)), None)
    critics, quantiles = getattr(head, "num_critics", 2), getattr(head, "num_quantiles", 1)
    if has_value_network(parameters):
        newer = {
            "target_entropy": algorithm.target_entropy is not None,
            "num_critics_in_target": algorithm.num_critics_in_target is not None,
            "top_quantiles_to_drop": algorithm.top_quantiles_to_drop,
            "policy_uses_mean_of_critics": algorithm.policy_uses_mean_of_critics,
        }
        if wrong := [name for name, is_set in newer.items() if is_set]:
            raise CoachError(f"{wrong[0]} needs SoftActorCriticAgentParameters(use_value_network=False)")
        if (critics, quantiles) != (2, 1):
            raise CoachError(
                "num_critics and num_quantiles other than 2 and 1 need "
                "SoftActorCriticAgentParameters(use_value_network=False)"
            )
    elif algorithm.temperature is None and "temperature" not in parameters.network_wrappers:
        raise CoachError(
            "temperature is None, which learns it, and network_wrappers has no 'temperature': set it to a number, or "
            "use SoftActorCriticAgentParameters(use_value_network=False)"
        )
    if algorithm.num_critics_in_target is not None and quantiles > 1:
        raise CoachError(
            f"num_critics_in_target is {algorithm.num_critics_in_target}, and without effect where the head has "
            f"num_quantiles {quantiles}, whose targets pool all critics: set one to None, or the other to 1"
        )
    if (algorithm.num_critics_in_target or 1) > critics:
        raise CoachError(
            f"num_critics_in_target is {algorithm.num_critics_in_target}, and the head has num_critics "
            f"{critics}: choose at most as many"
        )
    if algorithm.top_quantiles_to_drop >= quantiles and algorithm.top_quantiles_to_drop > 0:
        raise CoachError(
            f"top_quantiles_to_drop is {algorithm.top_quantiles_to_drop}, and the head has num_quantiles "
            f"{quantiles}: drop fewer"
        )
