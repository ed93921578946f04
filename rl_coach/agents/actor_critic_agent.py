"""Advantage actor-critic (Mnih et al. 2016, "Asynchronous methods for deep reinforcement learning")."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import numpy as np

from rl_coach.agents.core.compiled_acting import why_exploration_is_not_compiled
from rl_coach.agents.core.compiled_epochs import (
    CompiledEpochs,
    EpochSettings,
    PolicyInEpochs,
    why_phases_are_not_compiled,
)
from rl_coach.agents.core.epochs import last_rows
from rl_coach.agents.core.requirements import POLICY, NetworkRequirement, V, unknown_rescaler
from rl_coach.agents.core.rollout import ArrayOperations, RolloutBatch, estimates_of_rollout
from rl_coach.agents.core.segments import Segment, SegmentLearning, SegmentSettings, outputs_of
from rl_coach.agents.policy_optimization_agent import (
    ADVANTAGE_RESCALERS,
    AdvantageAlgorithmParameters,
    PolicyAgent,
    PolicyOptimizationAgent,
)
from rl_coach.agents.rules.advantages import (
    PolicyGradientRescaler,
    generalized_advantages,
    generalized_advantages_of_copies,
    n_step_advantages,
    n_step_advantages_of_copies,
)
from rl_coach.architectures.head_parameters import PolicyHeadParameters, VHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.policies import entropy, log_probability, mask_of, masked
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import Batch, n_step_returns
from rl_coach.exploration_policies.categorical import CategoricalParameters, categorical_or
from rl_coach.exploration_policies.continuous_entropy import ContinuousEntropyParameters
from rl_coach.memories.episodic.single_episode_buffer import SingleEpisodeBufferParameters
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.requirements import flags, number, whole
from rl_coach.utils import CoachError


class ActorCriticAlgorithmParameters(AdvantageAlgorithmParameters):
    """Hyperparameters of actor-critic.

    :ivar apply_gradients_every_x_episodes: number of episodes in one update; their gradients are added. With 1, each
        segment makes one update
    :ivar beta_entropy: weight of the entropy bonus in the policy's loss; 0 removes the bonus
    :ivar num_steps_between_gradient_updates: the largest number of steps in a segment
    :ivar learns_from_copies_together: True: one update learns from the steps of all copies of the environment since the
        last update (A2C), and ``apply_gradients_every_x_episodes`` has no effect. False: one update for the segment of
        each copy. Not in Intel's Coach.
    """

    constraints = {
        **flags("learns_from_copies_together"),
        "beta_entropy": number(),
        "num_steps_between_gradient_updates": whole(1),
    }

    def __init__(self) -> None:
        super().__init__()
        self.policy_gradient_rescaler = PolicyGradientRescaler.A_VALUE
        self.apply_gradients_every_x_episodes = 5
        self.beta_entropy: float = 0
        self.num_steps_between_gradient_updates = 5000
        self.gae_lambda = 0.96
        self.estimate_state_value_using_gae = False
        self.learns_from_copies_together = False


class ActorCriticNetworkParameters(FullyConnectedParameters):
    """A critic and a policy with common embedders and middleware."""

    def __init__(self) -> None:
        super().__init__(VHeadParameters(loss_weight=0.5), PolicyHeadParameters(loss_weight=1.0))
        self.clip_gradients = 40.0
        self.async_training = True


class ActorCriticAgentParameters(AgentParameters):
    """Actor-critic that samples from the policy."""

    algorithm_names = ("A2C", "A3C", "ActorCritic")
    path = "rl_coach.agents.actor_critic_agent:ActorCriticAgent"
    algorithm: ActorCriticAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=ActorCriticAlgorithmParameters(),
            exploration=categorical_or(ContinuousEntropyParameters()),
            memory=SingleEpisodeBufferParameters(),
            networks={"main": ActorCriticNetworkParameters()},
        )


def actor_critic_rule(value_weight: float, policy_weight: float, beta_entropy: float, mask: str | None) -> UpdateRule:
    """The loss: the sum over rows of value_weight (R_t - V)^2 - policy_weight (log pi(a_t|s_t) A_t) - beta H(pi),
    multiplied by the weight of the row.

    ``extra['advantages']`` and ``extra['returns']`` are [B].
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, weights=batch.weights, **{name: batch.extra.get(name) for name in ("advantages", "returns")})
        value, policy = networks["main"].online(batch.states)
        policy = masked(ops, policy, mask_of(batch, mask))
        errors = batch.extra["returns"] - value["v"]
        value_loss = ops.sum(batch.weights * errors * errors)
        log_prob = log_probability(ops, policy, batch.actions)
        policy_loss = -ops.sum(batch.weights * log_prob * batch.extra["advantages"])
        mean_entropy = ops.sum(batch.weights * entropy(ops, policy))
        loss = value_weight * value_loss + policy_weight * policy_loss - beta_entropy * mean_entropy
        return Update({"main": loss}, signals={"Value Loss": value_loss, "Policy Loss": policy_loss})

    return rule


Estimate = Callable[..., tuple[Any, Any]]


