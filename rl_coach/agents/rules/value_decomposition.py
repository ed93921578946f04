"""Updates of VDN (Sunehag et al. 2018) and QMIX (Rashid et al. 2018): the value of a team from its players' values."""

from __future__ import annotations

from typing import Any, Mapping

from rl_coach.agents.rules.q_learning import SelectActions, allowed_values, td_losses
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    select,
    weighted_mean,
)

MIXER = "mixer"


def joint_value(ops: Any, q: Any, mixing: Mapping[str, Any] | None) -> Any:
    """Q_tot [B] of the players' values [B, N].

    :param mixing: None sums the values (VDN). Otherwise the outputs of a ``MixingHead``: Q_tot = elu(q |W1| + b1) |w2|
        + b2, which never falls when a player's value rises (QMIX, equation 5).
    """
    if mixing is None:
        return ops.sum(q, axis=-1)
    hidden = ops.elu(ops.sum(q[:, :, None] * ops.abs(mixing["weights_1"]), axis=1) + mixing["offsets_1"])
    return ops.sum(hidden * ops.abs(mixing["weights_2"]), axis=-1) + mixing["offset_2"]


def value_decomposition_rule(
    is_huber: bool,
    mask_name: str,
    select_actions: SelectActions,
    needs_online: bool,
    loss_weights: Mapping[str, float],
) -> UpdateRule:
    """The loss of VDN and QMIX: the mean of (y - Q_tot(s, a))^2 with the targets y = r + discount_t * Q_tot_target(s',
    a'). Each a'_i is the best allowed action of player i. The players' network ``main`` and, if there is one, the
    network ``mixer`` learn from this loss.

    ``actions`` is [B, N]. The players' values [B, N, A] are 0 for a player that is not present.

    :param is_huber: True: Huber loss. False: squared error
    :param mask_name: the observation [B, N, A] that says which actions are allowed
    :param select_actions: as in ``q_learning_rule``, with values [B, N, A] and actions [B, N]
    :param needs_online: True if ``select_actions`` uses the online network's values
    :param loss_weights: the weight of the loss of each network
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, actions=batch.actions)
        main, mixer = networks["main"], networks.get(MIXER)
        q_tm1 = main.online(batch.states)[0]["q"]
        q_t = main.target(batch.next_states)[0]["q"]
        q_t_online = main.online(batch.next_states)[0]["q"] if needs_online else q_t
        q_t, q_t_online = (allowed_values(ops, q, batch.next_states, mask_name) for q in (q_t, q_t_online))
        chosen_t = select(ops, q_t, select_actions(ops, q_t_online, q_t, batch))
        mixing_t = None if mixer is None else mixer.target(batch.next_states)[0]
        target_tm1 = batch.rewards + batch.discounts * joint_value(ops, chosen_t, mixing_t)
        mixing_tm1 = None if mixer is None else mixer.online(batch.states)[0]
        joint_tm1 = joint_value(ops, select(ops, q_tm1, batch.actions), mixing_tm1)
        td_errors = ops.stop_gradient(target_tm1) - joint_tm1
        loss = weighted_mean(ops, td_losses(ops, td_errors, is_huber), batch.weights)
        return Update(
            {name: weight * loss for name, weight in loss_weights.items()},
            errors=td_errors,
            signals={"Joint Q": weighted_mean(ops, joint_tm1, batch.weights)},
        )

    return rule
