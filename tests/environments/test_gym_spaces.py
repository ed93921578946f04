from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from rl_coach.environments.gym_environment import ObservationSpaceType
from rl_coach.environments.gym_spaces import StateReader, action_space_of, observation_space_of, simulator_columns
from rl_coach.filters.description import DescriptionReader, describe_space
from rl_coach.filters.observation.observation_clipping_filter import ObservationClippingFilter
from rl_coach.filters.observation.observation_move_axis_filter import ObservationMoveAxisFilter
from rl_coach.space_values import mask_space_of, part_of_observation, read_masks
from rl_coach.spaces import (
    ActionMaskSpace,
    BoxActionSpace,
    DiscreteActionSpace,
    ImageObservationSpace,
    MultiDiscreteActionSpace,
    OneHotObservationSpace,
    PlanarMapsObservationSpace,
    TensorObservationSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError

V3 = spaces.Box(-1, 1, (3,))


def bytes_of(*shape):
    return spaces.Box(0, 255, shape, np.uint8)


def reader_of(space, observation, info=None, actions=4, **options):
    return StateReader(space, DiscreteActionSpace(actions), None, "level", observation, info or {}, **options)


@pytest.mark.parametrize(
    ("space", "kind", "expected", "shape"),
    [
        (spaces.Box(-1, 1, (4,)), None, VectorObservationSpace, (4,)),
        (spaces.Box(-1, 1, ()), None, VectorObservationSpace, (1,)),
        (bytes_of(210, 160, 3), None, ImageObservationSpace, (210, 160, 3)),
        (bytes_of(84, 84, 1), None, ImageObservationSpace, (84, 84, 1)),
        (bytes_of(84, 84), None, ImageObservationSpace, (84, 84, 1)),
        (bytes_of(3, 84, 84), None, ImageObservationSpace, (84, 84, 3)),
        (bytes_of(4, 84, 84), None, ImageObservationSpace, (84, 84, 4)),
        (bytes_of(12, 84, 96), None, PlanarMapsObservationSpace, (84, 96, 12)),
        (spaces.Box(0, 1, (2, 64, 64)), None, PlanarMapsObservationSpace, (64, 64, 2)),
        (spaces.Box(0, 1, (6, 7, 8)), None, PlanarMapsObservationSpace, (6, 7, 8)),
        (bytes_of(84, 84, 7), None, PlanarMapsObservationSpace, (84, 84, 7)),
        (spaces.Box(0, 1, (8, 8, 3)), None, PlanarMapsObservationSpace, (8, 8, 3)),
        (spaces.Box(0, 1, (8, 8, 3)), ObservationSpaceType.Image, ImageObservationSpace, (8, 8, 3)),
        (spaces.Box(0, 1, (5, 6)), None, VectorObservationSpace, (30,)),
        (spaces.Box(0, 1, (5, 6)), ObservationSpaceType.Tensor, TensorObservationSpace, (5, 6)),
        (spaces.Box(0, 1, (2, 3, 4, 5)), None, TensorObservationSpace, (2, 3, 4, 5)),
        (bytes_of(84, 84, 3), ObservationSpaceType.Tensor, TensorObservationSpace, (84, 84, 3)),
        (spaces.Box(0, 1, (5, 6)), ObservationSpaceType.Vector, VectorObservationSpace, (30,)),
        (spaces.Discrete(5), None, OneHotObservationSpace, (5,)),
        (spaces.MultiDiscrete([2, 3]), None, OneHotObservationSpace, (5,)),
        (spaces.MultiBinary(6), None, VectorObservationSpace, (6,)),
        (spaces.MultiBinary((2, 3)), None, VectorObservationSpace, (6,)),
    ],
)
def test_observation_spaces(space, kind, expected, shape):
    ours, convert = observation_space_of(space, kind, "level")
    assert type(ours) is expected
    value = space.sample()
    assert ours.contains(value if convert is None else convert(value))
    assert tuple(ours.shape) == shape


def test_channels_are_moved_to_the_last_axis():
    space = bytes_of(3, 8, 9)
    ours, convert = observation_space_of(space, None, "level")
    image = space.sample()
    np.testing.assert_array_equal(convert(image), image.transpose(1, 2, 0))
    np.testing.assert_array_equal(convert(image[None]), image.transpose(1, 2, 0)[None])
    assert (ours.channels_axis, ours.channels, ours.raw_shape) == (-1, 3, (3, 8, 9))
    moving = ObservationMoveAxisFilter(0, 2)  # as presets had it
    assert moving.get_filtered_observation_space(ours) is ours
    np.testing.assert_array_equal(moving.filter(convert(image)), convert(image))
    np.testing.assert_array_equal(moving.filter_batch(convert(image[None])), convert(image[None]))


def test_discrete_observations_become_one_hot_vectors():
    _, convert = observation_space_of(spaces.Discrete(3, start=5), None, "level")
    np.testing.assert_array_equal(convert(np.int64(6)), [0, 1, 0])
    _, convert = observation_space_of(spaces.MultiDiscrete([2, 3]), None, "level")
    np.testing.assert_array_equal(convert(np.array([1, 0])), [0, 1, 1, 0, 0])


def test_a_number_of_many_needs_no_table_of_all():
    ours, convert = observation_space_of(spaces.Discrete(10_000_000, start=2), None, "level")
    assert int(ours.shape[0]) == 10_000_000  # a table of all would take 400 TB
    assert np.flatnonzero(convert(np.int64(7))).tolist() == [5]


@pytest.mark.parametrize(
    ("space", "outside"),
    [
        (spaces.Discrete(3, start=5), np.int64(4)),
        (spaces.Discrete(3), 3),
        (spaces.Discrete(3), np.array([0, -1])),
        (spaces.Discrete(10_000_000), -1),
        (spaces.MultiDiscrete([2, 3]), np.array([2, 0])),
    ],
)
def test_a_number_outside_its_space_is_an_error_and_never_another_number(space, outside):
    _, convert = observation_space_of(space, None, "level")
    with pytest.raises(CoachError, match=r"an observation has the numbers .* but its space has the numbers from"):
        convert(outside)


@pytest.mark.parametrize("space", [spaces.Graph(V3, None), spaces.Text(5)])
def test_other_spaces_are_errors_that_name_level_and_observation(space):
    with pytest.raises(CoachError, match=r"'level'.*'camera'.*not supported"):
        observation_space_of(space, None, "level", "camera")
    with pytest.raises(CoachError, match=r"'level': the action space .* is not supported"):
        action_space_of(space, "level")


def test_discrete_actions_may_start_anywhere():
    ours, convert = action_space_of(spaces.Discrete(3, start=-1), "level", ["left", "stay", "right"])
    assert (type(ours), ours.num_actions, convert(2)) == (DiscreteActionSpace, 3, 1)
    assert ours.get_description(0) == "left"
    assert action_space_of(spaces.Discrete(3), "level")[1] is None


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(np.array([-1, 0]), np.array([1, 2]), dtype=np.float32),
        spaces.Box(-0.1, 0.1, (2, 3), np.float32),
        spaces.Box(-1, 1, (2, 1, 2), np.float64),
        spaces.Box(0, 9, (2, 2), np.int64),
        spaces.Box(0, 255, (3,), np.uint8),
        spaces.Box(-1, 1, (1,), np.float16),
        spaces.Box(0.0, 1.0, ()),
    ],
)
def test_box_actions_have_the_shape_and_the_dtype_of_the_environment(space):
    ours, convert = action_space_of(space, "level")
    assert (type(ours), ours.num_dimensions) == (BoxActionSpace, 1)
    for action in (ours.sample(), ours.low.astype(np.float64), ours.high.astype(np.float64), ours.default_action):
        raw = convert(action)
        assert space.contains(np.asarray(raw)) and np.asarray(raw).dtype == space.dtype
        np.testing.assert_array_equal(convert(ours.from_raw(raw)), raw)
    rows = simulator_columns(ours, np.stack([ours.low - 1, ours.high + 1]))
    assert rows.shape == (2, *space.shape) and all(space.contains(np.asarray(row)) for row in rows)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint64])
