"""Updates of soft actor-critic's networks from fixed data: conservative Q-learning (Kumar et al. 2020) and advantage
weighted actor-critic (Nair et al. 2020, "AWAC: Accelerating Online Reinforcement Learning with Offline Datasets")."""

from __future__ import annotations

import math
from typing import Any

from rl_coach.agents.rules.conservative import ConservativeSettings, with_penalty
from rl_coach.agents.rules.soft_actor_critic import (
    MaximumEntropySettings,
    maximum_entropy_critic_rule,
    squashed_sample,
)
from rl_coach.architectures.policies import gaussian_log_probability
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

_NEVER = -1e30


def conservative_critics_rule(rule: UpdateRule, settings: ConservativeSettings) -> UpdateRule:
    """Add the penalty of conservative Q-learning to a rule of soft critics, which gives half of the squared errors.

    The penalty of each critic is alpha * mean(log integral of exp Q(s, a) da - Q(s, a of the data)) (Kumar et al. 2020,
    equation 4). The integral is estimated by importance sampling, as in appendix F.

    ``extra['uniform_actions']`` [B, N, A] are drawn uniformly from -1 to 1; ``extra['sampling_noise']`` [B, N, A],
    standard normal, draws N more actions from the policy. The signal ``Conservative Gap`` is the mean in this formula.

    :param rule: gives the loss of network ``q``
    """

    def conservative(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        uniform: Any = batch.extra.get("uniform_actions")
        noise: Any = batch.extra.get("sampling_noise")
        assert_rank(3, uniform_actions=uniform, sampling_noise=noise)
        update = rule(ops, networks, batch)
        rows, each, elements = noise.shape
        states = {name: ops.repeat(state, each, axis=0) for name, state in batch.states.items()}
        policy = networks["policy"].online(states)[0]
        drawn, log_density = squashed_sample(ops, policy, ops.reshape(noise, (rows * each, elements)))
        log_weights = []
        for actions, log_densities in (
            (ops.reshape(uniform, (rows * each, elements)), elements * math.log(0.5)),
            (drawn, log_density[:, None]),
        ):
            values = _critics(ops, networks["q"], states, ops.stop_gradient(actions)) - log_densities
            log_weights.append(ops.reshape(values, (rows, each, values.shape[-1])))
        log_integral = ops.logsumexp(ops.concatenate(log_weights, axis=1), axis=1) - math.log(2 * each)  # [B, critics]
        gaps = ops.sum(log_integral - _critics(ops, networks["q"], batch.states, batch.actions), axis=-1)
        gap = weighted_mean(ops, gaps, batch.weights)
        return with_penalty(ops, networks, update, "q", gap, settings, count=log_integral.shape[-1])

    return conservative


def _critics(ops: Any, critic: NetworkView, states: dict[str, Any], actions: Any) -> Any:
    """[B, critics], the values of actions [B, A]."""
    return ops.mean(critic.online({**states, "action": actions})[0]["quantiles"], axis=-1)


def advantage_weighted_stages(temperature: float, settings: MaximumEntropySettings) -> Stages:
    """AWAC: first an update of the critics, without an entropy term.

    Then the policy imitates the data's actions, each weighted by exp(advantage / temperature) (Nair et al. 2020,
    equations 9 and 13). The weights of a batch have a mean of 1, as in the authors' code. ``extra['noise']`` and
    ``extra['next_noise']`` are [B, A], standard normal.

    :param temperature: lambda
    :param settings: the critics' settings, with an entropy weight (``settings.temperature``) of 0
    """

    def policy_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, weights=batch.weights)
        assert_rank(2, actions=batch.actions, noise=batch.extra.get("noise"))
        policy = networks["policy"].online(batch.states)[0]
        own_actions, _ = squashed_mean_sample(ops, policy, batch.extra["noise"])
        q, v = (
            ops.min(_critics(ops, networks["q"], batch.states, actions), axis=-1)
            for actions in (batch.actions, own_actions)
        )
        advantages = ops.where(batch.weights > 0, (q - v) / temperature, _NEVER)
        rows = ops.sum(ops.cast(batch.weights > 0, "float32"))
        counts = ops.stop_gradient(rows * ops.softmax(advantages, axis=-1))
        log_density = gaussian_log_probability(ops, batch.actions, ops.tanh(policy["mean"]), policy["log_deviation"])
        loss = weighted_mean(ops, -counts * log_density, batch.weights)
        signals = {
            "Policy Loss": loss,
            "Advantages": weighted_mean(ops, q - v, batch.weights),
            "Largest Count": ops.max(counts),
        }
        return Update({"policy": loss}, signals=signals)

    critics = maximum_entropy_critic_rule(settings, squashed_mean_sample)
    return Stage(("q",), critics), Stage(("policy",), policy_rule)


def squashed_mean_sample(ops: Any, policy: dict[str, Any], noise: Any) -> tuple[Any, Any]:
    """An action between -1 and 1 from a Gaussian with a squashed mean, and its log density before clipping.

    The sample itself is clipped, not squashed, because a recorded action at a bound has no finite value before
    squashing.

    :param policy: ``mean`` and ``log_deviation`` [B, A]
    :param noise: [B, A], standard normal
    """
    mean = ops.tanh(policy["mean"])
    drawn = mean + ops.exp(policy["log_deviation"]) * noise
    return ops.clip(drawn, -1.0, 1.0), gaussian_log_probability(ops, drawn, mean, policy["log_deviation"])
