"""Bad input of the command: one line on stderr, exit code 2, nothing left on the disk. Signals: 130 and 143."""

from __future__ import annotations

import json
import pathlib
import shutil
import signal
import subprocess
import sys
from typing import Any, Callable

import pytest

from rl_coach.coach import BAD_INPUT, DONE, STOPPED, TERMINATED, main
from rl_coach.command_line import trained_policies
from rl_coach.utilities.system import shell_command
from tests.faults.processes import SHORT

FILES = {
    "bad.py": b"def broken(:\n", "fails.py": b"1 / 0\n", "leaves.py": b"import sys\nsys.exit(3)\n",
    "lacks.py": b"import no_such_package\n", "latin.py": b"a = '\xff'\n", "mine.py": b"five = 5\n",
}  # fmt: skip
PRESET = ["-p", "CartPole_PG", "-ns"]
PATHS = (
    "algorithm", "memory", "network_wrappers['main']",
    "network_wrappers['main'].heads_parameters[0]", "network_wrappers['main'].middleware_parameters",
)  # fmt: skip


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def refusal(capsys, *arguments: str) -> str:
    before = sorted(pathlib.Path.cwd().rglob("*"))
    assert main(arguments) == BAD_INPUT
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "Traceback" not in error
    left = [one for one in pathlib.Path.cwd().rglob("*") if one not in before and "__pycache__" not in str(one)]
    assert left == []
    return error


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["CartPole_DQN"], "'CartPole_DQN' is not a command; did you mean coach -p CartPole_DQN?"),
        (["tuned/cartpole_ppo"], "did you mean coach -p tuned/CartPole_PPO?"),
        (["mine.py"], "did you mean coach -p mine.py?"),
        (["Pendulum_NAF"], "no command 'Pendulum_NAF'; did you mean coach -p tuned/Pendulum_NAF?"),
        (["train", "-p", "CartPole_DQN"], "no command 'train': coach -p PRESET trains a preset"),
        (["evalute", "here"], "no command 'evalute'; did you mean coach evaluate?"),
        (
            ["sweep", "lr=1e-3,1e-4"],
            "no preset given: select a preset with -p; coach --list shows all presets; in Coach, 'lr' of other",
        ),
        (["repoduce", "run.zip"], "no command 'repoduce'; did you mean coach reproduce?"),
        (["docter", "here"], "no command 'docter'; did you mean coach doctor?"),
        (["inti", "my_env.py"], "no command 'inti'; did you mean coach init?"),
        *(
            ([flag, "CartPole_PG"], "a preset, not a run: train it first with COACH -p CartPole_PG")
            for flag in ("evaluate", "watch", "--resume")
        ),
        ([*PRESET, "-cp", "improve_steps=5000"], "such as EnvironmentSteps(5000) or TrainingSteps(5000), not 5000"),
        ([*PRESET, "-cp", "agent_params.algorithm.gamma=1"], "in Coach, 'gamma' of Stable-Baselines3 is discount"),
        ([*PRESET, "-cp", "gamma=1"], "in Coach, 'gamma' of Stable-Baselines3 is agent_params.algorithm.discount"),
        ([*PRESET, "-cp", "n_envs=8"], "in Coach, 'n_envs' of Stable-Baselines3 is env_params.num_environments"),
        (
            [*PRESET, "-cp", "device='cpu'"],
            "leave out 'device': a GPU is used if the framework finds one, and the flag",
        ),
        ([*PRESET, "-cp", "agent_params.memory=3"], "to change the present object, set 'agent_params.memory.NAME'"),
        (["sweep", *PRESET, "n_envs=1,8"], "in Coach, 'n_envs' of Stable-Baselines3 is env_params.num_environments"),
        (["sweep", *PRESET, "lr=1e-3,1e-4"], "no setting 'lr'; in Coach, 'lr' of other libraries is learning_rate"),
        ([*PRESET, "-lvl", "mine:Level"], "'mine' has no 'Level'"),
        ([*PRESET, "-ept", "mine:Explore"], "'mine' has no 'Explore'"),
    ],
)
def test_a_word_of_another_library_or_place_gets_a_suggestion(capsys, arguments, part):
    # not when tests are collected: the command depends on the working directory
    assert part.replace("COACH", shell_command("coach")) in refusal(capsys, *arguments)


def test_a_preset_in_the_place_of_a_run_suggests_its_newest_run(capsys, place):
    directory = place / "experiments" / "CartPole_PG" / "27_11_2026-10_00"
    directory.mkdir(parents=True)
    (directory / "experiment.json").touch()
    found = "experiments/CartPole_PG/27_11_2026-10_00"
    assert f"is a preset, not a run; did you mean {found}?" in refusal(capsys, "evaluate", "cartpole_pg")


@pytest.mark.parametrize("flag", ["-lvl", "--callback", "-ept", "-et"])
@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("bad.py", "bad.py:1: invalid syntax"),
        ("fails.py", "fails.py:1: ZeroDivisionError: division by zero"),
        ("leaves.py", "leaves.py:2: SystemExit: 3"),
        ("lacks.py", "'no_such_package'"),
        ("latin.py", "latin.py:1: "),
        ("mine.py", "'mine.py' has no 'Name'"),
        ("nowhere.py", "no file 'nowhere.py'"),
    ],
)
def test_files_that_flags_name(capsys, flag, file, part):
    assert part in refusal(capsys, *PRESET, flag, f"{file}:Name")


@pytest.mark.parametrize(
    "level", ["mine:five", "os:system", "math:pi", "no_such_module:Level", "json:JSONDecoder", "mine:"]
)
def test_levels_that_are_no_environments(capsys, level):
    assert level.partition(":")[0] in refusal(capsys, *PRESET, "-lvl", level)


