"""The end of a run, whatever ends it: nothing that it has is lost, and how it ended is said."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Iterator

from rl_coach.logger import screen
from rl_coach.runs.status import FINISHED, RUNNING
from rl_coach.utils import CheckpointError, TrainingError

if TYPE_CHECKING:
    from rl_coach.graph_managers.graph_manager import GraphManager

_PAUSES_BETWEEN_TRIES = (0.5, 2.0)  # seconds, before the last checkpoint of a run is written elsewhere


class CleanEnding:
    """Ends a run cleanly: the display closed, signals written, a checkpoint saved, and its end in ``status.json``.

    :param graph: the graph that runs
    """

    def __init__(self, graph: GraphManager):
        self._graph = graph

    @contextlib.contextmanager
    def running(self, saves_checkpoints: bool, is_played: bool) -> Iterator[None]:
        """Be running.

        :param saves_checkpoints: keep the state of a run that is interrupted, or that fails
        :param is_played: a person acts, who leaves with Ctrl-C
        """
        graph = self._graph
        graph.checkpoints.schedule.restart()
        graph.progress.start()
        graph.run_status.set(RUNNING)
        try:
            with self._whatever_happens(saves_checkpoints, is_played):
                yield
        except BaseException as error:
            graph.run_status.set_by(error)
            raise
        graph.run_status.set(FINISHED)

    @contextlib.contextmanager
    def _whatever_happens(self, saves_checkpoints: bool, is_played: bool) -> Iterator[None]:
        graph = self._graph
        try:
            with graph.stop_signals.listening(announces=not is_played):
                yield
        except (KeyboardInterrupt, SystemExit) as stop:
            # a second signal comes in the middle of a step: what lies in memory then is not worth keeping
            graph.progress.stop()
            if saves_checkpoints and graph.stop_signals.stopped_between_steps:
                self._save_after_interrupt()
            if not (is_played and isinstance(stop, KeyboardInterrupt)):
                raise
        except CheckpointError:
            raise
        except TrainingError:
            if saves_checkpoints:
                self._save_after_failure()
            raise
        finally:
            graph.improvement.clear_end()
            graph.progress.stop()
            graph.flush()

    def _save_after_interrupt(self) -> None:
        try:
            path = self.save_last()
        except CheckpointError as error:
            screen.warning(f"interrupted; {error}")
            return
        if path is not None:
            screen.warning(f"interrupted; saved {path}")
            if self._graph.resume_hint:
                screen.print(f"go on with it: {self._graph.resume_hint}")

    def save_last(self) -> str | None:
        """Save the last checkpoint of a run: try again where it cannot be written, and at last write it elsewhere.

        :return: its path; None if another worker writes checkpoints
        :raises CheckpointError: it lies elsewhere, or nowhere
        """
        graph = self._graph
        if not graph.writes_checkpoints:
            return None
        for pause in (0.0, *_PAUSES_BETWEEN_TRIES):
            time.sleep(pause)
            path = graph.save_checkpoint()
            if path is not None:
                return path
        graph.checkpoints.save_elsewhere(graph.get_state(), graph.progress.last_evaluation)

    def _save_after_failure(self) -> None:
        graph = self._graph
        try:
            graph.save_checkpoint(failed=True)
        except TrainingError as error:
            # what failed cannot even say its state, such as a copy of the environment whose process is gone
            graph.progress.stop()
            screen.warning(f"the state of the failed run cannot be saved: {error}")
