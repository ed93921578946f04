import numpy as np
import pytest

from rl_coach.core_types import ActionInfo, EnvResponse, Transition
from rl_coach.filters.action import BoxDiscretization, BoxMasking, LinearBoxToBoxMap
from rl_coach.filters.filter import Filter, InputFilter, NoInputFilter, NoOutputFilter, OutputFilter, changes_nothing
from rl_coach.filters.observation import (
    ObservationClippingFilter,
    ObservationFilter,
    ObservationNormalizationFilter,
    ObservationRescaleToSizeFilter,
    ObservationRGBToYFilter,
    ObservationStackingFilter,
    ObservationToUInt8Filter,
)
from rl_coach.filters.reward import RewardClippingFilter, RewardEwmaNormalizationFilter, RewardRescaleFilter
from rl_coach.spaces import (
    BoxActionSpace,
    DiscreteActionSpace,
    ImageObservationSpace,
    PlanarMapsObservationSpace,
    RewardSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError


class Doubling(ObservationFilter):
    def filter(self, observation, update_internal_state=True):
        return observation * 2


class CoachStyleBatching(ObservationFilter):
    """As filters written for Coach: lists in, lists out."""

    supports_batching = True

    def filter(self, observations, update_internal_state=True):
        assert isinstance(observations, list)
        return [observation + len(observations) for observation in observations]


def response(value=1.0, reward=3.0):
    return EnvResponse({"observation": np.array([value, -value])}, reward, False, info={"a": 1}, terminated=False)


def doubling_input_filter():
    input_filter = InputFilter()
    input_filter.add_observation_filter("observation", "double", Doubling())
    return input_filter


def test_without_filters_the_same_object_comes_back():
    one = response()
    assert InputFilter().filter(one)[0] is one
    both = [response(), response()]
    assert InputFilter().filter(both) is both
    columns = {"observation": np.zeros((2, 3))}
    assert InputFilter().filter_columns(columns) is columns
    rewards = np.zeros(2)
    assert InputFilter().filter_rewards(rewards) is rewards
    info = ActionInfo(1)
    assert OutputFilter().filter(info) is info and OutputFilter().reverse_filter(info) is info


def test_originals_stay_untouched():
    original = response()
    input_filter = doubling_input_filter()
    input_filter.add_reward_filter("scale", RewardRescaleFilter(10))
    (filtered,) = input_filter.filter(original)
    assert filtered.next_state["observation"].tolist() == [2, -2] and filtered.reward == 30
    assert original.next_state["observation"].tolist() == [1, -1] and original.reward == 3
    filtered.add_info({"b": 2})
    assert original.info == {"a": 1}
    assert (filtered.game_over, filtered.terminated, filtered.goal) == (False, False, None)


def test_transitions_are_filtered_on_both_sides():
    transition = Transition(
        state={"observation": np.array([1.0])},
        action=4,
        reward=1,
        next_state={"observation": np.array([2.0])},
        game_over=True,
        terminated=False,
    )
    transition.n_step_discounted_rewards = 7.0
    first, second = doubling_input_filter().filter([transition, transition])
    for filtered in (first, second):
        assert filtered.state["observation"].tolist() == [2] and filtered.next_state["observation"].tolist() == [4]
        assert filtered.n_step_discounted_rewards == 7.0 and filtered.action == 4
        assert filtered.game_over is True and filtered.terminated is False
    assert transition.state["observation"].tolist() == [1]


def test_filters_apply_in_order_and_ignore_other_observations():
    input_filter = InputFilter()
    input_filter.add_observation_filter("observation", "clip", ObservationClippingFilter(-1.5, 1.5))
    input_filter.add_observation_filter("observation", "double", Doubling(), add_as_the_first_filter=True)
    input_filter.add_observation_filter("elsewhere", "double", Doubling())
    assert list(input_filter.observation_filters["observation"]) == ["double", "clip"]
    assert input_filter.filter(response())[0].next_state["observation"].tolist() == [1.5, -1.5]


def test_columns_equal_the_filtered_rows():
    input_filter = doubling_input_filter()
    columns = {"observation": np.arange(6.0).reshape(3, 2), "other": np.arange(3)}
    filtered = input_filter.filter_columns(columns)
    assert filtered["observation"].tolist() == (columns["observation"] * 2).tolist()
    assert filtered["other"] is columns["other"]
    assert columns["observation"][0].tolist() == [0, 1]


def test_filters_that_batch_as_in_coach_get_lists():
    input_filter = InputFilter({"observation": {"batching": CoachStyleBatching()}})
    assert input_filter.filter(response())[0].next_state["observation"].tolist() == [2, 0]
    first, _ = input_filter.filter([response(), response()])
    assert first.next_state["observation"].tolist() == [3, 1]


def test_rewards_of_a_batch():
    input_filter = InputFilter(reward_filters={"scale": RewardRescaleFilter(0.5), "clip": RewardClippingFilter(-1, 1)})
    assert input_filter.filter_rewards(np.array([1.0, -8.0])).tolist() == [0.5, -1.0]


def test_other_data_is_refused():
    with pytest.raises(ValueError, match="EnvResponse and Transition, not dict"):
        doubling_input_filter().filter({"observation": 1})


def test_a_reference_filter_is_a_template():
    template = InputFilter(is_a_reference_filter=True)
    template.add_observation_filter("observation", "stack", ObservationStackingFilter(2))
    with pytest.raises(CoachError, match="InputFilter is a reference filter: call it"):
        template.filter(response())
    copy = template()
    copy.filter(response())
    assert len(copy.observation_filters["observation"]["stack"].stack) == 2
    assert len(template.observation_filters["observation"]["stack"].stack) == 0
    with pytest.raises(CoachError, match="OutputFilter is a reference filter"):
        OutputFilter(is_a_reference_filter=True).filter(ActionInfo(0))


def test_removing_and_copying_filters():
    input_filter = doubling_input_filter()
    input_filter.add_reward_filter("clipping", RewardClippingFilter(-1, 1))
    input_filter.copy_filters_from_one_observation_to_another("observation", "left_camera")
    copied = input_filter.observation_filters["left_camera"]["double"]
    assert copied is not input_filter.observation_filters["observation"]["double"]
    input_filter.remove_observation_filter("observation", "double")
    assert list(input_filter.observation_filters) == ["left_camera"]
    input_filter.remove_reward_filter("clipping")
    assert not input_filter.reward_filters


def test_a_wrong_name_is_an_error_that_suggests_the_right_one():
    input_filter = doubling_input_filter()
    input_filter.add_reward_filter("clipping", RewardClippingFilter(-1, 1))
    with pytest.raises(CoachError, match="no reward filter has the name 'cliping'; did you mean 'clipping'"):
        input_filter.remove_reward_filter("cliping")
    with pytest.raises(CoachError, match=r"no filtered observation has the name 'x'; choose from 'observation'"):
        input_filter.remove_observation_filter("x", "double")
    with pytest.raises(CoachError, match="no filter of the observation 'observation' has the name 'x'"):
        input_filter.remove_observation_filter("observation", "x")
    with pytest.raises(CoachError, match="no filtered observation has the name 'front'"):
        input_filter.copy_filters_from_one_observation_to_another("front", "left")
    with pytest.raises(CoachError, match=r"no action filter has the name 'x'; there are none"):
        OutputFilter().remove_action_filter("x")


def test_spaces_of_the_atari_chain():
    input_filter = InputFilter()
    size = ImageObservationSpace(np.array([84, 84, 3]), high=255)
    input_filter.add_observation_filter("observation", "rescaling", ObservationRescaleToSizeFilter(size))
    input_filter.add_observation_filter("observation", "to_grayscale", ObservationRGBToYFilter())
    input_filter.add_observation_filter("observation", "to_uint8", ObservationToUInt8Filter(0, 255))
    input_filter.add_observation_filter("observation", "stacking", ObservationStackingFilter(4))
    frame_space = ImageObservationSpace(np.array([210, 160, 3]), high=255)
    space = input_filter.get_filtered_observation_space("observation", frame_space)
    assert isinstance(space, PlanarMapsObservationSpace) and space.channels == 4
    assert tuple(frame_space.shape) == (210, 160, 3)
    frame = np.full((210, 160, 3), 200, dtype=np.uint8)
    (filtered,) = input_filter.filter(EnvResponse({"observation": frame}, 0, False))
    stacked = np.asarray(filtered.next_state["observation"])
    assert stacked.shape == (84, 84, 4) and stacked.dtype == np.uint8 and np.all(stacked == 200)
    assert space.contains(stacked)


def test_the_input_space_is_not_changed_by_filters_that_do():
    class Mutating(ObservationFilter):
        def get_filtered_observation_space(self, input_observation_space):
            input_observation_space.shape = np.array([1])
            return input_observation_space

    space = VectorObservationSpace(3)
    input_filter = InputFilter({"observation": {"mutating": Mutating()}})
    assert input_filter.get_filtered_observation_space("observation", space).shape.tolist() == [1]
    assert space.shape.tolist() == [3]
    assert input_filter.get_filtered_observation_space("other", space) is space


def test_reward_spaces_go_through_all_filters():
    input_filter = InputFilter(reward_filters={"scale": RewardRescaleFilter(-0.5), "clip": RewardClippingFilter(-1, 4)})
    space = RewardSpace(1, -10, 20, reward_success_threshold=12)
    filtered = input_filter.get_filtered_reward_space(space)
    assert (filtered.low.item(), filtered.high.item()) == (-1, 4)
    assert filtered.reward_success_threshold == 12
    assert InputFilter().get_filtered_reward_space(space) is space


def test_fresh_empty_filters_hold_the_same_attributes():
    assert vars(NoInputFilter()) == vars(NoInputFilter())
    assert vars(NoOutputFilter()) == vars(NoOutputFilter())


def statistics_filter(name=None):
    input_filter = InputFilter(name=name)
    input_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
    input_filter.add_observation_filter("observation", "clip", ObservationClippingFilter(-1, 1))
    input_filter.add_reward_filter("ewma", RewardEwmaNormalizationFilter())
    return input_filter


def fed(input_filter, seed=0, steps=9):
    rng = np.random.default_rng(seed)
    return [input_filter.filter(response(rng.normal(), rng.normal()))[0] for _ in range(steps)]


def equal_output(left, right):
    return all(
        np.array_equal(a.next_state["observation"], b.next_state["observation"]) and a.reward == b.reward
        for a, b in zip(left, right)
    )


def test_state_continues_exactly_in_memory_and_through_files(tmp_path):
    original = statistics_filter("input_filter")
    fed(original)
    original.save_state_to_checkpoint(str(tmp_path), "5_Step-100.main.agent")
    in_memory, from_file = statistics_filter("input_filter"), statistics_filter("input_filter")
    in_memory.set_state(original.get_state())
    from_file.restore_state_from_checkpoint(str(tmp_path), "5_Step-100.main.agent")
    expected = fed(original, seed=1)
    assert equal_output(fed(in_memory, seed=1), expected)
    assert equal_output(fed(from_file, seed=1), expected)


def test_the_state_of_a_nested_observation_has_a_file(tmp_path):
    original, restored = InputFilter(), InputFilter()
    for one in (original, restored):
        one.add_observation_filter("arm/joints", "normalize", ObservationNormalizationFilter())
    original.observation_filters["arm/joints"]["normalize"].filter(np.ones(3))
    original.save_state_to_checkpoint(str(tmp_path), "agent")
    restored.restore_state_from_checkpoint(str(tmp_path), "agent")
    assert restored.get_state()["observation/arm/joints/normalize"]["count"] == 1


def test_only_filters_with_a_state_are_in_it():
    state = statistics_filter().get_state()
    assert sorted(state) == ["observation/observation/normalize", "reward/ewma"]
    assert InputFilter().get_state() == {} == OutputFilter().get_state()


def test_a_state_of_other_filters_is_refused():
    with pytest.raises(CoachError, match="'reward/ewma' is not in the checkpoint"):
        state = statistics_filter().get_state()
        del state["reward/ewma"]
        statistics_filter().set_state(state)
    with pytest.raises(CoachError, match="'reward/ewma' is only in the checkpoint"):
        InputFilter().set_state({"reward/ewma": {}})
    with pytest.raises(CoachError, match="has a state for a RewardRescaleFilter, but this filter has none"):
        RewardRescaleFilter(2).set_state({"a": 1})


def test_a_missing_checkpoint_file_is_named(tmp_path):
    with pytest.raises(CoachError, match=r"no file '.*12\.input\.observation\.observation\.normalize\.npz'"):
        statistics_filter("input").restore_state_from_checkpoint(str(tmp_path), 12)


def test_reset_reaches_every_filter():
    input_filter = InputFilter({"observation": {"stack": ObservationStackingFilter(2)}})
    input_filter.filter(response())
    input_filter.reset()
    assert not input_filter.observation_filters["observation"]["stack"].stack


def test_output_filters_lead_from_the_agent_to_the_environment():
    output_filter = OutputFilter()
    output_filter.add_action_filter("masking", BoxMasking(-1.0, 1.0))
    output_filter.add_action_filter("discretization", BoxDiscretization(5))
    space = output_filter.get_unfiltered_action_space(BoxActionSpace(1, -2, 2))
    assert isinstance(space, DiscreteActionSpace) and space.num_actions == 5
    chosen = ActionInfo(4, all_action_probabilities=[0.2] * 5, action_value=3.0)
    filtered = output_filter.filter(chosen)
    assert filtered.action.tolist() == [1.0] and chosen.action == 4
    assert filtered.action_value == 3.0 and filtered.max_action_value == 3.0
    assert output_filter.reverse_filter(ActionInfo(np.array([-0.5]))).action == 1


def test_the_first_action_filter_is_nearest_to_the_environment():
    output_filter = OutputFilter({"discretization": BoxDiscretization(3)})
    output_filter.add_action_filter("stretch", LinearBoxToBoxMap(0, 1), add_as_the_first_filter=True)
    output_filter.get_unfiltered_action_space(BoxActionSpace(1, -10, 30))
    assert list(output_filter.action_filters) == ["stretch", "discretization"]
    assert output_filter.filter(ActionInfo(1)).action.tolist() == [10]
    output_filter.remove_action_filter("stretch")
    assert list(output_filter.action_filters) == ["discretization"]


def test_an_action_outside_the_space_cannot_be_reversed():
    output_filter = OutputFilter({"discretization": BoxDiscretization(3)})
    output_filter.get_unfiltered_action_space(BoxActionSpace(1, -1, 1))
    with pytest.raises(CoachError, match="does not belong to BoxActionSpace"):
        output_filter.reverse_filter(ActionInfo(np.array([2.0])))


def test_set_device_hands_the_backend_on():
    normalization = ObservationNormalizationFilter()
    InputFilter({"observation": {"normalize": normalization}}).set_device(None, memory_backend_params="backend")
    assert normalization.running_observation_stats.pubsub_params == "backend"


def test_the_base_filter():
    base = Filter("a")
    base.set_name("b")
    assert base.name == "b"
    with pytest.raises(NotImplementedError, match="Filter does not define filter"):
        base.filter(None)


class Halving(InputFilter):
    """A user's, which holds no filters and filters in a way of its own."""

    def filter(self, unfiltered_data, update_internal_state=True, deep_copy=True):
        (response,) = super().filter(unfiltered_data, update_internal_state, deep_copy)
        return [EnvResponse(response.next_state, response.reward / 2, response.game_over)]


@pytest.mark.parametrize(
    "chain, is_without_effect",
    [
        (NoInputFilter(), True),
        (InputFilter(), True),
        (OutputFilter(), True),
        (InputFilter(is_a_reference_filter=True), False),
        (InputFilter(reward_filters={"scale": RewardRescaleFilter(2.0)}), False),
        (OutputFilter({"discretization": BoxDiscretization(3)}), False),
        (Halving(), False),
    ],
)
def test_only_a_chain_that_returns_what_it_gets_changes_nothing(chain, is_without_effect):
    assert changes_nothing(chain) is is_without_effect


@pytest.mark.parametrize("count", [0, 5, 2**30 - 3, 2**31 - 3, 2**33])
def test_statistics_of_a_compiled_loop_count_beyond_32_bits(count):
    import keras

    ours = ObservationNormalizationFilter()
    rows = np.random.default_rng(0).normal(3, 2, (40, 3)).astype(np.float32)
    known = {"count": count, "mean": np.full(3, 2.0), "squared_deviations": np.full(3, 9.0 * count)}
    ours.set_state(known)
    expected = ObservationNormalizationFilter()
    expected.set_state(known)
    pure = ours.pure(keras.ops)
    state = pure.state()
    for batch in (rows[:16], rows[16:]):
        state = pure.update(state, batch)
        expected.filter_batch(batch)
    np.testing.assert_allclose(
        np.asarray(pure.apply(state, rows)), expected.filter_batch(rows, False), rtol=1e-4, atol=1e-5
    )
    pure.take(state)
    assert int(ours.get_state()["count"]) == count + 40
    np.testing.assert_allclose(ours.filter_batch(rows, False), expected.filter_batch(rows, False), rtol=1e-4, atol=1e-5)


def test_clipped_whole_numbers_are_equal_in_a_compiled_loop():
    import keras

    if keras.backend.backend() != "jax":
        pytest.skip("loops are compiled with JAX only")
    clip, rows = ObservationClippingFilter(0.5, 2.5), np.arange(5, dtype=np.uint8)[:, None]
    clipped = np.asarray(clip.pure(keras.ops).apply({}, keras.ops.convert_to_tensor(rows)))
    assert clipped.dtype == np.uint8
    np.testing.assert_array_equal(clipped, clip.filter_batch(rows))
