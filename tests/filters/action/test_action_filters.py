import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach.filters.action import (
    ActionFilter,
    AttentionDiscretization,
    BoxDiscretization,
    BoxMasking,
    FullDiscreteActionSpaceMap,
    LinearBoxToBoxMap,
    PartialDiscreteActionSpaceMap,
)
from rl_coach.spaces import (
    AttentionActionSpace,
    BoxActionSpace,
    CompoundActionSpace,
    DiscreteActionSpace,
    MultiSelectActionSpace,
)
from rl_coach.utils import CoachError


def prepared(action_filter, space):
    action_filter.validate_output_action_space(space)
    return action_filter.get_unfiltered_action_space(space)


class TestBoxDiscretization:
    def test_a_grid_of_two_dimensions(self):
        discretize = BoxDiscretization([2, 3])
        space = prepared(discretize, BoxActionSpace(2, np.array([0, -1]), np.array([10, 1])))
        assert isinstance(space, DiscreteActionSpace) and space.num_actions == 6
        points = [discretize.filter(number) for number in range(6)]
        assert points == [[0, -1], [0, 0], [0, 1], [10, -1], [10, 0], [10, 1]]

    def test_integer_points(self):
        discretize = BoxDiscretization(5, force_int_bins=True)
        prepared(discretize, BoxActionSpace(1, 0, 10))
        assert [int(discretize.filter(number)[0]) for number in range(5)] == [0, 2, 5, 7, 10]

    @given(bins=st.lists(st.integers(1, 4), min_size=1, max_size=3))
    def test_every_number_comes_back(self, bins):
        discretize = BoxDiscretization(bins)
        space = prepared(discretize, BoxActionSpace(len(bins), -1.5, 2))
        assert space.num_actions == np.prod(bins)
        for number in range(space.num_actions):
            assert discretize.output_action_space.contains(discretize.filter(number))
            assert discretize.reverse_filter(discretize.filter(number)) == number

    def test_a_million_bins_take_no_time(self):
        discretize = BoxDiscretization(num_bins_per_dimension=int(1e6))
        assert prepared(discretize, BoxActionSpace(1, -1, 1)).num_actions == 1_000_000
        assert discretize.filter(999_999) == [1.0]

    def test_the_points_cannot_be_changed_by_who_gets_them(self):
        discretize = BoxDiscretization(2)
        prepared(discretize, BoxActionSpace(1, 0, 1))
        discretize.filter(0)[0] = 3
        assert discretize.filter(0) == [0.0]

    def test_the_points_are_lists(self):
        """Programs written for Coach look actions up in them, and write them as JSON."""
        discretize = BoxDiscretization([2, 3])
        prepared(discretize, BoxActionSpace(2, np.array([0, -1]), np.array([10, 1])))
        assert discretize.target_actions.index([10, 0]) == 4
        assert json.loads(json.dumps(discretize.target_actions))[5] == discretize.filter(5) == [10.0, 1.0]
        assert discretize.output_action_space.contains(discretize.filter(5))
        whole = BoxDiscretization(5, force_int_bins=True)
        prepared(whole, BoxActionSpace(1, 0, 10))
        assert whole.target_actions == [[0], [2], [5], [7], [10]] and type(whole.target_actions[1][0]) is int

    def test_numbers_of_the_filter_can_be_used_for_another_space(self):
        discretize = BoxDiscretization(2)
        assert prepared(discretize, BoxActionSpace(1, 0, 1)).num_actions == 2
        assert prepared(discretize, BoxActionSpace(3, 0, 1)).num_actions == 8

    @pytest.mark.parametrize(
        "bins, space, message",
        [
            (2, DiscreteActionSpace(3), "needs the space BoxActionSpace, not DiscreteActionSpace"),
            (2, BoxActionSpace(1), "needs actions with finite bounds"),
            ([2], BoxActionSpace(2, 0, 1), r"\[2\] does not fit the 2 dimensions"),
            (0, BoxActionSpace(1, 0, 1), "at least one bin"),
            (10, BoxActionSpace(9, 0, 1), "1000000000 actions .* choose fewer bins"),
            (2, BoxActionSpace((2, 2), 0, 1), "only spaces of vectors"),
        ],
    )
    def test_mistakes(self, bins, space, message):
        with pytest.raises(CoachError, match=message):
            BoxDiscretization(bins).validate_output_action_space(space)


class TestAttentionDiscretization:
    def test_cells_of_an_image(self):
        discretize = AttentionDiscretization([2, 3], force_int_bins=True)
        output = AttentionActionSpace(2, low=0, high=np.array([84, 90]))
        assert prepared(discretize, output).num_actions == 6
        assert discretize.filter(0).tolist() == [[0, 0], [42, 30]]
        assert discretize.filter(1).tolist() == [[0, 30], [42, 60]]
        assert discretize.filter(5).tolist() == [[42, 60], [84, 90]]
        for number in range(6):
            assert output.contains(discretize.filter(number))
            assert discretize.reverse_filter(discretize.filter(number)) == number

    def test_other_spaces_are_refused(self):
        with pytest.raises(CoachError, match="needs the space AttentionActionSpace"):
            AttentionDiscretization(2).validate_output_action_space(BoxActionSpace(2, 0, 1))


