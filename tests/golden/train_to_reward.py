"""Train one preset with one seed until it reaches its reward: ``python train_to_reward.py CartPole_DQN 0``.

Exits with 0 if it does, 1 if the episodes that it may take pass first, 77 if its environment is not installed.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from rl_coach import preset_catalogue
from rl_coach.base_parameters import TaskParameters
from rl_coach.utils import CoachError

REACHED, NOT_REACHED, NOT_INSTALLED = 0, 1, 77
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


def watch(graph_manager: Any, rewards: list[float]) -> None:
    """After every evaluation look at its mean reward, and raise ``Finished`` once the outcome is known."""
    validation = graph_manager.preset_validation_params
    evaluate = graph_manager.evaluate

    def evaluate_and_look(*args: Any, **kwargs: Any) -> Any:
        result = evaluate(*args, **kwargs)
        rewards.append(graph_manager.progress.last_evaluation)
        if reaches(rewards, validation.min_reward_threshold):
            raise Finished(True)
        if graph_manager.get_agent().current_episode > validation.max_episodes_to_achieve_reward:
            raise Finished(False)
        return result

    graph_manager.evaluate = evaluate_and_look


def train(preset: str, seed: int, experiment_path: str) -> bool:
    """Whether ``preset`` reaches its reward with this seed."""
    graph_manager: Any = preset_catalogue.load(preset)
    level = graph_manager.preset_validation_params.reward_test_level
    if level is not None:
        graph_manager.env_params.level.select(level)
    rewards: list[float] = []
    watch(graph_manager, rewards)
    graph_manager.create_graph(TaskParameters(experiment_path=experiment_path, seed=seed))
    try:
        graph_manager.improve()
    except Finished as finished:
        return finished.is_reached
    finally:
        graph_manager.close()
    return False


def main(preset: str, seed: str) -> int:
    with tempfile.TemporaryDirectory() as directory:
        try:
            return REACHED if train(preset, int(seed), directory) else NOT_REACHED
        except CoachError as error:
            if "rl_coach[" not in str(error):
                raise
            print(f"  {error}")
            return NOT_INSTALLED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
