"""The end of a run, whatever ends it: nothing that it has is lost, and how it ended is said."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Callable, Iterator, NoReturn

from rl_coach.logger import screen
from rl_coach.runs.progress import Progress
from rl_coach.runs.status import FINISHED, RUNNING, RunStatus
from rl_coach.utilities.stop_signals import StopSignals
from rl_coach.utils import CallbackError, CheckpointError, LostPartError, TrainingError

_PAUSES_BETWEEN_TRIES = (0.5, 2.0)  # seconds, before the last checkpoint of a run is written elsewhere


@dataclass(frozen=True)
class LastCheckpoint:
    """The checkpoint that a run leaves when it ends.

    :param write: writes one, and returns its path, None if it could not; called with ``failed=True`` where training
        has failed
    :param write_elsewhere: writes one where there is room, and raises CheckpointError, which says where it is
    :param print_summary: prints what came of the run so far
    :param resume_hint: how the user can go on with an interrupted run; None if nobody knows
    """

    write: Callable[..., str | None]
    write_elsewhere: Callable[[], NoReturn]
    resume_hint: str | None = None
    print_summary: Callable[[], None] = lambda: None

    def save(self) -> str:
        """Save the last checkpoint of a run: try again where it cannot be written, and at last write it elsewhere.

        :return: its path
        :raises CheckpointError: it was written elsewhere, or nowhere
        """
        for pause in (0.0, *_PAUSES_BETWEEN_TRIES):
            time.sleep(pause)
            path = self.write()
            if path is not None:
                return path
        self.write_elsewhere()

    def save_after_interrupt(self) -> None:
        """Save it, and tell the user where it is and how to go on."""
        try:
            path = self.save()
        except CheckpointError as error:
            screen.warning(f"interrupted; {error}")
            return
        screen.warning(f"interrupted; saved {path}")
        self.print_summary()
        if self.resume_hint:
            screen.print(f"go on with it: {self.resume_hint}")

    def save_after_failure(self) -> None:
        """Save the state of a run whose training has failed, for a look at it."""
        try:
            self.write(failed=True)
        except Exception as error:
            # Whatever failed may be unable to give its state, such as a copy of the environment without its process.
            # The first failure is the one that the user must read.
            screen.warning(f"the state of the failed run cannot be saved: {type(error).__name__}: {error}")


@contextlib.contextmanager
def ending_cleanly(
    progress: Progress,
    status: RunStatus,
    signals: StopSignals,
    leave: Callable[[], None],
    checkpoint: LastCheckpoint | None = None,
    is_played: bool = False,
) -> Iterator[None]:
    """Run with a display, and end cleanly: the display closed, signals written, a checkpoint saved where the run was
    interrupted or has failed, and its end in ``status.json``.

    :param progress: the display
    :param status: writes ``status.json``
    :param signals: hears Ctrl-C, SIGTERM and SIGHUP
    :param leave: called at the end, whatever ended the run
    :param checkpoint: None saves none
    :param is_played: a person acts, who leaves with Ctrl-C
    """
    progress.start()
    status.set(RUNNING)
    try:
        try:
            with signals.listening():
                yield
        except (KeyboardInterrupt, SystemExit) as stop:
            progress.stop()
            # a second signal comes in the middle of a step: what is in memory then is not worth keeping
            if checkpoint is not None and signals.stopped_between_steps:
                checkpoint.save_after_interrupt()
            if not (is_played and isinstance(stop, KeyboardInterrupt)):
                raise
        except (LostPartError, CallbackError):
            progress.stop()
            if checkpoint is not None:
                checkpoint.save_after_interrupt()
            raise
        except TrainingError as error:
            if checkpoint is not None and not isinstance(error, CheckpointError):
                progress.stop()
                checkpoint.save_after_failure()
            raise
        finally:
            progress.stop()
            leave()
    except BaseException as error:
        status.set_by(error)
        raise
    status.set(FINISHED)
