"""What the heads that networks end in have in common on every framework: they are made for an action space."""

from __future__ import annotations

from typing import Any

from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, SpacesDefinition
from rl_coach.utils import CoachError


class BaseHead:
    """One head of a network: maps features to named outputs.

    Those listed in ``public`` are what ``predict`` returns, in that order; the others serve update rules, which want
    logarithms where people want probabilities.

    :param parameters: its ``HeadParameters``
    :param spaces: the agent's spaces
    :param temperature: divides a policy's logits
    :raises CoachError: the action space is none of ``supported_actions``
    """

    public: tuple[str, ...] = ()
    supported_actions: tuple[type, ...] = (DiscreteActionSpace, BoxActionSpace)

    def __init__(self, parameters: Any, spaces: SpacesDefinition, temperature: float = 1.0):
        self.parameters = parameters
        self.spaces = spaces
        self.temperature = temperature
        if not isinstance(spaces.action, self.supported_actions):
            known = " or ".join(space.__name__ for space in self.supported_actions)
            raise CoachError(
                f"a {type(self).__name__} needs a {known}, not a {type(spaces.action).__name__}: "
                f"choose another agent, or an output filter that maps the actions"
            )

    @property
    def is_discrete(self) -> bool:
        """True for discrete actions."""
        return isinstance(self.spaces.action, DiscreteActionSpace)

    @property
    def num_actions(self) -> int:
        """How many discrete actions, or how many elements a continuous action has."""
        action = self.spaces.action
        return action.num_actions if isinstance(action, DiscreteActionSpace) else action.num_elements
