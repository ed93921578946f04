"""Advantage learning and persistent advantage learning (Bellemare et al. 2016, "Increasing the action gap")."""

from __future__ import annotations

from typing import Any

from rl_coach.agents.ddqn_agent import greedy_by_online
from rl_coach.agents.mmc_agent import (
    MixedMonteCarloAgent,
    MixedMonteCarloAgentParameters,
    MixedMonteCarloAlgorithmParameters,
)
from rl_coach.agents.rules.q_learning import allowed_values, q_learning_update
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank, select
from rl_coach.utilities.requirements import FLAG, FRACTION


class PALAlgorithmParameters(MixedMonteCarloAlgorithmParameters):
    """Hyperparameters of advantage learning.

    :ivar pal_alpha: share of the action gap that is subtracted from the target; 0 gives mixed Monte Carlo, values near
        1 give the largest gaps
    :ivar persistent_advantage_learning: True: subtract the smaller one of the gaps in s and in s'. This prefers actions
        that are also good in the next state
    :ivar monte_carlo_mixing_rate: share of the return in the target; 0 does not use returns
    """

    constraints = {"pal_alpha": FRACTION, "persistent_advantage_learning": FLAG}

    def __init__(self) -> None:
        super().__init__()
        self.pal_alpha = 0.9
        self.persistent_advantage_learning = False


class PALAgentParameters(MixedMonteCarloAgentParameters):
    """Advantage learning with the settings of DQN, except the memory: it stores whole episodes with their returns."""

    path = "rl_coach.agents.pal_agent:PALAgent"
    algorithm: PALAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = PALAlgorithmParameters()


def action_gap(ops: Any, q: Any, actions: Any) -> Any:
    """The action gaps [B]: max Q(s, .) - Q(s, a), from values [B, A] and actions [B]; 0 for the best action."""
    return ops.max(q, axis=-1) - select(ops, q, actions)


def advantage_learning_rule(
    algorithm: PALAlgorithmParameters, is_huber: bool, mask_name: str | None, loss_weight: float = 1.0
) -> UpdateRule:
    """The loss of Q-learning with the targets y = (1 - m) (r + discount_t Q_target(s', a') - alpha * gap) + m G, where
    a' is the online network's choice.

    The gap is max Q_target(s, .) - Q_target(s, a). With persistent learning, it is the smaller one of the gaps of
    action a in s and in s' (section 3.2 and equation 9). The gap in a terminal state is 0. ``extra['returns']`` G is
    [B].
    """
    alpha, mixing_rate = algorithm.pal_alpha, algorithm.monte_carlo_mixing_rate

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, actions=batch.actions, rewards=batch.rewards, discounts=batch.discounts)
        assert_rank(1, returns=batch.extra.get("returns"), weights=batch.weights)
        main = networks["main"]
        q_tm1 = main.online(batch.states)[0]["q"]
        q_tm1_target = allowed_values(ops, main.target(batch.states)[0]["q"], batch.states, mask_name)
        q_t = allowed_values(ops, main.target(batch.next_states)[0]["q"], batch.next_states, mask_name)
        q_t_online = allowed_values(ops, main.online(batch.next_states)[0]["q"], batch.next_states, mask_name)
        gap = action_gap(ops, q_tm1_target, batch.actions)
        if algorithm.persistent_advantage_learning:
            gap_t = ops.where(batch.discounts > 0, action_gap(ops, q_t, batch.actions), 0.0)
            gap = ops.minimum(gap, gap_t)
        one_step = batch.rewards + batch.discounts * select(ops, q_t, greedy_by_online(ops, q_t_online, q_t, batch))
        target_tm1 = (1.0 - mixing_rate) * (one_step - alpha * gap) + mixing_rate * batch.extra["returns"]
        return q_learning_update(ops, target_tm1, q_tm1, batch, is_huber, loss_weight)

    return rule


class PALAgent(MixedMonteCarloAgent):
    """Mixed Monte Carlo that subtracts a share of the action gap from each target."""

    network_requirements = MixedMonteCarloAgent.network_requirements

    def make_update_rule(self) -> UpdateRule:
        return advantage_learning_rule(self.ap.algorithm, *self.loss_settings)
