import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation import ObservationClippingFilter, ObservationStackingFilter
from rl_coach.filters.observation.observation_stacking_filter import LazyStack
from rl_coach.spaces import PlanarMapsObservationSpace, TensorObservationSpace, VectorObservationSpace
from rl_coach.utils import CoachError


def frames(stack):
    return [int(frame[0]) for frame in stack.history]


def fed(stacking, *values):
    return [frames(stacking.filter(np.array([value]))) for value in values]


def test_the_first_observation_repeats():
    assert fed(ObservationStackingFilter(3), 1, 2, 3, 4) == [[1, 1, 1], [1, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_an_episode_starts_anew_after_a_reset():
    stacking = ObservationStackingFilter(2)
    fed(stacking, 1, 2)
    stacking.reset()
    assert fed(stacking, 7) == [[7, 7]]


def test_without_an_update_the_next_call_does_not_know():
    stacking = ObservationStackingFilter(2)
    assert frames(stacking.filter(np.array([5]), update_internal_state=False)) == [5, 5]
    assert fed(stacking, 1) == [[1, 1]]
    assert frames(stacking.filter(np.array([5]), update_internal_state=False)) == [1, 5]
    assert fed(stacking, 2) == [[1, 2]]


def test_following_stacks_share_their_frames():
    stacking = ObservationStackingFilter(3)
    first, second = stacking.filter_batch(np.arange(2).reshape(2, 1))
    assert second.history[1] is first.history[2]
    assert first.history[0] is first.history[1]


def test_a_buffer_that_the_environment_uses_again_does_no_harm():
    stacking = ObservationStackingFilter(2)
    buffer = np.array([1])
    stack = stacking.filter(buffer)
    buffer[0] = 9
    assert frames(stack) == [1, 1]


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2])
def test_the_array_of_a_lazy_stack(axis):
    history = [np.full((2, 5), value, dtype=np.uint8) for value in range(3)]
    stack = LazyStack(history, axis)
    expected = np.stack(history, axis=axis)
    assert np.array_equal(np.asarray(stack), expected)
    assert (stack.shape, stack.dtype, stack.ndim) == (expected.shape, expected.dtype, expected.ndim)
    assert np.asarray(stack, dtype=np.float32).dtype == np.float32
    assert np.array_equal(np.array([stack, stack])[1], expected)
    with pytest.raises(ValueError, match="without a copy"):
        stack.__array__(copy=False)


def test_a_lazy_stack_keeps_its_own_history():
    history = [np.zeros(1), np.ones(1)]
    stack = LazyStack(history)
    history.append(np.ones(1))
    assert len(stack.history) == 2 and stack.axis == 0


@given(size=st.integers(1, 4), before=st.integers(0, 5), after=st.integers(1, 5))
def test_a_restored_state_continues_exactly(size, before, after):
    stacking, restored = ObservationStackingFilter(size), ObservationStackingFilter(size)
    fed(stacking, *range(before))
    restored.set_state(stacking.get_state())
    assert fed(restored, *range(50, 50 + after)) == fed(stacking, *range(50, 50 + after))


def test_an_episode_in_between_leaves_the_stack_as_it_was():
    stacking = ObservationStackingFilter(2)
    input_filter = InputFilter({"observation": {"clip": ObservationClippingFilter(), "stack": stacking}})
    fed(stacking, 1, 2)
    other = input_filter.for_another_actor()
    assert other.observation_filters["observation"]["clip"] is input_filter.observation_filters["observation"]["clip"]
    fed(other.observation_filters["observation"]["stack"], 7, 8, 9)
    state = input_filter.episode_state()
    input_filter.reset()
    input_filter.set_episode_state(state)
    assert fed(stacking, 3) == [[2, 3]]


def test_a_state_of_another_stack_is_refused():
    stacking = ObservationStackingFilter(2)
    fed(stacking, 1)
    with pytest.raises(CoachError, match=r"does not fit an ObservationStackingFilter\(3\)"):
        ObservationStackingFilter(3).set_state(stacking.get_state())
    with pytest.raises(CoachError, match="does not fit"):
        stacking.set_state({})


