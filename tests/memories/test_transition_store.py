"""The store against a list: whatever is done to both, both hold the same."""

import copy
import gc
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_coach.core_types import Batch, Transition
from rl_coach.memories import columns
from rl_coach.memories.columns import FrameObservations, FrameStacks, OneHotObservations
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.utils import CoachError
from tests.memories.transitions import Stack, Steps, as_episode, assert_same

KINDS = st.sampled_from(["vector", "stack", "image", "number", "numbers"])
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("episode"), st.integers(1, 9)),
        st.tuples(st.just("single steps"), st.integers(1, 9)),
        st.tuples(st.just("n-step episode"), st.integers(1, 9)),
        st.tuples(st.just("n-step chunk"), st.integers(1, 12)),
        st.tuples(st.just("chunk"), st.integers(1, 12)),
        st.tuples(st.just("remove"), st.floats(0, 0.999)),
        st.tuples(st.just("drop last"), st.floats(0, 1)),
        st.tuples(st.just("repeat"), st.floats(0, 0.999)),
        st.tuples(st.just("reverse"), st.none()),
        st.tuples(st.just("clear"), st.none()),
        st.tuples(st.just("restore"), st.none()),
    ),
    max_size=30,
)


def held_by(store: TransitionStore) -> list[Transition]:
    return store.transitions_at(np.arange(store.length))


def assert_holds(store: TransitionStore, model: list[Transition]) -> None:
    held = held_by(store)
    assert len(held) == len(model)
    for one, other in zip(held, model):
        assert_same(one, other)


def restored(store: TransitionStore) -> TransitionStore:
    other = TransitionStore(None if store.grows else store.capacity)
    other.set_state(copy.deepcopy(store.get_state()))
    return other


def n_step_episode(length: int, steps: Steps) -> list[Transition]:
    # of a discount that keeps the sums exact in the float32 of a Batch
    made = as_episode(steps.episode(length), discount=0.5, n_step=2)
    made.update_transitions_rewards_and_bootstrap_data()
    return made.transitions


def apply(operation: str, argument, store: TransitionStore, model: list[Transition], steps: Steps) -> TransitionStore:
    if operation in ("episode", "single steps"):
        for transition in steps.episode(argument, ends=operation == "episode"):
            store.append(transition)
            model.append(transition)
    elif operation == "n-step episode":
        for transition in n_step_episode(argument, steps):
            store.append(transition)
            model.append(transition)
    elif operation in ("chunk", "n-step chunk"):
        transitions = steps.episode(argument) if operation == "chunk" else n_step_episode(argument, steps)
        store.extend(Batch(transitions))
        model.extend(transitions)
    elif operation == "clear":
        store.clear()
        model.clear()
    elif operation == "restore":
        return restored(store)
    elif model:
        change_order(operation, argument, store, model)
    return store


def change_order(operation: str, argument, store: TransitionStore, model: list[Transition]) -> None:
    if operation == "remove":
        position = int(argument * len(model))
        store.remove(position)
        del model[position]
    elif operation == "drop last":
        count = int(argument * len(model))
        store.drop_last(count)
        del model[len(model) - count :]
    elif operation == "reverse":
        store.reorder(np.arange(len(model))[::-1])
        model.reverse()
    elif operation == "repeat" and (store.grows or len(model) < store.capacity):
        position = int(argument * len(model))
        store.make_room(1)
        store.repeat(np.array([position]))
        model.append(model[position])


@settings(max_examples=150, deadline=None)
@given(kind=KINDS, capacity=st.sampled_from([None, 1, 2, 5, 20]), operations=OPERATIONS)
def test_holds_the_newest_transitions(kind, capacity, operations):
    store, model, steps = TransitionStore(capacity), [], Steps(kind)
    for operation, argument in operations:
        store = apply(operation, argument, store, model, steps)
        if capacity is not None:
            del model[: max(0, len(model) - capacity)]
        assert_holds(store, model)


