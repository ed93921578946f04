"""The robots and tasks of robosuite (Zhu et al. 2020, "robosuite: a modular simulation framework and benchmark for
robot learning").

robosuite is imported when an environment is made, not with this module.
"""

from __future__ import annotations

import copy
import inspect
import os
import pathlib
from collections import namedtuple
from enum import Flag, auto
from typing import Any, Union

import numpy as np

from rl_coach.base_parameters import Parameters, VisualizationParameters
from rl_coach.core_types import ActionType
from rl_coach.environments.environment import EnvironmentParameters, LevelSelection, SeededEnvironment
from rl_coach.installation import install_command, missing_package
from rl_coach.spaces import BoxActionSpace, PlanarMapsObservationSpace, VectorObservationSpace
from rl_coach.utilities.requirements import FLAG, TEXT, flags, instance, optional, whole
from rl_coach.utils import CoachError, choose_from, did_you_mean

robosuite_environments = (
    "CubeExp", "Door", "Lift", "NutAssembly", "NutAssemblyRound", "NutAssemblySingle", "NutAssemblySquare", "PickPlace",
    "PickPlaceBread", "PickPlaceCan", "PickPlaceCereal", "PickPlaceMilk", "PickPlaceSingle", "Stack", "ToolHang",
    "TwoArmHandover", "TwoArmLift", "TwoArmPegInHole", "TwoArmTransport", "Wipe",
)  # fmt: skip
"""The tasks of robosuite 1.5, and Coach's ``CubeExp``."""
robosuite_robots = ("Baxter", "GR1", "IIWA", "Jaco", "Kinova3", "Panda", "PandaOmron", "Sawyer", "UR5e", "XArm7")
"""Robots of robosuite 1.5 with one or two arms. Other robots of robosuite can be used too."""
robosuite_controllers = ("JOINT_VELOCITY", "JOINT_TORQUE", "JOINT_POSITION", "OSC_POSITION", "OSC_POSE", "IK_POSE")
"""Names of robosuite's controllers for an arm."""

DEFAULT_REWARD_SCALES = {"Lift": 2.25}
"""The largest reward of a step, by the name of the level; 1 for other levels."""

RobosuiteStepResult = namedtuple("RobosuiteStepResult", ["observation", "reward", "done", "info"])

_OUR_DIRECTORY = pathlib.Path(__file__).with_name("robosuite")
_OF_THE_ADAPTER = ("robots", "controller_configs", "renderer", "seed")
_VELOCITIES = ("_vel", "_acc", "_qvel")


class OptionalObservations(Flag):
    """Observations beyond the robot's own joints: a camera's image, and the places of objects."""

    NONE = 0
    CAMERA = auto()
    OBJECT = auto()


