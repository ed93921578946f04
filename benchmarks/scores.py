"""Measures the scores of presets after their training, and compares them with published scores and other libraries. The
presets are the tuned ones, and a few others.

    python -m benchmarks.scores [--only PATTERN] [--seeds 0,1,2] [--libraries coach,sb3] [--framework jax]

This command trains each preset with each seed that has no result yet. Each training is a separate process. Its result
is added to a file at once. Then the script writes the tables and learning curves: of all presets in docs/benchmarks.md,
and on the page of each algorithm of the presets that the page names. If the script is interrupted, the next call
continues with the missing results. It resumes a training that was stopped from its newest checkpoint.

A score is the mean return of 20 episodes after the last step of training, with actions without noise. The runs of Coach
are kept: ``python -m benchmarks.trained_policies`` takes their policies.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Iterable

from benchmarks import curves
from benchmarks.pages import ALGORITHMS, PAGE, REPOSITORY, write_between, write_on_pages
from benchmarks.peers import MissingEnvironment
from rl_coach.callbacks import Callback, RunView
from rl_coach.checkpoint import CheckpointStateFile
from rl_coach.coach import CoachInterface
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.runs.plot import Line
from rl_coach.runs.progress import duration

LIST = REPOSITORY / "presets" / "scores.json"
RESULTS = pathlib.Path(__file__).with_name("scores.jsonl")
EXPERIMENTS = REPOSITORY / "experiments" / "scores"
BEGIN, END = "<!-- scores -->", "<!-- end of scores -->"
EPISODES = 20
SECONDS_BETWEEN_CHECKPOINTS = 600
PARTS_OF_CURVE = (0.2, 0.4, 0.6, 0.8, 1.0)
UNTUNED = (
    "CartPole_APPO", "CartPole_ARS", "CartPole_DreamerV3", "ControlSuite_DreamerV3",
    "ControlSuitePixels_DreamerV3", "ExplorationChain_Bootstrapped_DQN", "ExplorationChain_Dueling_DDQN",
    "ExplorationChain_UCB_Q_ensembles", "MiniGridMemory_DreamerV3", "Pendulum_FastSAC", "Pendulum_FastTD3",
)  # fmt: skip
LIBRARIES = {"coach": "Coach", "sb3": "Stable-Baselines3", "sheeprl": "SheepRL"}
SIDES = {"sb3": "benchmarks.sb3_scores", "sheeprl": "benchmarks.sheeprl_side"}
AIMS = {
    "CartPole_DQN": 500, "CartPole_PPO": 500, "Acrobot_DQN": -75, "Acrobot_PPO": -75, "LunarLander_DQN": 200,
    "LunarLander_PPO": 200, "Pendulum_SAC": -160, "Pendulum_TD3": -160, "InvertedPendulum_SAC": 1000,
    "ExplorationChain_Bootstrapped": 10, "ExplorationChain_CuriousDDQN": 10, "ExplorationChain_UCB": 10,
    "Pendulum_NAF": -200, "CartPole_QR_DQN": 475, "CartPole_TRPO": 475,
}  # fmt: skip
# Gymnasium's reward_threshold of each environment. Pendulum has none: its number is our choice.
SOLVED = {
    "CartPole": 475, "Acrobot": -100, "MountainCar": -110, "MountainCarContinuous": 90, "Pendulum": -200,
    "LunarLander": 200, "InvertedPendulum": 950,
}  # fmt: skip
# from the table of rl-baselines3-zoo: one training of each preset, the mean of hundreds of episodes
PUBLISHED = {
    "Acrobot_A2C": -83.4, "Acrobot_DQN": -76.6, "Acrobot_PPO": -73.5, "Acrobot_QR_DQN": -69.1, "CartPole_A2C": 500,
    "CartPole_DQN": 500, "CartPole_PPO": 500, "CartPole_QR_DQN": 500, "CartPole_TRPO": 500, "HalfCheetah_SAC": 9535,
    "HalfCheetah_TD3": 9656, "Hopper_SAC": 2326, "Hopper_TD3": 3606, "Walker2d_SAC": 3863, "Walker2d_TD3": 4718,
    "LunarLander_DQN": 154.4, "LunarLander_PPO": 242.1, "MountainCarContinuous_SAC": 94.7,
    "MountainCar_DQN": -100.8, "MountainCar_QR_DQN": -106, "Pendulum_DDPG": -152.1, "Pendulum_PPO": -172.2,
    "Pendulum_SAC": -157, "Pendulum_TD3": -151.9, "Pendulum_TQC": -151.3, "Pong_PPO": 20.99,
    "Pong_QR_DQN": 20.49,
}  # fmt: skip
SOURCE = (
    f"A score is the mean return of {EPISODES} evaluation episodes after training. There is one score for each seed.\n"
    "[Scores](../benchmarks.md#measurement-of-scores) explains all columns."
)
CURVES = (
    "Learning curves: the mean return of the evaluations during training. A line is the mean over the seeds. The band\n"
    "around it goes from the lowest seed to the highest."
)
HEADER = (
    "| preset | steps | aim | published | library | scores | mean ± deviation | lowest | below the aim "
    "| at 20, 40, 60, 80, 100 % of the steps | wall time | day |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Score:
    """The result of a training.

    :param steps: environment steps, without heatup
    :param score: mean return of ``EPISODES`` episodes after the last step
    :param curve: [steps, mean return] of each evaluation during training
    :param seconds: wall time, evaluations included
    :param day: date of the training, ``YYYY-MM-DD``
    :param framework: the framework of Coach's networks
    """

    preset: str
    library: str
    seed: int
    steps: int
    score: float
    curve: list[tuple[int, float]]
    seconds: float
    day: str
    framework: str = "tensorflow"


class Curve(Callback):
    """Records the learning curve of a run, also of a run that was resumed from a checkpoint.

    :ivar points: [steps, mean return] of each evaluation
    """

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []

    def on_evaluation_end(self, run: RunView) -> None:
        self.points.append((run.steps, statistics.mean(run.evaluation_rewards)))

    def get_state(self) -> dict[str, Any]:
        return {"points": self.points}

    def set_state(self, state: dict[str, Any]) -> None:
        self.points = [(steps, reward) for steps, reward in state["points"]]


def train_coach(preset: str, seed: int, framework: Any, experiments: pathlib.Path) -> Score:
    """Train a preset until its last step. A training that was stopped is resumed from its newest checkpoint.

    :param experiments: the directory that contains the directories of the runs
    """
    name, curve = f"{preset}_{framework}_{seed}", Curve()
    runs = (experiments / name).glob("*")
    stopped = next((run for run in runs if CheckpointStateFile(str(run / "checkpoint")).exists()), None)
    if stopped is not None:
        coach = CoachInterface(resume=str(stopped), callbacks=[curve])
    else:
        coach = CoachInterface(
            preset=path_of(preset), seed=seed, framework=framework, experiment_name=name, callbacks=[curve],
            experiment_path=str(experiments), checkpoint_save_secs=SECONDS_BETWEEN_CHECKPOINTS, checkpoint_keep=1,
        )  # fmt: skip
    manager: Any = coach.run()
    seconds, points = float(manager.progress.seconds), list(curve.points)
    steps = int(manager.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps])
    manager.evaluate(EnvironmentEpisodes(EPISODES))
    score = float(manager.progress.last_evaluation)
    return Score(preset, "coach", seed, steps, score, points, seconds, date.today().isoformat(), framework)


def train_peer(preset: str, library: str, seed: int) -> Score:
    """Train another library with the settings of a preset, and for the same number of steps.

    :param library: ``sb3`` or ``sheeprl``
    :raises SystemExit: if the library has no settings for the preset, or is not installed
    """
    side: Any = importlib.import_module(SIDES[library])
    if preset not in side.SETTINGS:
        raise SystemExit(f"no settings of {LIBRARIES[library]} for {preset}: there are {', '.join(side.SETTINGS)}")
    began = time.monotonic()
    try:
        score, curve = side.train(side.SETTINGS[preset], seed, EPISODES)
    except MissingEnvironment as error:
        raise SystemExit(str(error)) from error
    return Score(preset, library, seed, curve[-1][0], score, curve, time.monotonic() - began, date.today().isoformat())


def write_tables(page: pathlib.Path, algorithms: pathlib.Path, scores: list[Score]) -> None:
    """Write the table and the curves of all scores on ``page``. On each page in ``algorithms`` that has the marks,
    write the table and the curves of the presets that the page names.
    """
    for preset, runs in _by_preset(scores).items():
        curves.write(page.parent, path_of(preset), _lines(preset, runs))
    write_between(page, BEGIN, END, "\n\n".join([table(scores), *pictures(scores)]))
    write_on_pages(algorithms, BEGIN, END, lambda named: table_of_page(named, scores))


def pictures(scores: Iterable[Score], to_docs: str = "") -> list[str]:
    """Paragraphs for a page: one explains the curves, and one for each preset shows its picture.

    :param to_docs: the relative path from the page's directory to ``docs``, for example ``../``
    """
    shown = [
        curves.picture(path_of(preset), _seen(preset, runs), to_docs) for preset, runs in _by_preset(scores).items()
    ]
    return [CURVES, *shown] if shown else []


def _seen(preset: str, runs: list[Score]) -> str:
    """A description of a preset's picture, for readers who cannot see it."""
    said = []
    for trainer, own in _by_trainer(runs).items():
        path = ", ".join(_figure(_mean_at(part, own)) for part in PARTS_OF_CURVE)
        said.append(f"{trainer} has a mean return of {path}")
    return f"Learning curve of {path_of(preset)}: at 20, 40, 60, 80 and 100 % of the steps {'; '.join(said)}"