@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from(["stack", "image"]), capacity=st.integers(4, 24), operations=OPERATIONS)
def test_oldest_go_early_where_frames_are_many(kind, capacity, operations):
    store, model, steps = TransitionStore(capacity), [], Steps(kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FrameObservations, "_ring_size", lambda self, capacity: capacity + 2 * self.depth)
        for operation, argument in operations:
            store = apply(operation, argument, store, model, steps)
            assert store.length <= capacity
            del model[: len(model) - store.length]
            assert_holds(store, model)


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(["stack", "image"]), operations=OPERATIONS)
def test_a_store_without_limit_keeps_all_frames(kind, operations):
    steps, model = Steps(kind), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rl_coach.memories.transition_store._FIRST_CAPACITY", 2)
        patch.setattr(FrameObservations, "_ring_size", lambda self, capacity: capacity + 2 * self.depth)
        store = TransitionStore(None)
        for operation, argument in operations:
            store = apply(operation, argument, store, model, steps)
        assert_holds(store, model)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("contiguous", [True, False])
def test_stacks_come_back_as_the_filter_shows_them(axis, contiguous):
    store, transitions = TransitionStore(10), Steps("stack", axis).episode(6)
    store.contiguous_frames = contiguous
    for transition in transitions:
        store.append(transition)
    batch = store.batch_at(np.arange(6))
    assert batch.state_columns["observation"].flags.c_contiguous or not contiguous
    for row, transition in enumerate(transitions):
        np.testing.assert_array_equal(
            batch.states(["observation"])["observation"][row], transition.state["observation"]
        )
        np.testing.assert_array_equal(
            batch.next_states(["observation"])["observation"][row], transition.next_state["observation"]
        )


@pytest.mark.parametrize("depth, dtype", [(4, np.uint8), (2, np.uint16), (2, np.float32), (3, np.uint8)])
def test_stacks_of_any_depth_and_dtype(depth, dtype):
    rng = np.random.default_rng(0)
    frames = [(rng.random((5, 4)) * 250).astype(dtype) for _ in range(12)]
    stacks = [Stack(frames[start : start + depth], -1) for start in range(12 - depth)]
    store = TransitionStore(20)
    for before, after in itertools.pairwise(stacks):
        store.append(Transition({"o": before}, 0, 0.0, {"o": after}, False))
    store.append(Transition({"o": stacks[0]}, 0, 0.0, {"o": stacks[5]}, False))  # not moved on by one frame
    batch = store.batch_at(np.arange(store.length))
    expected = [np.asarray(s) for s in [*stacks[:-1], stacks[0]]], [np.asarray(s) for s in [*stacks[1:], stacks[5]]]
    np.testing.assert_array_equal(batch.state_columns["o"], expected[0])
    np.testing.assert_array_equal(batch.next_state_columns["o"], expected[1])
    assert batch.state_columns["o"].dtype == dtype


@pytest.mark.parametrize("kind", ["stack", "image"])
def test_each_frame_is_stored_once(kind):
    store, steps = TransitionStore(1000), Steps(kind)
    for _ in range(10):
        for transition in steps.episode(100):
            store.append(transition)
    assert store.observations["observation"].next_frame == 10 * 101


@pytest.mark.parametrize("kind", ["stack", "image"])
def test_equal_frames_in_a_chunk_are_stored_once(kind):
    store = TransitionStore(1000)
    store.append(Steps(kind).episode(1)[0])
    store.extend(Batch(Steps(kind).episode(100)))
    assert store.observations["observation"].next_frame == 2 + 101


def test_a_chunk_of_frames_travels_without_repeating_them():
    store, other = TransitionStore(50), TransitionStore(50)
    model = Steps("stack").episode(40)
    for transition in model:
        store.append(transition)
    chunk = store.chunk()
    assert isinstance(chunk.state_columns["observation"], FrameStacks)
    assert len(chunk.state_columns["observation"].frames) == 41
    other.extend(chunk)
    assert_holds(other, model)
    np.testing.assert_array_equal(np.asarray(chunk.state_columns["observation"])[7], model[7].state["observation"])


def test_two_buffers_of_an_environment_are_not_mistaken_for_each_other():
    """An environment that writes its observations into two arrays in turn."""
    store, buffers, seen = TransitionStore(100), [np.zeros((32, 32), np.uint8) for _ in range(2)], []
    for step in range(20):
        before, after = buffers[step % 2], buffers[(step + 1) % 2]
        after[:] = step + 1
        seen.append((before[0, 0].item(), after[0, 0].item()))
        store.append(Transition({"o": before}, 0, 0.0, {"o": after}, False))
    batch = store.batch_at(np.arange(20))
    before, after = batch.state_columns["o"][:, 0, 0], batch.next_state_columns["o"][:, 0, 0]
    assert list(zip(before.tolist(), after.tolist())) == seen