class RobosuiteBaseParameters(Parameters):
    """Settings that all tasks of robosuite have, by robosuite's names.

    :param optional_observations: observations in addition to the robot's joints
    :ivar horizon: steps after which an episode is truncated
    :ivar ignore_done: the task does not end episodes
    :ivar reward_shaping: True gives a reward at each step, False only for success
    :ivar control_freq: actions in a second of the simulation
    :ivar use_camera_obs: observe the camera's image; see ``optional_observations``
    :ivar use_object_obs: observe the places of objects; see ``optional_observations``
    :ivar has_renderer: open robosuite's own window
    :ivar render_camera: the camera of windows and videos
    :ivar has_offscreen_renderer: make images without a window, which cameras need
    :ivar render_collision_mesh: draw the shapes that collisions are computed with
    :ivar render_visual_mesh: draw the visible shapes
    :ivar camera_names: the camera to observe
    :ivar camera_heights: height of its image in pixels
    :ivar camera_widths: width of its image in pixels
    :ivar camera_depths: observe the depth of each pixel as a fourth channel
    :ivar penalize_reward_on_collision: see ``CubeExp``
    :ivar end_episode_on_collision: see ``CubeExp``
    """

    constraints = {
        "horizon": whole(1),
        "control_freq": whole(1),
        "render_camera": TEXT,
        "camera_names": TEXT,
        "camera_heights": whole(1),
        "camera_widths": whole(1),
        **flags(
            "camera_depths", "ignore_done", "reward_shaping", "use_camera_obs", "use_object_obs", "has_renderer",
            "has_offscreen_renderer", "render_collision_mesh", "render_visual_mesh", "penalize_reward_on_collision",
            "end_episode_on_collision",
        ),
    }  # fmt: skip

    def __init__(self, optional_observations: OptionalObservations = OptionalObservations.NONE):
        self.horizon = 1000
        self.ignore_done = True
        self.reward_shaping = True
        self.control_freq = 10
        self.use_camera_obs = bool(optional_observations & OptionalObservations.CAMERA)
        self.use_object_obs = bool(optional_observations & OptionalObservations.OBJECT)
        self.has_renderer = False
        self.render_camera = "frontview"
        self.has_offscreen_renderer = self.use_camera_obs
        self.render_collision_mesh = False
        self.render_visual_mesh = True
        self.camera_names = "agentview"
        self.camera_heights = 84
        self.camera_widths = 84
        self.camera_depths = False
        self.penalize_reward_on_collision = True
        self.end_episode_on_collision = False

    @property
    def optional_observations(self) -> OptionalObservations:
        """Observations beyond the robot's own joints."""
        camera = OptionalObservations.CAMERA if self.use_camera_obs else OptionalObservations.NONE
        objects = OptionalObservations.OBJECT if self.use_object_obs else OptionalObservations.NONE
        return camera | objects

    @optional_observations.setter
    def optional_observations(self, value: OptionalObservations) -> None:
        self.use_camera_obs = bool(value & OptionalObservations.CAMERA)
        self.use_object_obs = bool(value & OptionalObservations.OBJECT)
        self.has_offscreen_renderer = self.use_camera_obs

    def env_kwargs_dict(self) -> dict[str, Any]:
        """The settings in robosuite's form."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class RobosuiteEnvironmentParameters(EnvironmentParameters):
    """Settings of a task of robosuite.

    :param level: the task, one of ``robosuite_environments``
    :param robot: the robot, by robosuite's name, or a list of two for tasks with two arms
    :param controller: one of ``robosuite_controllers``; None for the robot's default controller
    :param apply_dr: change cameras, lights and dynamics at random
    :param dr_every_n_steps_min: smallest number of steps between two random changes; the number is drawn for each
        episode
    :param dr_every_n_steps_max: largest number of steps between two random changes
    :param use_joint_vel_obs: observe velocities and accelerations too
    :ivar base_parameters: settings that all tasks have
    :ivar extra_parameters: settings of the task, by robosuite's names; they override ``base_parameters``
    :ivar custom_controller_config_fpath: a JSON file of a controller's settings; it overrides ``controller``
    """

    constraints = {
        "base_parameters": instance(RobosuiteBaseParameters, "RobosuiteBaseParameters"),
        "extra_parameters": instance(dict, "a dictionary"),
        "robot": optional(instance((str, list, tuple), "the name of a robot, or a list of two")),
        "controller": optional(TEXT),
        "apply_dr": FLAG,
        "dr_every_n_steps_min": whole(1),
        "dr_every_n_steps_max": whole(1),
        "use_joint_vel_obs": FLAG,
        "custom_controller_config_fpath": optional(TEXT),
    }
    path = "rl_coach.environments.robosuite_environment:RobosuiteEnvironment"

    def __init__(
        self,
        level: Union[str, LevelSelection, None] = None,
        robot: Any = None,
        controller: str | None = None,
        apply_dr: bool = False,
        dr_every_n_steps_min: int = 10,
        dr_every_n_steps_max: int = 20,
        use_joint_vel_obs: bool = False,
    ):
        super().__init__(level=level)
        self.base_parameters = RobosuiteBaseParameters()
        self.extra_parameters: dict[str, Any] = {}
        self.robot = robot
        self.controller = controller
        self.apply_dr = apply_dr
        self.dr_every_n_steps_min = dr_every_n_steps_min
        self.dr_every_n_steps_max = dr_every_n_steps_max
        self.use_joint_vel_obs = use_joint_vel_obs
        self.custom_controller_config_fpath: str | None = None


class RobosuiteGoalBasedExpEnvironmentParameters(RobosuiteEnvironmentParameters):
    """Settings of a task of robosuite for an agent that sets itself goals."""

    path = "rl_coach.environments.robosuite_environment:RobosuiteGoalBasedExpEnvironment"


class RobosuiteEnvironment(SeededEnvironment):
    """A task of robosuite.

    The observation ``measurements`` is a vector of the robots' sensors and, with ``use_object_obs``, of the objects'
    places. ``use_camera_obs`` adds the observation ``camera`` [height, width, 3]; a depth is a fourth channel.

    Each episode has its own seed from a random stream that starts with ``seed``. With ``apply_dr``, an episode cannot
    be repeated.

    :param base_parameters: this and the other settings are described in ``RobosuiteEnvironmentParameters``
    :param kwargs: settings of ``Environment``
    :raises CoachError: if robosuite is not installed, or a task, robot or controller does not exist
    """

    def __init__(
        self,
        level: Union[str, LevelSelection, None],
        seed: int | None,
        frame_skip: int,
        human_control: bool,
        custom_reward_threshold: float | None,
        visualization_parameters: VisualizationParameters,
        base_parameters: RobosuiteBaseParameters,
        extra_parameters: dict[str, Any],
        robot: Any,
        controller: str | None,
        target_success_rate: float = 1.0,
        apply_dr: bool = False,
        dr_every_n_steps_min: int = 10,
        dr_every_n_steps_max: int = 20,
        use_joint_vel_obs: bool = False,
        custom_controller_config_fpath: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(
            level, seed, frame_skip, human_control, custom_reward_threshold, visualization_parameters,
            target_success_rate, **kwargs,
        )  # fmt: skip
        self.base_parameters = copy.copy(base_parameters)
        own = vars(self.base_parameters)
        own.update({name: value for name, value in extra_parameters.items() if name in own})
        self.use_joint_vel_obs = use_joint_vel_obs
        self._changes = (dr_every_n_steps_min, dr_every_n_steps_max) if apply_dr else None
        self._rng = np.random.default_rng(seed)
        suite = _import_robosuite()
        settings = {
            **self._own_settings(_task(suite, self.env_id)),
            **extra_parameters,
            "robots": _robot(suite, robot),
            "controller_configs": _controller(suite, controller, custom_controller_config_fpath, robot),
            "seed": self._draw_seed(),
        }
        try:
            self.env = suite.make(self.env_id, **settings)
            if self._changes is not None:
                from robosuite.wrappers import DomainRandomizationWrapper

                # robosuite 1.5 changes colours with MuJoCo 3.1.1 only
                self.env = DomainRandomizationWrapper(self.env, seed=self._draw_seed(), randomize_color=False)
        except Exception as error:
            raise CoachError(f"level '{self.env_id}' does not start: {' '.join(str(error).split())}") from error
        self._task = self.env.unwrapped if self._changes is not None else self.env
        self._read_spaces()
        self.reset_internal_state(True)

    def _own_settings(self, task: Any) -> dict[str, Any]:
        """The base parameters for a task, without parameters that only other tasks accept."""
        settings = self.base_parameters.env_kwargs_dict()
        settings["has_renderer"] |= self.native_rendering
        settings["has_offscreen_renderer"] |= self._uses_images and not self.native_rendering
        if self._changes is not None:
            settings["hard_reset"] = False  # loading the model again would undo robosuite's random changes
        settings["renderer"] = "mjviewer" if settings["has_renderer"] else "mujoco"
        return {name: value for name, value in settings.items() if name in _parameters_of(task)}

    def _draw_seed(self) -> int:
        return int(self._rng.integers(2**31))

    def _read_spaces(self) -> None:
        low, high = self.env.action_spec
        self.action_space = BoxActionSpace(len(low), low, high)
        self.action_space.seed(self.seed)
        observed = self._observations(self._task.observation_spec())
        self.state_space["measurements"] = VectorObservationSpace(len(observed["measurements"]))
        if "camera" in observed:
            self.state_space["camera"] = PlanarMapsObservationSpace(observed["camera"].shape, 0, 255)

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        # changed in place, because robosuite's other objects hold this generator too
        self._task.rng.bit_generator.state = np.random.default_rng(self._draw_seed()).bit_generator.state
        if self._changes is not None:
            fewest, most = self._changes
            self.env.randomize_every_n_steps = int(self._rng.integers(fewest, max(most, fewest) + 1))
        self.state = self._observations(self.env.reset())

    def _take_action(self, action: ActionType) -> None:
        total = 0.0
        for _ in range(self.frame_skip):
            answer = RobosuiteStepResult(*self.env.step(np.asarray(action)))
            total += answer.reward
            if answer.done:
                break
        self.reward = total
        self.done = bool(answer.done)
        self.truncated = self.done and self._task.timestep >= self.base_parameters.horizon
        self.state = self._observations(answer.observation)

    def _observations(self, raw: Any) -> dict[str, np.ndarray]:
        parts = [raw[name] for name in raw if self._is_measured(name)]
        state = {"measurements": np.concatenate([np.ravel(part) for part in parts]).astype(np.float32)}
        camera = self.base_parameters.camera_names
        if f"{camera}_image" in raw:
            channels = [raw[f"{camera}_image"]]
            if f"{camera}_depth" in raw:
                channels.append(np.round(raw[f"{camera}_depth"] * 255).astype(np.uint8))
            state["camera"] = np.flip(np.concatenate(channels, axis=-1), axis=0).copy()  # its first row is the lowest
        return state

    def _is_measured(self, name: str) -> bool:
        if name == "object-state":
            return True
        is_velocity = name.endswith(_VELOCITIES)
        is_joined = name.endswith(("-state", "_image", "_depth"))
        return name.startswith("robot") and not is_joined and (self.use_joint_vel_obs or not is_velocity)

    def get_rendered_image(self) -> np.ndarray:
        """The image of ``render_camera``, [240, 320, 3] uint8."""
        image = self._task.sim.render(width=320, height=240, camera_name=self.base_parameters.render_camera)
        return np.flip(image, axis=0)

    def _render(self) -> None:
        self._task.render()

    def close(self) -> None:
        super().close()
        self.env.close()


class RobosuiteGoalBasedExpEnvironment(RobosuiteEnvironment):
    """A task of robosuite with the observation ``obs-goal`` [height, width, 6]. This observation contains zeros; the
    agent replaces them by the camera's image and the image of its goal.

    :raises CoachError: if no camera is observed
    """

    def _read_spaces(self) -> None:
        super()._read_spaces()
        if "camera" not in self.state_space:
            raise CoachError(
                "goals are images: set base_parameters.optional_observations to OptionalObservations.CAMERA"
            )
        height, width, channels = map(int, self.state_space["camera"].shape)
        self.state_space["obs-goal"] = PlanarMapsObservationSpace((height, width, 2 * channels), 0, 255)

    def _observations(self, raw: Any) -> dict[str, np.ndarray]:
        state = super()._observations(raw)
        if "camera" in state:
            state["obs-goal"] = np.concatenate([np.zeros_like(state["camera"])] * 2, axis=-1)
        return state


def get_robosuite_env_extra_parameters(env_name: str) -> dict[str, Any]:
    """The settings of a task that ``RobosuiteBaseParameters`` does not have, with their defaults.

    :raises CoachError: if robosuite is not installed, or the task does not exist
    """
    others = {*RobosuiteBaseParameters().env_kwargs_dict(), *_OF_THE_ADAPTER}
    parameters = _parameters_of(_task(_import_robosuite(), env_name))
    return {name: default for name, default in parameters.items() if name not in others}


def _parameters_of(task: Any) -> dict[str, Any]:
    """The parameters of a task's class with their defaults, including parameters that it passes to its base classes."""
    found: dict[str, Any] = {}
    for kind in inspect.getmro(task):
        if (initializer := vars(kind).get("__init__")) is None:
            continue
        parameters = inspect.signature(initializer).parameters
        for name, parameter in parameters.items():
            if name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                found.setdefault(name, parameter.default)
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            break
    return found


