"""``coach watch`` of policies and runs, and the videos of ``coach evaluate``."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sysconfig

import imageio.v3
import pytest

from rl_coach.coach import BAD_INPUT, DONE, main
from rl_coach.utilities.system import shell_command
from tests.display import press, virtual_display
from tests.frameworks import FRAMEWORK
from tests.terminal import terminal

COACH = str(pathlib.Path(sysconfig.get_path("scripts")) / "coach")
SHORT = (
    "heatup_steps=EnvironmentSteps(50); improve_steps=EnvironmentSteps(150); evaluation_steps=EnvironmentEpisodes(1)"
)
HEADLESS = {"DISPLAY": "", "WAYLAND_DISPLAY": ""}


@pytest.fixture
def policy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fetch", "tuned/CartPole_PPO", "-o", "policy"]) == DONE
    capsys.readouterr()
    return "policy"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("trained")
    assert (
        main(["-p", "CartPole_DQN", "-f", FRAMEWORK.name, "-ns", "-ep", str(directory), "-s", "600", "-cp", SHORT])
        == DONE
    )
    (run,) = directory.glob("*/*")
    return run


def in_terminal(directory, *arguments: str, columns: int = 80) -> list[str]:
    with terminal([COACH, *arguments], columns, directory, **HEADLESS) as program:
        assert program.watch(120)
        assert program.return_code == DONE, program.lines()
        return program.lines()


def frames(file: pathlib.Path) -> int:
    return len(imageio.v3.imread(file))


def test_a_policy_becomes_a_gif_without_a_display(policy, tmp_path):
    lines = in_terminal(tmp_path, "watch", policy, "--gif", "episode.gif")
    assert lines == ["reward 500 in 500 steps", "written to episode.gif"]
    assert 50 < frames(tmp_path / "episode.gif") <= 101  # each fifth picture; equal neighbours are one


def test_a_run_becomes_both_files(run, tmp_path):
    lines = in_terminal(tmp_path, "watch", f"{run}/best", "--mp4", "episode.mp4", "--gif", "episode.gif")
    assert lines[-2:] == ["written to episode.gif", "written to episode.mp4"]
    assert frames(tmp_path / "episode.gif") > 1 and frames(tmp_path / "episode.mp4") > 1
    assert sorted(os.listdir(tmp_path)) == ["episode.gif", "episode.mp4"]


def test_a_window_plays_until_it_is_closed(policy):
    with virtual_display() as screen:
        variables = {name: value for name, value in os.environ.items() if name != "SDL_VIDEODRIVER"}
        program = subprocess.Popen(
            [COACH, "watch", policy], env={**variables, "DISPLAY": screen}, stdout=subprocess.PIPE, text=True
        )
        try:
            press(screen, "key", "Escape")
            out = program.communicate(timeout=120)[0]
        finally:
            program.kill()
    assert program.returncode == DONE
    assert out.startswith("level CartPole-v1: press Esc or close the window to end\n")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "no display to open a window on. Write a file with: COACH watch policy --gif FILE.gif"),
        (["--gif", "episode.mp4"], "--gif: the name of the file must end with .gif, not 'episode.mp4'"),
        (["--mp4", "nowhere/episode.mp4"], "--mp4: there is no directory 'nowhere'"),
        (["--gif", "a.gif", "-lvl", "Pendulum-v1"], "needs the observation"),
        (["--gif", "a.gif", "-lvl", "still:Still"], "level 'still:Still' returns no images"),
        (["--steps", "5"], "unknown flag '--steps'"),
    ],
)
def test_bad_input_is_one_line(policy, tmp_path, monkeypatch, capsys, arguments, part):
    for name in (*HEADLESS, "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "still.py").write_text(
        "from gymnasium.envs.classic_control import CartPoleEnv\n\n\nclass Still(CartPoleEnv):\n"
        "    metadata = {}\n\n    def __init__(self):\n        super().__init__()\n\n"
        "    def step(self, action):\n        return *super().step(action)[:2], True, False, {}\n\n"
        "    def render(self):\n        return None\n"
    )
    assert main(["watch", policy, *arguments]) == BAD_INPUT
    captured = capsys.readouterr()
    assert part.replace("COACH", shell_command("coach")) in captured.err and captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("directory", "message"),
    [
        ("nowhere", "there is no directory 'nowhere'"),
        ("nowhere/best", "there is no directory 'nowhere'"),
        ("empty", "no experiment in 'empty', which has no experiment.json"),
    ],
)
def test_a_wrong_directory_is_named_before_a_missing_display(directory, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for name in HEADLESS:
        monkeypatch.delenv(name, raising=False)
    assert main(["watch", directory]) == BAD_INPUT
    assert capsys.readouterr().err == f"coach: {message}\n"


def test_the_hint_can_be_pasted_if_the_directory_has_a_space(policy, tmp_path, monkeypatch, capsys):
    for name in HEADLESS:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / policy).rename(tmp_path / "my policy")
    assert main(["watch", "my policy"]) == BAD_INPUT
    command = shell_command("coach", "watch", "my policy", "--gif", "FILE.gif")
    assert f"Write a file with: {command}" in capsys.readouterr().err


def test_an_evaluation_prints_the_paths_of_its_videos(run, tmp_path):
    lines = in_terminal(tmp_path, "evaluate", str(run), "--steps", "20", "-dm", columns=300)
    assert not any("XDG_RUNTIME_DIR" in line for line in lines)
    videos = [line.removeprefix("video: ") for line in lines if line.startswith("video: ")]
    assert videos and all((tmp_path / video).is_file() and video.endswith(".mp4") for video in videos)