def test_the_largest_whole_numbers_are_no_overflow(dtype):
    space = spaces.Box(np.iinfo(dtype).min, np.iinfo(dtype).max, (2,), dtype)
    ours, convert = action_space_of(space, "level")
    for action in (ours.low, ours.high, np.float32(2**70) * np.ones(2, np.float32), -np.ones(2, np.float32) * 2**70):
        raw = convert(ours.clip_action_to_space(action.astype(np.float32)))
        assert space.contains(raw) and (raw > 0).all() == (action > 0).all()


def test_numbers_are_rounded_to_integers():
    _, convert = action_space_of(spaces.Box(0, 9, (2,), np.int64), "level")
    assert convert(np.array([1.6, 3.2])).tolist() == [2, 3]


@pytest.mark.parametrize("shape", [3, (2, 2)])
def test_multi_binary_actions_become_their_product(shape):
    space = spaces.MultiBinary(shape)
    ours, convert = action_space_of(space, "level")
    made = [convert(action) for action in range(ours.num_actions)]
    assert len({one.tobytes() for one in made}) == 2 ** space.sample().size
    assert all(space.contains(one) and ours.from_raw(one) == action for action, one in enumerate(made))


def test_multi_discrete_actions_become_their_product():
    space = spaces.MultiDiscrete([2, 3], start=[0, 5])
    ours, convert = action_space_of(space, "level")
    assert ours.num_actions == 6
    assert [convert(a).tolist() for a in range(6)] == [[0, 5], [0, 6], [0, 7], [1, 5], [1, 6], [1, 7]]
    assert all(space.contains(convert(a)) for a in range(6))
    assert ours.get_description(4) == "1, 6"


