"""Train one preset with one seed until it reaches its reward: ``python -m benchmarks.train_to_reward CartPole_DQN 0``.

Exits with 0 if it does, 3 if the episodes that it may take pass first, 77 if its environment is not installed; with 1,
as Python does, if training breaks. A third argument names a file to which the outcome is added as a line of JSON.
"""

from __future__ import annotations

import contextlib
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from benchmarks.curves import Curve
from rl_coach.coach import CoachInterface
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import EnvironmentEpisodes, RunPhase
from rl_coach.runs.progress import duration
from rl_coach.utils import CoachError

REACHED, NOT_REACHED, NOT_INSTALLED = 0, 3, 77
WINDOW = 10


@dataclass(frozen=True)
class Outcome:
    """A preset's training with one seed.

    :param threshold: the reward that it must reach
    :param limit: the episodes that it may take
    :param reward: the mean of the last ``WINDOW`` evaluations, or of as many as there were
    :param episodes: those of heatup and training, of the first worker where there are several
    :param seconds: wall time, evaluations included
    :param day: ``YYYY-MM-DD``
    :param curve: [episodes so far, mean reward] of each evaluation; empty where it was not kept
    """

    preset: str
    seed: int
    is_reached: bool
    threshold: float
    limit: int
    reward: float
    episodes: int
    seconds: float
    day: str
    curve: Curve = ()

    @property
    def line(self) -> str:
        """The outcome for people."""
        outcome = "reached" if self.is_reached else "did NOT reach"
        return (
            f"{self.preset}, seed {self.seed}: {outcome} {self.threshold:g} in {self.episodes} episodes, "
            f"{duration(self.seconds)}"
        )


class Finished(Exception):
    """The question is answered."""


def reaches(rewards: list[float], threshold: float) -> bool:
    """True if the mean of the last ``WINDOW`` evaluations has come to ``threshold``.

    Evaluations that are missing in the window count as 0 where that makes it harder: where rewards are positive, a
    lucky first evaluation is no success.
    """
    last = rewards[-WINDOW:]
    return bool(last) and min(sum(last) / WINDOW, sum(last) / len(last)) >= threshold


def episodes_of(graph_manager: Any) -> int:
    """The episodes of heatup and training, which a preset's limit counts; of a data set, each pass over it as one."""
    counters = graph_manager.total_steps_counters
    played = sum(counters[phase][EnvironmentEpisodes] for phase in (RunPhase.HEATUP, RunPhase.TRAIN))
    return int(played + graph_manager.improvement.epochs)


def watch(graph_manager: Any) -> list[tuple[int, float]]:
    """After every evaluation look at its mean reward, and raise ``Finished`` once the outcome is known.

    :return: episodes so far and reward of each evaluation; the list grows
    """
    validation = graph_manager.preset_validation_params
    evaluate = graph_manager.evaluate
    curve: list[tuple[int, float]] = []

    def evaluate_and_look(*args: Any, **kwargs: Any) -> Any:
        result = evaluate(*args, **kwargs)
        curve.append((episodes_of(graph_manager), float(graph_manager.progress.last_evaluation)))
        is_over = curve[-1][0] > validation.max_episodes_to_achieve_reward
        if is_over or reaches(_rewards(curve), validation.min_reward_threshold):
            raise Finished
        return result

    graph_manager.evaluate = evaluate_and_look
    return curve


def _rewards(curve: Curve) -> list[float]:
    return [reward for _, reward in curve]


def outcome_of(preset: str, seed: int, validation: Any, curve: Curve, episodes: int, seconds: float) -> Outcome:
    """The outcome of a training that has ended, and says it."""
    rewards = _rewards(curve)
    last = rewards[-WINDOW:]
    is_reached = any(reaches(rewards[:end], validation.min_reward_threshold) for end in range(1, len(rewards) + 1))
    outcome = Outcome(
        preset=preset,
        seed=seed,
        is_reached=is_reached,
        threshold=validation.min_reward_threshold,
        limit=validation.max_episodes_to_achieve_reward,
        reward=sum(last) / len(last) if last else float("nan"),
        episodes=episodes,
        seconds=seconds,
        day=date.today().isoformat(),
        curve=list(curve),
    )
    print(outcome.line, flush=True)
    return outcome


def train_with_workers(preset: str, seed: int, directory: str) -> Outcome:
    """As ``train``, with as many workers as the preset names; evaluations and episodes are the first worker's."""
    validation = preset_catalogue.load(preset).preset_validation_params  # type: ignore[attr-defined]
    command = [sys.executable, "-m", "rl_coach.coach", "-p", preset, "-ep", directory, "--seed", str(seed), "-ns"]
    command += ["-n", str(validation.num_workers)]
    if validation.reward_test_level:
        command += ["-lvl", validation.reward_test_level]
    began, curve, is_reached, episodes = time.monotonic(), [], False, 0  # type: ignore[var-annotated]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while run.poll() is None and not is_reached and episodes <= validation.max_episodes_to_achieve_reward:
            time.sleep(1.0)
            curve, episodes = first_worker(pathlib.Path(directory))
            rewards = _rewards(curve)
            is_reached = any(
                reaches(rewards[:end], validation.min_reward_threshold) for end in range(1, len(rewards) + 1)
            )
        if run.poll():
            raise SystemExit(run.returncode)
    finally:
        run.terminate()
        run.wait()
    return outcome_of(preset, seed, validation, curve, episodes, time.monotonic() - began)


def first_worker(directory: pathlib.Path) -> tuple[list[tuple[int, float]], int]:
    """The curve of the first worker so far, and the number of its episodes."""
    for path in directory.rglob("worker_0.*.csv"):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        evaluations = [(number, row["Evaluation Reward"]) for number, row in enumerate(rows, start=1)]
        return [(number, float(reward)) for number, reward in evaluations if reward], len(rows)
    return [], 0


def train(preset: str, seed: int, experiment_path: str) -> Outcome:
    """Train ``preset`` with this seed until it reaches its reward or its episodes have passed. Says so, too."""
    validation: Any = preset_catalogue.load(preset).preset_validation_params  # type: ignore[attr-defined]
    if validation.num_workers > 1:
        return train_with_workers(preset, seed, experiment_path)
    coach = CoachInterface(
        preset=preset, level=validation.reward_test_level, seed=seed, experiment_path=experiment_path
    )
    graph_manager: Any = coach.graph_manager
    curve = watch(graph_manager)
    with contextlib.suppress(Finished):
        coach.run()
    return outcome_of(
        preset, seed, validation, curve, episodes_of(graph_manager), float(graph_manager.progress.seconds)
    )


def main(preset: str, seed: str, results: str | None = None) -> int:
    """:return: the exit code"""
    with tempfile.TemporaryDirectory() as directory:
        try:
            outcome = train(preset, int(seed), directory)
        except CoachError as error:
            if not any(hint in str(error) for hint in ("pip install", "not installed")):
                raise
            print(f"  {error}")
            return NOT_INSTALLED
    if results is not None:
        with open(results, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")
    return REACHED if outcome.is_reached else NOT_REACHED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
