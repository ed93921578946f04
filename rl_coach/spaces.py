"""Spaces: the shapes, bounds and random samples of observations, actions, rewards and goals."""

from __future__ import annotations

import itertools
import math
from enum import Enum
from typing import Any, Callable, Mapping, Sequence, Union

import numpy as np

from rl_coach.core_types import ActionInfo, ActionType, StateType
from rl_coach.utilities import raw_actions
from rl_coach.utilities.overrides import OverrideTable
from rl_coach.utilities.sound_values import NUMBERS
from rl_coach.utils import CoachError, eps

Bound = Union[None, int, float, np.ndarray]

OVERRIDES = OverrideTable({"clips_actions": ("clip_action_to_space",)})


class Space:
    """A set of arrays with the same shape. Each element lies between ``low`` and ``high``.

    :param shape: an int or a tuple of ints; ``None`` or an empty tuple for a scalar
    :param low: a number for all elements, or an array of ``shape``
    :param high: a number for all elements, or an array of ``shape``
    """

    def __init__(self, shape: Union[int, Sequence[int], np.ndarray, None], low: Bound = -np.inf, high: Bound = np.inf):
        self.shape = np.array([], dtype=int) if shape is None else np.atleast_1d(np.asarray(shape, dtype=int))
        self._rng: np.random.Generator | None = None
        self.low = self._full(-np.inf if low is None else low)
        self.high = self._full(np.inf if high is None else high)
        if np.any(self.low > self.high):
            raise ValueError(f"the space's low {low} is above its high {high}")

    def _full(self, bound: Any) -> np.ndarray:
        bound = np.asarray(bound)
        shape = tuple(self.shape.tolist())
        if bound.ndim and bound.shape != shape:
            raise ValueError(f"a bound of shape {bound.shape} does not fit a space of shape {shape}")
        return np.array(np.broadcast_to(bound, shape))

    @property
    def num_dimensions(self) -> int:
        """The number of axes; 1 for a vector."""
        return len(self.shape)

    @property
    def num_elements(self) -> int:
        """The number of elements of a value of this space."""
        return int(np.prod(self.shape))

    @property
    def is_bounded(self) -> bool:
        """True if each element has two finite bounds."""
        return bool(np.all(np.isfinite([self.low, self.high])))

    @property
    def rng(self) -> np.random.Generator:
        """The random generator of ``sample``. It is created at its first use, because most spaces are never sampled."""
        if self._rng is None:
            self._rng = np.random.default_rng()
        return self._rng

    @rng.setter
    def rng(self, value: np.random.Generator) -> None:
        self._rng = value

    def seed(self, seed: Any) -> None:
        """Seed the random generator of ``sample``. :param seed: an int or a ``SeedSequence``"""
        self._rng = np.random.default_rng(seed)

    def val_matches_space_definition(self, val: Any) -> bool:
        """True if a value has the shape of the space and lies within its bounds."""
        val = np.asarray(val)
        if val.dtype.kind not in NUMBERS or val.shape != tuple(self.shape):
            return False
        return bool(np.all(val >= self.low) and np.all(val <= self.high))

    def is_point_in_space_shape(self, point: Any) -> bool:
        """True if ``point`` is an index that lies within the shape, such as the position of a pixel."""
        point = np.asarray(point)
        return len(point) == self.num_dimensions and bool(np.all(point >= 0) and np.all(point < self.shape))

    def is_valid_index(self, index: Any) -> bool:
        """True if ``index`` is the index of one element of this space's values."""
        return self.is_point_in_space_shape(np.atleast_1d(index))

    def contains(self, val: Any) -> bool:
        """True if a value belongs to the space."""
        return self.val_matches_space_definition(val)

    def sample(self) -> Any:
        """A random value. The distribution of an element depends on its bounds: uniform with two finite bounds,
        standard normal without finite bounds, and exponential from the bound with one finite bound."""
        shape = tuple(self.shape)
        has_low, has_high = np.isfinite(self.low), np.isfinite(self.high)
        low, high = np.where(has_low, self.low, 0.0), np.where(has_high, self.high, 0.0)
        uniform = low + self.rng.random(shape) * (high - low)
        if np.all(has_low & has_high):
            return uniform
        distance = self.rng.exponential(size=shape)
        one_sided = np.where(has_low, low + distance, high - distance)
        unbounded = self.rng.standard_normal(shape)
        return np.where(has_low & has_high, uniform, np.where(has_low | has_high, one_sided, unbounded))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={tuple(int(n) for n in self.shape)})"


class RewardSpace(Space):
    """The space of rewards.

    :param reward_success_threshold: the total reward from which an episode is a success; None for no threshold
    """

    def __init__(
        self,
        shape: Union[int, Sequence[int], np.ndarray],
        low: Bound = -np.inf,
        high: Bound = np.inf,
        reward_success_threshold: float | None = None,
    ):
        super().__init__(shape, low, high)
        self.reward_success_threshold = reward_success_threshold


