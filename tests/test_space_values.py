"""Values of spaces: which rows are values, and how they are cast."""

import numpy as np
import pytest

from rl_coach.space_values import (
    allowed_values,
    cast,
    dtype_of,
    first_misfit,
    first_wrong_probabilities,
    mask_space_of,
    require_values,
)
from rl_coach.spaces import (
    ActionMaskSpace,
    AttentionActionSpace,
    BoxActionSpace,
    CompoundActionSpace,
    DiscreteActionSpace,
    MultiSelectActionSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError

TWO, BOX = DiscreteActionSpace(2), BoxActionSpace(2, -1, np.array([1, 3]))


@pytest.mark.parametrize(
    "space, rows",
    [
        (TWO, [0, 1, 1]),
        (TWO, np.array([0.0, 1.0])),
        (BOX, [[-1, 3], [0.5, 0]]),
        (BOX, [[1.000001, 3.00001]]),  # rounded to 32 bits
        (MultiSelectActionSpace(3, 2), [[0, 0, 0], [1, 0, 1]]),
        (ActionMaskSpace(3), [[0, 1, 1]]),
        (VectorObservationSpace(2, -1, 1), [[7, -7]]),  # environments often give wrong bounds of observations
        (CompoundActionSpace([TWO, TWO]), [[0, 1]]),
        (AttentionActionSpace(2, 0, 4), [[np.array([0, 0]), np.array([4, 4])]]),
    ],
)
def test_rows_of_a_space_have_no_misfit(space, rows):
    assert first_misfit(space, rows) is None


@pytest.mark.parametrize(
    "space, rows, row, text",
    [
        (TWO, [0, 1, 5, 7], 2, "5, but the action space has the whole numbers 0 to 1"),
        (TWO, [1, -1], 1, "-1,"),
        (TWO, [0.5], 0, "0.5,"),
        (TWO, [0, np.nan], 1, "nan,"),
        (TWO, [[0, 1]], None, "of the shape 2,"),
        (TWO, ["left"], None, "not an array of numbers"),
        (BOX, [[0, 0], [0, 9]], 1, "element 1 is 9, but the action space has numbers from -1 to [1, 3] of the shape 2"),
        (BOX, [0.5], None, "the columns action_0, action_1"),
        (BoxActionSpace((2, 3), -1, 1), np.full((1, 2, 3), 2), 0, "element 0 is 2"),
        (MultiSelectActionSpace(3, 1), [[0, 0, 0], [1, 1, 0]], 1, "4 vectors of 3 zeros and ones"),
        (ActionMaskSpace(2), [[0, 1], [0, -3.5]], 1, "a mask has 2 zeros and ones"),
        (VectorObservationSpace(2), [[1, np.inf]], 0, "element 1 is inf"),
        (VectorObservationSpace(2), [[1, 2, 3]], None, "the shape 3, but the observation space has finite numbers"),
        (CompoundActionSpace([TWO, TWO]), [[0, 1], [0, 2]], 1, "[0, 2]"),
    ],
)
def test_the_first_row_that_is_no_value_is_found(space, rows, row, text):
    misfit = first_misfit(space, rows)
    assert misfit is not None and misfit.row == row and text in misfit.text


@pytest.mark.parametrize(
    "space, text",
    [
        (TWO, "the whole numbers 0 to 1"),
        (BOX, "numbers from -1 to [1, 3] of the shape 2"),
        (CompoundActionSpace([TWO, BOX]), "lists of 2 actions, one of each of its parts"),
        (AttentionActionSpace(2, 0, np.array([4, 8])), "pairs of corners from [0, 0] to [4, 8]"),
    ],
)
def test_the_values_of_an_action_space_in_words(space, text):
    assert allowed_values(space) == f"the action space has {text}"


def test_the_message_names_row_and_value():
    with pytest.raises(CoachError, match=r"'a\.csv', step 8: the action is 3, but the action space has"):
        require_values(TWO, [0, 3], "action", "'a.csv'", first=7)


def test_values_are_cast_to_the_type_of_their_space():
    assert cast(TWO, [0.0, 1.0]).dtype == dtype_of(TWO) == np.int64
    found = cast(BOX, [[1.000001, -1.000001]])
    assert found.dtype == np.float32 and found.tolist() == [[1, -1]]


def test_probabilities_are_of_each_action():
    assert first_wrong_probabilities(TWO, [[0.5, 0.5], [0, 1]]) is None
    for rows, row in (([[1.0]], None), ([[0.5, 0.5], [0.9, 0.9]], 1), ([[1.5, -0.5]], 0), ([[np.nan, 1]], 0)):
        misfit = first_wrong_probabilities(TWO, rows)
        assert misfit is not None and misfit.row == row
    assert (
        mask_space_of(TWO).num_elements == 2
        and mask_space_of(BOX) is None
        and first_wrong_probabilities(BOX, [[1.0]]) is not None
    )
