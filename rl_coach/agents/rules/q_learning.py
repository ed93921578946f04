"""Updates of DQN and of its variants: Q-learning with a target network."""

from __future__ import annotations

from typing import Any, Callable

from rl_coach.agents.rules.conservative import ConservativeSettings, with_penalty
from rl_coach.architectures.policies import MASKED_LOGIT, allows
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    huber,
    select,
    weighted_mean,
)

SelectActions = Callable[[Any, Any, Any, LearningBatch], Any]


def greedy_by_target(ops: Any, q_online: Any, q_target: Any, batch: LearningBatch) -> Any:
    """argmax_a of the target network's Q [B, A]: DQN's choice of the next action, [B]."""
    return ops.argmax(q_target, axis=-1)


def selected_before(ops: Any, q_online: Any, q_target: Any, batch: LearningBatch) -> Any:
    """The actions [B] that the agent's own ``select_actions`` chose, ``extra['next_actions']``."""
    return ops.cast(batch.extra["next_actions"], "int32")


def allowed_values(ops: Any, q: Any, states: dict[str, Any], mask_name: str | None) -> Any:
    """The values ``q`` [B, A], replaced by a very low number if the observation ``mask_name`` of a state forbids the
    action."""
    return q if mask_name is None else ops.where(allows(ops, states[mask_name]), q, MASKED_LOGIT)


def td_losses(ops: Any, td_errors: Any, is_huber: bool) -> Any:
    """The squared or Huber loss of each TD error, in the shape of ``td_errors``."""
    return huber(ops, td_errors) if is_huber else td_errors * td_errors


def q_learning_update(
    ops: Any, target: Any, q: Any, batch: LearningBatch, is_huber: bool, loss_weight: float, mean: Any = weighted_mean
) -> Update:
    """The loss between Q(s, a) and a target. No gradient flows through the target.

    :param target: [B]
    :param q: [B, A], the online network's values
    :param is_huber: True: Huber loss. False: squared error
    :param mean: computes the network's loss from ``(ops, losses, weights)``; losses and weights are [B]
    """
    td_errors = ops.stop_gradient(target) - select(ops, q, batch.actions)
    losses = td_losses(ops, td_errors, is_huber)
    return Update({"main": loss_weight * mean(ops, losses, batch.weights)}, errors=td_errors)


def q_learning_rule(
    is_huber: bool,
    mask_name: str | None,
    select_actions: SelectActions,
    needs_online: bool,
    loss_weight: float = 1.0,
    mean: Any = weighted_mean,
) -> UpdateRule:
    """The loss of Q-learning with the targets y = r + discount_t * Q_target(s', a'), where ``select_actions`` chooses
    a' (Mnih et al. 2015, algorithm 1).

    :param is_huber: True: Huber loss. False: squared error
    :param mask_name: the observation that masks actions, if there is one
    :param select_actions: computes the actions a' [B] from ``(ops, online Q(s', .), target Q(s', .), batch)``; the
        values are [B, A]
    :param needs_online: True if ``select_actions`` uses the values of the online network
    :param loss_weight: weight of the head's loss
    :param mean: see ``q_learning_update``
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, actions=batch.actions, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        main = networks["main"]
        q_tm1 = main.online(batch.states)[0]["q"]
        q_t = main.target(batch.next_states)[0]["q"]
        q_t_online = main.online(batch.next_states)[0]["q"] if needs_online else q_t
        assert_rank(2, q_tm1=q_tm1, q_t=q_t)
        q_t, q_t_online = (allowed_values(ops, q, batch.next_states, mask_name) for q in (q_t, q_t_online))
        a_t = select_actions(ops, q_t_online, q_t, batch)
        target_tm1 = batch.rewards + batch.discounts * select(ops, q_t, a_t)
        return q_learning_update(ops, target_tm1, q_tm1, batch, is_huber, loss_weight, mean)

    return rule


def conservative_rule(
    rule: UpdateRule, settings: ConservativeSettings, mask_name: str | None, is_huber: bool, loss_weight: float = 1.0
) -> UpdateRule:
    """Add the penalty of conservative Q-learning to a rule of Q-learning. The loss is half of the squared errors plus
    alpha * mean(log sum_a exp Q(s, a) - Q(s, a of the data)) (Kumar et al. 2020, "Conservative Q-learning for offline
    reinforcement learning", equation 4).

    If ``rule`` gives the whole squared error, not half of it, the penalty is doubled. The Huber loss needs no change:
    it is half of the squared error for small errors. The signal ``Conservative Gap`` is the mean in this formula.

    :param rule: gives the loss of network ``main``
    :param mask_name: the observation that masks actions, if there is one
    :param is_huber: True if the loss of ``rule`` is the Huber loss
    """
    scale = loss_weight * (1.0 if is_huber else 2.0)

    def conservative(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        update = rule(ops, networks, batch)
        q = allowed_values(ops, networks["main"].online(batch.states)[0]["q"], batch.states, mask_name)
        gap = weighted_mean(ops, ops.logsumexp(q, axis=-1) - select(ops, q, batch.actions), batch.weights)
        return with_penalty(ops, networks, update, "main", gap, settings, scale)

    return conservative


def munchausen_rule(
    temperature: float,
    alpha: float,
    smallest_log_policy: float,
    is_huber: bool,
    mask_name: str | None,
    loss_weight: float = 1.0,
) -> UpdateRule:
    """The loss of Q-learning with the targets y = r + alpha [tau log pi(a|s)]_{l_0}^0 + discount_t sum_a' pi(a'|s')
    (Q_target(s', a') - tau log pi(a'|s')), where pi = softmax(Q_target / tau) (Vieillard et al. 2020, section 2; l_0:
    section 4).

    The sum over a' is computed as tau logsumexp(Q_target(s', .) / tau), which is exact also for very small
    probabilities.

    :param temperature: tau
    :param alpha: weight of the bonus
    :param smallest_log_policy: l_0, the lower bound of the scaled log-policy
    :param is_huber: True: Huber loss. False: squared error
    :param mask_name: the observation that masks actions, if there is one
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, actions=batch.actions, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        main = networks["main"]
        q_tm1 = main.online(batch.states)[0]["q"]
        q_tm1_target = allowed_values(ops, main.target(batch.states)[0]["q"], batch.states, mask_name)
        q_t = allowed_values(ops, main.target(batch.next_states)[0]["q"], batch.next_states, mask_name)
        assert_rank(2, q_tm1=q_tm1, q_t=q_t)
        log_policy = temperature * select(ops, ops.log_softmax(q_tm1_target / temperature, axis=-1), batch.actions)
        bonus = alpha * ops.clip(log_policy, smallest_log_policy, 0.0)
        soft_value = temperature * ops.logsumexp(q_t / temperature, axis=-1)
        target_tm1 = batch.rewards + bonus + batch.discounts * soft_value
        return q_learning_update(ops, target_tm1, q_tm1, batch, is_huber, loss_weight)

    return rule


def q_lambda_rule(is_huber: bool, loss_weight: float) -> UpdateRule:
    """The loss between Q(s, a) and its lambda-return (Gallici et al. 2024, algorithm 1).

    ``extra['returns']`` [B] are the lambda-returns.

    :param is_huber: True: Huber loss. False: squared error
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, actions=batch.actions, weights=batch.weights, returns=batch.extra.get("returns"))
        q = networks["main"].online(batch.states)[0]["q"]
        assert_rank(2, q=q)
        return q_learning_update(ops, batch.extra["returns"], q, batch, is_huber, loss_weight)

    return rule