class ObservationSpace(Space):
    """Base class of the spaces of observations."""


_MOST_NUMBERS = 100_000_000  # limit for an observation: the bounds alone need 16 bytes for each number


def check_size(shape: Sequence[int]) -> None:
    """Refuse an observation of more than 100 million numbers with a ``CoachError``, before memory is allocated."""
    if math.prod(int(length) for length in shape) > _MOST_NUMBERS:
        lengths = " x ".join(str(length) for length in shape)
        raise CoachError(f"an observation of {lengths} numbers is too large: the limit is {_MOST_NUMBERS} numbers")


class VectorObservationSpace(ObservationSpace):
    """Vector observations.

    :param measurements_names: names of the elements; there may be fewer names than elements
    """

    def __init__(
        self,
        shape: Union[int, np.ndarray],
        low: Bound = -np.inf,
        high: Bound = np.inf,
        measurements_names: list[str] | None = None,
    ):
        measurements_names = [] if measurements_names is None else list(measurements_names)
        if measurements_names and len(measurements_names) > np.prod(shape):
            raise ValueError(f"{len(measurements_names)} measurement names for a vector of {shape} elements")
        super().__init__(shape, low, high)
        self.measurements_names = measurements_names


class OneHotObservationSpace(VectorObservationSpace):
    """Observations of whole numbers, encoded as one vector. Each number becomes a one-hot vector with an element for
    each possible value, and these vectors are concatenated.

    :param counts: the number of possible values of each number
    :param starts: the smallest value of each number
    :param raw_shape: the shape of the environment's observation, such as ``()`` for a single number
    """

    def __init__(self, counts: np.ndarray, starts: np.ndarray, raw_shape: tuple[int, ...]):
        self.counts, self.starts = np.ravel(counts).astype(int), np.ravel(starts).astype(int)
        self.raw_shape = raw_shape
        check_size((sum(self.counts.tolist()),))
        self._offsets = np.concatenate([[0], np.cumsum(self.counts)[:-1]]) - self.starts
        super().__init__(int(self.counts.sum()), 0, 1)

    def encode(self, numbers: Any) -> np.ndarray:
        """Encode numbers as vectors.

        :param numbers: [..., *raw_shape] integers within their ranges
        :return: [..., D] float32
        :raises CoachError: if a number is outside its range
        """
        numbers = np.asarray(numbers)
        if not self.can_encode(numbers):
            last = self.starts + self.counts - 1
            raise CoachError(
                f"an observation has the numbers {numbers.tolist()!s:.60}, but its space has the numbers from "
                f"{self.starts.tolist()} to {last.tolist()}"
            )
        leading = numbers.shape[: numbers.ndim - len(self.raw_shape)]
        vectors = np.zeros((*leading, int(self.shape[0])), np.float32)
        places = numbers.reshape(*leading, -1) + self._offsets
        if leading:
            np.put_along_axis(vectors, places, 1, axis=-1)
        else:
            vectors[places] = 1
        return vectors

    def can_encode(self, numbers: np.ndarray) -> bool:
        """True if all numbers are whole numbers within their ranges. :param numbers: [..., *raw_shape]"""
        from_start = numbers.reshape(-1, len(self.counts)) - self.starts
        return bool(np.all((from_start >= 0) & (from_start < self.counts) & (from_start % 1 == 0)))