def _import_robosuite() -> Any:
    try:
        import robosuite

        from rl_coach.environments.robosuite import cube_exp  # noqa: F401 which makes it known to robosuite
    except ModuleNotFoundError as error:
        if error.name != "robosuite":
            raise CoachError(f"robosuite cannot be imported: {missing_package(error)}") from error
        raise CoachError(
            f"robosuite is not installed: {install_command('robosuite')}, in an environment without JAX"
        ) from error
    return robosuite


def _task(suite: Any, name: str) -> Any:
    from robosuite.environments.base import REGISTERED_ENVS

    known = [*suite.ALL_ENVIRONMENTS, "CubeExp"]
    if name not in known:
        raise CoachError(f"robosuite has no level '{name}'{choose_from(name, known)}")
    return REGISTERED_ENVS[name]


def _robot(suite: Any, robot: Any) -> Any:
    if robot is None:
        raise CoachError(f"no robot is selected: set env_params.robot to one of {', '.join(robosuite_robots)}")
    for name in [robot] if isinstance(robot, str) else robot:
        if name not in suite.ALL_ROBOTS:
            advice = did_you_mean(name, list(suite.ALL_ROBOTS)) or f"; it has {', '.join(robosuite_robots)}"
            raise CoachError(f"robosuite has no robot '{name}'{advice}")
    return robot


