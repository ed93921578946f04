"""``experiment.json`` and what ``--resume`` makes of it."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from rl_coach.coach import BAD_INPUT, DONE, CoachInterface, main
from rl_coach.logger import screen
from rl_coach.runs import record
from tests.zoo.presets import LEVELS, RECORDER


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    (tmp_path / "recorder.py").write_text(RECORDER)


def run(*flags: str) -> pathlib.Path:
    assert main(["-p", "recorder.py", "-e", "mine", *flags]) == DONE
    (directory,) = pathlib.Path("experiments/mine").iterdir()
    return directory


def record_of(directory):
    return json.loads((directory / "experiment.json").read_text())


def test_how_a_run_was_started_is_written_down():
    run_of = record_of(run("--seed", "3", "-lvl", "Acrobot-v1"))
    assert run_of["run"]["seed"] == 3
    assert {"command_line", "git_revision", "platform", "versions", "start_time"} <= run_of["run"].keys()
    assert run_of["arguments"] == {
        "framework": "tensorflow",
        "preset": str(pathlib.Path("recorder.py").absolute()), "seed": 3, "level": "Acrobot-v1",
    }  # fmt: skip


def test_a_new_run_of_the_same_process_does_not_have_the_changes_of_another_run(tmp_path):
    flags = {"preset": "p", "framework": "jax", "evaluate": None, "imported": None, "evaluated": None}
    checkpoint = {"checkpoint_restore_dir": "x", "checkpoint_restore_file": None}
    for name in ("one", "one", "two"):
        (tmp_path / name).mkdir(exist_ok=True)
        record.write(tmp_path / name, argparse.Namespace(**flags, **checkpoint), {}, 1)
    assert "changed" not in json.loads((tmp_path / "two" / "experiment.json").read_text())["run"]


def test_the_directory_alone_says_how_to_go_on(monkeypatch, tmp_path):
    flags = ("--seed", "3", "-lvl", "Acrobot-v1", "-cp", "heatup_steps=EnvironmentSteps(7);", "-s", "60")
    directory = run(*flags).absolute()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    settings = "improve_steps=EnvironmentSteps(99)"
    manager = CoachInterface(resume=str(directory), custom_parameter=settings, checkpoint_save_secs=5).graph_manager
    task = manager.task_parameters
    assert (task.resume, task.checkpoint_restore_path) == (True, str(directory))
    assert (task.experiment_path, task.checkpoint_save_dir) == (str(directory), str(directory / "checkpoint"))
    assert (task.seed, task.checkpoint_save_secs, manager.env_params.level) == (3, 5, "Acrobot-v1")
    assert (manager.heatup_steps.num_steps, manager.improve_steps.num_steps) == (7, 99)
    record = record_of(directory)
    assert len(record["resumed"]) == 1 and record["arguments"]["checkpoint_save_secs"] == 5
    again = CoachInterface(resume=str(directory)).graph_manager
    assert (again.heatup_steps.num_steps, again.improve_steps.num_steps) == (7, 99)


def test_another_checkpoint_than_the_newest():
    directory = run()
    (directory / "old.ckpt").mkdir()
    task = CoachInterface(
        resume=str(directory), checkpoint_restore_dir=str(directory / "old.ckpt")
    ).graph_manager.task_parameters
    assert (task.resume, task.checkpoint_restore_path) == (True, str(directory / "old.ckpt"))


@pytest.mark.parametrize(
    "flags, message",
    [
        (("-p", "CartPole_DQN"), "--preset"),
        (("-lvl", "Acrobot-v1"), "no --level"),
        (("--seed", "4"), "--seed 3"),
        (("-e", "other"), "leave out --experiment_name"),
        (("--play",), "to play, start a new run with -p"),
    ],
)
def test_what_contradicts_the_run_is_refused(capsys, flags, message):
    directory = run("--seed", "3")
    before = (directory / "experiment.json").read_text()
    assert main(["--resume", str(directory), *flags]) == BAD_INPUT
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert (directory / "experiment.json").read_text() == before


def test_a_directory_that_is_no_experiment(capsys):
    directory = run()
    assert main(["--resume", "nowhere"]) == BAD_INPUT
    assert "no experiment in 'nowhere', which has no experiment.json" in capsys.readouterr().err
    assert main(["--resume", str(directory.parent)]) == BAD_INPUT
    assert f"did you mean '{directory}'?" in capsys.readouterr().err
    (directory / "experiment.json").write_text("{")
    assert main(["--resume", str(directory)]) == BAD_INPUT
    assert "is damaged" in capsys.readouterr().err


def test_a_run_that_only_evaluated_has_nothing_to_go_on_with(capsys):
    directory = run("--evaluate", "10")
    assert main(["--resume", str(directory)]) == BAD_INPUT
    assert "only evaluated" in capsys.readouterr().err
    assert main(["evaluate", str(directory)]) == BAD_INPUT
    assert "only evaluated, so it has no checkpoint" in capsys.readouterr().err


def test_the_directory_alone_says_how_to_evaluate(monkeypatch, tmp_path):
    (tmp_path / "levels.py").write_text(LEVELS)
    settings = "heatup_steps=EnvironmentSteps(7)"
    directory = run("-et", "levels.py:Swinging", "-f", "jax", "-cp", settings, "--seed", "3", "-s", "60").absolute()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    manager = CoachInterface(resume=str(directory), evaluate=10).graph_manager
    task = manager.task_parameters
    assert (task.evaluate_only, task.resume, task.checkpoint_restore_path) == (10, False, str(directory))
    assert (task.framework_type.name, task.checkpoint_save_secs, task.seed) == ("jax", None, None)
    assert (manager.env_params.level, manager.heatup_steps.num_steps) == ("Acrobot-v1", 7)
    assert pathlib.Path(task.experiment_path).parent == tmp_path / "elsewhere" / "experiments" / "mine"
    record = record_of(pathlib.Path(task.experiment_path))
    assert (record["evaluate_only"], record["evaluated"]) == (True, str(directory))


def test_an_evaluation_may_ask_for_more():
    directory = run("--seed", "3")
    (directory / "best").mkdir()
    manager = CoachInterface(
        resume=str(directory), evaluate=10, level="Acrobot-v1", seed=5, experiment_name="other",
        checkpoint_restore_dir=str(directory / "best"), custom_parameter="evaluation_steps=EnvironmentEpisodes(3)",
    ).graph_manager  # fmt: skip
    task = manager.task_parameters
    assert (manager.env_params.level, task.seed, manager.evaluation_steps.num_steps) == ("Acrobot-v1", 5, 3)
    assert task.checkpoint_restore_path == str(directory / "best")
    assert pathlib.Path(task.experiment_path).parent.name == "other"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((), "give the run's directory first"),
        (("--steps", "5"), "give the run's directory first"),
        (("nowhere",), "no experiment in 'nowhere'"),
        (("here", "--steps", "many"), "'many' is not a whole number"),
        (("here", "--stepz", "5"), "unknown flag '--stepz'"),
    ],
)
def test_coach_evaluate_says_in_one_line_what_is_wrong(capsys, arguments, message):
    assert main(["evaluate", *arguments]) == BAD_INPUT
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and "--resume" not in error


def test_coach_evaluate_has_a_help_of_its_own(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "--help"])
    assert ended.value.code == 0
    assert "coach evaluate EXPERIMENT ... [--steps STEPS]" in capsys.readouterr().out


def test_another_users_directory_must_be_trusted(capsys, monkeypatch):
    directory = run()
    owner = directory.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    for flags in (["--resume", str(directory)], ["evaluate", str(directory)]):
        assert main(flags) == BAD_INPUT
        error = capsys.readouterr().err
        assert "belongs to another user" in error and "recorder.py" in error and "--trust" in error
        assert error.count("\n") == 1
        assert main([*flags, "--trust"]) == DONE
    assert "trust" not in record_of(directory)["arguments"]


def test_what_goes_wrong_while_resuming_leaves_the_experiment_alone(capsys):
    directory = run()
    (directory / "signals.csv").unlink()
    text = "env_params.additional_simulator_parameters={'run': 'bad'}"
    assert main(["--resume", str(directory), "-cp", text]) == BAD_INPUT
    assert (directory / "experiment.json").exists()


def test_the_flags_of_checkpoints_reach_the_task():
    manager = CoachInterface(
        preset="recorder.py", checkpoint_save_steps=100, checkpoint_save_episodes=7, checkpoint_keep=0,
        checkpoint_memory=False,
    ).graph_manager  # fmt: skip
    task = manager.task_parameters
    assert (task.checkpoint_save_steps, task.checkpoint_save_episodes, task.checkpoint_keep) == (100, 7, 0)
    assert (task.checkpoint_memory, task.preset) == (False, "recorder")
    assert CoachInterface(preset="recorder.py").graph_manager.task_parameters.checkpoint_memory


def test_what_a_run_printed_and_the_changes_of_its_code_are_kept_with_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(screen, "_waited_for", set())  # a process prints the reason of a wait once
    directory = run()
    assert not (directory / "git.diff").exists() or "recorder.py" in (directory / "git.diff").read_text()
    printed = (directory / "console.log").read_text()
    assert printed.startswith("loading recorder.py")
    shutil.rmtree("experiments")
    identity = ("-c", "user.name=me", "-c", "user.email=me@here")
    for command in (["init", "-q"], ["add", "recorder.py"], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *identity, *command], check=True)
    assert not (run() / "git.diff").exists()
    shutil.rmtree("experiments")
    with open("recorder.py", "a") as file:
        file.write("# changed\n")
    assert "+# changed" in (run() / "git.diff").read_text()
    capsys.readouterr()
    assert main(["-p", "recorder.py", "-e", "bad", "-cp", "agent_params.algorithm.discount='x'"]) == BAD_INPUT
    assert not list(pathlib.Path("experiments").glob("bad/*/console.log"))
