"""Conversion of Gymnasium's spaces to Coach's: the space, and the function that converts its values.

The function is None if it would change nothing, so that a plain vector observation takes no extra time.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Callable, Iterator, Mapping, Sequence

import gymnasium as gym
import numpy as np

from rl_coach.core_types import StateType
from rl_coach.environments.environment_checks import READABLE, Finding, form_finding, missing
from rl_coach.environments.gym_probe import ACTION_MASK
from rl_coach.environments.observation_space_type import ObservationSpaceType
from rl_coach.space_values import mask_array, mask_space_of, observation_name, read_masks
from rl_coach.spaces import (
    ActionSpace,
    BoxActionSpace,
    DiscreteActionSpace,
    ImageObservationSpace,
    MultiDiscreteActionSpace,
    ObservationSpace,
    OneHotObservationSpace,
    PlanarMapsObservationSpace,
    StateSpace,
    TensorObservationSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError, choose_from

logger = logging.getLogger("rl_coach")

MAX_NUM_COMBINED_ACTIONS = 4096

_LARGEST_TABLE = 512  # rows of a table of one-hot vectors, which has the square of this number of elements

Convert = Callable[[Any], Any]


def action_space_of(
    space: gym.Space, level: str, names: list[str] | None = None, combines_choices: bool | None = None
) -> tuple[ActionSpace, Convert | None]:
    """Coach's action space for a space of Gymnasium, and the function that converts Coach's actions to the
    environment's (None if they are equal).

    An agent's action is a number, a vector of choices, or a vector in a box. If a space has both choices and boxes, the
    action is a vector in a box, and the numbers for the choices are rounded down.

    :param level: the level's name, for the error message
    :param names: a name for each discrete action
    :param combines_choices: True: each combination of choices is one discrete action, if there are at most 4,096
        combinations. False: an action has a choice for each part. None is True
    :raises CoachError: if Coach does not support the action space
    """
    if isinstance(space, gym.spaces.Discrete):
        actions = DiscreteActionSpace(int(space.n), descriptions=names)
        if not space.start:
            return actions, None
        actions.raw_actions = np.arange(space.start, space.start + space.n)
        return actions, actions.to_raw
    leaves: list[Any] = [leaf for _, leaf in _leaves(space)]
    for leaf in leaves:
        if not isinstance(leaf, READABLE):
            raise CoachError(
                f"level '{level}': the action space {leaf} is not supported; Discrete, Box, MultiBinary, MultiDiscrete "
                "and Tuple and Dict of these are supported: wrap the environment so that it has one of these"
            )
    if not sum(math.prod(leaf.shape) for leaf in leaves):
        raise CoachError(f"level '{level}': the action space {space} is empty: it has no number to choose")
    are_boxes = {isinstance(leaf, gym.spaces.Box) for leaf in leaves}
    made: ActionSpace = _choices(leaves, combines_choices) if are_boxes == {False} else _box(leaves)
    made.raw_form = _form(space, as_numbers=len(are_boxes) > 1)
    return made, made.to_raw


def _choices(leaves: Sequence[Any], combines_choices: bool | None) -> DiscreteActionSpace | MultiDiscreteActionSpace:
    """Action space with one action for each combination of choices. If there are too many combinations, or
    ``combines_choices`` is False, an action has one choice for each part."""
    counts = [count for leaf in leaves for count in _counts(leaf)]
    if combines_choices is False or math.prod(counts) > MAX_NUM_COMBINED_ACTIONS:
        return MultiDiscreteActionSpace(counts)
    combinations = np.indices(tuple(counts)).reshape(len(counts), -1).T
    starts = np.concatenate([np.ravel(np.broadcast_to(getattr(leaf, "start", 0), leaf.shape)) for leaf in leaves])
    actions = DiscreteActionSpace(len(combinations), [", ".join(map(str, one)) for one in combinations + starts])
    actions.raw_actions, actions.counts = combinations, counts
    return actions


def _box(leaves: Sequence[gym.Space]) -> BoxActionSpace:
    bounds: list[tuple[np.ndarray, np.ndarray]] = []
    for leaf in leaves:
        if isinstance(leaf, gym.spaces.Box):
            bounds.append((np.ravel(leaf.low), np.ravel(leaf.high)))
        else:
            counts = np.asarray(_counts(leaf), np.float32)
            bounds.append((np.zeros_like(counts), counts))
    low, high = (np.concatenate(ends) for ends in zip(*bounds))
    return BoxActionSpace(len(low), low, high)


def _counts(space: Any) -> list[int]:
    """The number of choices of each element."""
    if isinstance(space, gym.spaces.MultiDiscrete):
        return np.ravel(space.nvec).tolist()
    return [int(space.n)] if isinstance(space, gym.spaces.Discrete) else [2] * math.prod(space.shape)


def _form(space: Any, as_numbers: bool) -> dict[str, Any]:
    """The form of actions, see ``utilities/raw_actions.py``. :param as_numbers: choices are numbers to round down"""
    if isinstance(space, gym.spaces.Tuple):
        return {"parts": [_form(part, as_numbers) for part in space.spaces]}
    if isinstance(space, gym.spaces.Dict):
        return {"parts": [_form(part, as_numbers) for part in space.spaces.values()], "names": list(space.spaces)}
    form = {"shape": list(space.shape), "dtype": str(space.dtype), "is_number": not space.shape}
    if not isinstance(space, gym.spaces.Box):
        form["start"] = np.ravel(np.broadcast_to(getattr(space, "start", 0), space.shape)).tolist()
        if as_numbers:
            form["choices"] = _counts(space)
    return form


def simulator_columns(space: ActionSpace, actions: Any) -> np.ndarray:
    """Several actions in the environment's form, each clipped to its bounds.

    :param space: a space from ``action_space_of``
    :param actions: [N, ...], an agent's action in each row
    :return: [N, ...]
    """
    actions = np.asarray(actions)
    if isinstance(space, BoxActionSpace):
        return space.to_raw(np.clip(actions, space.low, space.high))
    if isinstance(space, DiscreteActionSpace) and space.raw_form is None:
        return actions if space.raw_actions is None else space.raw_actions[actions]
    return space.to_raw(actions)


def observation_space_of(
    space: gym.Space, kind: ObservationSpaceType | None, level: str, name: str = "observation"
) -> tuple[ObservationSpace, Convert | None]:
    """Coach's observation space for a space of Gymnasium, and the function that converts the environment's observations
    to Coach's (None if they are equal). The function also accepts several observations, [N, ...].

    :param kind: kind of the arrays; None decides by their shape and dtype
    :param level: the level's name, for the error message
    :param name: the observation's name, for the error message
    :raises CoachError: if Coach does not support the observation space
    """
    if isinstance(space, gym.spaces.Discrete):
        count, start = int(space.n), int(space.start)
        one_hot = OneHotObservationSpace(np.array([count]), np.array([start]), ())
        if count > _LARGEST_TABLE:
            return one_hot, one_hot.encode
        rows = one_hot.encode(np.arange(start, start + count))

        def look_up(value: Any) -> np.ndarray:
            place = value - start
            is_known = one_hot.can_encode(value) if isinstance(place, np.ndarray) else 0 <= place < count
            return rows[place] if is_known else one_hot.encode(value)  # raises

        return one_hot, look_up
    if isinstance(space, gym.spaces.MultiDiscrete):
        starts = np.broadcast_to(getattr(space, "start", 0), space.shape)
        one_hots = OneHotObservationSpace(space.nvec, starts, space.shape)
        return one_hots, one_hots.encode
    if isinstance(space, gym.spaces.MultiBinary):
        size = int(np.prod(space.shape))
        return VectorObservationSpace(size, 0, 1), _flatten(space.shape) if len(space.shape) > 1 else None
    if isinstance(space, gym.spaces.Box):
        return _array_observations(space, kind)
    raise CoachError(
        f"level '{level}': the observation '{name}' of the space {space} is not supported; Box, Discrete, "
        "MultiBinary, MultiDiscrete, Dict and Tuple are supported: wrap the environment so that it has one of these"
    )


def _array_observations(
    space: gym.spaces.Box, kind: ObservationSpaceType | None
) -> tuple[ObservationSpace, Convert | None]:
    shape, rank = space.shape, len(space.shape)
    if kind is ObservationSpaceType.Tensor:
        return TensorObservationSpace(np.asarray(shape), space.low, space.high), None
    if kind is ObservationSpaceType.Vector or rank < 2:
        size = int(np.prod(shape))
        flat = VectorObservationSpace(size, space.low.reshape(size), space.high.reshape(size))
        return flat, None if rank == 1 else _flatten(shape)
    is_bytes = space.dtype == np.uint8 and bool(np.all(space.high == 255))
    if rank == 2 and (kind is ObservationSpaceType.Image or is_bytes):
        return ImageObservationSpace((*shape, 1), float(space.high.max())), lambda value: np.asarray(value)[..., None]
    if rank == 2:  # a table of features; networks read it as a vector
        return _array_observations(space, ObservationSpaceType.Vector)
    if rank != 3:
        return TensorObservationSpace(np.asarray(shape), space.low, space.high), None
    is_first = _has_channels_first(shape)
    low, high = (np.moveaxis(bound, 0, -1) if is_first else bound for bound in (space.low, space.high))
    maps: PlanarMapsObservationSpace
    if low.shape[-1] in (1, 3, 4) and (kind is ObservationSpaceType.Image or space.dtype == np.uint8):
        maps = ImageObservationSpace(low.shape, float(high.max()))
    else:
        maps = PlanarMapsObservationSpace(low.shape, low, high)
    maps.raw_channels_first = is_first
    return maps, maps.encode if is_first else None


def _flatten(shape: tuple[int, ...]) -> Convert:
    """The function that flattens a value, or each of several values, to a vector. :param shape: shape of one value"""
    size, rank = int(np.prod(shape)), len(shape)
    return lambda value: np.reshape(value, (*np.shape(value)[: np.ndim(value) - rank], size))


def _has_channels_first(shape: tuple[int, ...]) -> bool:
    """True if the first of the three axes is the channels (PyTorch's order, Gymnasium's stacked frames): only the first
    axis is short. The order of a small board that is not square is not known, so the result is False."""
    channels, height, width = shape
    if width in (1, 3, 4) or channels >= min(height, width):
        return False
    is_image = height == width or min(height, width) >= 8
    return (is_image and channels in (1, 3, 4)) or 4 * channels <= min(height, width)


class StateReader:
    """Converter of one environment's observations into states: ``{name: array}``.

    A plain observation is called ``'observation'``; a Dict keeps its keys, the parts of a Tuple have numbers, and
    nested names are joined: ``'outer/inner'``. The key ``'action'`` becomes ``'observation/action'``. An
    ``action_mask`` over discrete actions, in the observation or in the info, becomes one of the state's arrays and an
    ``ActionMaskSpace``.

    :param space: the environment's observation space
    :param action_space: Coach's action space
    :param kind: kind of the arrays; None decides by their shape and dtype
    :param level: the level's name, for error messages
    :param observation: an observation of the environment; its arrays may differ from the space
    :param info: an info of the environment
    :param copies: copy each observation, because the environment writes the next one into the same array
    :param names: the observations to read; None reads all that networks can take
    :param player: the name of the player that gets these observations, for error messages
    :raises CoachError: if an observation does not fit the space, if Coach supports none of the observations, or if it
        does not support an observation in ``names``

    :ivar left_out: the spaces of the observations that no network can read, such as texts, by name
    :ivar adds_mask: True if an info contains the mask of each state
    """

    def __init__(
        self,
        space: gym.Space,
        action_space: ActionSpace,
        kind: ObservationSpaceType | None,
        level: str,
        observation: Any,
        info: dict[str, Any],
        copies: bool = False,
        names: Sequence[str] | None = None,
        player: str | None = None,
    ):
        self.state_space = StateSpace({})
        self.left_out: dict[str, gym.Space] = {}
        self._mask_space = mask_space_of(action_space)
        of_player = "" if player is None else f" of player '{player}'"
        self._mask_place = f"level '{level}': the action_mask{of_player}"
        self._parts: list[tuple[str, tuple[Any, ...], Convert | None]] = []
        self._spaces: list[gym.Space] = []
        self._is_tuple = isinstance(space, gym.spaces.Tuple)
        leaves = _named_leaves(space, level)
        if unknown := [name for name in names or () if name not in leaves]:
            raise CoachError(f"level '{level}' has no observation '{unknown[0]}'{choose_from(unknown[0], leaves)}")
        if names is None and any(isinstance(part, READABLE) for _, part in leaves.values()):
            self.left_out = {name: part for name, (_, part) in leaves.items() if not isinstance(part, READABLE)}
        for name, (path, part) in leaves.items():
            if name in self.left_out or (names is not None and name not in names):
                continue
            sub_space, convert = self._part(name, part, kind, level)
            sample = _follow(observation, path)
            _check_shape(part, sample, level, name)
            self.state_space[name] = sub_space
            self._parts.append((name, path, _array_conversion(part, convert, sample, copies)))
            self._spaces.append(part)
        if not self._parts:
            raise CoachError(f"level '{level}': the observation space {space} has no parts")
        self.adds_mask = self._finds_mask(info)
        if self.adds_mask:
            assert self._mask_space is not None
            self.state_space[ACTION_MASK] = self._mask_space
        self._plain_name = self._parts[0][0] if len(self._parts) == 1 and not self._parts[0][1] else None
        self._plain_convert = self._parts[0][2]

    def _part(
        self, name: str, part: gym.Space, kind: ObservationSpaceType | None, level: str
    ) -> tuple[ObservationSpace, Convert | None]:
        if name != ACTION_MASK or self._mask_space is None:
            return observation_space_of(part, kind, level, name)
        if len(part.shape or ()) != 1:
            raise CoachError(f"{self._mask_place} has the space {part}, but a mask must be a vector of 0 and 1")
        return self._mask_space, self._read_masks

    def _finds_mask(self, info: dict[str, Any]) -> bool:
        """True if masks come with the infos. :raises CoachError: if the first mask does not fit the actions"""
        mask = info.get(ACTION_MASK)
        if mask is None or ACTION_MASK in self.state_space:
            return False
        if self._mask_space is None:
            logger.warning("%s is not used: the actions are not discrete", self._mask_place)
            return False
        self._read_masks(mask)
        return True

    def _read_masks(self, masks: Any, leading: tuple[int, ...] = ()) -> np.ndarray:
        assert self._mask_space is not None
        return read_masks(self._mask_space, masks, self._mask_place, leading)

    def _refuse_late_mask(self, info: Mapping[str, Any]) -> None:
        if self._mask_space is not None and ACTION_MASK not in self.state_space and info[ACTION_MASK] is not None:
            raise CoachError(
                f"{self._mask_place} is missing in the first state: give a mask with each state, and call "
                f"make_agent with action_mask=True"
            )

    @property
    def raw_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each observation of the environment, by name; ``()`` for a single number."""
        return {name: tuple(space.shape or ()) for (name, _, _), space in zip(self._parts, self._spaces)}

    def unfit(self, observation: Any) -> Finding | None:
        """The fault of the first missing or unreadable part of an observation; None for a correct observation."""
        if self._is_tuple and not isinstance(observation, tuple):
            return Finding("type", f"is of the type {type(observation).__name__}, its space says tuple")
        for (name, path, _), space in zip(self._parts, self._spaces):
            try:
                value = _follow(observation, path)
            except (LookupError, TypeError):
                return missing(name)
            if (fault := form_finding(space, value, name)) is not None:
                return fault
        return None

    def __call__(self, observation: Any, info: dict[str, Any]) -> StateType:
        """The state for an observation. An info without a mask allows all actions."""
        if self._plain_name is not None:
            convert = self._plain_convert
            state = {self._plain_name: observation if convert is None else convert(observation)}
        else:
            state = {
                name: _follow(observation, path) if convert is None else convert(_follow(observation, path))
                for name, path, convert in self._parts
            }
        if self.adds_mask:
            mask = info.get(ACTION_MASK)
            state[ACTION_MASK] = self._mask_of_all() if mask is None else np.array(self._read_masks(mask))
        elif ACTION_MASK in info:
            self._refuse_late_mask(info)
        return state

    def _mask_of_all(self) -> np.ndarray:
        assert self._mask_space is not None
        return self._mask_space.of_all()

    def columns(self, observations: Any, infos: Mapping[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
        """The states for several observations.

        :param observations: observations of a vector environment, [N, ...] at the leaves
        :param infos: [N, ...] each, masked if a copy's info does not have the key
        :param count: N
        :return: the states by name, [N, ...] each
        """
        states = {}
        for name, path, convert in self._parts:
            column = _follow(observations, path)
            if name == ACTION_MASK and self._mask_space is not None:
                states[name] = self._read_masks(column, (count,))
            else:
                states[name] = column if convert is None else convert(column)
        if self.adds_mask:
            masks = infos.get(ACTION_MASK)
            if masks is None:
                masks = np.stack([self._mask_of_all()] * count)
            masks = masks.filled(1) if isinstance(masks, np.ma.MaskedArray) else masks
            states[ACTION_MASK] = np.array(self._read_masks(masks, (count,)))
        elif ACTION_MASK in infos:
            self._refuse_late_mask(infos)
        return states


def allowed_action(space: ActionSpace, mask: Any) -> Any:
    """An action in the environment's form for its first step: the default action, or the first one that a mask allows.

    :param space: a space from ``action_space_of``
    :param mask: the environment's mask; None allows all actions. A mask that does not fit raises an error later, not
        here
    """
    masks, action = mask_space_of(space), space.default_action
    if masks is not None and mask is not None and masks.fault(given := mask_array(masks, mask)) is None:
        action = masks.action_nearest(masks.encode(given), action)
    return space.to_raw(action)


def _named_leaves(space: gym.Space, level: str) -> dict[str, tuple[tuple[Any, ...], gym.Space]]:
    """The parts of a space by name, each with the path that leads to it.

    :raises CoachError: if two parts have one name
    """
    leaves: dict[str, tuple[tuple[Any, ...], gym.Space]] = {}
    for path, part in _leaves(space):
        name = observation_name(path)
        if name in leaves:
            raise CoachError(f"level '{level}' has two observations with the key '{name}': rename one of them")
        leaves[name] = (path, part)
    return leaves


def _leaves(space: gym.Space, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], gym.Space]]:
    if isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        parts = space.spaces.items() if isinstance(space, gym.spaces.Dict) else enumerate(space.spaces)
        for key, part in parts:
            yield from _leaves(part, (*path, key))
    else:
        yield path, space


def _follow(observation: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        observation = observation[name]
    return observation


def _check_shape(space: gym.Space, sample: Any, level: str, name: str) -> None:
    if np.shape(sample) != space.shape:
        raise CoachError(
            f"level '{level}': the observation '{name}' has the shape {np.shape(sample)}, but its observation_space "
            f"has {space.shape}"
        )


def _array_conversion(space: gym.Space, convert: Convert | None, sample: Any, copies: bool) -> Convert | None:
    """``convert``, after a copy to a new array if ``copies`` is True or the observation ``sample`` is not an array."""
    if isinstance(space, gym.spaces.Discrete) or (isinstance(sample, np.ndarray) and not copies):
        return convert
    dtype = space.dtype
    if convert is None:
        return lambda value: np.array(value, dtype)
    return lambda value: convert(np.array(value, dtype))
