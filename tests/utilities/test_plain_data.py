import dataclasses
import io
import json
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rl_coach.core_types import ActionInfo, EnvResponse, Episode, Transition
from rl_coach.filters.observation.observation_stacking_filter import LazyStack
from rl_coach.utilities import plain_data
from rl_coach.utilities.plain_data import UnsavableError, dumps, flatten, join, loads, restore, separate
from rl_coach.utils import CoachError

arrays = hnp.arrays(
    st.sampled_from([np.bool_, np.uint8, np.int64, np.float16, np.float32, np.float64]),
    hnp.array_shapes(min_dims=0, max_side=3),
    elements={"allow_nan": False},
)
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), arrays)
trees = st.recursive(
    leaves, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
)


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("count", [0, 1, 1_001])
@pytest.mark.parametrize("digits", [0, 3, 6])
def test_numbered_items_keep_their_order(count, digits):
    items = [f"item {number}" for number in range(count)]
    numbered = plain_data.numbered(items)
    backwards = {f"{int(key):0{digits}d}": numbered[key] for key in reversed(numbered)}
    assert plain_data.in_order(numbered) == plain_data.in_order(backwards) == items


class TestTrees:
    @settings(max_examples=60, deadline=None)
    @given(tree=trees, numbered=st.booleans(), fold=st.booleans())
    def test_any_tree_comes_back(self, tree, numbered, fold):
        plain, taken = separate(tree, numbered=numbered, fold_constants=fold)
        assert same(join(json.loads(json.dumps(plain)), taken), tree)

    def test_arrays_are_named_by_their_paths(self):
        tree = {"network": [{"a/b": np.zeros(1)}, np.ones(2)], "": {"network": np.zeros(3)}}
        _, taken = separate(tree)
        assert list(taken) == ["network/0/a//b", "network/1", "network"]

    def test_empty_keys_are_not_mistaken_for_each_other(self):
        tree = {"": {"a": np.zeros(1)}, "a": np.ones(1)}
        assert same(join(*separate(tree)), tree)

    def test_constants_take_one_number(self):
        _, taken = separate({"low": np.zeros((84, 84)), "high": np.arange(4.0)}, fold_constants=True)
        assert {name: array.size for name, array in taken.items()} == {"low": 1, "high": 4}

    def test_scalars_become_numbers_and_tuples_lists(self):
        assert separate({"a": np.float32(0.5), "b": (np.int64(3), True)})[0] == {"a": 0.5, "b": [3, True]}

    @pytest.mark.parametrize(
        ("tree", "message"),
        [
            ({"a": {"b": object()}}, "'a/b' is a object"),
            ({"a": [{1: 2}]}, "'a/0' has keys"),
            ({"a": {"__array__": 1}}, "'a' has keys"),
            ({"names": np.array(["x"])}, "'names' is an array of <U1"),
            ({"a": np.array([object()])}, "'a' is an array of object"),
        ],
    )
    def test_other_things_are_named(self, tree, message):
        with pytest.raises(UnsavableError, match=message):
            separate(tree)


