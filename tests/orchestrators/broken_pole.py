"""CartPole whose rewards are not numbers from some step on."""

from __future__ import annotations

from tests.orchestrators.slow_pole import SlowPole


class BrokenPole(SlowPole):
    """:param good_steps: steps of all episodes whose rewards are numbers"""

    def __init__(self, good_steps: int, **settings):
        super().__init__(**settings)
        self._good_steps = good_steps

    def step(self, action):
        self._good_steps -= 1
        observation, reward, *rest = super().step(action)
        return observation, reward if self._good_steps > 0 else float("nan"), *rest
