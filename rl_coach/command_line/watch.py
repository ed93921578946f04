"""``coach watch``: show a trained agent or a policy in a window, or write a video."""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import shutil
import tempfile
from typing import Any, Callable, Iterator, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import flag_checks
from rl_coach.runs import record
from rl_coach.runs.run_group import refuse_group
from rl_coach.utilities.system import shell_command
from rl_coach.utils import CoachError

_BEST = "best"
_Player = Iterator[tuple[Callable[[], float], Any]]


def run(arguments: Sequence[str], launcher: Any) -> None:
    """Play episodes in a window until the user closes it, or write one episode into files.

    :raises CoachError: if an argument is wrong, or there is no display for a window
    """
    args = command_line.parser_of("watch").parse_args(arguments)
    files = {f".{kind}": file for kind in ("gif", "mp4") if (file := getattr(args, kind)) is not None}
    _check(args.directory, files)
    from rl_coach.environments.rendering import WindowClosed, drawing

    output = {"render": not files, "real_time": True, "dump_gifs": ".gif" in files, "dump_mp4": ".mp4" in files}
    player = _policy_player if flag_checks.is_policy(args.directory) else _run_player
    with contextlib.suppress(WindowClosed), tempfile.TemporaryDirectory() as folder, drawing():
        with player(args, output, folder, launcher) as (play, environment):
            if not files:
                print(f"level {environment.env_id}: press Esc or close the window to end")
            while True:
                reward = play()
                print(f"reward {reward:.5g} in {environment.current_episode_steps_counter:,} steps", flush=True)
                if files:
                    break
        _move(environment.videos, files)


def _check(directory: str, files: dict[str, str]) -> None:
    from rl_coach.environments.rendering import has_display

    flag_checks.require_run(directory)
    if not os.path.isdir(run := _run_of(directory)):
        raise CoachError(f"there is no directory '{run}'")
    refuse_group(directory, "watch")
    if not flag_checks.is_policy(directory):
        record.read(run)
    if not files and not has_display():
        hint = shell_command("coach", "watch", directory, "--gif", "FILE.gif")
        raise CoachError(f"there is no display to open a window on. Write a file with: {hint}")
    for suffix, file in files.items():
        if pathlib.Path(file).suffix.lower() != suffix:
            raise CoachError(f"--{suffix[1:]}: the name of the file must end with {suffix}, not '{file}'")
        if not os.path.isdir(os.path.dirname(file) or "."):
            raise CoachError(f"--{suffix[1:]}: there is no directory '{os.path.dirname(file)}'")


def _move(videos: Sequence[pathlib.Path], files: dict[str, str]) -> None:
    """Move each video to the user's file. :param files: the user's files by suffix, ``.gif`` or ``.mp4``"""
    for suffix, file in files.items():
        video = next((one for one in videos if one.suffix == suffix), None)
        if video is None:
            raise CoachError(
                f"'{file}' was not written: the environment has drawn no pictures, or the video could not be written"
            )
        try:
            shutil.move(video, file)
        except OSError as error:
            raise CoachError(f"'{file}' cannot be written: {error.strerror}") from None
        print(f"written to {file}")


@contextlib.contextmanager
def _policy_player(args: argparse.Namespace, output: dict[str, bool], folder: str, launcher: Any) -> _Player:
    from rl_coach.base_parameters import VisualizationParameters
    from rl_coach.command_line import policy_evaluation

    shown = VisualizationParameters(**output)
    with policy_evaluation.playing(args.directory, args.level, args.seed, shown, folder) as player:
        yield player


@contextlib.contextmanager
def _run_player(args: argparse.Namespace, output: dict[str, bool], folder: str, launcher: Any) -> _Player:
    from rl_coach.core_types import EnvironmentEpisodes

    of_run = launcher.get_config_args(launcher.get_argument_parser(), _flags(args))
    manager = launcher.get_graph_manager_from_args(of_run)
    written = dict.fromkeys(("dump_csv", "dump_parameters_documentation", "tensorboard", "native_rendering"), False)
    vars(manager.visualization_parameters).update({**output, **written, "video_dump_methods": None})
    task = launcher.create_task_parameters(manager, of_run)
    task.experiment_path, task.checkpoint_save_dir = folder, None
    manager.create_graph(task)
    level = manager.level_managers[-1]

    def play() -> float:
        manager.act(EnvironmentEpisodes(1))
        return manager.episode_reward()

    try:
        with manager.evaluation():
            yield play, level.active_environment
    finally:
        manager.close()


def _run_of(directory: str) -> str:
    """The directory of the run in ``RUN`` or ``RUN/best``."""
    above, name = os.path.split(directory.rstrip(os.sep))
    return above or os.curdir if name == _BEST else directory


def _flags(args: argparse.Namespace) -> list[str]:
    """The flags of a run that evaluates the agent in ``args.directory``."""
    run = _run_of(args.directory)
    checkpoint = [] if run == args.directory else [f"-crd={args.directory}"]
    flags = [f"--resume={run}", *checkpoint, "--evaluate=0", f"--seed={args.seed}"]
    return [*flags, *([f"-lvl={args.level}"] if args.level else [])]
