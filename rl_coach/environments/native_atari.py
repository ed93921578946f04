"""Several Atari games in ALE's own vector environment, with Coach's settings."""

from __future__ import annotations

from importlib import metadata
from typing import Any, Iterator

import numpy as np
from gymnasium.vector import VectorEnv

from rl_coach.environments.gym_environment import GymEnvironment, GymEnvironmentParameters
from rl_coach.environments.gym_levels import say_once
from rl_coach.environments.native_copies import NativeCopies
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_rescale_to_size_filter import ObservationRescaleToSizeFilter
from rl_coach.filters.observation.observation_rgb_to_y_filter import ObservationRGBToYFilter
from rl_coach.installation import pip_install
from rl_coach.utils import CoachError

_OLDEST = 0, 12
"""The first version of ale-py with a vector environment that resets single games (``reset_mask``)."""


class AtariGames(NativeCopies):
    """Games of ALE's ``AtariVectorEnv``. An observation is one frame.

    A lost life may end an episode, as in ``ArcadeRules``. The next episode then continues from the same screen, because
    no copy can act while the others wait.

    :param life_loss_ends_episode: a lost life ends an episode
    """

    def __init__(self, example: GymEnvironment, simulator: VectorEnv, life_loss_ends_episode: bool):
        super().__init__(example, simulator)
        self._life_loss_ends_episode = life_loss_ends_episode
        self._lives = np.zeros(self.num_copies, np.int32)
        self._are_over = np.zeros(self.num_copies, np.bool_)

    def _games_to_reset(self, indices: np.ndarray, forced: np.ndarray) -> np.ndarray:
        return indices[forced | self._are_over[indices]]

    def begin_columns(self, indices: np.ndarray, forced: np.ndarray) -> dict[str, np.ndarray]:
        states = super().begin_columns(indices, forced)
        self._lives = self._infos["lives"]
        return states

    def _seed_from(self, number: int) -> int:
        return number % 2**30  # ALE's seeds have 31 bits

    def _step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rewards, terminated, truncated = super()._step(actions)
        self._are_over, lives_before, self._lives = terminated | truncated, self._lives, self._infos["lives"]
        if self._life_loss_ends_episode:
            are_lost = self._lives < lives_before
            terminated, truncated = terminated | are_lost, truncated & ~are_lost
        return rewards, terminated, truncated

    def _take(self, observations: np.ndarray, infos: dict[str, Any]) -> None:
        super()._take(observations[:, 0], infos)


def ale_settings(
    parameters: GymEnvironmentParameters, known: dict[str, Any], example: GymEnvironment, input_filter: InputFilter
) -> dict[str, Any]:
    """The arguments of ``AtariVectorEnv`` for environment parameters.

    The games do not stack frames or clip rewards; the agent's filters do. So memories store each frame once, and rows
    of the CSV contain the game's rewards before clipping.

    :param known: the arguments of an ordinary game
    :param example: an ordinary game
    :param input_filter: the agent's input filter
    :raises CoachError: if ``AtariVectorEnv`` does not support these parameters
    """
    known = {**known, **parameters.additional_simulator_parameters}
    observations, frames = known.pop("obs_type", "rgb"), known.pop("frameskip", 4)
    is_held, no_ops = example.frame_skip > 1, parameters.random_initialization_steps
    frames = example.frame_skip if is_held else frames
    for reason in _unmet(parameters, observations, frames, is_held):
        raise CoachError(
            f"level '{example.env_id}', vectorization 'native': {reason}; or set env_params.vectorization to 'sync' "
            f"or 'async'"
        )
    images = _images_for(input_filter, example)
    _say_what_differs(example, images)
    return {
        **known, **images, "frameskip": frames, "maxpool": is_held and parameters.max_over_num_frames > 1,
        "stack_num": 1, "reward_clipping": False, "noop_max": no_ops + 1, "use_fire_reset": True,
        "episodic_life": False, "life_loss_info": False,
    }  # fmt: skip


def _unmet(parameters: GymEnvironmentParameters, observations: str, frames: Any, is_held: bool) -> Iterator[str]:
    """A message for each setting that ``AtariVectorEnv`` does not support. It says what to change."""
    version = metadata.version("ale-py")
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        yield f"the vector environment of ale-py {version} does not reset single games: {pip_install('ale-py>=0.12')}"
    if observations != "rgb":
        yield f"ALE's vector environment shows screens, not '{observations}': choose another level"
    if not isinstance(frames, int):
        yield "an action lasts a random number of frames: set env_params.frame_skip to a number above 1"
    if is_held and parameters.max_over_num_frames > 2:
        yield "ALE's vector environment merges two frames: set env_params.max_over_num_frames to 1 or 2"
    lasts_longer = frames != 1 and not (is_held and parameters.no_ops_last_single_frames)
    if parameters.random_initialization_steps and lasts_longer:
        yield (
            "the no-ops of ALE's vector environment are single frames: set env_params.no_ops_last_single_frames to "
            "True, or env_params.random_initialization_steps to 0"
        )


def _images_for(input_filter: InputFilter, example: GymEnvironment) -> dict[str, Any]:
    """The settings of the images. If the first two filters of an agent rescale images and convert them to grey, the
    games do this too. Otherwise the images are whole screens in colour."""
    screen: Any = example.state_space["observation"]
    first: list[Any] = list(input_filter.observation_filters.get("observation", {}).values())[:2]
    is_made = [type(one) for one in first] == [ObservationRescaleToSizeFilter, ObservationRGBToYFilter]
    shape = first[0].get_filtered_observation_space(screen).shape if is_made else screen.shape
    return {"img_height": int(shape[0]), "img_width": int(shape[1]), "grayscale": is_made}


def _say_what_differs(example: GymEnvironment, images: dict[str, Any]) -> None:
    differences = []
    if images["grayscale"]:
        differences.append("some pixels of its grey images differ from those of the filters")
    if "FIRE" in example.action_space.descriptions:
        differences.append("it presses FIRE for one frame when a game begins, and not after a lost life")
    if differences:
        say_once(f"level '{example.env_id}': using ALE's vector environment; {'; '.join(differences)}")
