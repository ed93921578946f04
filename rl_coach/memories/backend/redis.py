"""A memory backend on Redis streams, with the names of Coach 1.0.1, for programs that send and fetch single
transitions.

Coach's own trainer and workers use the module ``streams`` directly.
"""

from __future__ import annotations

import time
import uuid
from typing import Any, Iterator

from rl_coach.core_types import EnvironmentEpisodes, Episode, StepMethod, Transition
from rl_coach.memories.backend.connection import Connection
from rl_coach.memories.backend.ledger import Ledger
from rl_coach.memories.backend.memory import MemoryBackend, MemoryBackendParameters
from rl_coach.memories.backend.streams import TrainerLink, WorkerLink
from rl_coach.memories.backend.wire import Chunk, EncodedChunk
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.outgoing import OutgoingMemory
from rl_coach.utils import CoachError

_ROWS = 32
_WINDOW = 4
_PAUSE = 0.005
_SECONDS_TO_CONNECT = 8.0


class RedisPubSubMemoryBackendParameters(MemoryBackendParameters):
    """Settings of a Redis stream. The name comes from Coach 1.0.1, which used publish and subscribe.

    :param redis_address: the host of Redis; empty for this machine
    :param redis_port: the port of Redis
    :param channel: the run's id; None makes a new id
    :param orchestrator_params: settings of the orchestrator
    :param run_type: the role of this process
    :param orchestrator_type: the orchestrator that starts the processes
    :param deployed: True if Redis is already running
    """

    def __init__(
        self,
        redis_address: str = "",
        redis_port: int = 6379,
        channel: str | None = None,
        orchestrator_params: dict[str, Any] | None = None,
        run_type: str = "trainer",
        orchestrator_type: str = "kubernetes",
        deployed: bool = False,
    ):
        super().__init__("redispubsub", orchestrator_type, run_type, deployed)
        self.redis_address = redis_address
        self.redis_port = redis_port
        self.channel = channel or f"channel-{uuid.uuid4()}"
        self.orchestrator_params = {} if orchestrator_params is None else orchestrator_params

    def connect(self) -> Connection:
        """Connect to Redis.

        :raises CoachError: if Redis does not answer within 8 seconds, or refuses the password
        """
        password = self.orchestrator_params.get("redis_password")
        connection = Connection(f"redis://{self.redis_address or 'localhost'}:{self.redis_port}/0", password)
        connection.check(_SECONDS_TO_CONNECT)
        return connection


