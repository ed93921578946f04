"""RLgraph's spaces as objects, and their conversion to Gymnasium's spaces and back."""

from __future__ import annotations

import copy
import math
from typing import Any, Callable, Iterator, Mapping

import numpy as np

from rl_coach.own_loop.forms import SINGLE, Part, part_of_space
from rl_coach.utilities.spec_fields import Fields, plain, shape_of, shown, whole
from rl_coach.utils import CoachError

_MOST_VALUES = 10**6
_DEEPEST = 20
_DTYPES = {"float": np.float32, "int": np.int32, "bool": np.bool_}


class Space:
    """A set of values, with or without leading dimensions for a batch and for time.

    :param add_batch_rank: the values have a leading dimension for a batch
    :param add_time_rank: the values have a dimension for time, after the dimension of the batch
    """

    def __init__(self, add_batch_rank: bool = False, add_time_rank: bool = False):
        self.has_batch_rank, self.has_time_rank = bool(add_batch_rank), bool(add_time_rank)

    @staticmethod
    def from_spec(spec: Any, **settings: Any) -> Space:
        """The space of a specification.

        :param spec: a space of RLgraph or Gymnasium; ``"float"``, ``float``, a number of choices, a dict or a list of
            spaces
        :param settings: entries that replace entries of a dict
        :raises CoachError: if the specification does not describe a space
        """
        given = {**spec, **settings} if isinstance(spec, Mapping) else spec
        return _made(given, "space", 0)

    def with_batch_rank(self, add_batch_rank: bool = True) -> Space:
        """A copy with the dimension of a batch, or without it."""
        return self._with(has_batch_rank=bool(add_batch_rank))

    def with_time_rank(self, add_time_rank: bool = True) -> Space:
        """A copy with the dimension of time, or without it."""
        return self._with(has_time_rank=bool(add_time_rank))

    def with_extra_ranks(self, add_batch_rank: bool = True, add_time_rank: bool = True) -> Space:
        """A copy with both dimensions, or without them."""
        return self.with_batch_rank(add_batch_rank).with_time_rank(add_time_rank)

    def _with(self, **ranks: bool) -> Space:
        changed = copy.copy(self)
        vars(changed).update(ranks)
        return changed

    def to_gymnasium(self) -> Any:
        """Gymnasium's space of one value."""
        raise NotImplementedError(f"{type(self).__name__} cannot be converted to a space of Gymnasium")

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class BoxSpace(Space):
    """Numbers of one kind and shape.

    :param part: the values
    """

    def __init__(self, part: Part, add_batch_rank: bool = False, add_time_rank: bool = False):
        super().__init__(add_batch_rank, add_time_rank)
        self.part = part
        self.dtype = _DTYPES[part.kind]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        return self.part.shape

    @property
    def rank(self) -> int:
        """Number of dimensions of one value."""
        return len(self.shape)

    @property
    def flat_dim(self) -> int:
        """Number of elements of one value."""
        return self.part.size

    @property
    def low(self) -> Any:
        """The smallest value, or an array of the smallest values."""
        return self._bound(self.part.lows)

    @property
    def high(self) -> Any:
        """The largest value. For an ``IntBox``, the number after its largest value."""
        return self._bound(self.part.highs + (self.part.kind == "int"))

    def _bound(self, bounds: np.ndarray) -> Any:
        kind = int if self.part.kind == "int" else bool if self.part.kind == "bool" else float
        if np.all(bounds == bounds.flat[0]) if bounds.size else True:
            return kind(bounds.flat[0]) if bounds.size else kind(0)
        return bounds.astype(kind).reshape(self.shape)

    @property
    def num_categories(self) -> int | None:
        """Number of choices; None for numbers."""
        return self.part.counts[0] if self.part.is_choice else None

    def _leading(self, size: Any) -> tuple[int, ...]:
        sizes = () if size is None else tuple(size) if isinstance(size, (tuple, list)) else (size,)
        count = self.has_batch_rank + self.has_time_rank
        return sizes + (1,) * (count - len(sizes)) if len(sizes) < count else sizes

    def sample(self, size: Any = None, rng: np.random.Generator | None = None) -> Any:
        """A random value.

        :param size: number of values in a batch, or (batch, time); None for one value
        :param rng: source of random numbers; None for NumPy's global one
        """
        shape, draw = (*self._leading(size), *self.shape), (rng or np.random)
        low, high = (bounds.reshape(self.shape) for bounds in (self.part.lows, self.part.highs))
        if self.part.is_choice:
            found = np.floor(draw.random(size=shape) * (high - low + 1) + low)
        else:
            bounded = np.isfinite(low) & np.isfinite(high)
            uniform = draw.random(size=shape) * (np.where(bounded, high, 1.0) - np.where(bounded, low, 0.0))
            found = np.where(
                bounded, uniform + np.where(bounded, low, 0.0), np.clip(draw.normal(size=shape), low, high)
            )
        return found.astype(self.dtype) if shape else self.dtype(found)

    def contains(self, sample: Any) -> bool:
        values = np.asarray(sample)
        leading = self.has_batch_rank + self.has_time_rank
        if (
            values.dtype.kind not in "biuf"
            or values.ndim != leading + self.rank
            or values.shape[leading:] != self.shape
        ):
            return False
        if self.part.is_choice and values.dtype.kind == "f":
            return False
        low, high = (bounds.reshape(self.shape) for bounds in (self.part.lows, self.part.highs))
        return bool(np.all((values >= low) & (values <= high)))

    def zeros(self, size: Any = None) -> np.ndarray:
        """Zeros. :param size: as for ``sample``"""
        return np.zeros((*self._leading(size), *self.shape), self.dtype)

    def force_batch(self, samples: Any) -> np.ndarray:
        """Values with the dimension of a batch. A single value gets this dimension."""
        values = np.asarray(samples)
        return values[None] if values.ndim == self.rank else values

    def flatten(self) -> dict[str, BoxSpace]:
        """A dict with this space under the name ``""``."""
        return {"": self}

    def to_gymnasium(self) -> Any:
        from gymnasium import spaces

        part = self.part
        if part.kind == "bool":
            return spaces.MultiBinary(part.shape) if part.shape else spaces.Discrete(2)
        if part.kind == "int" and not part.shape:
            return spaces.Discrete(part.counts[0], start=int(part.lows[0]))
        if part.kind == "int":
            starts = part.lows.astype(int).reshape(part.shape)
            return spaces.MultiDiscrete(np.reshape(part.counts, part.shape), start=starts)
        low, high = (bounds.astype(np.float32).reshape(part.shape) for bounds in (part.lows, part.highs))
        return spaces.Box(low, high, part.shape, np.float32)

    def __repr__(self) -> str:
        ranks = f"{' +batch' if self.has_batch_rank else ''}{' +time' if self.has_time_rank else ''}"
        return f"{type(self).__name__}({self.shape} {self.dtype.__name__}{ranks})"


