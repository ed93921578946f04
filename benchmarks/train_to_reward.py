"""Trains a preset with one seed until it reaches its target reward.

``python -m benchmarks.train_to_reward CartPole_DQN 0`` trains with seed 0. A third argument names a file: the result is
added to this file as a line of JSON. The exit codes are:

0     the preset has reached its target reward
1     the training failed with an error
3     the preset has reached its limit of episodes first
77    the environment is not installed
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
    """The result of a preset's training with one seed.

    :param threshold: the target reward
    :param limit: the largest number of episodes
    :param reward: the mean of the last ``WINDOW`` evaluations, or of all evaluations if there were fewer
    :param episodes: number of episodes of heatup and training; with several workers, of the first worker
    :param seconds: wall time, evaluations included
    :param day: date of the training, ``YYYY-MM-DD``
    :param curve: [episodes so far, mean reward] of each evaluation; empty if it was not recorded
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
        """The result as a line of text."""
        outcome = "reached" if self.is_reached else "did NOT reach"
        return (
            f"{self.preset}, seed {self.seed}: {outcome} {self.threshold:g} in {self.episodes} episodes, "
            f"{duration(self.seconds)}"
        )


class Finished(Exception):
    """Raised to end a training when its result is known."""


def reaches(rewards: list[float], threshold: float) -> bool:
    """Return True if the mean of the last ``WINDOW`` evaluations is at least ``threshold``.

    With fewer evaluations, the missing ones count as 0 if this lowers the mean. So one lucky first evaluation with a
    positive reward is not enough.
    """
    last = rewards[-WINDOW:]
    return bool(last) and min(sum(last) / WINDOW, sum(last) / len(last)) >= threshold


def episodes_of(graph_manager: Any) -> int:
    """The number of episodes that counts for a preset's limit: episodes of heatup and training, and passes over a data
    set.
    """
    counters = graph_manager.total_steps_counters
    played = sum(counters[phase][EnvironmentEpisodes] for phase in (RunPhase.HEATUP, RunPhase.TRAIN))
    return int(played + graph_manager.improvement.epochs)


def watch(graph_manager: Any) -> list[tuple[int, float]]:
    """Check the mean reward after every evaluation, and raise ``Finished`` when the result is known.

    :return: [episodes so far, mean reward] of each evaluation; the list grows during training
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
    """The result of a training that has ended. Also print it."""
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
    """Like ``train``, with the number of workers that the preset names. Evaluations and episodes of the first worker
    count.
    """
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
    """[episodes so far, mean reward] of each evaluation of the first worker, and the number of its episodes."""
    for path in directory.rglob("worker_0.*.csv"):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        evaluations = [(number, row["Evaluation Reward"]) for number, row in enumerate(rows, start=1)]
        return [(number, float(reward)) for number, reward in evaluations if reward], len(rows)
    return [], 0


def train(preset: str, seed: int, experiment_path: str) -> Outcome:
    """Train with one seed until the preset reaches its target reward or its limit of episodes, and print the result."""
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
    """Train, and write the result. :return: the exit code"""
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
