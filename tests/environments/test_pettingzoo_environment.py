"""Environments of PettingZoo, the real ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.core_types import RunPhase
from rl_coach.environments.multi_agent_environment import PlayersResponse
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.utils import CoachError
from tests.zoo.environments import environment_of

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed: pip install 'rl_coach[multi-agent]'")
ALL_AT_ONCE = [
    "mpe2.simple_spread_v3",
    "mpe2.simple_tag_v3",
    "mpe2.simple_speaker_listener_v4",
    "mpe2.simple_crypto_v3",
]
IN_TURN = ["pettingzoo.classic.tictactoe_v3", "pettingzoo.classic.connect_four_v3", "pettingzoo.classic.rps_v2"]


def made(level: str, turns: bool | None = None, seed: int = 3, **settings: Any) -> Any:
    parameters = PettingZooEnvironmentParameters(level, turns)
    for name, value in settings.items():
        setattr(parameters, name, value)
    environment = environment_of(parameters, seed)
    environment.phase = RunPhase.TRAIN
    return environment


def some_action(environment: Any, response: PlayersResponse, rng: np.random.Generator) -> dict[str, Any]:
    actions = {}
    for player in response.to_act:
        spaces = environment.spaces[player]
        mask = spaces.action_mask(response.answers[player].next_state)
        allowed = range(spaces.action.num_actions) if mask is None else np.flatnonzero(mask)
        actions[player] = int(rng.choice(allowed))
    return actions


def play(environment: Any, rng: np.random.Generator, most: int = 1000) -> list[PlayersResponse]:
    responses = [environment.reset_internal_state(True)]
    while not responses[-1].game_over and len(responses) <= most:
        responses.append(environment.step(some_action(environment, responses[-1], rng)))
    return responses


def simulated(level: str, seed: int, rng: np.random.Generator) -> dict[str, float]:
    """The rewards of the players in PettingZoo's own loop, with the same actions."""
    import importlib

    env = importlib.import_module(level).env()
    env.reset(seed=seed)
    rewards = dict.fromkeys(env.possible_agents, 0.0)
    while env.agents:
        player = env.agent_selection
        observation, reward, terminated, truncated, _ = env.last()
        rewards[player] += reward
        if terminated or truncated:
            env.step(None)
            continue
        mask = observation.get("action_mask") if isinstance(observation, dict) else None
        allowed = range(env.action_space(player).n) if mask is None else np.flatnonzero(mask)
        env.step(int(rng.choice(allowed)))
    return rewards


@pytest.mark.parametrize("level", [*ALL_AT_ONCE, *IN_TURN])
def test_rewards_are_those_of_pettingzoos_own_loop(level):
    for seed in range(3):
        environment = made(level, turns=True, seed=seed)
        play(environment, np.random.default_rng(seed))
        episode_seed = int(np.random.default_rng(seed).integers(2**31))
        assert environment.total_rewards == pytest.approx(simulated(level, episode_seed, np.random.default_rng(seed)))


@pytest.mark.parametrize("level", ALL_AT_ONCE)
def test_all_act_at_once_where_the_level_can(level):
    environment = made(level)
    first, *others = play(environment, np.random.default_rng(0))
    assert set(first.answers) == set(first.to_act) == set(environment.players)
    assert len(others) == 25 and others[-1].game_over and not others[-1].terminated, "its limit is 25 steps"
    assert first.reward == 0 and sum(one.reward for one in others) == environment.total_reward_in_current_episode


def test_players_take_turns_and_are_told_when_it_is_their_turn():
    environment = made("pettingzoo.classic.tictactoe_v3")
    response = environment.reset_internal_state(True)
    for player, field in [("player_1", 0), ("player_2", 3), ("player_1", 1), ("player_2", 4)]:
        assert list(response.answers) == [player] and response.to_act == (player,)
        assert response.answers[player].next_state["action_mask"][field]
        response = environment.step({player: field})
    response = environment.step({"player_1": 2})
    assert {player: answer.reward for player, answer in response.answers.items()} == {"player_1": 1, "player_2": -1}
    assert response.game_over and response.terminated and response.to_act == ()


def test_who_waits_is_answered_when_the_episode_is_cut_off():
    environment = made("pettingzoo.classic.tictactoe_v3")
    environment.reset_internal_state(True)
    environment.step({"player_1": 0})
    response = environment.cut_off()
    assert set(response.answers) == {"player_1", "player_2"}
    assert all(answer.game_over and not answer.terminated for answer in response.answers.values())
    assert response.answers["player_1"].next_state["observation"].sum() == 1


