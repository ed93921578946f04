"""Spaces as JSON: each space is the same after writing and reading, with its dtype and its bounds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from gymnasium import spaces

from rl_coach.environments.space_data import space_as_data, space_from_data
from rl_coach.utils import CoachError

KNOWN = [
    spaces.Discrete(3, start=-5),
    spaces.MultiDiscrete([3, 2], start=[1, -1], dtype=np.int16),
    spaces.MultiDiscrete([[3, 2], [1, 4]], dtype=np.int32),
    spaces.MultiBinary((2, 3)),
    spaces.Box(-np.inf, np.inf, (2,), np.float64),
    spaces.Box(np.array([-1, 0.1], np.float16), np.array([1, 0.2], np.float16), dtype=np.float16),
    spaces.Box(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (2,), np.int64),
    spaces.Box(np.array([0, -(2**53) - 1]), np.array([1, 2**53 + 1]), dtype=np.int64),
    spaces.Box(0, np.iinfo(np.uint64).max, (), np.uint64),
    spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (0,))]),
    spaces.Dict({1: spaces.Discrete(2), "a/b": spaces.Tuple([spaces.MultiBinary(2)])}),
]


@pytest.mark.parametrize("space", KNOWN)
def test_a_space_is_the_same_after_reading(space):
    read = space_from_data(json.loads(json.dumps(space_as_data(space))))
    assert read == space and repr(read) == repr(space) and read.dtype == space.dtype
    if isinstance(space, spaces.Box):
        assert read.low.tolist() == space.low.tolist() and read.high.tolist() == space.high.tolist()


def test_data_of_older_versions_have_no_dtype():
    data = {"kind": "MultiDiscrete", "nvec": [3, 2], "start": [1, -1]}
    assert space_from_data(data) == spaces.MultiDiscrete([3, 2], start=[1, -1])
    assert space_from_data({"kind": "Discrete", "n": 3, "start": 1}) == spaces.Discrete(3, start=1)


@pytest.mark.parametrize(
    "changes",
    [{"low": "9" * 30}, {"low": "abc"}, {"low": ["1"]}, {"dtype": "text"}, {"dtype": "float32"}, {"kind": "Ball"}],
)
def test_damaged_data_are_named(changes):
    data = space_as_data(spaces.Box(0, 5, (2,), np.int64))
    with pytest.raises(CoachError, match="a saved space is damaged"):
        space_from_data({**data, "high": "x", **changes})
