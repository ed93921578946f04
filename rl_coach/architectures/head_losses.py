"""Losses of heads, for agents that call ``train_and_sync_networks`` with their own targets."""

from __future__ import annotations

from typing import Any, Callable

from rl_coach.architectures.policies import log_probability
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, huber, weighted_mean
from rl_coach.base_parameters import NetworkParameters
from rl_coach.utils import CoachError


def value_loss(ops: Any, outputs: dict[str, Any], target: Any, action: Any, is_huber: bool) -> Any:
    """[B], the sum of the squared (or Huber) errors of each row's outputs.

    To leave an output out of the loss, give the output itself as its target."""
    # critics first: the ``q`` of a TD3VHead is only the smallest of its critics
    predicted = next(outputs[name] for name in ("critics", "q", "v", "values") if name in outputs)
    predicted = predicted if len(predicted.shape) > 1 else predicted[:, None]
    errors = ops.reshape(target, (ops.shape(predicted)[0], -1)) - predicted
    return ops.sum(huber(ops, errors) if is_huber else errors * errors, axis=-1)


def policy_loss(ops: Any, outputs: dict[str, Any], target: Any, action: Any, is_huber: bool) -> Any:
    """[B], -log pi(a|s) times the target; the target is the advantage [B] (Williams 1992)."""
    if "log_probabilities" in outputs:
        # ``TargetLearning.columns`` makes float32 of all actions; [B], or [B, K] for actions of K parts
        action = ops.cast(ops.reshape(action, (-1, *outputs["log_probabilities"].shape[1:-1])), "int32")
    return -ops.reshape(target, (-1,)) * log_probability(ops, outputs, action)


def feature_loss(ops: Any, outputs: dict[str, Any], target: Any, action: Any, is_huber: bool) -> Any:
    """[B], the mean squared (or Huber) error of each row's features."""
    errors = target - outputs["features"]
    return ops.mean(huber(ops, errors) if is_huber else errors * errors, axis=-1)


def classification_loss(ops: Any, outputs: dict[str, Any], target: Any, action: Any, is_huber: bool) -> Any:
    """[B], the cross entropy of the predicted classes. :param target: true labels [B] or true probabilities [B, A]"""
    log_probabilities = outputs["log_probabilities"]
    if len(target.shape) == 1:
        target = ops.one_hot(ops.cast(target, "int32"), log_probabilities.shape[-1], dtype="float32")
    return -ops.sum(target * log_probabilities, axis=-1)


def measurements_loss(ops: Any, outputs: dict[str, Any], target: Any, action: Any, is_huber: bool) -> Any:
    """[B], the sum of the squared errors of each row's measurements [B, A, offsets * M]. Targets that are NaN do not
    count, for example for actions not taken or for offsets after the end of the episode.
    """
    errors = target - outputs["measurements"]
    errors = ops.where(ops.isnan(target), ops.zeros_like(errors), errors)
    return ops.sum(errors * errors, axis=(1, 2))


HEAD_LOSSES: dict[str, Callable] = {
    "QHead": value_loss, "DuelingQHead": value_loss, "VHead": value_loss, "DDPGVHead": value_loss,
    "TD3VHead": value_loss, "RNDHead": feature_loss, "PolicyHead": policy_loss,
    "ClassificationHead": classification_loss, "RegressionHead": value_loss,
    "MeasurementsPredictionHead": measurements_loss,
}  # fmt: skip


def head_loss_rule(name: str, parameters: NetworkParameters) -> UpdateRule:
    """The update rule of network ``name`` for targets that the caller computes.

    The batch has the targets of head i in ``extra['target_<i>']``, and the actions of a policy head in
    ``extra['action_<i>']``.
    """
    heads = [head for head in parameters.heads_parameters for _ in range(head.num_output_head_copies)]
    for head in heads:
        if head.parameterized_class_name not in HEAD_LOSSES:
            raise CoachError(
                f"a {head.parameterized_class_name} cannot learn from targets only: write an update rule for the agent"
            )

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        outputs = networks[name].online(batch.states)
        losses = {}
        for i, (head, output) in enumerate(zip(heads, outputs)):
            rows = HEAD_LOSSES[head.parameterized_class_name](
                ops, output, batch.extra[f"target_{i}"], batch.extra.get(f"action_{i}"),
                parameters.replace_mse_with_huber_loss,
            )  # fmt: skip
            losses[f"head_{i}"] = head.loss_weight * weighted_mean(ops, rows, batch.weights)
        return Update({name: sum(losses.values())}, signals=losses)

    return rule
