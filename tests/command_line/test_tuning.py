"""``coach tune``: its search spaces, the preset that it writes, and its program."""

from __future__ import annotations

import json
import pathlib
import re
import signal
import subprocess

import pytest

from rl_coach.coach import main
from rl_coach.command_line import preset_catalogue, study_storage, tune
from rl_coach.command_line.built_in_spaces import built_in_space
from rl_coach.command_line.custom_parameters import apply_custom_parameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.schedules import ConstantSchedule
from rl_coach.utils import CoachError
from tests.runs.test_several_runs import COACH, group_of, place, record_of  # noqa: F401
from tests.terminal import terminal

optuna = pytest.importorskip("optuna")


@pytest.mark.parametrize(
    ("preset", "searched"),
    [
        ("CartPole_DQN", {"learning_rate", "discount", "batch_size", "epsilon_schedule", "scheme"}),
        ("tuned/CartPole_DQN", {"learning_rate", "discount", "batch_size", "epsilon_schedule", "scheme"}),
        ("CartPole_ClippedPPO", {"learning_rate", "discount", "batch_size", "optimization_epochs", "gae_lambda"}),
        ("tuned/Pendulum_SAC", {"learning_rate", "discount", "batch_size", "rate_for_copying_weights_to_target"}),
        ("tuned/Pendulum_PPO", {"learning_rate", "discount", "batch_size", "optimization_epochs", "gae_lambda"}),
        ("CartPole_A3C", {"learning_rate", "discount", "num_steps_between_gradient_updates", "beta_entropy"}),
    ],
)
def test_each_family_has_a_space_that_fits_the_preset(preset, searched):
    """Every value in it is tried on the preset: what does not fit is left out."""
    found = built_in_space(preset_catalogue.load(preset), 20_000)
    assert searched <= {one.name.rpartition(".")[2] for one in found}


def test_a_schedule_of_the_learning_rate_is_exchanged_for_a_number():
    graph_manager = preset_catalogue.load("tuned/CartPole_DQN")
    (rate, *_) = built_in_space(graph_manager, 20_000)
    assert rate.text({"learning_rate": 0.00123456}) == "0.001235"


def test_several_agents_need_a_space_of_their_own():
    with pytest.raises(CoachError, match="set --space"):
        built_in_space(preset_catalogue.load("Spread_PPO"), 20_000)


