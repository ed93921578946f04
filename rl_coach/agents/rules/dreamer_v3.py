"""The update of DreamerV3 (Hafner et al. 2023, "Mastering diverse domains through world models", version 2), as pure
functions.

Arrays of steps have the step first: [T, N]. Numbers of equations are the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rl_coach.agents.rules.advantages import lambda_returns, percentiles
from rl_coach.architectures.network_function import NetworkParts
from rl_coach.architectures.policies import drawn_action, entropy, log_probability
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    binary_cross_entropy,
    cross_entropy,
    weighted_mean,
)
from rl_coach.architectures.world_model import RETURN_BINS, VARIABLES, ModelSize, sampled, symlog
from rl_coach.core_types import LAST_ACTION
from rl_coach.spaces import ActionSpace, DiscreteActionSpace

DECODER, PRIOR, OUTCOME, POLICY, RETURN = range(5)
"""The heads of the network, in order."""


def _bins() -> np.ndarray:
    # symmetric to the last bit, so that equal probabilities have a mean of exactly 0
    half = -np.expm1(np.linspace(20.0, 0.0, (RETURN_BINS + 1) // 2))
    return np.concatenate([half, -half[-2::-1]]).astype(np.float32)


BINS = _bins()
"""[255], the numbers between which rewards and returns are encoded: evenly from -20 to 20 after ``symlog``."""


def two_hot(ops: Any, values: Any, bins: np.ndarray = BINS) -> Any:
    """Each value as the weights of the two bins next to it, [N, K] (equation 10). A value outside the bins gives the
    end bin the weight 1.

    :param values: [N]
    """
    last = len(bins) - 1
    bins, values = ops.convert_to_tensor(bins), values[:, None]
    below = ops.sum(ops.cast(bins[None] <= values, "int32"), axis=-1) - 1
    below = ops.clip(below, 0, last - 1)
    low, high = ops.take(bins, below, axis=0), ops.take(bins, below + 1, axis=0)
    share = ops.clip((values[:, 0] - low) / (high - low), 0.0, 1.0)[:, None]
    lower, upper = (ops.one_hot(index, last + 1, dtype="float32") for index in (below, below + 1))
    return lower * (1.0 - share) + upper * share


def decoded(ops: Any, logits: Any, bins: np.ndarray = BINS) -> Any:
    """The mean [N] of symmetric bins, weighted with the softmax of the logits [N, K]. Opposite bins have probabilities
    p and q. The outer bins are 5e8, so a rounding error of p - q would hide the mean. Therefore p - q is computed from
    the logits.
    """
    middle, shares = len(bins) // 2, ops.softmax(logits)
    (low, high), (less, more) = ((one[:, :middle], ops.flip(one[:, middle + 1 :], axis=-1)) for one in (logits, shares))
    differences = (less + more) * ops.tanh(0.5 * (low - high))
    return ops.sum(differences * ops.convert_to_tensor(bins[:middle]), axis=-1)


def state_divergences(ops: Any, posterior: Any, prior: Any, free_nats: float = 1.0) -> tuple[Any, Any]:
    """KL(posterior || prior) twice, [N] each. The first has a constant posterior and trains the prior. The second has a
    constant prior and trains the posterior. Below ``free_nats``, there is no gradient (equation 3).

    :param posterior: [N, V, C] probabilities, as ``prior``
    """

    def divergence(p: Any, q: Any) -> Any:
        return ops.maximum(ops.sum(p * (ops.log(p) - ops.log(q)), axis=(1, 2)), free_nats)

    return divergence(ops.stop_gradient(posterior), prior), divergence(posterior, ops.stop_gradient(prior))


@dataclass(frozen=True)
class DreamerSettings:
    """Settings of the rule.

    :param size: the size of the world model
    :param length: L, the steps of each sequence
    :param horizon: number of imagined steps
    :param return_lambda: lambda of all returns
    :param entropy_weight: the weight of the policy's entropy
    :param action: the action space: discrete, or continuous with bounds
    :param images: the names of the observations that are images with pixels from 0 to 255
    """

    size: ModelSize
    length: int
    horizon: int
    return_lambda: float
    entropy_weight: float
    action: ActionSpace
    images: tuple[str, ...] = ()


def dreamer_rule(settings: DreamerSettings) -> UpdateRule:
    """The loss of world model, actor and critic, which are one network ``main``. Network ``returns`` keeps the
    percentiles of the returns.

    The rows of the batch are sequences of L + 1 states. Row t + 1 holds the state after the transition of row t. If row
    t is the last state of an episode, it has the weight 0, and row t + 1 begins the next episode with the row's stored
    state.

    The values ``deter`` and ``stoch`` of the update are the states of the world model at the first L rows. ``extra``
    has random numbers: ``posterior`` [B, 32] and ``imagined`` [B, horizon * 33] from 0 to 1. For continuous actions
    with A elements, ``imagined`` is [B, horizon * (32 + A)], and the last A of each step are standard normal.
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        losses = _Losses(ops, networks, batch, settings)
        embeddings = losses.model.embed(batch.states)
        features = losses.observe(embeddings)
        model_loss = losses.of_model(features)
        imagined = losses.imagine(ops.stop_gradient(features), ops.zeros_like(embeddings))
        behaviour_loss, returns = losses.of_behaviour(*imagined)
        loss = model_loss + behaviour_loss + 0.3 * losses.of_replay(features, returns)
        return Update({"main": loss}, signals=losses.signals, values=losses.states_after(features))

    return rule