def _controller(suite: Any, controller: str | None, file: str | None, robot: Any) -> Any:
    """The settings of the robots' controllers; None uses robosuite's defaults."""
    if controller is None and file is None:
        return None
    if file is None and controller not in robosuite_controllers:
        raise CoachError(f"robosuite has no controller '{controller}'; it has {', '.join(robosuite_controllers)}")
    from robosuite.controllers.composite.composite_controller_factory import refactor_composite_controller_config

    settings = suite.load_part_controller_config(
        custom_fpath=None if file is None else str(controller_file(file)), default_controller=controller
    )
    robots = [robot] if isinstance(robot, str) else list(robot)
    made = [refactor_composite_controller_config(settings, name, ["right"]) for name in robots]
    return made[0] if isinstance(robot, str) else made


def controller_file(path: str) -> pathlib.Path:
    """The file of a controller's settings. A path in Coach's repository also works in other working directories: the
    file is then found in the installed package.

    :raises CoachError: if the file does not exist
    """
    ours = _OUR_DIRECTORY / os.path.basename(path)
    for candidate in (pathlib.Path(path), ours if "rl_coach/environments/robosuite" in path else None):
        if candidate is not None and candidate.is_file():
            return candidate
    raise CoachError(f"there is no file '{path}' with controller settings")
