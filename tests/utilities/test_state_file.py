import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rl_coach.utilities.state_file import read_state, write_state
from rl_coach.utils import CoachError

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    hnp.arrays(np.float32, hnp.array_shapes(max_dims=2, max_side=3), elements=st.floats(-1, 1, width=32)),
)
states = st.dictionaries(
    st.text(max_size=5),
    st.recursive(leaves, lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text(max_size=5), below)),
    max_size=3,
)


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b


@settings(max_examples=40)
@given(state=states)
def test_what_is_read_is_what_was_written(tmp_path_factory, state):
    path = tmp_path_factory.mktemp("state") / "state.npz"
    write_state(path, state)
    assert same(read_state(path), state)


def test_a_random_generator_goes_through_a_file(tmp_path):
    rng = np.random.default_rng(3)
    write_state(tmp_path / "rng.npz", rng.bit_generator.state)
    again = np.random.default_rng()
    again.bit_generator.state = read_state(tmp_path / "rng.npz")
    assert again.random(5).tolist() == rng.random(5).tolist()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CoachError, match=r"no file '.*gone\.npz'"):
        read_state(tmp_path / "gone.npz")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "damaged.npz"
    path.write_bytes(content)
    with pytest.raises(CoachError, match=r"damaged\.npz' is not a state file"):
        read_state(path)


def test_a_pickled_file_is_not_opened(tmp_path):
    path = tmp_path / "pickled.npz"
    np.savez(path, rest=np.array([{"a": 1}], dtype=object))
    with pytest.raises(CoachError, match="not a state file"):
        read_state(path)


def test_objects_are_refused(tmp_path):
    with pytest.raises(TypeError):
        write_state(tmp_path / "state.npz", {"a": np.array([object()])})
    with pytest.raises(TypeError):
        write_state(tmp_path / "state.npz", {"a": object()})
