"""Divides the time of a step between the parts of Coach: environment, policy, memory, update and others."""

from __future__ import annotations

import cProfile
import pstats
from typing import Any

Function = tuple[str, int, str]
"""A file, a line and a name, as ``pstats`` has them."""

COMPUTE, CALL, POLICY = "update compute", "update call", "policy"
MEMORY, ENVIRONMENT, REST = "memory", "environment", "filters and bookkeeping"
PARTS = (ENVIRONMENT, POLICY, REST, MEMORY, CALL, COMPUTE)
_FILES = (
    ("rl_coach/architectures/onnx_predictor.py", POLICY),
    ("rl_coach/architectures/architecture.py", POLICY),
    ("rl_coach/exploration_policies/", POLICY),
    ("onnxruntime/", POLICY),
    ("rl_coach/architectures/", CALL),
    ("tensorflow/", CALL),
    ("jax/", CALL),
    ("rl_coach/memories/", MEMORY),
    ("rl_coach/environments/", ENVIRONMENT),
    ("benchmarks/null_environment.py", ENVIRONMENT),
    ("gymnasium/", ENVIRONMENT),
    ("ale_py/", ENVIRONMENT),
    ("rl_coach/", REST),
)


def by_part(profiler: cProfile.Profile) -> dict[str, float]:
    """Seconds in each of ``PARTS``.

    The time of a function that belongs to no part, for example of NumPy, counts for the functions that call it.
    """
    stats: dict[Function, Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    seconds = dict.fromkeys(PARTS, 0.0)
    for function, (_, _, own, _, callers) in stats.items():
        for part, share in _shares(function, callers, stats, frozenset()).items():
            seconds[part] += own * share
    return seconds


def _shares(function: Function, callers: dict, stats: dict, above: frozenset[Function]) -> dict[str, float]:
    """The share of each part in a function's own time, without the functions that it calls.

    :param above: functions that the search has already visited; they are ignored, so that the search ends
    """
    part = _part_of(function)
    if part is not None:
        return {part: 1.0}
    spent = {caller: numbers[2] for caller, numbers in callers.items() if caller not in above}
    total = sum(spent.values())
    if not total:
        return {REST: 1.0}
    shares: dict[str, float] = {}
    for caller, own in spent.items():
        # numpy.asarray in _read waits until JAX has computed the update
        waits = function[2].endswith("numpy.asarray>") and caller[2] == "_read"
        of_caller = {COMPUTE: 1.0} if waits else _shares(caller, stats[caller][4], stats, above | {function})
        for part, share in of_caller.items():
            shares[part] = shares.get(part, 0.0) + share * own / total
    return shares


def _part_of(function: Function) -> str | None:
    path, _, name = function
    path = path.rpartition("site-packages/")[2]  # a folder above the repository may be called rl_coach too
    # the profiler does not see compiled code: on JAX, its time is part of the function that calls it
    if "TFE_Py_Execute" in name or (path.endswith("jax_components/learner.py") and name == "call"):
        return COMPUTE
    return next((part for fragment, part in _FILES if fragment in path), None)
