"""Reading and writing of data sets of Minari, the Farama Foundation's format of recorded experience.

This module needs the extra ``minari``."""

from __future__ import annotations

import shutil
import warnings
from typing import Any

import gymnasium as gym
import minari
import numpy as np
from minari.data_collector import EpisodeBuffer

from rl_coach.core_types import Batch
from rl_coach.environments.gym_probe import ACTION_MASK
from rl_coach.environments.gym_spaces import StateReader, action_space_of
from rl_coach.memories.data_set import DataSet
from rl_coach.space_values import first_misfit, observation_name, refuse_misfit
from rl_coach.spaces import (
    ActionMaskSpace,
    ActionSpace,
    BoxActionSpace,
    DiscreteActionSpace,
    MultiDiscreteActionSpace,
    RewardSpace,
    SpacesDefinition,
)
from rl_coach.utils import CoachError

_PROBABILITIES = "all_action_probabilities"
_IS_RAW = "coach_is_raw"


def read(dataset_id: str) -> DataSet:
    """Read a data set from Minari's directory (``MINARI_DATASETS_PATH`` or ``~/.minari/datasets``).

    Observations and actions have the same form as from ``GymEnvironment``. Values are raw (not filtered), unless the
    data set was written with ``is_raw=False``.

    :raises CoachError: if the data set does not exist, is damaged, or has spaces that are not supported
    """
    try:
        return _read(minari.load_dataset(dataset_id), dataset_id)
    except CoachError:
        raise
    except Exception as error:  # Minari and HDF5 raise errors of many classes for a damaged file
        reason = "it does not exist; 'minari list local' shows the data sets on this machine"
        text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        said = reason if isinstance(error, FileNotFoundError) else text
        raise CoachError(f"cannot read the Minari data set '{dataset_id}': {said}") from None


def _read(stored: minari.MinariDataset, dataset_id: str) -> DataSet:
    place = f"minari:{dataset_id}"
    actions, _ = action_space_of(stored.action_space, place)
    parts, lengths = [], []
    reader = None
    for episode in stored.iterate_episodes():
        if not len(episode):
            continue
        observations = [_row(episode.observations, row) for row in range(len(episode) + 1)]
        if reader is None:
            reader = StateReader(stored.observation_space, actions, None, place, observations[0], {}, copies=True)
        states = [reader(observation, {}) for observation in observations]
        parts.append(_columns(episode, states, _own_actions(actions, episode.actions, len(episode), place)))
        lengths.append(len(episode))
    if reader is None:
        raise CoachError(f"{place} has no steps")
    spaces = SpacesDefinition(reader.state_space, None, actions, RewardSpace(1))
    is_raw = bool(stored.storage.metadata.get(_IS_RAW, True))
    return DataSet(Batch.joined(parts), np.asarray(lengths), is_raw, spaces)


def _own_actions(space: ActionSpace, actions: Any, count: int, place: str) -> np.ndarray:
    """Convert actions of Minari, [N, ...] or nested dicts or tuples of arrays, to the agent's form [N, ...]."""
    raw = [_row(actions, row) for row in range(count)]
    own = np.asarray([space.from_raw(one) for one in raw])
    misfit = first_misfit(space, own)
    if misfit is None or misfit.row is None:
        refuse_misfit(misfit, "action", place)
    else:
        # The message shows the raw action, because from_raw turns an unknown number into -1.
        given = f"step {misfit.row} of an episode: the action {raw[misfit.row]}"
        raise CoachError(f"{place}, {given} is not in the action space {space!r}")
    return own.astype(np.int64) if own.dtype.kind in "iu" else own


def _row(observations: Any, row: int) -> Any:
    if isinstance(observations, dict):
        return {name: _row(part, row) for name, part in observations.items()}
    if isinstance(observations, tuple):  # the actions of a Tuple space
        return tuple(_row(part, row) for part in observations)
    return observations[row]


def _columns(episode: Any, states: list[dict[str, np.ndarray]], actions: np.ndarray) -> Batch:
    stacked = {name: np.stack([np.asarray(state[name]) for state in states]) for name in states[0]}
    info = episode.infos or {}
    terminated = np.asarray(episode.terminations, bool)
    # Minari stores one more info than steps, as with observations; the surplus row is cut off below.
    probabilities = info.get(_PROBABILITIES)
    return Batch.from_columns(
        {name: column[:-1] for name, column in stacked.items()},
        actions,
        np.asarray(episode.rewards, np.float32),
        np.arange(len(actions)) == len(actions) - 1,
        {name: column[1:] for name, column in stacked.items()},
        terminateds=terminated,
        info={} if probabilities is None else {_PROBABILITIES: np.asarray(probabilities)[: len(actions)]},
    )


