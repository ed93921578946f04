"""The updates of soft actor-critic with a value network (Haarnoja et al. 2018), and without one (Haarnoja et al.
2018b). The update without a value network can learn its temperature.

With other settings, the update without a value network is the update of TQC, REDQ, DroQ, CrossQ or SimbaV2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from rl_coach.agents.rules.categorical_dqn import projected
from rl_coach.architectures.policies import gaussian_log_probability
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Stage,
    Stages,
    Update,
    UpdateRule,
    assert_rank,
    huber,
    select_rows,
    weighted_mean,
)

_LEFT_OUT = 1e30  # larger than any value


def squashed_sample(ops: Any, policy: dict[str, Any], noise: Any) -> tuple[Any, Any]:
    """A sample tanh(u) with u ~ N(mean, deviation^2), and its log density (appendix C, equation 21).

    :param policy: ``mean`` and ``log_deviation`` [B, A]
    :param noise: [B, A], standard normal
    :return: actions [B, A] within -1 and 1, log densities [B]
    """
    u = policy["mean"] + ops.exp(policy["log_deviation"]) * noise
    # log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)), which does not round to log 0
    log_slope = 2.0 * (math.log(2.0) - u - ops.softplus(-2.0 * u))
    log_density = gaussian_log_probability(ops, u, policy["mean"], policy["log_deviation"])
    return ops.tanh(u), log_density - ops.sum(log_slope, axis=-1)


def soft_actor_critic_rule(temperature: float = 1.0) -> UpdateRule:
    """The losses of V, Q and the policy (equations 5, 7 and 12). All three use the weights before the update, as in the
    authors' code and in Coach 1.0.1.

    ``extra['noise']`` is [B, A], standard normal.

    :param temperature: weight of the entropy; the paper uses 1 and scales the rewards instead
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, actions=batch.actions, noise=batch.extra["noise"])
        policy = networks["policy"].online(batch.states)[0]
        new_actions, log_density = squashed_sample(ops, policy, batch.extra["noise"])
        q_new = networks["q"].online({**batch.states, "action": new_actions})[0]
        soft_value = ops.minimum(q_new["q1"], q_new["q2"]) - temperature * log_density
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
            "Policy_mu_avg": weighted_mean(ops, ops.mean(policy["mean"], axis=-1), batch.weights),
            "Policy_logsig": weighted_mean(ops, ops.mean(policy["log_deviation"], axis=-1), batch.weights),
            "Policy_logp_sampled": weighted_mean(ops, log_density, batch.weights),
            "Q1": weighted_mean(ops, q_new["q1"], batch.weights),
            "Q2": weighted_mean(ops, q_new["q2"], batch.weights),
            "TD err1": weighted_mean(ops, 0.5 * ops.square(q["q1"] - target), batch.weights),
            "TD err2": weighted_mean(ops, 0.5 * ops.square(q["q2"] - target), batch.weights),
            "V_tgt_ns": weighted_mean(ops, v_t, batch.weights),
            "V_onl_ys": weighted_mean(ops, soft_value, batch.weights),
        }
        return Update(losses, errors=q["q1"] - target, signals=signals)

    return rule


def soft_actor_critic_stages(temperature: float = 1.0) -> Stages:
    """The update of ``soft_actor_critic_rule`` as one stage. The signal ``Policy_grads_sumabs`` is the sum of the
    policy's absolute gradients."""
    rule = soft_actor_critic_rule(temperature)
    return (Stage(("policy", "q", "v"), rule, gradient_sums=(("Policy_grads_sumabs", "policy"),)),)


@dataclass(frozen=True)
class MaximumEntropySettings:
    """Settings of the update without a value network.

    :param temperature: weight of the entropy; None learns it
    :param target_entropy: the entropy that a learned temperature aims at
    :param policy_uses_mean_of_critics: True: the policy maximizes the mean of the critics. False: it maximizes their
        smallest value
    :param dropped_quantiles: number of the largest quantiles of each critic that targets do not use
    :param has_target: True if the critics have a target network. Otherwise the critics compute the states and the next
        states as one joint batch
    :param has_subset: True if the target is the smallest value of some critics only: ``extra['critics']`` [B, N] is 1
        for these critics, 0 for the others
    :param support: the smallest return, the largest return and the number of returns in the critics' distributions;
        None if the critics predict values
    """

    temperature: float | None
    target_entropy: float
    policy_uses_mean_of_critics: bool = False
    dropped_quantiles: int = 0
    has_target: bool = True
    has_subset: bool = False
    support: tuple[float, float, int] | None = None


