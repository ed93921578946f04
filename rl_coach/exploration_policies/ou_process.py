"""Adds noise that drifts, so that exploration keeps a direction for a while."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.core_types import RunPhase
from rl_coach.exploration_policies.exploration_policy import ContinuousActionExplorationPolicy, ExplorationParameters
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.requirements import number


class OUProcessParameters(ExplorationParameters):
    """Noise of an Ornstein-Uhlenbeck process.

    :ivar mu: the value that the noise drifts to
    :ivar theta: rate of the drift; 0 gives a random walk
    :ivar sigma: scale of the random part; 0 gives only the drift
    :ivar dt: the time of one step
    """

    constraints = {"mu": number(), "theta": number(0), "sigma": number(0), "dt": number(above=0)}
    path = "rl_coach.exploration_policies.ou_process:OUProcess"

    def __init__(self) -> None:
        super().__init__()
        self.mu: float = 0
        self.theta = 0.15
        self.sigma = 0.2
        self.dt = 0.01


class OUProcess(ContinuousActionExplorationPolicy):
    """In training, chooses the mean plus noise x. x is 0 at the start of each episode and changes by dx = theta (mu -
    x) dt + sigma dW (Uhlenbeck & Ornstein 1930; Lillicrap et al. 2016, "Continuous control with deep reinforcement
    learning", section 3). In other phases, chooses the mean. ``OUProcessParameters`` explains the other arguments.

    :param action_space: a box or goals
    """

    episode_attributes = ("state",)

    own_state: tuple[str, ...] = ("rng", "process")

    def __init__(
        self, action_space: ActionSpace, mu: float = 0, theta: float = 0.15, sigma: float = 0.2, dt: float = 0.01
    ):
        super().__init__(action_space)
        self.mu = float(mu)
        self.theta = float(theta)
        self.sigma = float(sigma)
        self.dt = float(dt)
        self.state = np.zeros(tuple(action_space.shape))

    def reset(self) -> None:
        self.state = np.zeros(tuple(self.action_space.shape))

    def noise(self) -> np.ndarray:
        """Advance the process by one step and return its value, [D]."""
        pull = self.theta * (self.mu - self.state) * self.dt
        shake = self.sigma * np.sqrt(self.dt) * self.rng.standard_normal(self.state.shape)
        self.state = self.state + pull + shake
        return self.state

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> np.ndarray:
        mean, _ = self._mean_and_std(action_values)
        return mean + self.noise() if self.phase == RunPhase.TRAIN else mean

    def get_control_param(self) -> np.ndarray:
        """[D], the noise of the last action."""
        return self.state if self.phase == RunPhase.TRAIN else np.zeros_like(self.state)

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "process": self.state.copy()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.state = np.reshape(state["process"], tuple(self.action_space.shape)).copy()