class _Losses:
    """The losses of a batch. Columns by step are [T, N] for N sequences of T = L + 1 states.

    :ivar signals: scalars to log
    """

    def __init__(self, ops: Any, networks: dict[str, NetworkView], batch: LearningBatch, settings: DreamerSettings):
        self._ops, self._batch, self._settings = ops, batch, settings
        main, self._percentiles = networks["main"], networks["returns"]
        self.model, self._constant, self._slow = main.parts, main.constant_parts, main.target_parts
        self.signals: dict[str, Any] = {}
        self._is_transition = self._by_step(ops.cast(batch.weights > 0, "float32"))[:-1]
        self._rewards, self._discounts = (self._by_step(one)[:-1] for one in (batch.rewards, batch.discounts))

    def _by_step(self, column: Any) -> Any:
        """Reshape [N * T, ...] to [T, N, ...]."""
        sequences = self._ops.reshape(column, (-1, self._settings.length + 1, *column.shape[1:]))
        return self._ops.swapaxes(sequences, 0, 1)

    def _flat(self, column: Any) -> Any:
        """Reshape [T, N, ...] to [T * N, ...]."""
        return self._ops.reshape(column, (-1, *column.shape[2:]))

    def observe(self, embeddings: Any) -> Any:
        """[T * N, F], the features of the posterior states. :param embeddings: [N * T, E] of the observations"""
        ops, batch = self._ops, self._batch
        deter, stoch, before = (self._by_step(batch.states[name]) for name in ("deter", "stoch", LAST_ACTION))
        stored = ops.concatenate([deter, stoch, ops.zeros_like(stoch)], axis=-1)
        # a sequence begins with its first row, and an episode begins after a row that is no transition
        begins = ops.concatenate([ops.ones_like(before[:1, :, :1]), 1.0 - self._is_transition[:, :, None]], axis=0) > 0
        actions = self._by_step(self._encoded(batch.actions))
        actions = ops.where(begins, before, ops.concatenate([before[:1], actions[:-1]], axis=0))

        def step(features: Any, given: tuple[Any, ...]) -> tuple[Any, Any]:
            embedding, begin, start, action, uniform = given
            recurrent = self._recurrent(ops.where(begin, start, features), action, uniform)
            features = self.model.advance(embedding, recurrent)[0]
            return features, features

        given = self._by_step(embeddings), begins, stored, actions, self._by_step(batch.extra["posterior"])
        return self._flat(ops.scan(step, stored[0], given)[1])

    def states_after(self, features: Any) -> dict[str, Any]:
        """The posterior states of the first L rows, [N, L, size] by name. The memory stores them with the next rows."""
        size = self._settings.size
        by_step = self._ops.reshape(features, (self._settings.length + 1, -1, features.shape[-1]))
        states = self._ops.swapaxes(by_step[:-1], 0, 1)
        return {"deter": states[..., : size.deter], "stoch": states[..., size.deter : size.latent]}

    def _encoded(self, actions: Any) -> Any:
        """The actions as numbers [N, A], encoded as by ``ActionSpace.encoded``."""
        ops, space = self._ops, self._settings.action
        if isinstance(space, DiscreteActionSpace):
            return ops.one_hot(actions, space.num_actions, dtype="float32")
        low, high = (ops.cast(bound, "float32") for bound in (space.low, space.high))
        return (2.0 * ops.cast(actions, "float32") - low - high) / (high - low)

    def _recurrent(self, features: Any, action: Any, uniform: Any) -> dict[str, Any]:
        size = self._settings.size
        deter, stoch = features[:, : size.deter], features[:, size.deter : size.latent]
        return {"deter": deter, "stoch": stoch, LAST_ACTION: action, "noise": uniform}

    def of_model(self, features: Any) -> Any:
        """The prediction loss plus the dynamics loss plus 0.1 times the representation loss (equation 2)."""
        ops, size, reconstruction = self._ops, self._settings.size, 0.0
        is_transition = self._flat(self._is_transition)
        for name, found in self.model.head(DECODER, features).items():
            observation = ops.cast(self._flat(self._by_step(self._batch.states[name])), "float32")
            target = observation / 255.0 if name in self._settings.images else symlog(ops, observation)
            squares = ops.reshape(ops.square(found - target), (features.shape[0], -1))
            reconstruction = reconstruction + ops.mean(ops.sum(squares, axis=-1))
        # a reward and its discount belong to the state after the transition
        outcome = self.model.head(OUTCOME, features[features.shape[0] - is_transition.shape[0] :])
        reward = cross_entropy(ops, outcome["reward_logits"], two_hot(ops, self._flat(self._rewards)))
        continues = binary_cross_entropy(ops, outcome["continue_logits"], self._flat(self._discounts))
        reward, continues = (weighted_mean(ops, one, is_transition) for one in (reward, continues))
        posterior = ops.reshape(features[:, size.latent :], (-1, VARIABLES, size.classes))
        divergences = state_divergences(ops, posterior, self.model.head(PRIOR, features)["probabilities_of_state"])
        dynamics, representation = map(ops.mean, divergences)
        self.signals |= {"Reconstruction Loss": reconstruction, "Reward Loss": reward}
        self.signals |= {"Continue Loss": continues, "State KL": dynamics}
        return reconstruction + reward + continues + dynamics + 0.1 * representation

    def imagine(self, features: Any, nothing: Any) -> tuple[Any, ...]:
        """Imagine H steps from each state, with actions of the policy. Return the features after the last step [N, F],
        and by step [H, N, ...]: the critic's logits, the log probability of the action, the policy's entropy, the
        values of critic and slow critic, the reward and the discount. Only the first three have gradients.

        :param features: [N, F], the features of the states to begin with
        :param nothing: [N, E], any embedding; it has no effect
        """
        ops, size, model = self._ops, self._settings.size, self._constant

        def step(state: Any, random: Any) -> tuple[Any, tuple[Any, ...]]:
            features = as_features(ops, size, state)
            # here and not for all steps at once: the arrays of one step stay in the processor's cache
            policy, logits = self.model.head(POLICY, features), self.model.head(RETURN, features)["return_logits"]
            slow = decoded(ops, self._slow.head(RETURN, features)["return_logits"])
            action = ops.stop_gradient(drawn_action(ops, policy, random[:, VARIABLES:]))
            learned = logits, log_probability(ops, policy, action), entropy(ops, policy)
            given = decoded(ops, ops.stop_gradient(logits)), slow, *self._outcome(features)
            recurrent = self._recurrent(state, self._encoded(action), random[:, :VARIABLES])
            after = imagined_step(ops, model, size, recurrent, nothing)
            return ops.stop_gradient(after), (*learned, *map(ops.stop_gradient, given))

        random = ops.reshape(self._batch.extra["imagined"], (features.shape[0], self._settings.horizon, -1))
        last, found = ops.scan(step, features[:, : size.latent], ops.swapaxes(random, 0, 1))
        return as_features(ops, size, last), *found

    def _outcome(self, features: Any) -> tuple[Any, Any]:
        outcome = self._constant.head(OUTCOME, features)
        return decoded(self._ops, outcome["reward_logits"]), self._ops.sigmoid(outcome["continue_logits"])

    def of_behaviour(self, last: Any, *by_step: Any) -> tuple[Any, Any]:
        """The losses of actor and critic in imagination (equations 6 and 8), and the returns [T, N] of the states of
        the batch. The parameters are the results of ``imagine``.
        """
        logits, log_probabilities, entropies, values, slow_values, *outcomes = by_step
        ops, settings = self._ops, self._settings
        ends = *self._outcome(last), decoded(ops, self._constant.head(RETURN, last)["return_logits"])
        pairs = zip((*outcomes, values), ends)
        rewards, discounts, next_values = (ops.concatenate([one[1:], end[None]], axis=0) for one, end in pairs)
        mixing = settings.return_lambda * ops.ones_like(values)
        returns = ops.stop_gradient(lambda_returns(ops, rewards, discounts, next_values, mixing))
        # the weight of a step is the probability that the episode lasts until this step
        weights = self._flat(ops.cumprod(outcomes[1], axis=0))
        spread = self._spread(self._flat(returns))
        advantages = (returns - values) / ops.maximum(spread, 1.0)
        gain = self._flat(log_probabilities * advantages + settings.entropy_weight * entropies)
        policy_loss = ops.mean(-gain * weights)
        columns = map(self._flat, (logits, returns, slow_values))
        value_loss = ops.mean(weights * critic_loss(ops, *columns))
        self.signals |= {"Policy Loss": policy_loss, "Value Loss": value_loss, "Return Scale": spread}
        self.signals |= {"Policy Entropy": ops.mean(entropies), "Imagined Return": ops.mean(returns)}
        return policy_loss + value_loss, ops.reshape(returns[0], (settings.length + 1, -1))

    def _spread(self, returns: Any) -> Any:
        """The distance between the running 5th and 95th percentiles of the returns [N] (equation 7)."""
        before = self._percentiles.online({})[0]
        found = dict(zip(("low", "high"), percentiles(self._ops, returns)))
        after = {name: 0.99 * before[name] + 0.01 * new for name, new in found.items()}
        self._percentiles.keep(**after)
        return after["high"] - after["low"]

    def of_replay(self, features: Any, imagined: Any) -> Any:
        """The critic's loss on the steps of the batch. The lambda-returns of these steps use the rewards of the batch,
        and imagined returns after the last step.

        :param imagined: [T, N], the imagined returns
        """
        ops, is_transition = self._ops, self._is_transition
        mixing = self._settings.return_lambda * ops.concatenate([is_transition[1:], 0 * is_transition[:1]], axis=0)
        returns = self._flat(lambda_returns(ops, self._rewards, self._discounts, imagined[1:], mixing))
        of_steps = features[: returns.shape[0]]
        logits = self.model.head(RETURN, of_steps)["return_logits"]
        slow = decoded(ops, self._slow.head(RETURN, ops.stop_gradient(of_steps))["return_logits"])
        return weighted_mean(ops, critic_loss(ops, logits, returns, slow), self._flat(is_transition))


