"""Filters of actions."""

from rl_coach.filters.action.action_filter import ActionFilter
from rl_coach.filters.action.attention_discretization import AttentionDiscretization
from rl_coach.filters.action.box_discretization import BoxDiscretization
from rl_coach.filters.action.box_masking import BoxMasking
from rl_coach.filters.action.full_discrete_action_space_map import FullDiscreteActionSpaceMap
from rl_coach.filters.action.linear_box_to_box_map import LinearBoxToBoxMap
from rl_coach.filters.action.partial_discrete_action_space_map import PartialDiscreteActionSpaceMap

__all__ = [
    "ActionFilter",
    "AttentionDiscretization",
    "BoxDiscretization",
    "BoxMasking",
    "FullDiscreteActionSpaceMap",
    "LinearBoxToBoxMap",
    "PartialDiscreteActionSpaceMap",
]
