"""A loop that is compiled as a whole learns as much from each step as the ordinary loop: curves of ten seeds."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import Frameworks, TaskParameters
from rl_coach.compiled_level_manager import CompiledLevelManager
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.runs.statistics import improvement_interval, interval_over_runs, iqm
from tests.frameworks import FRAMEWORK

pytestmark = [
    pytest.mark.golden,
    pytest.mark.skipif(FRAMEWORK is not Frameworks.jax, reason="loops are compiled on JAX (COACH_TEST_FRAMEWORK)"),
]

SEEDS, EVALUATIONS = 10, 5
STEPS = {"CartPole_PPO": 40_000, "CartPole_DQN": 20_000, "CartPole_A2C": 100_000, "CartPole_RecurrentPPO": 20_000}


def curve(preset: str, seed: int, directory: Any, is_compiled: bool) -> list[float]:
    """The mean returns of the evaluations of a run."""
    manager = copy.deepcopy(importlib.import_module(f"rl_coach.presets.tuned.{preset}").graph_manager)
    manager.env_params.level, steps = "gymnax:CartPole-v1", STEPS[preset]
    if preset == "CartPole_DQN":
        manager.agent_params.algorithm.n_step = 1  # more have no compiled form
    manager.improve_steps = EnvironmentSteps(steps)
    manager.steps_between_evaluation_periods = EnvironmentSteps(steps // EVALUATIONS)
    manager.evaluation_steps = EnvironmentEpisodes(10)
    manager.create_graph(TaskParameters(Frameworks.jax, experiment_path=str(directory), seed=seed))
    assert isinstance(manager.level_managers[0], CompiledLevelManager) is is_compiled
    means, evaluate = [], manager.evaluate

    def noting(*given: Any) -> Any:
        answer = evaluate(*given)
        means.append(float(np.mean(manager.evaluation_rewards)))
        return answer

    manager.evaluate = noting
    manager.improve()
    manager.close()
    return means[-EVALUATIONS:]


@pytest.mark.parametrize("preset", STEPS)
def test_learning_curves_of_both_loops_overlap(preset, tmp_path, monkeypatch):
    pytest.importorskip("gymnax", reason="gymnax is not installed (pip install '.[jax,gymnax]')")
    curves = {}
    for name in ("compiled", "ordinary"):
        if name == "ordinary":
            monkeypatch.setattr("rl_coach.graph_managers.basic_rl_graph_manager.why_not_compiled", lambda *_: "a test")
        curves[name] = np.array(
            [curve(preset, seed, tmp_path / f"{name}-{seed}", name == "compiled") for seed in range(SEEDS)]
        )
        low, high = interval_over_runs([curves[name]])
        print(
            f"{preset}, {name}: "
            + ", ".join(f"{m:.0f} ({a:.0f} to {b:.0f})" for m, a, b in zip(iqm(curves[name]), low, high))
        )
    (low, high), (other_low, other_high) = (interval_over_runs([curves[name]]) for name in curves)
    assert np.all((low <= other_high) & (other_low <= high))
    worst, best = improvement_interval([curves["compiled"].mean(axis=1)], [curves["ordinary"].mean(axis=1)])
    print(f"{preset}: the compiled loop is better with probability {worst:.2f} to {best:.2f}")
    assert worst <= 0.5 <= best
