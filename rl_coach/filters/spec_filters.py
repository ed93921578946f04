"""Conversion of preprocessing in specifications of other libraries to Coach's filters."""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping

import numpy as np

from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_arithmetic_filters import (
    ReshapingFilter,
    ScalingFilter,
    StandardizingFilter,
)
from rl_coach.filters.observation.observation_clipping_filter import ObservationClippingFilter
from rl_coach.filters.observation.observation_crop_filter import ObservationCropFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.filters.observation.observation_rescale_to_size_filter import ObservationRescaleToSizeFilter
from rl_coach.filters.observation.observation_rgb_to_y_filter import ObservationRGBToYFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.filters.reward.reward_clipping_filter import RewardClippingFilter
from rl_coach.filters.reward.reward_normalization_filter import RewardNormalizationFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.spaces import ImageObservationSpace, PlanarMapsObservationSpace
from rl_coach.utilities.spec_fields import Fields, plain, shape_of, shown
from rl_coach.utils import CoachError

Shape = tuple[int, ...]


Made = tuple[list[ObservationFilter], Shape]


def _grayscale(step: Fields, shape: Shape) -> Made:
    step.flag("keep_rank")
    step.get("weights")
    _require_image(step, shape)
    return ([ObservationRGBToYFilter()], shape[:2]) if len(shape) == 3 and shape[2] == 3 else ([], shape)


def _resize(step: Fields, shape: Shape) -> Made:
    _require_image(step, shape)
    width, height = (step.whole(name, high=4096) or step.missing(name) for name in ("width", "height"))
    step.choice("interpolation", ("bilinear",))
    size = (height, width, *shape[2:])
    image = ImageObservationSpace if len(shape) == 2 or shape[2] in ImageObservationSpace.CHANNELS else None
    space = image(np.array(size), 255) if image else PlanarMapsObservationSpace(np.array(size), 0, 255)
    return [ObservationRescaleToSizeFilter(space)], size


def _crop(step: Fields, shape: Shape) -> Made:
    _require_image(step, shape)
    x, y = (step.whole(name, low=0) or 0 for name in ("x", "y"))
    width, height = (step.whole(name) or step.missing(name) for name in ("width", "height"))
    if y + height > shape[0] or x + width > shape[1]:
        raise CoachError(f"the spec's '{step.path('type')}': the box ends outside the image of {shape[:2]}")
    rest = len(shape) - 2
    low, high = np.array([y, x] + [0] * rest), np.array([y + height, x + width] + [-1] * rest)
    return [ObservationCropFilter(low, high)], (height, width, *shape[2:])


def _require_image(step: Fields, shape: Shape) -> None:
    if len(shape) not in (2, 3):
        raise CoachError(f"the spec's '{step.path('type')}' needs an image, not a state of the shape {list(shape)}")


def _sequence(step: Fields, shape: Shape) -> Made:
    length = step.whole("sequence_length", "length", high=1000) or step.missing("sequence_length")
    step.flag("add_rank")
    step.get("batch_size")
    if length == 1:
        return [], shape
    stacked = (shape[0] * length,) if len(shape) == 1 else (*shape, length)
    if len(shape) != 3:
        return [ObservationStackingFilter(length)], stacked
    # frames with channels: [H, W, C, T] becomes [H, W, C * T], because networks need images with three dimensions
    merged = (*shape[:2], shape[2] * length)
    return [ObservationStackingFilter(length), ReshapingFilter(merged)], merged


def _scale(inverse: bool, *names: str) -> Callable[[Fields, Shape], Made]:
    def made(step: Fields, shape: Shape) -> Made:
        value = step.number(names[0], -1e9, 1e9, *names[1:])
        if not value:
            raise CoachError(f"the spec's '{step.path(names[0])}' must be a number other than 0")
        return [ScalingFilter(1 / value if inverse else value)], shape

    return made


def _clip(step: Fields, shape: Shape) -> Made:
    low, high = (
        step.number("min_value", -math.inf, math.inf, "min"),
        step.number("max_value", -math.inf, math.inf, "max"),
    )
    return [ObservationClippingFilter(-math.inf if low is None else low, math.inf if high is None else high)], shape


def _reshape(step: Fields, shape: Shape) -> Made:
    flattens, new = step.flag("flatten"), step.get("new_shape", "shape")
    step.get("flatten_categories")  # ignored, because states of categories are already one-hot
    step.get("time_major")
    size: Shape
    if new is None or flattens:
        size = (math.prod(shape),)
    else:
        size = shape_of(new, step.path("new_shape"))
    if math.prod(size) != math.prod(shape):
        raise CoachError(f"the spec's '{step.path('new_shape')}' {list(size)} does not fit a state of {list(shape)}")
    return ([] if size == shape else [ReshapingFilter(size)]), size


