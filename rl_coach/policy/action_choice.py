"""Choice of an action from the outputs of a trained network, without exploration.

Needs only NumPy: an agent names the class that fits it, and its deployed policy chooses with this class.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Union

import numpy as np

from rl_coach.policy.drawing import of_each_part, sample_action
from rl_coach.utils import CoachError

Outputs = list[np.ndarray]
"""Outputs of a network, [B, ...] each."""
Masks = Union[np.ndarray, None]
"""[B, A] of 0 and 1, the discrete actions that may be chosen; None allows all."""


class ActionChoice:
    """Chooses actions for a batch of rows. Subclasses are dataclasses; the fields (numbers, arrays) are settings."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        """An action for each row.

        :param outputs: the network's outputs that the agent named, each [B, ...]
        :param masks: [B, A] of 0 and 1, the discrete actions that may be chosen; None allows all
        :param rng: generator of the random draws
        :param deterministic: True takes the best action, or the middle of the distribution; False draws
        :return: [B] numbers of discrete actions, or [B, D] continuous ones
        """
        raise NotImplementedError(f"{type(self).__name__} does not choose")

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments that create an equal object."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class GreedyChoice(ActionChoice):
    """The discrete action with the highest value [B, A]; the first one, if several are equal. Probabilities
    [B, K, M] of K parts give a choice for each part.

    :param epsilon: the share of uniformly drawn actions if the choice is not deterministic
    """

    epsilon: float = 0.0

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        (values,) = outputs
        in_parts = values.ndim == 3
        best = of_each_part(best_actions, values, masks) if in_parts else best_actions(values, masks)
        if deterministic or self.epsilon <= 0:
            return best
        rows = np.flatnonzero(rng.random(len(best)) < self.epsilon)
        if rows.size and in_parts:
            # beyond the choices of a part, probabilities are 0 and masks forbid the actions
            possible = np.ones(values[rows].shape) if masks is not None else (values[rows] > 0).astype(np.float64)
            best[rows] = of_each_part(lambda one, mask: sampled_actions(one, mask, rng), possible, _rows(masks, rows))
        elif rows.size:
            best[rows] = sampled_actions(np.ones((rows.size, values.shape[1])), _rows(masks, rows), rng)
        return best


@dataclass(frozen=True)
class VotingChoice(GreedyChoice):
    """The discrete action that most heads give the highest value. Each head gives values [B, A]."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        return super().choose([votes(np.stack(outputs, axis=1), masks)], masks, rng, deterministic)


@dataclass(frozen=True)
class EnsembleMeanChoice(GreedyChoice):
    """The discrete action with the highest mean value over all heads. Each head gives values [B, A]."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        return super().choose([np.mean(outputs, axis=0)], masks, rng, deterministic)


@dataclass(frozen=True)
class SoftmaxChoice(ActionChoice):
    """A discrete action drawn with probabilities proportional to exp(value / temperature); the best one if the
    choice is deterministic.

    :param temperature: near 0 the draw is greedy, a large temperature makes it uniform
    """

    temperature: float

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        (values,) = outputs
        if deterministic:
            return best_actions(values, masks)
        allowed = values if masks is None else np.where(masks > 0, values, -np.inf)
        exponents = (allowed - allowed.max(axis=1, keepdims=True)) / max(self.temperature, 1e-30)
        return sampled_actions(np.exp(exponents.astype(np.float64)), masks, rng)


@dataclass(frozen=True)
class CategoricalChoice(ActionChoice):
    """A discrete action drawn with the network's probabilities [B, A]; the most probable one if the choice is
    deterministic. Probabilities [B, K, M] of K parts give a choice for each part."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        (probabilities,) = outputs
        if probabilities.ndim == 3:
            return of_each_part(lambda rows, one: self.choose([rows], one, rng, deterministic), probabilities, masks)
        return best_actions(probabilities, masks) if deterministic else sampled_actions(probabilities, masks, rng)


@dataclass(frozen=True)
class GaussianChoice(ActionChoice):
    """The network's mean [B, D]; a draw with its standard deviation [B, D] if the choice is not deterministic."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        mean, deviation = outputs
        return mean if deterministic else rng.normal(mean, deviation)


@dataclass(frozen=True)
class DeterministicChoice(ActionChoice):
    """The network's action [B, D], whether the choice is deterministic or not."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        return outputs[0]


@dataclass(frozen=True)
class SquashedGaussianChoice(ActionChoice):
    """centre + radius tanh(u). If the choice is deterministic, u is the network's mean [B, D]; otherwise u is drawn
    around the mean with the network's log deviation [B, D] (Haarnoja et al. 2018, "Soft Actor-Critic", appendix C).

    :param centre: [D], the middle of the action space
    :param radius: [D], half its width
    """

    centre: np.ndarray
    radius: np.ndarray

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        u, log_deviation = outputs
        if not deterministic:
            u = u + np.exp(log_deviation) * rng.standard_normal(u.shape, np.float32)
        return self.centre + self.radius * np.tanh(u)


CHOICES: dict[str, type[ActionChoice]] = {
    "greedy": GreedyChoice,
    "voting": VotingChoice,
    "ensemble_mean": EnsembleMeanChoice,
    "softmax": SoftmaxChoice,
    "categorical": CategoricalChoice,
    "gaussian": GaussianChoice,
    "deterministic": DeterministicChoice,
    "squashed_gaussian": SquashedGaussianChoice,
}


@dataclass(frozen=True)
class PolicyDescription:
    """Names the network that acts, and defines the choice of actions.

    :param network: the network's name in the agent
    :param outputs: the outputs that the choice needs, in order
    :param choice: computes an action from them
    """

    network: str
    outputs: tuple[str, ...]
    choice: ActionChoice


def best_actions(values: np.ndarray, masks: Masks) -> np.ndarray:
    """[B], the allowed action with the highest value in each row [B, A]; the first one, if several are equal.

    :raises CoachError: if a mask allows no action
    """
    if masks is None:
        return values.argmax(axis=1)
    allowed = masks > 0
    if not allowed.any(axis=1).all():
        raise CoachError("the action mask allows no action")
    return np.where(allowed, values, -np.inf).argmax(axis=1)


def votes(heads: np.ndarray, masks: Masks) -> np.ndarray:
    """[B, A], how many of the heads [B, K, A] prefer each action; a head divides its vote among its best actions.

    :param masks: [B, A] of 0 and 1, the actions that may be preferred; None allows all
    """
    if masks is not None:
        heads = np.where(np.asarray(masks, dtype=bool)[:, None, :], heads, -np.inf)
    is_best = heads == heads.max(axis=2, keepdims=True)
    return (is_best / is_best.sum(axis=2, keepdims=True)).sum(axis=1)


def sampled_actions(weights: np.ndarray, masks: Masks, rng: np.random.Generator) -> np.ndarray:
    """[B], an allowed action drawn with probabilities proportional to each row's weights [B, A].

    :raises CoachError: if a mask allows no action
    """
    try:
        return np.array([sample_action(row, rng, _rows(masks, i))[0] for i, row in enumerate(weights)])
    except ValueError as error:
        raise CoachError(str(error)) from None


def _rows(masks: Masks, rows: Any) -> Any:
    return None if masks is None else masks[rows]
