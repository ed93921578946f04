import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation import (
    ObservationRescaleSizeByFactorFilter,
    ObservationRescaleToSizeFilter,
    ObservationRGBToYFilter,
)
from rl_coach.filters.observation.resizing import Resizer, axis_weights
from rl_coach.spaces import (
    ImageObservationSpace,
    ObservationSpace,
    PlanarMapsObservationSpace,
    TensorObservationSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError

sizes = st.integers(1, 30)


def to_size(height, width, channels=3):
    return ObservationRescaleToSizeFilter(ImageObservationSpace(np.array([height, width, channels]), 255))


def test_weights_of_shrinking_five_to_two():
    np.testing.assert_allclose(axis_weights(5, 2), [[0.4, 0.4, 0.2, 0, 0], [0, 0, 0.2, 0.4, 0.4]], rtol=1e-6)


def test_weights_of_enlarging_two_to_four():
    np.testing.assert_allclose(axis_weights(2, 4), [[1, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]])


@given(length_in=sizes, length_out=sizes)
def test_weights_are_averages(length_in, length_out):
    weights = axis_weights(length_in, length_out)
    assert weights.shape == (length_out, length_in) and np.all(weights >= 0)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)


@given(length_in=sizes, length_out=sizes)
def test_shrinking_keeps_the_mean(length_in, length_out):
    if length_out <= length_in:
        np.testing.assert_allclose(axis_weights(length_in, length_out).mean(axis=0), 1 / length_in, rtol=1e-4)


@given(size_in=st.tuples(sizes, sizes), size_out=st.tuples(sizes, sizes), seed=st.integers(0, 99))
def test_the_pieces_do_the_work_of_the_whole_matrices(size_in, size_out, seed):
    image = np.random.default_rng(seed).normal(size=size_in).astype(np.float32)
    expected = axis_weights(size_in[0], size_out[0]) @ image @ axis_weights(size_in[1], size_out[1]).T
    np.testing.assert_allclose(Resizer(size_in, size_out).resize(image), expected, rtol=1e-4, atol=1e-5)


@given(size_in=st.tuples(sizes, sizes), size_out=st.tuples(sizes, sizes), seed=st.integers(0, 99))
def test_channels_are_resized_one_by_one(size_in, size_out, seed):
    images = np.random.default_rng(seed).integers(0, 256, (2, *size_in, 3), dtype=np.uint8)
    resizer = Resizer(size_in, size_out)
    resized = resizer.resize_channels_last(images)
    one_by_one = np.stack([resizer.resize(images[..., channel]) for channel in range(3)], axis=-1)
    assert resized.dtype == np.uint8 and resized.shape == (2, *size_out, 3) and resized.flags.c_contiguous
    assert np.abs(resized.astype(int) - one_by_one).max() <= 1


def test_halving_averages_four_pixels():
    image = np.array([[0, 2, 10, 10], [4, 6, 10, 10]], dtype=np.uint8)
    assert Resizer((2, 4), (1, 2)).resize(image).tolist() == [[3, 10]]


def test_bytes_are_rounded_and_stay_in_range():
    image = np.array([[254, 255]], dtype=np.uint8)
    assert Resizer((1, 2), (1, 1)).resize(image).tolist() == [[255]]
    white = np.full((210, 160, 3), 255, dtype=np.uint8)
    assert np.all(to_size(84, 84).filter(white) == 255)


def test_the_original_size_changes_nothing():
    image = np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    assert np.array_equal(to_size(9, 7).filter(image), image)


def test_floats_become_float32():
    assert to_size(2, 2).filter(np.zeros((4, 4, 3))).dtype == np.float32


def test_the_filter_follows_the_size_of_what_it_gets():
    rescale = to_size(2, 2)
    assert rescale.filter(np.ones((4, 4, 3))).shape == (2, 2, 3)
    assert rescale.filter(np.ones((6, 8, 3))).shape == (2, 2, 3)
    assert rescale.filter(np.ones((6, 8))).shape == (2, 2)


def test_space_of_an_image():
    rescale = to_size(84, 84)
    space_in = ImageObservationSpace(np.array([210, 160, 3]), 255)
    rescale.validate_input_observation_space(space_in)
    space = rescale.get_filtered_observation_space(space_in)
    assert isinstance(space, ImageObservationSpace) and tuple(space.shape) == (84, 84, 3) and space.high.min() == 255


def test_grey_images_may_have_no_axis_for_channels():
    rescale = ObservationRescaleToSizeFilter(ImageObservationSpace(np.array([84, 42]), 255))
    space_in = ImageObservationSpace(np.array([210, 160]), 255)
    rescale.validate_input_observation_space(space_in)
    space = rescale.get_filtered_observation_space(space_in)
    assert isinstance(space, ImageObservationSpace) and tuple(space.shape) == (84, 42) and space.channels == 1
    assert rescale.filter(np.zeros((210, 160))).shape == (84, 42)


