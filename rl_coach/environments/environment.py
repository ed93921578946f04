"""Environments: their settings, the choice of a level, and the base class that every simulator's adapter extends."""

from __future__ import annotations

import contextlib
import hashlib
import math
import pathlib
import re
from typing import Any, Callable, Iterator, Sequence, Union

import numpy as np

from rl_coach.base_parameters import Parameters, VisualizationParameters
from rl_coach.core_types import ActionType, EnvResponse, GoalType, RunPhase, StateType
from rl_coach.environments.environment_interface import EnvironmentInterface
from rl_coach.environments.episode_record import EpisodeRecord, actions_of
from rl_coach.environments.gym_levels import FUNCTION_LEVEL
from rl_coach.environments.keyboard import Keyboard
from rl_coach.environments.rendering import EpisodeVideo, Window, WindowClosed, has_display, side_by_side
from rl_coach.logger import screen
from rl_coach.spaces import ActionSpace, ObservationSpace, RewardSpace, StateSpace, clips_actions
from rl_coach.utilities.requirements import FLAG, FRACTION, limit, one_of, optional, whole
from rl_coach.utilities.user_code import environment_error
from rl_coach.utils import CoachError, TrainingError, did_you_mean, force_list

VIDEO_FRAMES_PER_SECOND = 10
_STEPS_PER_SECOND = 30
"""Steps per second in a window, for a level without its own rate."""
MOST_ENVIRONMENTS = 100_000
"""The largest number of copies. A larger number is a mistake, because no machine has the memory for it."""
_FULL_NAME = re.compile(rf"[\w.:/-]+-v\d+|[\w.]+:[\w-]+/[\w-]+|[\w.]+:[A-Z]\w*|.+\.py:\w+|{FUNCTION_LEVEL.pattern}")
_FUNCTION_NAME = re.compile(r"[\w.]+:[a-z_]\w*")
"""``module:function``; levels of other libraries may have the same form (``cartpole:swingup``)."""
_EPISODE_ATTRIBUTES = (
    "state", "reward", "done", "truncated", "info", "goal", "last_action", "last_env_response",
    "total_reward_in_current_episode", "_record",
)  # fmt: skip


class LevelSelection:
    """A level that is chosen by name, when the experiment is defined or later with ``-lvl``."""

    def __init__(self, level: str | None):
        self.selected_level = level

    def select(self, level: str) -> None:
        """Choose a level."""
        self.selected_level = level

    def __str__(self) -> str:
        """The chosen level's name.

        :raises CoachError: if no level has been chosen
        """
        if self.selected_level is None:
            raise CoachError("no level is selected: choose one with -lvl, or set it in the preset")
        return self.selected_level


class SingleLevelSelection(LevelSelection):
    """The choice of a level: one of the given levels, or another level by its full name.

    A full name is an id of Gymnasium with its version or its namespace (``Hopper-v5``, ``module:Level-v0``,
    ``module:Space/Level``), a class or function (``module:Class``, ``path/to/file.py:Class``), or an environment of
    pure functions (``playground:CartpoleBalance``, ``brax:ant``).

    :param levels: a dict from the names that users choose to the levels; or the levels themselves, as a list or as one
        text
    :param force_lower: if no level has the chosen name, look the name up in lower case
    """

    def __init__(self, levels: Union[str, list[str], dict[str, str]], force_lower: bool = True):
        super().__init__(None)
        self.levels = levels if isinstance(levels, dict) else {level: level for level in force_list(levels)}
        self.force_lower = force_lower

    def select(self, level: str) -> None:
        """Choose a level by its name.

        :raises CoachError: if the level does not exist; the message suggests similar ones
        """
        self._find(level)
        self.selected_level = level

    def _find(self, name: str) -> str:
        key = name.lower() if self.force_lower and name not in self.levels else name
        if key in self.levels:
            return self.levels[key]
        if name in self.levels.values() or _FULL_NAME.fullmatch(name):
            return name
        if _FUNCTION_NAME.fullmatch(name) and not any(":" in level for level in self.levels.values()):
            return name
        raise CoachError(f"no level '{name}'{did_you_mean(name, self.levels) or f'; the levels are {self._choices()}'}")

    def _choices(self) -> str:
        names = sorted(self.levels)
        return ", ".join(names) if len(names) <= 12 else f"{', '.join(names[:10])}, … ({len(names)} in all)"

    def __str__(self) -> str:
        """The full name of the chosen level.

        :raises CoachError: if no level has been chosen, or the chosen one does not exist
        """
        if self.selected_level is None:
            raise CoachError(f"no level is selected: choose one with -lvl from {self._choices()}")
        return self._find(self.selected_level)


