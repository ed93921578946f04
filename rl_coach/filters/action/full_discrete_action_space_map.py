"""A filter that gives a number to each action of a countable space."""

from __future__ import annotations

from rl_coach.filters.action.partial_discrete_action_space_map import PartialDiscreteActionSpaceMap
from rl_coach.spaces import ActionSpace, DiscreteActionSpace
from rl_coach.utils import CoachError


class FullDiscreteActionSpaceMap(PartialDiscreteActionSpaceMap):
    """Gives a number to each action of the environment's space. The agent chooses a number, and the environment gets
    the action with this number. The space must be countable, such as a ``MultiSelectActionSpace``.
    """

    def __init__(self) -> None:
        super().__init__()

    def validate_output_action_space(self, output_action_space: ActionSpace) -> None:
        try:
            self.target_actions = output_action_space.actions
        except NotImplementedError:
            raise CoachError(
                f"FullDiscreteActionSpaceMap: the actions of {output_action_space} cannot be counted; "
                "use BoxDiscretization for a box"
            ) from None

    def get_unfiltered_action_space(self, output_action_space: ActionSpace) -> DiscreteActionSpace:
        self.target_actions = output_action_space.actions
        self.descriptions = [output_action_space.get_description(action) for action in self.target_actions]
        return super().get_unfiltered_action_space(output_action_space)