@pytest.mark.parametrize(
    "space",
    [
        spaces.MultiDiscrete([17, 17, 17], start=[1, -2, 5]),
        spaces.MultiDiscrete([[9, 2], [300, 4]]),
        spaces.MultiBinary(70),
        spaces.Tuple([spaces.Discrete(4000, start=3), spaces.MultiBinary((2, 2))]),
    ],
)
def test_too_many_combinations_become_a_choice_for_each_part(space):
    ours, convert = action_space_of(space, "level")
    assert type(ours) is MultiDiscreteActionSpace
    masks = mask_space_of(ours)
    mask = masks.encode(np.zeros(masks.raw_shape, np.int8))
    assert [part.sum() for part in mask] == ours.counts
    for action in (ours.sample(), ours.sample_with_info(mask).action, ours.default_action):
        raw = convert(action)
        assert ours.contains(action) and space.contains(raw)
        np.testing.assert_array_equal(ours.from_raw(raw), action)
    assert not ours.contains(ours.counts) and not ours.contains(ours.from_raw(None))


def test_masked_choices_are_never_drawn():
    ours = action_space_of(spaces.MultiDiscrete([100, 3, 50]), "level")[0]
    masks = mask_space_of(ours)
    allowed = [[7], [0, 2], [49]]
    raw = np.concatenate([np.isin(np.arange(count), one) for count, one in zip(ours.counts, allowed)])
    drawn = {tuple(ours.sample_with_info(masks.encode(raw)).action.tolist()) for _ in range(30)}
    assert drawn == {(7, 0, 49), (7, 2, 49)}
    assert masks.action_nearest(masks.encode(raw), ours.default_action).tolist() == [7, 0, 49]


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2, start=5)]), DiscreteActionSpace),
        (spaces.Dict({"move": spaces.MultiDiscrete([2, 3]), "fire": spaces.MultiBinary(1)}), DiscreteActionSpace),
        (spaces.Dict({"arm": spaces.Box(-1, 1, (2, 2)), "grip": spaces.Box(0, 5, (), np.int64)}), BoxActionSpace),
        (spaces.Tuple([spaces.Discrete(3, start=2), spaces.Dict({1: spaces.Box(-1, 1, (2,))})]), BoxActionSpace),
    ],
)
def test_tuples_and_dicts_of_actions(space, kind):
    ours, convert = action_space_of(space, "level")
    assert type(ours) is kind
    for _ in range(20):
        action = ours.sample()
        raw = convert(action)
        assert space.contains(raw)
        again = convert(ours.from_raw(raw))
        assert str(again) == str(raw)
    described = DescriptionReader().space(describe_space(ours))
    assert str(described.to_raw(action)) == str(raw)


def test_a_plain_observation_passes_as_it_is():
    reader = reader_of(spaces.Box(-1, 1, (2,)), np.zeros(2, np.float32))
    observation = np.ones(2, np.float32)
    state = reader(observation, {})
    assert list(state) == ["observation"]
    assert state["observation"] is observation