def require_new(dataset_id: str) -> None:
    """Check that a new data set with this name can be written.

    :raises CoachError: if a data set with this name exists, or Minari does not accept the name
    """
    try:
        minari.dataset.minari_dataset.parse_dataset_id(dataset_id)
    except ValueError as error:
        raise CoachError(f"'{dataset_id}' is not a name for a Minari data set: {error}") from None
    if dataset_id in minari.list_local_datasets():
        raise CoachError(f"the Minari data set '{dataset_id}' exists already: 'minari delete {dataset_id}' deletes it")


def write(data_set: DataSet, dataset_id: str) -> None:
    """Write a data set to Minari's directory. Unknown spaces are derived from the values.

    :raises CoachError: if the data set cannot be written, or the state of a step is not the next state of the step
        before. No part of the data set remains then
    """
    columns, spaces, begin = data_set.columns, data_set.spaces, 0
    episodes = []
    for number, length in enumerate(data_set.episode_lengths):
        episodes.append(_buffer(columns[begin : begin + length], number, spaces))
        begin += length
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # Minari warns if the data set has no authors and links
            stored = minari.create_dataset_from_buffers(
                dataset_id,
                episodes,
                observation_space=_observation_space(episodes[0].observations),
                action_space=_action_space(columns, None if spaces is None else spaces.action),
                description="Written by Coach",
                jpeg_encoding=False,  # JPEG would change the pixels
            )
    except Exception as error:  # Minari, Gymnasium and HDF5 raise errors of many classes
        shutil.rmtree(minari.storage.get_dataset_path(dataset_id), ignore_errors=True)
        raise CoachError(f"cannot write the Minari data set '{dataset_id}': {error}") from None
    stored.storage.update_metadata({_IS_RAW: data_set.is_raw})


def _buffer(steps: Batch, number: int, spaces: SpacesDefinition | None) -> EpisodeBuffer:
    for name, column in steps.state_columns.items():
        if not np.array_equal(column[1:], steps.next_state_columns[name][:-1]):
            raise CoachError(
                f"episode {number}: the next '{name}' of a step differs from '{name}' of the following step, but "
                f"Minari's format needs equal values: if all observations are vectors, write to FILE.csv instead"
            )
    # Minari stores one more observation than steps.
    observations = {
        name: np.concatenate([column, steps.next_state_columns[name][-1:]])
        for name, column in steps.state_columns.items()
    }
    mask_space = None if spaces is None else spaces.state.sub_spaces.get(ACTION_MASK)
    if isinstance(mask_space, ActionMaskSpace):
        observations[ACTION_MASK] = mask_space.by_choice(observations[ACTION_MASK])
    infos = {name: np.concatenate([column, column[-1:]]) for name, column in steps.info_columns.items()}
    terminated = steps.terminated_column
    return EpisodeBuffer(
        id=number,
        observations=_nested(observations),
        actions=steps.action_column,
        rewards=steps.reward_column,
        terminations=terminated,
        truncations=(np.arange(len(steps)) == len(steps) - 1) & ~terminated,
        infos={_PROBABILITIES: infos[_PROBABILITIES]} if _PROBABILITIES in infos else {},
    )


def _nested(observations: dict[str, np.ndarray]) -> Any:
    """Observations in nested dicts, because Minari's format does not allow "/" in a name."""
    if list(observations) == ["observation"]:
        return observations["observation"]
    paths = {name: ["action"] if name == observation_name(["action"]) else name.split("/") for name in observations}
    found: dict[str, Any] = {}
    for name, column in observations.items():
        *outer, last = path = paths[name]
        place = found
        for key in outer:
            place = place.setdefault(key, {}) if isinstance(place, dict) else place
        if not isinstance(place, dict) or last in place:
            other = next(one for one, its in paths.items() if one != name and all(map(str.__eq__, its, path)))
            raise CoachError(f"Minari's format cannot contain '{name}' together with '{other}': rename one of them")
        place[last] = column
    return found


def _observation_space(observations: Any) -> gym.Space:
    if isinstance(observations, dict):
        return gym.spaces.Dict({name: _observation_space(part) for name, part in observations.items()})
    low, high = (0, 255) if observations.dtype == np.uint8 else (-np.inf, np.inf)
    return gym.spaces.Box(low, high, observations.shape[1:], observations.dtype)


def _action_space(columns: Batch, space: ActionSpace | None) -> gym.Space:
    actions = columns.action_column
    if actions.dtype.kind in "iu" and actions.ndim == 1:
        known = space.num_actions if isinstance(space, DiscreteActionSpace) else 0
        mask = columns.state_columns.get(ACTION_MASK)
        masked = 0 if mask is None else mask.shape[1]
        # The recorded steps may not contain each action.
        return gym.spaces.Discrete(max(known, masked, int(actions.max()) + 1))
    if isinstance(space, MultiDiscreteActionSpace):
        return gym.spaces.MultiDiscrete(space.counts)
    if isinstance(space, BoxActionSpace):
        dtype = actions.dtype
        return gym.spaces.Box(np.asarray(space.low, dtype), np.asarray(space.high, dtype), actions.shape[1:], dtype)
    return gym.spaces.Box(-np.inf, np.inf, actions.shape[1:], actions.dtype)