class ActionMaskSpace(VectorObservationSpace):
    """Masks of discrete actions, which the environment gives with each observation: 1 for an allowed action, 0 for a
    forbidden action. A forbidden action is never chosen and never bootstrapped from. A mask of only zeros has no
    effect.

    :param num_actions: A, the number of actions. If an agent chooses each part of an action separately: [K, M], the
        number of parts and the largest number of choices of a part
    :param counts: the number of choices of each part of an action, if actions have parts; None otherwise. The
        environment then gives the masks of all parts as one array [S], S = sum(counts)
    """

    counts: np.ndarray | None = None

    def __init__(self, num_actions: Union[int, Sequence[int]], counts: Sequence[int] | None = None):
        super().__init__(np.asarray(num_actions), 0, 1)
        self.counts = None if counts is None else np.asarray(counts, int)

    def of_all(self) -> np.ndarray:
        """A mask that allows all actions, in the agent's form."""
        return self.encode(np.ones(self.raw_shape, np.int8))

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """The shape in which the environment gives a mask."""
        return (self.num_elements,) if self.counts is None else (int(self.counts.sum()),)

    def fault(self, masks: Any, leading: tuple[int, ...] = ()) -> str | None:
        """The reason why masks from an environment are wrong; None if they are correct.

        :param leading: the lengths of the axes before the axes of one mask, such as (N,)
        """
        masks = np.asarray(masks)
        if masks.shape != (*leading, *self.raw_shape):
            return f"has the shape {masks.shape}, which does not fit its actions: {self._form}"
        if masks.dtype.kind not in "biuf":
            return f"has values of type {masks.dtype}, not the numbers 0 and 1"
        if not ((masks == 0) | (masks == 1)).all():
            return f"has other numbers than 0 and 1: {masks.tolist()}"
        return None

    @property
    def _form(self) -> str:
        if self.counts is None:
            return f"{self.num_elements} actions"
        return (
            f"parts of {', '.join(map(str, self.counts))} choices need a number for each choice, so {self.raw_shape[0]}"
        )

    def encode(self, masks: Any) -> np.ndarray:
        """Convert masks from the environment's form to the agent's form.

        :param masks: [..., A]; if actions have parts, [..., S] with one number for each choice of each part
        :return: [..., A], or [..., K, M] if an agent chooses each part of an action separately
        """
        masks = np.asarray(masks)
        if self.counts is None:
            return _unless_all_zero(masks)
        if self.num_dimensions == 2:
            found = np.zeros((*masks.shape[:-1], *self.shape), masks.dtype)
            for number, part in enumerate(np.split(masks, np.cumsum(self.counts)[:-1], axis=-1)):
                found[..., number, : self.counts[number]] = _unless_all_zero(part)
            return found
        combined = np.ones((*masks.shape[:-1], 1), masks.dtype)
        for part in np.split(masks, np.cumsum(self.counts)[:-1], axis=-1):
            combined = combined[..., :, None] * _unless_all_zero(part)[..., None, :]
            combined = combined.reshape((*masks.shape[:-1], -1))
        return combined

    def by_choice(self, masks: np.ndarray) -> np.ndarray:
        """The masks with one number for each choice of each part, [..., S], if an agent chooses each part separately
        ([..., K, M]); otherwise the masks themselves.
        """
        return masks if self.counts is None or self.num_dimensions != 2 else masks[..., _is_choice(self.counts)]

    def action_nearest(self, mask: np.ndarray, action: Any) -> Any:
        """The action itself if the mask allows it; otherwise the first allowed action.

        :param mask: [A] or [K, M]
        :param action: the number of the action, or [K] the number of each part's choice
        """
        if self.num_dimensions == 2:
            return np.where(np.take_along_axis(mask, action[:, None], 1)[:, 0], action, mask.argmax(axis=1))
        return action if mask[action] else int(np.argmax(mask))


def _is_choice(counts: Any) -> np.ndarray:
    """[K, M] bool: True for the choices that exist. :param counts: [K], the number of choices of each part"""
    return np.arange(max(counts)) < np.asarray(counts)[:, None]


def _unless_all_zero(masks: np.ndarray) -> np.ndarray:
    """Replace each mask of only zeros by ones. :param masks: [..., A]"""
    allows_any = masks.any(axis=-1, keepdims=True)
    return masks if allows_any.all() else np.where(allows_any, masks, np.ones_like(masks))


class TensorObservationSpace(ObservationSpace):
    """Observations of any shape, without a special meaning of the axes."""


class PlanarMapsObservationSpace(ObservationSpace):
    """Observations of several planes with the same height and width, such as the channels of an image or feature maps;
    or of a single plane [H, W].

    :param channels_axis: the axis of the planes, if there is such an axis; -1 is the last axis
    :ivar raw_channels_first: True if the environment has the planes on the first axis; they are moved to the last axis
    """

    raw_channels_first = False

    def __init__(self, shape: Any, low: Bound, high: Bound, channels_axis: int = -1):
        super().__init__(shape, low, high)
        if self.num_dimensions not in (2, 3):
            raise ValueError(f"planar maps have three dimensions, or two for a single plane, not {self.num_dimensions}")
        if not -3 <= channels_axis < 3:
            raise ValueError(f"channels_axis {channels_axis} is not an axis: it must be from -3 to 2")
        self.channels_axis = channels_axis

    @property
    def channels(self) -> int:
        """Number of planes."""
        return 1 if self.num_dimensions == 2 else int(self.shape[self.channels_axis])

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """The shape in which the environment gives an observation."""
        shape = tuple(self.shape.tolist())
        return (shape[-1], *shape[:-1]) if self.raw_channels_first else shape

    def encode(self, observations: Any) -> np.ndarray:
        """Move the planes of observations [..., *raw_shape] to the last axis if ``raw_channels_first``."""
        return np.ascontiguousarray(np.moveaxis(observations, -3, -1)) if self.raw_channels_first else observations


class ImageObservationSpace(PlanarMapsObservationSpace):
    """Images with 1, 3 or 4 channels, or [H, W] without an axis of channels. Pixels are from 0 to ``high``."""

    CHANNELS = (1, 3, 4)

    def __init__(self, shape: Any, high: Bound, channels_axis: int = -1):
        super().__init__(shape, 0, high, channels_axis)
        self.has_colors = self.channels == 3
        if self.channels not in self.CHANNELS:
            raise ValueError(
                f"images have 1, 3 or 4 channels, not {self.channels}: set channels_axis, or use a "
                f"PlanarMapsObservationSpace"
            )


