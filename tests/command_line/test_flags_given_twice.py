"""Flags that are given twice add up or are refused, and numbers have limits."""

from __future__ import annotations

import pytest

from rl_coach.coach import main
from rl_coach.command_line.arguments import get_argument_parser
from tests.faults.processes import SHORT


def test_settings_callbacks_and_services_add_up():
    given = ["-cp", "a.b=1;", "-cp", "c=[1, 2]", "--callback", "X", "--callback=m:Y(a=1)", "--track", "wandb"]
    args = get_argument_parser().parse_args([*given, "--track", "mlflow", "--seed", "1", "--seed", "1"])
    assert (args.custom_parameter, args.callback, args.track) == ("a.b=1; c=[1, 2]", "X; m:Y(a=1)", "wandb,mlflow")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--seed", "1", "--seed", "2"], "argument --seed: it is given twice, as 1 and 2: give it once"),
        (["--seed", "1" * 40], "is too large: it must be"),
        (["-cp", "a['b'] = 1; a[\"b\"] = 2"], "'a['b']' is set twice: leave one out"),
        (["-cp", "a.b = 1", "-cp", "c=1; a.b=2"], "'a.b' is set twice: leave one out"),
        (["-cp", "schedule_params.a = 1; a = 2"], "'a' is set twice: leave one out"),
        (["-cp", "a['b'].c = 1", "-cp", "a['b'] = 2"], "'a['b']' replaces 'a['b'].c': set 'a['b']' first"),
        (["-e", "one", "--experiment_name=two"], "it is given twice, as one and two"),
    ],
)
def test_others_are_refused_in_one_line(capsys, given, said):
    assert main(["-p", "CartPole_DQN", *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_both_settings_hold(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = ["-p", "CartPole_DQN", "-ns", "-e", "e", "-cp", SHORT.format(steps=10)]
    assert main([*given, "-cp", "agent_params.algorithm.discount=0.5"]) == 0
    printed = capsys.readouterr().out
    assert "steps, " in printed.split("trained ")[1] and "Results stored at" not in printed
    (run,) = (tmp_path / "experiments" / "e").iterdir()
    record = (run / "experiment.json").read_text()
    assert "EnvironmentSteps(10); agent_params.algorithm.discount=0.5" in record
