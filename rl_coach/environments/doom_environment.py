"""The scenarios of ViZDoom (Kempka et al. 2016, "ViZDoom: a Doom-based AI research platform for visual reinforcement
learning").

ViZDoom is imported when an environment is made, not with this module.
"""

from __future__ import annotations

import os
import pathlib
import shlex
import sys
import tempfile
from enum import Enum
from typing import Any, Sequence, Union

import numpy as np

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import ActionType
from rl_coach.environments import own_session
from rl_coach.environments.environment import EnvironmentParameters, LevelSelection, SeededEnvironment
from rl_coach.environments.keyboard import DOWN, LEFT, RIGHT, UP
from rl_coach.filters.action.full_discrete_action_space_map import FullDiscreteActionSpaceMap
from rl_coach.filters.filter import InputFilter, OutputFilter
from rl_coach.filters.observation.observation_rescale_to_size_filter import ObservationRescaleToSizeFilter
from rl_coach.filters.observation.observation_rgb_to_y_filter import ObservationRGBToYFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.filters.observation.observation_to_uint8_filter import ObservationToUInt8Filter
from rl_coach.installation import import_package
from rl_coach.logger import screen
from rl_coach.spaces import ImageObservationSpace, MultiSelectActionSpace, VectorObservationSpace
from rl_coach.utilities.requirements import instance, whole
from rl_coach.utils import CoachError, did_you_mean

_TICS_PER_SECOND = 35
_HEIGHT, _WIDTH = 120, 160
"""The size of observations. Windows and videos show a larger screen."""

key_map = {
    "ATTACK": ord(" "), "CROUCH": ord("c"), "DROP_SELECTED_ITEM": ord("t"), "DROP_SELECTED_WEAPON": ord("t"),
    "JUMP": ord("j"), "LAND": ord("l"), "LOOK_DOWN": DOWN, "LOOK_UP": UP, "MOVE_BACKWARD": ord("s"),
    "MOVE_DOWN": ord("s"), "MOVE_FORWARD": ord("w"), "MOVE_LEFT": LEFT, "MOVE_RIGHT": RIGHT, "MOVE_UP": ord("w"),
    "RELOAD": ord("r"), "SELECT_NEXT_WEAPON": ord("q"), "SELECT_PREV_WEAPON": ord("e"),
    **{f"SELECT_WEAPON{number}": ord(str(number)) for number in range(10)},
    "SPEED": ord("x"), "STRAFE": ord("z"), "TURN180": ord("u"), "TURN_LEFT": ord("a"), "TURN_RIGHT": ord("d"),
    "USE": ord("f"),
}  # fmt: skip
"""The key of each button, for a person who plays."""


class DoomLevel(Enum):
    """Scenarios by the names that Coach uses. ViZDoom does not contain scenarios with a name that ends with
    ``COACH_LOCAL``."""

    BASIC = "basic.cfg"
    DEFEND = "defend_the_center.cfg"
    DEATHMATCH = "deathmatch.cfg"
    MY_WAY_HOME = "my_way_home.cfg"
    TAKE_COVER = "take_cover.cfg"
    HEALTH_GATHERING = "health_gathering.cfg"
    HEALTH_GATHERING_SUPREME_COACH_LOCAL = "D2_navigation.cfg"
    DEFEND_THE_LINE = "defend_the_line.cfg"
    DEADLY_CORRIDOR = "deadly_corridor.cfg"
    BATTLE_COACH_LOCAL = "D3_battle.cfg"


_SAME_TASK = {"D2_navigation.cfg": "health_gathering_supreme.cfg"}

# Grey images of 60×76 pixels, the last three stacked, as in Coach 1.0.1.
DoomInputFilter = InputFilter(is_a_reference_filter=True)
DoomInputFilter.add_observation_filter(
    "observation", "rescaling", ObservationRescaleToSizeFilter(ImageObservationSpace(np.array([60, 76, 3]), high=255))
)
DoomInputFilter.add_observation_filter("observation", "to_grayscale", ObservationRGBToYFilter())
DoomInputFilter.add_observation_filter("observation", "to_uint8", ObservationToUInt8Filter(0, 255))
DoomInputFilter.add_observation_filter("observation", "stacking", ObservationStackingFilter(3))

DoomOutputFilter = OutputFilter(is_a_reference_filter=True)
DoomOutputFilter.add_action_filter("to_discrete", FullDiscreteActionSpaceMap())


