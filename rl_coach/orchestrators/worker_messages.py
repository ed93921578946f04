"""The messages between workers that share weights and their parent process, through a pipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from rl_coach.runs.progress import Status


# Each message calls a method of its receiver, so mypy finds a receiver that lacks a method. A chain of isinstance would
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
    """Message from a worker: its graph has been created.

    :param num_bytes: the memory in bytes that the shared networks need
    :param filters: the states of the agent's filters, by the agent's attribute
    :param minutes: minutes of the run so far, including the time before a resume
    """

    num_bytes: int
    filters: dict[str, Any]
    minutes: float

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.is_built(worker, self)


@dataclass(frozen=True)
class Attached:
    """Message from a worker: it uses the shared networks. If it is the first worker, the shared memory contains its
    weights."""

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.is_attached(worker)


@dataclass(frozen=True)
class Line:
    """Message from a worker: a line for the screen; see ``ScreenLogger.print_forwarded``."""

    text: str
    style: str | None
    prefix: str

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.print_line(worker, self)


@dataclass(frozen=True)
class Report:
    """Message from a worker: its progress.

    :param status: the worker's status
    :param rewards: the total reward of the newest training episode, and the mean of the newest episodes; None before
        the end of the first episode
    :param evaluation: the mean reward of the last evaluation, and of the best evaluation; None before the first
    """

    status: Status
    rewards: tuple[float, float] | None = None
    evaluation: tuple[float, float] | None = None

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.take_report(worker, self)


@dataclass(frozen=True)
class Statistics:
    """Message from a worker to the parent and to the other workers: new statistics of the worker's filters.

    :param filters: the statistics since the last message, by the agent's attribute
    """

    filters: dict[str, Any]

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.relay(worker, self)

    def tell(self, listener: Listener) -> None:
        listener.take_statistics(self)


@dataclass(frozen=True)
class Ended:
    """Message from a worker: it has finished its work, or was stopped.

    :param reason: the reason why all workers must stop, such as a target reward that was reached; None if the other
        workers continue
    """

    reason: str | None = None

    def deliver(self, supervisor: Supervisor, worker: int) -> None:
        supervisor.has_ended(worker, self)


@dataclass(frozen=True)
class Failed:
    """Message from a worker: it cannot continue.

    :param reason: the reason, in one line
    :param is_input_bad: True if the user's settings are wrong
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
    :param filters: the states of the first worker's filters, by the agent's attribute
    :param minutes: minutes of the run so far
    """

    path: str
    filters: dict[str, Any]
    minutes: float

    def tell(self, listener: Listener) -> None:
        listener.take_memory(self)


@dataclass(frozen=True)
class Stop:
    """Message to a worker: end after this step.

    :param has_finished: True if the run has reached its goal or has failed; False if the user stops the run
    """

    has_finished: bool

    def tell(self, listener: Listener) -> None:
        listener.end(self)