@pytest.mark.parametrize("path", ["agent_params", "env_params", *(f"agent_params.{path}" for path in PATHS)])
def test_classes_cannot_be_replaced_by_a_setting(capsys, path):
    assert f"'{path}.path' can be read but not set" in refusal(capsys, *PRESET, "-cp", f"{path}.path = 'os:system'")


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("name = '../../evil'", "name is '../../evil'; it must be a text of 1 to 100 printable characters without '/'"),
        ("name = ''", "name is ''"),
        (f"name = '{'n' * 300}'", "1 to 100 printable"),
        (r"name = 'a\0b'", "1 to 100 printable"),
        ("algorithm.path = 'os:system'", "there is no parameter 'algorithm'"),
        ("agent_params.algorithm.path.x = 1", "cannot be read"),
        ("agent_params.algorithm.discount.real = 5", "can be read but not set"),
        ("env_params.level = '../../evil'", "no level '../../evil'"),
        (
            "agent_params.network_wrappers['main'].heads_parameters[0].parameterized_class_name = 'os:system'",
            "os:system",
        ),
    ],
)
def test_settings(capsys, setting, part):
    assert part in refusal(capsys, *PRESET, "-cp", setting)


def test_a_replay_that_no_array_can_be(capsys):
    size = "agent_params.memory.max_size = (MemoryGranularity.Transitions, 10**30)"
    assert "max_size" in refusal(capsys, "-p", "CartPole_DQN", "-ns", "-cp", size)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place = tmp_path_factory.mktemp("trained")
    assert main([*PRESET, "-ep", str(place), "-e", "e", "-cp", SHORT.format(steps=10), "-s", "10000"]) == DONE
    (run,) = (place / "e").iterdir()
    return run


@pytest.fixture
def run(trained, place):
    return pathlib.Path(shutil.copytree(trained, place / "run"))


def change(file: pathlib.Path, edit: Callable[[Any], None]) -> None:
    document = json.loads(file.read_text())
    edit(document)
    file.write_text(json.dumps(document))


@pytest.mark.parametrize("fits", [None, [], "x", 5])
def test_a_manifest_that_fits_nothing(capsys, run, fits):
    (manifest,) = run.glob("checkpoint/*/manifest.json")
    change(manifest, lambda document: document.update(fits=fits))
    assert f"'fits' in its manifest is {fits!r}" in refusal(capsys, "--resume", str(run))


@pytest.mark.parametrize("framework", ["caffe", "", "TENSORFLOW", "acting"])
def test_a_recorded_framework_that_is_unknown(capsys, run, framework):
    change(run / "experiment.json", lambda document: document["arguments"].update(framework=framework))
    for arguments in (["--resume", str(run)], ["evaluate", str(run)]):
        said = refusal(capsys, *arguments)
        assert f"was trained on '{framework}'; this version supports tensorflow, mxnet, jax" in said


@pytest.mark.parametrize("flag", ["num_workers", "checkpoint_save_secs", "seed"])
def test_a_recorded_number_that_is_none(capsys, run, flag):
    change(run / "experiment.json", lambda document: document["arguments"].update({flag: "many"}))
    assert f"experiment.json' is damaged: {flag} is 'many'" in refusal(capsys, "--resume", str(run))


@pytest.mark.parametrize("content", [b"", b"null", b"[]", b'{"run": ', b"[" * 100_000, b"\0\xff"])
def test_damaged_parameters_of_a_run_are_written_again(capsys, run, content):
    (file,) = run.glob("worker_0*.json")
    file.write_bytes(content)
    assert main(["--resume", str(run), "-ns", "-cp", "improve_steps = EnvironmentSteps(20)"]) == DONE
    said = capsys.readouterr()
    assert f"'{file}' is damaged" in said.out + said.err and json.loads(file.read_text())["run"]["start_time"]


POLICY = "CartPole_PPO"
INDEX = "policies.json"


ODD = [b"", b"null", b"{", b"[]", b"3", b"[" * 100_000, b'{"tuned/CartPole_PPO": null}', b'{"tuned/CartPole_PPO": []}']
ENTRY = {"sha256": "0", "repository": 3, "mean_reward": 1, "episodes": 1, "run": {"command": "coach"}}
ODD += [
    json.dumps({"tuned/CartPole_PPO": {**ENTRY, **more}}).encode() for more in ({}, {"run": []}, {"mean_reward": "x"})
]


@pytest.mark.parametrize("content", [None, *ODD])
@pytest.mark.parametrize("file", [INDEX, f"{POLICY}/policy.json", f"{POLICY}/arrays.npz", f"{POLICY}/model.onnx"])
def test_damaged_policies_that_come_with_coach(capsys, place, monkeypatch, file, content):
    source, installed = trained_policies.policies_directory(), place / "installed"
    shutil.copytree(source / POLICY, installed / POLICY)
    shutil.copy(source / INDEX, installed)
    monkeypatch.setattr(trained_policies, "policies_directory", lambda: installed)
    if content is None:
        (installed / file).unlink()
    else:
        (installed / file).write_bytes(content)
    assert str(installed) in refusal(capsys, "fetch", f"tuned/{POLICY}")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, STOPPED), (signal.SIGTERM, TERMINATED)])
def test_a_signal_while_the_first_modules_are_imported(place, number, code):
    starter = place / "starter.py"
    starter.write_text(
        "import importlib.abc, os, runpy, sys\n"
        "class Sender(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'rl_coach.utilities.standard_streams':\n            os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Sender())\n"
        "runpy.run_module('rl_coach', run_name='__main__', alter_sys=True)\n"
    )
    ended = subprocess.run([sys.executable, starter, "--list"], capture_output=True, text=True)
    assert ended.returncode == code and ended.stderr.startswith("coach: stopped") and ended.stderr.count("\n") == 1
