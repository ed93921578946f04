"""``coach compare``: write a report that compares runs."""

from __future__ import annotations

import argparse
import math
import pathlib
from typing import Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.utils import CoachError


def run(arguments: Sequence[str]) -> None:
    """Run ``coach compare``.

    :param arguments: the arguments after ``compare``
    :raises CoachError: if an argument is wrong, or the report cannot be written
    """
    args = command_line.parser_of(command_line.COMPARE).parse_args(arguments)
    from rl_coach.runs import comparison as comparisons  # imported here, so that --help is fast
    from rl_coach.runs import report
    from rl_coach.utilities.system import shown

    comparison = comparisons.compare(args.directory, args.score, _ranges(args))
    for task in comparison.tasks:
        print(task)
        print("\n".join(comparisons.table_of_scores(*comparison.figures(task))))
    for note in comparison.notes:
        print(f"note: {note}")
    directory = pathlib.Path(args.output).absolute()
    try:
        written = report.write(comparison, directory)
    except OSError as error:
        raise CoachError(f"-o: '{args.output}' cannot be written: {error.strerror}") from None
    print("report: " + ", ".join(shown(path) for path in written))


def _ranges(args: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """The scores that become 0 and 1, by environment, from ``--range ENVIRONMENT=LOW,HIGH``."""
    found = {}
    for text in args.range or ():
        task, equals, ends = text.rpartition("=")
        try:
            low, high = (float(end) for end in ends.split(","))
        except ValueError:
            low = high = math.nan
        if not equals or not low < high or math.isinf(high - low):
            raise CoachError(f"--range: '{text}' does not have the form ENVIRONMENT=LOW,HIGH, with LOW below HIGH")
        found[task] = (low, high)
    return found