class FloatBox(BoxSpace):
    """Numbers.

    :param low: the smallest number; None for no limit. If only ``low`` is given, the numbers are from 0 to ``low``
    :param high: the largest number; None for no limit
    :param shape: the shape of a value
    :param add_batch_rank: see ``Space``, also for ``add_time_rank``
    """

    def __init__(self, low: Any = None, high: Any = None, shape: Any = (), add_batch_rank: bool = False,
                 add_time_rank: bool = False, **unused: Any):  # fmt: skip
        spec = {"type": "float", "low": low, "high": high, "shape": shape, **unused}
        super().__init__(_part(Fields(spec, "FloatBox")), add_batch_rank, add_time_rank)


class IntBox(BoxSpace):
    """Whole numbers from ``low`` to below ``high``; ``IntBox(4)`` begins with 0. See ``FloatBox``."""

    def __init__(self, low: Any = None, high: Any = None, shape: Any = (), add_batch_rank: bool = False,
                 add_time_rank: bool = False, **unused: Any):  # fmt: skip
        spec = {"type": "int", "low": low, "high": high, "shape": shape, **unused}
        super().__init__(_part(Fields(spec, "IntBox")), add_batch_rank, add_time_rank)


class BoolBox(BoxSpace):
    """Truth values. See ``FloatBox``."""

    def __init__(self, shape: Any = (), add_batch_rank: bool = False, add_time_rank: bool = False):
        super().__init__(_part(Fields({"type": "bool", "shape": shape}, "BoolBox")), add_batch_rank, add_time_rank)


