"""A connection to Redis. It reports errors in one line, and counts how often it was connected."""

from __future__ import annotations

import time
from typing import Any

from rl_coach.installation import missing_package
from rl_coach.memories.backend.redis_url import place_of
from rl_coach.utilities.errors import CoachError, reason_of

_SECONDS_BETWEEN_TRIES = 0.2
SECONDS_FOR_AN_ANSWER = 10.0


def import_redis() -> Any:
    """Import the package ``redis``. :raises CoachError: if it is not installed"""
    try:
        import redis
    except ModuleNotFoundError as error:
        raise CoachError(f"distributed training: {missing_package(error)}") from error
    return redis


class Connection:
    """A connection to one Redis server. It is connected again if it breaks.

    No command is repeated automatically. After an error, the caller must expect that the command was executed, and that
    earlier data is lost.

    :param url: an address in one of the forms of ``redis_url``, without a password
    :param password: the password; None for no password

    :ivar client: the client of the package ``redis``
    :ivar times_connected: number of connections made so far
    :ivar errors: the exceptions that mean that Redis cannot be used now. They include errors in an answer (OOM,
        READONLY, NOAUTH, WRONGTYPE): such errors may be temporary, and the command may or may not have been executed
    """

    def __init__(self, url: str, password: str | None):
        redis = import_redis()
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self.times_connected = 0
        self._refused = "to work without a password" if password is None else "the password"
        self.errors = (redis.RedisError, OSError)
        self.refusals = (redis.AuthenticationError, redis.exceptions.NoPermissionError)
        self.response_error = redis.ResponseError
        self.place = place_of(url)
        # Routers drop idle TCP connections; a Unix socket has no router.
        of_network = {} if url.startswith("unix://") else {"socket_keepalive": True}
        # One connection and no retries: only the caller knows if a command may be sent twice.
        try:
            self.client = redis.Redis.from_url(
                url, password=password, protocol=2, socket_timeout=SECONDS_FOR_AN_ANSWER, socket_connect_timeout=2.0,
                retry=Retry(NoBackoff(), 0), redis_connect_func=self._on_connect, max_connections=1,
                health_check_interval=0, **of_network,
            )  # fmt: skip
        except ValueError as error:
            raise CoachError(f"redis_url '{url}': {error}") from error

    def _on_connect(self, connection: Any) -> None:
        connection.on_connect()
        self.times_connected += 1

    def check(self, seconds: float) -> None:
        """Wait for the first answer, and check that Redis does not delete data when its memory is full.

        :param seconds: the time to wait
        :raises CoachError: if Redis does not answer in time, refuses the password, or may evict (delete) unread data
        """
        info = self._first_answer(time.monotonic() + seconds)
        policy = str(info.get("maxmemory_policy", "noeviction"))
        if policy != "noeviction":
            raise CoachError(
                f"Redis at {self.place} evicts keys ({policy}): it would delete unread experience; set "
                f"maxmemory-policy noeviction"
            )

    def _first_answer(self, deadline: float) -> dict[str, Any]:
        while True:
            try:
                return self.client.info("memory")
            except self.refusals as error:
                raise CoachError(f"Redis at {self.place} refuses {self._refused}: {reason_of(error)}") from error
            except self.response_error as error:  # the error LOADING is of another class: Redis is starting, so wait
                raise CoachError(f"Redis at {self.place}: {error}") from error
            except self.errors as error:
                if time.monotonic() + _SECONDS_BETWEEN_TRIES > deadline:
                    raise CoachError(f"no Redis at {self.place}: {reason_of(error)}") from error
                time.sleep(_SECONDS_BETWEEN_TRIES)

    def close(self) -> None:
        """Close the connection."""
        self.client.close()


def of_agent(name: str, agent: str) -> str:
    """The name of a key or document of one agent. :param agent: the agent's name; empty if the run has one agent"""
    return f"{name}:{agent}" if agent else name


class Keys:
    """Names of a run's keys in Redis. The braces in the names keep all keys on one node of a Redis cluster.

    :param run: the run's id
    :param agent: the name of the agent; empty if the run has one agent
    """

    GROUP = "trainer"

    def __init__(self, run: str, agent: str = ""):
        prefix = f"coach:{{{run}}}"
        self.prefix = prefix
        self.experience = of_agent(f"{prefix}:experience", agent)
        self.state = of_agent(f"{prefix}:state", agent)
        self.taken = of_agent(f"{prefix}:taken", agent)

    def document(self, name: str) -> str:
        """The key of a document, such as ``'policy'`` or ``'blueprint'``."""
        return f"{self.prefix}:{name}"

    def worker(self, name: str) -> str:
        """The key of a worker's report."""
        return f"{self.prefix}:worker:{name}"
