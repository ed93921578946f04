"""A run's own redis-server."""

from __future__ import annotations

import contextlib
import socket

import pytest

from rl_coach.memories.backend.connection import Connection
from rl_coach.orchestrators.embedded_redis import LOOPBACK, EmbeddedRedis
from rl_coach.utils import CoachError


@pytest.fixture
def redis(tmp_path):
    server = EmbeddedRedis(tmp_path)
    yield server
    server.stop()


def test_another_port_if_the_first_is_taken_before_the_start(redis):
    with socket.socket() as other:
        other.bind((LOOPBACK, redis.port))
        other.listen()
        redis.start()
        assert redis.port != other.getsockname()[1]
        with contextlib.closing(Connection(redis.url, redis.password)) as connection:
            assert connection.client.ping()


def test_the_same_port_after_a_restart(redis):
    redis.start()
    url = redis.url
    redis.stop()
    redis.start()
    assert redis.url == url
    with contextlib.closing(Connection(url, redis.password)) as connection:
        connection.check(60)


def test_a_server_that_cannot_start_is_an_error_with_its_last_words(redis, tmp_path):
    (tmp_path / "server").write_text("#!/bin/sh\necho no memory\n")
    (tmp_path / "server").chmod(0o755)
    redis._program = str(tmp_path / "server")
    with pytest.raises(CoachError, match="redis-server ended at once: no memory"):
        redis.start()