def as_features(ops: Any, size: ModelSize, states: Any) -> Any:
    """[N, F], features with zeros for the probabilities, which the heads do not read. :param states: [N, S]"""
    return ops.concatenate([states, 0.0 * states[:, size.deter :]], axis=-1)


def imagined_step(ops: Any, model: NetworkParts, size: ModelSize, recurrent: dict[str, Any], nothing: Any) -> Any:
    """[N, deter + stoch], the state after an action, without an observation.

    :param recurrent: [N, ...], the state before the action, the action and uniform random numbers; see
        ``StateSpaceMiddleware``
    :param nothing: [N, E], any embedding: it only changes the posterior, which is not used
    """
    features = model.advance(nothing, recurrent)[0]
    prior = model.head(PRIOR, features)["probabilities_of_state"]
    stoch = ops.reshape(sampled(ops, prior, recurrent["noise"]), (-1, size.stoch))
    return ops.concatenate([features[:, : size.deter], stoch], axis=-1)


def critic_loss(ops: Any, logits: Any, returns: Any, slow_values: Any) -> Any:
    """The critic's cross entropy with the returns, plus its cross entropy with the slow critic's values, [N]."""
    targets = two_hot(ops, returns) + two_hot(ops, ops.stop_gradient(slow_values))
    return cross_entropy(ops, logits, targets)
