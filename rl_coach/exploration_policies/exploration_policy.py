"""The bases of all exploration policies."""

from __future__ import annotations

import math
from typing import Any, Sequence, Union

import numpy as np

from rl_coach.base_parameters import Parameters
from rl_coach.core_types import RunPhase
from rl_coach.spaces import ActionSpace, BoxActionSpace, DiscreteActionSpace, GoalsSpace
from rl_coach.utils import CoachError, TrainingError

ActionAndProbabilities = tuple[int, np.ndarray]


class ExplorationParameters(Parameters):
    """Which exploration policy an agent uses, and how.

    :ivar action_space: the agent's action space, filled in when the agent is built
    """

    def __init__(self) -> None:
        self.action_space: Any = None

    @property
    def path(self) -> str:
        return "rl_coach.exploration_policies.exploration_policy:ExplorationPolicy"


class ExplorationPolicy:
    """Chooses an action by what the agent predicts for the current state.

    :param action_space: the agent's action space
    :ivar phase: what the run is doing; many policies explore in TRAIN and stay with the best action in TEST
    :ivar rng: where all its random draws come from
    """

    def __init__(self, action_space: ActionSpace):
        self.phase = RunPhase.HEATUP
        self.action_space = action_space
        self.rng = np.random.default_rng()

    def seed(self, seed: Any) -> None:
        """Start the random draws anew from an int or a ``SeedSequence``."""
        self.rng = np.random.default_rng(seed)

    def reset(self) -> None:
        """A new episode starts: forget what belongs to the one before."""

    def suspend(self) -> Any:
        """What belongs to the episode in progress, for ``resume`` to take up again after another episode."""
        return None

    def resume(self, suspended: Any) -> None:
        """Go on with the episode that ``suspend`` parked."""

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> Any:
        """Choose an action.

        :param action_values: what the agent predicts: a value or a probability for each discrete action, or the mean
            of continuous ones; None where ``requires_action_values`` said so
        :param action_mask: [A] of 0 and 1, the discrete actions that may be chosen; None allows all
        :return: discrete: the action and the probabilities [A] that it was chosen by; continuous: the action
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not choose actions; set the exploration to a policy such as EGreedyParameters"
        )

    def change_phase(self, phase: RunPhase) -> None:
        """Tell the policy what the run does from now on."""
        self.phase = phase

    def requires_action_values(self) -> bool:
        """False if the next action does not depend on predictions, so that the network need not run for it."""
        return True

    def get_control_param(self) -> Any:
        """The number that says how much the policy explores, for the signals."""
        return 0

    def get_state(self) -> dict[str, Any]:
        """What must be kept to continue exactly."""
        return {"rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what ``get_state`` gave.

        :raises CoachError: it is the state of another kind of policy
        """
        try:
            self._restore(state)
        except CoachError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise CoachError(
                f"the checkpoint's exploration state is not one of {type(self).__name__}: {error!r}"
            ) from error

    def _restore(self, state: dict[str, Any]) -> None:
        rng = np.random.default_rng()
        rng.bit_generator.state = state["rng"]
        self.rng = rng

    def _refuse(self, reason: str) -> CoachError:
        """The error that says why the action space does not suit; ``reason`` ends with what to do."""
        return CoachError(f"{type(self).__name__} cannot explore {self.action_space}: {reason}")


class DiscreteActionExplorationPolicy(ExplorationPolicy):
    """A policy that chooses one of the actions of a ``DiscreteActionSpace``.

    :raises CoachError: the action space is not discrete
    """

    def __init__(self, action_space: ActionSpace):
        super().__init__(action_space)
        if not isinstance(action_space, DiscreteActionSpace):
            raise self._refuse("the actions are not discrete; choose a policy for continuous actions or a filter")

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> ActionAndProbabilities:
        """:return: the action, and the probabilities [A] that it was chosen by: one-hot for the best action"""
        return super().get_action(action_values, action_mask)


class ContinuousActionExplorationPolicy(ExplorationPolicy):
    """A policy that chooses a point of a ``BoxActionSpace`` or a ``GoalsSpace``.

    :raises CoachError: the action space is neither
    """

    def __init__(self, action_space: ActionSpace):
        super().__init__(action_space)
        if not isinstance(action_space, (BoxActionSpace, GoalsSpace)):
            raise self._refuse("the actions are not continuous; choose a policy for discrete actions")

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> np.ndarray:
        """:param action_values: the mean [D], or a list of the mean and, if the agent learns it, the standard
            deviation
        :param action_mask: not used, continuous actions have none
        :return: [D], not clipped to the space
        """
        return super().get_action(action_values, action_mask)

    def _mean_and_std(self, action_values: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """The mean and the agent's own standard deviation, if it has one, both of the action space's shape."""
        shape = tuple(self.action_space.shape)
        if not isinstance(action_values, (list, tuple)):
            return np.reshape(action_values, shape), None
        std = np.reshape(action_values[1], shape) if len(action_values) > 1 else None
        return np.reshape(action_values[0], shape), std


def best_action(values: np.ndarray, rng: np.random.Generator, action_mask: np.ndarray | None = None) -> int:
    """The allowed action of the highest value; ties break at random.

    :param values: [A]
    :param action_mask: [A] of 0 and 1, None allows all
    :raises ValueError: no action is allowed
    """
    if action_mask is None:
        best = int(values.argmax())
        is_best = values == values[best]
        if np.count_nonzero(is_best) < 2:
            return best
        ties = np.flatnonzero(is_best)
        return int(ties[rng.integers(ties.size)])
    allowed = allowed_actions(action_mask)
    return int(allowed[best_action(values[allowed], rng)])


def allowed_actions(action_mask: np.ndarray) -> np.ndarray:
    """The numbers of the actions that a mask allows.

    :raises ValueError: it allows none
    """
    allowed = np.flatnonzero(action_mask)
    if not allowed.size:
        raise ValueError("the action mask allows no action at all")
    return allowed


def sample_action(
    probabilities: Union[Sequence[float], np.ndarray],
    rng: np.random.Generator,
    action_mask: np.ndarray | None = None,
) -> ActionAndProbabilities:
    """An action drawn by probabilities, and these over the allowed actions, scaled to sum to 1.

    Where all allowed actions have a probability of 0, they are drawn alike.

    :param probabilities: [A], not negative
    :param action_mask: [A] of 0 and 1, None allows all
    :raises TrainingError: the probabilities are not numbers
    :raises ValueError: no action is allowed
    """
    weights: np.ndarray = np.asarray(probabilities, dtype=np.float64).reshape(-1)
    if action_mask is not None:
        allowed = np.zeros(weights.size)
        allowed[allowed_actions(action_mask)] = 1.0
        weights = weights * allowed
        weights = weights if weights.any() else allowed
    cumulative = weights.cumsum()
    total = float(cumulative[-1])
    if not 0 < total < math.inf:
        raise TrainingError(f"the policy's probabilities sum to {total}; training has diverged")
    # side="right" passes over actions of probability 0
    action = int(cumulative.searchsorted(rng.random() * total, side="right"))
    if action == weights.size:  # the product of tiny numbers was rounded up
        action = int(np.flatnonzero(weights)[-1])
    return action, weights / total


def one_hot(action: int, num_actions: int) -> np.ndarray:
    """[A] probabilities of a policy that takes one action for certain."""
    probabilities = np.zeros(num_actions)
    probabilities[action] = 1.0
    return probabilities