class RedisPubSubBackend(MemoryBackend):
    """A backend that sends transitions in chunks of 32, and fetches the transitions of other processes."""

    params: RedisPubSubMemoryBackendParameters

    def __init__(self, params: RedisPubSubMemoryBackendParameters):
        super().__init__(params)
        self._memory = OutgoingMemory((MemoryGranularity.Episodes, 0), {"stores_episodes": False})
        self._link: WorkerLink | None = None
        self._subscription: RedisSub | None = None

    def deploy(self) -> None:
        """Wait until Redis answers. The orchestrator starts Redis.

        :raises CoachError: if Redis does not answer within 8 seconds, or refuses the password
        """
        self.params.connect().close()
        self.params.deployed = True

    def deploy_kubernetes(self) -> None:
        """Wait until Redis answers, as ``deploy``. The Kubernetes orchestrator creates Redis together with the run."""
        self.deploy()

    def undeploy(self) -> None:
        """Send all transitions that have not been sent yet."""
        if self._link is not None:
            self.flush()
        self.params.deployed = False

    def get_endpoint(self) -> dict[str, Any]:
        """The host and port of Redis."""
        return {"redis_address": self.params.redis_address, "redis_port": self.params.redis_port}

    def store(self, obj: Transition | Episode) -> None:
        """Add a transition or an episode to the next chunk. A chunk is sent when it has 32 transitions."""
        if isinstance(obj, Episode):
            self.store_episode(obj)
            return
        self._memory.store(obj)
        if self._memory.length() >= _ROWS:
            self.flush()

    def store_episode(self, obj: Episode) -> None:
        """Add the transitions of an episode to the next chunks."""
        for transition in obj.transitions:
            self.store(transition)

    def flush(self) -> None:
        """Send all waiting transitions as one chunk. If four chunks are unacknowledged, first wait for a receipt.

        After this method returns, Redis has the transitions. Until a receipt arrives, this object keeps a copy. If
        Redis loses its data before, the next call sends the transitions again.

        :raises CoachError: if Redis has not answered for 8 seconds or more. The transitions are kept for the next call
        """
        if self._link is None:
            connection = self.params.connect()
            self._link = WorkerLink(connection, self.params.channel, "worker", uuid.uuid4().hex[:8], _WINDOW)
        link, rows = self._link, self._memory.length()
        if rows:
            while link.outbox.is_full:
                self._exchange(link)
                time.sleep(_PAUSE)
            columns, number = self._memory.take()[0], link.outbox.next_number
            # The second number, the oldest unacknowledged chunk, is replaced each time the chunk is sent.
            link.outbox.add(
                EncodedChunk(Chunk(self.params.channel, link.sender, number, number, (0, 0), 0, rows, [], columns))
            )
        self._exchange(link)

    def _exchange(self, link: WorkerLink) -> None:
        """Send waiting chunks. Repeat this until Redis answers."""
        deadline = time.monotonic() + _SECONDS_TO_CONNECT
        link.exchange()
        while link.trouble:
            if time.monotonic() > deadline:
                raise CoachError(f"no Redis at {link.place}: {link.trouble}")
            time.sleep(_PAUSE)
            link.exchange()

    def sample(self, size: int) -> Any:
        """Refuse to sample. :raises CoachError: always, because a backend only transports transitions"""
        raise CoachError("a memory backend only transports transitions: sample from the trainer's memory")

    def subscribe(self, agent: Any) -> RedisSub:
        """Make the receiver of the stream. :param agent: ignored, because a run has one trainer"""
        params = self.params
        if self._subscription is None:
            self._subscription = RedisSub(params.redis_address, params.redis_port, params.channel, params.connect())
        return self._subscription

    def fetch(self, num_consecutive_playing_steps: Any = None) -> Iterator[Transition]:
        """Wait for transitions and return them in the order of their arrival; see ``RedisSub.run``."""
        return self.subscribe(None).run(num_consecutive_playing_steps)


class RedisSub:
    """The receiver of a Redis stream.

    :param redis_address: host, port and channel are the same as in ``RedisPubSubMemoryBackendParameters``
    :param connection: the connection to use; None for a new connection
    """

    def __init__(
        self,
        redis_address: str = "localhost",
        redis_port: int = 6379,
        channel: str = "PubsubChannel",
        connection: Connection | None = None,
    ):
        connection = connection or RedisPubSubMemoryBackendParameters(redis_address, redis_port, channel).connect()
        self._link = TrainerLink(connection, channel, Ledger())
        # A larger incarnation makes workers send all chunks again: this new ledger has accepted none.
        self._link.say(incarnation=self._link.last_incarnation() + 1)

    def run(self, num_consecutive_playing_steps: Any) -> Iterator[Transition]:
        """Wait for the transitions of a number of steps or of complete episodes. Return them in order of arrival.

        :param num_consecutive_playing_steps: a ``StepMethod`` with the number, or a number of steps
        """
        wanted, link, done = num_consecutive_playing_steps, self._link, 0
        count = wanted.num_steps if isinstance(wanted, StepMethod) else int(wanted or 1)
        while done < count:
            found = link.next()
            if found is None:
                if not link.push():
                    time.sleep(_PAUSE)
                elif not link.has_entries:
                    link.wait()
                continue
            # Acknowledged before the caller gets it, so that the chunk is not delivered twice if the caller stops
            # iterating.
            link.acknowledge(*found, is_stored=True)
            link.push(reads=False)
            for transition in found[1].columns or ():
                done += bool(transition.game_over) if isinstance(wanted, EnvironmentEpisodes) else 1
                yield transition
