"""Train one preset with one seed until it reaches its reward: ``python train_to_reward.py CartPole_DQN 0``.

Exits with 0 if it does, 3 if the episodes that it may take pass first, 77 if its environment is not installed; with 1,
as Python does, if training breaks.
"""

from __future__ import annotations

import csv
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

from rl_coach.coach import CoachInterface
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import EnvironmentEpisodes, RunPhase
from rl_coach.runs.progress import duration
from rl_coach.utils import CoachError

REACHED, NOT_REACHED, NOT_INSTALLED = 0, 3, 77
WINDOW = 10


class Finished(Exception):
    """The question is answered: ``is_reached``."""

    def __init__(self, is_reached: bool):
        self.is_reached = is_reached


def reaches(rewards: list[float], threshold: float) -> bool:
    """Whether the mean of the last ``WINDOW`` evaluations has come to ``threshold``.

    Evaluations that are missing in the window count as 0 where that makes it harder: where rewards are positive, a
    lucky first evaluation is no success.
    """
    last = rewards[-WINDOW:]
    return bool(last) and min(sum(last) / WINDOW, sum(last) / len(last)) >= threshold


def episodes_of(graph_manager: Any) -> int:
    """The episodes of heatup and training, which a preset's limit counts."""
    counters = graph_manager.total_steps_counters
    return sum(counters[phase][EnvironmentEpisodes] for phase in (RunPhase.HEATUP, RunPhase.TRAIN))


def watch(graph_manager: Any) -> None:
    """After every evaluation look at its mean reward, and raise ``Finished`` once the outcome is known."""
    validation = graph_manager.preset_validation_params
    evaluate = graph_manager.evaluate
    rewards: list[float] = []

    def evaluate_and_look(*args: Any, **kwargs: Any) -> Any:
        result = evaluate(*args, **kwargs)
        rewards.append(graph_manager.progress.last_evaluation)
        if reaches(rewards, validation.min_reward_threshold):
            raise Finished(True)
        if episodes_of(graph_manager) > validation.max_episodes_to_achieve_reward:
            raise Finished(False)
        return result

    graph_manager.evaluate = evaluate_and_look


def train_with_workers(preset: str, seed: int, directory: str) -> bool:
    """As ``train``, with as many workers as the preset names; evaluations and episodes are the first worker's."""
    validation = preset_catalogue.load(preset).preset_validation_params  # type: ignore[attr-defined]
    command = [sys.executable, "-m", "rl_coach.coach", "-p", preset, "-ep", directory, "--seed", str(seed), "-ns"]
    command += ["-n", str(validation.num_workers)]
    if validation.reward_test_level:
        command += ["-lvl", validation.reward_test_level]
    began, is_reached, episodes = time.monotonic(), False, 0
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while run.poll() is None and not is_reached and episodes <= validation.max_episodes_to_achieve_reward:
            time.sleep(1.0)
            rewards, episodes = _first_worker(pathlib.Path(directory))
            is_reached = any(
                reaches(rewards[:end], validation.min_reward_threshold) for end in range(1, len(rewards) + 1)
            )
        if run.poll():
            raise SystemExit(run.returncode)
    finally:
        run.terminate()
        run.wait()
    outcome = "reached" if is_reached else "did NOT reach"
    took = duration(time.monotonic() - began)
    print(
        f"{preset}, seed {seed}, {validation.num_workers} workers: {outcome} {validation.min_reward_threshold:g} "
        f"in {episodes} episodes of each, {took}",
        flush=True,
    )
    return is_reached


def _first_worker(directory: pathlib.Path) -> tuple[list[float], int]:
    """The evaluations of the first worker so far, and the number of its episodes."""
    for path in directory.rglob("worker_0.*.csv"):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        return [float(row["Evaluation Reward"]) for row in rows if row["Evaluation Reward"]], len(rows)
    return [], 0


def train(preset: str, seed: int, experiment_path: str) -> bool:
    """Whether ``preset`` reaches its reward with this seed. Says so, too."""
    if preset_catalogue.load(preset).preset_validation_params.num_workers > 1:  # type: ignore[attr-defined]
        return train_with_workers(preset, seed, experiment_path)
    level = preset_catalogue.load(preset).preset_validation_params.reward_test_level  # type: ignore[attr-defined]
    coach = CoachInterface(preset=preset, level=level, seed=seed, experiment_path=experiment_path)
    graph_manager: Any = coach.graph_manager
    watch(graph_manager)
    is_reached = False
    try:
        coach.run()
    except Finished as finished:
        is_reached = finished.is_reached
    threshold = graph_manager.preset_validation_params.min_reward_threshold
    episodes, seconds = episodes_of(graph_manager), graph_manager.progress.seconds
    outcome = "reached" if is_reached else "did NOT reach"
    print(f"{preset}, seed {seed}: {outcome} {threshold:g} in {episodes} episodes, {duration(seconds)}", flush=True)
    return is_reached


def main(preset: str, seed: str) -> int:
    with tempfile.TemporaryDirectory() as directory:
        try:
            return REACHED if train(preset, int(seed), directory) else NOT_REACHED
        except CoachError as error:
            if not any(hint in str(error) for hint in ("pip install", "not installed")):
                raise
            print(f"  {error}")
            return NOT_INSTALLED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
