"""The lines at a run's end: its results, and the commands that show and play it."""

from __future__ import annotations

import datetime
import os
import pathlib
import shlex
from dataclasses import dataclass
from typing import Sequence

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TotalStepsCounter, TrainingSteps
from rl_coach.installation import is_installed, pip_install
from rl_coach.logger import TENSORBOARD_DIRECTORY, ScreenLogger, screen
from rl_coach.runs.evaluation import EvaluationStatistics
from rl_coach.runs.progress import Progress, duration
from rl_coach.runs.record import experiment_name
from rl_coach.utilities.system import program, shell_command, shown


@dataclass(frozen=True)
class Counts:
    """Episodes, steps and updates of a phase; epochs replace episodes and steps if the phase had epochs."""

    episodes: int
    steps: int
    updates: int
    epochs: int = 0

    @classmethod
    def of(cls, counter: TotalStepsCounter) -> Counts:
        """The counts of a phase's counter."""
        return cls(counter[EnvironmentEpisodes], counter[EnvironmentSteps], counter[TrainingSteps])

    def __str__(self) -> str:
        return f"{self.epochs:,} epochs" if self.epochs else f"{self.episodes:,} episodes, {self.steps:,} steps"


@dataclass(frozen=True)
class Summary:
    """Summary of a run that has ended.

    :param counted: counts of training, or of the evaluation if the run only evaluated
    :param heatup: counts of heatup, which the CSV includes
    :param evaluation: results of a run that only evaluated; None for a run that trained
    :param is_played: a person acted, and nothing was trained
    :param has_tensorboard: the run wrote events for TensorBoard
    :param playback_hint: the command that plays the trained agent; None for no command
    :param videos: the videos of the evaluation of a run that only evaluated
    """

    progress: Progress
    counted: Counts
    heatup: Counts
    evaluation: EvaluationStatistics | None
    is_played: bool
    experiment_path: str
    has_tensorboard: bool
    playback_hint: str | None
    videos: Sequence[pathlib.Path] = ()

    def print(self, only_counts: bool = False) -> None:
        """Print the summary.

        :param only_counts: print one line with the counts of episodes, steps and updates
        """
        if only_counts:
            screen.print(self._counted()[0])
            return
        progress = self.progress
        if self.evaluation is not None:
            screen.success(f"evaluation: {self.evaluation}")
        elif progress.last_evaluation is not None and progress.best_evaluation is not None:
            reward = f"evaluation reward {progress.last_evaluation:.5g}"
            if progress.steps_to_target is not None:
                screen.success(f"steps to the target: {progress.steps_to_target:,}")
                reward += " in new episodes"
            screen.success(f"{reward} (best {progress.best_evaluation:.5g})")
        for line in self._counted():
            screen.print(line)
        screen.announce(f"Results stored at: {self.experiment_path}")
        screen.announce(f"Total runtime: {datetime.timedelta(seconds=progress.seconds)}")
        print_what_can_be_done(self.experiment_path, self.has_tensorboard, self.playback_hint)

    def _counted(self) -> list[str]:
        """Lines of the counts: training, heatup, and their sum, which the CSV counts."""
        took = duration(self.progress.seconds)
        if self.evaluation is not None:
            return [f"evaluated {self.counted} in {took}", *(f"video: {shown(one)}" for one in self.videos)]
        if self.is_played:
            return [f"played {self.counted} in {took}"]
        lines = [f"trained {self.counted}, {self.counted.updates:,} updates in {took}"]
        if self.heatup.steps:
            episodes = self.counted.episodes + self.heatup.episodes
            steps = self.counted.steps + self.heatup.steps
            lines.append(f"heatup before training: {self.heatup}")
            if not self.counted.epochs:
                lines.append(f"the CSV counts both: {Counts(episodes, steps, 0)}")
        return lines


def print_what_can_be_done(experiment_path: str, has_tensorboard: bool, playback_hint: str | None) -> None:
    """Print the experiment directory, and the commands that show and play the run."""
    screen.print(f"experiment: {experiment_path}")
    if has_tensorboard:
        screen.print(f"TensorBoard: {_tensorboard_command(experiment_path)}")
    if playback_hint:
        screen.print(f"play it back: {playback_hint}")
    print_dashboard_command(experiment_path, screen)


def print_dashboard_command(
    experiment_path: str | os.PathLike[str], where: ScreenLogger, compares: bool = False
) -> None:
    """Print the command that shows a run, or a group of runs, in the dashboard together with the other experiments.

    :param compares: True: the command shows only the group, and the effects of its settings
    """
    if not is_installed("panel"):
        return
    directory = pathlib.Path(experiment_path).absolute()
    if compares:
        where.print(f"compare: {shell_command('coach', 'dashboard', '-d', shown(directory), '--tab', 'compare')}")
        return
    # The parent of a directory with another name may contain anything.
    experiments = shown(directory.parent.parent if experiment_name(directory) else directory)
    flags = [] if experiments == "experiments" else ["-d", experiments]
    where.print(f"look at it: {shell_command('coach', 'dashboard', *flags)}")


def _tensorboard_command(experiment_path: str) -> str:
    arguments = ["--logdir", os.path.join(experiment_path, TENSORBOARD_DIRECTORY)]
    if is_installed("tensorboard"):
        return shell_command("tensorboard", *arguments)
    beside_pip = os.path.join(os.path.dirname(program("pip")), "tensorboard")
    return f"{pip_install('tensorboard')} && {shlex.join([beside_pip, *arguments])}"
