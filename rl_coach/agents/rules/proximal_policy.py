"""Updates of proximal policy optimisation (Schulman et al. 2017): with a clipped ratio, and with a penalty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rl_coach.architectures.policies import entropy, kl_divergence, log_probability, mask_of, masked
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank, weighted_mean

# the bound of log ratios. Actions that the policy would never draw can have much larger ratios: their squared gradients
# overflow float32
LARGEST_LOG = 20.0
_TOO_FAR, _TOO_NEAR, _CHANGE = 1.3, 0.7, 1.5  # as in Schulman's code; the paper has 1.5, 1 / 1.5 and 2


def log_ratio_of(ops: Any, policy: dict[str, Any], batch: LearningBatch) -> Any:
    """log pi(a|s) - log mu(a|s) [B], at most 20. Larger ratios would overflow, for example for random actions of a
    heatup."""
    log_ratio = log_probability(ops, policy, batch.actions) - batch.extra["behaviour_log_probs"]
    return ops.minimum(log_ratio, LARGEST_LOG)


def clipped_objective(ops: Any, ratio: Any, advantages: Any, epsilon: Any) -> Any:
    """The clipped objective min(r A, clip(r, 1 - e, 1 + e) A) [B] (equation 7)."""
    return ops.minimum(ratio * advantages, ops.clip(ratio, 1.0 - epsilon, 1.0 + epsilon) * advantages)


def clipped_policy_loss(
    ops: Any, log_ratio: Any, advantages: Any, limit: Any, weights: Any
) -> tuple[Any, dict[str, Any]]:
    """The policy's loss -E[min(r A, clip(r, 1 - e, 1 + e) A)], and signals about the ratio r.

    :param log_ratio: [B], log r; or [B, N] of N players
    :param advantages: A, of the same shape or broadcast to it
    :param limit: e
    :param weights: of the shape of ``log_ratio``
    """
    ratio = ops.exp(log_ratio)
    policy_loss = -weighted_mean(ops, clipped_objective(ops, ratio, advantages, limit), weights)
    # an estimate of the divergence that is never negative (Schulman 2020, "Approximating KL divergence", k3)
    divergence = weighted_mean(ops, ratio - 1.0 - log_ratio, weights)
    is_clipped = ops.cast(ops.abs(ratio - 1.0) > limit, "float32")
    return policy_loss, {
        "Policy Loss": policy_loss,
        "KL Divergence": divergence,
        "PPO Clipped Share": weighted_mean(ops, is_clipped, weights),
        "Likelihood Ratio": weighted_mean(ops, ratio, weights),
        "Clipped Likelihood Ratio": weighted_mean(ops, ops.clip(ratio, 1.0 - limit, 1.0 + limit), weights),
    }


def clipped_value_loss(ops: Any, values: Any, batch: LearningBatch, value_epsilon: float | None, kind: str = "") -> Any:
    """The critic's loss: the mean of (V - R)^2. With ``value_epsilon``, the mean of the larger one of (V - R)^2 and (V'
    - R)^2; see ``clipped_ppo_rule``.

    :param values: [B], V
    :param kind: the beginning of the names of the returns and the old values in ``extra``
    """
    returns = batch.extra[f"{kind}returns"]
    errors = values - returns
    squares = errors * errors
    if value_epsilon is not None:
        old = batch.extra[f"behaviour_{kind}values"]
        kept = old + ops.clip(values - old, -value_epsilon, value_epsilon) - returns
        squares = ops.maximum(squares, kept * kept)
    return weighted_mean(ops, squares, batch.weights)


def clipped_ppo_rule(
    epsilon: float,
    beta_entropy: float,
    value_weight: float,
    policy_weight: float,
    mask_name: str | None,
    value_epsilon: float | None = None,
) -> UpdateRule:
    """The loss value_weight (V - R)^2 - policy_weight E[min(r A, clip(r, 1 - e, 1 + e) A)] - beta H(pi) (Schulman et
    al. 2017, equations 7 and 9).

    ``extra`` holds ``advantages``, ``returns`` and ``behaviour_log_probs``, each [B]; ``scalars['clipping_decay']``
    multiplies epsilon. With ``value_epsilon``, the critic's loss is the larger one of (V - R)^2 and (V' - R)^2. V' is
    V, clipped to ``extra['behaviour_values']`` [B] plus and minus ``value_epsilon``.

    If the network has a third head, it learns ``extra['intrinsic_returns']`` [B] in the same way. Its loss is added to
    the critic's.
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        names = ("advantages", "returns", "behaviour_log_probs")
        assert_rank(1, weights=batch.weights, **{name: batch.extra.get(name) for name in names})
        value, policy, *intrinsic = networks["main"].online(batch.states)
        policy = masked(ops, policy, mask_of(batch, mask_name))
        limit = epsilon * batch.scalars["clipping_decay"]
        policy_loss, of_ratios = clipped_policy_loss(
            ops, log_ratio_of(ops, policy, batch), batch.extra["advantages"], limit, batch.weights
        )
        value_loss = clipped_value_loss(ops, value["v"], batch, value_epsilon)
        mean_entropy = weighted_mean(ops, entropy(ops, policy), batch.weights)
        signals = {"Policy Loss": policy_loss, "Value Loss": value_loss, "Entropy": mean_entropy, **of_ratios}
        for head in intrinsic:
            signals["Intrinsic Value Loss"] = clipped_value_loss(ops, head["v"], batch, value_epsilon, "intrinsic_")
            value_loss = value_loss + signals["Intrinsic Value Loss"]
        if "standard_deviation" in policy:
            deviations = ops.mean(policy["standard_deviation"] * ops.ones_like(policy["mean"]), axis=-1)
            signals["Policy Standard Deviation"] = weighted_mean(ops, deviations, batch.weights)
        loss = value_weight * value_loss + policy_weight * policy_loss - beta_entropy * mean_entropy
        return Update({"main": loss}, signals=signals)

    return rule


