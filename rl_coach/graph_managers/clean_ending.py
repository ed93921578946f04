"""The end of a run: save the training, and print the reason for the end."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Callable, Iterator, NoReturn

from rl_coach.logger import screen
from rl_coach.runs.progress import Progress
from rl_coach.runs.status import FINISHED, RUNNING, RunStatus
from rl_coach.utilities.stop_signals import BudgetOver, StopSignals
from rl_coach.utils import CallbackError, CheckpointError, LostPartError, TrainingError

_PAUSES_BETWEEN_TRIES = (0.5, 2.0)  # seconds, before the last checkpoint of a run is written elsewhere


@dataclass(frozen=True)
class LastCheckpoint:
    """Writes the last checkpoint of a run.

    :param write: writes a checkpoint, and returns its path, or None if the checkpoint could not be written; called with
        ``failed=True`` if training has failed
    :param write_elsewhere: writes a checkpoint to another place, and raises a CheckpointError that names the place
    :param print_summary: prints the results of the run so far
    :param resume_hint: the command that continues an interrupted run; None if there is no such command
    """

    write: Callable[..., str | None]
    write_elsewhere: Callable[[], NoReturn]
    resume_hint: str | None = None
    print_summary: Callable[[], None] = lambda: None

    def save(self) -> str:
        """Save the last checkpoint of a run. If the checkpoint cannot be written, try again twice, then write it to
        another place.

        :return: the checkpoint's path
        :raises CheckpointError: if the checkpoint was written to another place, or could not be written
        """
        for pause in (0.0, *_PAUSES_BETWEEN_TRIES):
            time.sleep(pause)
            path = self.write()
            if path is not None:
                return path
        self.write_elsewhere()

    def save_after_interrupt(self, why: str = "interrupted") -> None:
        """Save the checkpoint, and print its path and the command that continues the run.

        :param why: the reason for the end of the run
        """
        try:
            path = self.save()
        except CheckpointError as error:
            screen.warning(f"{why}; {error}")
            return
        screen.warning(f"{why}; saved {path}")
        self.print_summary()
        if self.resume_hint:
            screen.print(f"continue with: {self.resume_hint}")

    def save_after_failure(self) -> None:
        """Save the state of a run after training has failed, for inspection."""
        try:
            self.write(failed=True)
        except Exception as error:
            # The cause of the failure may also prevent saving: a copy of the environment may have lost its process.
            # The user must read the first failure, so this second failure is only a warning.
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
    """A context for a run with a display. At its end, the context closes the display, calls ``leave``, saves a
    checkpoint if the run was interrupted or has failed, and writes the end to ``status.json``.

    :param progress: the display
    :param status: writes ``status.json``
    :param signals: receives Ctrl-C, SIGTERM and SIGHUP
    :param leave: called at the end in all cases; writes the pending signals
    :param checkpoint: None saves no checkpoint
    :param is_played: True if a person plays; then Ctrl-C is the normal end of the run
    """
    progress.start()
    status.set(RUNNING)
    try:
        try:
            with signals.listening():
                yield
        except (KeyboardInterrupt, SystemExit) as stop:
            progress.stop()
            # A second signal interrupts in the middle of a step. The state in memory is inconsistent then.
            if checkpoint is not None and signals.stopped_between_steps:
                why = "the time budget is over" if isinstance(stop, BudgetOver) else "interrupted"
                checkpoint.save_after_interrupt(why)
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