def test_frames_that_are_gone_are_not_recognised_by_a_new_frames_id():
    store = TransitionStore(3)
    for step in range(3000):
        frame = np.full((2, 2), step % 251, np.uint8)
        store.append(Transition({"o": Stack([frame], 0)}, 0, 0.0, {"o": Stack([frame + 1], 0)}, False))
        assert store.batch_at(np.array([store.length - 1])).state_columns["o"].max() == step % 251
        del frame
        if step % 500 == 0:
            gc.collect()


def test_interleaved_environments_share_one_memory():
    store, sources = TransitionStore(1000), [Steps("stack") for _ in range(8)]
    for source in sources[1:]:
        source._numbers = sources[0]._numbers
    model = [t for steps in zip(*(source.episode(30) for source in sources)) for t in steps]
    for transition in model:
        store.append(transition)
    assert_holds(store, model)
    assert store.observations["observation"].next_frame == 8 * 31


def test_the_memory_does_not_see_later_changes_of_an_array():
    state, action, info = np.zeros(3), np.zeros(2), {"numbers": np.zeros(2), "text": "a", "odd": np.array(["x"])}
    store = TransitionStore(5)
    store.append(Transition({"o": state}, action, 0.0, {"o": state}, False, info))
    state[:], action[:], info["numbers"][:], info["odd"][0] = 1, 1, 1, "y"
    held = held_by(store)[0]
    assert held.state["o"].max() == held.action.max() == held.info["numbers"].max() == 0
    assert held.info["odd"][0] == "x"


def test_batches_are_fresh_and_ready():
    store = TransitionStore(5)
    for transition in Steps().episode(3):
        store.append(transition)
    batch = store.batch_at(np.arange(3))
    assert batch.rewards().dtype == np.float32
    assert batch.game_overs().dtype == batch.terminateds().dtype == bool
    batch.state_columns["observation"][:] = -1
    batch.reward_column[:] = -1
    assert store.batch_at(np.arange(3)).state_columns["observation"].min() >= 0
    assert store.batch_at(np.arange(3)).reward_column.min() >= 0


INFO_VALUES = st.one_of(
    st.integers(-5, 5),
    st.floats(-1, 1),
    st.booleans(),
    st.sampled_from(["text", "longer text"]),
    st.none(),
    st.lists(st.floats(0, 1), min_size=2, max_size=2).map(np.array),
    st.lists(st.integers(0, 5), max_size=2),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2),
)


@settings(max_examples=150, deadline=None)
@given(
    infos=st.lists(st.dictionaries(st.sampled_from(["a", "b", "c"]), INFO_VALUES), min_size=1, max_size=12),
    capacity=st.sampled_from([None, 3, 100]),
    by_state=st.booleans(),
)
def test_info_is_never_lost(infos, capacity, by_state):
    store, model = TransitionStore(capacity), []
    for info in infos:
        transition = Steps().episode(1)[0]
        transition.info = info
        store.append(transition)
        model.append(transition)
    model = model if capacity is None else model[-capacity:]
    if by_state:
        store = restored(store)
    else:
        other = TransitionStore(None)
        other.extend(store.chunk())
        store = other
    assert_holds(store, model)


def test_how_many_rewards_are_summed_takes_no_room_where_it_is_always_one():
    store = TransitionStore(10)
    for transition in Steps().episode(4):
        store.append(transition)
    assert store.n_steps is None and store.batch_at(np.arange(4)).n_step_column is None
    for transition in n_step_episode(3, Steps()):
        store.append(transition)
    batch = store.batch_at(np.arange(7))
    assert batch.n_step_column.dtype == np.int32
    assert batch.n_steps().tolist() == [1, 1, 1, 1, 2, 2, 1]


def with_returns(returns):
    transitions = Steps().episode(len(returns))
    for transition, value in zip(transitions, returns):
        transition._n_step_discounted_rewards = value
    return transitions


def returns_of(store):
    return [t._n_step_discounted_rewards for t in held_by(store)]


