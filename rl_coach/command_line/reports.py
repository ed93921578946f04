"""The commands that report: ``coach --list``, ``algorithms``, ``check-env``, ``doctor`` and ``compare``."""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import shutil
import sys
import textwrap
from typing import Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import preset_catalogue
from rl_coach.runs.record import RECORD_FILE
from rl_coach.utilities.errors import CoachError
from rl_coach.utilities.system import shown

NOTHING_FOUND, FOUND = 0, 1
"""The exit codes of commands that search for problems."""
_ABOUT_SCORES = """\
score: the mean reward that was measured after training
target: the mean reward that training must reach"""
_COLUMNS = ("environment", "algorithm", "score", "target")
_GAP = "  "
_NARROWEST = 80
_CAN_BE_CUT = {2: 15, 1: 12}
"""Columns of ``coach --list`` that may be cut on a terminal, and their smallest widths."""


def list_presets(text: str) -> None:
    """Print the presets with environment, algorithm and score. Tuned presets come last.

    :param text: print only presets with this text in the name, environment or algorithm, in upper or lower case
    :raises CoachError: if no preset contains the text
    """
    tables = [
        [title, *(one.cells for one in preset_catalogue.summaries(names) if one.contains(text))]
        for title, names in (
            (("preset", *_COLUMNS), preset_catalogue.list_all_presets()),
            (("tuned preset", *_COLUMNS), preset_catalogue.list_tuned_presets()),
        )
    ]
    shown_tables = [table for table in tables if len(table) > 1]
    if not shown_tables:
        raise CoachError(f"no preset contains '{text}' (coach --list shows all)")
    widths = _widths([row for table in shown_tables for row in table])
    texts = ("\n".join(_row(row, widths) for row in table) for table in shown_tables)
    print("\n\n".join([*texts, _ABOUT_SCORES]))


def list_algorithms(arguments: Sequence[str]) -> None:
    """``coach algorithms``: print the algorithms, with their names for ``make_agent``.

    :param arguments: the arguments after ``algorithms``
    :raises CoachError: if no algorithm contains the text
    """
    text = command_line.parser_of("algorithms").parse_args(arguments).text
    from rl_coach.agents.algorithms import known_algorithms  # imported here, so that --help is fast

    rows = [(", ".join(one.names), one.about.replace("``", "")) for one in known_algorithms()]
    found = [row for row in rows if text.lower() in " ".join(row).lower()]
    if not found:
        raise CoachError(f"no algorithm contains '{text}' ('coach algorithms' lists all names)")
    width = max(len(names) for names, _ in found)
    for names, about in [("names", "algorithm"), *found]:
        first, *more = textwrap.wrap(about, _room() - width - len(_GAP))
        print(f"{names:<{width}}{_GAP}{first}", *(" " * width + _GAP + line for line in more), sep="\n")


def check_environment(arguments: Sequence[str]) -> int:
    """``coach check-env``: print a line for each error of an environment.

    :param arguments: the arguments after ``check-env``
    :return: the exit code
    :raises CoachError: if the environment does not exist
    """
    args = command_line.parser_of("check-env").parse_args(arguments)
    from rl_coach.environments.level_check import check_level  # imported here, so that --help is fast

    check = check_level(args.level, args.steps, args.seed)
    for line in [*check.findings.values(), *(f"advice of Gymnasium's checker: {note}" for note in check.notes)]:
        print(line)
    if not check.findings:
        print(f"level '{args.level}': no problems in {check.num_steps} steps, {check.num_episodes} episodes")
    return FOUND if check.findings else NOTHING_FOUND


def diagnose(arguments: Sequence[str]) -> int:
    """``coach doctor``: print a line for each run with its problem.

    :param arguments: the arguments after ``doctor``
    :return: the exit code
    :raises CoachError: if there is no run
    """
    args = command_line.parser_of("doctor").parse_args(arguments)
    from rl_coach.runs.diagnosis import diagnose as problems_of  # imported here, so that --help is fast

    problems = problems_of(args.directory)
    is_one_run = len(problems) == 1 and os.path.isfile(os.path.join(args.directory, RECORD_FILE))
    for run, problem in problems.items():
        print(f"{args.directory if is_one_run else run}: {problem or 'no problem found'}")
    return FOUND if any(problems.values()) else NOTHING_FOUND


def compare(arguments: Sequence[str]) -> None:
    """``coach compare``: print tables of the scores of runs, and write a report.

    :param arguments: the arguments after ``compare``
    :raises CoachError: if an argument is wrong, or the report cannot be written
    """
    args = command_line.parser_of("compare").parse_args(arguments)
    from rl_coach.runs import comparison as comparisons  # imported here, so that --help is fast
    from rl_coach.runs import report

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


def _room() -> int:
    """The width of the terminal in letters, at least 80; unlimited for a file or a pipe."""
    return max(_NARROWEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else sys.maxsize


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """The widths of a table's columns in letters. On a narrow terminal, algorithms and environments are shortened."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for column, narrowest in _CAN_BE_CUT.items():
        excess = sum(widths) + len(_GAP) * (len(widths) - 1) - _room()
        widths[column] -= min(max(0, excess), max(0, widths[column] - narrowest))
    return widths


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    cut = (cell if len(cell) <= width else cell[: width - 1] + "…" for cell, width in zip(cells, widths))
    return _GAP.join(cell.ljust(width) for cell, width in zip(cut, widths)).rstrip()
