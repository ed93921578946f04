"""Environments with Gymnasium's interface: classic control, MuJoCo, Atari, goal environments, and users' environments.

Gymnasium and the simulators are imported when an environment is made, not with this module.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence, Union, cast

import numpy as np

from rl_coach.base_parameters import ScheduleParameters, VisualizationParameters
from rl_coach.core_types import ActionType, EnvironmentSteps, RunPhase, StateType
from rl_coach.environments.arcade import FRAMES_PER_SECOND, ArcadeRules
from rl_coach.environments.environment import Environment, EnvironmentParameters, LevelSelection
from rl_coach.environments.gym_levels import (
    atari_deterministic_v4,
    atari_no_frameskip_v4,
    fetch_v1,
    gym_atari_envs,
    gym_fetch_envs,
    gym_mujoco_envs,
    gym_roboschool_envs,
    logger,
    mujoco_v2,
    roboschool_v1,
    say_once,
)
from rl_coach.environments.keyboard import NAMES_OF_ACTIONS, Keyboard
from rl_coach.environments.observation_space_type import ObservationSpaceType
from rl_coach.environments.rendering import drawing
from rl_coach.filters.filter import InputFilter, NoInputFilter, NoOutputFilter
from rl_coach.spaces import ImageObservationSpace, ObservationSpace, RewardSpace
from rl_coach.utilities.requirements import FLAG, TEXT, check, flags, instance, list_of, member, optional, whole
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.environments.gym_probe import Probe

__all__ = [
    "Atari",
    "AtariInputFilter",  # noqa: F822
    "AtariOutputFilter",
    "GymEnvironment",
    "GymEnvironmentParameters",
    "GymVectorEnvironment",
    "MaxOverFramesAndFrameskipEnvWrapper",  # noqa: F822
    "ObservationSpaceType",
    "atari_deterministic_v4",
    "atari_no_frameskip_v4",
    "atari_schedule",  # noqa: F822
    "fetch_v1",
    "gym_atari_envs",
    "gym_fetch_envs",
    "gym_mujoco_envs",
    "gym_roboschool_envs",
    "mujoco_v2",
    "roboschool_v1",
]


class GymEnvironmentParameters(EnvironmentParameters):
    """Settings of a Gymnasium environment.

    :ivar frame_skip: number of steps with the same action; rewards are summed. 1 does not change the level
    :ivar random_initialization_steps: the largest number of no-ops at the start of an Atari game; 0 turns them off
    :ivar no_ops_last_single_frames: True: each no-op lasts one frame, as in Gymnasium's ``AtariPreprocessing``. False:
        each no-op lasts ``frame_skip`` frames, as in Coach 1.0.1
    :ivar max_over_num_frames: number of the last frames of an action that are merged by their pixelwise maximum; 1 uses
        only the last frame
    :ivar additional_simulator_parameters: keyword arguments for the simulator's constructor
    :ivar observation_space_type: kind of the observations; None decides by their shape and dtype
    :ivar observations: the names of the observations to use, if the environment has several; None uses all that
        networks can read. A nested observation has the name ``'outer/inner'``
    :ivar life_loss_ends_training_episode: a lost life ends an Atari episode in training, but not in evaluation
    :ivar combines_choices: for MultiDiscrete, MultiBinary, Tuple and Dict spaces. True: each combination of choices is
        one discrete action. False: an action has a choice for each part of the space. None is False for agents that
        support actions of several parts, otherwise True
    :cvar seen_by_agents: the names of the settings that an exported policy stores, except ``combines_choices``, which
        the policy's action space shows
    """

    constraints = {
        **flags("no_ops_last_single_frames", "life_loss_ends_training_episode"),
        "combines_choices": optional(FLAG),
        "random_initialization_steps": whole(0),
        "max_over_num_frames": whole(1),
        "additional_simulator_parameters": optional(instance(dict, "a dictionary")),
        "observation_space_type": optional(member(ObservationSpaceType)),
        "observations": optional(list_of(TEXT)),
    }
    path = "rl_coach.environments.gym_environment:GymEnvironment"
    seen_by_agents = (
        "frame_skip", "max_over_num_frames", "random_initialization_steps", "no_ops_last_single_frames",
        "observation_space_type", "observations",
    )  # fmt: skip

    def __init__(self, level: Union[str, LevelSelection, None] = None):
        super().__init__(level)
        self.frame_skip = 1
        self.random_initialization_steps = 0
        self.no_ops_last_single_frames = False
        self.max_over_num_frames = 1
        self.additional_simulator_parameters: dict[str, Any] = {}
        self.observation_space_type: ObservationSpaceType | None = None
        self.observations: list[str] | None = None
        self.life_loss_ends_training_episode = True
        self.combines_choices: bool | None = None

    def as_seen(self) -> dict[str, Any]:
        """The settings that an exported policy stores, by name, as plain data. They let the environment show the policy
        the same observations."""
        found = {name: getattr(self, name) for name in self.seen_by_agents}
        kind = self.observation_space_type
        return {**found, "observation_space_type": None if kind is None else kind.name}

    def see_as(self, seen: Any) -> None:
        """Restore the settings from a result of ``as_seen``. :raises CoachError: if the settings are damaged"""
        if not isinstance(seen, dict) or set(seen) != set(self.seen_by_agents):
            raise CoachError(f"the environment's settings are damaged: {str(seen)[:80]}")
        vars(self).update(seen)
        kind = seen["observation_space_type"]
        if kind in ObservationSpaceType.__members__:
            self.observation_space_type = ObservationSpaceType[kind]
        check(self, "environment")


class GymVectorEnvironment(GymEnvironmentParameters):
    """Settings of an environment with vectors as observations; it has no default filters."""

    def __init__(self, level: Union[str, LevelSelection, None] = None):
        super().__init__(level)
        self.default_input_filter = NoInputFilter()
        self.default_output_filter = NoOutputFilter()


class Atari(GymEnvironmentParameters):
    """Settings of an Atari game as in DQN (Mnih et al. 2015, Methods): an action lasts four frames, and the last two of
    them are merged. Episodes begin with up to 30 no-ops. ``AtariInputFilter`` describes the images."""

    def __init__(self, level: Union[str, LevelSelection, None] = None):
        super().__init__(level)
        self.frame_skip = 4
        self.max_over_num_frames = 2
        self.random_initialization_steps = 30
        self.default_input_filter = _atari_input_filter()
        self.default_output_filter = AtariOutputFilter


@functools.cache
def _atari_input_filter() -> InputFilter:
    """Rewards clipped to -1..1; images of 84×84 grey pixels, the last four stacked."""
    from rl_coach.filters.observation.observation_rescale_to_size_filter import ObservationRescaleToSizeFilter
    from rl_coach.filters.observation.observation_rgb_to_y_filter import ObservationRGBToYFilter
    from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
    from rl_coach.filters.observation.observation_to_uint8_filter import ObservationToUInt8Filter
    from rl_coach.filters.reward.reward_clipping_filter import RewardClippingFilter

    input_filter = InputFilter(is_a_reference_filter=True)
    input_filter.add_reward_filter("clipping", RewardClippingFilter(-1.0, 1.0))
    size = ImageObservationSpace(np.array([84, 84, 3]), high=255)
    input_filter.add_observation_filter("observation", "rescaling", ObservationRescaleToSizeFilter(size))
    input_filter.add_observation_filter("observation", "to_grayscale", ObservationRGBToYFilter())
    input_filter.add_observation_filter("observation", "to_uint8", ObservationToUInt8Filter(0, 255))
    input_filter.add_observation_filter("observation", "stacking", ObservationStackingFilter(4))
    return input_filter


AtariOutputFilter = NoOutputFilter()


def __getattr__(name: str) -> Any:
    """Values of this module that need further imports. Each access to ``atari_schedule`` returns a new schedule."""
    if name == "AtariInputFilter":
        return _atari_input_filter()
    if name == "MaxOverFramesAndFrameskipEnvWrapper":
        from rl_coach.environments import gym_wrappers

        return gym_wrappers.MaxOverFramesAndFrameskipEnvWrapper
    if name == "atari_schedule":
        # of the DQN papers, in steps of four frames
        schedule = ScheduleParameters()
        schedule.improve_steps = EnvironmentSteps(50_000_000)
        schedule.steps_between_evaluation_periods = EnvironmentSteps(250_000)
        schedule.evaluation_steps = EnvironmentSteps(135_000)
        schedule.heatup_steps = EnvironmentSteps(50_000)
        return schedule
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class GymEnvironment(Environment):
    """A Gymnasium environment.

    The first episode after the construction is the one that ``gymnasium``'s ``reset(seed=seed)`` begins; later
    episodes continue the environment's random stream.

    :param level: an id of Gymnasium (also an old one), ``module:Class`` or ``path/to/file.py:Class``
    :param frame_skip: this and the other settings are described in ``GymEnvironmentParameters``. If the environment
        repeats actions itself and has an attribute ``frameskip``, Coach sets this attribute
    :param visualization_parameters: windows and videos
    :param combines_choices: True or None: each combination of choices is one discrete action
    :param kwargs: ``experiment_path``, the directory of videos
    :cvar copies_observations: True copies all observations; False copies them only if the environment reuses its arrays
    :raises CoachError: if the level does not exist, a package is missing, or Coach does not support its spaces
    """

    repeats_episodes = True
    copies_observations = False
    _step_simulator: Callable[[Any], tuple]

    def __init__(
        self,
        level: Union[str, LevelSelection],
        frame_skip: int,
        visualization_parameters: VisualizationParameters,
        target_success_rate: float = 1.0,
        additional_simulator_parameters: dict[str, Any] | None = None,
        seed: int | None = None,
        human_control: bool = False,
        custom_reward_threshold: float | None = None,
        random_initialization_steps: int = 1,
        max_over_num_frames: int = 1,
        observation_space_type: ObservationSpaceType | None = None,
        life_loss_ends_training_episode: bool = True,
        no_ops_last_single_frames: bool = False,
        observations: Sequence[str] | None = None,
        combines_choices: bool | None = None,
        **kwargs: Any,
    ):
        if level is None:
            raise CoachError("no level is selected: choose one with -lvl, or set env_params.level in the preset")
        super().__init__(
            level, seed, _usual_frame_skip(str(level), frame_skip), human_control, custom_reward_threshold,
            visualization_parameters, target_success_rate, **kwargs,
        )  # fmt: skip
        self.additional_simulator_parameters = additional_simulator_parameters or {}
        found = self._connect(self._make_simulator(), observation_space_type, observations, combines_choices)
        single_frames = self.env
        self._hold_actions(max_over_num_frames)
        self._single_frames = single_frames if no_ops_last_single_frames else None
        self._check_first_steps(found)
        if custom_reward_threshold is None:
            specification = getattr(self._simulator, "spec", None)
            self.reward_success_threshold = getattr(specification, "reward_threshold", None)
        self.reward_space = RewardSpace(1, reward_success_threshold=self.reward_success_threshold)

        self._arcade: ArcadeRules | None = None
        self.is_atari_env = hasattr(self._simulator, "ale")
        if self.is_atari_env:
            self._arcade = ArcadeRules(
                self._simulator, random_initialization_steps, life_loss_ends_training_episode, seed
            )
        self.action_space.seed(seed)
        self._next_seed = seed
        self.reset_internal_state(force_environment_reset=True)
        self._next_seed = seed
        self.action_space.seed(seed)

    def _make_simulator(self) -> Any:
        from rl_coach.environments.vector_levels import make_simulator  # brings Gymnasium, which a worker may not need

        return make_simulator(self.env_id, self.additional_simulator_parameters, self.frame_skip, self._render_mode())

    def _connect(
        self,
        simulator: Any,
        observation_space_type: ObservationSpaceType | None,
        names: Sequence[str] | None,
        combines_choices: bool | None,
    ) -> Probe:
        """Set the spaces and their converters. :return: the simulator's answers to a first reset and step"""
        from rl_coach.environments import gym_probe, gym_spaces, gym_wrappers

        actions: list[str] = getattr(getattr(simulator, "unwrapped", simulator), "get_action_meanings", list)()
        space = gym_wrappers.present_space(simulator.action_space)
        self.action_space, self._to_simulator_action = gym_spaces.action_space_of(
            space, self.env_id, actions, combines_choices
        )
        found = gym_probe.probe(simulator, functools.partial(gym_spaces.allowed_action, self._action_space), self.seed)
        self.env = found.env
        self._simulator = self.env.unwrapped
        self._read_state = gym_spaces.StateReader(
            gym_wrappers.present_space(simulator.observation_space), self.action_space, observation_space_type,
            self.env_id, found.observation, found.info, copies=self.copies_observations or found.reuses_memory,
            names=names,
        )  # fmt: skip
        if left_out := self._read_state.left_out:
            listed = ", ".join(f"'{name}' ({type(part).__name__})" for name, part in left_out.items())
            say_once(f"level '{self.env_id}': observations that no network can read are left out: {listed}")
        self.state_space = self._read_state.state_space
        if "desired_goal" in self.state_space:
            self.goal_space = cast(ObservationSpace, self.state_space["desired_goal"])
        if self.human_control:
            self._prepare_for_a_person(gym_probe.keys_to_actions(self._simulator, self._action_space), actions)
        return found

    def _check_first_steps(self, found: Probe) -> None:
        from rl_coach.environments.environment_checks import FirstSteps

        def replace(step: Any) -> None:
            self._step_simulator = step

        checked = FirstSteps(self.env_id, self._step_simulator, self.env.observation_space, replace)
        checked.check_reset(found.observation, found.info, found.steps_are_of_old_gym)
        self._step_simulator = checked

    def _prepare_for_a_person(self, own_keys: dict[tuple[int, ...], Any], names: list[str]) -> None:
        known = NAMES_OF_ACTIONS.get(type(self._simulator).__name__)
        self.key_to_action = own_keys
        self._keyboard = Keyboard(self.action_space, own_keys, None if names else known)
        is_arcade = hasattr(self._simulator, "ale")
        metadata = getattr(self._simulator, "metadata", {})
        rate = FRAMES_PER_SECOND if is_arcade else metadata.get("render_fps")
        self._steps_per_second = None if rate is None else rate / self.frame_skip

    def simulator_action(self, action: ActionType) -> Any:
        """An agent's action in the simulator's form."""
        return action if self._to_simulator_action is None else self._to_simulator_action(action)

    def state_of(self, observation: Any, info: dict[str, Any]) -> StateType:
        """The state for an observation and an info of the simulator."""
        return self._read_state(observation, info)

    def state_columns(self, observations: Any, infos: Mapping[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
        """The states for several observations and infos of the simulator; see ``StateReader.columns``."""
        return self._read_state.columns(observations, infos, count)

    def _hold_actions(self, max_over_num_frames: int) -> None:
        if self.frame_skip > 1 and hasattr(self._simulator, "frameskip"):
            self._simulator.frameskip = self.frame_skip
        elif self.frame_skip > 1:
            from rl_coach.environments.gym_wrappers import MaxOverFramesAndFrameskipEnvWrapper

            self.env = MaxOverFramesAndFrameskipEnvWrapper(self.env, self.frame_skip, max_over_num_frames)
        step, convert = self.env.step, self._to_simulator_action
        self._step_simulator = step if convert is None else lambda action: step(convert(action))

    @property
    def functions(self) -> Any:
        """The environment as pure functions, a ``FunctionEnvironment``; None for other simulators."""
        return getattr(self._simulator, "functions", None)

    @property
    def beginning(self) -> Any:
        """The beginning of the current episode, a ``Beginning``; None if the environment is not made of pure
        functions."""
        return getattr(self._simulator, "beginning", None)

    def _take_action(self, action: ActionType) -> None:
        observation, self.reward, terminated, truncated, info = self._step_simulator(action)
        self.info = {} if info is None else info  # a step may return None, even if earlier steps returned an info
        self.state = self._read_state(observation, self.info)
        self.done = terminated or truncated
        self.truncated = truncated and not terminated

    def _update_state(self) -> None:
        if self.goal_space is not None:
            self.goal = self.state["desired_goal"]
        if self._arcade is not None and self._arcade.has_lost_life(self.info):
            self._go_on_without_life(self._arcade)

    def _go_on_without_life(self, arcade: ArcadeRules) -> None:
        is_training = self._phase in (RunPhase.TRAIN, RunPhase.HEATUP)
        if is_training and arcade.life_loss_ends_training_episode:
            self.done, self.truncated = True, False
        elif not self.done:
            reward = self.reward
            self._press_fire(arcade)
            self.reward += reward

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        if self._arcade is None:
            self._reset_simulator()
        elif force_environment_reset or self.truncated or self._arcade.is_game_over():
            self._begin_game(self._arcade)
        else:
            self._take_action(self._action_space.default_action)
            if self.done:
                self._begin_game(self._arcade)
            else:
                self._press_fire(self._arcade)

    def _begin_game(self, arcade: ArcadeRules) -> None:
        """Reset the game, do a random number of no-ops, and press FIRE if the game waits for it."""
        self._reset_simulator()
        for _ in range(arcade.draw_num_no_ops()):
            self._pass_no_op()
            if self.done:
                self._reset_simulator()
        self._press_fire(arcade)
        if self.done:
            self._reset_simulator()

    def _pass_no_op(self) -> None:
        no_op = self._action_space.default_action
        if self._single_frames is None:
            self._take_action(no_op)
            return
        observation, self.reward, terminated, truncated, self.info = self._single_frames.step(
            self.simulator_action(no_op)
        )
        self.state = self._read_state(observation, self.info)
        self.done = terminated or truncated

    def _press_fire(self, arcade: ArcadeRules) -> None:
        """Press FIRE. Games such as Breakout stand still after each lost life until FIRE is pressed."""
        if arcade.fire_action is not None:
            self._take_action(arcade.fire_action)
        arcade.has_lost_life(self.info)

    def seed_episodes(self, seed: int) -> None:
        self._next_seed = seed
        self.action_space.seed(seed)
        if self._arcade is not None:
            self._arcade.rng = np.random.default_rng(seed)

    def _reset_simulator(self) -> None:
        observation, info = self.env.reset(seed=self._next_seed)
        self.info = {} if info is None else info
        self._next_seed = None
        self.state = self._read_state(observation, self.info)
        self.done = self.truncated = False

    def get_rendered_image(self) -> np.ndarray:
        """The simulator's picture of the current state: [height, width, 3] uint8.

        :raises CoachError: if the level returns no images, or the images cannot be drawn here
        """
        try:
            with drawing():
                image = self.env.render()
        except Exception as error:
            raise CoachError(f"level '{self.env_id}' cannot be rendered: {type(error).__name__}: {error}") from error
        if image is None:
            raise CoachError(
                f"level '{self.env_id}' returns no images: it has no render_mode 'rgb_array', or was made without it "
                "because no window, video or image was requested"
            )
        return np.asarray(image)

    def get_state(self) -> dict[str, Any]:
        state = super().get_state()
        generator = getattr(self._simulator, "np_random", None)
        state["next_seed"] = self._next_seed
        state["simulator"] = generator.bit_generator.state if isinstance(generator, np.random.Generator) else None
        state["arcade"] = None if self._arcade is None else self._arcade.get_state()
        state["elapsed_steps"] = {str(i): wrapper._elapsed_steps for i, wrapper in enumerate(self._time_limits())}
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._next_seed = state["next_seed"]
        if state["simulator"] is not None:
            self._simulator.np_random.bit_generator.state = state["simulator"]
        if self._arcade is not None:
            self._arcade.set_state(state["arcade"])
        for wrapper, elapsed in zip(self._time_limits(), state["elapsed_steps"].values()):
            wrapper._elapsed_steps = elapsed

    def _time_limits(self) -> list[Any]:
        """The wrappers that count steps towards a limit. They continue to count from one life of a game to the next."""
        found: list[Any] = []
        env: Any = self.env
        while env is not None:
            if "_elapsed_steps" in vars(env):
                found.append(env)
            env = vars(env).get("env")
        return found

    def close(self) -> None:
        super().close()
        self.env.close()


def _usual_frame_skip(level: str, frame_skip: int) -> int:
    """The usual frame skip: 3 instead of 4 for Space Invaders. Its laser beams blink at a multiple of four frames, so
    they would never be visible (Mnih et al. 2013, section 5)."""
    if level == "SpaceInvadersDeterministic-v4" and frame_skip == 4:
        logger.warning("level '%s': actions last 3 frames instead of 4, so that the lasers are visible", level)
        return 3
    return frame_skip
