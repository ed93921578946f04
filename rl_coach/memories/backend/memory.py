"""Base class of memory backends. A backend transports experience from the processes that act to the process that
learns.
"""

from __future__ import annotations

from typing import Any, Iterator, NoReturn


class MemoryBackendParameters:
    """Settings of a memory backend.

    :param store_type: the kind of backend, such as ``'redispubsub'``
    :param orchestrator_type: the orchestrator that starts the processes, such as ``'kubernetes'``
    :param run_type: the role of this process, such as ``'trainer'``
    :param deployed: True if the transport, such as Redis, is already running
    """

    def __init__(self, store_type: str, orchestrator_type: str, run_type: str, deployed: bool = False):
        self.store_type = store_type
        self.orchestrator_type = orchestrator_type
        self.run_type = run_type
        self.deployed = deployed


class MemoryBackend:
    """Base class of all memory backends. :param params: settings of the backend"""

    def __init__(self, params: MemoryBackendParameters):
        self.params = params

    def deploy(self) -> None:
        """Start the transport."""
        self._is_undefined("deploy")

    def get_endpoint(self) -> Any:
        """The address of the transport, for other processes."""
        self._is_undefined("get_endpoint")

    def undeploy(self) -> None:
        """Stop the transport."""
        self._is_undefined("undeploy")

    def sample(self, size: int) -> Any:
        """Sample a batch of ``size`` transitions."""
        self._is_undefined("sample")

    def store(self, obj: Any) -> None:
        """Send a transition or an episode."""
        self._is_undefined("store")

    def store_episode(self, obj: Any) -> None:
        """Send an episode."""
        self._is_undefined("store_episode")

    def fetch(self, num_steps: Any = 0) -> Iterator[Any]:
        """Receive the transitions of other processes, in the order of their arrival."""
        self._is_undefined("fetch")

    def _is_undefined(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not define {method}")