class ContainerSpace(Space):
    """Several spaces together.

    :ivar spaces: the spaces by name or number
    """

    spaces: dict[Any, Space]

    def _with(self, **ranks: bool) -> Space:
        changed = super()._with(**ranks)
        vars(changed)["spaces"] = {name: one._with(**ranks) for name, one in self.spaces.items()}
        return changed

    def _collect(self, function: Callable[[Any, Any], Any]) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _collect")

    def sample(self, size: Any = None, rng: np.random.Generator | None = None) -> Any:
        """A random value of each space. See ``BoxSpace.sample``."""
        return self._collect(lambda name, space: space.sample(size, rng))

    def zeros(self, size: Any = None) -> Any:
        """Zeros of each space."""
        return self._collect(lambda name, space: space.zeros(size))

    def force_batch(self, samples: Any) -> Any:
        """Values with the dimension of a batch in each space."""
        return self._collect(lambda name, space: space.force_batch(samples[name]))

    @property
    def shape(self) -> Any:
        """The shape of each space."""
        return self._collect(lambda name, space: space.shape)

    @property
    def dtype(self) -> Any:
        """The type of each space."""
        return self._collect(lambda name, space: space.dtype)

    def flatten(self) -> dict[str, BoxSpace]:
        """All boxes by their path, such as ``"/eye/left"``."""
        found = {}
        for name, space in self.spaces.items():
            for below, box in space.flatten().items():  # type: ignore[attr-defined]
                found[f"/{name}{below}"] = box
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self.spaces)

    def __len__(self) -> int:
        return len(self.spaces)

    def __getitem__(self, name: Any) -> Space:
        return self.spaces[name]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spaces})"


class Dict(ContainerSpace):
    """Spaces by name. :param spaces: a dict, or a keyword argument for each space"""

    def __init__(self, spaces: Mapping[str, Any] | None = None, add_batch_rank: bool = False,
                 add_time_rank: bool = False, **named: Any):  # fmt: skip
        super().__init__(add_batch_rank, add_time_rank)
        given = {**(spaces or {}), **named}
        self.spaces = _below({str(name): one for name, one in given.items()}, add_batch_rank, add_time_rank)

    def _collect(self, function: Callable[[Any, Any], Any]) -> Any:
        return {name: function(name, space) for name, space in self.spaces.items()}

    def contains(self, sample: Any) -> bool:
        fits = isinstance(sample, Mapping) and sample.keys() == self.spaces.keys()
        return fits and all(space.contains(sample[name]) for name, space in self.spaces.items())  # type: ignore[attr-defined]

    def keys(self) -> Any:
        """The names."""
        return self.spaces.keys()

    def items(self) -> Any:
        """Names and spaces."""
        return self.spaces.items()

    def to_gymnasium(self) -> Any:
        from gymnasium import spaces

        return spaces.Dict(self._collect(lambda name, space: space.to_gymnasium()))


class Tuple(ContainerSpace):
    """Spaces by number. :param spaces: one argument for each space, or one list of all spaces"""

    def __init__(self, *spaces: Any, add_batch_rank: bool = False, add_time_rank: bool = False):
        super().__init__(add_batch_rank, add_time_rank)
        given = spaces[0] if len(spaces) == 1 and isinstance(spaces[0], (list, tuple)) else spaces
        self.spaces = _below(dict(enumerate(given)), add_batch_rank, add_time_rank)

    def _collect(self, function: Callable[[Any, Any], Any]) -> Any:
        return tuple(function(name, space) for name, space in self.spaces.items())

    def contains(self, sample: Any) -> bool:
        fits = isinstance(sample, (list, tuple)) and len(sample) == len(self.spaces)
        return fits and all(space.contains(sample[name]) for name, space in self.spaces.items())  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.spaces.values())

    def to_gymnasium(self) -> Any:
        from gymnasium import spaces

        return spaces.Tuple(self._collect(lambda name, space: space.to_gymnasium()))


def _below(given: Mapping[Any, Any], batch: bool, time: bool) -> dict[Any, Space]:
    made = {name: _made(one, f"space.{name}", 1) for name, one in given.items()}
    return {name: one.with_extra_ranks(True, time) if batch else one for name, one in made.items()}


_BOXES = {"float": FloatBox, "floatbox": FloatBox, "int": IntBox, "intbox": IntBox, "bool": BoolBox, "boolbox": BoolBox}
_CONTAINERS = ("dict", "tuple")