class AdvantageAgent(PolicyAgent):
    """Acts with a policy, and learns from advantages that a critic estimates."""

    rescalers = ADVANTAGE_RESCALERS
    acts_in_parts = True
    is_on_policy = True

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.action_advantages = self.register_signal("Advantages")
        self.state_values = self.register_signal("Values")

    def discount(self, x: np.ndarray, gamma: float) -> np.ndarray:
        """The discounted sums [T]: sum_k gamma^k x_{t+k}."""
        return n_step_returns(np.asarray(x), gamma)

    def get_general_advantage_estimation_values(
        self, rewards: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Generalised advantages [T] and lambda-returns [T, 1] from rewards [T] and values [T + 1]."""
        algorithm = self.ap.algorithm
        advantages, targets = generalized_advantages(rewards, values, algorithm.discount, algorithm.gae_lambda)
        return advantages, targets[:, None]

    def _advantages_and_returns(
        self, rewards: np.ndarray, values: np.ndarray, discount: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._estimate(n_step_advantages, generalized_advantages, discount)(rewards, values)

    def estimates_of_copies(self, ops: Any) -> Estimate:
        """``_advantages_and_returns`` for several environments at once, as a pure function. See
        ``generalized_advantages_of_copies`` for its arguments.

        :param ops: array operations with the names of ``keras.ops``
        """
        return self._estimate(partial(n_step_advantages_of_copies, ops), partial(generalized_advantages_of_copies, ops))

    def _estimate(self, n_step: Estimate, generalized: Estimate, discount: float | None = None) -> Estimate:
        """The function that computes advantages and returns, chosen by the settings. Its ``discount`` and
        ``gae_lambda`` are set already.

        :param discount: None uses the algorithm's discount
        :raises CoachError: if ``policy_gradient_rescaler`` is neither ``GAE`` nor ``A_VALUE``
        """
        algorithm = self.ap.algorithm
        discount = algorithm.discount if discount is None else discount
        n_step = partial(n_step, discount=discount)
        if algorithm.policy_gradient_rescaler == PolicyGradientRescaler.A_VALUE:
            return n_step
        if algorithm.policy_gradient_rescaler != PolicyGradientRescaler.GAE:
            raise CoachError(unknown_rescaler(self.name, algorithm.policy_gradient_rescaler, self.rescalers))
        generalized = partial(generalized, discount=discount, gae_lambda=algorithm.gae_lambda)
        if algorithm.estimate_state_value_using_gae:
            return generalized
        return lambda *arrays: (generalized(*arrays)[0], n_step(*arrays)[1])


class ActorCriticAgent(AdvantageAgent, PolicyOptimizationAgent):
    """Actor-critic: a policy that learns from advantages, which a critic estimates."""

    network_requirements = {"main": NetworkRequirement((V, POLICY))}
    rescalers = AdvantageAgent.rescalers

    def make_update_rule(self) -> UpdateRule:
        value, policy = self.ap.network_wrappers["main"].heads_parameters
        return actor_critic_rule(
            value.loss_weight, policy.loss_weight, self.ap.algorithm.beta_entropy, self.spaces.action_mask_name
        )

    def segment_settings(self) -> SegmentSettings:
        algorithm = self.ap.algorithm
        if not algorithm.learns_from_copies_together:
            return super().segment_settings()
        return SegmentSettings(algorithm.num_steps_between_gradient_updates, per_update=None)

    def make_learning(self, **parts: Any) -> SegmentLearning:
        return super().make_learning(asked=self.networks["main"], rollout_columns=self._rollout_columns, **parts)

    def _rollout_columns(self, batch: RolloutBatch) -> dict[str, np.ndarray]:
        """The columns of the update rule, from the steps of all actors."""
        main, ends = self.networks["main"], last_rows(batch)
        inputs = {name: batch.state_columns[name] for name in main.input_names}
        following = {name: batch.next_state_columns[name][ends] for name in main.input_names}
        values, after = (main.online_network.predict(one, outputs=["output_0_v"]) for one in (inputs, following))
        after = after * ~batch.terminated_column[ends]
        estimate = self.estimates_of_copies(ArrayOperations)
        advantages, returns = estimates_of_rollout(estimate, batch, values, ends, after)
        self.state_values.add_sample(values)
        self.action_advantages.add_sample(advantages)
        return {
            **{f"states/{name}": batch.state_columns[name] for name in self.update_loop.input_names},
            "actions": batch.action_column,
            "weights": np.full(len(batch), 1.0 / len(batch), np.float32),
            "extra/advantages": advantages.astype(np.float32),
            "extra/returns": returns.astype(np.float32),
        }

    def why_not_compiled(self, num_copies: int, actions: ActionSpace, heats_up: bool) -> str | None:
        kinds = CategoricalParameters, ContinuousEntropyParameters
        if (why_not := why_exploration_is_not_compiled(self.ap, actions, *kinds)) is not None:
            return why_not
        if not self.ap.algorithm.learns_from_copies_together:
            return "learns_from_copies_together is False"
        return why_phases_are_not_compiled(self.ap, heats_up)

    def make_compiled(self, random: Any, num_copies: int) -> CompiledEpochs:
        steps, ops = self.ap.algorithm.num_steps_between_gradient_updates, self.update_loop.learner.ops
        rows = steps * num_copies
        settings = EpochSettings(steps, 1, rows, 1.0 / rows, has_minibatches=False)
        policy = PolicyInEpochs(
            ops, random, self.spaces.action_mask_name, self.evaluation_deviation, self.estimates_of_copies(ops)
        )
        signals = {"values": self.state_values, "advantages": self.action_advantages}
        return CompiledEpochs(self, random, num_copies, settings, policy, signals)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        segment = Segment.of(batch)
        outputs = segment.outputs or outputs_of(self.networks["main"], [segment])[0]
        values = outputs["output_0_v"]
        values[-1] *= not segment.terminateds()[-1]
        advantages, returns = self._advantages_and_returns(segment.rewards(), values)
        self.state_values.add_sample(values[:-1])
        self.action_advantages.add_sample(advantages)
        return {
            **super().learning_columns(segment),
            "extra/advantages": advantages.astype(np.float32),
            "extra/returns": returns.astype(np.float32),
        }
