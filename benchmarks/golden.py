"""The table of golden runs in docs/benchmarks.md: each preset, trained with several seeds until it reaches its reward.

``python -m benchmarks.golden`` trains what is not yet among the results, a process for each, adds each outcome to them
as it comes, and writes the table anew. Interrupted, it goes on where it was.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import pathlib
import subprocess
import sys
from typing import Iterable

from benchmarks.train_to_reward import NOT_INSTALLED, NOT_REACHED, REACHED, Outcome
from rl_coach.command_line import preset_catalogue
from rl_coach.runs.progress import duration

REPOSITORY = pathlib.Path(__file__).parents[1]
RESULTS = pathlib.Path(__file__).with_name("golden.jsonl")
PAGE = REPOSITORY / "docs" / "benchmarks.md"
BEGIN, END = "<!-- golden runs -->", "<!-- end of golden runs -->"
ENOUGH = 2


def main() -> None:
    """Train what is missing and write the table; exit with 1 if a training broke."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.golden", description=__doc__)
    parser.add_argument("--seeds", default="0,1,2", help="the seeds (default %(default)s)")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="presets whose names fit, as CartPole_*")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="file of results (default %(default)s)")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE, help="page with the table (default %(default)s)")
    parser.add_argument("--again", action="store_true", help="train also what has results, which are replaced")
    parser.add_argument("--table", action="store_true", help="train nothing, write the table")
    options = parser.parse_args()
    presets = [name for name in presets_with_a_reward() if fnmatch.fnmatch(name, options.only)]
    if not presets:
        parser.error(f"no preset with a reward fits '{options.only}'")
    wanted = [] if options.table else [(p, int(seed)) for p in presets for seed in options.seeds.split(",")]
    known = set() if options.again else {(one.preset, one.seed) for one in read(options.results)}
    broken = [one for one in wanted if one not in known and not _is_trained(*one, options.results, options.page)]
    write_table(options.page, read(options.results))
    if broken:
        sys.exit("\n".join(f"{preset}, seed {seed}: training broke" for preset, seed in broken))


def presets_with_a_reward() -> list[str]:
    """The presets that must reach one."""
    directory = preset_catalogue.preset_directory()
    names = preset_catalogue.list_all_presets()
    return [n for n in names if "min_reward_threshold" in (directory / f"{n}.py").read_text(encoding="utf-8")]


def _is_trained(preset: str, seed: int, results: pathlib.Path, page: pathlib.Path) -> bool:
    command = [sys.executable, "-m", "benchmarks.train_to_reward", preset, str(seed), str(results.resolve())]
    code = subprocess.run(command, cwd=REPOSITORY, check=False).returncode
    write_table(page, read(results))
    return code in (REACHED, NOT_REACHED, NOT_INSTALLED)


def read(results: pathlib.Path) -> list[Outcome]:
    """The newest outcome of each preset and seed, in order of their names."""
    if not results.exists():
        return []
    lines = [Outcome(**json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines()]
    return sorted({(one.preset, one.seed): one for one in lines}.values(), key=lambda one: (one.preset, one.seed))


def write_table(page: pathlib.Path, outcomes: list[Outcome]) -> None:
    """Put the table between the page's two marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{table(outcomes)}\n{END}{after}", encoding="utf-8")


def table(outcomes: list[Outcome]) -> str:
    """A row for each preset; the columns of several seeds hold a value for each."""
    rows = [
        "| preset | reward to reach | within | seeds | reached by | reward | episodes | wall time | day |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    by_preset: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_preset.setdefault(one.preset, []).append(one)
    rows += [_row(runs) for runs in by_preset.values()]
    good = sum(sum(run.is_reached for run in runs) >= min(ENOUGH, len(runs)) for runs in by_preset.values())
    return "\n".join([*rows, "", f"{good} of {len(by_preset)} presets reach their reward on two of three seeds."])


def _row(runs: list[Outcome]) -> str:
    first, reached = runs[0], sum(run.is_reached for run in runs)
    cells = [
        f"`{first.preset}`",
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
