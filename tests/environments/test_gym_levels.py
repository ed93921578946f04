from __future__ import annotations

import logging
import re
import sys

import gymnasium
import numpy as np
import pytest

from rl_coach.environments import gym_levels
from rl_coach.environments.gym_levels import (
    atari_deterministic_v4,
    atari_no_frameskip_v4,
    fetch_v1,
    find_specification,
    mujoco_v2,
    roboschool_v1,
)
from rl_coach.environments.vector_levels import make_simulator
from rl_coach.installation import install_command
from rl_coach.utils import CoachError


def test_the_lists_name_coachs_levels():
    assert atari_deterministic_v4["up_n_down"] == "UpNDownDeterministic-v4"
    assert atari_no_frameskip_v4["ms_pacman"] == "MsPacmanNoFrameskip-v4"
    assert mujoco_v2["walker2d"] == "Walker2d-v2"
    assert mujoco_v2["inverted_double_pendulum"] == "InvertedDoublePendulum-v2"
    assert fetch_v1["pick_and_place"] == "FetchPickAndPlace-v1"
    assert roboschool_v1["half_cheetah"] == "RoboschoolHalfCheetah-v1"


def test_every_atari_level_is_a_game_of_today():
    for level in (*atari_deterministic_v4.values(), *atari_no_frameskip_v4.values()):
        assert find_specification(level).namespace == "ALE"


def test_cart_pole_v0_keeps_its_200_steps_and_its_threshold():
    specification = find_specification("CartPole-v0")
    assert specification.id == "CartPole-v1"
    assert (specification.max_episode_steps, specification.reward_threshold) == (200, 195.0)
    assert gymnasium.spec("CartPole-v1").max_episode_steps == 500


@pytest.mark.parametrize(
    ("level", "frameskip", "sticky", "observations"),
    [
        ("PongDeterministic-v4", 4, 0.0, "rgb"),
        ("PongNoFrameskip-v4", 1, 0.0, "rgb"),
        ("Pong-v4", (2, 5), 0.0, "rgb"),
        ("MontezumaRevenge-v0", (2, 5), 0.25, "rgb"),
        ("Pong-ram-v0", (2, 5), 0.25, "ram"),
        ("Pong-ramDeterministic-v4", 4, 0.0, "ram"),
    ],
)
def test_old_atari_ids_keep_their_meaning(level, frameskip, sticky, observations):
    kwargs = find_specification(level).kwargs
    assert kwargs["frameskip"] == frameskip
    assert kwargs["repeat_action_probability"] == sticky
    assert kwargs["obs_type"] == observations
    assert kwargs["full_action_space"] is False


@pytest.mark.parametrize("level", ["InvertedPendulum-v2", "Hopper-v2", "Swimmer-v3"])
def test_old_mujoco_ids_run_as_their_newest_version(level):
    simulator = make_simulator(level, {}, 1, None)
    assert simulator.spec.version >= 4
    assert simulator.spec.name == level.split("-")[0]


