"""Coach's side of the comparison of agents that learn from fixed data."""

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
    """Train as the preset says, on recorded data, and evaluate.

    :param data: the file of the data, which are recorded if it is not there
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
    """Write what the agent of the preset that generates data plays with seed 0, as its learning agent gets it."""
    manager = _manager(comparison)
    agent = _created(manager, 0)
    manager._heat_up()
    agent.memory.save(data)


def _manager(comparison: Comparison) -> Any:
    """The preset's, without off-policy evaluation, whose reward model would only take time."""
    manager = preset_catalogue.load(comparison.preset)
    manager.env_params = GymVectorEnvironment(level=comparison.level)
    manager.visualization_parameters = VisualizationParameters(dump_csv=False, dump_parameters_documentation=False)
    manager.agent_params.network_wrappers.pop("reward_model", None)
    manager.train_to_eval_ratio = 1
    return manager


def _created(manager: Any, seed: int) -> Any:
    manager.create_graph(TaskParameters(experiment_path=tempfile.mkdtemp(), seed=seed))
    return manager.get_agent()