def test_stacked_planes_are_planar_maps():
    space = ObservationStackingFilter(4).get_filtered_observation_space(TensorObservationSpace((84, 84), 0, 255))
    assert isinstance(space, PlanarMapsObservationSpace)
    assert tuple(space.shape) == (84, 84, 4) and space.channels == 4
    first = ObservationStackingFilter(4, 0).get_filtered_observation_space(TensorObservationSpace((84, 84), 0, 255))
    assert tuple(first.shape) == (4, 84, 84) and first.channels == 4


def test_stacked_vectors_are_one_vector():
    stacking = ObservationStackingFilter(2)
    low = np.array([-1, -2, -3])
    space = stacking.get_filtered_observation_space(VectorObservationSpace(3, low, -low))
    assert isinstance(space, VectorObservationSpace) and space.low.tolist() == [-1, -1, -2, -2, -3, -3]
    stacking.filter(np.array([1, 2, 3]))
    assert stacking.filter(np.array([-1, -2, -3])).tolist() == [1, -1, 2, -2, 3, -3]


def test_other_stacks_are_tensors():
    space = ObservationStackingFilter(4).get_filtered_observation_space(TensorObservationSpace((2, 3, 5), -1, 1))
    assert isinstance(space, TensorObservationSpace) and tuple(space.shape) == (2, 3, 5, 4)


def test_a_space_other_than_that_of_what_is_stacked_is_refused():
    stacking = ObservationStackingFilter(2)
    stacking.filter(np.zeros((20, 30, 1)))
    stacking.validate_input_observation_space(TensorObservationSpace((20, 30, 1)))
    with pytest.raises(CoachError, match=r"already stacks observations of the shape \(20, 30, 1\)"):
        stacking.validate_input_observation_space(TensorObservationSpace((5, 10, 20)))
    stacking.reset()
    stacking.validate_input_observation_space(TensorObservationSpace((5, 10, 20)))


def test_mistakes():
    for size in (0, 1.5, "4"):
        with pytest.raises(CoachError, match="is not an int of at least 1"):
            ObservationStackingFilter(size)
    with pytest.raises(CoachError, match="stacking_axis 1 is not possible; choose one from -2 to 0, -1 to put it last"):
        ObservationStackingFilter(2, 1).validate_input_observation_space(VectorObservationSpace(3))
    ObservationStackingFilter(2, 0).validate_input_observation_space(VectorObservationSpace(3))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stacks_of_actors_are_those_of_a_filter_for_each(axis):
    """The episodes begin in different steps, and go on elsewhere in between; one actor is between two episodes then."""
    rng = np.random.default_rng(0)
    alone, stacks = (
        [ObservationStackingFilter(3, axis) for _ in range(3)],
        ObservationStackingFilter(3, axis).stacks_of(3),
    )

    def begin(*indices):
        observations = rng.random((len(indices), 2, 4))
        for index in indices:
            alone[index].reset()
        expected = [np.asarray(alone[index].filter(one)) for index, one in zip(indices, observations)]
        np.testing.assert_array_equal(stacks.begin(np.array(indices), observations), expected)

    def go_on():
        observations = rng.random((3, 2, 4))
        expected = [np.asarray(member.filter(one)) for member, one in zip(alone, observations)]
        np.testing.assert_array_equal(stacks.add(observations), expected)

    begin(0, 1, 2)
    go_on()
    begin(1)
    go_on()
    begin(2, 0)
    go_on()
    histories = stacks.histories()
    for frames_of_actor, member in zip(histories, alone):
        np.testing.assert_array_equal(frames_of_actor, member.episode_state())
    stacks = ObservationStackingFilter(3, axis).stacks_of(3)
    stacks.take([histories[0], [], histories[2]])
    begin(1)
    go_on()
