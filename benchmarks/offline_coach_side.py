"""Trains the agents of ``benchmarks.offline`` with Coach."""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any

from benchmarks.offline import COMPARISONS, EPISODES, Comparison
from rl_coach.base_parameters import TaskParameters, VisualizationParameters
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import EnvironmentEpisodes, RunPhase
from rl_coach.environments.gym_environment import GymVectorEnvironment


def score_of(comparison: Comparison, data: pathlib.Path, seed: int) -> float:
    """Train the preset's agent on recorded data.

    :param data: the file of the data; if it does not exist, the data are recorded first
    :return: the mean return of ``EPISODES`` evaluation episodes
    """
    if not data.exists():
        data.parent.mkdir(parents=True, exist_ok=True)
        _record(next(one for one in COMPARISONS if one.preset == comparison.data), data)
    manager = _manager(comparison)
    manager.agent_params.memory.load_memory_from_file_path = str(data)
    manager.experience_generating_agent_params = None
    agent = _created(manager, seed)
    agent.phase = RunPhase.TRAIN
    for _ in range(comparison.updates // 100):
        agent.update_loop.learn(100)
    manager.evaluate(EnvironmentEpisodes(EPISODES))
    return float(manager.progress.last_evaluation)


def _record(comparison: Comparison, data: pathlib.Path) -> None:
    """Record the data of a preset with seed 0: its data-generating agent plays, and the memory of the learning agent is
    written to a file.
    """
    manager = _manager(comparison)
    agent = _created(manager, 0)
    manager._heat_up()
    agent.memory.save(data)


def _manager(comparison: Comparison) -> Any:
    """The graph manager of the preset, but without off-policy evaluation, which would only take time."""
    manager = preset_catalogue.load(comparison.preset)
    manager.env_params = GymVectorEnvironment(level=comparison.level)
    manager.visualization_parameters = VisualizationParameters(dump_csv=False, dump_parameters_documentation=False)
    manager.agent_params.network_wrappers.pop("reward_model", None)
    manager.train_to_eval_ratio = 1
    return manager


def _created(manager: Any, seed: int) -> Any:
    manager.create_graph(TaskParameters(experiment_path=tempfile.mkdtemp(), seed=seed))
    return manager.get_agent()
