"""StarCraft II: what an agent sees and does, in a simulated game, and in pysc2's own stand-in for the game where pysc2
is installed. No test starts the game itself."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from rl_coach.core_types import ActionInfo
from rl_coach.environments.starcraft2_environment import (
    StarCraft2EnvironmentParameters,
    StarcraftInputFilter,
    StarcraftNormalizingOutputFilter,
    StarcraftObservationType,
    _shuffle_of_python_3_10,
)
from rl_coach.installation import install_command
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import CoachError
from tests.zoo import starcraft
from tests.zoo.environments import environment_of

IS_INSTALLED = importlib.util.find_spec("pysc2") is not None


@pytest.fixture
def game(monkeypatch):
    starcraft.install(monkeypatch)


def settings(level: str = "CollectMineralShards", **changes: Any) -> StarCraft2EnvironmentParameters:
    made = StarCraft2EnvironmentParameters(level)
    made.feature_screen_maps_to_use = made.feature_minimap_maps_to_use = [5]
    for name, value in changes.items():
        setattr(made, name, value)
    return made


@pytest.mark.skipif(IS_INSTALLED, reason="pysc2 is installed")
def test_without_pysc2_the_command_that_installs_it_is_named():
    with pytest.raises(CoachError, match=r"'pysc2' of the extra 'starcraft' is not installed: .*pip install"):
        environment_of(settings())


def test_a_map_that_does_not_exist_is_one_line(game):
    with pytest.raises(CoachError, match="level 'CollectShards' does not start: Map doesn't exist: CollectShards"):
        environment_of(settings("CollectShards"))


def test_the_settings_reach_the_game(game):
    environment = environment_of(settings(screen_size=32, minimap_size=16, frame_skip=8, disable_fog=True), seed=3)
    sent = environment.env.settings
    assert (sent["step_mul"], sent["random_seed"], sent["disable_fog"], sent["visualize"]) == (8, 3, True, False)
    assert [player.race for player in sent["players"]] == ["terran"]
    assert environment.state["screen"].shape == (1, 32, 32) and environment.state["minimap"].shape == (1, 16, 16)
    environment.close()
    assert environment.env.is_closed


def test_an_episode_begins_with_the_army_selected_and_an_action_is_where_it_goes(game):
    environment = environment_of(settings())
    assert environment.env.marine.is_selected
    assert environment.action_space.low.tolist() == [0, 0] and environment.action_space.high.tolist() == [83, 83]
    rewards = [environment.step(np.array(point)).reward for point in ((10.4, 9.6), (200, 21), (70, 20), (0, 0))]
    assert environment.env.marine.position == (0, 0)
    assert rewards == [1, 0, 1, 0]  # (200, 21) is brought to (83, 21)
    assert environment.state["screen"][0, 60, 40] == 3  # the shard that is left, at x = 40
    assert environment.state["measurements"].tolist() == list(range(11))


def test_units_that_nobody_has_selected_stay(game):
    environment = environment_of(settings(auto_select_all_army=False))
    assert environment.step(np.array([10, 10])).reward == 0
    assert environment.env.marine.position == (42, 42)


@pytest.mark.parametrize("has_result", [True, False])
def test_an_episode_that_the_game_ends_is_terminated_and_one_that_is_too_long_truncated(has_result, game, monkeypatch):
    monkeypatch.setattr(starcraft.SimulatedGame, "has_result", has_result)
    environment = environment_of(settings())
    responses = [environment.step(np.array([0, 0])) for _ in range(starcraft.STEPS_OF_AN_EPISODE - 1)]
    assert [one.game_over for one in responses] == [False] * (starcraft.STEPS_OF_AN_EPISODE - 2) + [True]
    assert responses[-1].terminated is has_result
    assert not environment.reset_internal_state().game_over


def test_filters_give_bytes_with_the_maps_last_and_actions_around_the_middle(game):
    environment = environment_of(settings(feature_screen_maps_to_use=[5, 6]))
    space = environment.state_space["screen"]
    assert space.high[:, 0, 0].tolist() == [255, 1961]  # numbers of units do not fit into a byte
    (filtered,) = StarcraftInputFilter().filter(environment.last_env_response)
    seen = filtered.next_state
    assert seen["screen"].shape == (84, 84, 2) and seen["screen"].dtype == np.uint8
    assert seen["screen"][10, 10].tolist() == [3, 0] and seen["screen"][42, 42].tolist() == [1, 0]
    output_filter = StarcraftNormalizingOutputFilter()
    actions = output_filter.get_unfiltered_action_space(environment.action_space)
    assert actions.low.tolist() == [-42, -42] and actions.high.tolist() == [41, 41]
    assert output_filter.filter(ActionInfo(np.array([-42, 41]))).action.tolist() == [0, 83]


def test_colours(game):
    environment = environment_of(settings(observation_type=StarcraftObservationType.RGB))
    assert environment.state["screen"].shape == (3, 84, 84) and environment.state["screen"][0, 42, 42] == 80
    assert environment.get_rendered_image().shape == (84, 84, 3)


def test_every_function_of_the_game(game):
    environment = environment_of(settings(use_full_action_space=True, auto_select_all_army=False))
    functions = environment.action_space.sub_action_spaces[0]
    assert isinstance(functions, DiscreteActionSpace) and functions.num_actions == 573
    assert np.flatnonzero(environment.state["available_actions"]).tolist() == [0, 7]
    values = [np.array([10, 10]), np.array([0, 0]), np.array([0, 0]), 0, 0]
    assert environment.step([331, *values]).reward == 0  # nothing is selected yet
    environment.step([7, *values])
    assert np.flatnonzero(environment.state["available_actions"]).tolist() == [0, 7, 331]
    assert environment.step([331, *values]).reward == 1
    assert environment.action_space.contains(environment.get_random_action())


def test_the_shuffle_of_python_3_10_is_there_for_a_while():
    shuffle, items = random.shuffle, list(range(5))
    with _shuffle_of_python_3_10():
        random.shuffle(items, lambda: 0.5)
    assert random.shuffle is shuffle
    assert items == [0, 3, 1, 4, 2]  # the places 4 and 2, 3 and 2, 2 and 1 are swapped


WITH_PYSC2 = """
import numpy as np
from rl_coach.environments import starcraft2_environment as adapter
with adapter._shuffle_of_python_3_10():
    from pysc2.env import mock_sc2_env, sc2_env
