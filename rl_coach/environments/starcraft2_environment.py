"""The maps of StarCraft II (Vinyals et al. 2017, "StarCraft II: a new challenge for reinforcement learning").

pysc2 is imported when an environment is made, not with this module.
"""

from __future__ import annotations

import contextlib
import random
import sys
from enum import Enum
from types import SimpleNamespace
from typing import Any, Iterator, Sequence, Union

import numpy as np

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import ActionType
from rl_coach.environments.environment import Environment, EnvironmentParameters, LevelSelection
from rl_coach.filters.action.linear_box_to_box_map import LinearBoxToBoxMap
from rl_coach.filters.filter import InputFilter, OutputFilter
from rl_coach.filters.observation.observation_move_axis_filter import ObservationMoveAxisFilter
from rl_coach.filters.observation.observation_to_uint8_filter import ObservationToUInt8Filter
from rl_coach.installation import missing_package
from rl_coach.spaces import (
    ActionSpace,
    BoxActionSpace,
    CompoundActionSpace,
    DiscreteActionSpace,
    PlanarMapsObservationSpace,
    VectorObservationSpace,
)
from rl_coach.utilities.requirements import FLAG, instance, member, whole
from rl_coach.utils import CoachError

SCREEN_SIZE = 84

StarcraftInputFilter = InputFilter(is_a_reference_filter=True)
for _name in ("screen", "minimap"):
    StarcraftInputFilter.add_observation_filter(_name, "move_axis", ObservationMoveAxisFilter(0, -1))
    StarcraftInputFilter.add_observation_filter(_name, "to_uint8", ObservationToUInt8Filter(0, 255))

StarcraftNormalizingOutputFilter = OutputFilter(is_a_reference_filter=True)
StarcraftNormalizingOutputFilter.add_action_filter(
    "normalization", LinearBoxToBoxMap(input_space_low=-SCREEN_SIZE / 2, input_space_high=SCREEN_SIZE / 2 - 1)
)

_WITH_PYTHON_PROTOBUF = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python"


class StarcraftObservationType(Enum):
    """Content of the screen and the minimap: maps of features, or colours."""

    Features = 0
    RGB = 1


class StarCraft2EnvironmentParameters(EnvironmentParameters):
    """Settings of a map of StarCraft II.

    :param level: the map's name, such as ``CollectMineralShards``
    :ivar frame_skip: number of the game's steps that an action lasts; a second has 22.4 steps
    :ivar screen_size: height and width of the screen in pixels
    :ivar minimap_size: height and width of the minimap in pixels
    :ivar feature_screen_maps_to_use: indices of the screen's feature maps to observe, in this order
    :ivar feature_minimap_maps_to_use: indices of the minimap's feature maps to observe, in this order
    :ivar observation_type: feature maps or colours
    :ivar disable_fog: show the whole map, not only the parts that the player's units see
    :ivar auto_select_all_army: an episode begins with the whole army selected
    :ivar use_full_action_space: True: an action is any function of the game with its arguments. False: an action is the
        point of the screen that the selected units move to
    """

    constraints = {
        "screen_size": whole(1),
        "minimap_size": whole(1),
        "feature_minimap_maps_to_use": instance((list, tuple, range), "a list of indices"),
        "feature_screen_maps_to_use": instance((list, tuple, range), "a list of indices"),
        "observation_type": member(StarcraftObservationType),
        "disable_fog": FLAG,
        "auto_select_all_army": FLAG,
        "use_full_action_space": FLAG,
    }
    path = "rl_coach.environments.starcraft2_environment:StarCraft2Environment"

    def __init__(self, level: Union[str, LevelSelection, None] = None):
        super().__init__(level=level)
        self.screen_size = 84
        self.minimap_size = 64
        self.feature_minimap_maps_to_use: Sequence[int] = range(7)
        self.feature_screen_maps_to_use: Sequence[int] = range(17)
        self.observation_type = StarcraftObservationType.Features
        self.disable_fog = False
        self.auto_select_all_army = True
        self.default_input_filter = StarcraftInputFilter
        self.default_output_filter = StarcraftNormalizingOutputFilter
        self.use_full_action_space = False


