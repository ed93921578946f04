"""The run order: one JSON file with the settings of a distributed run, which the trainer and all workers read.

An orchestrator starts only two programs: ``python -m rl_coach.training_worker --order FILE`` and
``python -m rl_coach.rollout_worker --order FILE --name NAME``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import signal
import uuid
from dataclasses import dataclass, field
from typing import Any

from rl_coach.utilities import files
from rl_coach.utils import CoachError

REDIS, NFS, S3 = "redis", "nfs", "s3"
DATA_STORES = (REDIS, NFS, S3)


@dataclass(frozen=True)
class DataStoreOrder:
    """The data store of the trainer's policies.

    :param kind: ``'redis'`` (the Redis of the run), ``'nfs'`` (a directory that all processes share) or ``'s3'``
    :param settings: parameters of the store by name: ``checkpoint_dir`` for nfs; ``end_point``, ``bucket_name``,
        ``creds_file``, ``prefix``, ``expt_dir`` and ``checkpoint_dir`` for s3; empty for redis
    """

    kind: str = REDIS
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """Limits of a distributed run. All times are in seconds.

    :param window: the largest number of chunks that a worker has sent and the trainer has not acknowledged. None is 1
        if workers wait for each new policy (SYNC), and 4 otherwise
    :param chunk_rows: the largest number of transitions in a chunk; None for a number that suits the size of the
        observations. Workers × window × chunk_rows is the largest number of transitions in Redis. This product also
        limits how old the policies are that played the trainer's transitions
    :param chunk_seconds: time after which a chunk is sent even if it is not full
    :param publish_seconds: the shortest time between two policies (ASYNC)
    :param report_seconds: time between two reports of a worker; a report expires after ten times this time
    :param connect_seconds: the longest time to wait for Redis at the start
    :param silence_seconds: a trainer or worker gives up after this time without Redis or without a sign of the other
        side; the trainer also if it cannot publish a policy
    """

    window: int | None = None
    chunk_rows: int | None = None
    chunk_seconds: float = 0.1
    publish_seconds: float = 0.05
    report_seconds: float = 1.0
    connect_seconds: float = 8.0
    silence_seconds: float = 600.0


@dataclass(frozen=True)
class RunOrder:
    """The settings of a distributed run, for trainer and workers.

    :param run: the run's id, which is part of each key in Redis and of each message
    :param arguments: the flags of ``coach`` that define the graph: preset, level, ``-cp``, framework, seed, checkpoints
    :param redis_url: ``redis://``, ``rediss://`` or ``unix://``, without a password
    :param redis_password_file: a file that contains only the password; None without a password
    :param num_workers: number of rollout workers that are started
    :param experiment_path: the trainer's experiment directory
    :param data_store: the store of policies
    :param resume: True if the trainer continues the run in ``experiment_path``
    :param limits: limits of sizes and times
    :param command_line: the command that started the run, for its record
    :param config_path: the file of ``-dcp``, for the record
    """

    run: str
    arguments: list[str]
    redis_url: str
    num_workers: int
    experiment_path: str
    # A file, not the password itself: an order can be read in a ConfigMap and in error messages.
    redis_password_file: str | None = None
    data_store: DataStoreOrder = DataStoreOrder()
    resume: bool = False
    limits: Limits = Limits()
    command_line: list[str] = field(default_factory=list)
    config_path: str | None = None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the order to a file. The file is replaced atomically, so that no program reads an incomplete file."""
        files.write_text(pathlib.Path(path), self.as_json(), synced=False)

    def as_json(self) -> str:
        """The order as the text of its file."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> RunOrder:
        """Read an order from its file.

        :raises CoachError: if the file cannot be read, or is not an order
        """
        try:
            plain = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
            store, limits = DataStoreOrder(**plain.pop("data_store")), Limits(**plain.pop("limits"))
            order = cls(**plain, data_store=store, limits=limits)
        except OSError as error:
            raise CoachError(f"the run's order '{path}' cannot be read: {error.strerror}") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CoachError(f"'{path}' is not the order of a distributed run: {error}") from error
        if order.data_store.kind not in DATA_STORES:
            raise CoachError(f"'{path}': no data store '{order.data_store.kind}'; allowed are {', '.join(DATA_STORES)}")
        return order

    def password(self) -> str | None:
        """The password of Redis; None without a password.

        :raises CoachError: if the password file cannot be read
        """
        if self.redis_password_file is None:
            return None
        try:
            # Remove only the new line that editors write at the end. Spaces may be a part of the password.
            return pathlib.Path(self.redis_password_file).read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise CoachError(f"cannot read the password in '{self.redis_password_file}': {error.strerror}") from error


def new_run_id() -> str:
    """A new random id for a run."""
    return uuid.uuid4().hex[:12]


_PACKAGE = __name__.partition(".")[0]
TRAINING_PROGRAM, ROLLOUT_PROGRAM = f"{_PACKAGE}.training_worker", f"{_PACKAGE}.rollout_worker"
"""The modules that run as programs: ``python -m MODULE --order FILE``."""
ORPHANED = signal.SIGUSR1
"""The signal that a process gets when its orchestrator dies. It is not SIGTERM, because a process may get the signal
several times, and a second SIGTERM would end the process without a checkpoint."""
