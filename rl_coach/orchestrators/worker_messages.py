"""The messages between workers that share weights and their parent process, through a pipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rl_coach.runs.progress import Status


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


@dataclass(frozen=True)
class Attached:
    """Message from a worker: it uses the shared networks. If it is the first worker, the shared memory contains its
    weights."""


@dataclass(frozen=True)
class Line:
    """Message from a worker: a line for the screen; see ``ScreenLogger.print_forwarded``."""

    text: str
    style: str | None
    prefix: str


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


@dataclass(frozen=True)
class Statistics:
    """Message from a worker to the parent and to the other workers: new statistics of the worker's filters.

    :param filters: the statistics since the last message, by the agent's attribute
    """

    filters: dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """Message from a worker: it has finished its work, or was stopped.

    :param reason: the reason why all workers must stop, such as a success reward that was reached; None if the other
        workers continue
    """

    reason: str | None = None


@dataclass(frozen=True)
class Failed:
    """Message from a worker: it cannot continue.

    :param reason: the reason, in one line
    :param is_input_bad: True if the user's settings are wrong
    """

    reason: str
    is_input_bad: bool


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


@dataclass(frozen=True)
class Stop:
    """Message to a worker: end after this step.

    :param has_finished: True if the run has reached its goal or has failed; False if the user stops the run
    """

    has_finished: bool
