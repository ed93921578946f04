"""Conversion of TensorForce's and RLgraph's descriptions of states and actions to Gymnasium's spaces."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import Any, Callable, Mapping, Sequence, Union

import numpy as np

from rl_coach.utilities.spec_fields import shown
from rl_coach.utils import CoachError

logger = logging.getLogger("rl_coach")

Bound = Union[float, tuple[float, ...]]


@dataclass(frozen=True)
class Part:
    """A named state or action.

    :param kind: ``float``, ``int`` or ``bool``
    :param shape: the shape of the state or action
    :param low: the smallest number, or a flat list with the smallest value of each number
    :param high: the largest number, or a flat list with the largest value of each number
    """

    kind: str
    shape: tuple[int, ...] = ()
    low: Bound = -math.inf
    high: Bound = math.inf

    @property
    def is_choice(self) -> bool:
        """True for a discrete choice."""
        return self.kind != "float"

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def lows(self) -> np.ndarray:
        """[size], the smallest value of each element."""
        return np.broadcast_to(np.asarray(self.low, np.float64), self.size)

    @property
    def highs(self) -> np.ndarray:
        """[size], the largest value of each element."""
        return np.broadcast_to(np.asarray(self.high, np.float64), self.size)

    @property
    def counts(self) -> list[int]:
        """Number of choices of each element."""
        return (self.highs - self.lows + 1).astype(int).tolist()


Parts = Mapping[Any, Part]
"""Parts by name; the parts of a tuple by number."""
SINGLE = ""
"""The name of the only part if the user's value is not a dict."""


def part_of_space(space: Any) -> Part:
    """The state or action that a Gymnasium space describes.

    :raises CoachError: if the kind of space is not supported
    """
    import gymnasium

    spaces = gymnasium.spaces
    if isinstance(space, spaces.Discrete):
        return Part("int", (), float(space.start), float(space.start + space.n - 1))
    if isinstance(space, spaces.MultiBinary):
        return Part("bool", tuple(space.shape), 0.0, 1.0)
    if isinstance(space, spaces.MultiDiscrete):
        return Part("int", tuple(space.shape), _row(space.start), _row(space.start + space.nvec - 1))
    if isinstance(space, spaces.Box):
        return Part("float", tuple(space.shape), _row(space.low), _row(space.high))
    raise CoachError(
        f"a spec does not support the space {shown(space)}: give a Box, Discrete, MultiDiscrete or MultiBinary space"
    )


def _row(numbers: np.ndarray) -> Bound:
    row = tuple(np.ravel(numbers).astype(float).tolist())
    return row[0] if row and len(set(row)) == 1 else row


def observation_space(given: Any, parts_of: Callable[[Any], Parts]) -> Any:
    """The Gymnasium space of states.

    :param given: the space, or a description of states
    :param parts_of: reads the parts of a description
    :raises CoachError: if there are no states
    """
    import gymnasium

    if isinstance(given, gymnasium.Space):
        return given
    parts = parts_of(given)
    if not parts:
        raise CoachError("a spec needs at least one state")
    spaces = {name: _box(part) for name, part in parts.items()}
    if 0 in spaces:
        return gymnasium.spaces.Tuple(list(spaces.values()))
    return spaces[SINGLE] if SINGLE in spaces else gymnasium.spaces.Dict(spaces)


def _box(part: Part) -> Any:
    import gymnasium

    if part.is_choice and not part.shape:
        return gymnasium.spaces.Discrete(part.counts[0], start=int(part.lows[0]))
    low, high = (bounds.astype(np.float32).reshape(part.shape) for bounds in (part.lows, part.highs))
    if len(part.shape) == 3 and np.all(low == 0) and np.all(high == 255):
        return gymnasium.spaces.Box(0, 255, part.shape, np.uint8)
    return gymnasium.spaces.Box(low, high, part.shape, np.float32)


def with_bounds(parts: Parts) -> Parts:
    """Parts with bounds for all numbers. Missing bounds become -1 and 1, with a warning."""
    found = {}
    for name, part in parts.items():
        low, high = (np.where(np.isfinite(one), one, end) for one, end in ((part.lows, -1.0), (part.highs, 1.0)))
        found[name] = replace(part, low=_row(low), high=_row(high))
        if not np.array_equal([low, high], [part.lows, part.highs]):
            logger.warning("this algorithm needs bounded actions: an action without bounds gets the bounds -1 and 1")
    return found


