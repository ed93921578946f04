"""Trains presets until they reach their target rewards ("golden runs"), and writes the tables of these runs in docs.

``python -m benchmarks.golden`` trains each preset with each seed that has no result yet. Each training is a separate
process. Its result is added to a file at once, so an interrupted call can be repeated: it continues with the missing
results. Then the tables are written: one of all presets in docs/benchmarks.md, and one on the page of each algorithm,
of the presets that the page names. A page of an algorithm also shows learning curves, if the results have them.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import pathlib
import subprocess
import sys
from typing import Any, Iterable

from benchmarks import curves
from benchmarks.pages import ALGORITHMS, PAGE, REPOSITORY, write_between, write_on_pages
from benchmarks.scores import UNTUNED
from benchmarks.train_to_reward import NOT_INSTALLED, NOT_REACHED, REACHED, Outcome
from rl_coach.command_line import preset_catalogue
from rl_coach.runs.progress import duration

RESULTS = pathlib.Path(__file__).with_name("golden.jsonl")
BEGIN, END = "<!-- golden runs -->", "<!-- end of golden runs -->"
ENOUGH = 2
MEASURED_OTHERWISE = ("Fetch_DDPG_HER_baselines",)
"""Presets without a target reward that have another table on a page, such as the share of successes."""
SOURCE = (
    "A golden run trains a preset until its evaluations reach the preset's target reward. `within` is its limit of\n"
    "episodes. [Golden runs](../benchmarks.md#measurement-of-golden-runs) explains all columns."
)
CURVES = "Learning curves of these runs, a line for each seed. A line ends where the run has reached the target reward."
HEADER = (
    "| preset | reward to reach | within | seeds | reached by | reward | episodes | wall time | day |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    """Train what has no result yet and write the tables. Exit with code 1 if a training failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.golden", description=__doc__)
    parser.add_argument("--seeds", default="0,1,2", help="the seeds (default %(default)s)")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="presets whose names fit, as CartPole_*")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="file of results (default %(default)s)")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE, help="page with the table (default %(default)s)")
    parser.add_argument(
        "--algorithms", type=pathlib.Path, default=ALGORITHMS, help="directory of their pages (default %(default)s)"
    )
    parser.add_argument("--again", action="store_true", help="train also what has results, which are replaced")
    parser.add_argument("--table", action="store_true", help="train nothing, write the table")
    options = parser.parse_args()
    presets = [name for name in presets_with_a_reward() if fnmatch.fnmatch(name, options.only)]
    if not presets:
        parser.error(f"no preset with a reward fits '{options.only}'")
    wanted = [] if options.table else [(p, int(seed)) for p in presets for seed in options.seeds.split(",")]
    known = set() if options.again else {(one.preset, one.seed) for one in read(options.results)}
    missing = [one for one in wanted if one not in known]
    broken = [one for one in missing if not _is_trained(*one, options)]
    write_tables(options.page, options.algorithms, read(options.results))
    if broken:
        sys.exit("\n".join(f"{preset}, seed {seed}: training broke" for preset, seed in broken))


def presets_with_a_reward() -> list[str]:
    """Names of the presets that have a target reward."""
    directory = preset_catalogue.preset_directory()
    names = preset_catalogue.list_all_presets()
    return [n for n in names if "min_reward_threshold" in (directory / f"{n}.py").read_text(encoding="utf-8")]


def _is_trained(preset: str, seed: int, options: argparse.Namespace) -> bool:
    command = [sys.executable, "-m", "benchmarks.train_to_reward", preset, str(seed), str(options.results.resolve())]
    code = subprocess.run(command, cwd=REPOSITORY, check=False).returncode
    write_tables(options.page, options.algorithms, read(options.results))
    return code in (REACHED, NOT_REACHED, NOT_INSTALLED)