class StateSpace:
    """The observation spaces by name: ``state_space['observation']``."""

    def __init__(self, sub_spaces: dict[str, Space]):
        self.sub_spaces = sub_spaces

    def __getitem__(self, name: str) -> Space:
        return self.sub_spaces[name]

    def __setitem__(self, name: str, space: Space) -> None:
        self.sub_spaces[name] = space

    def __contains__(self, name: str) -> bool:
        return name in self.sub_spaces

    @property
    def action_mask_name(self) -> str | None:
        """The name of the observation that is an action mask; None without a mask."""
        names = (name for name, space in self.sub_spaces.items() if isinstance(space, ActionMaskSpace))
        return next(names, None)

    def __repr__(self) -> str:
        return f"StateSpace({self.sub_spaces!r})"


class ActionSpace(Space):
    """Base class of the spaces of actions.

    :param descriptions: a readable name for each action, by its number or text
    :param default_action: the action of a copy that waits, or of an agent that has not chosen an action
    :cvar clips_actions: False if ``clip_action_to_space`` never changes an action, so that an environment does not call
        it; see the function ``clips_actions``
    :ivar raw_form: the environment's form of an action, see ``utilities/raw_actions.py``; None if environment and agent
        use the same form
    """

    clips_actions = True
    raw_form: raw_actions.Form | None = None

    def __init__(
        self,
        shape: Union[int, Sequence[int], np.ndarray],
        low: Bound = -np.inf,
        high: Bound = np.inf,
        descriptions: Union[None, list, dict] = None,
        default_action: ActionType | None = None,
    ):
        super().__init__(shape, low, high)
        self.descriptions = {} if descriptions is None else descriptions
        self.default_action = default_action

    @property
    def actions(self) -> Sequence[ActionType]:
        """All actions. :raises NotImplementedError: if the actions cannot be enumerated"""
        raise NotImplementedError(f"the actions of a {type(self).__name__} cannot be counted")

    def sample_with_info(self, action_mask: np.ndarray | None = None) -> ActionInfo:
        """A random action with its probability.

        :param action_mask: [A], 1 for allowed and 0 for forbidden discrete actions; None allows all actions
        """
        return ActionInfo(self.sample())

    @property
    def for_the_level_above(self) -> ActionSpace:
        """The action space of the level above, if that level chooses values of this space as goals for its lower
        level."""
        return self

    def clip_action_to_space(self, action: ActionType) -> ActionType:
        """The nearest action within the space."""
        return action

    def to_raw(self, action: Any) -> Any:
        """Convert an action from the agent's form to the environment's form."""
        return action

    def from_raw(self, action: Any) -> Any:
        """Convert an action from the environment's form to the agent's form; the inverse of ``to_raw``."""
        return action

    def encoded(self, actions: np.ndarray) -> np.ndarray:
        """Encode actions as the input of a network.

        :param actions: [B] discrete or [B, A] bounded continuous actions
        :return: [B, A] float32: one-hot vectors of discrete actions, or continuous actions scaled to [-1, 1]
        """
        raise NotImplementedError(f"the actions of a {type(self).__name__} have no encoding")

    def get_description(self, action: Any) -> str:
        """The readable name of an action; the action as a text if it has no name."""
        try:
            return str(self.descriptions[action])
        except (KeyError, IndexError, TypeError):
            return str(action)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={tuple(int(n) for n in self.shape)}, descriptions={self.descriptions})"


def clips_actions(space: ActionSpace) -> bool:
    """True if ``clip_action_to_space`` may change an action: the space's attribute ``clips_actions`` is True, or a
    subclass overrides the method."""
    return space.clips_actions or OVERRIDES.is_replaced(space, "clips_actions")


