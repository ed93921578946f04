from __future__ import annotations

import numpy as np
import pytest

from rl_coach.environments.keyboard import DOWN, LEFT, RIGHT, UP, Keyboard
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, MultiDiscreteActionSpace, MultiSelectActionSpace
from rl_coach.utils import CoachError

SPACE, SHIFT = ord(" "), 0x400000E1


def test_actions_are_counted_where_they_have_no_names():
    keyboard = Keyboard(DiscreteActionSpace(12), {})
    assert [keyboard.action_for({ord(key)}) for key in "1290ab"] == [0, 1, 8, 9, 10, 11]
    assert keyboard.action_for({ord("c")}) is None


def test_names_bring_the_arrows_and_the_space_bar():
    names = ["NOOP", "FIRE", "UP", "RIGHT", "LEFT", "DOWN", "UPRIGHT", "DOWNLEFTFIRE"]
    keyboard = Keyboard(DiscreteActionSpace(8, descriptions=names), {})
    for keys, name in (
        ({SPACE}, "FIRE"), ({UP}, "UP"), ({UP, RIGHT}, "UPRIGHT"), ({LEFT, DOWN, SPACE}, "DOWNLEFTFIRE"),
        (set(), "NOOP"), ({ord("2")}, "FIRE"),
    ):  # fmt: skip
        assert keyboard.describe(keyboard.action_for(keys)) == name


def test_a_name_that_only_contains_a_direction_is_none():
    keyboard = Keyboard(DiscreteActionSpace(2, descriptions=["PICKUP", "Upside"]), {})
    assert keyboard.action_for({UP}) is None
    assert keyboard.bindings() == [("PICKUP", (ord("1"),)), ("Upside", (ord("2"),))]


def test_keys_without_a_meaning_change_nothing():
    keyboard = Keyboard(DiscreteActionSpace(2), {}, ("LEFT", "RIGHT"))
    assert keyboard.action_for({LEFT, SHIFT, ord("q")}) == 0
    assert keyboard.action_for({SHIFT}) is None


def test_of_many_keys_the_most_that_have_an_action_count():
    keyboard = Keyboard(DiscreteActionSpace(4), {}, ("LEFT", "RIGHT", "FIRE", "LEFTFIRE"))
    assert keyboard.action_for({LEFT, SPACE}) == 3
    assert keyboard.action_for({LEFT, SPACE, ord("9")}) == 3
    assert keyboard.action_for({LEFT, RIGHT, SPACE}) == 3
    assert keyboard.action_for({RIGHT, SPACE}) in (1, 2)


def test_the_environments_own_keys_hold():
    own_keys = {(): 1, (275,): 2, (276,): 0, (275, 276): 1, (SPACE,): 2}
    keyboard = Keyboard(DiscreteActionSpace(3), own_keys)
    assert [keyboard.action_for(keys) for keys in ({RIGHT}, {LEFT}, {LEFT, RIGHT}, {SPACE}, set())] == [2, 0, 1, 2, 1]
    assert keyboard.action_for({ord("1")}) == 1


def test_switches_are_held_together():
    keyboard = Keyboard(MultiSelectActionSpace(3, 2), {})
    np.testing.assert_array_equal(keyboard.action_for({ord("1"), ord("3")}), [1, 0, 1])
    np.testing.assert_array_equal(keyboard.action_for(set()), [0, 0, 0])
    assert np.sum(keyboard.action_for({ord("1"), ord("2"), ord("3")})) == 2


def test_combinations_of_several_parts_are_counted():
    keyboard = Keyboard(MultiDiscreteActionSpace([2, 3]), {})
    assert [keyboard.action_for({ord(key)}).tolist() for key in "1246"] == [[0, 0], [0, 1], [1, 0], [1, 2]]
    assert len(keyboard.bindings()) == 6 and keyboard.idle_action is None


def test_own_keys_may_take_continuous_actions():
    keyboard = Keyboard(BoxActionSpace(2, -1, 1), {(LEFT,): np.array([-1.0, 0.0]), (): np.zeros(2)})
    np.testing.assert_array_equal(keyboard.action_for({LEFT}), [-1, 0])
    np.testing.assert_array_equal(keyboard.idle_action, [0, 0])


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (BoxActionSpace(2, -1, 1), "BoxActionSpace cannot be played with keys"),
        (DiscreteActionSpace(40), "40 actions"),
        (MultiDiscreteActionSpace([2] * 60), f"{2**60} actions"),
    ],
)
def test_actions_without_keys_are_an_error_of_one_line(space, message):
    with pytest.raises(CoachError, match=message) as error:
        Keyboard(space, {})
    assert "\n" not in str(error.value) and "get_keys_to_action" in str(error.value)
