"""``coach dataset``: print, convert or record data sets of experience."""

from __future__ import annotations

import argparse
import tempfile
from typing import TYPE_CHECKING, Any, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import flag_checks
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.memories.data_set import DataSet


def run(arguments: Sequence[str], launcher: Any) -> None:
    """Run ``coach dataset``.

    :param arguments: the arguments after ``dataset``
    :param launcher: a ``CoachLauncher``, which builds the graph of the agent to record
    :raises CoachError: if an argument is wrong, or a file cannot be read or written
    """
    parser = command_line.get_dataset_parser()
    args, flags = parser.parse_known_args(arguments)
    if flags and args.command != command_line.RECORD:
        parser.error(f"unknown flag '{flags[0]}'")
    from rl_coach.memories import data_set_files  # imported here, so that --help is fast

    if args.command == command_line.INFO:
        summary = data_set_files.read(args.place).summary()
        width = max(map(len, summary))
        print("\n".join(f"{name:<{width}}  {text}" for name, text in summary.items()))
        return
    data_set_files.require_new(args.output)
    found = data_set_files.read(args.place) if args.command == command_line.CONVERT else _record(args, flags, launcher)
    data_set_files.write(found, args.output)
    print(f"wrote {len(found.columns):,} steps in {len(found.episode_lengths):,} episodes: {args.output}")


def _record(args: argparse.Namespace, flags: Sequence[str], launcher: Any) -> DataSet:
    of_run = launcher.get_config_args(launcher.get_argument_parser(), flags)
    flag_checks.refuse_several(of_run, f"coach dataset {command_line.RECORD}")
    if of_run.distributed_coach or (of_run.num_workers or 1) > 1 or of_run.play:
        raise CoachError(f"coach dataset {command_line.RECORD} plays in this process: leave out -dc, -n and --play")
    flag_checks.refuse_budget(of_run, "nothing is trained: leave out --budget")
    is_trained = bool(of_run.resume or of_run.checkpoint_restore_dir or of_run.checkpoint_restore_file)
    policy = args.policy or (command_line.DEPLOYED if is_trained else command_line.RANDOM)
    graph_manager = launcher.get_graph_manager_from_args(of_run)
    graph_manager.visualization_parameters.dump_csv = False
    from rl_coach.core_types import RunPhase
    from rl_coach.graph_managers.recording import record

    phase = {
        command_line.RANDOM: RunPhase.HEATUP,
        command_line.EXPLORING: RunPhase.TRAIN,
        command_line.DEPLOYED: RunPhase.TEST,
    }[policy]
    with tempfile.TemporaryDirectory() as directory:
        task = launcher.create_task_parameters(graph_manager, of_run)
        task.experiment_path, task.checkpoint_save_dir, task.resume = directory, None, False
        graph_manager.create_graph(task)
        try:
            return record(graph_manager, args.steps, phase)
        finally:
            graph_manager.close()
