"""``coach import sb3``: make an experiment from a policy that Stable-Baselines3 has trained."""

from __future__ import annotations

from typing import Any, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import flag_checks
from rl_coach.utilities.errors import CoachError


def run(arguments: Sequence[str], launcher: Any) -> None:
    """Build the preset's graph, load the weights into its networks, and write a checkpoint.

    :param arguments: the arguments after ``import``
    :param launcher: a ``CoachLauncher``
    :raises CoachError: if a flag is wrong, or the file does not fit the preset
    """
    own, flags = command_line.parser_of("import").parse_known_args(arguments)
    args = launcher.get_config_args(launcher.get_argument_parser(), flags)
    flag_checks.refuse_several(args, "coach import")
    flag_checks.refuse_budget(args, "nothing is trained: leave out --budget")
    args.imported = own.file
    from rl_coach.policy import stable_baselines3  # imported here, so that --help is fast

    weights = stable_baselines3.read(own.file)
    manager = launcher.get_graph_manager_from_args(args)
    directory = launcher.make_directory(manager, args)
    try:
        launcher.build(launcher.create_task_parameters(manager, args), manager, args)
        stable_baselines3.take(manager.get_agent().networks, weights, own.file)
        print(f"imported {own.file}: {manager.save_checkpoint()}")
        manager.close()
    except CoachError:
        directory.remove()
        raise
    finally:
        directory.release()
