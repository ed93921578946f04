"""A redis-server for a test."""

import pytest


@pytest.fixture
def redis(tmp_path):
    """A started server, which ends with the test."""
    # not above: conftest.py sets variables that Coach's modules read when they are imported
    from rl_coach.orchestrators.embedded_redis import EmbeddedRedis

    server = EmbeddedRedis(tmp_path)
    server.start()
    yield server
    server.stop()
