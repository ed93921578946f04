"""Several CartPoles of Gymnasium that are stepped together."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode

from rl_coach.environments.gym_environment import GymEnvironment
from rl_coach.environments.native_copies import RestorableVectorEnv


class CartPoleCopies(CartPoleVectorEnv, RestorableVectorEnv):
    """Gymnasium's vectorised CartPole with a random stream for each pole. An episode begins only in ``reset``. In
    Gymnasium's class, an episode begins in a step, and the action of this step is ignored.

    :param settings: settings of ``CartPoleVectorEnv``

    :ivar streams: the random streams, one for each pole; with the same seeds, ordinary CartPoles play equal episodes
    """

    state: Any  # [4, N] float64
    metadata = {**CartPoleVectorEnv.metadata, "autoreset_mode": AutoresetMode.DISABLED}

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.state = np.zeros((4, self.num_envs))
        self.streams = [seeding.np_random()[0] for _ in range(self.num_envs)]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode in all poles, or in the poles of ``options["reset_mask"]``, [N].

        :param seed: seed of the first pole; the other poles use the following numbers
        """
        if seed is not None:
            self.streams = [seeding.np_random(seed + index)[0] for index in range(self.num_envs)]
        mask = np.ones(self.num_envs, np.bool_) if options is None else options["reset_mask"]
        for index in np.flatnonzero(mask):
            self.state[:, index] = self.streams[index].uniform(self.low, self.high, size=4)
        self.steps[mask] = 0
        return self.state.T.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Do an action in each pole. The results equal Gymnasium's bit for bit, and take half the time.

        :param action: [N], 0 or 1 for each pole
        """
        if (action >> 1).any():
            raise ValueError(f"the actions of the poles must be 0 or 1, not {action!r}")
        theta, theta_dot = self.state[2:]
        cosine, sine = np.cos(theta), np.sin(theta)
        force = np.where(action, self.force_mag, -self.force_mag)
        temp = (force + self.polemass_length * np.square(theta_dot) * sine) / self.total_mass
        length = self.length * (4.0 / 3.0 - self.masspole * np.square(cosine) / self.total_mass)
        angular_acceleration = (self.gravity * sine - cosine * temp) / length
        change = np.empty_like(self.state)
        change[0::2] = self.state[1::2]
        change[1] = temp - self.polemass_length * angular_acceleration * cosine / self.total_mass
        change[3] = angular_acceleration
        change *= self.tau
        change += self.state
        self.state = change
        self.steps += 1
        terminated = (np.abs(change[0]) > self.x_threshold) | (np.abs(change[2]) > self.theta_threshold_radians)
        rewards = -terminated.astype(np.float32) if self._sutton_barto_reward else np.ones(self.num_envs, np.float32)
        return change.T.astype(np.float32), rewards, terminated, self.steps >= self.max_episode_steps, {}

    def set_single(self, index: int, single: GymEnvironment) -> None:
        pole: Any = single.env.unwrapped
        self.streams[index].bit_generator.state = pole.np_random.bit_generator.state
        self.steps[index] = single.current_episode_steps_counter
        if pole.state is not None:  # an episode is in progress
            self.state[:, index] = pole.state

    def get_state(self) -> dict[str, Any]:
        streams = {str(index): stream.bit_generator.state for index, stream in enumerate(self.streams)}
        return {"poles": self.state.copy(), "steps": self.steps.copy(), "streams": streams}

    def set_state(self, state: dict[str, Any]) -> None:
        self.state, self.steps = np.array(state["poles"]), np.array(state["steps"], np.int32)
        for index, stream in enumerate(self.streams):
            stream.bit_generator.state = state["streams"][str(index)]
