"""Updates of deterministic policies: DDPG's (Lillicrap et al. 2016) and TD3's (Fujimoto et al. 2018).

The critic learns first. Then the actor maximizes the new critic on the same batch, as in both papers.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from rl_coach.agents.rules.q_learning import td_losses
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Stage,
    Stages,
    Update,
    UpdateRule,
    assert_rank,
    weighted_mean,
)
from rl_coach.spaces import BoxActionSpace


def clipped_target(ops: Any, batch: LearningBatch, q_t: Any, bounds: Sequence[float] | None) -> Any:
    """The target r + discount * Q(s', a') [B], clipped to ``bounds``. No gradient flows through it."""
    target_tm1 = batch.rewards + batch.discounts * q_t
    return ops.stop_gradient(target_tm1 if bounds is None else ops.clip(target_tm1, *bounds))


def policy_loss(ops: Any, batch: LearningBatch, policy: dict[str, Any], q: Any, action_penalty: float) -> Any:
    """The actor's loss E[-Q(s, mu(s))] (Silver et al. 2014, theorem 1), plus a penalty on the squared input of the
    final tanh.

    :param policy: the actor's ``action`` and ``pre_activation`` [B, A]
    :param q: [B], the critic's values of these actions
    """
    saturation = ops.mean(ops.square(policy["pre_activation"]), axis=-1)
    return weighted_mean(ops, action_penalty * saturation - q, batch.weights)


def actor_rule(value: str, action_penalty: float) -> UpdateRule:
    """The actor maximizes Q(s, mu(s)). :param value: the name of the critic's output [B] to maximize"""

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        policy = networks["actor"].online(batch.states)[0]
        q = networks["critic"].online({**batch.states, "action": policy["action"]})[0][value]
        return Update({"actor": policy_loss(ops, batch, policy, q, action_penalty)})

    return rule


def cloning_actor_rule(value: str, alpha: float, action_space: BoxActionSpace, action_penalty: float) -> UpdateRule:
    """The actor maximizes lambda Q(s, mu(s)) - (mu(s) - a)^2, with lambda = alpha / mean |Q(s, mu(s))| (Fujimoto and Gu
    2021, "A Minimalist Approach to Offline Reinforcement Learning", equations 4 and 5).

    The squared distance is the mean over the action's elements, in units of half of the action range. The signal
    ``Cloning Loss`` is its mean over the batch.

    :param value: the name of the critic's output [B] to maximize
    :param alpha: weight of the value; 0 imitates the data only
    :param action_space: the space of the actions a
    """
    radius = np.asarray((action_space.high - action_space.low) / 2, np.float32)

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, weights=batch.weights)
        assert_rank(2, actions=batch.actions)
        policy = networks["actor"].online(batch.states)[0]
        q = networks["critic"].online({**batch.states, "action": policy["action"]})[0][value]
        scale = ops.stop_gradient(alpha / weighted_mean(ops, ops.abs(q), batch.weights))
        distances = ops.mean(ops.square((policy["action"] - batch.actions) / ops.convert_to_tensor(radius)), axis=-1)
        cloning = weighted_mean(ops, distances, batch.weights)
        climbing = policy_loss(ops, batch, policy, scale * q, action_penalty)
        return Update({"actor": climbing + cloning}, signals={"Cloning Loss": cloning})

    return rule


NextValue = Callable[[Any, dict[str, NetworkView], LearningBatch], Any]
"""The value [B] of the next states that the critic bootstraps from: ``next_value(ops, networks, batch)``."""


def value_of_target_policy(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Any:
    """The value Q'(s', mu'(s')) [B] of the next states, with the target critic Q' and the target actor mu'."""
    a_t = networks["actor"].target(batch.next_states)[0]["action"]
    return networks["critic"].target({**batch.next_states, "action": a_t})[0]["q"]


def best_of_next_actions(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Any:
    """The largest Q'(s', a) [B] of ``extra['next_actions']`` [B, k, A] (Dulac-Arnold et al. 2015, algorithm 2). The
    target critic chooses among the k nearest actions.
    """
    assert_rank(3, next_actions=batch.extra.get("next_actions"))
    k, width = batch.extra["next_actions"].shape[1:]
    states = {name: ops.repeat(column, k, axis=0) for name, column in batch.next_states.items()}
    actions = ops.reshape(batch.extra["next_actions"], (-1, width))
    values = networks["critic"].target({**states, "action": actions})[0]["q"]
    return ops.max(ops.reshape(values, (-1, k)), axis=1)


def critics_update(ops: Any, batch: LearningBatch, target_tm1: Any, q_tm1: Any, losses: Any) -> Update:
    """The update of network ``critic``.

    :param target_tm1: [B], the targets of the values
    :param q_tm1: [B], the values of the critic, or of the first of several critics
    :param losses: [B], the losses of all critics
    """
    signals = {
        "Q": weighted_mean(ops, q_tm1, batch.weights),
        "TD targets": weighted_mean(ops, target_tm1, batch.weights),
    }
    loss = weighted_mean(ops, losses, batch.weights)
    return Update({"critic": loss}, errors=target_tm1 - q_tm1, signals=signals)


def ddpg_stages(
    action_penalty: float,
    clip_targets: Sequence[float] | None,
    is_huber: bool,
    next_value: NextValue,
) -> Stages:
    """The stages of DDPG (algorithm 1). The critic learns r + discount * Q'(s', mu'(s')), or another value of the next
    state. Then the actor learns.

    :param next_value: computes the value [B] of the next state
    """

    def critic_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, actions=batch.actions)
        target_tm1 = clipped_target(ops, batch, next_value(ops, networks, batch), clip_targets)
        q_tm1 = networks["critic"].online({**batch.states, "action": batch.actions})[0]["q"]
        return critics_update(ops, batch, target_tm1, q_tm1, td_losses(ops, target_tm1 - q_tm1, is_huber))

    return Stage(("critic",), critic_rule), Stage(("actor",), actor_rule("q", action_penalty))


def td3_stages(
    policy_noise: float,
    noise_clipping: float,
    action_space: BoxActionSpace,
    action_penalty: float,
    clip_targets: Sequence[float] | None,
    is_huber: bool,
) -> Stages:
    """The stages of TD3 (algorithm 1). The critics learn from the smallest value that the target critics give to a
    noisy action of the target actor. Then the actor maximizes the first critic. The agent chooses the updates that
    train the actor.

    ``extra['noise']`` [B, A] is standard normal noise.
    """
    bounds = [np.asarray(bound, np.float32) for bound in (action_space.low, action_space.high)]

    def critic_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, actions=batch.actions, noise=batch.extra.get("noise"))
        actor, critic = networks["actor"], networks["critic"]
        low, high = (ops.convert_to_tensor(bound) for bound in bounds)
        noise = ops.clip(policy_noise * batch.extra["noise"], -noise_clipping, noise_clipping)
        a_t = ops.minimum(ops.maximum(actor.target(batch.next_states)[0]["action"] + noise, low), high)
        q_t = critic.target({**batch.next_states, "action": a_t})[0]["q"]
        target_tm1 = clipped_target(ops, batch, q_t, clip_targets)
        critics = critic.online({**batch.states, "action": batch.actions})[0]["critics"]
        losses = td_losses(ops, target_tm1[:, None] - critics, is_huber)  # [B, critics]
        return critics_update(ops, batch, target_tm1, critics[:, 0], ops.sum(losses, axis=-1))

    return Stage(("critic",), critic_rule), Stage(("actor",), actor_rule("first", action_penalty))