def read(results: pathlib.Path) -> list[Outcome]:
    """The newest result of each preset and seed, sorted by preset and seed; empty if there is no file."""
    if not results.exists():
        return []
    lines = [Outcome(**json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines()]
    return sorted({(one.preset, one.seed): one for one in lines}.values(), key=lambda one: (one.preset, one.seed))


def write_tables(page: pathlib.Path, algorithms: pathlib.Path, outcomes: list[Outcome]) -> None:
    """Write the table of all runs on ``page``. On each page in ``algorithms`` that has the marks, write the table of
    the presets that the page names.
    """
    for preset, runs in _by_preset(outcomes).items():
        if any(run.curve for run in runs):
            lines = curves.one_line_each({run.seed: run.curve for run in runs if run.curve})
            curves.write(page.parent, preset, lines, "episodes")
    write_between(page, BEGIN, END, table(outcomes))
    write_on_pages(algorithms, BEGIN, END, lambda named: table_of_page(named, outcomes))


def table(outcomes: list[Outcome]) -> str:
    """A Markdown table with a row for each preset. The columns have a value for each seed."""
    by_preset = _by_preset(outcomes)
    good = sum(sum(run.is_reached for run in runs) >= ENOUGH for runs in by_preset.values())
    few = sum(len(runs) < ENOUGH for runs in by_preset.values())
    rows = [HEADER, *(_row(runs) for runs in by_preset.values())]
    last = f"{good} of {len(by_preset)} presets reach their reward on two of three seeds."
    last += f" {few} have been trained with fewer than two so far." if few else ""
    return "\n".join([*rows, *_about_workers(list(by_preset)), "", last])


def table_of_page(named: set[str], outcomes: list[Outcome]) -> str:
    """A Markdown table with a row for each named preset that has a target reward, also if it was not trained yet. A
    line below the table lists the named presets without a target reward.

    :param named: names on the page
    """
    presets = [name for name in preset_catalogue.list_all_presets() if name in named]
    known = set(presets_with_a_reward())
    with_a_reward = [name for name in presets if name in known]
    by_preset, lines = _by_preset(outcomes), []
    if with_a_reward:
        lines += [SOURCE, "", HEADER]
        lines += [_row(by_preset[n], _level(n)) if n in by_preset else _empty_row(n) for n in with_a_reward]
        lines += _about_workers(with_a_reward)
        lines += _pictures([run for name in with_a_reward for run in by_preset.get(name, []) if run.curve])
    if without := [name for name in presets if name not in with_a_reward]:
        lines += [""] * bool(lines) + [_without_a_reward(without)]
    return "\n".join(lines)


def _pictures(runs: list[Outcome]) -> list[str]:
    """Lines of a paragraph that explains the curves, and of a picture for each preset."""
    lines = []
    for preset, own in _by_preset(runs).items():
        ends = _each(f"{run.curve[-1][1]:.4g} after {run.curve[-1][0]:g} episodes" for run in own)
        text = f"Learning curve of {preset}: the last evaluation of each seed has a mean reward of {ends}"
        lines += ["", curves.picture(preset, text, to_docs="../")]
    return ["", CURVES, *lines] if lines else []


def _about_workers(presets: list[str]) -> list[str]:
    """Lines of a paragraph for each number of workers above 1, with the presets that are trained with this number."""
    numbers = {name: _validation(name).num_workers for name in presets}
    lines: list[str] = []
    for number in sorted({number for number in numbers.values() if number > 1}):
        quoted = _quoted([name for name in presets if numbers[name] == number])
        lines += ["", f"Trained with {number} workers (`-n {number}`): {quoted}."]
        lines += ["The reward and the number of episodes are from the first worker."]
    return lines


def _without_a_reward(presets: list[str]) -> str:
    """A line about presets without a target reward. Presets in ``UNTUNED`` have scores, and presets in
    ``MEASURED_OTHERWISE`` have other tables; all others are not measured.
    """
    if not (unmeasured := [name for name in presets if name not in (*UNTUNED, *MEASURED_OTHERWISE)]):
        return f"Presets without a target reward: {_quoted(presets)}."
    if unmeasured == presets:
        return f"Presets without a target reward, not measured yet: {_quoted(presets)}."
    return f"Presets without a target reward: {_quoted(presets)}. Not measured yet: {_quoted(unmeasured)}."


def _quoted(names: list[str]) -> str:
    return _each(f"`{name}`" for name in names)


def _by_preset(outcomes: list[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for one in outcomes:
        found.setdefault(one.preset, []).append(one)
    return found


def _validation(preset: str) -> Any:
    return preset_catalogue.load(preset).preset_validation_params  # type: ignore[attr-defined]


def _level(preset: str) -> str:
    """The level of a preset's golden run, as text for the table; empty if the preset itself names the level."""
    level = _validation(preset).reward_test_level
    return f", `{level}`" if level else ""


def _empty_row(preset: str) -> str:
    validation = _validation(preset)
    cells = [
        f"`{preset}`{_level(preset)}",
        f"{validation.min_reward_threshold:g}",
        f"{validation.max_episodes_to_achieve_reward} episodes",
        "",
        "not measured yet",
    ]
    return f"| {' | '.join([*cells, *[''] * 4])} |"


def _row(runs: list[Outcome], level: str = "") -> str:
    first, reached = runs[0], sum(run.is_reached for run in runs)
    cells = [
        f"`{first.preset}`{level}",
        f"{first.threshold:g}",
        f"{first.limit} episodes",
        _each(str(run.seed) for run in runs),
        f"{reached} of {len(runs)}" if reached >= ENOUGH else f"**{reached} of {len(runs)}**",
        _each(f"{run.reward:.4g}" for run in runs),
        _each(str(run.episodes) for run in runs),
        _each(duration(run.seconds) for run in runs),
        max(run.day for run in runs),
    ]
    return f"| {' | '.join(cells)} |"


def _each(values: Iterable[str]) -> str:
    return ", ".join(values)


if __name__ == "__main__":
    main()