class BoxActionSpace(ActionSpace):
    """Continuous actions. Each element lies between its bounds.

    :ivar raw_integers: only in policies of older versions, which have no ``raw_form``: the dtype of the integers that
        the environment expects, such as ``"int32"``; None for floats
    :ivar raw_is_number: only in policies of older versions: True if the environment expects a number, not an array with
        one element
    """

    raw_integers: str | None = None
    raw_is_number = False

    def __init__(
        self,
        shape: Union[int, Sequence[int], np.ndarray],
        low: Bound = -np.inf,
        high: Bound = np.inf,
        descriptions: Union[None, list, dict] = None,
        default_action: np.ndarray | None = None,
    ):
        super().__init__(shape, low, high, descriptions)
        self.max_abs_range = np.maximum(np.abs(self.low), np.abs(self.high))
        if default_action is None:
            default_action = np.clip(np.zeros(tuple(self.shape)), self.low, self.high)
        self.default_action = default_action

    def clip_action_to_space(self, action: ActionType) -> np.ndarray:
        return np.clip(action, self.low, self.high)

    def encoded(self, actions: np.ndarray) -> np.ndarray:
        return ((2 * actions - self.low - self.high) / (self.high - self.low)).astype(np.float32)

    def to_raw(self, action: Any) -> Any:
        if self.raw_form is not None:
            return raw_actions.build(self.raw_form, np.asarray(action))
        if self.raw_integers is not None:
            action = np.rint(action).astype(self.raw_integers)
        return np.asarray(action, self.low.dtype)[0] if self.raw_is_number else action

    def from_raw(self, action: Any) -> np.ndarray:
        numbers = action if self.raw_form is None else raw_actions.flatten(self.raw_form, action)
        return np.reshape(np.asarray(numbers, self.low.dtype), tuple(self.shape))

    @property
    def is_raw_vector(self) -> bool:
        """True if the environment expects an action as the same vector of floats, perhaps with another float type."""
        form = self.raw_form
        return form is None or ("parts" not in form and len(form["shape"]) == 1 and form["dtype"].startswith("float"))


class AttentionActionSpace(ActionSpace):
    """Actions that select a box in an image: an action is a list of two corners, ``[lowest point, highest point]``.

    :param forced_attention_size: the size of all boxes; None if an action chooses the size
    """

    def __init__(
        self,
        shape: int,
        low: Bound = -np.inf,
        high: Bound = np.inf,
        descriptions: Union[None, list, dict] = None,
        default_action: np.ndarray | None = None,
        forced_attention_size: Union[None, int, float, np.ndarray] = None,
    ):
        super().__init__(shape, low, high, descriptions)
        self.forced_attention_size = forced_attention_size
        if isinstance(forced_attention_size, (int, float)):
            self.forced_attention_size = self._full(forced_attention_size)
        if self.forced_attention_size is not None and np.any(self.forced_attention_size > self.high - self.low):
            raise ValueError("forced_attention_size is larger than high - low: make it smaller")
        self.default_action = [self.low, self.high] if default_action is None else default_action

    def sample(self) -> list:
        if self.forced_attention_size is not None:
            corner = self.rng.uniform(self.low, self.high - self.forced_attention_size)
            return [corner, corner + self.forced_attention_size]
        corners = self.rng.uniform(self.low, self.high, size=(2, *self.shape))
        return [corners.min(axis=0), corners.max(axis=0)]

    def val_matches_space_definition(self, val: Any) -> bool:
        return len(val) == 2 and all(super(AttentionActionSpace, self).val_matches_space_definition(v) for v in val)

    def clip_action_to_space(self, action: Any) -> list:
        return [np.clip(corner, self.low, self.high) for corner in action]


class DiscreteActionSpace(ActionSpace):
    """Discrete actions with the numbers 0 to ``num_actions - 1``.

    :param filtered_action_space: the original action space, if a filter has made these discrete actions from it
    :ivar raw_actions: [A, ...] the environment's action for each number; None if the environment expects the number
    :ivar counts: the number of choices of each part, if the actions are combinations of parts; None otherwise
    """

    raw_actions: np.ndarray | None = None
    counts: list[int] | None = None
    clips_actions = False

    def __init__(
        self,
        num_actions: int,
        descriptions: Union[None, list, dict] = None,
        default_action: int | None = None,
        filtered_action_space: Any = None,
    ):
        super().__init__(1, low=0, high=num_actions - 1, descriptions=descriptions)
        self.num_actions = int(num_actions)
        self.default_action = 0 if default_action is None else default_action
        self.filtered_action_space = filtered_action_space

    @property
    def actions(self) -> list[int]:
        return list(range(self.num_actions))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, num_actions={self.num_actions})"

    def sample(self) -> int:
        return int(self.rng.integers(self.num_actions))

    def sample_with_info(self, action_mask: np.ndarray | None = None) -> ActionInfo:
        if action_mask is None:
            return ActionInfo(self.sample(), all_action_probabilities=np.full(self.num_actions, 1.0 / self.num_actions))
        allowed = np.flatnonzero(action_mask)
        probabilities = np.zeros(len(action_mask))
        probabilities[allowed] = 1.0 / len(allowed)
        return ActionInfo(int(self.rng.choice(allowed)), all_action_probabilities=probabilities)

    def encoded(self, actions: np.ndarray) -> np.ndarray:
        return np.eye(self.num_actions, dtype=np.float32)[actions]

    def to_raw(self, action: Any) -> Any:
        if self.raw_actions is None:
            return action
        if self.raw_form is not None:
            return raw_actions.build(self.raw_form, self.raw_actions[action])
        raw = self.raw_actions[action]
        return raw.copy() if raw.ndim else int(raw)

    def from_raw(self, action: Any) -> Any:
        if self.raw_actions is None:
            return int(action) if np.ndim(action) == 0 and int(action) == action else action
        if self.raw_form is not None:
            action = raw_actions.flatten(self.raw_form, action)
        equal = np.equal(self.raw_actions, action).reshape(len(self.raw_actions), -1).all(axis=1)
        return int(equal.argmax()) if equal.any() else -1

    def val_matches_space_definition(self, val: Any) -> bool:
        if isinstance(val, (int, np.integer)):  # nearly always, and faster
            return bool(0 <= val < self.num_actions)
        array = np.asarray(val)
        is_number = array.ndim == 0 and array.dtype.kind in NUMBERS
        return bool(is_number and 0 <= array < self.num_actions and array % 1 == 0)

    def get_description(self, action: int) -> str:
        if not self.contains(action):
            raise ValueError(f"action {action} does not exist: actions are from 0 to {self.num_actions - 1}")
        return super().get_description(action)