def _lines(preset: str, runs: list[Score]) -> list[Line]:
    return [
        curves.mean_and_band(f"{path_of(preset)}, {trainer}, seeds: {len(own)}", [one.curve for one in own])
        for trainer, own in _by_trainer(runs).items()
    ]


def _by_trainer(runs: Iterable[Score]) -> dict[str, list[Score]]:
    """The runs of each row of the table, in the order of the rows."""
    found: dict[str, list[Score]] = {}
    for one in sorted(runs, key=lambda one: (one.library, one.seed)):
        found.setdefault(_trainer(one), []).append(one)
    return found


def _by_preset(scores: Iterable[Score]) -> dict[str, list[Score]]:
    found: dict[str, list[Score]] = {}
    for one in sorted(scores, key=lambda one: (one.preset, one.seed)):
        found.setdefault(one.preset, []).append(one)
    return found


def write_list(file: pathlib.Path, scores: list[Score]) -> None:
    """Write the mean score of each preset, for ``coach --list``."""
    own = [one for one in scores if one.library == "coach"]
    means = {path_of(name): _mean_score(name, own) for name in sorted({one.preset for one in own})}
    file.write_text(json.dumps(means, indent=2) + "\n", encoding="utf-8")


def _mean_score(preset: str, scores: list[Score]) -> float:
    return float(f"{statistics.mean(one.score for one in scores if one.preset == preset):.4g}")


