"""The events of a run as lines for programs, such as log analysers and cloud services.

The lines are printed only if ``screen.is_read_by_programs`` is True.
"""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from rl_coach.core_types import RunPhase
from rl_coach.logger import screen


def log_episode(
    phase: RunPhase,
    name: str,
    worker: int | None,
    episode: int,
    reward: float,
    exploration: Any,
    steps: int,
    training_iteration: int,
) -> None:
    """Print a line for an episode that has ended: ``Training> <time> , Name=main_level/agent, Worker=0, Episode=3,
    ...``.

    :param name: the agent's full name
    :param worker: the worker's number; None if there are no workers
    :param exploration: the exploration parameter; the line contains it only if it is one number
    :param steps: environment steps, heatup included
    """
    line: dict[str, Any] = {"Name": name}
    if worker is not None:
        line["Worker"] = worker
    line |= {"Episode": episode, "Total reward": round(float(reward), 2)}
    if np.size(exploration) == 1 and exploration is not None:
        line["Exploration"] = round(float(np.ravel(exploration)[0]), 2)
    line |= {"Steps": steps, "Training iteration": training_iteration}
    screen.log_dict(line, prefix=phase.value)


def log_epochs(epochs: int, signals: Mapping[str, np.ndarray], learning_rate: float) -> None:
    """Print a line for each epoch of policy optimisation: ``Policy training> <time> , Surrogate loss=..., ...``.

    :param signals: [epochs * M] each, the numbers of all M minibatches of all epochs in their order
    """
    means = {name: values.reshape(epochs, -1).mean(axis=1) for name, values in signals.items()}
    for epoch in range(epochs):
        line = {name: float(f"{values[epoch]:.3g}") for name, values in means.items()}
        screen.log_dict(
            {**line, "training epoch": epoch, "learning_rate": float(learning_rate)}, prefix="Policy training"
        )
