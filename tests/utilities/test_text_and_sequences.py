import types

import numpy as np
import pytest

from rl_coach import utils


def test_text_becomes_what_it_spells():
    assert [utils.parse_int(text) for text in ("3", "03", "0.5", "0.50", "x")] == [3, "03", 0.5, "0.50", "x"]
    assert [utils.parse_bool(text) for text in ("True", " false ", "yes")] == [True, False, "yes"]
    assert utils.convert_to_ascii({b"a": [b"b", ("c", 1)]}) == {"a": ["b", ("c", 1)]}


def test_text():
    assert utils.is_empty("'\"\"'") and not utils.is_empty("'a'")
    assert (
        utils.remove_suffix("main_target/weights", ["_target", "/"]) == "main" and utils.remove_suffix("a", "b") is None
    )
    assert utils.indent_string("a\nb") == "\ta\n\tb"


def test_the_last_sample_of_a_batch():
    last = utils.last_sample({"observation": np.arange(6).reshape(3, 2)})
    assert last["observation"].tolist() == [[4, 5]]


def test_axes_and_stacks():
    image = np.arange(24).reshape(2, 3, 4)
    last = utils.switch_axes_order(image)
    assert last.shape == (3, 4, 2)
    np.testing.assert_array_equal(utils.switch_axes_order(last, "channels_last", "channels_first"), image)
    assert utils.switch_axes_order(image, "channels_last", "channels_last") is image
    with pytest.raises(ValueError, match="two or three axes"):
        utils.switch_axes_order(np.zeros(3))
    stack = utils.stack_observation([], np.zeros((2, 2)), 3)
    stack = utils.stack_observation(stack, np.ones((2, 2)), 3)
    assert stack.shape == (2, 2, 3) and stack[0, 0].tolist() == [0, 0, 1]


def test_all_instances():
    lists = [[1, 2], [2]]
    assert utils.call_method_for_all(lists, "count", 2) == utils.call_method_for_all(lists, "count", [2]) == [1, 1]
    assert utils.call_method_for_all(["a b"], "split", kwargs={"sep": " "}) == [["a", "b"]]
    objects = [types.SimpleNamespace() for _ in range(2)]
    utils.set_member_values_for_all(objects, "phase", 3)
    assert [one.phase for one in objects] == [3, 3]


def test_dicts_and_objects():
    made = utils.DictToClass({"a": 1})
    assert made.a == 1 and utils.ClassToDict(made) == {"a": 1}