def _made(given: Any, where: str, depth: int) -> Space:
    if depth > _DEEPEST:
        raise CoachError(f"the spec's '{where[:40]}...' is nested too deeply")
    if isinstance(given, Space):
        return given
    container = _container(given)
    if container == "tuple":
        parts = list(given.get("_args", ())) if isinstance(given, Mapping) else list(given)
        return Tuple([_made(one, f"{where}[{number}]", depth + 1) for number, one in enumerate(parts)], **_ranks(given))
    if container == "dict":
        rest = {name: one for name, one in given.items() if name not in ("type", "add_batch_rank", "add_time_rank")}
        named = rest if isinstance(given.get("type"), str) else dict(given)
        Fields(named, where)  # checks that its keys are texts
        return Dict({name: _made(one, f"{where}.{name}", depth + 1) for name, one in named.items()}, **_ranks(given))
    if isinstance(given, (type, str)):
        given = {"type": given}
    elif isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        given = {"type": "int", "low": given}
    elif not isinstance(given, Mapping):
        return _of_gymnasium(given)
    fields = Fields(given, where)
    ranks = {name: fields.flag(name) or False for name in ("add_batch_rank", "add_time_rank")}
    return box_of(_part(fields), **ranks)


def _container(given: Any) -> str | None:
    if isinstance(given, (list, tuple)):
        return "tuple"
    if not isinstance(given, Mapping):
        return None
    kind = given.get("type")
    if isinstance(kind, str) and plain(kind) in _CONTAINERS:
        return plain(kind)
    return None if isinstance(kind, (str, type)) else "dict"


def _ranks(given: Any) -> dict[str, bool]:
    names = ("add_batch_rank", "add_time_rank")
    return {name: given[name] is True for name in names if isinstance(given, Mapping) and name in given}


def _of_gymnasium(given: Any) -> Space:
    kind, named = type(given).__name__, getattr(given, "spaces", None)
    if kind == "Dict" and isinstance(named, Mapping):
        return Dict(dict(named))
    if kind == "Tuple" and isinstance(named, (list, tuple)):
        return Tuple(list(named))
    return box_of(part_of_space(given))


def box_of(part: Part, add_batch_rank: bool = False, add_time_rank: bool = False) -> BoxSpace:
    """The RLgraph space of one state or one action.

    :param add_batch_rank: the values have a leading dimension for a batch
    :param add_time_rank: the values have a dimension for time
    """
    kind: Any = _BOXES[part.kind]
    box: BoxSpace = kind.__new__(kind)
    BoxSpace.__init__(box, part, add_batch_rank, add_time_rank)
    return box


def _part(fields: Fields) -> Part:
    named, shape = fields.get("type"), fields.get("shape")
    name = plain(named.__name__ if isinstance(named, type) else str(named))
    if name not in _BOXES:
        raise CoachError(f"the spec's '{fields.path('type')}' must be float, int or bool, not {shown(named)}")
    kind = "float" if name.startswith("float") else "int" if name.startswith("int") else "bool"
    shape = shape_of(shape, fields.path("shape"))
    low, high = fields.number("low"), fields.number("high")
    fields.finish()
    if kind == "bool":
        return Part(kind, shape, 0.0, 1.0)
    if kind == "int":
        return _choices(fields, shape, low, high)
    if high is None and low is not None:  # as in RLgraph, one number is the upper bound
        low, high = 0.0, low
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if low >= high:
        raise CoachError(f"the spec's '{fields.path('high')}' must be above 'low', not {high:g}")
    return Part(kind, shape, low, high)


def _choices(fields: Fields, shape: tuple[int, ...], low: float | None, high: float | None) -> Part:
    if low is None and high is None:
        raise CoachError(f"the spec's '{fields.path('high')}' is missing: set it to the number of values")
    first, end = (0.0, low) if high is None else (low or 0.0, high)
    assert end is not None
    whole(-(10**9))(first, fields.path("low"))
    whole(1, _MOST_VALUES)(end - first, fields.path("high"))
    return Part("int", shape, first, end - 1)


def parts_of(given: Any, where: str) -> dict[Any, Part]:
    """The states or actions of a space: by name, by number for a ``Tuple``, or one with the name ``SINGLE``.

    :raises CoachError: if the argument is not a space, or the space is nested
    """
    space = _made(given, where, 0)
    if isinstance(space, BoxSpace):
        return {SINGLE: space.part}
    found: dict[Any, Part] = {}
    for name, one in space.spaces.items():  # type: ignore[attr-defined]
        if not isinstance(one, BoxSpace):
            raise CoachError(
                f"the spec's '{where}.{name}' must be float, int or bool, not {shown(one)}: do not nest spaces"
            )
        found[name] = one.part
    return found
