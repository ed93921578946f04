"""Functions that make a memory backend from the name of its kind."""

from __future__ import annotations

import json as json_format
from typing import Any

from rl_coach.memories.backend.memory import MemoryBackend, MemoryBackendParameters
from rl_coach.memories.backend.redis import RedisPubSubBackend, RedisPubSubMemoryBackendParameters
from rl_coach.utils import CoachError

_KINDS = ("redis", "redispubsub")


def get_memory_backend(params: MemoryBackendParameters) -> MemoryBackend:
    """Make the backend of the kind ``params.store_type``. :raises CoachError: if it does not exist"""
    if not isinstance(params, RedisPubSubMemoryBackendParameters):
        raise CoachError(f"no memory backend '{params.store_type}'; allowed are {', '.join(_KINDS)}")
    return RedisPubSubBackend(params)


def construct_memory_params(json: dict[str, Any] | str) -> MemoryBackendParameters:
    """Make the parameters of a backend from a JSON object or its text. The keys are ``store_type``, the kind of
    backend, and the names of the parameters.

    :raises CoachError: if the kind does not exist
    """
    settings = dict(json_format.loads(json) if isinstance(json, str) else json)
    kind = settings.pop("store_type", "redispubsub")
    if kind not in _KINDS:
        raise CoachError(f"no memory backend '{kind}'; allowed are {', '.join(_KINDS)}")
    return RedisPubSubMemoryBackendParameters(**settings)