class CustomWrapper:
    """Wrapper of an environment. Attributes that the wrapper does not define are the environment's."""

    def __init__(self, environment: Any):
        self.environment = environment

    def __getattr__(self, name: str) -> Any:
        if name == "environment":  # not set yet while a copy is being made
            raise AttributeError(name)
        return getattr(self.environment, name)


class EnvironmentParameters(Parameters):
    """Settings of an environment.

    :param level: the level's name, or a ``LevelSelection``
    :ivar frame_skip: number of simulator steps with the same action; 1 uses each action for one step
    :ivar seed: seed of all random numbers; with a seed, the environment is repeatable. None draws a seed
    :ivar human_control: True: a person acts with the keyboard
    :ivar custom_reward_threshold: smallest total reward of a successful episode; None uses the simulator's threshold
    :ivar default_input_filter: the input filter for agents without an input filter
    :ivar default_output_filter: the output filter for agents without an output filter
    :ivar experiment_path: the directory that videos are written to
    :ivar target_success_rate: the share of evaluation episodes that must succeed, 0 to 1, for
        ``--apply_stop_condition`` to stop the run
    :ivar num_environments: number of environment copies that the agent acts in
    :ivar vectorization: ``"sync"`` steps the copies one after the other, ``"async"`` steps each in its own process, and
        ``"native"`` steps all of them in one call, if the level has its own vector environment. ``"auto"`` is
        ``"native"`` if this vector environment plays exactly the same episodes (CartPole), otherwise ``"sync"``
    """

    constraints = {
        "frame_skip": whole(1),
        "seed": optional(whole(0)),
        "human_control": FLAG,
        "custom_reward_threshold": optional(limit(low=-math.inf)),
        "target_success_rate": FRACTION,
        "num_environments": whole(1, MOST_ENVIRONMENTS),
        "vectorization": one_of("auto", "sync", "async", "native"),
    }
    path = "rl_coach.environments.environment:Environment"

    def __init__(self, level: Union[str, LevelSelection, None] = None):
        self.level = level
        self.frame_skip = 4
        self.seed: int | None = None
        self.human_control = False
        self.custom_reward_threshold: float | None = None
        self.default_input_filter: Any = None
        self.default_output_filter: Any = None
        self.experiment_path: str | None = None
        self.target_success_rate = 1.0
        self.num_environments = 1
        self.vectorization = "auto"