class DoomEnvironmentParameters(EnvironmentParameters):
    """Settings of a scenario of ViZDoom.

    :param level: a name of ``DoomLevel``, in any case, or the path of a scenario's ``.cfg`` file
    :ivar frame_skip: number of tics for which the buttons are held; a second has 35 tics
    :ivar cameras: the images to observe, ``DoomEnvironment.CameraTypes``; each is a separate observation
    :ivar max_simultaneous_buttons: largest number of buttons in one action
    """

    constraints = {"cameras": instance((list, tuple), "a list of cameras"), "max_simultaneous_buttons": whole(1)}
    path = "rl_coach.environments.doom_environment:DoomEnvironment"

    def __init__(self, level: Union[str, LevelSelection, None] = None):
        super().__init__(level=level)
        self.default_input_filter = DoomInputFilter
        self.default_output_filter = DoomOutputFilter
        self.cameras = [DoomEnvironment.CameraTypes.OBSERVATION]
        self.max_simultaneous_buttons = 1


class DoomEnvironment(SeededEnvironment):
    """A scenario of ViZDoom.

    Observations are an image [120, 160, 3] of each camera, and ``measurements``, the game variables of the scenario, if
    it has any. An action switches each button on or off.

    Each episode has its own seed from a random stream that starts with ``seed``, so an episode can be repeated.

    :param cameras: see ``DoomEnvironmentParameters``, also for ``max_simultaneous_buttons``
    :param kwargs: settings of ``Environment``
    :raises CoachError: if ViZDoom is not installed, or the scenario does not exist
    """

    class CameraTypes(Enum):
        """Kinds of images. Each value is the observation's name and ViZDoom's name of the image."""

        OBSERVATION = ("observation", "screen_buffer")
        DEPTH = ("depth", "depth_buffer")
        LABELS = ("labels", "labels_buffer")
        MAP = ("map", "automap_buffer")

    repeats_episodes = True

    def __init__(
        self,
        level: Union[str, LevelSelection, None],
        seed: int | None,
        frame_skip: int,
        human_control: bool,
        custom_reward_threshold: float | None,
        visualization_parameters: VisualizationParameters,
        cameras: Sequence[DoomEnvironment.CameraTypes],
        target_success_rate: float = 1.0,
        max_simultaneous_buttons: int = 1,
        **kwargs: Any,
    ):
        super().__init__(
            level, seed, frame_skip, human_control, custom_reward_threshold, visualization_parameters,
            target_success_rate, **kwargs,
        )  # fmt: skip
        self.cameras = list(cameras)
        self._rng = np.random.default_rng(seed)
        self._steps_per_second = _TICS_PER_SECOND / frame_skip
        self._directory = tempfile.TemporaryDirectory(prefix="coach-doom-")
        self.game = self._start(import_package("vizdoom"))
        self._read_spaces(max_simultaneous_buttons)
        self.reset_internal_state(True)

    def _start(self, vizdoom: Any) -> Any:
        """Load the game and start it in its own process."""
        game = vizdoom.DoomGame()
        config = scenario_file(self.env_id, pathlib.Path(vizdoom.scenarios_path))
        try:
            game.load_config(str(config))
            size = "RES_640X480" if self.human_control else "RES_320X240" if self._uses_images else "RES_160X120"
            game.set_screen_resolution(getattr(vizdoom.ScreenResolution, size))
            game.set_screen_format(vizdoom.ScreenFormat.RGB24)
            game.set_window_visible(self.native_rendering)
            game.set_mode(vizdoom.Mode.PLAYER)
            for show in (game.set_render_hud, game.set_render_crosshair, game.set_render_decals):
                show(False)
            game.set_render_particles(False)
            for camera in self.cameras:
                if camera is not self.CameraTypes.OBSERVATION:
                    getattr(game, f"set_{camera.value[1]}_enabled")(True)
            self._give_a_session(game, pathlib.Path(vizdoom.__file__).with_name("vizdoom"))
            game.init()
        except Exception as error:
            raise CoachError(f"level '{self.env_id}' does not start: {' '.join(str(error).split())}") from error
        return game

    def _give_a_session(self, game: Any, program: pathlib.Path) -> None:
        """Let ``own_session`` start the game's program in a new session, in the temporary directory."""
        game.set_doom_config_path(os.path.join(self._directory.name, "vizdoom.ini"))
        if os.name != "posix":
            return
        starter = pathlib.Path(self._directory.name, "vizdoom")
        command = shlex.join([sys.executable, "-I", "-S", own_session.__file__, str(program)])
        directory = shlex.quote(self._directory.name)
        starter.write_text(f'#!/bin/sh\ncd {directory} && exec {command} "$@"\n', encoding="utf-8")
        starter.chmod(0o700)
        game.set_vizdoom_path(str(starter))

    def _read_spaces(self, max_simultaneous_buttons: int) -> None:
        game = self.game
        buttons = [button.name for button in game.get_available_buttons()]
        most = min(max_simultaneous_buttons, len(buttons))
        self.action_space = MultiSelectActionSpace(len(buttons), most, descriptions=buttons)
        self.action_space.seed(self.seed)
        for index, button in enumerate(buttons):
            if button in key_map:
                self.key_to_action[(key_map[button],)] = np.eye(len(buttons), dtype=int)[index]
        for camera in self.cameras:
            self.state_space[camera.value[0]] = ImageObservationSpace(np.array([_HEIGHT, _WIDTH, 3]), high=255)
        names = [str(variable) for variable in game.get_available_game_variables()]
        if names:
            self.state_space["measurements"] = VectorObservationSpace(len(names), measurements_names=names)

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        self.game.set_seed(int(self._rng.integers(2**31)))
        self.game.new_episode()
        self._read_state()

    def _take_action(self, action: ActionType) -> None:
        self.reward = self.game.make_action(np.asarray(action).tolist(), self.frame_skip)
        self.done = self.game.is_episode_finished()
        self.truncated = self.done and self.game.is_episode_timeout_reached() and not self.game.is_player_dead()
        self._read_state()

    def _read_state(self) -> None:
        """Read the observations. After the end of an episode, ViZDoom has none, and the last observations stay."""
        state = self.game.get_state()
        if state is None:
            return
        self._images = {camera.value[0]: _as_image(getattr(state, camera.value[1])) for camera in self.cameras}
        every = self.game.get_screen_height() // _HEIGHT  # not a mean: labels are numbers of objects
        self.state = {name: np.ascontiguousarray(image[::every, ::every]) for name, image in self._images.items()}
        if "measurements" in self.state_space:
            self.state["measurements"] = np.asarray(state.game_variables, np.float32)

    def get_rendered_image(self) -> np.ndarray:
        """[height, width, 3] uint8, the images of all cameras, one below the other."""
        return np.vstack(list(self._images.values()))

    def close(self) -> None:
        super().close()
        self.game.close()
        self._directory.cleanup()