def test_a_dict_keeps_its_keys_and_nested_ones_are_joined():
    space = spaces.Dict(
        {"camera": bytes_of(8, 8, 3), "body": spaces.Dict({"arm": spaces.Box(-1, 1, (2,)), "mode": spaces.Discrete(2)})}
    )
    reader = reader_of(space, space.sample())
    state = reader(space.sample(), {})
    assert set(state) == set(reader.state_space.sub_spaces) == {"camera", "body/arm", "body/mode"}
    assert all(reader.state_space[name].contains(value) for name, value in state.items())


def test_parts_of_a_tuple_have_numbers():
    space = spaces.Tuple([spaces.Discrete(3), spaces.Tuple([spaces.Box(-1, 1, (2,))])])
    reader = reader_of(space, space.sample())
    state = reader((2, (np.ones(2, np.float32),)), {})
    assert {name: part.tolist() for name, part in state.items()} == {"0": [0, 0, 1], "1/0": [1, 1]}
    assert reader.unfit(space.sample()) is None
    assert "is of the type list, its space says tuple" in reader.unfit(list(space.sample())).text


@pytest.mark.parametrize(
    ("keys", "names"),
    [(("action", "position"), ["observation/action", "position"]), ((1, 2), ["1", "2"]), (("a/b", "a"), ["a/b", "a"])],
)
def test_any_key_of_a_dict_has_a_name(keys, names):
    space = spaces.Dict(dict.fromkeys(keys, V3))
    reader = reader_of(space, space.sample())
    assert sorted(reader(space.sample(), {})) == sorted(names)
    assert [part_of_observation(dict.fromkeys(keys, 7), name) for name in names] == [7, 7]


def test_two_keys_with_one_name_are_an_error():
    space = spaces.Dict({"a/b": V3, "a": spaces.Dict({"b": V3})})
    with pytest.raises(CoachError, match="level 'level' has two observations with the key 'a/b': rename one of them"):
        reader_of(space, space.sample())


def test_a_mask_in_the_observation():
    space = spaces.Dict({"board": spaces.Box(-1, 1, (9,)), "action_mask": spaces.MultiBinary(4)})
    reader = reader_of(space, space.sample())
    assert reader.state_space.action_mask_name == "action_mask"
    assert isinstance(reader.state_space["action_mask"], ActionMaskSpace)


def test_a_mask_in_the_info():
    mask = np.array([0, 1, 1, 0], np.int8)
    reader = reader_of(spaces.Discrete(3), 0, {"action_mask": mask})
    state = reader(1, {"action_mask": mask})
    np.testing.assert_array_equal(state["action_mask"], mask)
    assert not np.may_share_memory(state["action_mask"], mask)
    np.testing.assert_array_equal(reader(1, {})["action_mask"], np.ones(4))


@pytest.mark.parametrize(
    ("mask", "fault"),
    [
        (np.ones(7), r"has the shape \(7,\), which does not fit its actions: 4 actions"),
        (np.ones((2, 2)), r"has the shape \(2, 2\)"),
        (np.array(["0", "1", "1", "0"]), "has values of type <U1, not the numbers 0 and 1"),
        (np.array([0, 1, 2, 0]), "has other numbers than 0 and 1"),
        (np.array([-0.3, 2.5, 1.0, 0.0]), "has other numbers than 0 and 1"),
    ],
)
def test_what_is_no_mask_is_an_error(mask, fault):
    with pytest.raises(CoachError, match=f"level 'level': the action_mask {fault}"):
        reader_of(spaces.Discrete(3), 0, {"action_mask": mask})
    reader = reader_of(spaces.Discrete(3), 0, {"action_mask": np.ones(4)})
    with pytest.raises(CoachError, match=fault):
        reader(1, {"action_mask": mask})
    in_observation = spaces.Dict({"board": spaces.Discrete(3), "action_mask": spaces.Box(-9, 9, mask.shape)})
    with pytest.raises(CoachError, match="the action_mask has"):
        reader_of(in_observation, (one := {"board": 0, "action_mask": mask}))(one, {})