def _convert(step: Fields, shape: Shape) -> Made:
    step.choice("to_dtype", ("float", "float32", "float64"))
    return [ScalingFilter(1.0)], shape


def _running(step: Fields, shape: Shape) -> Made:
    step.get("axis")
    step.flag("reset_after_batch")
    step.get("batch_size")
    return [ObservationNormalizationFilter(-math.inf, math.inf)], shape


def _alone(kind: str) -> Callable[[Fields, Shape], Made]:
    def made(step: Fields, shape: Shape) -> Made:
        step.flag("across_batch")
        return [StandardizingFilter(kind)], shape

    return made


_STEPS: dict[str, Callable[[Fields, Shape], Made]] = {
    "grayscale": _grayscale,
    "image_resize": _resize,
    "image_crop": _crop,
    "crop": _crop,
    "sequence": _sequence,
    "divide": _scale(True, "divisor", "scale"),
    "multiply": _scale(False, "factor", "scale"),
    "clip": _clip,
    "reshape": _reshape,
    "flatten": _reshape,
    "convert_type": _convert,
    "moving_standardize": _running,
    "running_standardize": _running,
    "standardize": _alone("standardize"),
    "normalize": _alone("normalize"),
    "center": _alone("center"),
}


def _list_of(given: Any, where: str) -> list[Fields]:
    """The preprocessing steps of a specification. :param given: a list of dicts or names, or a single one"""
    given = [given] if isinstance(given, (str, Mapping)) else given
    if not isinstance(given, (list, tuple)) or len(given) > 100:
        raise CoachError(f"the spec's '{where}' must be a list of at most 100 steps, not {shown(given)}")
    return [
        Fields({"type": one} if isinstance(one, str) else one, f"{where}[{number}]") for number, one in enumerate(given)
    ]


def add_state_filters(filters: InputFilter, given: Any, where: str, shapes: dict[str, Shape]) -> None:
    """Add the filters of a preprocessing specification for states.

    :param filters: the chain to which the filters are added
    :param given: a list of steps, or a dict of lists by the names of the states
    :param where: the key of the specification
    :param shapes: the shape of each state, by the observation's name. The function replaces it with the shape after the
        filters
    :raises CoachError: if a step is wrong, or does not fit the state
    """
    by_name = isinstance(given, Mapping) and not isinstance(given.get("type"), str)
    if by_name:
        for name in given:
            if name not in shapes:
                raise CoachError(f"the spec's '{where}' has no state {shown(name)}; use {', '.join(shapes)}")
    for name in given if by_name else list(shapes):
        steps = _list_of(given[name] if by_name else given, where)
        chain: list[ObservationFilter] = []
        was_image = len(shapes[name]) == 3
        for step in steps:
            kind = step.choice("type", _STEPS) or step.missing("type")
            step.get("scope")
            made, shapes[name] = _STEPS[kind](step, shapes[name])
            step.finish()
            chain += made
        if was_image and len(shapes[name]) == 2:  # networks need images with channels
            shapes[name] = (*shapes[name], 1)
            chain.append(ReshapingFilter(shapes[name]))
        for number, one in enumerate(chain):
            filters.add_observation_filter(name, f"{number}_{plain(type(one).__name__)}", one)


def add_reward_filters(filters: InputFilter, given: Any, where: str) -> None:
    """Add the filters of a preprocessing specification for rewards. The parameters are the same as for
    ``add_state_filters``.

    :raises CoachError: if a step is wrong, or is only for states
    """
    for number, step in enumerate(_list_of(given, where)):
        kind = step.choice("type", ("clip", "divide", "multiply", "running_standardize")) or step.missing("type")
        step.get("scope")
        if kind == "clip":
            low, high = step.number("min_value"), step.number("max_value")
            one: Any = RewardClippingFilter(-math.inf if low is None else low, math.inf if high is None else high)
        elif kind == "running_standardize":
            one = RewardNormalizationFilter(-math.inf, math.inf)
        else:
            value = step.number("scale", -1e9, 1e9, "divisor", "factor") or step.missing("scale")
            one = RewardRescaleFilter(1 / value if kind == "divide" else value)
        step.finish()
        filters.add_reward_filter(f"{number}_{kind}", one)
