"""Event files of TensorBoard."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import Any, Iterable, Mapping

from rl_coach.installation import pip_install
from rl_coach.utilities.errors import CoachError

_SECONDS_BETWEEN_FLUSHES = 10.0


class EventFile:
    """An event file that the caller's thread writes. The writer of tensorboardX uses another thread. If that thread
    fails on a full disk, the run waits for ever.

    :param directory: the directory of the file; it is created if it does not exist
    :raises CoachError: if tensorboardX is not installed
    :raises OSError: if the file cannot be written
    """

    def __init__(self, directory: str):
        check_tensorboardx()
        from tensorboardX.record_writer import RecordWriter

        os.makedirs(directory, exist_ok=True)
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}"
        self._writer: Any = RecordWriter(os.path.join(directory, name))
        self._flushed = time.monotonic()
        self._write(file_version="brain.Event:2")

    def add_hyper_parameters(self, settings: Mapping[str, Any], metrics: Iterable[str]) -> None:
        """Write the settings of a run. :param metrics: names of the signals for the comparison of runs"""
        from tensorboardX.summary import hparams

        for summary in hparams(dict(settings), dict.fromkeys(metrics, 0)):
            self._write(summary=summary)

    def add(self, values: Mapping[str, float], step: int) -> None:
        """Write the values of a step, by name."""
        from tensorboardX.proto.summary_pb2 import Summary
        from tensorboardX.summary import scalar

        self._write(step=step, summary=Summary(value=[scalar(*one).value[0] for one in values.items()]))
        if time.monotonic() - self._flushed > _SECONDS_BETWEEN_FLUSHES:
            self._flushed = time.monotonic()
            self._writer.flush()

    def close(self) -> None:
        """Write pending events and close the file."""
        self._writer.close()

    def abandon(self) -> None:
        """Close the file without an error. Events that cannot be written are lost."""
        with contextlib.suppress(OSError):
            self._writer.close()

    def _write(self, **content: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._writer.write(Event(wall_time=time.time(), **content).SerializeToString())


def check_tensorboardx() -> None:
    """Check that TensorBoard files can be written. :raises CoachError: if tensorboardX is not installed"""
    try:
        import tensorboardX  # noqa: F401
    except ImportError:
        raise CoachError(f"TensorBoard files need tensorboardX: {pip_install('tensorboardX')}") from None