def test_a_mask_that_comes_later_is_an_error():
    reader = reader_of(spaces.Discrete(3), 0)
    assert "action_mask" not in reader(1, {"action_mask": None})
    with pytest.raises(CoachError, match="is missing in the first state: give a mask with each state"):
        reader(1, {"action_mask": np.ones(4)})
    with pytest.raises(CoachError, match="is missing in the first state"):
        reader.columns(np.zeros(2, int), {"action_mask": np.ones((2, 4))}, 2)


def test_a_mask_over_continuous_actions_is_not_used_and_says_so(caplog):
    box = action_space_of(spaces.Box(-1, 1, (4,)), "level")[0]
    StateReader(spaces.Discrete(3), box, None, "level", 0, {"action_mask": np.ones(4)})
    assert "the action_mask is not used: the actions are not discrete" in caplog.text


PARTS = [spaces.MultiDiscrete([3, 2]), spaces.MultiDiscrete([3, 2], start=[4, -1]), spaces.MultiBinary(3)]


@pytest.mark.parametrize("space", PARTS)
def test_a_mask_of_each_part_masks_combinations(space):
    ours, convert = action_space_of(space, "level")
    rng, counts = np.random.default_rng(0), ours.counts
    start = np.broadcast_to(getattr(space, "start", 0), space.shape)
    for _ in range(20):
        parts = [rng.integers(0, 2, count, dtype=np.int8) for count in counts]
        reader = StateReader(V3, ours, None, "level", np.zeros(3), {"action_mask": tuple(parts)})
        mask = reader(np.zeros(3), {"action_mask": np.concatenate(parts)})["action_mask"]
        for action in range(ours.num_actions):
            chosen = convert(action) - start
            allowed = all(part[choice] or not part.any() for part, choice in zip(parts, chosen))
            assert mask[action] == allowed
        column = reader.columns(np.zeros((2, 3)), {"action_mask": np.stack([np.concatenate(parts)] * 2)}, 2)
        np.testing.assert_array_equal(column["action_mask"], [mask, mask])


def test_a_mask_of_zeros_masks_nothing():
    reader = reader_of(spaces.Discrete(3), 0, {"action_mask": np.zeros(4)})
    assert reader(0, {"action_mask": np.zeros(4, np.int8)})["action_mask"].tolist() == [1, 1, 1, 1]


def test_observations_that_are_no_arrays_become_some():
    reader = reader_of(spaces.Box(-1, 1, (2,)), [0.0, 1.0])
    assert reader([0.5, 0.5], {})["observation"].dtype == np.float32


def test_observations_are_copied_where_the_environment_reuses_them():
    observation = np.zeros(2, np.float32)
    reader = reader_of(spaces.Box(-1, 1, (2,)), observation, copies=True)
    state = reader(observation, {})
    observation += 1
    np.testing.assert_array_equal(state["observation"], [0, 0])


def test_an_observation_of_another_shape_than_its_space_is_an_error():
    with pytest.raises(CoachError, match=r"'level'.*'observation' has the shape \(3,\).*has \(2,\)"):
        reader_of(spaces.Box(-1, 1, (2,)), np.zeros(3))


class TestSeveralObservations:
    SPACE = spaces.Dict(
        {
            "mission": spaces.Text(20),
            "image": spaces.Box(0, 255, (3, 3), np.uint8),
            "inside": spaces.Dict({"direction": spaces.Discrete(4)}),
        }
    )
    OBSERVATION = {"mission": "go", "image": np.ones((3, 3), np.uint8), "inside": {"direction": 2}}

    def test_those_that_no_network_can_read_are_left_out(self):
        reader = reader_of(self.SPACE, self.OBSERVATION)
        assert reader.left_out == {"mission": self.SPACE["mission"]}
        assert set(reader.state_space.sub_spaces) == set(reader(self.OBSERVATION, {})) == {"image", "inside/direction"}

    def test_those_that_are_named_are_read(self):
        reader = reader_of(self.SPACE, self.OBSERVATION, names=["inside/direction"])
        assert reader(self.OBSERVATION, {})["inside/direction"].tolist() == [0, 0, 1, 0]
        assert list(reader.state_space.sub_spaces) == ["inside/direction"] and not reader.left_out

    def test_names_that_cannot_be_read_are_errors(self):
        with pytest.raises(CoachError, match=r"'level' has no observation 'imag'; did you mean 'image'\?"):
            reader_of(self.SPACE, self.OBSERVATION, names=["imag"])
        with pytest.raises(CoachError, match=r"'mission' of the space .* is not supported"):
            reader_of(self.SPACE, self.OBSERVATION, names=["mission"])
        only_text = spaces.Dict({"mission": spaces.Text(20)})
        with pytest.raises(CoachError, match=r"'mission' of the space .* is not supported"):
            reader_of(only_text, {"mission": "go"})


