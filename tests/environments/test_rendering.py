from __future__ import annotations

import os
import subprocess
import sys

import gymnasium as gym
import imageio.v3 as imageio
import numpy as np
import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import AlwaysDumpFilter, MaxDumpFilter, RunPhase
from rl_coach.environments import rendering
from rl_coach.environments.gym_environment import Atari, GymEnvironment, GymVectorEnvironment
from rl_coach.environments.rendering import EpisodeVideo, Window, side_by_side
from rl_coach.utils import CoachError

pygame = pytest.importorskip("pygame")


@pytest.fixture
def display(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


@pytest.fixture
def no_display(monkeypatch):
    monkeypatch.setattr(rendering, "has_display", lambda: False)
    monkeypatch.setattr("rl_coach.environments.environment.has_display", lambda: False)


def press(window, monkeypatch, *keys):
    class Held(dict):
        __missing__ = lambda self, key: False  # noqa: E731

    monkeypatch.setattr(window._pygame.key, "get_pressed", lambda: Held(dict.fromkeys(keys, True)))


def pictures(count, height=64, width=48):
    return [np.full((height, width, 3), 40 * number, dtype=np.uint8) for number in range(count)]


def test_a_video_is_written_and_can_be_read_back(tmp_path):
    video = EpisodeVideo(str(tmp_path), gif=True, mp4=True, frames_per_second=10)
    for picture in pictures(6):
        video.add(picture)
    kept = video.keep("episode-3_score-7")
    assert kept == [tmp_path / "gifs" / "episode-3_score-7.gif", tmp_path / "videos" / "episode-3_score-7.mp4"]
    for file in kept:
        frames = imageio.imread(file)
        assert frames.shape == (6, 64, 48, 3)
        np.testing.assert_allclose(frames[:, 10, 10, 0], np.arange(6) * 40, atol=6)


def test_a_discarded_video_leaves_nothing(tmp_path):
    video = EpisodeVideo(str(tmp_path), gif=True, mp4=True, frames_per_second=10)
    video.add(pictures(1)[0])
    video.discard()
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_video_may_take_one_picture_in_several(tmp_path):
    video = EpisodeVideo(str(tmp_path), gif=True, mp4=False, frames_per_second=10, every=3)
    assert [video.counts_next() for _ in range(7)] == [True, False, False, True, False, False, True]
    video.add(pictures(1)[0])
    video.discard()


def test_pictures_stand_side_by_side_in_one_height():
    """A picture of 4 rows; a coloured one of 2 rows is doubled, and the last channel of a stack of 8 rows is halved."""
    image = np.full((4, 6, 3), 9, np.uint8)
    coloured = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    stack = np.stack([np.zeros((8, 4), np.uint8), np.arange(32, dtype=np.uint8).reshape(8, 4)], axis=2)
    found = side_by_side(image, [coloured, stack])
    assert found.shape == (4, 6 + 6 + 2, 3) and found.dtype == np.uint8
    np.testing.assert_array_equal(found[:, :6], image)
    np.testing.assert_array_equal(found[:, 6:12], np.kron(coloured, np.ones((2, 2, 1), np.uint8)))
    np.testing.assert_array_equal(found[:, 12:, 0], [[0, 2], [8, 10], [16, 18], [24, 26]])
    np.testing.assert_array_equal(found[:, 12:, 0], found[:, 12:, 2])


@pytest.mark.parametrize("parameters", [GymVectorEnvironment("CartPole-v1"), Atari("PongDeterministic-v4")])
def test_episodes_are_written_with_their_phase_step_number_and_reward(make_environment, tmp_path, parameters):
    visualization = VisualizationParameters(dump_gifs=True, dump_mp4=True, video_dump_methods=AlwaysDumpFilter())
    parameters.experiment_path = str(tmp_path)
    environment = make_environment(parameters, visualization, seed=1)
    environment.phase = RunPhase.TEST
    environment.training_steps = 1200
    for _ in range(2):
        environment.reset_internal_state()
        for step in range(11):
            environment.step(step % 2)
    environment.close()
    reward = environment.total_reward_in_current_episode
    gifs, videos = (sorted((tmp_path / kind).iterdir()) for kind in ("gifs", "videos"))
    assert [file.stem for file in gifs] == [file.stem for file in videos]
    assert gifs[-1].stem == f"testing_step-1200_episode-1_score-{reward}"
    assert len(gifs) == 2
    assert len(imageio.imread(gifs[0])) == (12 if parameters.frame_skip == 4 else 3)


def play(environment, episodes):
    """:return: the total rewards, how many pictures a video of each episode has, and all that was seen"""
    rewards, pictures, seen = [], [], []
    for _ in range(episodes):
        environment.reset_internal_state()
        response = environment.last_env_response
        while not response.game_over:
            seen.append(response.next_state["observation"].copy())
            response = environment.step(environment.get_random_action())
        environment.handle_episode_ended()
        rewards.append(environment.total_reward_in_current_episode)
        pictures.append(-(-(environment.current_episode_steps_counter + 1) // 5))  # one in five
        assert environment.last_env_response is response
    environment.close()
    return rewards, pictures, np.concatenate(seen)


@pytest.mark.parametrize("level", ["CartPole-v1", "Pendulum-v1"])
def test_only_episodes_that_are_kept_are_drawn_and_nothing_else_changes(make_environment, tmp_path, monkeypatch, level):
    drawn = []
    draw = GymEnvironment.get_rendered_image
    monkeypatch.setattr(GymEnvironment, "get_rendered_image", lambda self: drawn.append(1) or draw(self))
    found = []
    for films in (True, False):
        parameters = GymVectorEnvironment(level)
        parameters.experiment_path = str(tmp_path)
        visualization = VisualizationParameters(dump_gifs=films, video_dump_methods=MaxDumpFilter())
        environment = make_environment(parameters, visualization, seed=3)
        environment.phase = RunPhase.TRAIN
        found.append(play(environment, 8))
    (rewards, pictures, seen), (rewards_undrawn, _, seen_undrawn) = found
    assert rewards == rewards_undrawn
    np.testing.assert_array_equal(seen, seen_undrawn)
    kept = [place for place, reward in enumerate(rewards) if place == 0 or reward > max(rewards[:place])]
    files = sorted((tmp_path / "gifs").iterdir(), key=lambda file: int(file.stem.split("-")[1].split("_")[0]))
    assert len(kept) < 8
    assert [float(file.stem.rpartition("score-")[2]) for file in files] == [rewards[place] for place in kept]
    assert all(file.name.startswith("training_step-") for file in files)
    assert len(drawn) == sum(pictures[place] for place in kept)


def test_a_simulator_that_does_not_repeat_is_filmed_while_it_plays(make_environment, tmp_path, capsys):
    parameters = GymVectorEnvironment("CartPole-v1")
    parameters.experiment_path = str(tmp_path)
    visualization = VisualizationParameters(dump_gifs=True, video_dump_methods=AlwaysDumpFilter())
    environment = make_environment(parameters, visualization, seed=3)
    clock = iter(range(10**6))
    take_action = environment._take_action

    def differently(action):
        take_action(action)
        environment.state = {"observation": environment.state["observation"] + next(clock)}

    environment._take_action = differently
    environment.phase = RunPhase.TRAIN
    drawn = []
    draw = environment.get_rendered_image
    environment.get_rendered_image = lambda: drawn.append(1) or draw()
    _, pictures, _ = play(environment, 3)
    assert "cannot repeat an episode" in capsys.readouterr().out
    assert len(list((tmp_path / "gifs").iterdir())) == 2  # the first was lost
    assert len(drawn) >= sum(pictures[1:])


def test_pictures_that_fail_are_an_error_that_says_so(make_environment, tmp_path, monkeypatch):
    parameters = GymVectorEnvironment("CartPole-v1")
    parameters.experiment_path = str(tmp_path)
    visualization = VisualizationParameters(dump_gifs=True, dump_mp4=True, video_dump_methods=AlwaysDumpFilter())
    environment = make_environment(parameters, visualization, seed=3)

    def failing():
        raise RuntimeError("no GPU")

    monkeypatch.setattr(environment.env, "render", failing)
    environment.phase = RunPhase.TRAIN
    with pytest.raises(CoachError, match="'CartPole-v1' cannot be rendered: RuntimeError: no GPU"):
        play(environment, 1)
    environment.close()
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


DRAW_ONE_STEP = """
import sys
import numpy as np
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.environments.gym_environment import GymEnvironment
visualization = VisualizationParameters(add_rendered_image_to_env_response=True)
image = GymEnvironment(sys.argv[1], 1, visualization, seed=1).step(np.zeros(1)).info["image"]
print(image.ndim, image.dtype, image.std() > 0)
"""


@pytest.mark.parametrize(
    "level", ["InvertedPendulum-v5", "rl_coach.environments.mujoco.pendulum_with_goals:PendulumWithGoals"]
)
def test_mujoco_gives_images_without_a_display(tmp_path, level):
    pytest.importorskip("mujoco")
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "MUJOCO_GL")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    variables["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", DRAW_ONE_STEP, level]
    run = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    if run.returncode and "EGL" in run.stderr:
        pytest.skip("no EGL here")
    assert run.stdout.split() == ["3", "uint8", "True"], run.stderr


def test_a_window_without_a_display_is_an_error(make_environment, no_display):
    for visualization in (
        VisualizationParameters(render=True),
        VisualizationParameters(render=True, native_rendering=True),
    ):
        with pytest.raises(CoachError, match="no display"):
            make_environment("CartPole-v1", visualization)
    with pytest.raises(CoachError, match="no display"):
        make_environment("CartPole-v1", human_control=True)


def test_native_rendering_gives_no_videos(make_environment):
    visualization = VisualizationParameters(render=True, native_rendering=True, dump_gifs=True)
    with pytest.raises(CoachError, match="native_rendering"):
        make_environment("CartPole-v1", visualization)


def test_a_display_is_told_by_its_variables(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    assert not rendering.has_display()
    monkeypatch.setenv("DISPLAY", ":0")
    assert rendering.has_display()


def test_a_window_shows_the_environment(make_environment, display):
    environment = make_environment("CartPole-v1", VisualizationParameters(render=True), seed=1)
    environment.step(0)
    window = environment._window
    shown = pygame.surfarray.array3d(window._screen)
    np.testing.assert_array_equal(np.swapaxes(shown, 0, 1), environment.get_rendered_image())
    environment.close()
    assert not window.is_open


def test_a_person_acts_with_the_environments_keys(make_environment, display, monkeypatch):
    environment = make_environment(Atari("PongDeterministic-v4"), human_control=True, seed=1)
    environment.visualization_parameters.max_fps_for_human_control = 0
    press(environment._window, monkeypatch, pygame.K_d, pygame.K_SPACE)
    assert environment.action_space.get_description(environment.get_action_from_user()) == "RIGHTFIRE"
    press(environment._window, monkeypatch)
    assert environment.get_action_from_user() == 0
    assert ("LEFT", "a") in environment.get_available_keys()


def test_a_person_acts_with_numbers_where_there_are_no_keys(make_environment, display, monkeypatch):
    environment = make_environment("CartPole-v1", human_control=True, seed=1)
    environment.visualization_parameters.max_fps_for_human_control = 0
    press(environment._window, monkeypatch, pygame.K_2)
    assert environment.get_action_from_user() == 1
    environment._window.close()
    with pytest.raises(KeyboardInterrupt):
        environment.get_action_from_user()


class MaskedParts(gym.Env):
    """Two choices of two; the second choice of the first part is always forbidden."""

    metadata = {"render_modes": ["rgb_array"]}
    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.MultiDiscrete([2, 2])
    info = {"action_mask": np.array([1, 0, 1, 1], np.int8)}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), self.info

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, False, self.info

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)


def test_a_person_cannot_choose_a_masked_part(make_environment, display, monkeypatch):
    parameters = GymVectorEnvironment(f"{__file__}:MaskedParts")
    parameters.combines_choices = False
    environment = make_environment(parameters, human_control=True, seed=1)
    environment.visualization_parameters.max_fps_for_human_control = 0
    press(environment._window, monkeypatch, pygame.K_2)
    assert environment.get_action_from_user().tolist() == [0, 1]
    press(environment._window, monkeypatch, pygame.K_3)
    assert environment.get_action_from_user() is None


def test_a_closed_window_shows_nothing_more(display):
    window = Window("test")
    assert window.pressed_keys() == set()
    window.show(pictures(1)[0])
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.show(pictures(1)[0])
    assert not window.is_open
    window.show(pictures(1)[0])
