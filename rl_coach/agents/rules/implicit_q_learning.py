"""The update of implicit Q-learning (Kostrikov, Nair and Levine 2022, "Offline Reinforcement Learning with Implicit
Q-Learning"). It only evaluates actions that are in the data.
"""

from __future__ import annotations

from typing import Any

from rl_coach.architectures.policies import gaussian_log_probability
from rl_coach.architectures.update import LearningBatch, NetworkView, Stage, Stages, Update, assert_rank, weighted_mean

LARGEST_WEIGHT = 100.0
"""Bound of exp(beta * advantage), as in the authors' code."""
SMALLEST_LOG_DEVIATION = -5.0
"""Bound of the policy's log deviation, as in the authors' code."""


def implicit_q_learning_stages(expectile: float, inverse_temperature: float) -> Stages:
    """V learns first; then the policy and the critics learn from the new V (algorithm 1, in the order of the authors'
    code).

    Actions are from -1 to 1. Critics have a target network.

    :param expectile: tau; with 0.5, V is the mean value of the data's actions; near 1, V is the value of the best
        action in the data
    :param inverse_temperature: beta; 0 imitates all actions of the data equally
    """

    def value_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        """The loss of V: expectile regression (equation 5)."""
        assert_rank(1, weights=batch.weights)
        assert_rank(2, actions=batch.actions)
        q = _value_of_actions(ops, networks, batch)
        v = networks["v"].online(batch.states)[0]["v"]
        errors = q - v
        weights = ops.abs(expectile - ops.cast(errors < 0, "float32"))
        loss = weighted_mean(ops, weights * ops.square(errors), batch.weights)
        return Update({"v": loss}, signals={"V Loss": loss, "V": weighted_mean(ops, v, batch.weights)})

    def policy_and_critics_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        """The losses of the critics (equation 6) and the policy (equation 7)."""
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        v = networks["v"].online(batch.states)[0]["v"]
        advantages = _value_of_actions(ops, networks, batch) - v
        importance = ops.stop_gradient(ops.minimum(ops.exp(inverse_temperature * advantages), LARGEST_WEIGHT))
        policy = networks["policy"].online(batch.states)[0]
        log_deviation = ops.maximum(policy["log_deviation"], SMALLEST_LOG_DEVIATION)
        # the mean is squashed, not the sample: the inverse of tanh is infinite for recorded actions at the bounds
        log_density = gaussian_log_probability(ops, batch.actions, ops.tanh(policy["mean"]), log_deviation)

        v_t = networks["v"].online(batch.next_states)[0]["v"]
        target = ops.stop_gradient(batch.rewards + batch.discounts * v_t)
        q = networks["q"].online({**batch.states, "action": batch.actions})[0]
        q_errors = ops.square(q["q1"] - target) + ops.square(q["q2"] - target)
        losses = {
            "policy": weighted_mean(ops, -importance * log_density, batch.weights),
            "q": weighted_mean(ops, q_errors, batch.weights),
        }
        signals = {
            "Policy Loss": losses["policy"],
            "Q Loss": losses["q"],
            "Q": weighted_mean(ops, q["q1"], batch.weights),
            "Advantage Weights": weighted_mean(ops, importance, batch.weights),
        }
        return Update(losses, errors=q["q1"] - target, signals=signals)

    return Stage(("v",), value_rule), Stage(("policy", "q"), policy_and_critics_rule)


def _value_of_actions(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Any:
    """The smaller value [B] that the two target critics give the recorded actions. No gradient flows through it."""
    q = networks["q"].target({**batch.states, "action": batch.actions})[0]
    return ops.stop_gradient(ops.minimum(q["q1"], q["q2"]))