def test_known_returns_that_are_not_numbers_are_no_unknown_ones():
    store = TransitionStore(10)
    for transition in with_returns([None, float("nan"), 2.0, None]):
        store.append(transition)
    restored, refilled = TransitionStore(10), TransitionStore(None)
    restored.set_state(store.get_state())
    refilled.extend(store.chunk())
    refilled.repeat(np.arange(2))
    for one in (store, restored, refilled):
        first, second, *later = returns_of(one)
        assert first is None and np.isnan(second) and later[:2] == [2.0, None]
        assert np.isnan(one.batch_at(np.array([1, 2])).n_step_discounted_rewards()).tolist() == [True, False]
        assert one.batch_at(np.arange(3)).return_column is None
        assert not one.has_returns(one.rows(np.arange(2))) and one.has_returns(one.rows(np.arange(1, 3)))
    assert returns_of(refilled)[4] is None and np.isnan(returns_of(refilled)[5])
    chunk = store.chunk()
    assert chunk[0]._n_step_discounted_rewards is None and np.isnan(chunk[1].n_step_discounted_rewards)
    with pytest.raises(ValueError, match="known only for transitions of ended episodes"):
        chunk.n_step_discounted_rewards()


def test_a_state_that_marks_unknown_returns_by_nan_is_read():
    store = TransitionStore(10)
    for transition in with_returns([1.0, None, 2.0]):
        store.append(transition)
    state = store.get_state()
    del state["has_return"]
    restored = TransitionStore(10)
    restored.set_state(state)
    assert returns_of(restored) == [1.0, None, 2.0]


def test_info_of_numbers_is_a_typed_column():
    store = TransitionStore(10)
    for step, transition in enumerate(Steps().episode(4)):
        transition.info = {"count": step, "value": 0.5, "probabilities": np.array([0.25, 0.75])}
        if step == 2:
            del transition.info["value"]
        store.append(transition)
    info = store.batch_at(np.arange(4)).info_columns
    assert info["count"].dtype == np.int64 and info["count"].tolist() == [0, 1, 2, 3]
    assert np.isnan(info["value"][2]) and info["value"].dtype == np.float64
    assert info["probabilities"].shape == (4, 2)


def test_a_key_that_comes_later_is_missing_before():
    store = TransitionStore(10)
    first, second = Steps().episode(2)
    second.info = {"lives": 3}
    store.append(first)
    store.append(second)
    assert [t.info for t in held_by(store)] == [{}, {"lives": 3}]
    assert store.batch_at(np.arange(2)).info("lives").tolist() == [0, 3]


def test_integers_widen_to_hold_what_comes():
    store = TransitionStore(10)
    store.append(Transition({"o": np.array([1, 2], np.uint8)}, 1, 0, {"o": np.array([1, 2], np.uint8)}, False))
    store.append(Transition({"o": np.array([0.5, 2])}, 1.5, 0.25, {"o": np.array([300, 2])}, False))
    held = held_by(store)
    assert held[0].state["o"].tolist() == [1, 2] and held[1].state["o"].tolist() == [0.5, 2]
    assert held[1].next_state["o"].tolist() == [300, 2]
    assert (held[0].action, held[1].action, held[1].reward) == (1, 1.5, 0.25)


def test_actions_of_any_kind():
    actions = [[1, np.array([0.5, 0.5])], [0, np.array([1.0, 0.0])]]
    store = TransitionStore(10)
    for action in actions:
        store.append(Transition({"o": np.zeros(1)}, action, 0.0, {"o": np.zeros(1)}, False))
    assert [t.action for t in held_by(store)] == actions


@pytest.mark.parametrize(
    "state, message",
    [
        ({"observation": np.zeros(3, np.float32)}, "shape"),
        ({"observatoin": np.zeros(2, np.float32)}, "did you mean 'observation'"),
        ({"observation": np.zeros(2, np.float32), "mask": np.zeros(2)}, "mask"),
        ({}, "observation"),
    ],
)
def test_odd_observations_are_refused_and_change_nothing(state, message):
    store, model = TransitionStore(10), Steps().episode(3)
    for transition in model:
        store.append(transition)
    with pytest.raises(CoachError, match=message):
        store.append(Transition(state, 0, 0.0, state, False))
    assert_holds(store, model)