class MultiDiscreteActionSpace(ActionSpace):
    """Actions with K parts: an action is a vector [K] of integers, the number of the choice of each part. Numbers begin
    with 0.

    :param counts: the number of choices of each part
    """

    clips_actions = False

    def __init__(self, counts: Sequence[int]):
        self.counts = [int(count) for count in counts]
        super().__init__(len(self.counts), 0, np.asarray(self.counts) - 1, None, np.zeros(len(self.counts), np.int64))

    @property
    def most_choices(self) -> int:
        """M, the largest number of choices of a part."""
        return max(self.counts)

    @property
    def num_actions(self) -> int:
        """The number of combinations."""
        return math.prod(self.counts)

    @property
    def actions(self) -> list[np.ndarray]:
        """All combinations of choices. The list may be very long."""
        return list(np.indices(tuple(self.counts)).reshape(len(self.counts), -1).T)

    @property
    def is_choice(self) -> np.ndarray:
        """[K, M] bool: True for the choices of each part that exist, because a part may have fewer than M choices."""
        return _is_choice(self.counts)

    def sample(self) -> np.ndarray:
        return self.rng.integers(self.counts)

    def sample_with_info(self, action_mask: np.ndarray | None = None) -> ActionInfo:
        """A random action with the probabilities of each part's choices.

        :param action_mask: [K, M], 1 for allowed and 0 for forbidden choices; None allows all choices
        """
        allowed = self.is_choice if action_mask is None else (action_mask > 0) & self.is_choice
        action = (
            self.sample()
            if action_mask is None
            else np.array([self.rng.choice(np.flatnonzero(one)) for one in allowed])
        )
        return ActionInfo(action, all_action_probabilities=allowed / allowed.sum(axis=1, keepdims=True))

    def to_raw(self, action: Any) -> Any:
        return action if self.raw_form is None else raw_actions.build(self.raw_form, np.asarray(action))

    def from_raw(self, action: Any) -> np.ndarray:
        numbers = action if self.raw_form is None else raw_actions.flatten(self.raw_form, action)
        numbers = np.asarray(numbers, np.float64)
        return np.where(np.isnan(numbers), -1, numbers).astype(np.int64)

    def val_matches_space_definition(self, val: Any) -> bool:
        array = np.asarray(val)
        if array.dtype.kind not in "iuf" or array.shape != tuple(self.shape):
            return False
        return bool(np.all((array >= 0) & (array < self.counts) & (array % 1 == 0)))

    def __repr__(self) -> str:
        shown = self.counts if len(self.counts) <= 8 else f"{str(self.counts[:8])[:-1]}, …]"
        return f"{type(self).__name__}({shown})"


class TeamActionSpace(MultiDiscreteActionSpace):
    """The joint actions of a team. Each part of an action is the action of a player. All players have the same
    actions."""


class MultiSelectActionSpace(ActionSpace):
    """Actions that set ``size`` switches: an action is a vector of zeros (off) and ones (on).

    :param max_simultaneous_selected_actions: number of switches that may be on at the same time, from 1 to ``size``
    :param allow_no_action_to_be_selected: True if all switches may be off
    """

    def __init__(
        self,
        size: int,
        max_simultaneous_selected_actions: int = 1,
        descriptions: Union[None, list, dict] = None,
        default_action: np.ndarray | None = None,
        allow_no_action_to_be_selected: bool = True,
    ):
        super().__init__(size, low=0, high=1, descriptions=descriptions)
        self.max_simultaneous_selected_actions = max_simultaneous_selected_actions
        fewest = 0 if allow_no_action_to_be_selected else 1
        chosen = (
            subset
            for count in range(fewest, max_simultaneous_selected_actions + 1)
            for subset in itertools.combinations(range(size), count)
        )
        self._actions = [np.isin(np.arange(size), subset).astype(int) for subset in chosen]
        self.default_action = self._actions[0] if default_action is None else default_action

    @property
    def actions(self) -> list[np.ndarray]:
        return self._actions

    @property
    def num_actions(self) -> int:
        """The number of allowed vectors."""
        return len(self._actions)

    def val_matches_space_definition(self, val: Any) -> bool:
        return any(np.array_equal(val, action) for action in self._actions)

    def sample(self) -> np.ndarray:
        return self._actions[self.rng.integers(len(self._actions))]

    def sample_with_info(self, action_mask: np.ndarray | None = None) -> ActionInfo:
        probability = np.full(len(self._actions), 1.0 / len(self._actions))
        return ActionInfo(self.sample(), all_action_probabilities=probability)

    def get_description(self, action: Any) -> str:
        names = [super(MultiSelectActionSpace, self).get_description(int(i)) for i in np.flatnonzero(action)]
        return " + ".join(names) if names else "no-op"


