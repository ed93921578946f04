"""Gymnasium's spaces as plain data, for the files of ``Agent.save``."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.utils import CoachError


def space_as_data(space: Any) -> dict[str, Any]:
    """A space as JSON. :raises CoachError: if agents do not support this kind of space"""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        keys = list(space.spaces)
        if not all(isinstance(key, (str, int)) for key in keys):
            raise CoachError(f"the space {space} cannot be saved: its keys are not texts or whole numbers")
        return {"kind": "Dict", "keys": keys, "parts": [space_as_data(part) for part in space.spaces.values()]}
    if isinstance(space, spaces.Tuple):
        return {"kind": "Tuple", "parts": [space_as_data(part) for part in space.spaces]}
    if isinstance(space, spaces.Box):
        bounds = {"low": _folded(space.low), "high": _folded(space.high)}
        return {"kind": "Box", **bounds, "shape": list(space.shape), "dtype": str(space.dtype)}
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "MultiBinary", "n": np.asarray(space.n).tolist()}
    if isinstance(space, spaces.MultiDiscrete):
        start, dtype = np.asarray(space.start).tolist(), str(space.dtype)
        return {"kind": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": start, "dtype": dtype}
    known = "Box, Dict, Discrete, MultiBinary, MultiDiscrete and Tuple"
    raise CoachError(f"the space {space} cannot be saved; spaces that can be saved are {known}")


def _folded(bound: np.ndarray) -> Any:
    """The numbers of a bound as texts, because JSON has no infinity. If all numbers are equal, the result is one
    text."""
    if bound.size and np.all(bound == bound.flat[0]):
        return repr(bound.flat[0].item())
    return [repr(number) for number in bound.ravel().tolist()]


def space_from_data(data: dict[str, Any]) -> Any:
    """The space from the data of ``space_as_data``. :raises CoachError: if the data is damaged"""
    from gymnasium import spaces

    try:
        kind = data["kind"]
        if kind == "Dict" and "parts" in data:
            return spaces.Dict(dict(zip(data["keys"], map(space_from_data, data["parts"]))))
        if kind == "Tuple":
            return spaces.Tuple(map(space_from_data, data["parts"]))
        if kind == "Dict":  # as older versions wrote it
            return spaces.Dict({name: space_from_data(part) for name, part in data["spaces"].items()})
        if kind == "Box":
            dtype, shape = np.dtype(data["dtype"]), tuple(data["shape"])
            low, high = (np.broadcast_to(_numbers(data[name], shape, dtype), shape) for name in ("low", "high"))
            return spaces.Box(low, high, shape, dtype.type)
        # files of older versions have no dtype, and gymnasium 1.0's Discrete takes none
        more = {"dtype": np.dtype(data["dtype"])} if data.get("dtype", "int64") != "int64" else {}
        if kind == "Discrete":
            return spaces.Discrete(data["n"], start=data["start"], **more)
        if kind == "MultiBinary":
            return spaces.MultiBinary(data["n"])
        if kind == "MultiDiscrete":
            return spaces.MultiDiscrete(np.asarray(data["nvec"]), start=np.asarray(data["start"]), **more)
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError, OverflowError) as error:
        raise CoachError(f"a saved space is damaged: {error}") from error
    raise CoachError(f"a saved space is damaged: there is no kind {kind!r}")


def _numbers(bound: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    read = int if dtype.kind in "iu" else float  # a float cannot hold the largest whole numbers
    if isinstance(bound, str):
        return np.asarray(read(bound), dtype)
    return np.asarray([read(number) for number in bound], dtype).reshape(shape)