class TestBytes:
    @settings(max_examples=60, deadline=None)
    @given(tree=trees)
    def test_any_tree_comes_back(self, tree):
        assert same(loads(dumps(tree)), tree)

    def test_a_random_generator(self):
        rng, again = np.random.default_rng(3), np.random.default_rng()
        again.bit_generator.state = loads(dumps(rng.bit_generator.state))
        assert again.random(5).tolist() == rng.random(5).tolist()

    @pytest.mark.parametrize("data", [b"", b"no archive", b"PK\x03\x04 cut off", dumps({"a": np.ones(9)})[:-30]])
    def test_damaged_bytes_are_refused(self, data):
        with pytest.raises(ValueError):
            loads(data)

    def test_changed_bits_are_refused_or_do_not_matter(self):
        """Some say that the archive is encrypted, compressed, or of a later version of the format."""
        whole, refused = dumps({"a": np.ones(2)}), 0
        for bit in range(8 * len(whole)):
            data = bytearray(whole)
            data[bit // 8] ^= 1 << bit % 8
            try:
                loads(bytes(data))
            except ValueError:
                refused += 1
        assert refused > 4 * len(whole)

    def test_pickles_are_not_opened(self):
        stream = io.BytesIO()
        np.savez(stream, tree=np.array([{"a": 1}], dtype=object))
        with pytest.raises(ValueError, match="allow_pickle"):
            loads(stream.getvalue())

    @pytest.mark.parametrize(("tree_name", "mark"), [("rest", "__array__"), ("tree", "__member__")])
    def test_what_was_written_before_is_read(self, tree_name, mark):
        stream = io.BytesIO()
        tree = json.dumps({"mean": {mark: "array_0"}, "count": 3})
        np.savez(stream, **{tree_name: np.asarray(tree), "array_0": np.arange(3)})
        assert same(loads(stream.getvalue()), {"mean": np.arange(3), "count": 3})


def through_bytes(value):
    return restore(loads(dumps(flatten(value))))


@plain_data.register
class Option(Episode):
    """An episode with a field of its own."""


@plain_data.register
@dataclasses.dataclass(frozen=True)
class Directive:
    goal: np.ndarray
    steps: int = 3


class TestWebs:
    def test_values_keep_their_kinds(self):
        values = {
            "plain": [None, True, 3, 0.1, "text", (1, 2.5)],
            "scalars": [np.float32(0.1), np.int64(7), np.bool_(True)],
            "array": np.arange(6, dtype=np.uint8).reshape(2, 3),
            "zero": np.array(2.0),
            "queue": deque([1, 2], maxlen=2),
            3: "a key that is no text",
        }
        back = through_bytes(values)
        assert back.keys() == values.keys()
        assert back["plain"] == values["plain"] and back["queue"] == values["queue"] and back["queue"].maxlen == 2
        assert [type(value) for value in back["scalars"]] == [np.float32, np.int64, np.bool_]
        assert back["scalars"] == values["scalars"]
        assert back["array"].dtype == np.uint8 and back["array"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert isinstance(back["zero"], np.ndarray) and back["zero"].shape == ()

    def test_what_is_shared_stays_shared(self):
        frames = [np.full((2, 2), i, np.uint8) for i in range(4)]
        state = {"observation": LazyStack(frames[:3], axis=-1)}
        following = {"observation": LazyStack(frames[1:], axis=-1)}
        episode = Episode(0.9, True, 3)
        episode.insert(Transition(state, 1, np.float64(2), following, False, {"weight": 1.0}))
        answer = EnvResponse(following, 1.0, False)
        back = through_bytes({"episode": episode, "now": following, "last": ActionInfo(1), "answer": answer})
        (transition,) = back["episode"].transitions
        assert back["now"] is transition.next_state is back["answer"].next_state
        before, after = transition.state["observation"], transition.next_state["observation"]
        assert before.history[1] is after.history[0] and before.axis == -1
        np.testing.assert_array_equal(np.asarray(after), np.asarray(following["observation"]))
        assert (back["episode"].discount, back["episode"].n_step, transition.info) == (0.9, 3, {"weight": 1.0})
        assert back["last"].max_action_value is None
        with pytest.raises(ValueError, match="known only after"):
            transition.n_step_discounted_rewards  # noqa: B018

    def test_a_circle_closes(self):
        circle: list = []
        circle.append({"self": circle})
        back = through_bytes(circle)
        assert back[0]["self"] is back

    @pytest.mark.parametrize("value", [object(), np.array([object()]), {1, 2}, lambda: None])
    def test_other_things_are_refused(self, value):
        with pytest.raises(UnsavableError, match="cannot be saved"):
            flatten({"info": [value]})

    def test_attributes_that_a_user_adds_come_back(self):
        transition = Transition({"o": np.zeros(1)}, 0, 1.0, {"o": np.zeros(1)}, False)
        transition.n_steps, transition.note = 3, {"from": "a user"}
        back = through_bytes(transition)
        assert (back.n_steps, back.note) == (3, {"from": "a user"})

    def test_fields_are_written_by_place_and_others_by_name(self):
        transition = Transition(1, 2, 3.0, 4, False)
        transition.n_steps = 3
        _, info = flatten(transition)["nodes"]
        assert flatten(transition)["nodes"][0] == ["Transition", 1, 2, 3.0, 4, False, False, [1], None, "n_steps", 3]
        assert info == ["dict"]
        response = flatten(EnvResponse(1, 2.0, True))["nodes"][0]
        assert response == ["EnvResponse", 1, 2.0, True, True, [1], None]

    def test_classes_of_users_take_part_once_registered(self):
        option = Option(discount=0.5)
        option.directive = Directive(np.arange(2.0))
        back = through_bytes([option, option.directive])
        assert isinstance(back[0], Option) and back[0].discount == 0.5
        assert back[0].directive is back[1] and back[1].steps == 3 and back[1].goal.tolist() == [0, 1]

        class Unknown(Episode):
            pass

        with pytest.raises(UnsavableError, match="a Unknown cannot be saved"):
            flatten(Unknown())

    def test_a_name_is_taken_once(self):
        other = type("Transition", (), {"__module__": __name__})
        with pytest.raises(ValueError, match=r"another class Transition is registered, rl_coach.core_types.Transition"):
            plain_data.register(other)

    def test_a_class_that_is_defined_anew_takes_the_old_ones_place(self):
        for version in (1, 2):
            made = plain_data.register(type("Cell", (), {"__module__": "__main__", "version": version}))
            assert through_bytes(made()).version == version

    def test_an_unknown_class_is_named(self):
        tree = json.loads(json.dumps(flatten(ActionInfo(1))).replace("ActionInfo", "Elsewhere"))
        with pytest.raises(CoachError, match="'Elsewhere', a class that is not registered; import its module first"):
            restore(tree)

    def test_an_object_without_an_attribute_is_refused(self):
        with pytest.raises(UnsavableError, match="a ActionInfo without one of its attributes"):
            flatten(object.__new__(ActionInfo))