class Actions:
    """Converts actions between two forms: the agent's form, a point of one space, and the form of the user's
    environment, which may have several named actions.

    :param parts: the actions by name; the name ``SINGLE`` means one action that is not in a dict
    :param as_numbers: True if the agent has continuous numbers instead of choices. The numbers are rounded down
    :raises CoachError: if there are no actions

    :ivar space: the Gymnasium space of the agent's actions
    """

    def __init__(self, parts: Parts, as_numbers: bool = False):
        if not parts:
            raise CoachError("a spec needs at least one action")
        self.parts = dict(parts)
        kinds = {part.is_choice for part in parts.values()}
        self.as_numbers = (as_numbers and True in kinds) or len(kinds) > 1
        if self.as_numbers:
            logger.warning(
                "the agent's actions are continuous: Coach rounds each number down for actions of the type int or bool"
            )
        self.space = self._space(list(parts.values()))

    @property
    def is_bounded(self) -> bool:
        """True if all numbers have bounds."""
        return all(np.all(np.isfinite([part.lows, part.highs])) for part in self.parts.values())

    def _space(self, parts: Sequence[Part]) -> Any:
        from gymnasium import spaces

        if self.as_numbers or not parts[0].is_choice:
            low = np.concatenate([part.lows for part in parts]).astype(np.float32)
            high = np.concatenate([part.highs + part.is_choice for part in parts]).astype(np.float32)
            return spaces.Box(low, high, dtype=np.float32)
        counts = [count for part in parts for count in part.counts]
        return spaces.Discrete(counts[0]) if len(counts) == 1 else spaces.MultiDiscrete(counts)

    def to_user(self, chosen: Any) -> Any:
        """The action for the user's environment."""
        numbers, found, begin = np.ravel(chosen), {}, 0
        for name, part in self.parts.items():
            values = numbers[begin : begin + part.size].reshape(part.shape)
            begin += part.size
            found[name] = _as_kind(part, values, self.as_numbers)
        return tuple(found.values()) if 0 in found else found.get(SINGLE, found)

    def from_user(self, action: Any) -> Any:
        """The action of the user's environment in the agent's form, a point of ``space``.

        :raises CoachError: if an action is missing, has a wrong shape, or is not a number or choice
        """
        columns, is_tuple = [], isinstance(action, (tuple, list))
        names = range(len(action)) if is_tuple else action if isinstance(action, Mapping) else ()
        for name, part in self.parts.items():
            if name != SINGLE and name not in names:
                raise CoachError(f"the action has no '{name}'")
            given = action if name == SINGLE else action[name]
            if np.shape(given) != part.shape:
                raise CoachError(f"an action has the shape {np.shape(given)}, not {part.shape}")
            values = np.ravel(np.asarray(given))
            if values.dtype.kind not in "biuf" or (part.is_choice and np.any(values != np.floor(values))):
                raise CoachError(
                    f"the action {shown(given)} is not {'a whole number' if part.is_choice else 'numeric'}"
                )
            if part.is_choice and not self.as_numbers:
                columns.append(values.astype(int) - part.lows.astype(int))
            else:  # the middle of all numbers that are rounded to the choice
                columns.append(values.astype(np.float32) + np.float32(0.5 * part.is_choice))
        flat = np.concatenate(columns)
        return int(flat[0]) if self.space.shape == () else flat

    def constant(self, given: Any, where: str) -> Any:
        """The action with given values: a dict by name, or one value for the only action. An action without a value
        gets the allowed number nearest to 0.

        :raises CoachError: if an action does not exist, or a value is not allowed for it
        """
        named = given if isinstance(given, Mapping) else {} if given is None else dict.fromkeys(self.parts, given)
        if SINGLE in self.parts and len(named) == 1:
            named = {SINGLE: next(iter(named.values()))}
        if unknown := [name for name in named if name not in self.parts]:
            advice = f"the actions are {', '.join(map(str, self.parts))}"
            advice = "give one value, because the action has no name" if SINGLE in self.parts else advice
            raise CoachError(f"the spec's '{where}' has {shown(unknown[0])}; {advice}")
        found = {}
        for name, part in self.parts.items():
            low, high = part.lows.reshape(part.shape), part.highs.reshape(part.shape)
            try:
                values = np.broadcast_to(np.asarray(named.get(name, np.clip(0.0, low, high)), np.float64), part.shape)
            except (TypeError, ValueError):
                raise CoachError(
                    f"the spec's '{where}' {shown(named[name])} does not have the shape {part.shape}"
                ) from None
            if not np.all((values >= low) & (values <= high)):
                raise CoachError(f"the spec's '{where}' {shown(named[name])} is not an action of the space")
            kind = {"float": float, "int": int, "bool": bool}[part.kind]
            found[name] = values.astype(kind) if part.shape else kind(values)
        return found.get(SINGLE, found)

    def as_data(self) -> Any:
        """The parts as JSON: a dict by name, or a list for a tuple."""
        found = {
            name: {
                "kind": part.kind,
                "shape": list(part.shape),
                "low": [repr(number) for number in part.lows.tolist()],
                "high": [repr(number) for number in part.highs.tolist()],
            }
            for name, part in self.parts.items()
        }
        return list(found.values()) if 0 in found else found

    @classmethod
    def from_data(cls, data: Any, as_numbers: bool = False) -> Actions:
        """The actions from the result of ``as_data``.

        :raises CoachError: if the data are damaged
        """
        try:
            parts = {
                name: Part(one["kind"], tuple(one["shape"]), *(_row(np.array(one[e], float)) for e in ("low", "high")))
                for name, one in (enumerate(data) if isinstance(data, list) else data.items())
            }
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise CoachError(f"the saved actions are damaged: {error}") from error
        return cls(parts, as_numbers)


def _as_kind(part: Part, values: np.ndarray, as_numbers: bool) -> Any:
    if part.is_choice and as_numbers:
        values = np.clip(np.floor(values), part.lows.reshape(part.shape), part.highs.reshape(part.shape)).astype(int)
    elif part.is_choice:
        values = values.astype(int) + part.lows.astype(int).reshape(part.shape)
    if part.kind == "bool":
        values = values.astype(bool)
    return values if part.shape else values.item()