class TestPartialMap:
    def test_numbers_stand_for_actions(self):
        output = MultiSelectActionSpace(3, max_simultaneous_selected_actions=2)
        targets = [np.array([0, 0, 1]), np.array([1, 1, 0])]
        mapping = PartialDiscreteActionSpaceMap(targets, descriptions=["left", "right"])
        space = prepared(mapping, output)
        assert space.num_actions == 2 and space.get_description(1) == "right"
        assert space.filtered_action_space is output
        assert mapping.filter(1).tolist() == [1, 1, 0]
        assert mapping.reverse_filter(np.array([0, 0, 1])) == 0

    def test_discrete_targets(self):
        mapping = PartialDiscreteActionSpaceMap([0, 2, 5])
        prepared(mapping, DiscreteActionSpace(6))
        assert mapping.filter(2) == 5 and mapping.reverse_filter(2) == 1

    def test_mistakes(self):
        with pytest.raises(CoachError, match="has no target_actions"):
            PartialDiscreteActionSpaceMap().validate_output_action_space(DiscreteActionSpace(6))
        with pytest.raises(
            CoachError,
            match=r"the target action 6 does not belong to .*; the action space has the whole numbers 0 to 5",
        ):
            PartialDiscreteActionSpaceMap([0, 6]).validate_output_action_space(DiscreteActionSpace(6))
        mapping = PartialDiscreteActionSpaceMap([0, 2])
        prepared(mapping, DiscreteActionSpace(6))
        with pytest.raises(CoachError, match="the action 1 is not one of the target actions"):
            mapping.reverse_filter(1)
        with pytest.raises(
            CoachError, match=r"the action 9 does not belong to .*; the action space has the whole numbers 0 to 5"
        ):
            mapping.validate_output_action(9)


class TestFullMap:
    def test_all_actions_get_a_number(self):
        output = MultiSelectActionSpace(2, descriptions=["jump", "run"])
        mapping = FullDiscreteActionSpaceMap()
        space = prepared(mapping, output)
        assert space.num_actions == 3
        assert [mapping.filter(number).tolist() for number in range(3)] == [[0, 0], [1, 0], [0, 1]]
        assert [space.get_description(number) for number in range(3)] == ["no-op", "jump", "run"]

    def test_spaces_that_cannot_be_counted_are_refused(self):
        for space in (BoxActionSpace(1, 0, 1), CompoundActionSpace([DiscreteActionSpace(2)])):
            with pytest.raises(CoachError, match="cannot be counted; use BoxDiscretization"):
                FullDiscreteActionSpaceMap().validate_output_action_space(space)


class TestBoxMasking:
    def test_the_example_of_its_documentation(self):
        masking = BoxMasking(20, 25)
        space = prepared(masking, BoxActionSpace(1, 10, 32))
        assert (space.low.tolist(), space.high.tolist()) == ([0], [5])
        assert masking.filter(np.array([1.0])).tolist() == [21]
        assert masking.reverse_filter(np.array([21.0])).tolist() == [1]

    def test_bounds_for_each_element(self):
        masking = BoxMasking(np.array([0, 1]), np.array([1, 3]))
        space = prepared(masking, BoxActionSpace(2, -5, 5))
        assert space.high.tolist() == [1, 2]
        assert masking.filter(np.array([0, 2])).tolist() == [0, 3]

    def test_the_mask_can_change(self):
        masking = BoxMasking(None, None)
        with pytest.raises(CoachError, match="call set_masking"):
            masking.validate_output_action_space(BoxActionSpace(1, 0, 9))
        masking.set_masking(1, 2)
        prepared(masking, BoxActionSpace(1, 0, 9))
        masking.set_masking(3, 7)
        assert masking.input_action_space.high.tolist() == [4]
        with pytest.raises(CoachError, match="3 to 12 is not within"):
            masking.set_masking(3, 12)

    @pytest.mark.parametrize(
        "low, high, message",
        [
            (-1, 2, "-1 to 2 is not within"),
            (2, 10, "2 to 10 is not within"),
            (5, 4, "masked_target_space_low 5 is above masked_target_space_high 4"),
        ],
    )
    def test_masks_outside_the_box_are_refused(self, low, high, message):
        with pytest.raises(CoachError, match=message):
            BoxMasking(low, high).validate_output_action_space(BoxActionSpace(1, 0, 9))
        with pytest.raises(CoachError, match="needs the space BoxActionSpace"):
            BoxMasking(low, high).validate_output_action_space(DiscreteActionSpace(3))


class TestLinearBoxToBox:
    def test_the_example_of_its_documentation(self):
        stretch = LinearBoxToBoxMap(-42, -10)
        space = prepared(stretch, BoxActionSpace(1, 10, 32))
        assert (space.low.tolist(), space.high.tolist()) == ([-42], [-10])
        assert [stretch.filter(np.array([x])).item() for x in (-42, -26, -10)] == [10, 21, 32]

    @given(position=st.floats(0, 1), low=st.floats(-9, -1), high=st.floats(0, 9))
    def test_it_can_be_reversed(self, position, low, high):
        stretch = LinearBoxToBoxMap(low, high)
        prepared(stretch, BoxActionSpace(1, 10, 32))
        action = np.array([low + position * (high - low)])
        np.testing.assert_allclose(stretch.reverse_filter(stretch.filter(action)), action, atol=1e-9)

    def test_mistakes(self):
        with pytest.raises(CoachError, match="input_space_low 1 is not below input_space_high 1"):
            LinearBoxToBoxMap(1, 1)
        with pytest.raises(CoachError, match="finite bounds"):
            LinearBoxToBoxMap(0, 1).validate_output_action_space(BoxActionSpace(1))
        with pytest.raises(CoachError, match="needs the space BoxActionSpace"):
            LinearBoxToBoxMap(0, 1).validate_output_action_space(DiscreteActionSpace(2))


def test_the_base():
    base = ActionFilter()
    space = DiscreteActionSpace(2)
    base.validate_output_action(5)  # no space known yet
    assert base.get_unfiltered_action_space(space) is space
    with pytest.raises(NotImplementedError):
        base.filter(0)
    with pytest.raises(NotImplementedError):
        base.reverse_filter(0)
