"""The lines at a run's end: what came of it, and what to do next."""

from __future__ import annotations

from rl_coach.installation import is_installed
from rl_coach.logger import screen
from rl_coach.runs.progress import Progress, Status, duration
from rl_coach.utils import program


def print_summary(status: Status, progress: Progress, experiment_path: str, playback_hint: str | None) -> None:
    """Say what came of a run.

    :param status: where the run stands
    :param progress: what it has shown
    :param experiment_path: the directory that it wrote to
    :param playback_hint: how the trained agent can be played back; None if it cannot be
    """
    if progress.last_evaluation is not None:
        best = f" (best {progress.best_evaluation:.5g})" if progress.best_evaluation is not None else ""
        screen.success(f"evaluation reward {progress.last_evaluation:.5g}{best}")
    screen.print(
        f"{status.episodes:,} episodes, {status.steps:,} steps, {status.updates:,} updates "
        f"in {duration(progress.seconds)}"
    )
    screen.print(f"experiment: {experiment_path}")
    if is_installed("panel"):
        screen.print(f"look at it: {program('dashboard')} --experiment_dir {experiment_path}")
    if playback_hint:
        screen.print(f"play it back: {playback_hint}")
