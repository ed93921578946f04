"""``coach init``: the files that it writes run at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rl_coach.coach import main
from rl_coach.command_line import preset_catalogue
from tests.frameworks import FRAMEWORK


def test_the_files_of_an_environment_run_at_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "my_env.py"]) == 0
    readme = (tmp_path / "my_env_README.md").read_text()
    commands = [line.split() for line in readme.splitlines() if line.startswith("    ")]
    check, test, train = commands
    with pytest.raises(SystemExit, match=r"^0$"):
        main(check[1:])
    done = subprocess.run([sys.executable, *test[1:], "-q", "-p", "no:cacheprovider"], capture_output=True, text=True)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert main([*train[1:], "-f", FRAMEWORK.name, "--seed", "1"]) == 0
    assert "reached the target -20" in capsys.readouterr().out


@pytest.mark.parametrize(
    "algorithm, source",
    [
        ("SAC", "tuned/Pendulum_SAC"),
        ("dqn", "tuned/CartPole_DQN"),
        ("QR-DQN", "tuned/CartPole_QR_DQN"),
        ("SoftActorCritic", "tuned/Pendulum_SAC"),
    ],
)
def test_a_preset_to_edit_is_a_copy_that_loads(algorithm, source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--preset", algorithm]) == 0
    assert f"it is a copy of {source};" in capsys.readouterr().out
    (file,) = tmp_path.glob("*.py")
    written, original = (preset_catalogue.load(name).agent_params for name in (str(file), source))
    assert type(written).__name__ == type(original).__name__


@pytest.mark.parametrize(
    "given, said",
    [
        ([], "give either a file for an environment or --preset ALGORITHM"),
        (["my_env.py", "--preset", "SAC"], "give either a file for an environment or --preset ALGORITHM"),
        (["My-Env.py"], "must begin with a small letter, consist of small letters"),
        (["my_env"], "and end with .py"),
        (["1env.py"], "the name of '1env.py' must begin with a small letter"),
        (["nowhere/my_env.py"], "cannot be written"),
        (["--preset", "Rainbo"], "no preset has the algorithm 'Rainbo'; did you mean 'Rainbow'"),
        (["--preset", "Composite"], "no preset has the algorithm 'Composite' (coach --list shows all)"),
        (["taken.py"], "exists already"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(given, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken_preset.py").write_text("mine")
    assert main(["init", *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["taken_preset.py"]
