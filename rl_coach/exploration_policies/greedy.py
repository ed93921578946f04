"""Takes the best action."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.exploration_policies.exploration_policy import (
    ExplorationParameters,
    ExplorationPolicy,
    best_action,
    best_actions,
)
from rl_coach.policy.action_choice import GreedyChoice
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, GoalsSpace


class GreedyParameters(ExplorationParameters):
    """The best action, always."""

    path = "rl_coach.exploration_policies.greedy:Greedy"


class Greedy(ExplorationPolicy):
    """Chooses the discrete action with the highest value, or the continuous mean. Ties are broken at random."""

    episode_attributes = ()

    supported_actions: tuple[type, ...] = (DiscreteActionSpace, BoxActionSpace, GoalsSpace)
    advice_on_actions = "the actions are neither discrete nor a box; add an action filter"

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> Any:
        if not isinstance(self.action_space, DiscreteActionSpace):
            mean = np.asarray(action_values[0] if isinstance(action_values, (list, tuple)) else action_values)
            return mean[0] if mean.ndim > len(self.action_space.shape) else mean
        return best_action(np.ravel(action_values), self.rng, action_mask)

    acts_in_columns = True

    def get_actions(
        self, action_values: Callable[[], Any], count: int, action_masks: np.ndarray | None = None
    ) -> np.ndarray:
        values = action_values()
        if isinstance(self.action_space, DiscreteActionSpace):
            return best_actions(np.asarray(values), self.rng, action_masks)
        means = values[0] if isinstance(values, (list, tuple)) else values
        return np.reshape(means, (count, *self.action_space.shape))

    def action_choice(self) -> GreedyChoice:
        return GreedyChoice()
