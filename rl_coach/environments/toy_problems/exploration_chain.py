"""The chain that deep exploration is measured on (Osband et al. 2016, "Deep Exploration via Bootstrapped DQN",
section 5 and appendix A)."""

from __future__ import annotations

from enum import Enum
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

PIXELS_PER_STATE = 16


class ExplorationChain(gym.Env):
    """A row of states. Action 0 goes left, 1 goes right; at an end, the agent stays there. The first state has a small
    reward, the last state a large one. The states between them have no reward and give no hint of the last state.

    :param chain_length: N, the number of states, more than 3
    :param start_state: the first state of an episode, from 0
    :param max_steps: largest length of an episode; None is N + 9, as in the paper; 0 sets no limit
    :param observation_type: ``OneHot`` shows the state s as the unit vector of s, ``Therm`` as 1 up to s and 0 after
    :param left_state_reward: reward of each step that ends in the first state
    :param right_state_reward: reward of each step that ends in the last state
    :param simple_render: draw only the current state, not the whole observation
    :param render_mode: ``'rgb_array'`` or None
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    class ObservationType(Enum):
        """Form of an observation."""

        OneHot = 0
        Therm = 1

    def __init__(
        self,
        chain_length: int = 16,
        start_state: int = 1,
        max_steps: int | None = None,
        observation_type: ObservationType = ObservationType.Therm,
        left_state_reward: float = 1 / 1000,
        right_state_reward: float = 1,
        simple_render: bool = True,
        render_mode: str | None = None,
    ):
        if chain_length <= 3:
            raise ValueError(f"chain_length must be more than 3, not {chain_length}")
        if not 0 <= start_state < chain_length:
            raise ValueError(f"start_state must be from 0 to {chain_length - 1}, not {start_state}")
        self.chain_length = chain_length
        self.start_state = start_state
        self.max_steps = chain_length + 9 if max_steps is None else max_steps
        self.observation_type = observation_type
        self.left_state_reward = left_state_reward
        self.right_state_reward = right_state_reward
        self.simple_render = simple_render
        self.render_mode = render_mode
        self.state = start_state
        self.steps = 0
        one_hot = np.eye(chain_length, dtype=np.float32)
        therm = np.tril(np.ones((chain_length, chain_length), dtype=np.float32))
        self._observations = one_hot if observation_type == self.ObservationType.OneHot else therm
        self.observation_space = spaces.Box(0, 1, shape=(chain_length,), dtype=np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Go back to ``start_state``."""
        super().reset(seed=seed)
        self.state = self.start_state
        self.steps = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Go left (0) or right (1)."""
        self.steps += 1
        self.state = min(max(self.state + (1 if action == 1 else -1), 0), self.chain_length - 1)
        return self._observe(), self._reward(), False, self.steps == self.max_steps, {}

    def _reward(self) -> float:
        if self.state == 0:
            return self.left_state_reward
        return self.right_state_reward if self.state == self.chain_length - 1 else 0.0

    def _observe(self) -> np.ndarray:
        return self._observations[self.state].copy()

    def render(self) -> np.ndarray:
        """A row of squares, white where the agent is: [16, 16 * chain_length, 3] uint8."""
        row = np.eye(self.chain_length)[self.state] if self.simple_render else self._observe()
        picture = np.kron(row[None] * 255, np.ones((PIXELS_PER_STATE, PIXELS_PER_STATE)))
        return np.repeat(picture[..., None], 3, axis=-1).astype(np.uint8)
