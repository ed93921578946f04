"""The backend with the names of Coach 1.0.1, on a real Redis that fails while a chunk is sent."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from rl_coach.memories.backend import redis as backends
from rl_coach.memories.backend.redis import RedisPubSubBackend, RedisPubSubMemoryBackendParameters
from rl_coach.utils import CoachError
from tests.memories.transitions import Steps

STEPS = Steps().episode(2)


@pytest.fixture
def backend(redis):
    """A backend that has sent one chunk already."""
    found = RedisPubSubBackend(
        RedisPubSubMemoryBackendParameters("127.0.0.1", redis.port, "run", {"redis_password": redis.password})
    )
    found.store(STEPS[0])
    found.flush()
    return found


def received(backend, count):
    return [one.reward for one in backend.fetch(count)]


def test_a_chunk_arrives_although_redis_fails_at_that_moment(backend, redis, monkeypatch):
    def sleep(seconds):
        if redis.process.poll() is not None:
            redis.start()
        time.sleep(seconds)

    monkeypatch.setattr(backends, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    backend.store(STEPS[1])
    redis.stop()
    backend.flush()
    assert received(backend, 2) == [0.0, 0.25]


def test_a_redis_that_stays_away_is_an_error_and_the_transitions_are_kept(backend, redis, monkeypatch):
    backend.store(STEPS[1])
    redis.stop()
    monkeypatch.setattr(backends, "_SECONDS_TO_CONNECT", 0.0)
    for _ in range(2):
        with pytest.raises(CoachError, match=f"no Redis at 127.0.0.1:{redis.port}: .*refused"):
            backend.flush()
    monkeypatch.undo()
    redis.start()
    backend.flush()
    assert received(backend, 2) == [0.0, 0.25]
