"""People who play: through the command line, on a virtual display, and with keys that really are pressed."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sysconfig

import pytest

from rl_coach.coach import BAD_INPUT, DONE, CoachInterface, main
from rl_coach.command_line import preset_catalogue
from rl_coach.environments import rendering
from rl_coach.environments.rendering import Window
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.utils import CoachError
from tests.display import press, virtual_display
from tests.frameworks import FRAMEWORK

pygame = pytest.importorskip("pygame")
LEFT, RIGHT = pygame.K_LEFT, pygame.K_RIGHT
LEAVE = pygame.K_ESCAPE


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def player(monkeypatch):
    """Plays by a list: at each moment when an action may be due, a key, a function to call, or None for a rest."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    moves: list = []
    asked: list[float] = []

    def next_move(window, frames_per_second):
        asked.append(frames_per_second)
        move = moves.pop(0) if moves else LEAVE
        if callable(move):
            move()
        elif move is not None:
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=move))

    monkeypatch.setattr(Window, "tick", next_move)
    moves_and_paces = lambda *script: moves.extend(script) or asked  # noqa: E731
    return moves_and_paces


def play(*arguments: str, preset: str = "CartPole_DQN") -> int:
    return main(["-p", preset, "--play", "--seed", "1", "-f", FRAMEWORK.name, *arguments])


def recording() -> EpisodicExperienceReplay:
    (file,) = pathlib.Path.cwd().glob("experiments/*/*/replay_buffer.npz")
    memory = EpisodicExperienceReplay()
    memory.load(file)
    return memory


def actions() -> list[int]:
    return recording().transitions.action_column.tolist()


def test_what_is_played_is_recorded(player, capsys):
    player(LEFT, RIGHT, RIGHT, LEFT, pygame.K_2)
    assert play() == DONE
    assert actions() == [0, 1, 1, 0, 1]
    out = capsys.readouterr().out
    assert re.search(r"LEFT +left or 1\n +RIGHT +right or 2\n +the game waits while no key is held", out)
    assert re.search(r"recorded 5 steps: .*replay_buffer\.npz\nplayed 0 episodes, 5 steps in \d+:\d\d\n", out)
    assert "play it back" not in out and "resume" not in out


def test_the_game_waits_for_a_key_where_every_action_does_something(player):
    player(None, LEFT, None, None, RIGHT, None)
    assert play() == DONE
    assert actions() == [0, 1]


def test_it_does_not_wait_where_an_action_does_nothing(player):
    player(RIGHT, None, None, LEFT)
    assert play("-lvl", "MountainCar-v0") == DONE
    assert actions() == [2, 1, 1, 0]


def test_an_episode_that_is_left_counts_as_cut_off(player, capsys):
    player(*[LEFT] * 12)
    assert play() == DONE
    assert re.search(r"episode 1: reward (\d+) in \1 steps\nrecorded 12 steps", capsys.readouterr().out)
    first, second = recording().get_all_complete_episodes()
    assert first.transitions[-1].terminated
    assert second.transitions[-1].game_over and not second.transitions[-1].terminated
    assert len(first) + len(second) == 12


@pytest.mark.parametrize(
    "leave",
    [
        LEAVE,
        lambda: pygame.event.post(pygame.event.Event(pygame.QUIT)),
        lambda: os.kill(os.getpid(), signal.SIGINT),
    ],
    ids=["Esc", "window", "Ctrl-C"],
)
def test_leaving_is_a_good_end(player, capsys, leave):
    player(LEFT, LEFT, leave)
    assert play() == DONE
    assert actions() == [0, 0]
    captured = capsys.readouterr()
    assert captured.err == "" and "0 episodes, 2 steps" in captured.out
    assert not list(pathlib.Path.cwd().rglob("*.ckpt"))


def test_who_leaves_at_once_leaves_no_recording(player, capsys):
    player()
    assert play() == DONE
    assert "recorded" not in capsys.readouterr().out
    assert not list(pathlib.Path.cwd().rglob("*.npz"))


@pytest.mark.parametrize(
    ("level", "paces"),
    [("CartPole-v1", {30}), ("FrozenLake-v1", {30, 4}), ("Acrobot-v1", {30, 15})],
)
def test_it_is_slow_enough_for_people(player, level, paces):
    asked = player(None, LEFT, RIGHT, LEFT)
    assert play("-lvl", level) == DONE
    assert set(asked) == paces