def test_colours_may_be_dropped_before_resizing():
    input_filter = InputFilter()
    input_filter.add_observation_filter("observation", "grey", ObservationRGBToYFilter())
    target = ImageObservationSpace(np.array([84, 84]), 255)
    input_filter.add_observation_filter("observation", "size", ObservationRescaleToSizeFilter(target))
    image = ImageObservationSpace(np.array([210, 160, 3]), 255)
    assert tuple(input_filter.get_filtered_observation_space("observation", image).shape) == (84, 84)


@pytest.mark.parametrize("axis", [0, 1, -3, -2])
def test_channels_on_another_axis(axis):
    image = np.random.default_rng(0).integers(0, 256, (10, 8, 3), dtype=np.uint8)
    moved = np.moveaxis(image, -1, axis)
    space_in = PlanarMapsObservationSpace(moved.shape, 0, 255, axis)
    target = np.array([5, 4])
    rescale = ObservationRescaleToSizeFilter(PlanarMapsObservationSpace(np.insert(target, axis % 3, 3), 0, 255, axis))
    space = rescale.get_filtered_observation_space(space_in)
    expected = np.moveaxis(to_size(5, 4).filter(image), -1, axis)
    assert space.contains(expected) and space.channels == 3
    assert np.abs(rescale.filter(moved).astype(int) - expected).max() <= 1
    assert rescale.filter_batch(moved[None]).shape == (1, *expected.shape)


def test_other_spaces_are_refused():
    with pytest.raises(CoachError, match=r"ToSizeFilter does not support Vector.*use the filter on images"):
        to_size(4, 4).validate_input_observation_space(VectorObservationSpace(3))
    with pytest.raises(CoachError, match="it has 3 channels, but output_observation_space has 1; use equal numbers"):
        to_size(4, 4, 1).validate_input_observation_space(ImageObservationSpace(np.array([9, 9, 3]), 255))
    with pytest.raises(CoachError, match="it is not an image; use the filter on images or other planar maps only"):
        to_size(4, 4).validate_input_observation_space(TensorObservationSpace((9, 9), 0, 255))
    for space in (VectorObservationSpace(3), TensorObservationSpace((9, 9), 0, 255)):
        with pytest.raises(CoachError, match="output_observation_space must be the space of an image"):
            ObservationRescaleToSizeFilter(space)


def test_by_factor():
    half = ObservationRescaleSizeByFactorFilter(0.5)
    space_in = ImageObservationSpace(np.array([7, 4, 3]), 255)
    half.validate_input_observation_space(space_in)
    assert tuple(half.get_filtered_observation_space(space_in).shape) == (3, 2, 3)
    assert half.filter(np.ones((7, 4, 3), dtype=np.uint8)).shape == (3, 2, 3)
    assert ObservationRescaleSizeByFactorFilter(2).filter(np.ones((3, 2))).shape == (6, 4)
    assert ObservationRescaleSizeByFactorFilter(0.29).filter(np.ones((100, 100))).shape == (29, 29)


def test_a_factor_is_for_colours_and_for_grey():
    half = ObservationRescaleSizeByFactorFilter(0.5)
    colours = ObservationSpace(np.array([10, 20, 3]))
    half.validate_input_observation_space(colours)
    assert tuple(half.get_filtered_observation_space(colours).shape) == (5, 10, 3)
    half.validate_input_observation_space(TensorObservationSpace((10, 20), 0, 1))
    for shape in ((10, 20, 5), (10, 20, 10, 3), (10,)):
        with pytest.raises(CoachError, match=r"it is not an image \[H, W, 3\] or \[H, W\]"):
            half.validate_input_observation_space(ObservationSpace(np.array(shape)))


def test_factors_that_leave_nothing_are_refused():
    with pytest.raises(CoachError, match="rescale_factor 0 is not above 0"):
        ObservationRescaleSizeByFactorFilter(0)
    with pytest.raises(CoachError, match=r"a factor of 0\.1 leaves no pixel"):
        space = ImageObservationSpace(np.array([7, 4, 3]), 255)
        ObservationRescaleSizeByFactorFilter(0.1).validate_input_observation_space(space)


@pytest.mark.parametrize("shape", [(84, 84), (210, 160), (13, 29, 3), (7, 5, 1)])
@pytest.mark.parametrize("size", [(3, 8), (84, 84), (100, 31)])
@pytest.mark.parametrize("value", [1.0, 0.1, -3.7])
def test_an_image_of_one_number_stays_exactly_that(shape, size, value):
    resizer = Resizer(shape[:2], size)
    resize = resizer.resize if len(shape) == 2 else resizer.resize_channels_last
    resized = resize(np.full(shape, value, np.float32))
    assert resized.dtype == np.float32 and resized.shape == (*size, *shape[2:])
    np.testing.assert_array_equal(resized, np.float32(value))
    # each plane stays within its own bounds
    images = np.random.default_rng(0).random((2, *shape), np.float32)
    images[1] += 5
    assert resize(images)[0].max() <= images[0].max() and resize(images)[1].min() >= images[1].min()
