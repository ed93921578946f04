"""Checks that values belong to a space, and casts.

Values from files, from user code and from other processes are checked here. The functions check N values at once, as
rows of an array ``[N, ...]``. A single value is an array with one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence

import numpy as np

from rl_coach.spaces import (
    ActionMaskSpace,
    ActionSpace,
    AttentionActionSpace,
    BoxActionSpace,
    CompoundActionSpace,
    DiscreteActionSpace,
    MultiDiscreteActionSpace,
    MultiSelectActionSpace,
    ObservationSpace,
    Space,
)
from rl_coach.utilities.sound_values import NUMBERS
from rl_coach.utils import CoachError

# tolerance for 32-bit values or texts with six digits that are compared with 64-bit bounds
_ROUNDING = 1e-5
_OF_PROBABILITIES = 1e-3  # tolerance for the sum of probabilities, which files may store with few digits


@dataclass(frozen=True)
class Misfit:
    """A value that does not belong to a space.

    :param row: the index of its row; None if the shape or type of all rows is wrong
    :param text: the value, and the values that the space allows
    """

    row: int | None
    text: str


def first_misfit(space: Space, rows: Any) -> Misfit | None:
    """The first row [N, ...] that does not belong to a space; None if all rows belong to it.

    Bounds are checked for actions and masks. Bounds of other observations are not checked, because environments often
    declare wrong bounds.
    """
    if isinstance(space, (CompoundActionSpace, AttentionActionSpace)):
        for number, value in enumerate(rows):
            if not space.contains(value):
                return Misfit(number, f"{value!r}, and {allowed_values(space)}")
        return None
    array = _as_numbers(rows)
    if array is None:
        return Misfit(None, f"not an array of numbers, but {allowed_values(space)}")
    shape = () if isinstance(space, DiscreteActionSpace) else tuple(int(length) for length in space.shape)
    if array.shape[1:] != shape:
        return Misfit(
            None, f"of the shape {_shown(array.shape[1:])}, but {allowed_values(space)}{_advice(space, array)}"
        )
    fits = _fits(space, array).reshape(len(array), -1)
    if fits.all():
        return None
    row, element = (int(found[0]) for found in np.nonzero(~fits))
    where = f"element {element} is " if fits.shape[1] > 1 else ""
    return Misfit(row, f"{where}{array.reshape(len(array), -1)[row, element]!s}, but {allowed_values(space)}")


def require_values(space: Space, rows: Any, what: str, place: str, first: int = 0) -> None:
    """Check that rows are values of a space.

    :param rows: [N, ...] numbers
    :param what: the name of a row in the error's message, such as ``action``
    :param place: the origin of the rows for the message, such as the name of a file
    :param first: the number of the first row, for the message
    :raises CoachError: if a row is not a value of the space; the message names the first wrong row
    """
    refuse_misfit(first_misfit(space, rows), what, place, first)


def refuse_misfit(misfit: Misfit | None, what: str, place: str, first: int = 0) -> None:
    """Raise an error for the result of ``first_misfit``. The other parameters are the same as in ``require_values``.

    :raises CoachError: if the misfit is not None
    """
    if misfit is not None:
        step = "" if misfit.row is None else f", step {first + misfit.row}"
        raise CoachError(f"{place}{step}: the {what} is {misfit.text}")


def observation_name(path: Sequence[Any]) -> str:
    """The name of a part of an environment's observations.

    :param path: keys of the dicts and indices of the tuples that contain the part; () for a single observation
    """
    name = "/".join(map(str, path)) or "observation"
    return "observation/action" if name == "action" else name  # "action" is the name of the agent's action in networks


def part_of_observation(observation: Any, name: str) -> Any:
    """The part of a nested observation with a name from ``observation_name``; None if the part does not exist.

    :param observation: nested dicts and tuples
    """
    if isinstance(observation, tuple):
        observation = dict(enumerate(observation))
    if not isinstance(observation, Mapping):
        return None
    for key, part in observation.items():
        if name in (str(key), observation_name((key,))):
            return part
    inner = (
        part_of_observation(part, name[len(str(key)) + 1 :])
        for key, part in observation.items()
        if isinstance(part, (Mapping, tuple)) and name.startswith(f"{key}/")
    )
    return next((part for part in inner if part is not None), None)


def dtype_of(space: ActionSpace) -> np.dtype:
    """The dtype of an array with actions of a space."""
    if isinstance(space, (DiscreteActionSpace, MultiDiscreteActionSpace, MultiSelectActionSpace)):
        return np.dtype(np.int64)
    return np.dtype(np.float32)


def cast(space: ActionSpace, rows: Any) -> np.ndarray:
    """Cast actions to the dtype of their space. Values that rounding has moved beyond a bound are set to the bound.

    :param rows: [N, ...] valid actions of the space
    """
    array = np.asarray(rows).astype(dtype_of(space))
    return np.clip(array, space.low, space.high).astype(array.dtype) if isinstance(space, BoxActionSpace) else array


def mask_space_of(space: ActionSpace) -> ActionMaskSpace | None:
    """The space of masks over the actions of a space; None if its actions cannot be masked."""
    if isinstance(space, MultiDiscreteActionSpace):
        return ActionMaskSpace((len(space.counts), space.most_choices), space.counts)
    return ActionMaskSpace(space.num_actions, space.counts) if isinstance(space, DiscreteActionSpace) else None


def mask_array(space: ActionMaskSpace, masks: Any) -> Any:
    """Join a mask in parts (a tuple of arrays) into one array. Other values are returned unchanged."""
    in_parts = isinstance(masks, (tuple, list)) and space.counts is not None and len(masks) == len(space.counts)
    return np.concatenate([np.ravel(part) for part in masks]) if in_parts and np.ndim(masks[0]) else masks


def read_masks(space: ActionMaskSpace, masks: Any, place: str, leading: tuple[int, ...] = ()) -> np.ndarray:
    """Convert masks from an environment to the form that agents use.

    :param space: the space of the masks
    :param masks: [..., A]; if actions have parts, [..., S] with one number for each choice of each part, or a tuple
        with a mask for each part
    :param place: name and origin of the masks, for the error's message
    :param leading: the lengths of the axes before the axes of one mask, such as (N,)
    :return: see ``ActionMaskSpace.encode``
    :raises CoachError: if the masks have the wrong shape, or other numbers than 0 and 1
    """
    masks = masks if leading else mask_array(space, masks)
    if (fault := space.fault(masks, leading)) is not None:
        raise CoachError(f"{place} {fault}")
    return space.encode(masks)


def first_wrong_probabilities(space: ActionSpace, rows: Any) -> Misfit | None:
    """The first row [N, A] that is not a probability distribution over the actions; None if all rows are valid."""
    size = space.num_actions if isinstance(space, DiscreteActionSpace) else None
    array = _as_numbers(rows)
    if size is None:
        return Misfit(None, "given, but only discrete actions have probabilities")
    if array is None or array.shape[1:] != (size,):
        found = "not an array of numbers" if array is None else f"of the shape {_shown(array.shape[1:])}"
        return Misfit(None, f"{found}, but there are {size} actions")
    sums = array.sum(axis=1, dtype=np.float64)
    right = np.isfinite(array).all(axis=1) & (array >= 0).all(axis=1) & (np.abs(sums - 1) <= _OF_PROBABILITIES)
    if not right.all():
        row = int(np.argmin(right))
        return Misfit(row, f"{array[row].tolist()}, which are not numbers from 0 with the sum 1")
    return None


def _fits(space: Space, array: np.ndarray) -> np.ndarray:
    """[N, ...] of booleans: True for numbers that the space allows."""
    finite = np.isfinite(array)
    if isinstance(space, DiscreteActionSpace):
        return finite & (array >= 0) & (array < space.num_actions) & (np.floor(array) == array)
    if isinstance(space, MultiDiscreteActionSpace):
        return finite & (array >= 0) & (array < np.asarray(space.counts)) & (np.floor(array) == array)
    if isinstance(space, MultiSelectActionSpace):
        known = (array[:, None] == np.asarray(space.actions)[None]).all(axis=2).any(axis=1)
        return np.repeat(known[:, None], array.shape[1], axis=1)
    if isinstance(space, ActionMaskSpace):
        return (array == 0) | (array == 1)
    if not isinstance(space, BoxActionSpace):
        return finite
    slack = _ROUNDING * np.maximum(1.0, np.abs(array))
    return finite & (array >= space.low - slack) & (array <= space.high + slack)


def _as_numbers(rows: Any) -> np.ndarray | None:
    try:
        array = np.asarray(rows)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype.kind in NUMBERS and array.ndim else None


def allowed_values(space: Space) -> str:
    """The values of a space in words, such as ``the action space has the whole numbers 0 to 3``."""
    if isinstance(space, DiscreteActionSpace):
        return f"the action space has the whole numbers 0 to {space.num_actions - 1}"
    if isinstance(space, MultiDiscreteActionSpace):
        return f"the action space has {len(space.counts)} choices: {space!r}"
    if isinstance(space, MultiSelectActionSpace):
        return f"the action space has {space.num_actions} vectors of {space.num_elements} zeros and ones"
    if isinstance(space, ActionMaskSpace):
        return f"a mask has {space.num_elements} zeros and ones"
    if isinstance(space, CompoundActionSpace):
        return f"the action space has lists of {len(space.sub_action_spaces)} actions, one of each of its parts"
    if isinstance(space, AttentionActionSpace):
        return f"the action space has pairs of corners from {space.low.tolist()} to {space.high.tolist()}"
    shape = _shown(tuple(int(length) for length in space.shape))
    if isinstance(space, BoxActionSpace):
        return f"the action space has numbers from {_bound(space.low)} to {_bound(space.high)} of the shape {shape}"
    kind = "observation space" if isinstance(space, ObservationSpace) else "space"
    return f"the {kind} has finite numbers of the shape {shape}"


def _advice(space: Space, array: np.ndarray) -> str:
    if isinstance(space, BoxActionSpace) and array.ndim == 1:
        return " (in a CSV file, the elements of a vector are the columns action_0, action_1 and so on)"
    if isinstance(space, MultiDiscreteActionSpace) and array.ndim == 1:
        return " (in a CSV file, the choices are the columns action_0, action_1 and so on)"
    if isinstance(space, DiscreteActionSpace) and array.ndim == 2:
        return " (in a CSV file, the number of an action is the column 'action')"
    return ""


def _bound(bound: np.ndarray) -> str:
    return f"{bound.flat[0]}" if np.all(bound == bound.flat[0]) else str(bound.tolist())


def _shown(shape: tuple[int, ...]) -> str:
    return "()" if not shape else " x ".join(map(str, shape))


def truth(value: Any, what: str) -> bool:
    """Check a value from user code that must be true or false, or 0 or 1, also in an array with one element.

    :param what: the name of the value, for the error's message
    :raises CoachError: if the value is not True, False, 0 or 1
    """
    if value is True or value is False:
        return value
    array = np.asarray(value)
    if array.dtype.kind in NUMBERS and array.size == 1 and array.item() in (0, 1):
        return bool(array.item())
    raise CoachError(f"{what} is {value!r:.60}, not True or False")


def one_number(value: Any, what: str) -> float:
    """Check a value from user code that must be one number, also in an array of any framework.

    :param what: the name of the value, for the error's message
    :raises CoachError: if the value is not a number
    """
    if isinstance(value, (float, int, np.floating)):
        return value  # type: ignore[return-value]  # NumPy keeps its precision
    array = np.asarray(value)
    if array.dtype.kind in NUMBERS and array.size == 1:
        return float(array.item())
    raise CoachError(f"{what} is {value!r:.60}, not a number")


def rows_at(observations: Any, index: int | np.ndarray) -> Any:
    """Rows of each part of nested observations. :param index: a row's number, or [K] the numbers"""
    if isinstance(observations, dict):
        return {name: rows_at(part, index) for name, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(rows_at(part, index) for part in observations)
    return observations[index]


def row_of_states(states: Any, number: int, count: int, are_tuples: bool) -> Any:
    """The state of one of several environments.

    :param states: the states of all environments, in one of the forms of ``values`` of ``row``; if states are tuples,
        also a tuple with an array [N, ...] for each part
    :param count: N, the number of environments
    :param are_tuples: True if the state of one environment is a tuple
    """
    if are_tuples and isinstance(states, tuple):
        return tuple(row(part, number, count) for part in states)
    return row(states, number, count)


def row(values: Any, number: int, count: int) -> Any:
    """The value of one of several environments.

    :param values: an array [N, ...], a dict of such arrays, or a list with a value for each environment
    :param count: N, the number of environments
    :raises CoachError: if ``values`` does not have N rows
    """
    if isinstance(values, Mapping):
        return {name: row(part, number, count) for name, part in values.items()}
    if not isinstance(values, (list, tuple)) and np.ndim(values) == 0:
        if isinstance(values, (bool, np.bool_)):  # one value for all environments, such as truncated=False
            return values
        raise CoachError(f"{values!r} is given for {count} environments: give one value for each environment")
    if len(values) != count:
        raise CoachError(f"{len(values)} rows are given for {count} environments")
    return values[number]