class CompoundActionSpace(ActionSpace):
    """A combination of several action spaces. An action is a list with one action from each space."""

    def __init__(self, sub_spaces: list[ActionSpace]):
        super().__init__(0)
        self.sub_action_spaces = sub_spaces
        self.default_action = [space.default_action for space in sub_spaces]

    def seed(self, seed: Any) -> None:
        super().seed(seed)
        for space in self.sub_action_spaces:
            space.seed(int(self.rng.integers(2**63)))

    def sample(self) -> list:
        return [space.sample() for space in self.sub_action_spaces]

    def val_matches_space_definition(self, val: Any) -> bool:
        return len(val) == len(self.sub_action_spaces) and all(
            space.contains(part) for space, part in zip(self.sub_action_spaces, val)
        )

    def clip_action_to_space(self, actions: Any) -> list:
        return [space.clip_action_to_space(part) for space, part in zip(self.sub_action_spaces, actions)]

    def get_description(self, actions: Any) -> str:
        return ", ".join(space.get_description(part) for space, part in zip(self.sub_action_spaces, actions))


class GoalToRewardConversion:
    """Base class of conversions of the distance from a goal to a reward.

    :param goal_reaching_reward: the reward if the goal is reached
    """

    def __init__(self, goal_reaching_reward: float = 0):
        self.goal_reaching_reward = goal_reaching_reward

    def convert_distance_to_reward(self, distance: Union[float, np.ndarray]) -> tuple[float, bool]:
        """The reward for a distance, and True if the goal is reached."""
        raise NotImplementedError(f"{type(self).__name__} must define convert_distance_to_reward")


class ReachingGoal(GoalToRewardConversion):
    """A reward with two values: ``goal_reaching_reward`` if the goal is reached, otherwise ``default_reward``.

    :param distance_from_goal_threshold: the largest distance at which the goal counts as reached; one number, or a
        number for each element of the distance
    """

    def __init__(
        self,
        distance_from_goal_threshold: Union[float, np.ndarray],
        goal_reaching_reward: float = 0,
        default_reward: float = -1,
    ):
        super().__init__(goal_reaching_reward)
        self.distance_from_goal_threshold = distance_from_goal_threshold
        self.default_reward = default_reward

    def convert_distance_to_reward(self, distance: Union[float, np.ndarray]) -> tuple[float, bool]:
        reached = bool(np.all(distance <= self.distance_from_goal_threshold))
        return (self.goal_reaching_reward if reached else self.default_reward), reached


class InverseDistanceFromGoal(GoalToRewardConversion):
    """The reward 1 / distance, at most ``max_reward``.

    :param distance_from_goal_threshold: the largest distance at which the goal counts as reached
    """

    def __init__(self, distance_from_goal_threshold: Union[float, np.ndarray], max_reward: float = 1):
        super().__init__(goal_reaching_reward=max_reward)
        self.distance_from_goal_threshold = distance_from_goal_threshold
        self.max_reward = max_reward

    def convert_distance_to_reward(self, distance: Union[float, np.ndarray]) -> tuple[float, bool]:
        reached = bool(np.all(distance <= self.distance_from_goal_threshold))
        return min(self.max_reward, float(1 / (np.linalg.norm(distance) + eps))), reached


