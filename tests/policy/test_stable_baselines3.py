"""A policy that Stable-Baselines3 has made predicts the same in Coach."""

from __future__ import annotations

import pathlib
import zipfile
from typing import Any

import gymnasium
import numpy as np
import pytest

from rl_coach.coach import main
from rl_coach.policy import Policy
from tests.frameworks import FRAMEWORK

sb3 = pytest.importorskip("stable_baselines3", reason="the peer is not installed: pip install '.[bench]'")


def saved(algorithm: str, level: str, layers: list[int], directory: pathlib.Path) -> tuple[Any, pathlib.Path]:
    given = {} if algorithm == "DQN" else {"activation_fn": sb3.common.policies.nn.Tanh}
    settings = {"net_arch": layers, **(given if algorithm == "PPO" else {})}
    noise = {"use_sde": True} if (algorithm, level) == ("PPO", "Pendulum-v1") else {}
    model = getattr(sb3, algorithm)("MlpPolicy", level, policy_kwargs=settings, seed=3, device="cpu", **noise)
    model.save(directory / "model.zip")
    return model, directory / "model.zip"


def imported(file: pathlib.Path, preset: str, *flags: str) -> int:
    return main(["import", "sb3", str(file), "-p", preset, "-f", FRAMEWORK.name, "-e", "imported", *flags])


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("algorithm", "preset", "layers"),
    [
        ("PPO", "tuned/CartPole_PPO", [64, 64]),
        ("PPO", "tuned/Pendulum_PPO", [64, 64]),
        ("DQN", "tuned/CartPole_DQN", [256, 256]),
        ("SAC", "tuned/Pendulum_SAC", [256, 256]),
    ],
)
def test_it_predicts_the_same(algorithm, preset, layers, tmp_path):
    level = "CartPole-v1" if "CartPole" in preset else "Pendulum-v1"
    model, file = saved(algorithm, level, layers, tmp_path)
    assert imported(file, preset) == 0
    (experiment,) = (tmp_path / "experiments" / "imported").iterdir()
    policy = Policy.load(experiment)
    space = gymnasium.make(level).observation_space
    space.seed(1)
    for row in (np.clip(space.sample(), -3, 3).astype(np.float32) for _ in range(20)):
        action, _ = model.predict(row, deterministic=True)
        np.testing.assert_allclose(policy.act(row), action, rtol=1e-4, atol=1e-5)


def test_a_network_of_another_shape_is_refused_and_nothing_is_left(tmp_path, capsys):
    _, file = saved("PPO", "CartPole-v1", [32, 32], tmp_path)
    assert imported(file, "tuned/CartPole_PPO") == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "has layers 4x32 32 32x32 32 32x1 1 4x32 " in line
    assert "but network 'main' of the preset has 4x64 64 64x64" in line
    assert not (tmp_path / "experiments" / "imported").exists() or not any(
        (tmp_path / "experiments" / "imported").iterdir()
    )


def test_another_algorithm_is_refused(tmp_path, capsys):
    _, file = saved("DQN", "CartPole-v1", [64, 64], tmp_path)
    assert imported(file, "tuned/CartPole_PPO") == 2
    assert "has no weights for the agent's head with the outputs" in capsys.readouterr().err


def test_what_is_no_policy_is_refused(tmp_path, capsys):
    file = tmp_path / "other.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data", "{}")
    assert imported(file, "tuned/CartPole_PPO") == 2
    assert "is not a file that model.save of Stable-Baselines3 has written" in capsys.readouterr().err
