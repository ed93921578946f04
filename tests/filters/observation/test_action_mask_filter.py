"""Masks of an agent with an output filter: they are masks of the agent's actions."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.filters.action import FullDiscreteActionSpaceMap, PartialDiscreteActionSpaceMap
from rl_coach.filters.filter import InputFilter, OutputFilter
from rl_coach.filters.observation.action_mask_filter import with_masks_behind
from rl_coach.policy import Policy
from rl_coach.space_values import mask_space_of
from rl_coach.spaces import (
    DiscreteActionSpace,
    MultiDiscreteActionSpace,
    RewardSpace,
    SpacesDefinition,
    StateSpace,
    VectorObservationSpace,
)
from tests.zoo.environments import MaskedChain
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn


def masks_behind(action_filter, actions, masks):
    """The masks of an agent with one filter of actions, and their space."""
    observations = StateSpace({"observation": VectorObservationSpace(2), "mask": mask_space_of(actions)})
    spaces = SpacesDefinition(observations, None, actions, RewardSpace(1))
    shared = InputFilter()
    chain = with_masks_behind(OutputFilter({"one": action_filter}), shared, spaces)
    assert shared.is_empty
    seen = chain.get_filtered_observation_space("mask", observations["mask"])
    filtered = chain.filter_columns({"mask": np.asarray(masks, np.int8)})["mask"]
    assert all(seen.contains(mask) for mask in filtered)
    return filtered.tolist()


def test_masks_follow_the_numbers_of_the_actions():
    chosen = PartialDiscreteActionSpaceMap([3, 1])
    masks = [[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0]]
    assert masks_behind(chosen, DiscreteActionSpace(4), masks) == [[1, 0], [0, 1], [1, 1], [1, 1]]


def test_a_combination_is_allowed_if_all_its_parts_are():
    mask = [[[1, 0, 0], [0, 1, 1]]]
    assert masks_behind(FullDiscreteActionSpaceMap(), MultiDiscreteActionSpace([2, 3]), mask) == [[0, 1, 1, 0, 0, 0]]


@pytest.mark.parametrize("copies", [1, 3])
def test_an_agent_behind_an_output_filter_takes_no_forbidden_action(copies, tmp_path):
    parameters = dqn()
    parameters.output_filter = OutputFilter({"turned": PartialDiscreteActionSpaceMap([2, 1, 0])})
    manager = graph(parameters, MaskedChain, tmp_path, schedule(120, heatup=40), copies=copies)
    manager.improve()  # MaskedChain raises an error if the agent takes the forbidden action
    assert all(one.state["mask"].tolist() == [0, 1, 1] for one in manager.get_agent().memory.transitions)


def test_a_policy_gets_the_masks_of_the_environment(tmp_path):
    parameters = dqn()
    parameters.output_filter = OutputFilter({"turned": PartialDiscreteActionSpaceMap([2, 1, 0])})
    manager = graph(parameters, MaskedChain, tmp_path, schedule(40, heatup=40))
    manager.improve()
    policy = Policy.load(manager.save_checkpoint(), seed=0)
    for number in range(3):
        mask = np.eye(3, dtype=np.int8)[number]
        assert policy.act({"observation": np.eye(5)[0], "mask": mask}) == number