class GoalsSpace(VectorObservationSpace, ActionSpace):
    """The space of an agent's goals. In a hierarchy, the agent of the level above chooses the goals as its actions.

    :param goal_name: the name of the observation that the goal is compared with
    :param reward_type: conversion of a distance to a reward
    :param distance_metric: a ``DistanceMetric``, or a function of two arrays
    """

    class DistanceMetric(Enum):
        """The kind of distance between two points."""

        Euclidean = 0
        Cosine = 1
        Manhattan = 2

    def __init__(
        self,
        goal_name: str,
        reward_type: GoalToRewardConversion,
        distance_metric: Union[DistanceMetric, Callable[[np.ndarray, np.ndarray], Any]],
    ):
        super().__init__(0)
        self.goal_name = goal_name
        self.distance_metric = distance_metric
        self.reward_type = reward_type
        self.target_space: Space | None = None
        self.max_abs_range: np.ndarray | None = None
        self.descriptions = {}
        self.default_action = None

    def set_target_space(self, target_space: Space) -> None:
        """Set the shape and bounds of the goals. :param target_space: the space of the observation ``goal_name``"""
        VectorObservationSpace.__init__(
            self, target_space.shape, target_space.low, target_space.high,
            getattr(target_space, "measurements_names", None),
        )  # fmt: skip
        self.target_space = target_space
        self.max_abs_range = np.maximum(np.abs(self.low), np.abs(self.high))
        self.default_action = np.zeros(tuple(self.shape))
        self._box = BoxActionSpace(self.shape, self.low, self.high)

    @property
    def for_the_level_above(self) -> ActionSpace:
        """A box with the goals' bounds, in which an agent of continuous actions can act."""
        return self if self.target_space is None else self._box

    def goal_from_state(self, state: StateType) -> np.ndarray:
        """The part of a state that is compared with a goal."""
        return np.squeeze(state[self.goal_name])

    def distance_from_goal(self, goal: np.ndarray, state: StateType) -> Any:
        """The distance between a goal and the result of ``goal_from_state`` for a state."""
        reached = self.goal_from_state(state)
        if callable(self.distance_metric):
            return self.distance_metric(goal, reached)
        if self.distance_metric == self.DistanceMetric.Euclidean:
            return np.linalg.norm(goal - reached)
        if self.distance_metric == self.DistanceMetric.Manhattan:
            return np.sum(np.abs(goal - reached))
        if self.distance_metric == self.DistanceMetric.Cosine:
            norms = np.linalg.norm(goal) * np.linalg.norm(reached)
            return 1 - np.dot(np.ravel(goal), np.ravel(reached)) / max(norms, eps)
        raise CoachError(f"'{self.distance_metric}' is not a GoalsSpace.DistanceMetric, nor a function")

    def get_reward_for_goal_and_state(self, goal: np.ndarray, state: StateType) -> tuple[float, bool]:
        """The reward of a state for a goal, and True if the goal is reached."""
        return self.reward_type.convert_distance_to_reward(self.distance_from_goal(goal, state))


class AgentSelection(DiscreteActionSpace):
    """Actions that select one of several agents."""

    def __init__(self, num_agents: int):
        super().__init__(num_agents)


class SpacesDefinition:
    """The spaces of an agent: observations, goal (None without a goal), actions and rewards."""

    def __init__(self, state: StateSpace, goal: ObservationSpace | None, action: ActionSpace, reward: RewardSpace):
        self.state = state
        self.goal = goal
        self.action = action
        self.reward = reward
        self.action_mask_name = state.action_mask_name

    def action_mask(self, observations: Mapping[str, Any]) -> np.ndarray | None:
        """The mask of a state, [A] of 0 and 1; None if the environment has no masks.

        :param observations: the state's observations by name
        """
        return None if self.action_mask_name is None else np.asarray(observations[self.action_mask_name])

    def fits(self, owner: str) -> dict[str, str]:
        """Descriptions of the spaces of observations and actions, by name. A checkpoint fits only if they are equal.

        :param owner: the name of the level, or of the level and the player
        """
        states = {f"observation space {owner}/{name}": repr(space) for name, space in self.state.sub_spaces.items()}
        return {**states, f"action space {owner}": repr(self.action)}

    def difference_from(self, other: SpacesDefinition) -> str:
        """The first difference from other spaces, for a message; empty if there is no difference. Spaces of rewards are
        not compared."""
        names = [sorted(spaces.state.sub_spaces) for spaces in (self, other)]
        if names[0] != names[1]:
            return f"the observations {names[0]} and {names[1]}"
        pairs: list[tuple[str, Any, Any]] = [
            *((f"observation '{name}'", self.state[name], other.state[name]) for name in names[0]),
            ("goal", self.goal, other.goal),
            ("actions", self.action, other.action),
        ]
        for what, mine, others in pairs:
            if not are_equal(mine, others):
                words = _in_words(mine), _in_words(others)
                return f"{what}: {words[0]} and {words[1] if words[0] != words[1] else 'the same with other values'}"
        return ""


_OF_PEOPLE = ("_rng", "descriptions", "default_action")
"""Attributes of a space that do not change the set of its values."""


def are_equal(one: Any, other: Any) -> bool:
    """True if two values are equal: numbers, texts, arrays, spaces, and lists and dicts of these."""
    if isinstance(one, Space) and type(one) is type(other):
        facts = [
            {name: value for name, value in vars(space).items() if name not in _OF_PEOPLE} for space in (one, other)
        ]
        return are_equal(*facts)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(are_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(are_equal, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one is other or one == other)


def _in_words(space: Any) -> str:
    if isinstance(space, DiscreteActionSpace):
        return f"{space.num_actions} discrete actions"
    return f"{type(space).__name__} {np.ravel(space.shape).tolist()}" if isinstance(space, Space) else str(space)
