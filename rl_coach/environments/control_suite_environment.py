"""The DeepMind Control Suite (Tassa et al. 2018, "DeepMind Control Suite").

dm_control is imported when an environment is made, not with this module.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Union

import numpy as np

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import ActionType
from rl_coach.environments.environment import EnvironmentParameters, LevelSelection, SeededEnvironment
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter
from rl_coach.installation import import_package
from rl_coach.spaces import BoxActionSpace, ImageObservationSpace, VectorObservationSpace
from rl_coach.utilities.requirements import member
from rl_coach.utils import CoachError, did_you_mean

_TASKS = {
    "acrobot": ("swingup", "swingup_sparse"),
    "ball_in_cup": ("catch",),
    "cartpole": ("balance", "balance_sparse", "swingup", "swingup_sparse"),
    "cheetah": ("run",),
    "finger": ("spin", "turn_easy", "turn_hard"),
    "fish": ("upright", "swim"),
    "hopper": ("stand", "hop"),
    "humanoid": ("stand", "walk", "run"),
    "manipulator": ("bring_ball",),
    "pendulum": ("swingup",),
    "point_mass": ("easy",),
    "reacher": ("easy", "hard"),
    "swimmer": ("swimmer6", "swimmer15"),
    "walker": ("stand", "walk", "run"),
}
control_suite_envs = {f"{domain}:{task}": f"{domain}:{task}" for domain, tasks in _TASKS.items() for task in tasks}
"""The tasks of the suite's benchmark by name. A level may also be another task of the suite."""

ControlSuiteInputFilter = NoInputFilter()
ControlSuiteOutputFilter = NoOutputFilter()

_IMAGE_SIZE = 84


class ObservationType(Enum):
    """Observations that a level gives: ``measurements``, the image ``pixels``, or both."""

    Measurements = 1
    Image = 2
    Image_and_Measurements = 3


class ControlSuiteEnvironmentParameters(EnvironmentParameters):
    """Settings of a task of the DeepMind Control Suite.

    :param level: ``domain:task``, such as ``cartpole:swingup``
    :ivar frame_skip: number of control steps that an action lasts, by default 4; their rewards are added
    :ivar observation_type: the observations. Images need OpenGL. Without a display, set the environment variable
        ``MUJOCO_GL`` to ``egl`` or ``osmesa``
    """

    constraints = {"observation_type": member(ObservationType)}
    path = "rl_coach.environments.control_suite_environment:ControlSuiteEnvironment"

    def __init__(self, level: Union[str, LevelSelection, None] = None):
        super().__init__(level=level)
        self.observation_type = ObservationType.Measurements
        self.default_input_filter = ControlSuiteInputFilter
        self.default_output_filter = ControlSuiteOutputFilter


class ControlSuiteEnvironment(SeededEnvironment):
    """A task of the DeepMind Control Suite.

    Each episode has its own seed from a random stream that starts with ``seed``, so an episode can be repeated.

    The observations are ``measurements``, a vector of all numbers that the task observes, and ``pixels`` [84, 84, 3].
    The time limit truncates an episode.

    :param observation_type: see ``ControlSuiteEnvironmentParameters``
    :param kwargs: settings of ``Environment``
    :raises CoachError: if dm_control is not installed, or the task does not exist
    """

    repeats_episodes = True

    def __init__(
        self,
        level: Union[str, LevelSelection, None],
        frame_skip: int,
        visualization_parameters: VisualizationParameters,
        target_success_rate: float = 1.0,
        seed: int | None = None,
        human_control: bool = False,
        observation_type: ObservationType = ObservationType.Measurements,
        custom_reward_threshold: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(
            level, seed, frame_skip, human_control, custom_reward_threshold, visualization_parameters,
            target_success_rate, **kwargs,
        )  # fmt: skip
        self.observation_type = observation_type
        self._rng = np.random.default_rng(seed)
        self.env = _load(self.env_id)
        self._read_spaces()
        self.reset_internal_state(True)

    def _read_spaces(self) -> None:
        actions = self.env.action_spec()
        self.action_space = BoxActionSpace(
            np.array(actions.shape), np.array(actions.minimum), np.array(actions.maximum)
        )
        self.action_space.seed(self.seed)
        if self.observation_type is not ObservationType.Image:
            size = sum(int(np.prod(part.shape)) for part in self.env.observation_spec().values())
            self.state_space["measurements"] = VectorObservationSpace(size)
        if self.observation_type is not ObservationType.Measurements:
            self.state_space["pixels"] = ImageObservationSpace(np.array([_IMAGE_SIZE, _IMAGE_SIZE, 3]), high=255)

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        self.env.task.random.seed(int(self._rng.integers(2**31)))
        self._read(self.env.reset())

    def _take_action(self, action: ActionType) -> None:
        total = 0.0
        for _ in range(self.frame_skip):
            answer = self.env.step(action)
            total += answer.reward
            if answer.last():
                break
        self.reward = total
        self._read(answer)

    def _read(self, answer: Any) -> None:
        """Read the answer to a step. In the last step of an episode, its discount is 0 if the task ended the episode,
        and 1 at the time limit."""
        self.done = answer.last()
        self.truncated = self.done and answer.discount > 0
        self.state = {}
        if "measurements" in self.state_space:
            parts = [np.ravel(part) for part in answer.observation.values()]
            self.state["measurements"] = np.concatenate(parts).astype(np.float32)
        if "pixels" in self.state_space:
            self.state["pixels"] = self.env.physics.render(_IMAGE_SIZE, _IMAGE_SIZE, camera_id=0)

    def get_rendered_image(self) -> np.ndarray:
        """[240, 320, 3] uint8."""
        return self.env.physics.render(camera_id=0)

    def close(self) -> None:
        super().close()
        self.env.close()


def _load(level: str) -> Any:
    suite = import_package("dm_control.suite")
    names = [":".join(pair) for pair in suite.ALL_TASKS]
    if level not in names:
        advice = did_you_mean(level, names) or f"; a level is domain:task, such as {', '.join(names[:3])}"
        raise CoachError(f"the DeepMind Control Suite has no level '{level}'{advice}")
    domain, task = level.split(":")
    return suite.load(domain, task)
