"""Each preset reaches the reward that it promises, within the episodes that it promises, in two of three seeds."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from benchmarks.golden import presets_with_a_reward
from benchmarks.train_to_reward import NOT_INSTALLED, NOT_REACHED, REACHED, WINDOW, reaches
from rl_coach.command_line import preset_catalogue
from rl_coach.command_line.preset_catalogue import list_all_presets

REPOSITORY = pathlib.Path(__file__).parents[2]
SEEDS = (0, 1, 2)
ENOUGH = 2


def run(preset: str, seed: int) -> int:
    """The exit code of ``train_to_reward`` in a process of its own; its lines are passed on as they come."""
    print(f"\n{preset}, seed {seed}", flush=True)
    command = [sys.executable, "-m", "benchmarks.train_to_reward", preset, str(seed)]
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


@pytest.mark.golden
@pytest.mark.parametrize("preset", presets_with_a_reward())
def test_reaches_its_reward(preset):
    outcomes: list[int] = []
    for seed in SEEDS:
        outcomes.append(run(preset, seed))
        if outcomes[-1] == NOT_INSTALLED:
            pytest.skip(f"the environment of {preset} is not installed")
        assert outcomes[-1] in (REACHED, NOT_REACHED), f"seed {seed} broke with exit code {outcomes[-1]}"
        if max(outcomes.count(REACHED), outcomes.count(NOT_REACHED)) == ENOUGH:
            break
    assert outcomes.count(REACHED) >= ENOUGH, f"{outcomes.count(REACHED)} of {len(outcomes)} seeds reached it"


def test_every_preset_that_has_a_reward_is_trained():
    parameters = {name: preset_catalogue.load(name).preset_validation_params for name in list_all_presets()}
    assert presets_with_a_reward() == [name for name, it in parameters.items() if it.test or it.min_reward_threshold]


def test_what_breaks_has_not_merely_missed_its_reward(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert run("no_such_preset", 0) not in (REACHED, NOT_REACHED, NOT_INSTALLED)
    assert "no preset 'no_such_preset'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("rewards", "threshold", "is_reached"),
    [
        ([], 150, False),
        ([200], 150, False),
        ([200] * 7, 150, False),
        ([200] * 8, 150, True),
        ([0] * 50 + [150] * WINDOW, 150, True),
        ([0] * 50 + [149] + [150] * (WINDOW - 1), 150, False),
        ([-8], -7.9, False),
        ([-7], -7.9, True),
        ([-8] * WINDOW + [-7], -7.9, True),
    ],
)
def test_the_rule(rewards, threshold, is_reached):
    assert reaches(rewards, threshold) is is_reached