def asynchronous_ppo_rule(
    epsilon: float, beta_entropy: float, value_weight: float, policy_weight: float, mask_name: str | None
) -> UpdateRule:
    """``clipped_ppo_rule`` for segments of older policies (Luo et al. 2020, "IMPACT", section 3; RLlib's APPO).

    ``extra`` holds ``advantages``, ``returns`` and ``behaviour_log_probs``. The advantages and returns are V-trace's:
    corrected from the policies that acted to the policy before the update. The log probabilities are of the policy
    before the update. Weights above 0 count as 1.
    """
    clipped = clipped_ppo_rule(epsilon, beta_entropy, value_weight, policy_weight, mask_name)

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        weights = ops.cast(batch.weights > 0, "float32")
        return clipped(ops, networks, replace(batch, weights=weights, scalars={"clipping_decay": 1.0}))

    return rule


def adapted_coefficient(coefficient: float, divergence: float, target: float) -> float:
    """The next weight of the KL penalty. ``divergence`` is the KL divergence by which the last training phase moved the
    policy."""
    if divergence > _TOO_FAR * target:
        return coefficient * _CHANGE
    return coefficient / _CHANGE if divergence < _TOO_NEAR * target else coefficient


def ppo_rule(
    target_divergence: float,
    excess_penalty: float | None,
    beta_entropy: float,
    mask_name: str | None,
    epsilon: float | None = None,
) -> UpdateRule:
    """The losses of two networks. Critic: (V - R)^2. Policy: -E[r A] + b KL + c max(0, KL - 2 d)^2 - beta H(pi)
    (Schulman et al. 2017, equation 8). The term with c is in the authors' code: a penalty on a KL above twice the
    target d.

    ``extra`` holds ``advantages``, ``returns`` and ``behaviour_log_probs`` [B], and the policy that played:
    ``behaviour_probabilities`` [B, A], or ``behaviour_mean`` and ``behaviour_standard_deviation`` [B, D].
    ``scalars['kl_coefficient']`` is b.

    :param target_divergence: d
    :param excess_penalty: c; None removes both penalties on the divergence
    :param beta_entropy: beta
    :param mask_name: the observation that says which actions are allowed
    :param epsilon: the loss clips the probability ratio to 1 - epsilon and 1 + epsilon; None does not clip
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        names = ("advantages", "returns", "behaviour_log_probs")
        assert_rank(1, weights=batch.weights, **{name: batch.extra.get(name) for name in names})
        mask = mask_of(batch, mask_name)
        policy = masked(ops, networks["actor"].online(batch.states)[0], mask)
        ratio = ops.exp(log_ratio_of(ops, policy, batch))
        advantages = batch.extra["advantages"]
        objective = ratio * advantages if epsilon is None else clipped_objective(ops, ratio, advantages, epsilon)
        policy_loss = -weighted_mean(ops, objective, batch.weights)
        mean_entropy = weighted_mean(ops, entropy(ops, policy), batch.weights)
        old = masked(ops, behaviour_policy(ops, batch), mask)
        divergence = weighted_mean(ops, kl_divergence(ops, old, policy), batch.weights)
        loss = policy_loss - beta_entropy * mean_entropy
        if excess_penalty is not None:
            excess = ops.maximum(divergence - 2.0 * target_divergence, 0.0)
            loss = loss + batch.scalars["kl_coefficient"] * divergence + excess_penalty * ops.square(excess)
        errors = networks["critic"].online(batch.states)[0]["v"] - batch.extra["returns"]
        value_loss = weighted_mean(ops, errors * errors, batch.weights)
        signals = {
            "Policy Loss": policy_loss,
            "Value Loss": value_loss,
            "Entropy": mean_entropy,
            "KL Divergence": divergence,
        }
        return Update({"actor": loss, "critic": value_loss}, signals=signals)

    return rule


def behaviour_policy(ops: Any, batch: LearningBatch) -> dict[str, Any]:
    """The outputs of the policy that played, from the columns of the batch; see ``ppo_rule``."""
    prefix = "behaviour_"
    names = ("probabilities", "mean", "standard_deviation")
    old = {name: batch.extra[prefix + name] for name in names if prefix + name in batch.extra}
    if "probabilities" in old:
        old["log_probabilities"] = ops.log(ops.maximum(old["probabilities"], 1e-20))
    return old
