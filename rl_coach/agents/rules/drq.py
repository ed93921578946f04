"""Update of DrQ-v2: DDPG from shifted images, with an encoder that only the critics train (Yarats et al. 2021)."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from rl_coach.agents.rules.deterministic_policy import clipped_target, critics_update
from rl_coach.agents.rules.q_learning import td_losses
from rl_coach.architectures.update import LearningBatch, NetworkView, Stage, Stages, Update, assert_rank, weighted_mean
from rl_coach.spaces import BoxActionSpace


def shifted(ops: Any, images: Any, shifts: Any) -> Any:
    """[B, height, width, channels], each image moved by its shift. New pixels repeat the border.

    The paper adds a border of p pixels and crops at random to the old size. This equals a shift of -p to p.

    :param images: [B, height, width, channels]
    :param shifts: [B, 2] integers, the shift of the crop, in pixels down and to the right
    """
    shifts = ops.cast(shifts, "int32")
    for axis in (1, 2):
        size = images.shape[axis]
        places = ops.clip(ops.arange(size, dtype="int32")[None] + shifts[:, axis - 1, None], 0, size - 1)  # [B, size]
        shape = [-1, 1, 1, 1]
        shape[axis] = size
        images = ops.take_along_axis(images, ops.reshape(places, shape), axis=axis)
    return images


def drq_stages(
    image_names: Sequence[str], noise_clipping: float, action_space: BoxActionSpace, is_share_of_range: bool = True
) -> Stages:
    """The critics learn r + discount min Q'(s', mu(s') + noise) (equations 1 and 2). Then the actor maximizes min Q(s,
    mu(s) + noise) (equation 3) from the same shifted images, and the critic's encoder is copied to the actor.

    ``extra['shifts']`` and ``extra['next_shifts']`` are [B, 2]; ``extra['noise']`` and ``extra['next_noise']`` [B, A],
    standard normal; ``scalars['noise']`` is the standard deviation of the exploration noise.

    :param image_names: the observations that are images
    :param noise_clipping: the noise on the policy's actions is clipped to plus and minus this number, in units of half
        of the action range
    :param action_space: the space of the actions
    :param is_share_of_range: True: ``scalars['noise']`` is a fraction of the action range. False: it is absolute
    """
    bounds = [np.asarray(bound, np.float32) for bound in (action_space.low, action_space.high)]

    def with_shifts(ops: Any, states: dict[str, Any], shifts: Any) -> dict[str, Any]:
        return {**states, **{name: shifted(ops, states[name], shifts) for name in image_names}}

    def noisy_actions(ops: Any, networks: dict[str, NetworkView], states: Any, batch: LearningBatch, noise: Any) -> Any:
        """The policy's actions plus noise, clipped to their bounds, [B, A]. The gradient ignores the clipping."""
        low, high = (ops.convert_to_tensor(bound) for bound in bounds)
        limit = noise_clipping * (high - low) / 2.0
        unit = high - low if is_share_of_range else ops.ones_like(low)
        noise = ops.minimum(ops.maximum(batch.scalars["noise"] * unit * noise, -limit), limit)
        actions = networks["actor"].online(states)[0]["action"] + noise
        return actions + ops.stop_gradient(ops.minimum(ops.maximum(actions, low), high) - actions)

    def critic_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, actions=batch.actions, shifts=batch.extra.get("shifts"))
        s_tm1 = with_shifts(ops, batch.states, batch.extra["shifts"])
        s_t = with_shifts(ops, batch.next_states, batch.extra["next_shifts"])
        a_t = noisy_actions(ops, networks, s_t, batch, batch.extra["next_noise"])
        q_t = networks["critic"].target({**s_t, "action": a_t})[0]["q"]
        target_tm1 = clipped_target(ops, batch, q_t, None)
        critics = networks["critic"].online({**s_tm1, "action": batch.actions})[0]["critics"]
        losses = td_losses(ops, target_tm1[:, None] - critics, is_huber=False)  # [B, critics]
        return critics_update(ops, batch, target_tm1, critics[:, 0], ops.sum(losses, axis=-1))

    def actor_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        states = with_shifts(ops, batch.states, batch.extra["shifts"])
        actions = noisy_actions(ops, networks, states, batch, batch.extra["noise"])
        q = networks["critic"].online({**states, "action": actions})[0]["q"]
        return Update({"actor": -weighted_mean(ops, q, batch.weights)})

    actor = Stage(("actor",), actor_rule, shared_convolutions=("critic", "actor"))
    return Stage(("critic",), critic_rule), actor
