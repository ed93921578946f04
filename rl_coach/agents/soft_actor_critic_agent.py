"""Soft actor-critic with a value network (Haarnoja et al. 2018, "Soft Actor-Critic", version 2 of the paper)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Mapping

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import SACPolicyHeadParameters, SACQHeadParameters, VHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.policies import gaussian_log_probability
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank, weighted_mean
from rl_coach.base_parameters import (
    AgentParameters,
    AlgorithmParameters,
    EmbedderScheme,
    MiddlewareScheme,
    NetworkParameters,
)
from rl_coach.core_types import ActionInfo, Batch, EnvironmentSteps, RunPhase, StateType
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.policy.action_choice import PolicyDescription, SquashedGaussianChoice
from rl_coach.spaces import require_bounded_box
from rl_coach.utilities.constraints import FLAG, Constraint


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
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "use_deterministic_for_evaluation": FLAG,
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(1)
        self.rate_for_copying_weights_to_target = 0.005
        self.use_deterministic_for_evaluation = True


class SoftActorCriticAgentParameters(AgentParameters):
    """Soft actor-critic; its policy explores by itself."""

    def __init__(self) -> None:
        super().__init__(
            algorithm=SoftActorCriticAlgorithmParameters(),
            exploration=AdditiveNoiseParameters(),
            memory=ExperienceReplayParameters(),
            networks={
                "policy": SACPolicyNetworkParameters(),
                "q": SACCriticNetworkParameters(),
                "v": SACValueNetworkParameters(),
            },
        )

    @property
    def path(self) -> str:
        return "rl_coach.agents.soft_actor_critic_agent:SoftActorCriticAgent"


def squashed_sample(ops: Any, policy: dict[str, Any], noise: Any) -> tuple[Any, Any]:
    """tanh(u) with u ~ N(mean, deviation), and its log density (appendix C, equation 21).

    :param policy: ``mean`` and ``log_deviation`` [B, A]
    :param noise: [B, A], standard normal
    :return: actions [B, A] within -1 and 1, log densities [B]
    """
    u = policy["mean"] + ops.exp(policy["log_deviation"]) * noise
    # log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)), which does not round to log 0
    log_slope = 2.0 * (math.log(2.0) - u - ops.softplus(-2.0 * u))
    log_density = gaussian_log_probability(ops, u, policy["mean"], policy["log_deviation"])
    return ops.tanh(u), log_density - ops.sum(log_slope, axis=-1)


def soft_actor_critic_rule() -> UpdateRule:
    """The losses of V, Q and the policy, equations 5, 7 and 12, all from the same weights (algorithm 1).

    The temperature is 1: rewards are scaled instead. ``extra['noise']`` is [B, A], standard normal.
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, actions=batch.actions, noise=batch.extra["noise"])
        policy = networks["policy"].online(batch.states)[0]
        new_actions, log_density = squashed_sample(ops, policy, batch.extra["noise"])
        q_new = networks["q"].online({**batch.states, "action": new_actions})[0]
        soft_value = ops.minimum(q_new["q1"], q_new["q2"]) - log_density
        v_errors = networks["v"].online(batch.states)[0]["v"] - ops.stop_gradient(soft_value)

        v_t = networks["v"].target(batch.next_states)[0]["v"]
        target = ops.stop_gradient(batch.rewards + batch.discounts * v_t)
        q = networks["q"].online({**batch.states, "action": batch.actions})[0]
        q_errors = ops.square(q["q1"] - target) + ops.square(q["q2"] - target)

        losses = {
            "policy": weighted_mean(ops, -soft_value, batch.weights),
            "q": weighted_mean(ops, 0.5 * q_errors, batch.weights),
            "v": weighted_mean(ops, 0.5 * v_errors * v_errors, batch.weights),
        }
        signals = {
            "Policy Loss": losses["policy"],
            "Q Loss": losses["q"],
            "V Loss": losses["v"],
            "Entropy": -weighted_mean(ops, log_density, batch.weights),
            "Q": weighted_mean(ops, q["q1"], batch.weights),
        }
        return Update(losses, errors=q["q1"] - target, signals=signals)

    return rule


class SoftActorCriticAgent(Agent):
    """See the module. Networks see actions scaled to -1 and 1; the environment gets them in its own range."""

    acting_networks = ("policy",)

    @property
    def is_on_policy(self) -> bool:
        return False

    def init_environment_dependent_modules(self) -> None:
        action = require_bounded_box(self.spaces.action, self.name)
        self._choice = SquashedGaussianChoice(
            centre=((action.high + action.low) / 2).astype(np.float32),
            radius=((action.high - action.low) / 2).astype(np.float32),
        )
        super().init_environment_dependent_modules()

    def make_update_rule(self) -> UpdateRule:
        return soft_actor_critic_rule()

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = super().learning_columns(batch)
        columns["actions"] = (batch.action_column - self._choice.centre) / self._choice.radius
        columns["extra/noise"] = self.rng.standard_normal(columns["actions"].shape, np.float32)
        return columns

    def get_prediction(self, states: StateType | list[StateType]) -> list[np.ndarray]:
        """The policy's mean and log deviation, each [B, A], before squashing."""
        return self.networks["policy"].online_network.predict(self.prepare_batch_for_inference(states, "policy"))

    def predict_states(self, states: list[StateType]) -> list[list[np.ndarray]]:
        outputs = self.get_prediction(states)
        return [[output[row] for output in outputs] for row in range(len(states))]

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        deterministic = self._phase is RunPhase.TEST and self.ap.algorithm.use_deterministic_for_evaluation
        outputs = [output[None] for output in self.acting_prediction(curr_state)]
        return ActionInfo(self._choice.choose(outputs, None, self.rng, deterministic)[0])

    def policy_description(self) -> PolicyDescription:
        return PolicyDescription("policy", self.networks["policy"].outputs_named("mean", "log_deviation"), self._choice)
