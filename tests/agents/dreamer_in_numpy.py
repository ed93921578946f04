"""DreamerV3 in NumPy: network and loss in float64 by the equations of the paper, with loops over time, and operations
with the names of ``keras.ops``."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.architectures.world_model import ModelSize


class NumpyOps:
    """The operations of the rule, in float64."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    stop_gradient, convert_to_tensor = staticmethod(lambda x: x), staticmethod(np.asarray)
    cast = staticmethod(lambda x, dtype: np.asarray(x).astype(np.float64 if dtype == "float32" else dtype))
    one_hot = staticmethod(lambda x, count, dtype: np.eye(count)[x])
    softmax, sigmoid = staticmethod(lambda x: softmax(x)), staticmethod(lambda x: sigmoid(x))
    log_softmax, softplus = staticmethod(lambda x: np.log(softmax(x))), staticmethod(lambda x: np.logaddexp(0, x))

    @staticmethod
    def scan(step: Any, state: Any, xs: Any, reverse: bool = False) -> Any:
        columns, results = xs if isinstance(xs, tuple) else (xs,), []
        for row in reversed([*zip(*columns)]) if reverse else zip(*columns):
            state, result = step(state, row if isinstance(xs, tuple) else row[0])
            results.append(result)
        results = results[::-1] if reverse else results
        return state, tuple(map(np.stack, zip(*results))) if isinstance(result, tuple) else np.stack(results)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def symlog(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.log(np.abs(x) + 1)


def symexp(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * (np.exp(np.abs(x)) - 1)


BINS = symexp(np.linspace(-20, 20, 255))


def two_hot(values: np.ndarray) -> np.ndarray:
    found = np.zeros((len(values), 255))
    for row, value in enumerate(np.clip(values, BINS[0], BINS[-1])):
        above = min(max(int(np.searchsorted(BINS, value, side="right")), 1), 254)
        share = (value - BINS[above - 1]) / (BINS[above] - BINS[above - 1])
        found[row, above - 1], found[row, above] = 1 - share, share
    return found


def cross_entropy(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return -(targets * np.log(softmax(logits))).sum(-1)


def decoded(logits: np.ndarray) -> np.ndarray:
    return (softmax(logits) * BINS).sum(-1)


def lambda_return(rewards: Any, discounts: Any, values: Any, mixing: Any, t: int) -> float:
    """The definition with a sum over n, not the recursion: each n-step return by the chance to stop there."""
    total, still, passed, collected = 0.0, 1.0, 1.0, 0.0
    for n in range(t, len(rewards)):
        collected += passed * rewards[n]
        passed *= discounts[n]
        stops = 1.0 if n == len(rewards) - 1 else 1 - mixing[n]
        total += still * stops * (collected + passed * values[n])
        still *= 1 - stops
    return total


class Model:
    """The network in float64, which takes its weights in the order of its layers.

    :param size: of the model
    :param weights: all trained weights, in order
    :param observations: the shape of each observation by name; images [height, width, channels] and vectors
    :param actions: the number of choices, or the bounds of continuous actions, two arrays [D]
    """

    def __init__(self, size: ModelSize, weights: list[np.ndarray], observations: dict[str, tuple], actions: Any):
        self.size, self.observations, self.actions = size, observations, actions
        self.is_discrete = isinstance(actions, int)
        left = [np.asarray(weight, np.float64) for weight in weights]
        # a hidden layer has a kernel, a bias and a scale; an output layer or a layer of blocks no scale
        counts = {name: 12 if len(observations[name]) == 3 else 9 for name in sorted(observations)}
        images = sum(len(shape) == 3 for shape in observations.values())
        vectors = len(observations) - images
        decoder = 9 * (vectors > 0) + 2 * vectors + (2 + 3 + 2 + 4 * 3) * images
        counts |= {"middleware": 9 + 3 + 2 + 3 + 2, "decoder": decoder, "prior": 8, "outcome": 10}
        self.own: dict[str, list[np.ndarray]] = {}
        for name, count in {**counts, "policy": 11 if self.is_discrete else 13, "value": 11}.items():
            self.own[name], left = left[:count], left[count:]
        assert not left

    def part(self, name: str) -> Any:
        return iter(self.own[name])

    @staticmethod
    def normal(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        x = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-4) * scale
        return x * sigmoid(x)

    def hidden(self, x: np.ndarray, weights: Any, count: int = 1) -> np.ndarray:
        for _ in range(count):
            x = self.normal(x @ next(weights) + next(weights), next(weights))
        return x

    def output(self, x: np.ndarray, weights: Any) -> np.ndarray:
        return x @ next(weights) + next(weights)

    @staticmethod
    def block_matrix(kernel: np.ndarray) -> np.ndarray:
        """The block-diagonal matrix of kernels [blocks, inputs, outputs]."""
        blocks, inputs, outputs = kernel.shape
        full = np.zeros((blocks * inputs, blocks * outputs))
        for i in range(blocks):
            full[i * inputs : (i + 1) * inputs, i * outputs : (i + 1) * outputs] = kernel[i]
        return full

    def probabilities(self, logits: np.ndarray) -> np.ndarray:
        return 0.99 * softmax(logits.reshape(-1, 32, self.size.classes)) + 0.01 / self.size.classes

    def drawn(self, probabilities: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        index = (uniform[..., None] >= probabilities.cumsum(-1)[..., :-1]).sum(-1)
        return np.eye(probabilities.shape[-1])[index].reshape(len(index), -1)

    @staticmethod
    def convolved(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
        """[N, height, width, filters], with two rows and columns of zeros around the images."""
        padded = np.pad(x, [(0, 0), (2, 2), (2, 2), (0, 0)])
        height, width = x.shape[1:3]
        return bias + sum(padded[:, i : i + height, j : j + width] @ kernel[i, j] for i in range(5) for j in range(5))

    def encode(self, observations: dict[str, np.ndarray]) -> np.ndarray:
        """:param observations: [N, ...] by name"""
        embeddings = []
        for name in sorted(self.observations):
            x, weights = observations[name], self.part(name)
            if x.ndim == 2:
                embeddings.append(self.hidden(symlog(x), weights, 3))
                continue
            x = x / 255 - 0.5
            for _ in range(4):
                x = self.convolved(x, next(weights), next(weights))
                x = np.max([x[:, i::2, j::2] for i in range(2) for j in range(2)], axis=0)
                x = self.normal(x, next(weights))
            embeddings.append(x.reshape(len(x), -1))
        return np.concatenate(embeddings, -1)

    def decode(self, latent: np.ndarray) -> dict[str, np.ndarray]:
        """Observations in the form that they are compared in, by name."""
        weights, found, hidden = self.part("decoder"), {}, None
        deter, stoch = latent[:, : self.size.deter], latent[:, self.size.deter :]
        for name, shape in self.observations.items():
            if len(shape) == 1:
                hidden = self.hidden(latent, weights, 3) if hidden is None else hidden
                found[name] = self.output(hidden, weights)
                continue
            height, width, filters = shape[0] // 16, shape[1] // 16, 4 * self.size.depth
            blocks = deter @ self.block_matrix(next(weights)) + next(weights).ravel()
            blocks = blocks.reshape(len(deter), 8, height, width, filters // 8)
            other = self.output(self.hidden(stoch, weights), weights)
            x = np.concatenate([blocks[:, i] for i in range(8)], -1) + other.reshape(-1, height, width, filters)
            for _ in range(4):
                x = np.kron(self.normal(x, next(weights)), np.ones((1, 2, 2, 1)))
                x = self.convolved(x, next(weights), next(weights))
            found[name] = sigmoid(x)
        return found

    def next_deter(self, deter: np.ndarray, stoch: np.ndarray, action: np.ndarray, weights: Any) -> np.ndarray:
        inputs = [self.hidden(one, weights) for one in (deter, stoch, action / np.maximum(1, np.abs(action)))]
        parts = deter.reshape(len(deter), 8, -1)
        x = np.concatenate([np.concatenate([parts[:, i], *inputs], -1) for i in range(8)], -1)
        x = x @ self.block_matrix(next(weights)) + next(weights).ravel()
        x = self.normal(x, next(weights))
        x = x @ self.block_matrix(next(weights)) + next(weights).ravel()
        width = deter.shape[1] // 8
        gates = x.reshape(len(x), 8, 3, width)
        reset, candidate, update = (gates[:, :, i].reshape(len(x), -1) for i in range(3))
        update = sigmoid(update - 1)
        return update * np.tanh(sigmoid(reset) * candidate) + (1 - update) * deter

    def posterior(self, deter: np.ndarray, stoch: np.ndarray, action: np.ndarray, embedding: np.ndarray) -> Any:
        weights = self.part("middleware")
        deter = self.next_deter(deter, stoch, action, weights)
        hidden = self.hidden(np.concatenate([deter, embedding], -1), weights)
        return deter, self.probabilities(self.output(hidden, weights))

    def prior(self, deter: np.ndarray) -> np.ndarray:
        weights = self.part("prior")
        return self.probabilities(self.output(self.hidden(deter, weights, 2), weights))

    def head(self, name: str, latent: np.ndarray) -> np.ndarray:
        weights = self.part(name)
        return self.output(self.hidden(latent, weights, 3), weights)

    def outcome(self, latent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = self.part("outcome")
        rewards = self.output(self.hidden(latent, weights), weights)
        return rewards, self.output(self.hidden(latent, weights), weights)[:, 0]

    def encoded(self, actions: np.ndarray) -> np.ndarray:
        if self.is_discrete:
            return np.eye(self.actions)[actions.astype(int)]
        low, high = self.actions
        return (actions - low) / (high - low) * 2 - 1

    def policy(self, latent: np.ndarray) -> tuple[np.ndarray, ...]:
        """The probabilities of the choices; or mean and standard deviation of a normal distribution."""
        weights = self.part("policy")
        hidden = self.hidden(latent, weights, 3)
        outputs = self.output(hidden, weights)
        if self.is_discrete:
            return (0.99 * softmax(outputs) + 0.01 / self.actions,)
        low, high = self.actions
        mean = low + (np.tanh(outputs) + 1) / 2 * (high - low)
        return mean, (0.1 + 0.9 * sigmoid(self.output(hidden, weights) + 2)) * (high - low) / 2

    def drawn_action(self, latent: np.ndarray, random: np.ndarray) -> np.ndarray:
        policy = self.policy(latent)
        if self.is_discrete:
            return (random >= policy[0].cumsum(-1)[:, :-1]).sum(-1)
        return policy[0] + policy[1] * random

    def log_probability_and_entropy(self, latent: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        policy = self.policy(latent)
        if self.is_discrete:
            return np.log(policy[0][np.arange(len(action)), action]), -(policy[0] * np.log(policy[0])).sum(-1)
        mean, deviation = policy
        density = np.exp(-(((action - mean) / deviation) ** 2) / 2) / np.sqrt(2 * np.pi) / deviation
        return np.log(density).sum(-1), (0.5 + np.log(np.sqrt(2 * np.pi) * deviation)).sum(-1)


def expected_loss(
    online: Model, slow: Model, columns: dict[str, np.ndarray], length: int, horizon: int, before_update: Any
) -> Any:
    """The loss by the paper's equations with loops over time, the percentiles after the update, and the posterior
    states [N, L, size] of the first L rows.

    :param before_update: the percentiles before it
    """
    rows = length + 1
    by_time = {
        name: np.swapaxes(c.astype(np.float64).reshape(-1, rows, *c.shape[1:]), 0, 1) for name, c in columns.items()
    }
    sequences = by_time["weights"].shape[1]
    actions = online.encoded(by_time["actions"])
    seen = {name: by_time[f"states/{name}"] for name in online.observations}
    embeddings = [online.encode({name: column[t] for name, column in seen.items()}) for t in range(rows)]
    deters, stochs, posteriors, parts = [], [], [], ("deter", "stoch", "last_action")
    for t in range(rows):
        stored = [by_time[f"states/{name}"][t] for name in parts]
        if t == 0:
            deter, stoch, before = stored
        else:  # after the last state of an episode, the next episode begins
            is_new = by_time["weights"][t - 1, :, None] == 0
            pairs = zip(stored, (deter, stoch, actions[t - 1]))
            deter, stoch, before = (np.where(is_new, first, carried) for first, carried in pairs)
        deter, posterior = online.posterior(deter, stoch, before, embeddings[t])
        stoch = online.drawn(posterior, by_time["extra/posterior"][t])
        deters.append(deter), stochs.append(stoch), posteriors.append(posterior)
    is_transition = by_time["weights"][:-1] > 0
    latents = [np.concatenate(parts, -1) for parts in zip(deters, stochs)]

    losses = {"reconstruction": [], "kl": [], "reward": [], "continue": [], "replay": []}
    for t in range(rows):
        errors = np.zeros(sequences)
        for name, found in online.decode(latents[t]).items():
            target = seen[name][t] / 255 if found.ndim == 4 else symlog(seen[name][t])
            errors += np.square(found - target).reshape(sequences, -1).sum(-1)
        prior = online.prior(deters[t])
        kl = np.maximum((posteriors[t] * np.log(posteriors[t] / prior)).sum((-1, -2)), 1)
        losses["reconstruction"] += [*errors]
        losses["kl"] += [*(1.1 * kl)]
        if t:
            rewards, goes_on = online.outcome(latents[t])
            chance, target = sigmoid(goes_on), by_time["discounts"][t - 1]
            losses["reward"] += [*cross_entropy(rewards, two_hot(by_time["rewards"][t - 1]))[is_transition[t - 1]]]
            entropy = -target * np.log(chance) - (1 - target) * np.log(1 - chance)
            losses["continue"] += [*entropy[is_transition[t - 1]]]

    start_deter, start_stoch = np.concatenate(deters), np.concatenate(stochs)
    random = columns["extra/imagined"].astype(np.float64).reshape(len(start_deter), horizon, -1)
    dreamed, chosen = [np.concatenate([start_deter, start_stoch], -1)], []
    deter, stoch = start_deter, start_stoch
    for t in range(horizon):
        action = online.drawn_action(dreamed[-1], random[:, t, 32:])
        deter, _ = online.posterior(deter, stoch, online.encoded(action), np.zeros_like(np.concatenate(embeddings)))
        stoch = online.drawn(online.prior(deter), random[:, t, :32])
        chosen.append(action), dreamed.append(np.concatenate([deter, stoch], -1))
    outcomes = [online.outcome(latent) for latent in dreamed]
    rewards = np.stack([decoded(rewards) for rewards, _ in outcomes[1:]])
    goes_on = np.stack([sigmoid(logits) for _, logits in outcomes])
    logits = np.stack([online.head("value", latent) for latent in dreamed])
    values = np.stack([decoded(one) for one in logits])
    mixing = np.full_like(rewards, 0.95)
    returns = np.array(
        [[lambda_return(rewards[:, n], goes_on[1:, n], values[1:, n], mixing[:, n], t) for n in range(rewards.shape[1])]
         for t in range(horizon)]
    )  # fmt: skip
    low, high = 0.99 * np.array(before_update) + 0.01 * np.percentile(returns, [5, 95])
    weights = np.cumprod(goes_on[:-1], axis=0)
    actor, critic = [], []
    for t in range(horizon):
        log_probability, entropy = online.log_probability_and_entropy(dreamed[t], chosen[t])
        gain = log_probability * (returns[t] - values[t]) / max(1, high - low) + 3e-4 * entropy
        targets = two_hot(returns[t]) + two_hot(decoded(slow.head("value", dreamed[t])))
        actor += [*(-weights[t] * gain)]
        critic += [*(weights[t] * cross_entropy(logits[t], targets))]

    bootstrap = returns[0].reshape(rows, sequences)
    for n in range(sequences):
        goes = np.append(is_transition[1:, n], False) * 0.95
        for t in range(length):
            if is_transition[t, n]:
                known = by_time["rewards"][:-1, n], by_time["discounts"][:-1, n], bootstrap[1:, n]
                target = lambda_return(*known, goes, t)
                latent = latents[t][n : n + 1]
                targets = two_hot(np.array([target])) + two_hot(decoded(slow.head("value", latent)))
                losses["replay"] += [*(0.3 * cross_entropy(online.head("value", latent), targets))]
    total = sum(np.mean(part) for part in losses.values()) + np.mean(actor) + np.mean(critic)
    return total, low, high, np.stack(latents[:-1], axis=1)
