"""``coach pack`` and ``coach reproduce``."""

from __future__ import annotations

import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import zipfile

import pytest

from rl_coach.callbacks import Callback
from rl_coach.coach import CoachInterface, main
from rl_coach.utilities.system import shell_command
from tests.frameworks import FRAMEWORK

FLAGS = ["-f", FRAMEWORK.name, "-ns"]
SHORT = (
    "heatup_steps=EnvironmentSteps(60); improve_steps=EnvironmentSteps(200); evaluation_steps=EnvironmentEpisodes(1)"
)
PRESET = """\
import pathlib

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters

import my_agent

schedule = ScheduleParameters()
schedule.heatup_steps = EnvironmentSteps(60)
schedule.improve_steps = EnvironmentSteps(200)
schedule.steps_between_evaluation_periods = EnvironmentSteps(100)
schedule.evaluation_steps = EnvironmentEpisodes(1)
environment = GymVectorEnvironment(level=f"{pathlib.Path(__file__).with_name('my_env.py')}:MyEnv")
graph_manager = BasicRLGraphManager(my_agent.agent, environment, schedule)
"""
AGENT = """\
from my_settings import RATE
from rl_coach.agents.dqn_agent import DQNAgentParameters

agent = DQNAgentParameters()
agent.network_wrappers["main"].learning_rate = RATE
"""
ENVIRONMENT = """\
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.wrappers import TimeLimit


class MyEnv(TimeLimit):
    def __init__(self):
        super().__init__(CartPoleEnv(), 40)
"""
EXPLORATION = """\
from rl_coach.exploration_policies.e_greedy import EGreedyParameters


class Curious(EGreedyParameters):
    def __init__(self):
        super().__init__()
        self.evaluation_epsilon = 0.5
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")


def trained(*flags: str, name: str = "mine") -> pathlib.Path:
    assert main([*flags, "-e", name, *FLAGS]) == 0
    return max(pathlib.Path("experiments", name).iterdir(), key=os.path.getmtime)


def packed(directory: pathlib.Path) -> pathlib.Path:
    assert main(["pack", str(directory), "-o", "run.zip"]) == 0
    return pathlib.Path("run.zip")


def code_of(*words: str) -> int:
    try:
        return main(list(words))
    except SystemExit as stop:
        return stop.code


def changed(file: pathlib.Path, name: str, change) -> None:
    """Replace an entry of a zip."""
    with zipfile.ZipFile(file) as archive:
        contents = {one: archive.read(one) for one in archive.namelist()}
    contents[name] = change(contents[name])
    with zipfile.ZipFile(file, "w") as archive:
        for one, content in contents.items():
            archive.writestr(one, content)


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    """A packed run of a preset by name."""
    directory = tmp_path_factory.mktemp("run")
    before = os.getcwd()
    os.chdir(directory)
    try:
        return packed(trained("-p", "CartPole_DQN", "--seed", "4", "-cp", SHORT)).absolute()
    finally:
        os.chdir(before)


def copy_of(file: pathlib.Path) -> pathlib.Path:
    copied = pathlib.Path("copy.zip")
    copied.write_bytes(file.read_bytes())
    return copied


def test_a_preset_by_name_is_reproduced_bit_for_bit(run_file, capsys):
    assert code_of("reproduce", str(run_file)) == 0
    said = capsys.readouterr().out
    assert "equal: " in said and "signals and the policy are the same, bit for bit" in said
    (again,) = pathlib.Path("experiments/mine").iterdir()
    record = json.loads((again / "experiment.json").read_text())
    assert (
        record["run"]["seed"] == 4 and "improve_steps=EnvironmentSteps(200)" in record["arguments"]["custom_parameter"]
    )
    with zipfile.ZipFile(run_file) as archive:
        facts = json.loads(archive.read("run.json"))
        assert {"run.json", "policy/policy.json"} <= set(archive.namelist())
    assert facts["seed"] == 4 and facts["arguments"]["preset"] == "CartPole_DQN" and facts["versions"]["numpy"]


def test_runs_without_a_policy_are_equal_in_their_signals_only(run_file, monkeypatch, capsys):
    file = pathlib.Path("no_policy.zip")
    with zipfile.ZipFile(run_file) as archive, zipfile.ZipFile(file, "w") as copied:
        for name in (one for one in archive.namelist() if not one.startswith("policy/")):
            copied.writestr(name, archive.read(name))
    monkeypatch.setattr("rl_coach.command_line.reproduction._policy_of", lambda directory: None)
    assert code_of("reproduce", str(file)) == 0
    said = capsys.readouterr().out
    assert "signals are the same, bit for bit" in said and "the policy" not in said


def test_another_signal_is_named_with_its_row(run_file, capsys):
    file = copy_of(run_file)
    with zipfile.ZipFile(file) as archive:
        name = next(one for one in archive.namelist() if one.startswith("signals/"))
    rows = []

    def other_reward(content: bytes) -> bytes:
        rows.extend(csv.DictReader(io.StringIO(content.decode())))
        rows[2]["Training Reward"] = "-7.5"
        rows[0]["Wall-Clock Time"] = "999"
        stream = io.StringIO()
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
        return stream.getvalue().encode()

    changed(file, name, other_reward)
    assert code_of("reproduce", str(file)) == 1
    assert "differs first in row 3 of 'Training Reward': was -7.5, here " in capsys.readouterr().out


def test_another_policy_is_a_difference_and_a_damaged_one_an_error(run_file, capsys):
    other = packed(trained("-p", "CartPole_DQN", "--seed", "5", "-cp", SHORT, name="other"))
    file = copy_of(run_file)
    with zipfile.ZipFile(other) as archive:
        for name in (one for one in archive.namelist() if one.startswith("policy/")):
            changed(file, name, lambda _, name=name: archive.read(name))
    assert code_of("reproduce", str(file)) == 1
    assert "differs in the weights of the policy" in capsys.readouterr().out
    changed(file, "policy/model.onnx", lambda content: content[:-1])
    assert code_of("reproduce", str(file)) == 2
    error = capsys.readouterr().err
    assert "model.onnx" in error and error.count("\n") == 1
    assert len(list(pathlib.Path("experiments/mine").iterdir())) == 1


def test_with_other_versions_signals_are_compared_within_a_tolerance(run_file, capsys):
    file = copy_of(run_file)

    def older(content: bytes) -> bytes:
        facts = json.loads(content)
        facts["versions"]["numpy"] = "1.0"
        return json.dumps(facts).encode()

    changed(file, "run.json", older)
    assert code_of("reproduce", str(file)) == 0
    assert "although numpy was 1.0, here " in capsys.readouterr().out
    with zipfile.ZipFile(file) as archive:
        name = next(one for one in archive.namelist() if one.startswith("signals/"))

    def slightly_different(content: bytes) -> bytes:
        head, first, *rest = content.decode().split("\n")
        cells = first.split(",")
        length = head.split(",").index("Episode Length")
        cells[length] = str(float(cells[length]) * 1.0001)
        return "\n".join([head, ",".join(cells), *rest]).encode()

    changed(file, name, slightly_different)
    assert code_of("reproduce", str(file)) == 0
    assert "compared within 0.1% only; all signals agree" in capsys.readouterr().out


def test_files_of_a_preset_its_level_and_its_exploration_are_packed(capsys, tmp_path, monkeypatch):
    own = tmp_path / "project"
    own.mkdir()
    texts = {"preset": PRESET, "my_agent": AGENT, "my_env": ENVIRONMENT, "my_exploration": EXPLORATION}
    for name, text in {**texts, "my_settings": "RATE = 0.002"}.items():
        (own / f"{name}.py").write_text(text)
    (own / "envs").mkdir()
    (own / "envs" / "other.py").write_text(ENVIRONMENT.replace("40", "30"))
    flags = ("-lvl", "project/envs/other.py:MyEnv", "-ept", "project/my_exploration.py:Curious")
    file = packed(trained("-p", "project/preset.py", *flags)).absolute()
    with zipfile.ZipFile(file) as archive:
        sources = {name for name in archive.namelist() if name.startswith("source/")}
    inside = ("preset", "my_agent", "my_env", "my_settings", "my_exploration", "envs/other")
    assert sources == {f"source/project/{name}.py" for name in inside}
    own.rename(tmp_path / "moved")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert code_of("reproduce", str(file)) == 2
    refused = capsys.readouterr().err
    assert refused.startswith(
        "coach: the file needs programs: read them, then use --trust to run them (project/envs/oth"
    )
    assert refused.count("\n") == 1 and not pathlib.Path("experiments").exists()
    assert code_of("reproduce", str(file), "--trust") == 0
    said = capsys.readouterr().out
    assert "equal: " in said
    assert "was changed after the run began" not in said


def test_a_resumed_run_is_packed_only_with_the_same_settings(capsys):
    directory = trained("-p", "CartPole_DQN", "--seed", "4", "-cp", SHORT)
    assert main(["--resume", str(directory), "-ns", "-cp", "improve_steps=EnvironmentSteps(250)"]) == 0
    assert main(["pack", str(directory)]) == 2
    assert "was resumed with another --custom_parameter" in capsys.readouterr().err


class Interrupts(Callback):
    """Presses Ctrl-C after some steps of training."""

    def on_step(self, run):
        if run.steps == 120:
            signal.raise_signal(signal.SIGINT)


def test_a_run_that_was_interrupted_is_packed_when_it_has_ended_and_is_equal(capsys):
    coach = CoachInterface(
        "CartPole_DQN", seed=4, framework=FRAMEWORK.name, experiment_name="my run", custom_parameter=SHORT,
        callbacks=[Interrupts()],
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        coach.run()
    (directory,) = pathlib.Path("experiments/my run").iterdir()
    assert main(["pack", str(directory)]) == 2
    assert capsys.readouterr().err.endswith(
        f"has not finished (stopped): continue it with {shell_command('coach', '--resume', str(directory))}\n"
    )
    assert main(["--resume", str(directory), "-ns"]) == 0
    assert code_of("reproduce", str(packed(directory))) == 0
    assert "equal: " in capsys.readouterr().out


def test_a_directory_of_several_runs_is_refused(capsys, tmp_path):
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "runs.json").write_text('{"arguments": {}, "runs": [{"name": "seed_0"}]}')
    assert main(["pack", "group"]) == 2
    assert "'group' has several runs: pack one of them" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda record, status: record.update(evaluate_only=True), "is an evaluation"),
        (lambda record, status: record["arguments"].update(num_workers=2), "had several workers"),
        (lambda record, status: record.update(begins_from="/a/checkpoint"), "began from '/a/checkpoint'"),
        (lambda record, status: record["run"]["command_line"].append("--play"), "was played by a person"),
        (lambda record, status: status.update(state="stopped"), "has not finished (stopped): continue it"),
        (
            lambda record, status: status.update(state="running", pid=os.getpid()),
            "has not finished (running): pack it when it has finished",
        ),
        (lambda record, status: status.update(state="running", pid=2**31 - 1), "has not finished (running): continue"),
        (
            lambda record, status: record["arguments"].update(preset="/gone.py"),
            "needs '/gone.py', which does not exist",
        ),
        (lambda record, status: record.pop("run"), "has no record of the run's start"),
    ],
)
def test_a_run_that_cannot_be_repeated_is_not_packed(change, said, capsys):
    directory = pathlib.Path("run")
    directory.mkdir()
    run = {"seed": 1, "versions": {}, "command_line": ["coach"], "working_directory": "/", "began": "2026-01-01"}
    record = {"arguments": {"preset": "CartPole_DQN"}, "evaluate_only": False, "resumed": [], "run": run}
    status = {"state": "finished"}
    change(record, status)
    (directory / "experiment.json").write_text(json.dumps(record))
    (directory / "status.json").write_text(json.dumps(status))
    (directory / "worker_0.csv").write_text("Episode #\n1\n")
    assert main(["pack", "run", "-o", "run.zip"]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and not pathlib.Path("run.zip").exists()


def test_a_missing_neighbour_is_named(tmp_path):
    for name, text in (("preset", PRESET), ("my_agent", AGENT), ("my_env", ENVIRONMENT), ("my_settings", "RATE = 0.1")):
        (tmp_path / f"{name}.py").write_text(text)
    directory = trained("-p", "preset.py")
    (tmp_path / "my_settings.py").unlink()
    command = [sys.executable, "-m", "rl_coach", "pack", str(directory)]  # this process has imported it
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "imports 'my_settings', which is not installed and not in the same directory" in done.stderr


def zip_of(**entries: str | bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return stream.getvalue()


FACTS = {"format_version": 1, "name": "x", "command": [], "seed": 1, "arguments": {"preset": "CartPole_DQN"},
         "working_directory": ".", "versions": {}}  # fmt: skip
SIGNALS = {"signals/worker_0.csv": "Episode #\n1\n"}


def with_facts(**facts) -> bytes:
    return zip_of(**{"run.json": json.dumps({**FACTS, **facts}), "source/p.py": "", **SIGNALS})


@pytest.mark.parametrize(
    "content, said",
    [
        (b"no zip", "'run.zip' cannot be unpacked: File is not a zip file"),
        (zip_of(**SIGNALS), "it has no run.json"),
        (zip_of(**{"run.json": json.dumps(FACTS)}), "or no signals"),
        (zip_of(**{"run.json": "{", **SIGNALS}), "'run.zip' cannot be unpacked: "),
        (zip_of(**{"run.json": "[1]", **SIGNALS}), "its run.json is damaged"),
        (with_facts(seed="x"), "its run.json is damaged"),
        (with_facts(command=None), "its run.json is damaged"),
        (with_facts(versions=["numpy"]), "its run.json is damaged"),
        (with_facts(format_version=2), "update Coach"),
        (with_facts(arguments={"preset": "/etc/p.py"}), "'/etc/p.py' is not packed"),
        (with_facts(arguments={"preset": "../../p.py"}), "is not packed"),
        (with_facts(arguments={"preset": "p.py", "level": ["x"]}), "level is ['x']"),
        (with_facts(working_directory="../../.."), "its working directory is"),
        (with_facts(name="../../x"), "cannot be an experiment's name"),
        (zip_of(**{"run.json": json.dumps(FACTS), **SIGNALS, "source/../../evil.py": "1"}), "the entry 'source/../../"),
        (zip_of(**{"run.json": json.dumps(FACTS), **SIGNALS, "/tmp/evil.py": "1"}), "the entry '/tmp/evil.py'"),
        (zip_of(**{"run.json": json.dumps(FACTS), **SIGNALS, "source/a\\..\\b.py": "1"}), "the entry 'source/a"),
        (zip_of(**{"run.json": json.dumps(FACTS), **SIGNALS})[:-30], "'run.zip' cannot be unpacked: "),
    ],
)
def test_a_damaged_or_hostile_file_is_one_line_and_writes_nothing(content, said, capsys, tmp_path):
    (tmp_path / "run.zip").write_bytes(content)
    assert code_of("reproduce", "run.zip", "--trust") == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == ["run.zip"]


@pytest.mark.parametrize(
    "flags, named",
    [
        ({"level": "subprocess:getoutput"}, "subprocess:getoutput"),
        ({"custom_parameter": "env_params.level = 'os.path:exists'"}, "os.path:exists"),
        ({"callback": "StopOnReward(reward=5); shutil:rmtree(path='x')"}, "shutil:rmtree"),
    ],
)
def test_an_installed_module_runs_only_if_the_file_is_trusted(flags, named, capsys, tmp_path):
    facts = {**FACTS, "arguments": {"preset": "CartPole_DQN", **flags}}
    (tmp_path / "run.zip").write_bytes(zip_of(**{"run.json": json.dumps(facts), **SIGNALS}))
    assert code_of("reproduce", "run.zip") == 2
    said = f"coach: the file needs programs: read them, then use --trust to run them ({named})\n"
    assert capsys.readouterr().err == said
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == ["run.zip"]


def test_a_huge_content_and_a_link_are_refused(capsys, tmp_path, monkeypatch):
    from rl_coach.runs import packed_run

    monkeypatch.setattr(packed_run, "MOST_BYTES", 1_000_000)
    entries = {"run.json": json.dumps(FACTS), **SIGNALS, "policy/huge": b"\0" * 2_000_000}
    (tmp_path / "bomb.zip").write_bytes(zip_of(**entries))
    assert code_of("reproduce", "bomb.zip") == 2
    assert "more than 1,000,000" in capsys.readouterr().err
    with zipfile.ZipFile("link.zip", "w") as archive:
        for name, content in {"run.json": json.dumps(FACTS), **SIGNALS}.items():
            archive.writestr(name, content)
        link = zipfile.ZipInfo("source/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert code_of("reproduce", "link.zip") == 2
    assert "the entry 'source/link'" in capsys.readouterr().err
