"""Update of FastTD3 (Seo et al. 2025, "FastTD3: Simple, Fast, and Capable Reinforcement Learning for Humanoid
Control")."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.rules.deterministic_policy import policy_loss
from rl_coach.agents.rules.soft_actor_critic import categorical_update
from rl_coach.architectures.update import LearningBatch, NetworkView, Stage, Stages, Update, assert_rank
from rl_coach.spaces import BoxActionSpace


def fast_td3_stages(
    policy_noise: float, noise_clipping: float, action_space: BoxActionSpace, action_penalty: float, support: np.ndarray
) -> Stages:
    """The critics learn distributions of r + discount Z(s', a'), then the actor maximizes the smallest of their means
    (section 2.1, and the authors' code).

    a' is the action of the online actor plus clipped noise. The actor has no target network. Z is the distribution of
    the target critic with the smallest mean. ``extra['noise']`` is [B, A], standard normal.

    :param policy_noise: standard deviation of the noise on a'. The noise is clipped to plus and minus
        ``noise_clipping``
    :param action_penalty: weight, in the policy's loss, of the squared input of the policy's tanh
    :param support: [N], the returns of the distributions, evenly spaced
    """
    bounds = [np.asarray(bound, np.float32) for bound in (action_space.low, action_space.high)]

    def critic_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, actions=batch.actions, noise=batch.extra.get("noise"))
        low, high = (ops.convert_to_tensor(bound) for bound in bounds)
        noise = ops.clip(policy_noise * batch.extra["noise"], -noise_clipping, noise_clipping)
        actions = ops.stop_gradient(networks["actor"].online(batch.next_states)[0]["action"])
        next_actions = ops.minimum(ops.maximum(actions + noise, low), high)
        return categorical_update(ops, networks, "critic", batch, next_actions, 0.0, support)

    def actor_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        policy = networks["actor"].online(batch.states)[0]
        critics = networks["critic"].online({**batch.states, "action": policy["action"]})[0]["quantiles"][..., 0]
        return Update({"actor": policy_loss(ops, batch, policy, ops.min(critics, axis=-1), action_penalty)})

    return Stage(("critic",), critic_rule), Stage(("actor",), actor_rule)
