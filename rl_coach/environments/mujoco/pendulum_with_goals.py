"""A pendulum to swing up and hold, as a goal environment: the task of hierarchical actor-critic (Levy et al. 2019,
"Learning Multi-Level Hierarchies with Hindsight", section 5)."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
from gymnasium import spaces

from rl_coach.environments.mujoco.common import ASSETS, read_model

MAX_VELOCITY = 15.0
IMAGE_SIZE = 480


class PendulumWithGoals(gym.Env):
    """Bring the pendulum to an angle and a velocity by a torque of -2 to 2 Nm.

    Observations are a dict of ``observation``, ``desired_goal`` and ``achieved_goal``: each the cosine and the sine of
    the angle from upright (radians) and the angular velocity (rad/s, clipped to ±15), [3] float32. A goal includes a
    velocity, so the goal of standing upright is ``[1, 0, 0]``.

    :param goal_reaching_thresholds: for each element, the largest distance between ``achieved_goal`` and
        ``desired_goal`` that counts as reached
    :param goal_not_reached_penalty: the reward of a step that does not reach the goal
    :param goal_reached_reward: the reward of a step that reaches the goal
    :param terminate_on_goal_reaching: terminate the episode when the goal is reached
    :param time_limit: largest length of an episode in steps; 0 sets no limit
    :param frameskip: simulator steps of 2 ms in each step
    :param random_goals_instead_of_standing_goal: draw goals within ±pi/8 rad and ±0.2 rad/s of standing
    :param polar_coordinates: observe the angle itself (-pi to pi) instead of its cosine and sine. The vectors are then
        [2], and the thresholds must have two elements
    :param render_mode: ``'rgb_array'`` or None
    :param polar_goals: use the angle itself in ``desired_goal`` and ``achieved_goal`` only, as in the paper. The
        pendulum can then reach all goals within the bounds
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}

    def __init__(
        self,
        goal_reaching_thresholds: np.ndarray | None = None,
        goal_not_reached_penalty: float = -1,
        goal_reached_reward: float = 0,
        terminate_on_goal_reaching: bool = True,
        time_limit: int = 1000,
        frameskip: int = 1,
        random_goals_instead_of_standing_goal: bool = False,
        polar_coordinates: bool = False,
        render_mode: str | None = None,
        polar_goals: bool = False,
    ):
        self.polar_goals = polar_goals or polar_coordinates
        states, goals = _bounds(polar_coordinates), _bounds(self.polar_goals)
        if goal_reaching_thresholds is None:
            goal_reaching_thresholds = np.array([0.075, 0.75] if self.polar_goals else [0.075, 0.075, 0.75])
        self.goal_reaching_thresholds = np.asarray(goal_reaching_thresholds)
        if self.goal_reaching_thresholds.shape != goals.shape:
            raise ValueError(f"{goals.size} goal_reaching_thresholds are needed, not {goal_reaching_thresholds}")
        self.goal_not_reached_penalty = goal_not_reached_penalty
        self.goal_reached_reward = goal_reached_reward
        self.terminate_on_goal_reaching = terminate_on_goal_reaching
        self.time_limit = time_limit
        self.frameskip = frameskip
        self.random_goals_instead_of_standing_goal = random_goals_instead_of_standing_goal
        self.polar_coordinates = polar_coordinates
        self.render_mode = render_mode
        self.steps = 0

        self.model = mujoco.MjModel.from_xml_string(read_model("pendulum_with_goals.xml"), ASSETS)
        self.data = mujoco.MjData(self.model)
        self._renderer: mujoco.Renderer | None = None
        self.goal = _coordinates(0.0, 0.0, self.polar_goals)
        state, goal = (spaces.Box(-each, each, dtype=np.float32) for each in (states, goals))
        self.observation_space = spaces.Dict({"observation": state, "desired_goal": goal, "achieved_goal": goal})
        torque = self.model.actuator_ctrlrange[0].astype(np.float32)
        self.action_space = spaces.Box(torque[:1], torque[1:], dtype=np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Let the pendulum start almost at rest, at a random angle more than 45 degrees from upright, and set a
        goal."""
        super().reset(seed=seed)
        self.steps = 0
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[0] = self.np_random.uniform(np.pi / 4, 7 * np.pi / 4)
        self.data.qvel[0] = self.np_random.uniform(-0.05, 0.05)
        angle, velocity = 0.0, 0.0
        if self.random_goals_instead_of_standing_goal:
            angle = self.np_random.uniform(-np.pi / 8, np.pi / 8)
            velocity = self.np_random.uniform(-0.2, 0.2)
        self.goal = _coordinates(angle, velocity, self.polar_goals)
        self.data.mocap_quat[0] = [np.cos(angle / 2), 0, np.sin(angle / 2), 0]
        mujoco.mj_forward(self.model, self.data)
        return self._observe(), {}

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Apply a torque, [1] in Nm, for ``frameskip`` steps of the simulator."""
        self.steps += 1
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, nstep=self.frameskip)
        observation = self._observe()
        reached = self._is_reached(observation["achieved_goal"])
        reward = self.goal_reached_reward if reached else self.goal_not_reached_penalty
        terminated = reached and self.terminate_on_goal_reaching
        return observation, reward, terminated, self.steps == self.time_limit and not terminated, {}

    def _is_reached(self, achieved: np.ndarray) -> bool:
        distance = achieved - self.goal
        if self.polar_goals:
            distance[0] = _wrapped(distance[0])
        return bool(np.all(np.abs(distance) <= self.goal_reaching_thresholds))

    def _observe(self) -> dict[str, np.ndarray]:
        angle, velocity = self.data.qpos[0], self.data.qvel[0]
        return {
            "observation": _coordinates(angle, velocity, self.polar_coordinates),
            "desired_goal": self.goal.copy(),
            "achieved_goal": _coordinates(angle, velocity, self.polar_goals),
        }

    def render(self) -> np.ndarray:
        """The pendulum from the front, with the goal's angle in green: [480, 480, 3] uint8."""
        if self._renderer is None:
            self._renderer = mujoco.Renderer(self.model, IMAGE_SIZE, IMAGE_SIZE)
        self._renderer.update_scene(self.data, camera="front")
        return self._renderer.render()

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None


def _bounds(is_polar: bool) -> np.ndarray:
    return np.array([np.pi, MAX_VELOCITY] if is_polar else [1, 1, MAX_VELOCITY], dtype=np.float32)


def _coordinates(angle: float, velocity: float, is_polar: bool) -> np.ndarray:
    velocity = min(max(velocity, -MAX_VELOCITY), MAX_VELOCITY)
    place = [_wrapped(angle)] if is_polar else [np.cos(angle), np.sin(angle)]
    return np.array([*place, velocity], dtype=np.float32)


def _wrapped(angle: float) -> float:
    """The same angle within -pi to pi."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)
