"""Updates of random network distillation (Burda et al. 2018, arXiv 1810.12894)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank, weighted_mean

PREDICTOR, CONSTANT = "predictor", "constant"
NOVEL = "novel/"
INTRINSIC_REWARD = "Intrinsic Reward"


def prediction_errors(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Any:
    """[B], the mean of (f(s') - g(s'))^2 over the features of the networks ``predictor`` f and ``constant`` g. The
    normalized observations s' are ``extra['novel/NAME']`` [B, ...].
    """
    states = {name.removeprefix(NOVEL): column for name, column in batch.extra.items() if name.startswith(NOVEL)}
    predicted, known = (networks[name].online(states)[0]["features"] for name in (PREDICTOR, CONSTANT))
    return ops.mean(ops.square(predicted - ops.stop_gradient(known)), axis=-1)


def curious_rule(rule: UpdateRule, coefficient: float) -> UpdateRule:
    """The update rule with the rewards r + coefficient * e / sigma. Here e is the prediction error before the update,
    and 1 / sigma is ``extra['novelty_scale']`` [B].

    :param rule: learns from the rewards of single steps
    """

    def curious(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, novelty_scale=batch.extra.get("novelty_scale"))
        errors = ops.stop_gradient(prediction_errors(ops, networks, batch))
        intrinsic = errors * batch.extra["novelty_scale"]
        update = rule(ops, networks, replace(batch, rewards=batch.rewards + coefficient * intrinsic))
        is_row = ops.cast(batch.weights > 0, "float32")
        return replace(update, signals={**update.signals, INTRINSIC_REWARD: weighted_mean(ops, intrinsic, is_row)})

    return curious


def predictor_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
    """The predictor's loss: the mean prediction error over the rows with ``extra['teaches_predictor']`` [B] above 0."""
    assert_rank(1, teaches_predictor=batch.extra.get("teaches_predictor"))
    taught = ops.cast(batch.weights > 0, "float32") * batch.extra["teaches_predictor"]
    loss = weighted_mean(ops, prediction_errors(ops, networks, batch), taught)
    return Update({PREDICTOR: loss}, signals={"Predictor Loss": loss})
