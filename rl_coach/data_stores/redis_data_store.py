"""A data store in the Redis server that also transports the run's experience."""

from __future__ import annotations

import uuid
from typing import Any

from rl_coach.data_stores.data_store import DataStore, DataStoreParameters
from rl_coach.memories.backend.connection import Connection, Keys
from rl_coach.memories.backend.streams import RunState
from rl_coach.utilities.errors import reason_of


class RedisDataStoreParameters(DataStoreParameters):
    """Settings of a store in Redis.

    :param ds_params: kind of store and orchestrator
    :param redis_address: the host of Redis; empty for this machine
    :param redis_port: the port of Redis
    :param redis_channel: the run's id, which is a part of all keys; None for a new id
    """

    def __init__(
        self,
        ds_params: DataStoreParameters,
        redis_address: str = "",
        redis_port: int = 6379,
        redis_channel: str | None = None,
    ):
        super().__init__(ds_params.store_type, ds_params.orchestrator_type, ds_params.orchestrator_params)
        self.redis_address = redis_address
        self.redis_port = redis_port
        self.redis_channel = redis_channel or f"data-store-channel-{uuid.uuid4()}"


class RedisDataStore(DataStore):
    """Stores documents in Redis. Each document has its own key.

    :param params: location of Redis
    :param connection: the connection to use; None opens a new one
    """

    params: RedisDataStoreParameters

    def __init__(self, params: RedisDataStoreParameters, connection: Connection | None = None):
        super().__init__(params)
        self._connection = connection
        self._keys = Keys(params.redis_channel)

    @property
    def connection(self) -> Connection:
        """The connection to Redis. It is opened when it is first used."""
        if self._connection is None:
            self._connection = Connection(
                f"redis://{self.params.redis_address or 'localhost'}:{self.params.redis_port}", None
            )
        return self._connection

    def deploy(self) -> bool:
        return True

    def get_info(self) -> Any:
        return self.params

    def undeploy(self) -> bool:
        """Delete the documents. :return: False if Redis cannot be reached"""
        try:
            self._ask("unlink", *map(self._keys.document, self.documents))
        except ConnectionError:
            return False
        return True

    def put(self, name: str, content: bytes) -> None:
        # SET is atomic: a worker reads the old document or the complete new document.
        self._ask("set", self._keys.document(name), content)

    def get(self, name: str) -> bytes | None:
        return self._ask("get", self._keys.document(name))

    def _ask(self, command: str, *arguments: Any) -> Any:
        """Redis' answer to a command. :raises ConnectionError: callers treat an OSError as a temporary failure"""
        try:
            return getattr(self.connection.client, command)(*arguments)
        except self.connection.errors as error:
            raise ConnectionError(reason_of(error)) from error

    def load_policy(  # type: ignore[override]
        self, graph_manager: Any, require_new_policy: bool = True, timeout: float = 0
    ) -> None:
        """Load the newest policy into a graph.

        :param require_new_policy: ignored, because Redis stores only the newest policy
        :param timeout: seconds to wait for a policy; 0 for no limit
        :raises CoachError: if no policy was stored within this time
        """
        # No limit is 0 in Coach 1.0.1, and a negative number in the base class.
        super().load_policy(graph_manager, timeout or -1)

    def end_of_policies(self) -> bool:
        """True if the trainer has ended the run.

        :raises OSError: if Redis cannot be reached; a later call may succeed
        """
        state = RunState.read(self._ask("get", self._keys.state))
        return state is not None and state.is_over

    def save_to_store(self) -> None:
        """Do nothing: ``put`` has already stored the policy."""

    def load_from_store(self) -> None:
        """Do nothing: ``get`` reads from the store."""
