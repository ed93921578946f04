"""``coach sweep``: train a preset with many settings, each with all seeds, at the same time."""

from __future__ import annotations

import os
from typing import Any, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line.names_elsewhere import hint_on_the_command_line
from rl_coach.runs.record import settings_in
from rl_coach.utilities.system import shell_command
from rl_coach.utils import CoachError

SECONDS_BETWEEN_CHECKPOINTS = 300
"""The default time between two checkpoints. A run that was killed continues from its last checkpoint."""
_MOST_RUNS = 10_000
_SAVES = ("checkpoint_save_secs", "checkpoint_save_steps", "checkpoint_save_episodes")


def run(arguments: Sequence[str], launcher: Any) -> int:
    """Run ``coach sweep``.

    :param arguments: the arguments after ``sweep``
    :param launcher: a ``CoachLauncher``, which loads the preset
    :return: the exit code; see ``several_runs.train``
    :raises CoachError: if a flag, a setting or the preset is wrong
    """
    parser = command_line.parser_of("sweep")
    args = parser.parse_args(arguments)
    if args.resume:
        raise CoachError(f"--resume: continue a sweep with: {shell_command('coach', '--resume', args.resume)}")
    if not args.preset:
        hints = (hint_on_the_command_line(path) for path, _ in settings_in(args.settings or ""))
        parser.error(f"no preset given: select a preset with -p; coach --list shows all presets{''.join(hints)}")
    if not args.settings:
        parser.error('no settings given: write settings such as "learning_rate=1e-4,3e-4; discount=0.9,0.99"')
    args.at_once = args.parallel or args.at_once
    if args.seeds is None:
        args.seeds, args.seed = (args.seed or 0,), None
    if not any(getattr(args, name) for name in _SAVES):
        args.checkpoint_save_secs = SECONDS_BETWEEN_CHECKPOINTS
    from rl_coach.command_line import search_space, several_runs  # imported here, so that --help is fast

    spaces = [(search_space.parse(text, what), what) for text, what in texts_of(args.settings, "coach sweep")]
    runs = 0
    for one, _ in spaces:  # a range without --random has no number, and is refused later
        numbers = [number for number in (search_space.size(one), args.random) if number is not None]
        runs += len(args.seeds) * min(numbers, default=0)
    if runs > _MOST_RUNS:
        raise CoachError(
            f"{runs:,} runs are more than the limit of {_MOST_RUNS:,}: draw fewer settings with --random N, or use "
            f"fewer --seeds"
        )
    combinations = []
    for dimensions, what in spaces:
        number = args.random
        drawn = search_space.grid(dimensions, what) if number is None else search_space.draw(dimensions, number)
        combinations += [(dimensions, values) for values in drawn]
    graph_manager = launcher.get_graph_manager_from_args(args)
    for dimensions, _ in spaces:
        search_space.refuse_fixed(graph_manager, dimensions, args.custom_parameter)
    found = search_space.settings(graph_manager, combinations)
    return several_runs.train(args, launcher.get_argument_parser(), found)


def texts_of(given: str, what: str) -> list[tuple[str, str]]:
    """The settings in an argument, or in each line of the file that the argument names.

    :param what: the beginning of messages about the argument
    :return: pairs of a text and the beginning of messages about it
    :raises CoachError: if the argument is neither settings nor a file, or the file is empty
    """
    if "=" in given and not os.path.exists(given):
        return [(given, what)]
    from rl_coach.utilities.safe_reading import read_text

    try:
        without_comments = (line.partition("#")[0].strip() for line in read_text(given).splitlines())
    except FileNotFoundError:
        raise CoachError(f"{what}: '{given}' is neither settings (path=value,value) nor a file with settings") from None
    lines = [line for line in without_comments if line]
    if not lines:
        raise CoachError(f"{what}: '{given}' has no settings: write path=value in each line")
    return [(line, given) for line in lines]