def test_random_actions_of_many_parts_stay_within_the_choices_of_each_part():
    actions, _ = action_space_of(spaces.MultiDiscrete([100, 100, 2]), "level")
    masks = mask_space_of(actions)
    actions.seed(1)
    for mask in (masks.of_all(), masks.encode(np.zeros(masks.raw_shape, int)), np.ones((3, 100))):
        assert all(actions.contains(actions.sample_with_info(mask).action) for _ in range(50))


@pytest.mark.parametrize("space", [spaces.Dict({}), spaces.Tuple([]), spaces.Box(0, 1, (0,)), spaces.Box(0, 1, (2, 0))])
def test_spaces_without_numbers_are_errors_of_one_line(space):
    with pytest.raises(CoachError, match=r"level 'level': the action space .* is empty: it has no number to choose"):
        action_space_of(space, "level")
    if not isinstance(space, spaces.Box):
        with pytest.raises(CoachError, match=r"level 'level': the observation space .* has no parts"):
            reader_of(space, space.sample())


@pytest.mark.parametrize(
    "space", [spaces.Discrete(2**40), spaces.MultiDiscrete([2**30] * 2), spaces.MultiDiscrete([2**62] * 2)]
)
def test_numbers_with_too_many_values_are_errors_before_memory_is_needed(space):
    with pytest.raises(CoachError, match="numbers is too large: the limit is 100000000 numbers"):
        observation_space_of(space, None, "level")


def test_four_numbers_mask_the_choices_of_two_parts_not_their_combinations():
    space, mask = spaces.MultiDiscrete([2, 2]), np.array([1, 0, 0, 1])
    combined = mask_space_of(action_space_of(space, "level")[0])
    assert read_masks(combined, mask, "the action_mask").tolist() == [0, 1, 0, 0]  # 0 and 1 are left
    in_parts = mask_space_of(action_space_of(space, "level", combines_choices=False)[0])
    assert read_masks(in_parts, mask, "the action_mask").tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("combines_choices", [True, False])
def test_a_mask_of_combinations_is_an_error(combines_choices):
    actions, _ = action_space_of(spaces.MultiDiscrete([3, 2]), "level", combines_choices=combines_choices)
    with pytest.raises(
        CoachError, match=r"the shape \(6,\).*parts of 3, 2 choices need a number for each choice, so 5"
    ):
        read_masks(mask_space_of(actions), np.ones(6), "the action_mask")


@pytest.mark.parametrize("shape", [(1, 5), (2, 5), (4,)])
def test_a_mask_of_another_shape_than_one_states_is_an_error(shape):
    masks = mask_space_of(action_space_of(spaces.MultiDiscrete([3, 2]), "level")[0])
    with pytest.raises(CoachError, match=r"parts of 3, 2 choices need a number for each choice, so 5"):
        read_masks(masks, np.ones(shape), "the action_mask")
    assert read_masks(masks, np.ones((2, 5)), "the action_mask", (2,)).shape == (2, 6)
    in_parts = (np.array([1, 0, 1]), np.array([0, 1]))
    assert read_masks(masks, in_parts, "the action_mask").tolist() == [0, 1, 0, 0, 0, 1]


def test_a_filter_that_moves_the_channels_after_another_filter_leaves_them_at_the_end():
    space, _ = observation_space_of(spaces.Box(0, 255, (3, 40, 60), np.uint8), None, "level", "observation")
    clipped = ObservationClippingFilter(0, 200).get_filtered_observation_space(space)
    assert clipped.shape.tolist() == [40, 60, 3]
    mover = ObservationMoveAxisFilter(0, 2)
    assert mover.get_filtered_observation_space(clipped).shape.tolist() == [40, 60, 3]
    assert mover.filter(np.zeros((40, 60, 3))).shape == (40, 60, 3)
