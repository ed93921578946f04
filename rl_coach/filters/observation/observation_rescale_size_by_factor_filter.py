"""A filter that resizes images by a factor."""

from __future__ import annotations

from rl_coach.filters.observation.observation_rescale_to_size_filter import RescalingFilter
from rl_coach.spaces import ObservationSpace
from rl_coach.utils import CoachError


class ObservationRescaleSizeByFactorFilter(RescalingFilter):
    """Resizes images by a factor. To shrink, it averages over areas. To enlarge, it interpolates linearly.

    :param rescale_factor: factor of height and width, above 0; fractions of a pixel are cut off
    """

    def __init__(self, rescale_factor: float):
        super().__init__()
        if rescale_factor <= 0:
            raise CoachError(f"ObservationRescaleSizeByFactorFilter: rescale_factor {rescale_factor} is not above 0")
        self.rescale_factor = float(rescale_factor)

    def _size_out(self, size_in: tuple[int, int]) -> tuple[int, int]:
        # rounded first: 0.29 * 100 is 28.999..., but 29 is meant
        height, width = (int(length * self.rescale_factor + 1e-9) for length in size_in)
        return height, width

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        space = input_observation_space
        if space.num_dimensions != 2 and (space.num_dimensions != 3 or space.shape[-1] != 3):
            raise self._refuse(space, "it is not an image [H, W, 3] or [H, W]; use the filter on such images only")
        if self.get_filtered_observation_space(space).num_elements == 0:
            raise self._refuse(space, f"a factor of {self.rescale_factor} leaves no pixel; choose a larger one")
