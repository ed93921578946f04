"""Connection to Redis that reports errors in one line and counts how often it had to connect again."""

from __future__ import annotations

import time
from typing import Any

from rl_coach.installation import missing_package
from rl_coach.memories.backend.redis_url import place_of
from rl_coach.utilities.errors import CoachError, reason_of

_SECONDS_BETWEEN_TRIES = 0.2
SECONDS_FOR_AN_ANSWER = 10.0


def import_redis() -> Any:
    """The package ``redis``.

    :raises CoachError: if the package is not installed; the message contains the install command
    """
    try:
        import redis
    except ModuleNotFoundError as error:
        raise CoachError(f"distributed training: {missing_package(error)}") from error
    return redis


class Connection:
    """Connection to one Redis server. It connects again whenever the connection breaks.

    No command is repeated automatically: the caller must know that the command may have arrived, and that
    earlier data may be lost.

    :param url: an address in a form of ``redis_url``, without a password
    :param password: None connects without a password

    :ivar client: the client of the package ``redis``
    :ivar times_connected: number of connections made so far
    :ivar errors: the exceptions that mean that Redis cannot be used now. Errors in an answer (OOM, READONLY, NOAUTH,
        WRONGTYPE) belong to them: they may pass, and they do not show whether the command was executed.
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
        # Routers forget idle TCP connections; a Unix socket has no router.
        of_network = {} if url.startswith("unix://") else {"socket_keepalive": True}
        # One connection and no retries: the caller alone knows whether a command may be sent a second time.
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
        """Wait for the first answer, and check what Redis does when its memory is full.

        :param seconds: the time to wait
        :raises CoachError: if Redis does not answer in time, refuses the password, or evicts unread data
        """
        info = self._first_answer(time.monotonic() + seconds)
        policy = str(info.get("maxmemory_policy", "noeviction"))
        if policy != "noeviction":
            raise CoachError(
                f"Redis at {self.place} evicts keys ({policy}): it would delete experience that nobody has read; set "
                f"maxmemory-policy noeviction"
            )

    def _first_answer(self, deadline: float) -> dict[str, Any]:
        while True:
            try:
                return self.client.info("memory")
            except self.refusals as error:
                raise CoachError(f"Redis at {self.place} refuses {self._refused}: {reason_of(error)}") from error
            except self.response_error as error:  # LOADING is another class: Redis starts, so wait for it
                raise CoachError(f"Redis at {self.place}: {error}") from error
            except self.errors as error:
                if time.monotonic() + _SECONDS_BETWEEN_TRIES > deadline:
                    raise CoachError(f"no Redis at {self.place}: {reason_of(error)}") from error
                time.sleep(_SECONDS_BETWEEN_TRIES)

    def close(self) -> None:
        """Close the connection."""
        self.client.close()


def of_agent(name: str, agent: str) -> str:
    """The name of an agent's key or document. :param agent: empty if the run has one agent"""
    return f"{name}:{agent}" if agent else name


class Keys:
    """Names of a run's keys in Redis. The braces keep all of them on one node of a Redis cluster.

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
        """Key of a document, such as ``'policy'`` or ``'blueprint'``."""
        return f"{self.prefix}:{name}"

    def worker(self, name: str) -> str:
        """Key of a worker's report."""
        return f"{self.prefix}:worker:{name}"
