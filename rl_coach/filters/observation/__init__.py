"""Filters of observations."""

from rl_coach.filters.observation.observation_clipping_filter import ObservationClippingFilter
from rl_coach.filters.observation.observation_crop_filter import ObservationCropFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.filters.observation.observation_move_axis_filter import ObservationMoveAxisFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.filters.observation.observation_reduction_by_sub_parts_name_filter import (
    ObservationReductionBySubPartsNameFilter,
)
from rl_coach.filters.observation.observation_rescale_size_by_factor_filter import ObservationRescaleSizeByFactorFilter
from rl_coach.filters.observation.observation_rescale_to_size_filter import ObservationRescaleToSizeFilter
from rl_coach.filters.observation.observation_rgb_to_y_filter import ObservationRGBToYFilter
from rl_coach.filters.observation.observation_squeeze_filter import ObservationSqueezeFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.filters.observation.observation_to_uint8_filter import ObservationToUInt8Filter

__all__ = [
    "ObservationClippingFilter",
    "ObservationCropFilter",
    "ObservationFilter",
    "ObservationMoveAxisFilter",
    "ObservationNormalizationFilter",
    "ObservationRGBToYFilter",
    "ObservationReductionBySubPartsNameFilter",
    "ObservationRescaleSizeByFactorFilter",
    "ObservationRescaleToSizeFilter",
    "ObservationSqueezeFilter",
    "ObservationStackingFilter",
    "ObservationToUInt8Filter",
]