@pytest.mark.parametrize("preset", ["tuned/cartpole_dqn", "rl_coach.presets.CartPole_DQN", "file"])
def test_the_preset_that_is_written_has_the_settings(tmp_path, preset):
    if preset == "file":
        preset = str(tmp_path / "mine.py:other")
        (tmp_path / "mine.py").write_text("from rl_coach.presets.CartPole_DQN import graph_manager as other\n")
    settings = (
        "improve_steps = EnvironmentSteps(7); agent_params.algorithm.discount = 0.5; "
        "agent_params.exploration.epsilon_schedule = ConstantSchedule(0.1); "
        "agent_params.network_wrappers['main'].middleware_parameters.scheme = [Dense(32), Dense(16)]"
    )
    file = tmp_path / "best.py"
    file.write_text(tune.text_of_preset(preset, settings, "About it."))
    written, expected = preset_catalogue.load(str(file)), preset_catalogue.load(preset)
    apply_custom_parameters(expected, settings)
    assert written.improve_steps == EnvironmentSteps(7) and written.agent_params.algorithm.discount == 0.5
    assert isinstance(written.agent_params.exploration.epsilon_schedule, ConstantSchedule)
    layers = [one.agent_params.network_wrappers["main"].middleware_parameters.scheme for one in (written, expected)]
    assert [[layer.units for layer in one] for one in layers] == [[32, 16], [32, 16]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "no preset given"),
        (["-p", "CartPole_DQN"], "--steps is missing: improve_steps of the preset has no end"),
        (["-p", "CartPole_DQN", "--steps", "100", "--space", "discount=2"], "must be a number from 0 to 1"),
        (["-p", "CartPole_DQN", "--steps", "100", "--space", "discout=0.5,0.6"], "did you mean 'discount'"),
        (["-p", "CartPole_DQN", "--steps", "100", "--space", "nofile"], "--space: 'nofile' is neither settings"),
        (["-p", "CartPole_DQN", "--steps", "100", "--seeds", "2"], "each trial has its own seed"),
        (["-p", "CartPole_DQN", "--steps", "100", "--storage", "nonsense"], "--storage nonsense: "),
        (["-p", "CartPole_DQN", "--steps", "100", "--pruner", "fast"], "invalid choice: 'fast'"),
        (
            ["-p", "CartPole_DQN", "--steps", "100", "-cp", "agent_params.algorithm.discount=0.5"],
            "varies, and -cp sets agent_params.algorithm.discount: leave one out",
        ),
        (
            ["-p", "CartPole_DQN", "--steps", "100", "-cp", "improve_steps=EnvironmentSteps(7)"],
            "and -cp sets improve_steps: leave one out",
        ),
        (["--resume", "nowhere"], "there are no trials in 'nowhere'"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, given, said):
    monkeypatch.chdir(tmp_path)
    assert main(["tune", *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1, error
    assert not (tmp_path / "experiments").exists()


@pytest.mark.slow
def test_a_trial_gives_a_preset_that_runs(place):  # noqa: F811
    command = [*COACH, "tune", "-p", "guess.py", "--trials", "1", "--steps", "60", "--space", "discount=0.3,0.4"]
    done = subprocess.run(command, cwd=place, capture_output=True, timeout=300, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    group = group_of(place)
    (trial,) = optuna.load_study(study_name="guess", storage=f"sqlite:///{group}/study.db").trials
    ended = rf"^trial 0: mean reward {trial.value:.5g} after \d+ steps \(best: trial 0"
    assert re.search(ended, done.stdout, re.MULTILINE)
    assert re.search(rf"^  discount = {trial.params['discount']}$", done.stdout, re.MULTILINE)
    last_three = [value for _, value in sorted(trial.intermediate_values.items())]
    assert trial.value == last_three[-1] and len(last_three) >= 3
    found = preset_catalogue.load(str(group / "best.py"))
    assert str(found.agent_params.algorithm.discount) == trial.params["discount"]
    assert found.improve_steps == EnvironmentSteps(60)
    refused = subprocess.run([*COACH, "--resume", str(group)], cwd=place, capture_output=True, timeout=300, text=True)
    assert refused.returncode == 2 and "coach tune --resume" in refused.stderr


@pytest.mark.slow
def test_a_tuning_that_was_stopped_goes_on_beside_another_process(place):  # noqa: F811
    storage = f"sqlite:///{place / 'shared.db'}"
    flags = ["-p", "guess.py", "--storage", storage, "--study", "s", "--space", "discount=uniform(0, 0.9)"]
    with terminal([*COACH, "tune", *flags, "--trials", "3", "--steps", "100000000"], 100, place) as shown:
        assert shown.watch(300, until="Training"), shown.lines()
        shown.send(signal.SIGINT)
        shown.watch(120)
        assert shown.return_code == 130, shown.lines()
        end = "\n".join(shown.lines())
    group = group_of(place)
    assert re.search(r"^continue the tuning: \S*coach tune --resume experiments/guess/\S+$", end, re.MULTILINE)
    # what is left of both trials is short
    document = json.loads((group / "runs.json").read_text())
    document["tuning"]["steps"] = 400
    (group / "runs.json").write_text(json.dumps(document))
    for run in document["runs"]:
        path = group / run["name"] / "experiment.json"
        if path.exists():
            path.write_text(path.read_text().replace("100000000", "400").replace("5000000", "20"))
    resumed = subprocess.Popen([*COACH, "tune", "--resume", str(group), "--trials", "4"], cwd=place)
    other = subprocess.run(
        [*COACH, "tune", *flags, "-e", "other", "--trials", "4", "--steps", "400"], cwd=place, timeout=400
    )
    assert resumed.wait(400) == 0 and other.returncode == 0
    trials = optuna.load_study(study_name="s", storage=storage).trials
    assert len(trials) in (4, 5) and all(trial.state.is_finished() for trial in trials)
    assert sum(len(record_of(group_of(place, name))["runs"]) for name in ("guess", "other")) == len(trials)


def tuning_in(storage):
    """What ``runs.json`` says of a tuning of two trials."""
    return {
        "trials": 2, "steps": 60, "gives_schedule": True, "evaluations": 20, "space": "discount=0.3,0.4",
        "storage": storage, "study": "s", "sampler": "tpe", "pruner": "none", "seed": None,
    }  # fmt: skip


def test_a_storage_that_is_gone_takes_no_trials_with_it(tmp_path, monkeypatch, capsys):
    """Nothing is removed where a tuning is to go on."""
    monkeypatch.chdir(tmp_path)
    group = tmp_path / "group"
    (group / "trial_0").mkdir(parents=True)
    tuning = tuning_in("sqlite:////nowhere/study.db")
    document = {"arguments": {"preset": "CartPole_DQN"}, "runs": [], "tuning": tuning}
    (group / "runs.json").write_text(json.dumps(document))
    assert main(["tune", "--resume", "group"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("coach: --storage sqlite:////nowhere/study.db: ") and error.count("\n") == 1
    assert (group / "trial_0").is_dir()


def test_a_study_that_has_lost_its_trials_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    runs = [{"name": "trial_3", "seed": 3, "trial": 3, "custom_parameter": "a = 1"}]
    document = {"arguments": {"preset": "CartPole_DQN"}, "runs": runs, "tuning": tuning_in(storage)}
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "runs.json").write_text(json.dumps(document))
    assert main(["tune", "--resume", "group"]) == 2
    assert f"study 's' in {storage} has no trial 3 any more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "lasting"),
    [
        ("sqlite:///study.db", "sqlite:///{here}/study.db"),
        ("sqlite:////data/study.db", "sqlite:////data/study.db"),
        ("mysql://user@host/optuna", "mysql://user@host/optuna"),
    ],
)
def test_the_file_of_a_study_is_found_from_any_directory(tmp_path, monkeypatch, given, lasting):
    monkeypatch.chdir(tmp_path)
    assert study_storage.lasting(given) == lasting.format(here=tmp_path)


def test_trials_that_ended_while_nobody_looked_are_told(tmp_path, monkeypatch, capsys):
    """One is complete and one was pruned; there is no room for more."""
    monkeypatch.chdir(tmp_path)
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(storage=storage, study_name="s", direction="maximize")
    values = {"discount": optuna.distributions.CategoricalDistribution(("0.3", "0.4"))}
    runs = []
    for number in range(2):
        trial = study.ask(fixed_distributions=values)
        trial.report(10.0 - number, 1)
        if number:
            trial.set_user_attr("pruned", True)
        directory = tmp_path / "group" / f"trial_{number}"
        directory.mkdir(parents=True)
        status = {"state": "finished", "pid": 1, "updated": 1.0, "progress": {"steps": 60 + number}}
        (directory / "status.json").write_text(json.dumps(status))
        runs.append({"name": directory.name, "seed": number, "trial": number, "custom_parameter": "a = 1"})
    tuning = tuning_in(storage)
    document = {"arguments": {"preset": "CartPole_DQN"}, "runs": runs, "tuning": tuning}
    (tmp_path / "group" / "runs.json").write_text(json.dumps(document))
    with pytest.raises(SystemExit) as ended:
        main(["tune", "--resume", "group"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert "trial 0: mean reward 10 after 60 steps (best: trial 0, 10)" in lines
    assert "trial 1: pruned after 61 steps, mean reward 9" in lines
    assert "best: trial 0, mean reward 10 (1 complete, 1 pruned, 0 failed)" in lines
    best = preset_catalogue.load(str(tmp_path / "group" / "best.py"))
    assert str(best.agent_params.algorithm.discount) == study.trials[0].params["discount"]
    assert best.improve_steps == EnvironmentSteps(60)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///s.db", "sqlite:///s.db"),
        ("postgresql://me:pa:ss@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("mysql://me@host/db?ssl_key=x&password=pass", "mysql://me@host/db?***"),
        ("redis://:secret@host", "redis://:***@host"),
    ],
)
def test_a_storage_is_shown_without_its_password(url, shown):
    assert study_storage.shown_url(url) == shown
    hidden = study_storage.without_secret(f"cannot open {url} with secret, pass and pa:ss", url)
    assert url == shown or not re.search(r"secret@|pa:ss@|=pass", hidden)


def test_nobody_else_can_read_the_password_of_a_storage(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(study_storage.STORAGE_VARIABLE, f"sqlite:///{tmp_path}/s.db?password=TOPSECRET")
    short = "heatup_steps=EnvironmentSteps(20)"
    given = ["-p", "CartPole_DQN", "-f", "jax", "--trials", "1", "--steps", "200", "-cp", short, "-e", "t"]
    with pytest.raises(SystemExit, match="0"):
        main(["tune", *given])
    assert "TOPSECRET" not in "".join(capfd.readouterr())
    (directory,) = (tmp_path / "experiments" / "t").iterdir()
    naming = [path for path in directory.rglob("*") if path.is_file() and b"TOPSECRET" in path.read_bytes()]
    assert [path.name for path in naming] == ["storage.url"] and naming[0].stat().st_mode & 0o777 == 0o600
    with pytest.raises(SystemExit, match="0"):
        main(["tune", "--resume", str(directory), "--trials", "2"])  # it knows its storage


def test_the_list_of_processes_shows_no_password(tmp_path):
    flags = ["-p", "CartPole_DQN", "-f", "jax", "--steps", "200", "-e", "t"]
    given = [*flags, f"--storage=sqlite:///{tmp_path}/s.db?password=TOPSECRET"]
    process = subprocess.Popen([*COACH, "tune", *given], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = next(line for line in process.stdout if line.startswith("study 't' in "))
        lines = pathlib.Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
    finally:
        process.terminate()
        process.wait()
    assert "TOPSECRET" not in said
    assert lines[-2] == f"--storage=sqlite:///{tmp_path}/s.db?{'*' * len('password=TOPSECRET')}"


def test_a_new_database_is_opened_again_while_others_make_its_tables(monkeypatch):
    class IntegrityError(Exception):
        pass

    answers = [IntegrityError("UNIQUE constraint failed"), RuntimeError("table studies already exists"), "study"]

    def open_study():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(study_storage, "_LONGEST_PAUSE", 0.0)
    assert study_storage.opened(open_study) == "study"
    answers[:] = [ValueError("no such driver")]
    with pytest.raises(ValueError, match="no such driver"):
        study_storage.opened(open_study)