@pytest.mark.parametrize("level", ["mpe2.simple_spread_v3", "pettingzoo.classic.connect_four_v3"])
def test_an_episode_is_repeated_to_the_step(level):
    environment, rng = made(level), np.random.default_rng(5)
    play(environment, rng)
    response = environment.reset_internal_state(True)
    for _ in range(5):
        response = environment.step(some_action(environment, response, rng))
    other = made(level, seed=9)
    assert other.set_episode_state(environment.get_episode_state())
    actions = some_action(environment, response, rng)
    one, two = environment.step(actions), other.step(actions)
    assert one.reward == two.reward and list(one.next_state) == list(two.next_state)
    assert all(np.array_equal(one.next_state[name], two.next_state[name]) for name in one.next_state)


def test_a_repeated_episode_continues_with_the_same_random_actions():
    environment, other = made("mpe2.simple_spread_v3"), made("mpe2.simple_spread_v3", seed=9)
    environment.reset_internal_state(True)
    for _ in range(3):
        environment.step(environment.get_random_action())
    assert other.set_episode_state(environment.get_episode_state())
    assert [other.get_random_action() for _ in range(5)] == [environment.get_random_action() for _ in range(5)]


def test_random_actions_obey_the_masks():
    environment = made("pettingzoo.classic.tictactoe_v3")
    for _ in range(10):
        response = environment.reset_internal_state(True)
        while not response.game_over:
            response = environment.step(environment.get_random_action())
        # the board's referee punishes a forbidden action with -1 and gives nothing to the other player
        assert sum(environment.total_rewards.values()) == 0


def test_continuous_actions_have_the_type_of_their_space():
    settings = {"continuous_actions": True}
    environment = made("mpe2.simple_spread_v3", turns=True, additional_simulator_parameters=settings)
    space, taken = environment.env.action_space("agent_0"), []
    step = environment.env.step
    environment.env.step = lambda action: (taken.append(action), step(action))
    environment.reset_internal_state(True)
    environment.step({"agent_0": np.zeros(5, np.float64) + 0.1})
    assert space.contains(taken[0]), "PettingZoo warns of an action of another type at each step"


def test_episodes_differ_and_seeds_repeat_them():
    def starts(seed: int) -> list[bytes]:
        environment = made("mpe2.simple_spread_v3", seed=seed)
        return [environment.reset_internal_state(True).next_state["agent_0/observation"].tobytes() for _ in range(3)]

    assert starts(1) == starts(1) != starts(2) and len(set(starts(1))) == 3


OWN_FILE = """
from neighbour import Scripted as Base


class Mine(Base):
    pass


def make(**settings):
    return Mine(**settings)


parallel_env = make
"""


@pytest.mark.parametrize("level", ["mine.py:make", "mine.py:Mine", "mine.py", "tests.zoo.parallel_players:make"])
@pytest.mark.parametrize("turns", [None, True, False])
def test_an_environment_of_the_user_may_be_a_file_that_imports_its_neighbours(level, turns, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN_FILE)
    (tmp_path / "neighbour.py").write_text("from tests.zoo.parallel_players import Scripted")
    if level == "mine.py" and turns:
        with pytest.raises(CoachError, match=r"has no function env: set env_params\.turns to False"):
            made(level, turns)
        return
    environment = made(level, turns)
    assert environment.players == ["a", "b"] and environment.takes_turns is bool(turns)
    responses = play(environment, np.random.default_rng(0))
    assert responses[-1].game_over and environment.total_rewards == {"a": 12.0, "b": 12.0}


