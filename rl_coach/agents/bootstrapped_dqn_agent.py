"""Bootstrapped DQN (Osband et al. 2016, "Deep exploration via bootstrapped DQN"). With ``UCBParameters`` as
exploration, it is the algorithm of Chen et al. 2017, "UCB exploration via Q-ensembles".
"""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.agents.core.requirements import NetworkRequirement, Q
from rl_coach.agents.ddqn_agent import greedy_by_online
from rl_coach.agents.dqn_agent import DQNAgentParameters, DQNNetworkParameters
from rl_coach.agents.rules.q_learning import allowed_values, td_losses
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    select,
    weighted_mean,
)
from rl_coach.core_types import Batch, StateType, Transition
from rl_coach.exploration_policies.bootstrapped import BootstrappedParameters
from rl_coach.exploration_policies.exploration_policy import deployed_choice
from rl_coach.policy.action_choice import PolicyDescription


class BootstrappedDQNNetworkParameters(DQNNetworkParameters):
    """A network of ten Q heads. The layers that the heads share learn from the mean of their gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.heads_parameters[0].num_output_head_copies = 10
        self.heads_parameters[0].rescale_gradient_from_head_by_factor = 1.0 / 10


class BootstrappedDQNAgentParameters(DQNAgentParameters):
    """Bootstrapped DQN. The number of heads in the network must be ``exploration.architecture_num_q_heads``."""

    path = "rl_coach.agents.bootstrapped_dqn_agent:BootstrappedDQNAgent"

    def __init__(self) -> None:
        super().__init__()
        self.exploration = BootstrappedParameters()
        self.network_wrappers = {"main": BootstrappedDQNNetworkParameters()}


def bootstrapped_rule(is_huber: bool, mask_name: str | None, loss_weight: float = 1.0) -> UpdateRule:
    """Double Q-learning for each of K heads; the loss is the sum over the heads (appendix D).

    ``extra['mask']`` [B, K] is 1 if head k learns from row b. The errors are the mean absolute errors over the heads.

    :param is_huber: True: Huber loss. False: squared error
    :param mask_name: the observation that masks actions, if there is one
    :param loss_weight: weight of the loss of each head
    """

    def stacked(ops: Any, heads: list[dict[str, Any]]) -> Any:
        """The values of all heads, [B, K, A]."""
        return ops.stack([head["q"] for head in heads], axis=1)

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, actions=batch.actions, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, mask=batch.extra.get("mask"))
        main = networks["main"]
        q_tm1 = stacked(ops, main.online(batch.states))
        q_t = stacked(ops, main.target(batch.next_states))
        q_t_online = stacked(ops, main.online(batch.next_states))
        if mask_name is not None:
            states = {mask_name: batch.next_states[mask_name][:, None, :]}
            q_t_online = allowed_values(ops, q_t_online, states, mask_name)
        v_t = select(ops, q_t, greedy_by_online(ops, q_t_online, q_t, batch))
        target_tm1 = ops.stop_gradient(batch.rewards[:, None] + batch.discounts[:, None] * v_t)
        taken = ops.one_hot(batch.actions, q_tm1.shape[-1], dtype="float32")[:, None, :]
        errors = batch.extra["mask"] * (target_tm1 - ops.sum(q_tm1 * taken, axis=-1))
        losses = ops.sum(td_losses(ops, errors, is_huber), axis=-1)
        loss = loss_weight * weighted_mean(ops, losses, batch.weights)
        return Update({"main": loss}, errors=ops.mean(ops.abs(errors), axis=-1))

    return rule


class BootstrappedDQNAgent(ValueOptimizationAgent):
    """DQN with several Q heads. By default, one head chooses the greedy actions of a training episode."""

    network_requirements = {"main": NetworkRequirement((Q,), has_target=True)}
    predicts_values = True
    learns_from_stored_states = True
    supports_curiosity = True
    episode_class = EpisodeInProgress  # the exploration policy keeps the head of the episode

    @property
    def num_heads(self) -> int:
        """K, the number of heads that the exploration policy chooses from."""
        return self.ap.exploration.architecture_num_q_heads

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        if not hasattr(self.ap.exploration, "architecture_num_q_heads"):
            yield (
                f"exploration of agent '{self.name}' is {type(self.ap.exploration).__name__}, which does not choose "
                f"among Q heads: set it to BootstrappedParameters() or UCBParameters()"
            )

    def make_update_rule(self) -> UpdateRule:
        return bootstrapped_rule(*self.loss_settings)

    def reset_internal_state(self) -> None:
        super().reset_internal_state()
        self.exploration_policy.select_head()

    def update_transition_before_adding_to_replay_buffer(self, transition: Transition) -> Transition:
        """Draw the heads that learn from the transition, ``info['mask']`` [K]."""
        shared = self.ap.exploration.bootstrapped_data_sharing_probability
        # floats, because the memory writes NaN for recorded steps without a mask; a missing integer would be 0
        transition.info["mask"] = (self.rng.random(self.num_heads) < shared).astype(np.float16)
        return transition

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        # recorded steps have no mask, so all heads learn from them
        mask = batch.info_columns.get("mask", np.ones((len(batch), self.num_heads)))
        mask = np.where(np.isnan(mask), 1, mask).astype(np.float32)
        return {**super().learning_columns(batch), "extra/mask": mask}

    def get_all_q_values_for_states(self, states: StateType | list[StateType]) -> np.ndarray:
        """[B, K, A], each head's Q(s, .)."""
        inputs = self.prepare_batch_for_inference(states, "main")
        values = self.networks["main"].online_network.predict(inputs, outputs=self._q_outputs, squeeze_output=False)
        return np.stack(values, axis=1)

    def policy_description(self) -> PolicyDescription | None:
        choice = deployed_choice(self.exploration_policy)
        return None if choice is None else PolicyDescription("main", self.networks["main"].outputs_named("q"), choice)
