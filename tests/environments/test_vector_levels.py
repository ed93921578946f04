"""Levels that are vector environments of the user's, in each autoreset mode."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.environments.native_copies import _info_columns
from rl_coach.environments.vector_levels import VectorOfOne, info_of
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.filters.reward.reward_normalization_filter import RewardNormalizationFilter
from rl_coach.graph_managers.building import make_copies
from rl_coach.utils import CoachError, TrainingError
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn

MODULE = "tests.zoo.counting_environments"
MODES = [f"{MODULE}:{name}" for name in ("told", "same_step", "next_step", "gymnasiums_next_step")]
MODES += [f"{MODULE}:CoachVectorOnly-v0"]


def parameters_of(level, count=3, **settings):
    parameters = GymVectorEnvironment(level)
    parameters.seed, parameters.num_environments = 1, count
    for name, value in settings.items():
        setattr(parameters, name, value)
    return parameters


@pytest.fixture
def start(in_training):
    def make(level, count=3, **settings):
        return in_training(make_copies(parameters_of(level, count, **settings), VisualizationParameters()))

    return make


def episodes(copies, steps):
    """For each copy its episodes, each a list of what was seen: the first state, then all answers.

    :param steps: number of steps of all copies
    """
    count, played = copies.num_copies, {}
    due = np.ones(count, np.bool_)
    for _ in range(steps):
        waiting = np.zeros(count, np.bool_) if due.all() else copies.waiting
        begin = np.flatnonzero(due & ~waiting)
        if len(begin):
            states = copies.begin_columns(begin, np.zeros(len(begin), np.bool_))
            for row, index in enumerate(begin):
                seen = {name: column[row].tolist() for name, column in states.items()}
                played.setdefault(int(index), []).append([seen])
        columns = copies.step_columns(np.arange(count) % 3)
        due = due & waiting
        for index in np.flatnonzero(~waiting):
            seen = {name: column[index].tolist() for name, column in columns.states.items()}
            outcome = columns.rewards[index], bool(columns.terminated[index]), bool(columns.truncated[index])
            infos = {name: column[index] for name, column in columns.infos.items()}
            info = {name: value for name, value in infos.items() if not np.ma.is_masked(value)}
            played[int(index)][-1].append((seen, *outcome[1:], info["count"], str(info.get("last"))))
        due |= (columns.terminated | columns.truncated) & ~waiting
    return played


def number_of(seen):
    return seen["desired_goal"][0]


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("count", [1, 3])
def test_each_episode_has_its_own_states_alone(start, level, count):
    found = episodes(start(level, count), 40)
    expected = episodes(start(f"{MODULE}:CoachMasked-v0", count, vectorization="sync"), 40)
    for index in range(count):
        assert len(found[index]) > 8
        for own, other in zip(found[index][:-1], expected[index][:-1]):
            assert own == other
            assert {number_of(own[0]), *(number_of(seen) for seen, *_ in own[1:])} == {number_of(own[0])}


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("count", [1, 2])
def test_no_stored_transition_leads_into_the_next_episode(level, count, tmp_path):
    manager = graph(dqn(), parameters_of(level, count), tmp_path, schedule(10, 20, EnvironmentEpisodes(2), heatup=10))
    manager.heatup(EnvironmentSteps(10))
    with manager.phase_context(RunPhase.TRAIN):
        manager.act(EnvironmentSteps(30))
        manager.reset_internal_state(True)
        manager.act(EnvironmentSteps(30))
    memory = manager.get_agent().memory
    rows = [memory.get(i) for i in range(memory.num_transitions())]
    assert len(rows) >= 60
    for row in rows:
        numbers = row.state["desired_goal"], row.next_state["desired_goal"]
        counts = [
            round(float(one["observation"][0] - one["desired_goal"][0]) * 100) for one in (row.state, row.next_state)
        ]
        assert numbers[0] == numbers[1] and counts[1] == counts[0] + 1
    manager.evaluate(EnvironmentEpisodes(2))
    manager.close()


@pytest.mark.parametrize("level", MODES)
def test_copies_that_wait_neither_act_nor_count(level, tmp_path):
    """The action follows from the state. So it is seen whether each copy gets its own, and whether a step counts."""
    manager = graph(dqn(), parameters_of(level), tmp_path, schedule(10**6), copies=3)
    agent = manager.get_agent()

    def choose(states):
        return states["desired_goal"][:, 0].astype(int) % 3

    agent.choose_actions = choose
    manager.train_and_act(EnvironmentSteps(40))
    assert agent.parallel.are_in_columns
    rows = [agent.memory.get(index) for index in range(agent.memory.num_transitions())]
    assert len(rows) == agent.total_steps_counter == manager.level_managers[0].environment_steps
    for row in rows:
        assert row.action == row.reward == row.state["desired_goal"][0] % 3
    assert sum(bool(row.game_over) for row in rows) == agent.current_episode > 6
    for episode in agent.parallel.episodes:
        count = round(float(episode.curr_state["observation"].flat[0] - episode.curr_state["desired_goal"][0]) * 100)
        assert episode.steps == count
    manager.close()


@pytest.mark.parametrize("level", MODES)
def test_answers_to_copies_that_wait_do_not_enter_the_statistics_of_filters(level, tmp_path):
    parameters = dqn()
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
    parameters.input_filter.add_reward_filter("normalize", RewardNormalizationFilter())
    manager = graph(parameters, parameters_of(level), tmp_path, schedule(10**6), copies=3)
    agent = manager.get_agent()
    manager.train_and_act(EnvironmentSteps(40))
    assert agent.parallel.are_in_columns and agent.current_episode > 6
    begun = agent.current_episode + 3 - len(manager.level_managers[0].due)
    of_observations, of_rewards = agent.input_filter.members
    steps = agent.total_steps_counter
    assert of_rewards.running_rewards_stats.n == steps
    assert of_observations.running_observation_stats.n == steps + begun
    manager.close()


def test_a_copy_cannot_begin_before_its_episode_has_ended(start):
    copies = start(MODES[1])
    copies.begin_columns(np.arange(3), np.ones(3, np.bool_))
    with pytest.raises(TrainingError, match="a copy cannot cut its episode off and begin another"):
        copies.begin_columns(np.array([1]), np.array([True]))
    first = copies.begin_columns(np.arange(3), np.ones(3, np.bool_))
    assert first["number"].shape[0] == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("too_few", "made 2 copies, but its argument num_envs was 3"),
        ("no_vector", "makes no vector environment"),
        ("without_argument", "give its function an argument num_envs"),
    ],
)
def test_functions_that_make_something_else_are_refused(start, name, message):
    with pytest.raises(CoachError, match=message) as error:
        start(f"{MODULE}:{name}")
    assert f"{MODULE}:{name}" in str(error.value) and "\n" not in str(error.value)


def test_an_episode_without_a_last_observation_is_refused(start):
    with pytest.raises(TrainingError, match="no 'final_obs'"):
        episodes(start(f"{MODULE}:without_final_observations"), 20)


def test_settings_that_mean_nothing_are_refused(start):
    with pytest.raises(CoachError, match=r"steps its copies itself: leave out env_params.vectorization"):
        start(MODES[0], vectorization="async")
    with pytest.raises(CoachError, match="skips no frames"):
        start(MODES[0], frame_skip=2)


def test_a_file_names_its_function(start, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import gymnasium\n\ndef make_vec(num_envs):\n"
        "    return gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make('CartPole-v1')] * num_envs)\n"
    )
    copies = start(f"{file}:make_vec", 2)
    first = copies.begin_columns(np.arange(2), np.ones(2, np.bool_))
    assert first["observation"].shape == (2, 4)


@pytest.mark.parametrize(
    "masks",
    [
        (np.array([[0, 0, 1], [1, 0, 0]]), np.array([[0, 1], [1, 0]])),
        [(np.array([0, 0, 1]), np.array([0, 1])), (np.array([1, 0, 0]), np.array([1, 0]))],
        [np.array([0, 0, 1, 0, 1]), [1, 0, 0, 1, 0]],
    ],
)
def test_masks_of_all_copies_in_parts_or_in_a_list_are_one_array(masks):
    infos = {"action_mask": masks, "lives": np.array([3, 2])}
    expected = [[0, 0, 1, 0, 1], [1, 0, 0, 1, 0]]
    assert _info_columns(infos)["action_mask"].tolist() == expected
    assert [info_of(infos, index)["action_mask"].tolist() for index in range(2)] == expected


def test_the_state_of_the_generator_determines_the_next_episodes():
    one, other = (VectorOfOne(gymnasium.make_vec("CartPole-v1", 1)) for _ in range(2))
    one.reset(seed=1)
    one.reset()
    other.reset(seed=2)
    other.np_random.bit_generator.state = one.np_random.bit_generator.state
    np.testing.assert_array_equal(one.reset()[0], other.reset()[0])