class Environment(EnvironmentInterface):
    """Base of all environments.

    A subclass sets ``state_space``, ``action_space`` and, if there are goals, ``goal_space``, and defines

    - ``_take_action(action)``: acts, and sets ``state``, ``reward``, ``done`` and ``info``. It also sets ``truncated``
      if a limit on the length ended the episode;
    - ``_restart_environment_episode(force_environment_reset)``: begins an episode and sets ``state``;
    - ``_update_state()``: sets everything else that depends on the new state, such as ``goal``;
    - ``get_rendered_image()``: the picture, for windows and videos.

    :param level: this and the other settings are described in ``EnvironmentParameters``
    :param visualization_parameters: windows and videos
    :param kwargs: ``experiment_path``, the directory of videos; other settings belong to subclasses
    :cvar repeats_episodes: True if repeating the same actions after ``get_state`` can give the same episode. Then an
        episode is rendered only if its video is kept
    :ivar training_steps: environment steps of heatup and training at the start of the current evaluation
    :ivar videos: the video files that were kept, in the order of the episodes
    :raises CoachError: if a requested window or video is not possible
    """

    repeats_episodes = False
    _action_space: Any = None

    def __init__(
        self,
        level: Union[str, LevelSelection, None],
        seed: int | None,
        frame_skip: int,
        human_control: bool,
        custom_reward_threshold: float | None,
        visualization_parameters: VisualizationParameters,
        target_success_rate: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__()
        self.level = level
        self.env_id = str(level)
        self.seed = seed
        self.frame_skip = frame_skip
        self.human_control = human_control
        self.reward_success_threshold = custom_reward_threshold
        self.target_success_rate = target_success_rate
        self.experiment_path: str | None = kwargs.get("experiment_path")

        self.state_space = StateSpace({})
        self.goal_space: ObservationSpace | None = None
        self.reward_space = RewardSpace(1, reward_success_threshold=custom_reward_threshold)

        self.state: StateType = {}
        self.reward: Any = 0.0
        self.done = False
        self.truncated = False
        self.info: dict[str, Any] = {}
        self.goal: GoalType = None
        self.last_action: Any = None
        self.last_env_response: EnvResponse | None = None

        self.episode_idx = 0
        self.current_episode_steps_counter = 0
        self.total_reward_in_current_episode: Any = 0.0
        self.total_steps_counter = 0
        self.training_steps = 0
        self._record = EpisodeRecord()

        self._prepare_rendering(visualization_parameters)

    def _prepare_rendering(self, visualization: VisualizationParameters) -> None:
        self.visualization_parameters = visualization
        self.is_rendered = visualization.render or self.human_control
        self.native_rendering = visualization.native_rendering and visualization.render and not self.human_control
        self.key_to_action: dict[tuple[int, ...], Any] = {}
        self._steps_per_second: float | None = None
        self._keyboard: Keyboard | None = None
        self._user_acted = False
        self._dumps_video = visualization.dump_gifs or visualization.dump_mp4
        self._adds_image = visualization.add_rendered_image_to_env_response
        self._uses_images = self.is_rendered or self._dumps_video or self._adds_image
        if self.native_rendering and (self._dumps_video or self._adds_image):
            raise CoachError(
                "native_rendering opens the environment's own window, which returns no images for GIF, MP4 or env "
                "responses: set visualization_parameters.native_rendering = False"
            )
        if self.native_rendering and not has_display():
            raise CoachError("there is no display to open a window on: leave out --render, or set DISPLAY")
        self._window = Window(self.env_id) if self.is_rendered and not self.native_rendering else None
        self._video: EpisodeVideo | None = None
        self.pictures_beside: Callable[[int], list[np.ndarray]] | None = None
        self.videos: list[pathlib.Path] = []
        self._may_film_afterwards = self.repeats_episodes and not (self.is_rendered or self._adds_image)
        self._is_candidate = False
        self._is_filming = False

    def _render_mode(self) -> str | None:
        """Gymnasium's ``render_mode`` for this run."""
        if self.native_rendering:
            return "human"
        return "rgb_array" if self._uses_images else None

    @property
    def action_space(self) -> ActionSpace:
        return self._action_space

    @action_space.setter
    def action_space(self, space: ActionSpace) -> None:
        self._action_space = space
        self._clips_actions = clips_actions(space)

    def step(self, action: ActionType | None) -> EnvResponse:
        """Do an action. It lasts ``frame_skip`` steps of the simulator.

        :param action: an action of ``action_space``; a box action outside the bounds is clipped, and None repeats the
            last action
        """
        if action is None:
            action = self.last_action
        self.last_action = action
        self._record.actions.append(action)
        if self._dumps_video and self.current_episode_steps_counter == 0:
            self._begin_video()
        self.current_episode_steps_counter += 1
        if self._phase is not RunPhase.UNDEFINED:
            self.total_steps_counter += 1
        try:
            self._play(action)
        except (CoachError, TrainingError, NotImplementedError):
            raise
        except Exception as error:
            raise self._failure(f"in step {self.current_episode_steps_counter}", error) from error
        if self._uses_images:
            self._use_image()
        return self._respond()

    def _play(self, action: Any) -> None:
        """Do an action in the simulator, and read its answer."""
        self._take_action(self._action_space.clip_action_to_space(action) if self._clips_actions else action)
        self._update_state()
        if isinstance(self.reward, (np.ndarray, np.generic)) and self.reward.size == 1:
            self.reward = self.reward.item()  # a sum of rewards of 16 or 32 bits would be inexact
        self.total_reward_in_current_episode += self.reward

    @property
    def shows_steps(self) -> bool:
        """True if a window or a video needs a picture of each step."""
        return self._uses_images

    def take_played(self, steps: int, reward: float, terminated: bool, truncated: bool) -> EnvResponse:
        """Count the steps of the current episode, which a compiled loop has played.

        :param steps: number of steps since the beginning of the episode
        :param reward: total reward since the beginning of the episode
        :return: the answer at the end of the episode; its state is the episode's first state
        """
        if self._phase is not RunPhase.UNDEFINED:
            self.total_steps_counter += steps - self.current_episode_steps_counter
        self.current_episode_steps_counter, self.total_reward_in_current_episode = steps, reward
        self.done, self.truncated = terminated or truncated, truncated and not terminated
        return self._respond()

    def _failure(self, when: str, error: Exception) -> TrainingError:
        """The simulator's error in one line, with the environment, the episode, and the line of the user's code."""
        return TrainingError(
            f"environment '{self.env_id}' failed {when} of episode {self.episode_idx}: {environment_error(error)}"
        )

    def _respond(self) -> EnvResponse:
        terminated = self.done and not self.truncated
        response = EnvResponse(self.state, self.reward, self.done, self.info, self.goal, terminated)
        self.last_env_response = response
        return response

    def reset_internal_state(self, force_environment_reset: bool = False) -> EnvResponse:
        """Begin an episode.

        :param force_environment_reset: reset even if the simulator would continue (a game with lives left)
        :return: the first state, with reward 0
        """
        self.handle_episode_ended()
        self._record = EpisodeRecord()
        if self._phase is not RunPhase.UNDEFINED:
            self._record.begin(self.get_state(), force_environment_reset, self._phase)
        if self.current_episode_steps_counter > 0 and self._phase is not RunPhase.UNDEFINED:
            self.episode_idx += 1
        try:
            self._restart_environment_episode(force_environment_reset)
        except (CoachError, TrainingError, NotImplementedError):
            raise
        except Exception as error:
            raise self._failure("at the beginning", error) from error
        self.done = self.truncated = False
        self.reward = 0.0
        self.total_reward_in_current_episode = 0.0
        self.current_episode_steps_counter = 0
        self.last_action = self._action_space.default_action
        self._update_state()
        if self.is_rendered:
            self.render()
        return self._respond()

    def get_random_action(self) -> ActionType:
        """A random action of the action space, one that the current state allows."""
        mask_name = self.state_space.action_mask_name
        if mask_name is None:
            return self._action_space.sample()
        return self._action_space.sample_with_info(self.state[mask_name]).action

    def get_goal(self) -> GoalType:
        """The current goal; None for an environment without goals."""
        return self.goal

    def set_goal(self, goal: GoalType) -> None:
        """Set the goal that the next responses contain."""
        self.goal = goal

    def get_target_success_rate(self) -> float:
        """The share of evaluation episodes that must succeed, 0 to 1."""
        return self.target_success_rate

    def handle_episode_ended(self) -> None:
        """Finish the episode that has just ended."""
        self.dump_video_of_last_episode_if_needed()

    def close(self) -> None:
        """Release the window, the video being written and, in subclasses, the simulator."""
        self.dump_video_of_last_episode_if_needed()
        if self._window is not None:
            self._window.close()

    def get_state(self) -> dict[str, Any]:
        """The counters and random state for a checkpoint.

        The simulator's state in the middle of an episode is not included; ``get_episode_state`` returns it. After
        ``set_state``, the caller calls ``reset_internal_state``. The environment then continues exactly as the saved
        environment would have continued after its next reset.
        """
        return {
            "episode_idx": self.episode_idx,
            "current_episode_steps_counter": self.current_episode_steps_counter,
            "total_steps_counter": self.total_steps_counter,
            "truncated": bool(self.truncated),
            "action_space": self._action_space.rng.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from ``get_state``. Call ``reset_internal_state`` next."""
        self.episode_idx = state["episode_idx"]
        self.current_episode_steps_counter = state["current_episode_steps_counter"]
        self.total_steps_counter = state["total_steps_counter"]
        self.truncated = state["truncated"]
        self._action_space.rng.bit_generator.state = state["action_space"]

    def get_episode_state(self) -> dict[str, Any] | None:
        """The episode in progress, in a form that can be repeated: the state at its start, and its actions so far.

        :return: None if the episode was not recorded from its beginning, its actions cannot be saved, or the first
            reset failed
        """
        state = self._record.get_state()
        if state is None or self.last_env_response is None:
            return None
        actions = self._action_space.rng.bit_generator.state
        return {**state, "fingerprint": self._fingerprint(), "action_space": actions}

    def set_episode_state(self, state: dict[str, Any]) -> bool:
        """Repeat an episode up to the call of ``get_episode_state``. Use this method instead of ``set_state``.

        :return: True if the repeated episode reached the same state. Otherwise, the caller should begin a new episode.
            The state can differ if the simulator depends on the clock, or if its ``reset`` does not reset everything
        """
        before = self._phase
        self.set_state(state["start"])
        self._phase = RunPhase[state["phase"]]
        response = self.reset_internal_state(state["is_forced"])
        for action in actions_of(state):
            if response.game_over:
                break
            response = self.step(action)
        self._phase = before
        # the agent draws random actions from the same space
        self._action_space.rng.bit_generator.state = state["action_space"]
        return self._fingerprint() == state["fingerprint"]

    def _fingerprint(self) -> str:
        """A text for comparisons. Two environments at the same point of the same episode have the same text."""
        response = self.last_env_response
        assert response is not None
        digest = hashlib.sha256(repr((self.current_episode_steps_counter, bool(response.game_over))).encode())
        digest.update(np.asarray(self.total_reward_in_current_episode, np.float64).tobytes())
        for name in sorted(response.next_state):
            digest.update(np.asarray(response.next_state[name]).tobytes())
        return digest.hexdigest()

    @property
    def keyboard(self) -> Keyboard:
        """The keyboard, which maps keys to actions.

        :raises CoachError: if the actions have no keys
        """
        if self._keyboard is None:
            self._keyboard = Keyboard(self._action_space, self.key_to_action)
        return self._keyboard

    def get_action_from_user(self) -> ActionType | None:
        """Wait until the next step is due, and return the action of the keys that were pressed since the last call.
        Without a key, return the action that does nothing.

        :return: None if the person has not decided yet: no key was pressed and all actions do something, or the state
            does not allow the action
        :raises CoachError: if the environment was not made with ``human_control``
        :raises WindowClosed: if the user has closed the window
        """
        if self._window is None:
            raise CoachError("a person can act only in an environment with human_control (coach --play)")
        self._window.tick(self._pace())
        action = self.keyboard.action_for(self._window.pressed_keys())
        name = self.state_space.action_mask_name
        if action is not None and name is not None:
            masks: Any = self.state_space[name]
            action = action if np.array_equal(masks.action_nearest(self.state[name], action), action) else None
        self._user_acted = action is not None
        return action

    def _pace(self) -> float:
        """Steps per second for a person; 0 sets no limit. A level without its own rate, or a level that waits for a
        key, has the rate ``max_fps_for_human_control``."""
        highest = self.visualization_parameters.max_fps_for_human_control
        if self._steps_per_second is None or not self._user_acted:
            return highest
        return min(highest, self._steps_per_second)

    def get_available_keys(self) -> list[tuple[str, str]]:
        """The names of the actions, each with its keys. The keys of an action are held together.

        :raises CoachError: if the actions have no keys
        """
        return [(name, " + ".join(Window.key_name(key) for key in keys)) for name, keys in self.keyboard.bindings()]

    def render(self) -> None:
        """Show the current state in a window."""
        if self.native_rendering:
            self._render()
        elif self._window is not None:
            self._window.show(self.get_rendered_image())

    def get_rendered_image(self) -> np.ndarray:
        """The picture of the current state: [height, width, 3] uint8."""
        raise NotImplementedError(f"{type(self).__name__} returns no images")

    def _use_image(self) -> None:
        """Show, store and record the picture of the current state. The picture is drawn at most once."""
        if self.native_rendering:
            self._render()
            return
        recording = self._video is not None and self._video.counts_next()
        beside = self._pictures_beside()
        if not (recording or self._adds_image or self._window is not None):
            return
        image = self.get_rendered_image()
        if self._adds_image:
            self.info["image"] = image
        if self._video is not None and recording:
            with self._videos_may_fail():
                self._video.add(side_by_side(image, beside))
        if self._window is not None:
            self._window.show(image)
            if self.visualization_parameters.real_time:
                if not self._window.is_open:
                    raise WindowClosed
                self._window.tick(self._steps_per_second or _STEPS_PER_SECOND)

    def should_dump_video_of_the_current_episode(self, episode_terminated: bool = False) -> bool:
        """True if all of ``video_dump_filters`` agree to write this episode.

        :param episode_terminated: the episode has ended, and its total reward is known
        """
        filters: Sequence[Any] = force_list(self.visualization_parameters.video_dump_filters or [])
        return all(dump_filter.should_dump(episode_terminated, **vars(self)) for dump_filter in filters)

    def _begin_video(self) -> None:
        if self._is_filming:
            self._open_video()
        elif self.should_dump_video_of_the_current_episode(episode_terminated=False):
            # the agent has its own pictures of an episode only while it plays
            may_wait = self._may_film_afterwards and self.pictures_beside is None
            self._is_candidate = may_wait and self._phase is not RunPhase.UNDEFINED
            if not self._is_candidate:
                self._open_video()

    def _open_video(self) -> None:
        if self.experiment_path is None:
            raise CoachError("videos need a directory: set experiment_path of the task parameters or the environment")
        image = self.get_rendered_image()
        with self._videos_may_fail():
            self._video = EpisodeVideo(
                str(self.experiment_path),
                gif=self.visualization_parameters.dump_gifs,
                mp4=self.visualization_parameters.dump_mp4,
                frames_per_second=VIDEO_FRAMES_PER_SECOND,
                every=max(1, 5 // self.frame_skip),
            )
            if self._video.counts_next():
                self._video.add(side_by_side(image, self._pictures_beside()))

    def _pictures_beside(self) -> list[np.ndarray]:
        if self._video is None or self.pictures_beside is None:
            return []
        return self.pictures_beside(self.current_episode_steps_counter)

    @contextlib.contextmanager
    def _videos_may_fail(self) -> Iterator[None]:
        """Continue without videos if they cannot be written, for example on a full disk."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or " ".join(str(error).split()[:12])
            screen.warning(f"no video can be written to '{self.experiment_path}': {reason}; writing no more videos")
            if self._video is not None:
                self._video.abandon()
            self._video, self._is_candidate, self._dumps_video = None, False, False

    def dump_video_of_last_episode_if_needed(self) -> None:
        """Keep the video of the last episode, if ``video_dump_filters`` agreed at its start and agree at its end."""
        if self._video is None and not self._is_candidate:
            return
        if self.should_dump_video_of_the_current_episode(episode_terminated=True):
            self.dump_video_of_last_episode()
        elif self._video is not None:
            with self._videos_may_fail():
                self._video.discard()
        self._video, self._is_candidate = None, False

    def dump_video_of_last_episode(self) -> None:
        """Write the episode to ``gifs/`` and ``videos/`` of the experiment's directory."""
        step = self.training_steps if self._phase is RunPhase.TEST else self.total_steps_counter
        reward = self.total_reward_in_current_episode
        name = f"{self._phase.value.lower()}_step-{step}_episode-{self.episode_idx}_score-{reward}"
        if self._is_candidate:
            self._is_candidate = False
            self._film_again()
        if self._video is not None:
            with self._videos_may_fail():
                self.videos += self._video.keep(name)
            self._video = None

    def _film_again(self) -> None:
        """Repeat the episode that has just ended, and draw it. Drawing takes several times as long as acting, and few
        videos are kept, so episodes are not drawn while they are played. If the simulator does not repeat an episode
        exactly, later episodes are drawn while they are played."""
        episode, end = self.get_episode_state(), self.get_state()
        if episode is None:
            self._may_film_afterwards = False
            return
        before = {name: value for name, value in vars(self).items() if name in _EPISODE_ATTRIBUTES}
        self._is_filming = True
        try:
            if not self.set_episode_state(episode):
                self._drop_video_that_differs()
        finally:
            self._is_filming = False
            vars(self).update(before)
            self.set_state(end)

    def _drop_video_that_differs(self) -> None:
        self._may_film_afterwards = False
        screen.warning(f"level '{self.env_id}' cannot repeat an episode: episodes are now rendered while they run")
        if self._video is not None:
            self._video.discard()
            self._video = None

    def _take_action(self, action: ActionType) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _take_action")

    def _update_state(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _update_state")

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _restart_environment_episode")

    def _render(self) -> None:
        """Refresh the simulator's own window. Most simulators do this in each step."""


class SeededEnvironment(Environment):
    """Base of environments that draw their episodes from a random stream. A subclass creates this stream as ``_rng``
    from its seed, and sets the whole state in each step and reset."""

    _rng: np.random.Generator

    def seed_episodes(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.action_space.seed(seed)

    def _update_state(self) -> None:
        """Do nothing: nothing depends on the state."""

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "rng": self._rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._rng.bit_generator.state = state["rng"]
