"""Proximal policy optimisation with a clipped ratio (Schulman et al. 2017)."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.compiled_acting import why_exploration_is_not_compiled
from rl_coach.agents.core.compiled_epochs import (
    CompiledEpochs,
    EpochSettings,
    PolicyInEpochs,
    why_epochs_are_not_compiled,
)
from rl_coach.agents.core.compiled_sequences import CompiledSequences, RecurrentPolicyInEpochs
from rl_coach.agents.core.curiosity import PREDICTOR_STAGE
from rl_coach.agents.core.requirements import PPO_POLICY, NetworkRequirement, V
from rl_coach.agents.policy_optimization_agent import AdvantageAlgorithmParameters
from rl_coach.agents.proximal_policy import ProximalPolicyAgent
from rl_coach.agents.rules.proximal_policy import clipped_ppo_rule
from rl_coach.architectures.head_parameters import PPOHeadParameters, VHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.update import Stage, Stages, UpdateRule
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.categorical import CategoricalParameters, categorical_or
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule, Schedule
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.requirements import flags, number, optional, schedule, whole


class ClippedPPONetworkParameters(FullyConnectedParameters):
    """A critic and a policy without common layers."""

    def __init__(self) -> None:
        super().__init__(VHeadParameters(), PPOHeadParameters(), activation_function="tanh")
        self.batch_size = 64
        self.use_separate_networks_per_head = True
        self.create_target_network = True


class ClippedPPOAlgorithmParameters(AdvantageAlgorithmParameters):
    """Hyperparameters of PPO.

    :ivar clip_likelihood_ratio_using_epsilon: the loss clips the probability ratio to 1 - epsilon and 1 + epsilon
    :ivar beta_entropy: weight of the entropy bonus in the policy's loss; 0 removes the bonus
    :ivar num_consecutive_playing_steps: steps or episodes played with one policy
    :ivar optimization_epochs: number of passes over the transitions of a training phase
    :ivar clipping_decay_schedule: the factor of epsilon; the schedule advances with each environment step
    :ivar clip_value_using_epsilon: the critic's loss is the larger one of two squared errors: of its value, and of its
        value clipped to the old value plus and minus this number. None does not clip, as in Intel's Coach and the
        paper. Schulman's code clips at 0.2.
    :ivar target_kl_divergence: stop the epochs of a training phase when the KL divergence from the policy that played
        exceeds 1.5 times this number, in nats. None makes all epochs. Not in Intel's Coach; as in Spinning Up and SB3.
    """

    constraints = {
        **flags("use_kl_regularization"),
        "beta_entropy": number(),
        "num_episodes_in_experience_replay": whole(1),
        "clip_likelihood_ratio_using_epsilon": number(above=0),
        "optimization_epochs": whole(1),
        "clipping_decay_schedule": schedule(number(0)),
        "clip_value_using_epsilon": optional(number(above=0)),
        "target_kl_divergence": optional(number(above=0)),
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_episodes_in_experience_replay = 1000000
        self.use_kl_regularization = False
        self.clip_likelihood_ratio_using_epsilon = 0.2
        self.beta_entropy = 0.01
        self.num_consecutive_playing_steps = EnvironmentSteps(2048)
        self.optimization_epochs = 10
        self.normalization_stats: Any = None
        self.clipping_decay_schedule: Schedule = ConstantSchedule(1)
        self.clip_value_using_epsilon: float | None = None
        self.target_kl_divergence: float | None = None
        self.act_for_full_episodes = True
        self.update_pre_network_filters_state_on_train = True
        self.update_pre_network_filters_state_on_inference = False

    def unmet(self) -> Iterator[str]:
        if self.use_kl_regularization:
            yield (
                "use_kl_regularization is True, but the loss of ClippedPPO has no divergence term: set it to False, "
                "or use AdaptivePPO (PPOAgentParameters)"
            )


class ClippedPPOAgentParameters(AgentParameters):
    """PPO that samples from the policy."""

    algorithm_names = ("PPO", "ClippedPPO")
    path = "rl_coach.agents.clipped_ppo_agent:ClippedPPOAgent"
    algorithm: ClippedPPOAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=ClippedPPOAlgorithmParameters(),
            exploration=categorical_or(AdditiveNoiseParameters()),
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": ClippedPPONetworkParameters()},
        )


class ClippedPPOAgent(ProximalPolicyAgent):
    """PPO that clips the probability ratio. It makes several epochs of updates in each training phase."""

    network_requirements = {"main": NetworkRequirement((V, PPO_POLICY))}
    supports_curiosity = True

    def init_environment_dependent_modules(self) -> None:
        if self.ap.curiosity is not None:
            main = self.ap.network_wrappers["main"]
            # a third head for intrinsic returns, as the critic's; [:2] because the settings may be used again
            main.heads_parameters = [*main.heads_parameters[:2], copy.deepcopy(main.heads_parameters[0])]
            self.network_requirements = {"main": NetworkRequirement((V, PPO_POLICY, V))}
        super().init_environment_dependent_modules()

    def make_update_rule(self) -> UpdateRule | Stages:
        algorithm = self.ap.algorithm
        value, policy = self.ap.network_wrappers["main"].heads_parameters[:2]
        rule = clipped_ppo_rule(
            algorithm.clip_likelihood_ratio_using_epsilon, algorithm.beta_entropy,
            value.loss_weight, policy.loss_weight, self.spaces.action_mask_name, algorithm.clip_value_using_epsilon,
        )  # fmt: skip
        return rule if self.curiosity is None else (Stage(("main",), rule), PREDICTOR_STAGE)

    def count_played(self, steps: int) -> None:
        super().count_played(steps)
        if self._phase is RunPhase.TRAIN:
            self.ap.algorithm.clipping_decay_schedule.advance(steps)

    def learning_scalars(self) -> dict[str, float]:
        return {"clipping_decay": self.ap.algorithm.clipping_decay_schedule.current_value}

    def _learning_scalars_after(self, steps: int) -> dict[str, float]:
        schedule = self.ap.algorithm.clipping_decay_schedule
        return {"clipping_decay": schedule.value_at(schedule.num_steps + steps)}

    def why_not_compiled(self, num_copies: int, actions: ActionSpace, heats_up: bool) -> str | None:
        kinds = CategoricalParameters, AdditiveNoiseParameters
        why_not = why_exploration_is_not_compiled(self.ap, actions, *kinds)
        return why_not or why_epochs_are_not_compiled(self.ap, num_copies, heats_up, learns_sequences=True)

    def make_compiled(self, random: Any, num_copies: int) -> CompiledEpochs:
        algorithm, ops = self.ap.algorithm, self.update_loop.learner.ops
        behaviour = partial(self.behaviour_columns, policy=[])
        mask_name, deviation = self.spaces.action_mask_name, self.evaluation_deviation
        acting = ops, random, mask_name, deviation, self.estimates_of_copies(ops), behaviour
        length = self.learning.sequence_length
        policy = RecurrentPolicyInEpochs(length, *acting) if self.is_recurrent else PolicyInEpochs(*acting)
        steps = algorithm.num_consecutive_playing_steps.num_steps // num_copies
        settings = EpochSettings(steps, algorithm.optimization_epochs, self.update_loop.batch_size)
        signals = {"values": self.state_values, "advantages": self.action_advantages, "targets": self.value_targets}
        learning = self, random, num_copies, settings, policy, signals, self._learning_scalars_after
        return CompiledSequences(length, *learning) if self.is_recurrent else CompiledEpochs(*learning)

    def behaviour_columns(
        self, values: np.ndarray, log_probs: np.ndarray, policy: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        columns = {"extra/behaviour_log_probs": log_probs}
        if self.ap.algorithm.clip_value_using_epsilon is not None:
            columns["extra/behaviour_values"] = values
        return columns

    def learn_from_played(self, columns: dict[str, np.ndarray]) -> float:
        epochs, target = self.ap.algorithm.optimization_epochs, self.ap.algorithm.target_kl_divergence
        if target is None:
            return self.train_network(columns, epochs)
        losses = []
        for _ in range(epochs):
            losses.append(self.train_network(columns, 1))
            if self.learning.divergence > 1.5 * target:
                break
        return float(np.mean(losses))

    def train_network(self, columns: dict[str, np.ndarray], epochs: int) -> float:
        """Make the updates on all minibatches of all epochs in one compiled call.

        :param columns: [N, ...] by name
        :return: the mean loss
        """
        return self.learning.make_epochs(columns, epochs)

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "clipping_decay": self.ap.algorithm.clipping_decay_schedule.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.ap.algorithm.clipping_decay_schedule.set_state(state["clipping_decay"])