def _as_image(pixels: np.ndarray) -> np.ndarray:
    """A copy of an image as [height, width, 3]. An image with one number for each pixel becomes grey."""
    return np.repeat(pixels[:, :, None], 3, axis=2) if pixels.ndim == 2 else pixels.copy()


def scenario_file(level: str, scenarios: pathlib.Path) -> pathlib.Path:
    """The configuration file of a level. A name of ``DoomLevel`` has its file in ``$VIZDOOM_ROOT/scenarios`` or in
    ViZDoom's directory.

    :param level: a name of ``DoomLevel``, or the path of a ``.cfg`` file
    :param scenarios: ViZDoom's directory of scenarios
    :raises CoachError: if the file does not exist
    """
    if level.endswith(".cfg"):
        if not os.path.isfile(level):
            raise CoachError(f"there is no scenario file '{level}'")
        return pathlib.Path(level).resolve()
    if level.upper() not in DoomLevel.__members__:
        names = [one.name for one in DoomLevel]
        advice = did_you_mean(level.upper(), names) or f"; the levels are {', '.join(names)}, or a path of a .cfg file"
        raise CoachError(f"no level '{level}'{advice}")
    name = DoomLevel[level.upper()].value
    root = os.environ.get("VIZDOOM_ROOT")
    directories = [scenarios] if root is None else [pathlib.Path(root, "scenarios"), scenarios]
    for directory in directories:
        if (directory / name).is_file():
            return directory / name
    if name in _SAME_TASK:
        screen.warning(f"level '{level}': using {_SAME_TASK[name]} ({name} came with Coach 1.0.1, not with ViZDoom)")
        return scenarios / _SAME_TASK[name]
    raise CoachError(
        f"level '{level}' needs {name}, which came with Coach 1.0.1 and not with ViZDoom: put it and its .wad into "
        f"$VIZDOOM_ROOT/scenarios, or set env_params.level to its path"
    )
