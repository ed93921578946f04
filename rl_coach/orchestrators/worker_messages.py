"""The messages between asynchronous workers and their parent process, over a pipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from rl_coach.runs.progress import Status


# Each message calls its own method of the receiver: mypy finds a receiver that lacks one. A chain of isinstance would
# ignore an unknown message.
class Supervisor(Protocol):
    """The methods of the parent process that messages call."""

    def is_built(self, worker: int, message: Built) -> None: ...

    def is_attached(self, worker: int) -> None: ...

    def print_line(self, worker: int, message: Line) -> None: ...

    def take_report(self, worker: int, message: Report) -> None: ...

    def relay(self, worker: int, message: Statistics) -> None: ...

    def has_ended(self, worker: int, message: Ended) -> None: ...

    def has_failed(self, worker: int, message: Failed) -> None: ...


@dataclass(frozen=True)
class Built:
    """Message of a worker: its graph has been created.

    :param num_bytes: the memory that its shared networks need
    :param filters: the states of its filters, by the agent's attribute
    :param minutes: wall-clock time of its run so far, including the time before a resume
    """

    num_bytes: int
    filters: dict[str, Any]
    minutes: float

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.is_built(worker, self)


@dataclass(frozen=True)
class Attached:
    """The worker shares its networks; the first worker's are in the shared memory."""

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.is_attached(worker)


@dataclass(frozen=True)
class Line:
    """A line for the screen; see ``ScreenLogger.print_forwarded``."""

    text: str
    style: str | None
    prefix: str

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.print_line(worker, self)


@dataclass(frozen=True)
class Report:
    """The state of a worker.

    :param rewards: the newest training episode's total reward and the mean of the last ones; None before the first
    :param evaluation: the last evaluation's mean reward and the best; None before the first
    """

    status: Status
    rewards: tuple[float, float] | None = None
    evaluation: tuple[float, float] | None = None

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.take_report(worker, self)


@dataclass(frozen=True)
class Statistics:
    """Statistics that a worker's filters have gathered since the last message, to the parent and to other workers.

    :param filters: the statistics by the agent's attribute
    """

    filters: dict[str, Any]

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.relay(worker, self)

    def tell(self, listener: Listener) -> None:
        listener.take_statistics(self)


@dataclass(frozen=True)
class Ended:
    """Message of a worker: it has finished its work, or was stopped.

    :param reason: the reason for all workers to stop, such as a reward that is reached; None without a reason
    """

    reason: str | None = None

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.has_ended(worker, self)


@dataclass(frozen=True)
class Failed:
    """Message of a worker: it cannot continue.

    :param reason: the reason, in one line
    :param is_input_bad: the user's settings are wrong
    """

    reason: str
    is_input_bad: bool

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.has_failed(worker, self)


class Listener(Protocol):
    """The methods of a worker that messages call."""

    def take_memory(self, message: Attach) -> None: ...

    def take_statistics(self, message: Statistics) -> None: ...

    def end(self, message: Stop) -> None: ...


@dataclass(frozen=True)
class Attach:
    """Message to a worker: the shared memory is ready.

    :param path: the path of its file
    :param filters: the state of the first worker's filters, by the agent's attribute
    :param minutes: wall-clock time of the run so far
    """

    path: str
    filters: dict[str, Any]
    minutes: float

    def tell(self, listener: Listener) -> None:
        listener.take_memory(self)


@dataclass(frozen=True)
class Stop:
    """Message to a worker: end after this step.

    :param has_finished: the run has reached its goal; otherwise the user stops it
    """

    has_finished: bool

    def tell(self, listener: Listener) -> None:
        listener.end(self)