def maximum_entropy_stages(settings: MaximumEntropySettings) -> Stages:
    """The critics learn, then the policy and the temperature (Haarnoja et al. 2018b, algorithm 1): the policy maximizes
    the new critics, and both use the temperature from before the update.

    ``extra['noise']`` and ``extra['next_noise']`` are [B, A], standard normal.
    """
    learned = ("policy",) if settings.temperature is not None else ("policy", "temperature")
    return Stage(("q",), maximum_entropy_critic_rule(settings)), Stage(learned, maximum_entropy_policy_rule(settings))


def maximum_entropy_critic_rule(
    settings: MaximumEntropySettings, sample: Callable[[Any, dict[str, Any], Any], tuple[Any, Any]] = squashed_sample
) -> UpdateRule:
    """The loss of the critics (Haarnoja et al. 2018b, equation 5).

    If critics predict distributions, the loss of a critic is the cross-entropy between the distribution of r + discount
    (Z - temperature log pi), projected onto the support, and the critic's distribution. The losses of the critics are
    added. Z comes from the target critic with the smallest mean (Lee et al. 2025).

    :param sample: draws the next action from the policy, see ``squashed_sample``
    """
    support = None if settings.support is None else np.linspace(*settings.support).astype(np.float32)

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        noise = batch.extra.get("next_noise")
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, actions=batch.actions, next_noise=noise)
        policy = networks["policy"].online(batch.next_states)[0]
        next_actions, next_log_density = sample(ops, policy, noise)
        entropy_cost = _temperature(ops, networks, settings) * next_log_density[:, None]
        if support is not None:
            return categorical_update(ops, networks, "q", batch, next_actions, entropy_cost, support)
        quantiles, next_quantiles = _quantiles(ops, networks["q"], batch, next_actions, settings.has_target)
        soft_t = _bootstrap_atoms(ops, next_quantiles, batch, settings) - entropy_cost
        targets = ops.stop_gradient(batch.rewards[:, None] + batch.discounts[:, None] * soft_t)  # [B, atoms]
        loss = weighted_mean(ops, critic_losses(ops, quantiles, targets), batch.weights)
        q = ops.mean(quantiles[:, 0], axis=-1)
        signals = {"Q Loss": loss, "Q": weighted_mean(ops, q, batch.weights)}
        return Update({"q": loss}, errors=q - ops.mean(targets, axis=-1), signals=signals)

    return rule


def categorical_update(
    ops: Any, networks: dict[str, NetworkView], name: str, batch: LearningBatch, next_actions: Any, cost: Any,
    support: np.ndarray,
) -> Update:  # fmt: skip
    """The update of critics with distributions; see ``maximum_entropy_critic_rule``.

    :param name: the critics' network
    :param next_actions: [B, A]
    :param cost: [B, 1] or a number, subtracted from the next return
    :param support: [N], the returns of the distributions, evenly spaced
    """
    z_t = networks[name].target({**batch.next_states, "action": next_actions})[0]
    smallest = ops.argmax(-z_t["quantiles"][..., 0], axis=-1)  # [B]
    probabilities = ops.exp(select_rows(ops, z_t["log_distribution"], smallest))  # [B, N]
    soft_t = ops.convert_to_tensor(support)[None] - cost
    returns = batch.rewards[:, None] + batch.discounts[:, None] * soft_t
    target = ops.stop_gradient(projected(ops, returns, probabilities, support))
    z_tm1 = networks[name].online({**batch.states, "action": batch.actions})[0]
    losses = -ops.sum(target[:, None] * z_tm1["log_distribution"], axis=(1, 2))
    loss = weighted_mean(ops, losses, batch.weights)
    q = z_tm1["q1"]
    signals = {"Q Loss": loss, "Q": weighted_mean(ops, q, batch.weights)}
    mean = ops.sum(target * ops.convert_to_tensor(support), axis=-1)
    return Update({name: loss}, errors=q - mean, signals=signals)


