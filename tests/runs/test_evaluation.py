"""``coach evaluate``: the statistics of an evaluation, and that it needs nothing but a run's directory."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

from rl_coach.runs import experiments
from rl_coach.runs.evaluation import EvaluationStatistics, RunStatistics
from rl_coach.runs.status import is_evaluation, read_status
from rl_coach.runs.summary import print_what_can_be_done
from rl_coach.utilities.system import shell_command
from tests.dashboard.runs import write_run
from tests.zoo.presets import LEVELS

SETTINGS = (
    "heatup_steps=EnvironmentSteps(20); improve_steps=EnvironmentSteps(20); evaluation_steps=EnvironmentEpisodes(0);"
    "agent_params.network_wrappers['main'].middleware_parameters.scheme=[Dense(32)]"
)


def test_statistics_worked_out_by_hand():
    # mean 3, squared deviations 4 + 1 + 0 + 1 + 4 = 10, variance 10 / 4; t for 4 degrees of freedom is 2.776
    statistics = EvaluationStatistics.of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (statistics.episodes, statistics.mean, statistics.minimum, statistics.maximum) == (5, 3.0, 1.0, 5.0)
    assert statistics.standard_deviation == pytest.approx(2.5**0.5)
    assert statistics.confidence_low == pytest.approx(3 - 2.776 * (2.5 / 5) ** 0.5)
    assert statistics.confidence_high == pytest.approx(3 + 2.776 * (2.5 / 5) ** 0.5)
    assert "standard deviation 1.5811, minimum 1, maximum 5, 5 episodes" in str(statistics)


def test_a_single_episode_has_no_spread():
    statistics = EvaluationStatistics.of([7.0])
    assert (statistics.mean, statistics.standard_deviation, statistics.confidence_low) == (7.0, None, None)
    assert "1 episode" in str(statistics)


@pytest.mark.parametrize(("directory", "flags"), [("experiments", ""), ("a user's runs", ' -d "a user\'s runs"')])
def test_the_last_line_of_a_run_shows_it_next_to_the_other_runs(directory, flags, tmp_path, monkeypatch, capsys):
    pytest.importorskip("panel")
    monkeypatch.chdir(tmp_path)
    for experiment in ("mine", "other"):
        path = write_run(tmp_path / directory, experiment, "21_11_2026-10_30", rows=3)
    print_what_can_be_done(str(path.parent), False, "coach evaluate x")
    line = capsys.readouterr().out.splitlines()[-1]
    words = shlex.split(line.removeprefix("look at it: "))
    assert words == [*shlex.split(shell_command("coach", "dashboard")), *shlex.split(flags)]
    command = [sys.executable, "-m", "rl_coach.coach", *words[1:], "--no-open", "--port", "0", "--no-cache"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.terminate()
    assert said.startswith(f"The dashboard of {tmp_path / directory} is at http://")


def coach(directory, *arguments: str) -> str:
    command = [sys.executable, "-m", "rl_coach.coach", *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_printed_line_plays_any_run_back(tmp_path):
    tmp_path = tmp_path / "a user's runs"
    tmp_path.mkdir()
    (tmp_path / "levels.py").write_text(LEVELS)
    said = coach(
        tmp_path, "-p", "CartPole_DQN", "-et", "levels.py:Swinging", "-e", "mine", "-cp", SETTINGS, "-c", "-tb"
    )
    (trained,) = (tmp_path / "experiments" / "mine").iterdir()
    (line,) = re.findall(r"^TensorBoard: (.*)$", said, re.MULTILINE)
    assert shlex.split(line)[-1] == str(trained / "tensorboard")
    (line,) = re.findall(r"^play it back: (.*)$", said, re.MULTILINE)
    words = shlex.split(line)
    assert words[1:] == ["evaluate", f"experiments/mine/{trained.name}"]
    said = coach(tmp_path, *words[1:], "--steps", "10", "--seed", "1")
    (evaluation,) = set((tmp_path / "experiments" / "mine").iterdir()) - {trained}
    status = read_status(evaluation)
    assert is_evaluation(status) and not is_evaluation(read_status(trained))
    assert (status["state"], status["evaluation"]["episodes"]) == ("finished", 1)
    assert "evaluation: reward -" in said and "in 1 episode" in said and "updates in" not in said
    runs = experiments.load(tmp_path / "experiments").runs
    assert sorted(runs["kind"]) == ["evaluation", "training"]


def test_statistics_of_runs():
    statistics = RunStatistics.of([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (statistics.runs, statistics.mean, statistics.interquartile_mean) == (5, 22.0, 3.0)
    assert statistics.standard_deviation == pytest.approx(43.6177, abs=1e-4)
    half = 2.776 * 43.6177 / 5**0.5
    assert (statistics.low, statistics.high) == pytest.approx((22 - half, 22 + half), abs=0.01)
    assert str(statistics) == (
        "mean 22 (95% interval -32.15 to 76.15), standard deviation 43.618, interquartile mean 3, 5 runs"
    )
    two = RunStatistics.of([1.0, 2.0])
    assert two.low is None and str(two).startswith("mean 1.5 (no interval of 2 runs), standard deviation 0.70711")
    alone = RunStatistics.of([7.0])
    assert (alone.mean, alone.standard_deviation, alone.low) == (7.0, None, None)
    assert str(alone) == "7 of 1 run: a single run has no deviation"


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_intervals_of_normal_scores_contain_their_mean(runs):
    found = [RunStatistics.of(scores) for scores in np.random.default_rng(1).normal(0, 1, (1000, runs)).tolist()]
    assert 0.93 <= np.mean([one.low <= 0 <= one.high for one in found]) <= 0.97


def test_an_interval_stays_inside_the_range_of_rewards():
    assert RunStatistics.of([200.0, 200.0, 185.0], (0, 200)).high == 200
    assert EvaluationStatistics.of([200.0, 185.0], (0, 200)).confidence_high == 200
    assert EvaluationStatistics.of([1.0, 30.0], (0, 200)).confidence_low == 0
    outside = EvaluationStatistics.of([300.0, 185.0], (0, 200))
    assert outside.confidence_high > 300, "a range that is wrong does not count"