sc2_env.SC2Env = mock_sc2_env.SC2TestEnv
from tests.zoo.environments import environment_of
made = adapter.StarCraft2EnvironmentParameters("CollectMineralShards")
environment = environment_of(made, seed=1)
for name, value in environment.state.items():
    assert environment.state_space[name].val_matches_space_definition(value), name
print(sorted((name, value.shape) for name, value in environment.state.items()))
steps = [environment.step(np.array([3, 4])) for _ in range(9)]
print([one.terminated for one in steps], environment.get_rendered_image().shape)
made.use_full_action_space = True
environment = environment_of(made, seed=1)
for _ in range(100):
    if environment.step(environment.get_random_action()).game_over:
        environment.reset_internal_state()
print(len(environment.action_space.sub_action_spaces), int(environment.state["available_actions"].sum()) > 0)
"""


@pytest.mark.skipif(not IS_INSTALLED, reason=f"pysc2 is not installed: {install_command('starcraft')}")
def test_with_pysc2_itself():
    """In a process of its own, because protobuf chooses how it reads messages when it is imported."""
    environment = {
        **os.environ,
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    run = subprocess.run(
        [sys.executable, "-c", WITH_PYSC2], env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    shapes, ends, functions = run.stdout.splitlines()[-3:]
    assert shapes == "[('measurements', (11,)), ('minimap', (7, 64, 64)), ('screen', (17, 84, 84))]"
    assert ends == f"{[False] * 8 + [True]} (84, 84, 3)"
    assert functions == "14 True"
