"""Normalized advantage functions (Gu et al. 2016, "Continuous deep Q-learning with model-based acceleration")."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.core.inference import StateColumns
from rl_coach.agents.core.requirements import HeadRequirement, NetworkRequirement
from rl_coach.agents.rules.q_learning import td_losses
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.head_parameters import NAFHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank, weighted_mean
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.core_types import ActionInfo, EnvironmentSteps, StateType
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.policy.action_choice import DeterministicChoice, PolicyDescription

QUADRATIC = HeadRequirement("NAFHeadParameters", ("mean", "v", "factor"))


class NAFNetworkParameters(FullyConnectedParameters):
    """A network that predicts the best action, its value, and the shape of the advantage around it."""

    def __init__(self) -> None:
        super().__init__(NAFHeadParameters())
        self.learning_rate = 0.001
        self.async_training = True
        self.create_target_network = True


class NAFAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of normalized advantage functions.

    :ivar num_consecutive_training_steps: number of updates after each step
    :ivar num_steps_between_copying_online_weights_to_target: environment steps between two updates of the target
        network
    :ivar rate_for_copying_weights_to_target: at each of its updates, the target network moves towards the newest
        weights by this share
    """

    def __init__(self) -> None:
        super().__init__()
        self.num_consecutive_training_steps = 5
        self.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(1)
        self.rate_for_copying_weights_to_target = 0.001


class NAFAgentParameters(AgentParameters):
    """Normalized advantage functions with Ornstein-Uhlenbeck noise."""

    path = "rl_coach.agents.naf_agent:NAFAgent"
    algorithm: NAFAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=NAFAlgorithmParameters(),
            exploration=OUProcessParameters(),
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": NAFNetworkParameters()},
        )


def advantages(ops: Any, head: dict[str, Any], actions: Any) -> Any:
    """The advantages [B] of actions [B, D]: -(a - mean)^T L L^T (a - mean) / 2 (equations 4 and 5).

    :param head: the head's outputs, ``mean`` [B, D] and ``factor`` L [B, D, D]
    """
    projected = ops.sum(head["factor"] * (actions - head["mean"])[:, :, None], axis=1)
    return -0.5 * ops.sum(ops.square(projected), axis=-1)


def normalized_advantage_rule(is_huber: bool, loss_weight: float = 1.0) -> UpdateRule:
    """The loss between Q(s, a) = V(s) + A(s, a) and the targets y = r + discount_t V_target(s') (algorithm 1).

    :param is_huber: True: Huber loss. False: squared error
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, actions=batch.actions)
        head = networks["main"].online(batch.states)[0]
        v_t = networks["main"].target(batch.next_states)[0]["v"]
        target_tm1 = ops.stop_gradient(batch.rewards + batch.discounts * v_t)
        advantage_tm1 = advantages(ops, head, batch.actions)
        q_tm1 = head["v"] + advantage_tm1
        errors = target_tm1 - q_tm1
        losses = td_losses(ops, errors, is_huber)
        signals = {
            "Q": weighted_mean(ops, q_tm1, batch.weights),
            "L": weighted_mean(ops, ops.mean(head["factor"], axis=(1, 2)), batch.weights),
            "Advantage": weighted_mean(ops, advantage_tm1, batch.weights),
            "TD targets": weighted_mean(ops, target_tm1, batch.weights),
        }
        return Update({"main": loss_weight * weighted_mean(ops, losses, batch.weights)}, errors=errors, signals=signals)

    return rule


class NAFAgent(ValueOptimizationAgent):
    """Q-learning for continuous actions. Q is a parabola with a known maximum."""

    network_requirements = {"main": NetworkRequirement((QUADRATIC,), has_target=True)}
    learns_from_stored_states = True
    supports_curiosity = True
    needs_bounded_actions = True

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.mu_values = self.register_signal("Action")
        self.v_values = self.register_signal("V")
        self.signals.use_for_rule("Q", self.q_values)

    def make_update_rule(self) -> UpdateRule:
        is_huber, _, loss_weight = self.loss_settings
        return normalized_advantage_rule(is_huber, loss_weight)

    def predict_states(self, states: list[StateType] | StateColumns) -> list[list[np.ndarray]]:
        outputs = self.get_prediction(states)
        return [[output[row] for output in outputs] for row in range(len(states))]

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        mean, value = self.acting_prediction(curr_state)
        # the memory must hold the clipped action that was played: the advantage, a parabola, differs out of bounds
        action = self.spaces.action.clip_action_to_space(self.exploration_policy.get_action(mean))
        self.mu_values.add_sample(mean)
        self.v_values.add_sample(value)
        return ActionInfo(action, action_value=float(value))

    def policy_description(self) -> PolicyDescription:
        return PolicyDescription("main", self.networks["main"].outputs_named("mean"), DeterministicChoice())