@pytest.mark.parametrize(
    "stack",
    [Stack([np.zeros((2, 3), np.uint8)] * 2, -1), Stack([np.zeros((2, 2), np.uint8)] * 3, -1), np.zeros((2, 3))],
)
def test_odd_stacks_are_refused(stack):
    store = TransitionStore(10)
    store.append(Steps("stack").episode(1)[0])
    with pytest.raises(CoachError, match="observation"):
        store.append(Transition({"observation": stack}, 0, 0.0, {"observation": stack}, False))


def test_a_chunk_larger_than_the_memory_leaves_its_end():
    store, model = TransitionStore(7), Steps().episode(20)
    store.extend(Batch(model))
    assert_holds(store, model[-7:])
    with pytest.raises(CoachError, match="max_size"):
        store.make_room(8)


def test_a_size_that_no_machine_has_is_a_clear_error():
    store = TransitionStore(10**12)
    with pytest.raises(CoachError, match="max_size"):
        store.append(Transition({"o": np.zeros((300, 300))}, 0, 0.0, {"o": np.zeros((300, 300))}, False))


def test_a_state_of_another_size_is_refused():
    store = TransitionStore(5)
    with pytest.raises(CoachError, match="max_size"):
        store.set_state(TransitionStore(6).get_state())


def test_a_large_observation_is_an_image():
    assert np.zeros((32, 32), np.uint8).nbytes == columns.LARGE_OBSERVATION
    store = TransitionStore(5)
    store.append(Steps("image").episode(1)[0])
    assert isinstance(store.observations["observation"], FrameObservations)


def test_objects_of_format_1_are_read():
    store, transition = TransitionStore(5), Steps().episode(1)[0]
    transition.info["plan"] = [1, np.array([0.5, 2.0])]
    store.append(transition)
    state = store.get_state()
    state["info"]["plan"]["values"] = ['[1, {"__array__": [0.5, 2.0], "dtype": "<f8", "shape": [2]}]']
    restored_store = TransitionStore(5)
    restored_store.set_state(state)
    number, array = held_by(restored_store)[0].info["plan"]
    assert number == 1 and array.tolist() == [0.5, 2.0]


def one_hot(place: int, size: int = 100_000) -> np.ndarray:
    vector = np.zeros(size, np.float32)
    vector[place] = 1
    return vector


def numbered(count: int) -> TransitionStore:
    store = TransitionStore(1000)
    for number in range(count):
        state, following = {"observation": one_hot(number)}, {"observation": one_hot(number + 1)}
        store.append(Transition(state, 0, 1.0, following, False))
    return store


def test_a_large_discrete_observation_needs_the_memory_of_its_number():
    store = numbered(100)
    column = store.observations["observation"]
    assert isinstance(column, OneHotObservations) and column.states.values.nbytes == 4 * 1000
    assert store.batch(np.array([7])).state_columns["observation"].argmax() == 7
    saved = store.get_state()["observations"]["observation"]
    assert sum(part.nbytes for part in saved.values() if isinstance(part, np.ndarray)) == 2 * 4 * 100
    other = restored(store)
    assert_holds(other, held_by(store))


def test_vectors_of_older_files_become_numbers():
    store = numbered(20)
    frames = np.stack([one_hot(number) for number in range(21)])
    state = store.get_state()
    indices = np.stack([np.arange(20), np.arange(1, 21)], axis=1).astype(np.int32)
    state["observations"] = {"observation": {"frames": frames, "indices": indices, "axis": None}}
    other = TransitionStore(1000)
    other.set_state(state)
    assert isinstance(other.observations["observation"], OneHotObservations)
    assert_holds(other, held_by(store))


def test_a_vector_of_another_length_is_refused():
    store = numbered(2)
    other = {"observation": one_hot(3, 99_999)}
    with pytest.raises(CoachError, match=r"'observation' holds float32\[100000\], but this chunk has float32\[99999\]"):
        store.append(Transition(other, 0, 1.0, other, False))


def test_vectors_of_another_form_are_restored_whatever_the_first_one_is():
    store, model, steps = TransitionStore(5), [], Steps("numbers")
    for operation, length in (("episode", 5), ("episode", 9), ("episode", 9), ("restore", None), ("episode", 2)):
        store = apply(operation, length, store, model, steps)
        del model[: max(0, len(model) - 5)]
        assert_holds(store, model)
        assert_holds(restored(store), model)