def test_an_atari_game_runs_at_the_consoles_speed_and_is_recorded_as_its_agent_sees_it(player):
    pytest.importorskip("ale_py")
    asked = player(pygame.K_d, None, LEFT, pygame.K_SPACE)
    assert play("-lvl", "pong", preset="Atari_DQN") == DONE
    assert actions() == [2, 0, 3, 1]
    assert recording().transitions.state_columns["observation"].shape == (4, 84, 84, 4)
    assert set(asked[1:]) == {60 / 4}


def test_a_recording_is_where_another_agent_begins(player):
    player(LEFT, RIGHT, LEFT)
    assert play() == DONE
    (file,) = pathlib.Path.cwd().glob("experiments/*/*/replay_buffer.npz")
    setting = f"agent_params.memory.load_memory_from_file_path='{file}'"
    manager = CoachInterface(preset="CartPole_DQN", custom_parameter=setting, framework=FRAMEWORK.name).graph_manager
    assert manager.get_agent().memory.transitions.action_column.tolist() == [0, 1, 0]
    manager.close()


def test_one_copy_of_the_environment_is_played(player, directory):
    source = (preset_catalogue.preset_directory() / "CartPole_DQN.py").read_text(encoding="utf-8")
    (directory / "copies.py").write_text(source + "\ngraph_manager.env_params.num_environments = 3\n")
    player(LEFT, RIGHT)
    assert play(preset="copies.py") == DONE
    assert actions() == [0, 1]


def test_it_can_be_saved_at_any_time(player):
    player(LEFT, lambda: manager.get_agent().save_replay_buffer_and_exit())
    manager = CoachInterface(preset="CartPole_DQN", play=True).graph_manager
    manager.run()
    assert actions() == [0]


def fails(capsys, *arguments: str, preset: str = "CartPole_DQN") -> str:
    assert play(*arguments, preset=preset) == BAD_INPUT
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert not pathlib.Path("experiments").exists()
    return error


def test_what_cannot_be_played_is_said_in_a_line(player, capsys, monkeypatch):
    assert "cannot be played with keys" in fails(capsys, "-lvl", "Pendulum-v1")
    assert "leave out --evaluate" in fails(capsys, "--evaluate", "10")
    assert "leave out --checkpoint_restore_dir" in fails(capsys, "-crd", ".")
    monkeypatch.setattr(rendering, "has_display", lambda: False)
    assert "no display" in fails(capsys)


def test_a_recorded_game_is_not_resumed(player, directory):
    player(LEFT)
    assert play() == DONE
    (experiment,) = directory.glob("experiments/*/*")
    with pytest.raises(CoachError, match="no checkpoint"):
        CoachInterface(resume=str(experiment))


@pytest.fixture
def screen():
    """The name of a virtual display."""
    with virtual_display() as name:
        yield name


class Game:
    """``coach --play`` in a process of its own, on a display of its own."""

    def __init__(self, screen: str, *arguments: str):
        variables = {name: value for name, value in os.environ.items() if name != "SDL_VIDEODRIVER"}
        self._screen = screen
        program = pathlib.Path(sysconfig.get_path("scripts")) / "coach"
        self._process = subprocess.Popen(
            [program, "--play", "--seed", "1", "-f", FRAMEWORK.name, *arguments],
            env={**variables, "DISPLAY": screen}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def press(self, *command: str) -> None:
        press(self._screen, *command)

    def end(self) -> str:
        """What it has printed, once it has ended as it should."""
        out = self._process.communicate(timeout=120)[0]
        assert self._process.returncode == DONE, out
        return out

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def start(screen):
    """Starts ``coach --play`` on the virtual display."""
    games = []

    def begin(*arguments: str) -> Game:
        games.append(Game(screen, *arguments))
        return games[-1]

    yield begin
    for game in games:
        game.stop()


@pytest.mark.parametrize(("key", "action"), [("Left", 0), ("2", 1)])
def test_keys_that_are_held_act_on_and_on(start, key, action):
    game = start("-p", "CartPole_DQN", "-cp", "improve_steps=EnvironmentSteps(25)")
    game.press("keydown", key)
    assert "recorded 25 steps" in game.end()
    assert actions() == [action] * 25


def test_an_atari_game_is_played(start):
    pytest.importorskip("ale_py")
    game = start("-p", "Atari_DQN", "-lvl", "breakout", "-cp", "improve_steps=EnvironmentSteps(75)")
    game.press("keydown", "d")
    assert "recorded 75 steps" in game.end()
    assert 2 in actions() and set(actions()) <= {0, 2}


def test_a_window_is_left(start):
    game = start("-p", "CartPole_DQN")
    game.press("key", "Escape")
    assert "0 episodes" in game.end()