@pytest.mark.parametrize("level", [level for name, level in mujoco_v2.items() if name not in ("thrower", "striker")])
def test_every_mujoco_level_runs_and_says_what_it_is_today(level, caplog):
    gym_levels.say_once.cache_clear()
    with caplog.at_level(logging.WARNING, logger="rl_coach"):
        simulator = make_simulator(level, {}, 1, None)
    name = level.removesuffix("-v2")
    (record,) = caplog.records
    assert record.message.startswith(f"level '{level}' no longer runs; using '{name}-v5'")
    differs = re.search(r", whose observations have (\d+) numbers instead of (\d+)$", record.message)
    shorter = ("Ant", "Humanoid", "HumanoidStandup", "InvertedDoublePendulum", "Reacher")
    assert (differs is not None) == (name in shorter)
    observation, _ = simulator.reset(seed=1)
    assert differs is None or len(observation) == int(differs[1])
    assert np.isfinite(simulator.step(simulator.action_space.sample())[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("levels", [atari_deterministic_v4, atari_no_frameskip_v4])
def test_every_atari_level_runs(levels):
    assert len(levels) == 60
    for level in levels.values():
        simulator = make_simulator(level, {}, 1, None)
        assert simulator.reset(seed=1)[0].shape[1:] == (160, 3), level
        simulator.step(0)
        simulator.close()


def test_older_versions_lead_to_the_newest_and_higher_ones_nowhere():
    assert find_specification("Pendulum-v0").id == "Pendulum-v1"
    assert find_specification("Taxi-v2").name == "Taxi"
    with pytest.raises(CoachError, match="no level 'Pendulum-v7'"):
        find_specification("Pendulum-v7")


def test_fetch_levels_come_from_gymnasium_robotics():
    pytest.importorskip("gymnasium_robotics")
    specification = find_specification("FetchReach-v0")
    assert specification.version >= 2
    assert specification.max_episode_steps == 50


def test_one_line_says_what_an_old_level_is_today(caplog):
    gym_levels.say_once.cache_clear()
    with caplog.at_level(logging.WARNING, logger="rl_coach"):
        find_specification("CartPole-v0")
        find_specification("CartPole-v0")
    assert len(caplog.records) == 1
    assert "'CartPole-v0': using 'CartPole-v1'" in caplog.text


def test_an_unknown_level_is_an_error_that_names_the_nearest():
    with pytest.raises(CoachError, match="no level 'CartPol-v1'; did you mean 'CartPole-v1'"):
        make_simulator("CartPol-v1", {}, 1, None)
    with pytest.raises(CoachError, match=r"module:Class or file\.py:Class"):
        make_simulator("qqqqqqqqqqqq", {}, 1, None)


@pytest.mark.parametrize(
    ("level", "similar"), [("Thrower-v2", "Pusher-v5"), ("Striker-v2", "Pusher-v5"), ("RoboschoolAnt-v1", "Ant-v5")]
)
def test_levels_without_a_successor_name_a_similar_level_that_exists(level, similar):
    with pytest.raises(CoachError, match=f"no successor; .*'{similar}'"):
        make_simulator(level, {}, 1, None)
    assert similar in gymnasium.registry


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.delitem(gymnasium.registry, "ALE/Pong-v5", raising=False)
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(CoachError, match=re.escape(install_command("atari"))):
        find_specification("PongDeterministic-v4")


def test_a_missing_dependency_of_a_registered_level_names_its_extra(monkeypatch):
    def needs_mujoco(*args, **kwargs):
        raise gymnasium.error.DependencyNotInstalled("mujoco is not installed")

    monkeypatch.setattr(gymnasium, "make", needs_mujoco)
    with pytest.raises(CoachError, match=re.escape(install_command("mujoco"))):
        make_simulator("Hopper-v2", {}, 1, None)


def test_parameters_reach_the_simulator_and_unknown_ones_are_errors():
    simulator = make_simulator("FrozenLake-v1", {"map_name": "8x8"}, 1, None)
    assert simulator.observation_space.n == 64
    for level in ("CartPole-v1", "rl_coach.environments.toy_problems.bit_flip:BitFlip"):
        with pytest.raises(CoachError, match="additional_simulator_parameters"):
            make_simulator(level, {"no_such_parameter": 1}, 1, None)


def test_a_module_and_class():
    simulator = make_simulator("rl_coach.environments.toy_problems.bit_flip:BitFlip", {"bit_length": 5}, 1, None)
    assert simulator.action_space.n == 5


def test_a_module_that_registers_levels():
    assert make_simulator("gymnasium.envs.classic_control:CartPole-v1", {}, 1, None).spec.id == "CartPole-v1"
    with pytest.raises(CoachError, match="there is no module 'no_such_module'"):
        make_simulator("no_such_module:CartPole-v1", {}, 1, None)


def test_a_module_that_registers_levels_in_a_namespace_without_versions(monkeypatch):
    """As Meta-World does."""
    entry_point = "gymnasium.envs.classic_control:CartPoleEnv"
    monkeypatch.setitem(
        gymnasium.registry, "Space/Level", gymnasium.envs.registration.EnvSpec("Space/Level", entry_point)
    )
    assert make_simulator("gymnasium.envs.classic_control:Space/Level", {}, 1, None).spec.id == "Space/Level"


def test_a_file_and_class(level_file):
    source = "from gymnasium.envs.classic_control import CartPoleEnv\nclass Mine(CartPoleEnv):\n    pass\n"
    simulator = make_simulator(level_file(source, "Mine"), {}, 1, "rgb_array")
    assert simulator.render_mode == "rgb_array"


OF_OLD_GYM = """\
import gym
import numpy as np

class Old(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def seed(self, seed=None):
        self.seeded_with = seed

    def reset(self):
        return np.zeros(2, np.float32)

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, {}

gym.register("OfOldGym-v0", entry_point=Old, max_episode_steps=7, reward_threshold=6.5)
"""


def test_a_level_that_is_registered_with_the_older_gym_is_found(tmp_path, monkeypatch, make_environment):
    pytest.importorskip("gym")
    (tmp_path / "registers_with_gym.py").write_text(OF_OLD_GYM)
    monkeypatch.syspath_prepend(tmp_path)
    environment = make_environment("registers_with_gym:OfOldGym-v0", seed=3)
    assert environment.env.unwrapped.seeded_with == 3 and environment.reward_success_threshold == 6.5
    responses = [environment.step(1) for _ in range(7)]
    assert [response.game_over for response in responses] == [False] * 6 + [True]
    assert not responses[-1].terminated and environment.total_reward_in_current_episode == 7
    assert make_environment("OfOldGym-v0").action_space.num_actions == 2
    with pytest.raises(CoachError, match="no level 'OfOldGyms-v0'"):
        make_environment("OfOldGyms-v0")


def test_a_file_that_imports_the_older_gym_says_what_to_do(level_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "gym", None)  # as if it were not installed
    with pytest.raises(CoachError, match=r"the package 'gym' is not installed.*gymnasium"):
        make_simulator(level_file("import gym\nclass Mine(gym.Env): pass\n", "Mine"), {}, 1, None)


@pytest.mark.parametrize(
    ("imported", "message"),
    [
        ("no_such_package", r"the package 'no_such_package' is not installed: .*pip install no_such_package$"),
        ("numpy.no_such_part", r"the installed package 'numpy' has no module 'numpy.no_such_part'$"),
        ("minigrid", r"the package 'minigrid' of the extra 'minigrid' is not installed: .*pip install "),
    ],
)
@pytest.mark.parametrize("place", ["import {}\n", "class Mine:\n  def __init__(self):\n    import {}\n"])
def test_a_file_that_imports_what_is_missing_says_what(place, imported, message, level_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "minigrid", None)  # as if it were not installed
    with pytest.raises(CoachError, match=f"Mine' cannot be imported: {message}"):
        make_simulator(level_file(place.format(imported), "Mine"), {}, 1, None)


def test_a_registered_level_whose_package_is_missing_says_what(monkeypatch):
    specification = gymnasium.envs.registration.EnvSpec("NeedsMore-v0", "no_such_package:Mine")
    monkeypatch.setitem(gymnasium.registry, specification.id, specification)
    with pytest.raises(CoachError, match=r"NeedsMore-v0' cannot be imported: the package 'no_such_package' is not"):
        make_simulator("NeedsMore-v0", {}, 1, None)


@pytest.mark.parametrize("level", ["no_such_module:Mine", "no_such_module.inner:Mine", "no_such_module:Mine-v0"])
def test_a_level_in_a_module_that_does_not_exist_says_so(level):
    with pytest.raises(
        CoachError, match=rf"no level '{level}': there is no module 'no_such_module'; correct the name, or"
    ):
        make_simulator(level, {}, 1, None)


def test_an_atari_game_steps_single_frames_where_the_caller_skips_them():
    assert make_simulator("PongDeterministic-v4", {}, 4, None).unwrapped._frameskip == 1
    assert make_simulator("PongDeterministic-v4", {}, 1, None).unwrapped._frameskip == 4
    with pytest.raises(CoachError, match=r"env_params\.frame_skip"):
        make_simulator("ALE/Pong-v5", {"frameskip": 4}, 4, None)


def test_checking_wrappers_are_left_out():
    simulator = make_simulator("CartPole-v1", {}, 1, None)
    assert simulator.env is simulator.unwrapped
    simulator.reset(seed=0)
    assert np.isfinite(simulator.step(0)[0]).all()
