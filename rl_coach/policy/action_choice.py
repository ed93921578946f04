"""Choice of an action from the outputs of a trained network, without exploration.

An agent selects one of the classes, and its exported policy chooses actions with this class. The module needs only
NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Mapping, Union

import numpy as np

from rl_coach.policy.drawing import of_each_part, require_allowed, sample_actions

Outputs = list[np.ndarray]
"""The outputs of a network, each [B, ...]."""
Masks = Union[np.ndarray, None]
"""[B, A], 1 for allowed and 0 for forbidden discrete actions; None allows all actions."""


class ActionChoice:
    """Base class of the ways to choose actions. A subclass is a dataclass; its fields are numbers or arrays."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        """Choose an action for each row of a batch.

        :param outputs: the outputs in ``PolicyDescription.outputs``, each [B, ...]
        :param masks: [B, A], 1 for allowed and 0 for forbidden discrete actions; None allows all actions
        :param rng: the random generator
        :param deterministic: True chooses the best action, or the middle of the distribution; False draws an action at
            random
        :return: [B] numbers of discrete actions, or [B, D] continuous actions
        """
        raise NotImplementedError(f"{type(self).__name__} must define choose")

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments that create an equal object."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class GreedyChoice(ActionChoice):
    """Chooses the discrete action with the highest value [B, A]; if several values are equal, the first action. If
    actions have K parts, the values are probabilities [B, K, M], and each part is chosen separately.

    :param epsilon: the share of uniformly drawn actions if the choice is not deterministic
    """

    epsilon: float = 0.0

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        (values,) = outputs
        best = best_actions(values, masks)
        if deterministic or self.epsilon <= 0:
            return best
        rows = np.flatnonzero(rng.random(len(best)) < self.epsilon)
        if rows.size:
            # a part with fewer than M choices has probabilities of 0 there, or masks that forbid these choices
            is_possible = values[rows] > 0 if values.ndim == 3 and masks is None else np.ones(values[rows].shape)
            best[rows] = sample_actions(is_possible, rng, None if masks is None else masks[rows])
        return best


@dataclass(frozen=True)
class VotingChoice(GreedyChoice):
    """Chooses the discrete action that has the highest value in most heads. Each head computes values [B, A]."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        return super().choose([votes(np.stack(outputs, axis=1), masks)], masks, rng, deterministic)


@dataclass(frozen=True)
class EnsembleMeanChoice(GreedyChoice):
    """Chooses the discrete action with the highest mean value over all heads. Each head computes values [B, A]."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        return super().choose([np.mean(outputs, axis=0)], masks, rng, deterministic)


@dataclass(frozen=True)
class SoftmaxChoice(ActionChoice):
    """Draws a discrete action with probabilities proportional to exp(value / temperature). A deterministic choice is
    the action with the highest value.

    :param temperature: near 0, the choice is greedy; a large temperature makes all actions equally likely
    """

    temperature: float

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        (values,) = outputs
        if deterministic:
            return best_actions(values, masks)
        allowed = values if masks is None else np.where(masks > 0, values, -np.inf)
        exponents = (allowed - allowed.max(axis=1, keepdims=True)) / max(self.temperature, 1e-30)
        return sample_actions(np.exp(exponents.astype(np.float64)), rng, masks)


@dataclass(frozen=True)
class CategoricalChoice(ActionChoice):
    """Draws a discrete action with the network's probabilities [B, A]. A deterministic choice is the most probable
    action. If actions have K parts, the probabilities are [B, K, M], and each part is chosen separately."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        (probabilities,) = outputs
        return best_actions(probabilities, masks) if deterministic else sample_actions(probabilities, rng, masks)


@dataclass(frozen=True)
class GaussianChoice(ActionChoice):
    """Draws an action from the normal distribution with the network's mean and standard deviation, each [B, D]. A
    deterministic choice is the mean."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        mean, deviation = outputs
        return mean if deterministic else rng.normal(mean, deviation)


@dataclass(frozen=True)
class DeterministicChoice(ActionChoice):
    """Returns the network's action [B, D]. ``deterministic`` has no effect."""

    def choose(self, outputs: Outputs, masks: Masks, rng: np.random.Generator, deterministic: bool) -> np.ndarray:
        return outputs[0]


@dataclass(frozen=True)
class SquashedGaussianChoice(ActionChoice):
    """The action centre + radius tanh(u) of soft actor-critic. If the choice is deterministic, u is the network's mean
    [B, D]. Otherwise u is drawn from the normal distribution with this mean and the network's logarithm of the standard
    deviation [B, D] (Haarnoja et al. 2018, "Soft Actor-Critic", appendix C).

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
    """Describes how an agent acts: the network, and the choice of actions from its outputs.

    :param network: the network's name in the agent
    :param outputs: the names of the outputs that ``choice`` needs, in order
    :param choice: computes actions from these outputs
    :param is_target: True if the target network acts
    """

    network: str
    outputs: tuple[str, ...]
    choice: ActionChoice
    is_target: bool = False

    def acting_network(self, networks: Mapping[str, Any]) -> Any:
        """The network that acts. :param networks: the agent's networks by name"""
        network = networks[self.network]
        return network.target_network if self.is_target else network.online_network


def best_actions(values: np.ndarray, masks: Masks) -> np.ndarray:
    """The allowed action with the highest value in each row; if several values are equal, the first action.

    :param values: [B, A], or [B, K, M] if actions have K parts
    :param masks: 1 for allowed and 0 for forbidden actions, in the shape of ``values``; None allows all actions
    :return: [B] numbers of actions, or [B, K] if actions have K parts
    :raises CoachError: if a mask allows no action
    """
    if values.ndim == 3:
        return of_each_part(best_actions, values, masks)
    if masks is None:
        return values.argmax(axis=1)
    allowed = masks > 0
    require_allowed(allowed)
    return np.where(allowed, values, -np.inf).argmax(axis=1)


def votes(heads: np.ndarray, masks: Masks) -> np.ndarray:
    """The votes for each action. Each head has one vote for its best action. If several actions are equally good, they
    share this vote.

    :param heads: [B, K, A], the values of K heads
    :param masks: [B, A], 1 for allowed and 0 for forbidden actions; None allows all actions
    :return: [B, A] votes
    """
    if masks is not None:
        heads = np.where(np.asarray(masks, dtype=bool)[:, None, :], heads, -np.inf)
    is_best = heads == heads.max(axis=2, keepdims=True)
    return (is_best / is_best.sum(axis=2, keepdims=True)).sum(axis=1)
