"""``coach tune`` finds a preset again whose settings were made bad, within 40 trials."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from rl_coach.runs import run_group

CART_POLE = '''
"""DQN balances a pole, badly: steps are too large, and it explores for ever and does not look ahead."""

from rl_coach.core_types import EnvironmentSteps
from rl_coach.presets.CartPole_DQN import graph_manager
from rl_coach.schedules import LinearSchedule

agent_params = graph_manager.agent_params
agent_params.algorithm.discount = 0.5
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(5000)
agent_params.network_wrappers["main"].learning_rate = 0.05
agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.5, 50000)
'''
PENDULUM = '''
"""Soft actor-critic swings up a pendulum, badly: its steps are too large, and it does not look ahead."""

from rl_coach.presets.tuned.Pendulum_SAC import graph_manager

agent_params = graph_manager.agent_params
agent_params.algorithm.discount = 0.5
agent_params.algorithm.rate_for_copying_weights_to_target = 1e-5
for network in agent_params.network_wrappers.values():
    network.learning_rate = 0.1
'''


def coach(place: pathlib.Path, *given: str) -> None:
    assert subprocess.run([sys.executable, "-m", "rl_coach", *given], cwd=place, check=False).returncode == 0


def mean_of_seeds(place: pathlib.Path, preset: str, steps: int) -> float:
    """The mean of the last evaluations of two seeds that no trial was trained with."""
    settings = (
        f"improve_steps=EnvironmentSteps({steps}); evaluation_steps=EnvironmentEpisodes(10); "
        f"steps_between_evaluation_periods=EnvironmentSteps({steps // 5})"
    )
    coach(place, "-p", preset, "--seeds", "1001,1002", "-e", "check", "-cp", settings)
    newest = max((place / "experiments" / "check").iterdir(), key=lambda path: path.stat().st_mtime)
    (statistics,) = run_group.read(newest)["statistics"].values()
    return statistics["mean"]


@pytest.mark.golden
@pytest.mark.parametrize(
    ("text", "steps", "bad", "good"), [(CART_POLE, 12_000, 100, 150), (PENDULUM, 8_000, -800, -250)],
    ids=["CartPole_DQN", "Pendulum_SAC"],
)  # fmt: skip
def test_a_badly_tuned_preset_is_found_again(tmp_path, text, steps, bad, good):
    (tmp_path / "badly_tuned.py").write_text(text)
    assert mean_of_seeds(tmp_path, "badly_tuned.py", steps) < bad
    coach(tmp_path, "tune", "-p", "badly_tuned.py", "--trials", "40", "--steps", str(steps), "--seed", "1")
    (tuned,) = (tmp_path / "experiments" / "badly_tuned").iterdir()
    assert mean_of_seeds(tmp_path, str(tuned / "best.py"), steps) >= good