class StarCraft2Environment(Environment):
    """A map of StarCraft II, played by one agent with Terran units.

    Observations are ``screen`` [maps, screen_size, screen_size], ``minimap`` [maps, minimap_size, minimap_size]
    (colours have three maps), and ``measurements`` [11], the game's counts for the player.

    An action is the point (x, y) of the screen that the selected units move to. With ``use_full_action_space``, it is a
    list: a function's number, and one value for each kind of argument. The game reads only the arguments of this
    function. A function that is not available does nothing. The observation ``available_actions`` [functions] has a 1
    for each available function.

    The game draws its own random numbers from ``seed``; an episode cannot be repeated.

    :param screen_size: this and the other settings are described in ``StarCraft2EnvironmentParameters``
    :param kwargs: settings of ``Environment``
    :raises CoachError: if pysc2 or the game is not installed, or the map does not exist
    """

    def __init__(
        self,
        level: Union[str, LevelSelection, None],
        frame_skip: int,
        visualization_parameters: VisualizationParameters,
        target_success_rate: float = 1.0,
        seed: int | None = None,
        human_control: bool = False,
        custom_reward_threshold: float | None = None,
        screen_size: int = 84,
        minimap_size: int = 64,
        feature_minimap_maps_to_use: Sequence[int] = range(7),
        feature_screen_maps_to_use: Sequence[int] = range(17),
        observation_type: StarcraftObservationType = StarcraftObservationType.Features,
        disable_fog: bool = False,
        auto_select_all_army: bool = True,
        use_full_action_space: bool = False,
        **kwargs: Any,
    ):
        super().__init__(
            level, seed, frame_skip, human_control, custom_reward_threshold, visualization_parameters,
            target_success_rate, **kwargs,
        )  # fmt: skip
        self.sizes = {"screen": screen_size, "minimap": minimap_size}
        self.maps = {"screen": list(feature_screen_maps_to_use), "minimap": list(feature_minimap_maps_to_use)}
        self.observation_type = observation_type
        self.disable_fog = disable_fog
        self.auto_select_all_army = auto_select_all_army
        self.use_full_action_space = use_full_action_space
        self._pysc2 = _import_pysc2()
        self._available: np.ndarray = np.array([], int)
        self.env = self._start()
        self._read_spaces()
        self.reset_internal_state(True)

    def _start(self) -> Any:
        sc2_env = self._pysc2.sc2_env
        shows_features = self.observation_type is StarcraftObservationType.Features
        dimensions = "feature_dimensions" if shows_features else "rgb_dimensions"
        shown = {dimensions: sc2_env.Dimensions(**self.sizes)}
        if not self._pysc2.flags.FLAGS.is_parsed():
            self._pysc2.flags.FLAGS.mark_as_parsed()  # pysc2 needs parsed flags; Coach's command line has none
        try:
            return sc2_env.SC2Env(
                map_name=self.env_id,
                players=[sc2_env.Agent(sc2_env.Race.terran)],
                agent_interface_format=sc2_env.AgentInterfaceFormat(**shown),
                step_mul=self.frame_skip,
                visualize=self.native_rendering,
                random_seed=self.seed,
                disable_fog=self.disable_fog,
                ensure_available_actions=not self.use_full_action_space,
            )
        except Exception as error:
            raise CoachError(f"level '{self.env_id}' does not start: {' '.join(str(error).split())}") from error

    def _read_spaces(self) -> None:
        for name, size in self.sizes.items():
            highest = self._highest(name)[:, None, None]
            high = np.broadcast_to(highest, (len(highest), size, size))
            self.state_space[name] = PlanarMapsObservationSpace(high.shape, 0, high, channels_axis=0)
        names = [one.name for one in self._pysc2.features.Player]
        self.state_space["measurements"] = VectorObservationSpace(len(names), 0, measurements_names=names)
        if self.use_full_action_space:
            count = len(list(self._pysc2.actions.FUNCTIONS))
            self.state_space["available_actions"] = VectorObservationSpace(count, 0, 1)
        self.action_space = self._every_function() if self.use_full_action_space else self._points("screen")
        self.action_space.seed(self.seed)

    def _highest(self, name: str) -> np.ndarray:
        """[maps], the largest value of each map. It is at least 255, because the default filter needs this range."""
        if self.observation_type is StarcraftObservationType.RGB:
            return np.full(3, 255)
        return np.array([max(255, self._features(name)[index].scale - 1) for index in self.maps[name]])

    def _features(self, name: str) -> Any:
        features = self._pysc2.features
        return features.SCREEN_FEATURES if name == "screen" else features.MINIMAP_FEATURES

    def _points(self, name: str) -> BoxActionSpace:
        size = self.sizes[name]
        return BoxActionSpace(2, 0, size - 1, ["x", "y"], default_action=np.full(2, size // 2))

    def _every_function(self) -> CompoundActionSpace:
        actions = self._pysc2.actions
        spaces: list[ActionSpace] = [
            DiscreteActionSpace(len(list(actions.FUNCTIONS)), [function.name for function in actions.FUNCTIONS])
        ]
        for kind in actions.TYPES:
            is_point = kind.name in ("screen", "screen2", "minimap")
            spaces.append(
                self._points(kind.name.rstrip("2")) if is_point else DiscreteActionSpace(int(np.prod(kind.sizes)))
            )
        return CompoundActionSpace(spaces)

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        self._read(self.env.reset()[0])
        functions = self._pysc2.actions.FUNCTIONS
        if self.auto_select_all_army and functions.select_army.id in self._available:
            self._read(self.env.step([functions.select_army("select")])[0])

    def _take_action(self, action: ActionType) -> None:
        call = self._any_function(action) if self.use_full_action_space else self._movement(action)
        answer = self.env.step([call])[0]
        self.reward = float(answer.reward)
        self.done = answer.last()
        # A game with a result ends with discount 0. A game that is too long ends with the discount of the other steps.
        self.truncated = self.done and answer.discount > 0
        self._read(answer)

    def _movement(self, point: Any) -> Any:
        functions = self._pysc2.actions.FUNCTIONS
        if functions.Move_screen.id in self._available:
            return functions.Move_screen("now", np.rint(point).astype(int).tolist())
        return functions.no_op()

    def _any_function(self, action: Any) -> Any:
        actions = self._pysc2.actions
        number, *values = action
        function = actions.FUNCTIONS[int(number)]
        if function.id not in self._available:
            return actions.FUNCTIONS.no_op()
        arguments = [np.rint(np.atleast_1d(values[kind.id])).astype(int).tolist() for kind in function.args]
        return actions.FunctionCall(function.id, arguments)

    def _read(self, answer: Any) -> None:
        observation = answer.observation
        self._available = np.asarray(observation["available_actions"])
        self.state = {name: self._maps_of(name, observation) for name in self.sizes}
        self.state["measurements"] = np.asarray(observation["player"], np.float32)
        if self.use_full_action_space:
            mask = np.zeros(len(list(self._pysc2.actions.FUNCTIONS)), np.float32)
            mask[self._available] = 1
            self.state["available_actions"] = mask

    def _maps_of(self, name: str, observation: Any) -> np.ndarray:
        if self.observation_type is StarcraftObservationType.RGB:
            return np.moveaxis(np.asarray(observation[f"rgb_{name}"]), -1, 0)
        return np.asarray(observation[f"feature_{name}"])[self.maps[name]]

    def _update_state(self) -> None:
        """Do nothing: nothing depends on the state."""

    def get_rendered_image(self) -> np.ndarray:
        """[screen_size, screen_size, 3] uint8: the screen, or its first feature map in pysc2's colours."""
        if self.observation_type is StarcraftObservationType.RGB:
            return np.moveaxis(self.state["screen"], 0, -1).astype(np.uint8)
        feature = self._features("screen")[self.maps["screen"][0]]
        return np.asarray(feature.color(self.state["screen"][0])).astype(np.uint8)

    def close(self) -> None:
        super().close()
        self.env.close()


def _import_pysc2() -> SimpleNamespace:
    """The parts of pysc2 that Coach uses."""
    try:
        with _shuffle_of_python_3_10():
            from pysc2.env import sc2_env
            from pysc2.lib import actions, features
        from absl import flags
    except ModuleNotFoundError as error:
        raise CoachError(missing_package(error)) from error
    except TypeError as error:
        if "Descriptors cannot be created directly" not in str(error):
            raise
        raise CoachError(
            f"pysc2 needs protobuf without its compiled part: set the environment variable {_WITH_PYTHON_PROTOBUF}"
        ) from error
    return SimpleNamespace(sc2_env=sc2_env, actions=actions, features=features, flags=flags)


@contextlib.contextmanager
def _shuffle_of_python_3_10() -> Iterator[None]:
    """Inside this context, ``random.shuffle`` accepts a second argument, as up to Python 3.10. pysc2 4.0 passes this
    argument when it is imported."""
    if sys.version_info < (3, 11):
        yield
        return
    shuffle = random.shuffle

    def shuffle_by(items: Any, draw: Any = None) -> None:
        if draw is None:
            shuffle(items)
            return
        for last in reversed(range(1, len(items))):
            other = int(draw() * (last + 1))
            items[last], items[other] = items[other], items[last]

    random.shuffle = shuffle_by  # type: ignore[assignment]
    try:
        yield
    finally:
        random.shuffle = shuffle
