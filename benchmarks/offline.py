"""Compares agents that learn from fixed data with the agents of d3rlpy on the same data.

    python -m benchmarks.offline --data DIR
    /path/to/d3rlpy/bin/python -m benchmarks.offline --library d3rlpy --data DIR

The first call records the data, if they do not exist, and trains Coach's agents. The second call trains d3rlpy's agents
on the same data. It needs a Python environment with d3rlpy (``pip install d3rlpy``). Both calls add each score to a
file at once. A call with ``--table`` writes the table of docs/benchmarks.md.

Both libraries use the same data, network sizes, batches, discounts, learning rates and numbers of updates. A score is
the mean return of 20 episodes after the last update, with actions without noise.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from dataclasses import asdict, dataclass
from datetime import date
from statistics import mean, stdev
from typing import Any, Callable

from benchmarks.pages import PAGE, write_between

RESULTS = pathlib.Path(__file__).with_name("offline.jsonl")
BEGIN, END = "<!-- offline -->", "<!-- end of offline -->"
EPISODES = 20


@dataclass(frozen=True)
class Comparison:
    """A preset. Both libraries train its agent.

    :param data: name of the preset that records the data
    :param level: the environment of the evaluations
    :param updates: number of updates
    """

    preset: str
    data: str
    level: str
    updates: int


COMPARISONS = (
    Comparison("CartPole_DiscreteCQL_BatchRL", "CartPole_DiscreteCQL_BatchRL", "CartPole-v1", 2000),
    Comparison("Pendulum_IQL_BatchRL", "Pendulum_IQL_BatchRL", "Pendulum-v1", 4000),
    Comparison("Pendulum_TD3BC_BatchRL", "Pendulum_IQL_BatchRL", "Pendulum-v1", 4000),
    Comparison("Pendulum_CQL_BatchRL", "Pendulum_IQL_BatchRL", "Pendulum-v1", 4000),
)


@dataclass(frozen=True)
class Score:
    """The result of one training. :param score: the mean return of ``EPISODES`` episodes"""

    preset: str
    library: str
    seed: int
    updates: int
    score: float
    day: str


def main() -> None:
    """Train each preset with each seed that has no score yet, or write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.offline", description=__doc__)
    parser.add_argument("--library", choices=("coach", "d3rlpy"), default="coach")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("offline_data"), help="directory of the data")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--only", default="", metavar="TEXT", help="presets whose names have it")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--page", type=pathlib.Path, default=PAGE, help="page with the table")
    parser.add_argument("--table", action="store_true", help="train nothing, write the table")
    options = parser.parse_args()
    if options.table:
        write_between(options.page, BEGIN, END, table(read(options.results)))
        return
    known = {(one.preset, one.library, one.seed) for one in read(options.results)}
    score_of = scorer(options.library)
    for comparison in (one for one in COMPARISONS if options.only in one.preset):
        for seed in map(int, options.seeds.split(",")):
            if (comparison.preset, options.library, seed) not in known:
                score = score_of(comparison, options.data / f"{comparison.data}.npz", seed)
                about = (comparison.preset, options.library, seed, comparison.updates, score, date.today().isoformat())
                _add(options.results, Score(*about))


def scorer(library: str) -> Callable[[Comparison, pathlib.Path, int], float]:
    """A function that trains with the library on the data of a file, with a seed, and returns the score."""
    if library == "coach":
        from benchmarks.offline_coach_side import score_of
    else:
        from benchmarks.offline_d3rlpy_side import score_of
    return score_of


def read(results: pathlib.Path) -> list[Score]:
    """The scores in a file; an empty list if there is no file."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return [Score(**json.loads(line)) for line in lines]


def _add(results: pathlib.Path, score: Score) -> None:
    print(f"{score.preset}, {score.library}, seed {score.seed}: {score.score:.4g}", flush=True)
    with results.open("a", encoding="utf-8") as file:
        print(json.dumps(asdict(score)), file=file)


def table(scores: list[Score]) -> str:
    """A Markdown table with a row for each preset and library."""
    rows = ["| preset | library | updates | seeds | scores | mean ± deviation | day |", "|---|---|---|---|---|---|---|"]
    groups: dict[tuple[str, str], list[Score]] = {}
    for one in sorted(scores, key=lambda it: (it.preset, it.library, it.seed)):
        groups.setdefault((one.preset, one.library), []).append(one)
    return "\n".join([*rows, *(_row(group) for group in groups.values())])


def _row(group: list[Score]) -> str:
    first, values = group[0], [one.score for one in group]
    spread = f"{mean(values):.4g} ± {stdev(values):.4g}" if len(values) > 1 else f"{values[0]:.4g}"
    cells: list[Any] = [
        f"`{first.preset}`", {"coach": "Coach"}.get(first.library, first.library), f"{first.updates:,}",
        ", ".join(str(one.seed) for one in group), ", ".join(f"{value:.4g}" for value in values), spread,
        max(one.day for one in group),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