def table_of_page(named: set[str], scores: list[Score]) -> str:
    """The text of a page: a table and curves of the named presets with scores, and a line that lists the named presets
    without scores.

    :param named: names on the page
    """
    presets = [preset for preset in measured_presets() if path_of(preset) in named]
    missing = [preset for preset in presets if preset not in {one.preset for one in scores}]
    parts = [f"Not measured yet: {', '.join(f'`{path_of(preset)}`' for preset in missing)}."] if missing else []
    if len(missing) < len(presets):
        own = [one for one in scores if one.preset in presets]
        parts = [SOURCE, table(own), *pictures(own, to_docs="../"), *parts]
    return "\n\n".join(parts)


def table(scores: Iterable[Score]) -> str:
    """A Markdown table with a row for each preset and library. Coach has a row for each framework."""
    groups = {preset: _by_trainer(runs) for preset, runs in _by_preset(scores).items()}
    rows = (_row(preset, trainer, runs) for preset, own in groups.items() for trainer, runs in own.items())
    return "\n".join([HEADER, *rows])


def _trainer(one: Score) -> str:
    return f"{LIBRARIES[one.library]}{' on JAX' if one.framework == 'jax' else ''}"


def _row(preset: str, trainer: str, runs: list[Score]) -> str:
    scores = [one.score for one in runs]
    spread = f" ± {_figure(statistics.stdev(scores))}" if len(scores) > 1 else ""
    cells = [
        f"`{path_of(preset)}`", f"{runs[0].steps:,}", _shown(aim(preset)), _shown(PUBLISHED.get(preset)),
        trainer, ", ".join(map(_figure, scores)), f"{_figure(statistics.mean(scores))}{spread}",
        _figure(min(scores)), _failures(preset, scores),
        ", ".join(_figure(_mean_at(part, runs)) for part in PARTS_OF_CURVE),
        ", ".join(duration(one.seconds) for one in runs), max(one.day for one in runs),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _figure(value: float) -> str:
    """The number with four digits, without an exponent."""
    return f"{float(f'{value:.4g}'):.10g}"


def aim(preset: str) -> float | None:
    """The score that a training must reach (the column "aim"); None if the preset has none."""
    return AIMS.get(preset, SOLVED.get(preset.partition("_")[0]))


def _shown(score: float | None) -> str:
    return "–" if score is None else f"{score:g}"


def _failures(preset: str, scores: list[float]) -> str:
    """The number of trainings with a score below the aim, as text."""
    wanted = aim(preset)
    return "–" if wanted is None else f"{sum(score < wanted for score in scores)} of {len(scores)}"


def _mean_at(part: float, runs: list[Score]) -> float:
    """The mean reward of the runs at a step. The evaluation nearest to the step counts.

    :param part: the step, as a share of the run's steps
    """
    return statistics.mean(min(one.curve, key=lambda point: abs(point[0] - part * one.steps))[1] for one in runs)


def read(results: pathlib.Path) -> list[Score]:
    """The newest result of each preset, library and seed; empty if there is no file."""
    if not results.exists():
        return []
    lines = [Score(**json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines()]
    return list({(one.preset, one.library, one.seed): one for one in lines}.values())


def measured_presets() -> list[str]:
    """The names of the presets that this script trains: all tuned presets, and ``UNTUNED``."""
    return sorted([*(path.stem for path in (REPOSITORY / "presets" / "tuned").glob("[A-Z]*.py")), *UNTUNED])


def path_of(preset: str) -> str:
    """The name of a preset for ``coach -p``."""
    return preset if preset in UNTUNED else f"tuned/{preset}"


def main() -> None:
    """Train what has no result yet and write the tables. Exit with code 1 if a training failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scores", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="presets whose names fit, as Pendulum_*")
    parser.add_argument("--seeds", default="0,1,2", help="the seeds (default %(default)s)")
    parser.add_argument("--libraries", default="coach", help=f"of {', '.join(LIBRARIES)} (default %(default)s)")
    parser.add_argument("--framework", default="tensorflow", help="of Coach (default %(default)s)")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="file of results (default %(default)s)")
    parser.add_argument(
        "--experiments", type=pathlib.Path, default=EXPERIMENTS, help="directory of Coach's runs (default %(default)s)"
    )
    parser.add_argument("--page", type=pathlib.Path, default=PAGE, help="page with the table (default %(default)s)")
    parser.add_argument(
        "--algorithms", type=pathlib.Path, default=ALGORITHMS, help="directory of their pages (default %(default)s)"
    )
    parser.add_argument("--list", type=pathlib.Path, default=LIST, help="file for coach --list (default %(default)s)")
    parser.add_argument("--table", action="store_true", help="train nothing, write the tables and curves")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # this process makes one training
    options = parser.parse_args()
    presets = [name for name in measured_presets() if fnmatch.fnmatch(name, options.only)]
    libraries, seeds = options.libraries.split(","), [int(seed) for seed in options.seeds.split(",")]
    if not presets:
        parser.error(f"no preset with scores fits '{options.only}'")
    if unknown := sorted(set(libraries) - set(LIBRARIES)):
        parser.error(f"no library '{unknown[0]}': there are {', '.join(LIBRARIES)}")
    if options.one:
        _train_and_add(presets[0], libraries[0], seeds[0], options)
        return
    known = {
        (one.preset, one.library, one.seed)
        for one in read(options.results)
        if one.library != "coach" or one.framework == options.framework
    }
    wanted = [] if options.table else [(p, library, s) for p in presets for library in libraries for s in seeds]
    broken = [one for one in wanted if one not in known and not _is_trained(*one, options)]
    write_tables(options.page, options.algorithms, read(options.results))
    write_list(options.list, read(options.results))
    if broken:
        sys.exit("\n".join(f"{preset}, {library}, seed {seed}: training broke" for preset, library, seed in broken))


def _is_trained(preset: str, library: str, seed: int, options: argparse.Namespace) -> bool:
    command = [sys.executable, "-m", "benchmarks.scores", "--one", "--results", str(options.results.resolve())]
    command += ["--experiments", str(options.experiments.resolve())]
    command += ["--framework", options.framework, "--only", preset, "--libraries", library, "--seeds", str(seed)]
    is_trained = subprocess.run(command, cwd=REPOSITORY, check=False).returncode == 0
    write_tables(options.page, options.algorithms, read(options.results))
    return is_trained


def _train_and_add(preset: str, library: str, seed: int, options: argparse.Namespace) -> None:
    if library == "coach":
        score = train_coach(preset, seed, options.framework, options.experiments)
    else:
        score = train_peer(preset, library, seed)
    with open(options.results, "a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(score)) + "\n")
    print(f"{preset}, {LIBRARIES[library]}, seed {seed}: {score.score:.4g}, {duration(score.seconds)}", flush=True)


if __name__ == "__main__":
    # subprocess.run ends a training only if an exception leaves it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)  # the training has saved a checkpoint and printed a line about it
