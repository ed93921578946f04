"""Each observation filter but rescaling and stacking, with numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rl_coach.filters.observation import (
    ObservationClippingFilter,
    ObservationCropFilter,
    ObservationFilter,
    ObservationMoveAxisFilter,
    ObservationNormalizationFilter,
    ObservationReductionBySubPartsNameFilter,
    ObservationRescaleSizeByFactorFilter,
    ObservationRescaleToSizeFilter,
    ObservationRGBToYFilter,
    ObservationSqueezeFilter,
    ObservationToUInt8Filter,
)
from rl_coach.filters.observation.observation_arithmetic_filters import ReshapingFilter, StandardizingFilter
from rl_coach.spaces import (
    ImageObservationSpace,
    ObservationSpace,
    PlanarMapsObservationSpace,
    TensorObservationSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError

Reduction = ObservationReductionBySubPartsNameFilter.ReductionMethod
IMAGE = ImageObservationSpace(np.array([6, 4, 3]), high=255)


def reduction_filter():
    made = ObservationReductionBySubPartsNameFilter(["b"], Reduction.Discard)
    made.get_filtered_observation_space(VectorObservationSpace(3, measurements_names=["a", "b", "c"]))
    return made


@pytest.mark.parametrize(
    "observation_filter, shape",
    [
        (ObservationClippingFilter(3, 200), (6, 4, 3)),
        (ObservationCropFilter(np.array([1, 0, 0]), np.array([4, -1, 2])), (6, 4, 3)),
        (ObservationMoveAxisFilter(0, 2), (6, 4, 3)),
        (ObservationMoveAxisFilter(-1, -2), (6, 4, 3)),
        (ObservationRGBToYFilter(), (6, 4, 3)),
        (ObservationSqueezeFilter(), (1, 4, 1)),
        (ObservationSqueezeFilter(0), (1, 4)),
        (ObservationSqueezeFilter(-1), (4, 1)),
        (ObservationToUInt8Filter(0, 255), (5,)),
        (ObservationToUInt8Filter(-10, 300), (5,)),
        (ObservationRescaleToSizeFilter(ImageObservationSpace(np.array([3, 8, 3]), 255)), (6, 4, 3)),
        (ObservationRescaleToSizeFilter(ImageObservationSpace(np.array([3, 8, 3]), 255)), (6, 4)),
        (ObservationRescaleSizeByFactorFilter(0.5), (6, 4, 3)),
        (reduction_filter(), (3,)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, ObservationFilter) else str(value),
)
@given(data=st.data())
def test_a_filtered_batch_is_its_filtered_rows(observation_filter, shape, data):
    dtype = data.draw(st.sampled_from([np.uint8, np.float32]))
    elements = st.integers(0, 255) if dtype == np.uint8 else st.floats(0, 255, width=32)
    batch = data.draw(hnp.arrays(dtype, (data.draw(st.integers(1, 3)), *shape), elements=elements))
    before = batch.copy()
    filtered = observation_filter.filter_batch(batch)
    rows = [observation_filter.filter(row) for row in batch]
    assert filtered.dtype == rows[0].dtype
    np.testing.assert_allclose(filtered, np.stack(rows), rtol=1e-5)
    assert np.array_equal(batch, before)


def test_the_default_batch_loops_over_the_rows():
    class Negative(ObservationFilter):
        def filter(self, observation, update_internal_state=True):
            return -observation

    assert Negative().filter_batch(np.array([[1, 2], [3, 4]])).tolist() == [[-1, -2], [-3, -4]]


class TestClipping:
    def test_values_outside_move_onto_the_bounds(self):
        clipped = ObservationClippingFilter(-1, 2).filter(np.array([-3.0, 0.5, 9.0], dtype=np.float32))
        assert clipped.tolist() == [-1, 0.5, 2] and clipped.dtype == np.float32

    def test_bytes_stay_bytes(self):
        clipped = ObservationClippingFilter(-200, 200).filter(np.array([0, 255], dtype=np.uint8))
        assert clipped.tolist() == [0, 200] and clipped.dtype == np.uint8

    def test_infinite_bounds_let_all_pass(self):
        observation = np.array([-1e30, 1e30])
        assert ObservationClippingFilter().filter(observation).tolist() == observation.tolist()

    def test_the_space_is_clipped_and_keeps_its_names(self):
        space = VectorObservationSpace(2, low=np.array([-5.0, 0.0]), high=np.inf, measurements_names=["x", "y"])
        filtered = ObservationClippingFilter(-1, 3).get_filtered_observation_space(space)
        assert filtered.low.tolist() == [-1, 0] and filtered.high.tolist() == [3, 3]
        assert filtered.measurements_names == ["x", "y"]

    def test_bounds_in_the_wrong_order_are_refused(self):
        with pytest.raises(CoachError, match="clipping_low 2 is above clipping_high 1"):
            ObservationClippingFilter(2, 1)


class TestCrop:
    def test_a_box_is_kept_and_minus_one_goes_to_the_end(self):
        observation = np.arange(12).reshape(3, 4)
        cropped = ObservationCropFilter(np.array([1, 2]), np.array([-1, 3])).filter(observation)
        assert cropped.tolist() == [[6], [10]]

    def test_one_limit_is_enough(self):
        observation = np.arange(4)
        assert ObservationCropFilter(crop_low=np.array([2])).filter(observation).tolist() == [2, 3]
        assert ObservationCropFilter(crop_high=np.array([2])).filter(observation).tolist() == [0, 1]

    def test_the_space_of_the_carla_preset(self):
        camera = ImageObservationSpace(np.array([600, 800, 3]), high=255)
        crop = ObservationCropFilter(crop_low=np.array([115, 0, 0]), crop_high=np.array([510, -1, -1]))
        crop.validate_input_observation_space(camera)
        space = crop.get_filtered_observation_space(camera)
        assert isinstance(space, ImageObservationSpace) and tuple(space.shape) == (395, 800, 3)

    def test_cropped_vectors_keep_their_names(self):
        space = VectorObservationSpace(3, measurements_names=["a", "b", "c"])
        cropped = ObservationCropFilter(crop_low=np.array([1])).get_filtered_observation_space(space)
        assert cropped.measurements_names == ["b", "c"]

    @pytest.mark.parametrize(
        "low, high, message",
        [
            (None, None, "needs crop_low, crop_high or both"),
            ([2], [1], r"crop_low is \[2\] and crop_high is \[1\]; low must be"),
            ([2], [2], "low must be at least 0, and high above low"),
            ([-1], [3], "low must be at least 0, and high above low"),
            ([0], [-2], "low must be at least 0, and high above low"),
            ([0, 0], [1], "must be lists of equal length"),
            ([0.5], [1.5], "must be ints"),
        ],
    )
    def test_limits_that_make_no_sense_are_refused(self, low, high, message):
        low, high = (None if limit is None else np.array(limit) for limit in (low, high))
        with pytest.raises(CoachError, match=message):
            ObservationCropFilter(low, high)

    @pytest.mark.parametrize("low, high", [([0, 0, 0], [7, 4, 3]), ([6, 0, 0], [-1, -1, -1]), ([0], [2])])
    def test_limits_outside_the_space_are_refused(self, low, high):
        crop = ObservationCropFilter(np.array(low), np.array(high))
        with pytest.raises(CoachError, match=r"ObservationCropFilter does not support ImageObservationSpace.*; "):
            crop.validate_input_observation_space(IMAGE)


class TestMoveAxis:
    def test_channels_move_to_the_front(self):
        moved = ObservationMoveAxisFilter(2, 0).filter(np.zeros((6, 4, 3)))
        assert moved.shape == (3, 6, 4)

    @pytest.mark.parametrize("origin", range(-3, 3))
    @pytest.mark.parametrize("target", range(-3, 3))
    @pytest.mark.parametrize("channels_axis", [0, 1, 2, -1])
    def test_the_channels_axis_follows(self, origin, target, channels_axis):
        space = PlanarMapsObservationSpace(np.array([5, 6, 7]), 0, 1, channels_axis)
        moved = ObservationMoveAxisFilter(origin, target).get_filtered_observation_space(space)
        assert tuple(moved.shape) == np.moveaxis(np.zeros((5, 6, 7)), origin, target).shape
        assert moved.channels == space.channels

    def test_an_axis_that_is_not_there_is_refused(self):
        with pytest.raises(CoachError, match="there is no axis 3; choose one from 0 to 2"):
            ObservationMoveAxisFilter(3, 0).validate_input_observation_space(IMAGE)
        with pytest.raises(CoachError, match="needs axis_origin and axis_target"):
            ObservationMoveAxisFilter(1)


class TestSqueeze:
    def test_axes_of_one_go(self):
        assert ObservationSqueezeFilter().filter(np.zeros((1, 4, 1))).shape == (4,)
        assert ObservationSqueezeFilter(-1).filter(np.zeros((1, 4, 1))).shape == (1, 4)

    def test_a_batch_of_one_keeps_its_batch(self):
        assert ObservationSqueezeFilter().filter_batch(np.zeros((1, 1, 4))).shape == (1, 4)

    def test_spaces_by_what_remains(self):
        vector = ObservationSqueezeFilter().get_filtered_observation_space(TensorObservationSpace((1, 4), 0, 2))
        assert isinstance(vector, VectorObservationSpace) and tuple(vector.shape) == (4,)
        grey = ImageObservationSpace(np.array([6, 4, 1]), 255)
        plane = ObservationSqueezeFilter().get_filtered_observation_space(grey)
        assert isinstance(plane, ImageObservationSpace) and tuple(plane.shape) == (6, 4)

    def test_other_axes_are_refused(self):
        with pytest.raises(CoachError, match="there is no axis 3"):
            ObservationSqueezeFilter(3).validate_input_observation_space(IMAGE)
        with pytest.raises(CoachError, match="axis 1 has 4 elements"):
            ObservationSqueezeFilter(1).validate_input_observation_space(IMAGE)
        ObservationSqueezeFilter().validate_input_observation_space(IMAGE)


class TestToUInt8:
    def test_the_range_becomes_0_to_255(self):
        filtered = ObservationToUInt8Filter(-1, 1).filter(np.array([-1, 0, 1, -3, 5], dtype=np.float32))
        assert filtered.dtype == np.uint8 and filtered.tolist() == [0, 127, 255, 0, 255]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
    def test_fractions_are_dropped_and_whole_numbers_stay(self, dtype):
        whole = np.arange(256, dtype=dtype)
        assert ObservationToUInt8Filter(0, 255).filter(whole).tolist() == list(range(256))
        fractions = np.random.default_rng(0).uniform(0, 255, 1000).astype(np.float64)
        assert np.array_equal(ObservationToUInt8Filter(0, 255).filter(fractions), fractions.astype(np.uint8))

    def test_bytes_pass_as_they_are(self):
        observation = np.arange(256, dtype=np.uint8)
        assert ObservationToUInt8Filter(0, 255).filter(observation) is observation

    def test_wide_integers_do_not_wrap(self):
        observation = np.array([-(2**31), 2**31 - 1], dtype=np.int32)
        assert ObservationToUInt8Filter(0, 255).filter(observation).tolist() == [0, 255]

    def test_space(self):
        to_bytes = ObservationToUInt8Filter(0, 255)
        to_bytes.validate_input_observation_space(IMAGE)
        space = to_bytes.get_filtered_observation_space(IMAGE)
        assert isinstance(space, ImageObservationSpace) and space.high.max() == 255

    def test_another_range_is_refused(self):
        with pytest.raises(
            CoachError, match="range from 0 to 1, not from 0 to 255; give the filter the range of the space"
        ):
            space = ImageObservationSpace(np.array([6, 4, 3]), 1)
            ObservationToUInt8Filter(0, 255).validate_input_observation_space(space)
        with pytest.raises(CoachError, match="input_high 0 is not above input_low 0"):
            ObservationToUInt8Filter(0, 0)


class TestRGBToY:
    def test_luma_of_the_primary_colours(self):
        colours = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]], dtype=np.uint8)
        assert ObservationRGBToYFilter().filter(colours).tolist() == [[76, 150, 29, 255]]
        floats = ObservationRGBToYFilter().filter(colours / 255.0)
        assert floats.dtype == np.float32
        np.testing.assert_allclose(floats, [[0.299, 0.587, 0.114, 1.0]], rtol=1e-6)

    def test_grey_images_stay_as_they_are(self):
        images = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)  # two of 3 x 3 pixels, not one of 2 x 3 in colours
        np.testing.assert_array_equal(ObservationRGBToYFilter().filter(images[0]), images[0])
        np.testing.assert_array_equal(ObservationRGBToYFilter().filter_batch(images), images)

    def test_channels_elsewhere(self):
        space = ImageObservationSpace(np.array([3, 6, 4]), 255, channels_axis=0)
        to_grey = ObservationRGBToYFilter()
        to_grey.validate_input_observation_space(space)
        grey_space = to_grey.get_filtered_observation_space(space)
        image = np.random.default_rng(0).integers(0, 256, (6, 4, 3), dtype=np.uint8)
        moved = np.moveaxis(image, -1, 0)
        expected = ObservationRGBToYFilter().filter(image)
        assert np.array_equal(to_grey.filter(moved), expected)
        assert np.array_equal(to_grey.filter_batch(moved[None]), expected[None])
        assert tuple(grey_space.shape) == (6, 4) and grey_space.contains(expected)

    def test_a_space_that_does_not_say_where_has_its_colours_last(self):
        space = ObservationSpace(np.array([6, 4, 3]), 0, 100)
        ObservationRGBToYFilter().validate_input_observation_space(space)
        assert tuple(ObservationRGBToYFilter().get_filtered_observation_space(space).shape) == (6, 4)

    def test_other_spaces_are_refused(self):
        reason = r"does not support VectorObservationSpace\(shape=\(3,\)\): it is not an RGB im"
        with pytest.raises(CoachError, match=reason):
            ObservationRGBToYFilter().validate_input_observation_space(VectorObservationSpace(3))
        with pytest.raises(CoachError, match="it has 1 channels, not 3"):
            grey = ImageObservationSpace(np.array([6, 4, 1]), 255)
            ObservationRGBToYFilter().validate_input_observation_space(grey)


class TestReductionByName:
    space = VectorObservationSpace(
        4, np.array([0, 1, 2, 3]), np.array([5, 6, 7, 8]), measurements_names=["speed", "angle", "height"]
    )

    def test_keeping(self):
        keep = ObservationReductionBySubPartsNameFilter(["height", "speed"], Reduction.Keep)
        space = keep.get_filtered_observation_space(self.space)
        assert keep.filter(np.array([10, 11, 12, 13])).tolist() == [10, 12]
        assert space.measurements_names == ["speed", "height"]
        assert space.low.tolist() == [0, 2] and space.high.tolist() == [5, 7]

    def test_discarding_keeps_elements_without_a_name(self):
        discard = ObservationReductionBySubPartsNameFilter(["speed", "height"], Reduction.Discard)
        space = discard.get_filtered_observation_space(self.space)
        assert discard.filter(np.array([10, 11, 12, 13])).tolist() == [11, 13]
        assert space.measurements_names == ["angle"]
        assert self.space.measurements_names == ["speed", "angle", "height"]

    def test_mistakes(self):
        with pytest.raises(CoachError, match="no measurement 'hight'; did you mean 'height'"):
            ObservationReductionBySubPartsNameFilter(["hight"], Reduction.Keep).validate_input_observation_space(
                self.space
            )
        with pytest.raises(CoachError, match="it is not a vector"):
            ObservationReductionBySubPartsNameFilter([], Reduction.Keep).validate_input_observation_space(IMAGE)
        with pytest.raises(CoachError, match="'keep' is not a ReductionMethod"):
            ObservationReductionBySubPartsNameFilter([], "keep")
        with pytest.raises(CoachError, match="call get_filtered_observation_space before filtering"):
            ObservationReductionBySubPartsNameFilter(["speed"], Reduction.Keep).filter(np.zeros(4))


class TestNormalization:
    def test_a_worked_example(self):
        normalize = ObservationNormalizationFilter(clip_min=-1.1, clip_max=1.1)
        normalize.filter(np.array([2.0, 0.0]))
        filtered = normalize.filter(np.array([4.0, 0.0]))  # mean 3, standard deviation 1
        assert filtered.dtype == np.float32 and filtered.tolist() == [1.0, 0.0]
        clipped = normalize.filter(np.array([9.0, -9.0]), update_internal_state=False)
        np.testing.assert_allclose(clipped, [1.1, -1.1], rtol=1e-6)
        assert normalize.running_observation_stats.n == 2

    @given(
        observations=hnp.arrays(np.float64, st.tuples(st.integers(2, 20), st.just(3)), elements=st.floats(-1e3, 1e3))
    )
    def test_it_is_mean_and_standard_deviation_of_all_that_was_seen(self, observations):
        normalize = ObservationNormalizationFilter(clip_min=-np.inf, clip_max=np.inf)
        for observation in observations[:-1]:
            normalize.filter(observation)
        filtered = normalize.filter(observations[-1])
        std = np.sqrt(np.maximum(observations.var(axis=0), 1e-2))
        expected = (observations[-1] - observations.mean(axis=0)) / std
        np.testing.assert_allclose(filtered, expected, rtol=1e-4, atol=1e-6)

    def test_a_batch_counts_as_a_whole(self):
        batch = np.random.default_rng(0).normal(3, 2, size=(50, 4))
        filtered = ObservationNormalizationFilter().filter_batch(batch)
        np.testing.assert_allclose(filtered.mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(filtered.std(axis=0), 1, rtol=1e-5)

    def test_lists_as_in_coach(self):
        normalize = ObservationNormalizationFilter()
        normalize.get_filtered_observation_space(VectorObservationSpace(2))
        assert normalize.filter([np.zeros(2), np.ones(2)]).tolist() == [[-1, -1], [1, 1]]

    def test_space(self):
        space = ObservationNormalizationFilter().get_filtered_observation_space(VectorObservationSpace(2, 0, 1))
        assert space.low.tolist() == [-5, -5] and space.high.tolist() == [5, 5]
        image = ObservationNormalizationFilter().get_filtered_observation_space(IMAGE)
        assert isinstance(image, PlanarMapsObservationSpace) and image.low.min() == -5

    def test_asking_for_the_space_again_keeps_the_statistics(self):
        normalize = ObservationNormalizationFilter()
        normalize.get_filtered_observation_space(VectorObservationSpace(2))
        normalize.filter(np.ones(2))
        normalize.get_filtered_observation_space(VectorObservationSpace(2))
        assert normalize.running_observation_stats.n == 1

    def test_a_state_fits_a_filter_that_has_seen_nothing(self):
        normalize = ObservationNormalizationFilter()
        normalize.filter(np.array([1.0, 2.0]))
        fresh = ObservationNormalizationFilter()
        fresh.set_state(normalize.get_state())
        observation = np.array([0.5, 0.7])
        assert fresh.filter(observation).tolist() == normalize.filter(observation).tolist()

    def test_a_state_of_another_shape_is_refused(self, tmp_path):
        normalize = ObservationNormalizationFilter(name="vector")
        normalize.get_filtered_observation_space(VectorObservationSpace(2))
        normalize.save_state_to_checkpoint(str(tmp_path), "a")
        other = ObservationNormalizationFilter(name="vector")
        other.get_filtered_observation_space(VectorObservationSpace(3))
        with pytest.raises(CoachError, match=r"'vector' have shape \(2,\), not \(3,\)"):
            other.restore_state_from_checkpoint(str(tmp_path), "a")


class TestArithmeticFilters:
    def test_an_unknown_kind_of_standardization_is_refused(self):
        with pytest.raises(CoachError, match="no kind 'center_'; use 'center', 'standardize', 'normalize'"):
            StandardizingFilter("center_")

    def test_a_shape_with_another_number_of_elements_is_refused(self):
        ReshapingFilter((3, 2)).validate_input_observation_space(VectorObservationSpace(6))
        with pytest.raises(CoachError, match=r"the new shape \(3, 2\) has another number of elements"):
            ReshapingFilter((3, 2)).validate_input_observation_space(VectorObservationSpace(5))
