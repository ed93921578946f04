"""A filter that divides rewards by the size of the returns so far."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from rl_coach.filters.reward.reward_filter import RewardFilter
from rl_coach.spaces import RewardSpace
from rl_coach.utilities.plain_data import State
from rl_coach.utils import CoachError

_SMALLEST_VARIANCE = 1e-8


@dataclass
class _Returns:
    """Statistics of the returns of all episodes. All actors share these statistics."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of the squared deviations from the mean
    largest: float = 0.0  # the largest absolute return

    def add(self, value: float) -> None:
        """Add a return (Welford 1962)."""
        self.count += 1
        difference = value - self.mean
        self.mean += difference / self.count
        self.squares += difference * (value - self.mean)
        self.largest = max(self.largest, abs(value))


class RewardReturnScalingFilter(RewardFilter):
    """Divides rewards so that discounted returns have a standard deviation of about 1 and no return is above
    ``largest_return``.

    The running return G = discount G + r starts at 0 in each episode. A reward is divided by max(sqrt(var(G) + 1e-8),
    max |G| / largest_return), over all G so far, including the G of this reward (Lee et al. 2025, section 4). An array
    of rewards is not an episode: the rewards are divided, but do not change the statistics.

    :param discount: discount of the returns; with 0, returns are single rewards
    :param largest_return: the largest |G| of scaled rewards. Set it to the largest return that the critic's
        distribution represents
    """

    episode_attributes = ("_running",)

    def __init__(self, discount: float = 0.99, largest_return: float = 5.0):
        super().__init__()
        if not 0 <= discount <= 1 or not largest_return > 0:
            raise CoachError(
                f"RewardReturnScalingFilter: discount {discount} must be between 0 and 1, and largest_return "
                f"{largest_return} above 0"
            )
        self.discount = discount
        self.largest_return = largest_return
        self._running = 0.0
        self._returns = _Returns()

    def filter(self, reward: Any, update_internal_state: bool = True) -> Any:
        if update_internal_state and not getattr(reward, "shape", ()):
            self._running = self.discount * self._running + float(reward)
            self._returns.add(self._running)
        return reward / self.scale

    @property
    def has_statistics(self) -> bool:
        return True

    @property
    def scale(self) -> float:
        """The divisor of rewards; 1 before the first reward."""
        returns = self._returns
        if returns.count == 0:
            return 1.0
        deviation = math.sqrt(returns.squares / returns.count + _SMALLEST_VARIANCE)
        return max(deviation, returns.largest / self.largest_return)

    def get_filtered_reward_space(self, input_reward_space: RewardSpace) -> RewardSpace:
        space = input_reward_space
        return RewardSpace(space.shape, -math.inf, math.inf, space.reward_success_threshold)

    def reset(self) -> None:
        self._running = 0.0

    def get_state(self) -> State:
        return {"running": self._running, **asdict(self._returns)}

    def set_state(self, state: State) -> None:
        try:
            self._running = state["running"]
            saved = {name: state[name] for name in ("count", "mean", "squares", "largest")}
        except KeyError as missing:
            raise CoachError(f"the saved state of the RewardReturnScalingFilter has no {missing}") from None
        vars(self._returns).update(saved)  # the same object, because the filters of all actors share it