@pytest.mark.parametrize(
    "level, settings, message",
    [
        ("mpe2.simple_spreed_v3", {}, "no level 'mpe2.simple_spreed_v3': there is no module 'mpe2.simple_spreed_v3'"),
        ("nothere.at_all_v1", {}, "there is no module 'nothere'; a level is a module, such as mpe2.simple_spread_v3"),
        ("pettingzoo.classic.tictactoe_v3", {"turns": False}, "has no function parallel_env: set env_params.turns to"),
        ("mpe2.simple_spread_v3", {"frame_skip": 4}, "frame_skip of level 'mpe2.simple_spread_v3' must be 1, not 4"),
        (
            "mpe2.simple_spread_v3",
            {"human_control": True},
            "--play works only in single-player environments: leave it out",
        ),
        (None, {}, "no level is selected"),
        ("nowhere.py:make", {}, "no file 'nowhere.py'"),
        ("tests.zoo.parallel_players:mak", {}, "has no 'mak'; did you mean 'make'?"),
        ("tests.zoo.parallel_players:np", {}, "level 'tests.zoo.parallel_players:np' cannot be made: "),
        ("builtins:dict", {}, "level 'builtins:dict' makes a dict, which is not an environment of PettingZoo"),
        ("tests.zoo.parallel_players", {}, "has neither parallel_env nor env: name its function, as in tests.zoo"),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_line(level, settings, message):
    with pytest.raises(CoachError) as refusal:
        made(level, **settings)
    assert message in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "place, value, message",
    [
        (2, "no", "'terminated' of player 'a' is 'no', not True or False"),
        (2, None, "'terminated' of player 'a' is None, not True or False"),
        (3, 0.5, "'truncated' of player 'a' is 0.5, not True or False"),
        (1, None, "the reward of player 'a' is None, not a number"),
        (1, [1, 2], "the reward of player 'a' is [1, 2], not a number"),
        (0, None, "the observation of player 'a': 'observation' is None, which is not an array of numbers"),
        (0, np.zeros(9), "the observation of player 'a': 'observation' has the shape (9,), its space says"),
    ],
)
def test_an_answer_that_has_another_form_in_a_later_step_is_one_line(monkeypatch, place, value, message):
    from tests.zoo.parallel_players import Scripted

    own = Scripted.step

    def step(self, actions):
        answer = list(own(self, actions))
        answer[place] = dict.fromkeys(answer[place], value)
        return tuple(answer)

    environment = made("tests.zoo.parallel_players:make")
    environment.reset_internal_state(True)
    monkeypatch.setattr(Scripted, "step", step)
    with pytest.raises(CoachError) as refusal:
        environment.step(environment.get_random_action())
    assert message in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("value", ["2", True, [2.0]])
def test_a_text_is_no_reward(monkeypatch, value):
    from tests.zoo.parallel_players import Scripted

    environment = made("tests.zoo.parallel_players:make")
    environment.reset_internal_state(True)
    own = Scripted.step
    monkeypatch.setattr(
        Scripted,
        "step",
        lambda self, given: (lambda one: (one[0], dict.fromkeys(one[1], value), *one[2:]))(own(self, given)),
    )
    if value == "2":
        with pytest.raises(CoachError, match="the reward of player 'a' is '2', not a number"):
            environment.step(environment.get_random_action())
    else:
        rewards = [one.reward for one in environment.step(environment.get_random_action()).answers.values()]
        assert rewards == [float(np.sum(value))] * 2


@pytest.mark.parametrize("place, name", [(1, "rewards"), (2, "terminations"), (3, "truncations")])
def test_a_player_that_a_step_leaves_out_is_named(monkeypatch, place, name):
    from tests.zoo.parallel_players import Scripted

    own = Scripted.step

    def step(self, actions):
        answer = list(own(self, actions))
        del answer[place]["b"]
        return tuple(answer)

    monkeypatch.setattr(Scripted, "step", step)
    with pytest.raises(CoachError, match=f"the {name} of step have no player 'b', but the observations do"):
        made("tests.zoo.parallel_players:make")


@pytest.mark.parametrize(
    "text, message",
    [
        ("import nothere_at_all", "the package 'nothere_at_all' is not installed: "),
        ("from numpy import nothere", "cannot import name 'nothere' from 'numpy'"),
    ],
)
@pytest.mark.parametrize("is_in_function", [False, True])
def test_a_package_that_a_level_needs_is_named_with_its_command(tmp_path, text, message, is_in_function):
    body = f"def parallel_env(**_):\n    {text}\n" if is_in_function else f"{text}\ndef parallel_env(**_): pass\n"
    (tmp_path / "mine.py").write_text(body)
    with pytest.raises(CoachError) as refusal:
        made(str(tmp_path / "mine.py"))
    assert message in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_players_need_different_names(monkeypatch, names):
    from tests.zoo.parallel_players import Scripted

    own = Scripted.__init__

    def begin(self, *given, **settings):
        own(self, *given, **settings)
        self.possible_agents = names

    monkeypatch.setattr(Scripted, "__init__", begin)
    with pytest.raises(CoachError, match="not a list of different names"):
        made("tests.zoo.parallel_players:make")