def maximum_entropy_policy_rule(settings: MaximumEntropySettings) -> UpdateRule:
    """The losses of the policy and the temperature (Haarnoja et al. 2018b, equations 7 and 18). The logarithm of the
    temperature replaces the temperature in equation 18, as in the authors' code.
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, weights=batch.weights)
        assert_rank(2, noise=batch.extra.get("noise"))
        temperature = _temperature(ops, networks, settings)
        actions, log_density = squashed_sample(ops, networks["policy"].online(batch.states)[0], batch.extra["noise"])
        # without a target network, only the critics' own update changes the statistics of batch normalisation
        quantiles = networks["q"].online({**batch.states, "action": actions}, training=settings.has_target)[0]
        policy_losses = temperature * log_density - _value_of(ops, quantiles["quantiles"], settings)
        losses = {"policy": weighted_mean(ops, policy_losses, batch.weights)}
        signals = {"Policy Loss": losses["policy"], "Entropy": -weighted_mean(ops, log_density, batch.weights)}
        if settings.temperature is None:
            log_temperature = networks["temperature"].online({})[0]["log_temperature"]
            lack = ops.stop_gradient(weighted_mean(ops, log_density + settings.target_entropy, batch.weights))
            losses["temperature"] = -log_temperature * lack
            signals["Temperature"] = temperature
        return Update(losses, signals=signals)

    return rule


def _temperature(ops: Any, networks: dict[str, NetworkView], settings: MaximumEntropySettings) -> Any:
    """The weight of the entropy. No gradient flows through it."""
    if settings.temperature is not None:
        return settings.temperature
    return ops.stop_gradient(ops.exp(networks["temperature"].online({})[0]["log_temperature"]))


def _quantiles(
    ops: Any, critic: NetworkView, batch: LearningBatch, next_actions: Any, has_target: bool
) -> tuple[Any, Any]:
    """[B, N, M] each: the critics' quantiles for the actions taken, and for the policy's next actions."""
    now, following = {**batch.states, "action": batch.actions}, {**batch.next_states, "action": next_actions}
    if has_target:
        return critic.online(now)[0]["quantiles"], critic.target(following)[0]["quantiles"]
    names = [name for name in now if name in following]
    joined = {name: ops.concatenate([now[name], following[name]], axis=0) for name in names}
    both = critic.online(joined)[0]["quantiles"]  # Bhatt et al. 2024, equation 2
    rows = batch.actions.shape[0]
    return both[:rows], both[rows:]


def _bootstrap_atoms(ops: Any, quantiles: Any, batch: LearningBatch, settings: MaximumEntropySettings) -> Any:
    """The atoms [B, atoms] of the next return's distribution, from the critics' quantiles [B, N, M]."""
    critics, each = quantiles.shape[1:]
    if each > 1:  # Kuznetsov et al. 2020, equation 11
        pooled = ops.sort(ops.reshape(quantiles, (-1, critics * each)), axis=-1)
        return pooled[:, : critics * (each - settings.dropped_quantiles)]
    values = quantiles[..., 0]  # their smallest value is the only atom (Fujimoto et al. 2018)
    if settings.has_subset:  # Chen et al. 2021, algorithm 1
        assert_rank(2, critics=batch.extra.get("critics"))
        values = ops.where(batch.extra["critics"] > 0, values, _LEFT_OUT)
    return ops.min(values, axis=-1, keepdims=True)


def _value_of(ops: Any, quantiles: Any, settings: MaximumEntropySettings) -> Any:
    """The value [B] that the policy maximizes, from quantiles [B, N, M]."""
    values = ops.mean(quantiles, axis=-1)
    is_mean = settings.policy_uses_mean_of_critics or quantiles.shape[-1] > 1
    return ops.mean(values, axis=-1) if is_mean else ops.min(values, axis=-1)


def critic_losses(ops: Any, quantiles: Any, targets: Any) -> Any:
    """[B], the sum of the critics' losses. A loss is half of the squared error, or the quantile Huber loss if there are
    several quantiles.

    Dabney et al. 2018, equation 10: mean over target atoms and quantiles of |tau - 1[u < 0]| H(u).

    :param quantiles: [B, N, M]
    :param targets: [B, atoms]
    """
    each = quantiles.shape[-1]
    if each == 1:
        return 0.5 * ops.sum(ops.square(quantiles[..., 0] - targets), axis=-1)
    errors = targets[:, None, None, :] - quantiles[..., None]  # [B, N, M, atoms]
    midpoints = ((np.arange(each) + 0.5) / each).astype(np.float32)[None, None, :, None]
    weights = ops.abs(ops.convert_to_tensor(midpoints) - ops.cast(errors < 0, "float32"))
    return ops.sum(ops.mean(weights * huber(ops, errors), axis=(2, 3)), axis=-1)
