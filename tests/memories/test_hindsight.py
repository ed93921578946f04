"""Hindsight replay: which goals are chosen, and that the copies are what they pretend to be."""

import numpy as np
import pytest

from rl_coach.core_types import Transition
from rl_coach.memories.episodic.episodic_hindsight_experience_replay import (
    EpisodicHindsightExperienceReplay,
    EpisodicHindsightExperienceReplayParameters,
    HindsightGoalSelectionMethod,
)
from rl_coach.memories.episodic.episodic_hrl_hindsight_experience_replay import (
    EpisodicHRLHindsightExperienceReplay,
    EpisodicHRLHindsightExperienceReplayParameters,
)
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.spaces import GoalsSpace, ReachingGoal
from rl_coach.utils import CoachError, dynamic_import_and_instantiate_module_from_params
from tests.memories.transitions import as_episode

Method = HindsightGoalSelectionMethod
GOALS = GoalsSpace("achieved_goal", ReachingGoal(0.1, goal_reaching_reward=5, default_reward=-2), np.subtract)
GOALS.distance_metric = GoalsSpace.DistanceMetric.Euclidean


def walk(length: int, start: float = 0.0, **info):
    """Steps of length 1 along a line towards a goal at 1000; the state reached by step i is start + i + 1."""

    def state(place):
        place = np.array([place, 0.0], np.float32)
        return {"observation": place, "achieved_goal": place, "desired_goal": np.array([1000.0, 0.0], np.float32)}

    return as_episode(
        [
            Transition(state(start + i), np.array([9.0, 9.0]), -2.0, state(start + i + 1), i == length - 1, dict(info))
            for i in range(length)
        ]
    )


def hindsight(method=Method.Future, copies=4, size=10_000, granularity=MemoryGranularity.Transitions, cls=None):
    memory = (cls or EpisodicHindsightExperienceReplay)((granularity, size), copies, method, GOALS)
    memory.seed(0)
    return memory


def split(memory, length):
    """The stored columns of the real transitions and those of the copies, of a memory of one episode."""
    transitions = memory.transitions
    return transitions[:length], transitions[length:]


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("copies", [0, 1, 4])
def test_copies_pretend_to_have_wanted_what_was_reached(method, copies):
    memory, episode = hindsight(method, copies), walk(20, note=3)
    memory.store_episode(episode)
    real, made = split(memory, 20)
    copied = 19 if method == Method.Future else 20
    assert len(made) == copied * copies and memory.num_complete_episodes() == 1
    assert np.all(real.state_columns["desired_goal"][:, 0] == 1000) and np.all(real.reward_column == -2)
    if not copies:
        return
    source = np.repeat(np.arange(copied), copies)
    goals, reached = made.state_columns["desired_goal"], made.next_state_columns["achieved_goal"]
    np.testing.assert_array_equal(made.state_columns["observation"][:, 0], source)
    np.testing.assert_array_equal(reached[:, 0], source + 1)
    np.testing.assert_array_equal(made.next_state_columns["desired_goal"], goals)
    at_goal = np.all(goals == reached, axis=1)
    np.testing.assert_array_equal(made.reward_column, np.where(at_goal, 5, -2))
    np.testing.assert_array_equal(made.game_over_column, at_goal)
    np.testing.assert_array_equal(made.terminated_column, at_goal)
    np.testing.assert_array_equal(made.info("note"), 3)
    assert made.return_column is None and memory._store.batch_at(np.arange(20)).return_column is not None
    assert episode.transitions[0].state["desired_goal"][0] == 1000 and len(episode) == 20


def test_where_the_goals_come_from():
    def chosen(method, length=20):
        memory = hindsight(method, 50)
        memory.store_episode(walk(30, start=500))
        memory.clean() if method != Method.Random else None
        before = memory.num_transitions()
        memory.store_episode(walk(length))
        made = memory.transitions[before + length :]
        return made.state_columns["observation"][:, 0].astype(int), made.state_columns["desired_goal"][:, 0].astype(int)

    step, goal = chosen(Method.Final)
    assert set(goal) == {20}
    step, goal = chosen(Method.Future)
    assert all(set(goal[step == i]) <= set(range(i + 1, 21)) for i in range(19)) and step.max() == 18
    assert set(goal[step == 0]) >= set(range(1, 11)) and set(goal[step == 18]) == {19, 20}
    step, goal = chosen(Method.Episode)
    assert set(goal[step == 19]) <= set(range(1, 21)) and len(set(goal[step == 19])) > 10
    step, goal = chosen(Method.Random)
    assert {g for g in goal if g > 500} and {g for g in goal if g <= 20}


def test_future_goals_are_equally_likely():
    memory = hindsight(Method.Future, 3000)
    memory.store_episode(walk(3))
    made = split(memory, 3)[1]
    step, goal = (made.state_columns[name][:, 0].astype(int) for name in ("observation", "desired_goal"))
    np.testing.assert_allclose(np.bincount(goal[step == 0], minlength=4)[1:] / 3000, 1 / 3, atol=0.04)


@pytest.mark.parametrize(
    ("method", "length", "stored"),
    [
        (Method.Future, 10, 46),
        (Method.Future, 2, 6),
        (Method.Future, 1, 1),
        (Method.Final, 10, 50),
        (Method.Episode, 10, 50),
        (Method.Random, 10, 50),
    ],
)
def test_as_many_are_stored_as_by_coach(method, length, stored):
    memory = hindsight(method, copies=4)
    memory.store_episode(walk(length))
    assert memory.num_transitions() == stored and memory.length() == 1


def test_sizes_count_the_copies():
    memory = hindsight(Method.Episode, copies=4, size=60)
    memory.store_episode(walk(6))
    memory.store_episode(walk(6, start=50))
    assert memory.num_transitions() == 60 and memory.episode_lengths().tolist() == [30, 30]
    memory.store_episode(walk(2, start=90))
    assert memory.episode_lengths().tolist() == [30, 10]
    by_episodes = hindsight(Method.Episode, copies=4, size=2, granularity=MemoryGranularity.Episodes)
    for start in (0, 10, 20):
        by_episodes.store_episode(walk(3, start=start))
    assert by_episodes.episode_lengths().tolist() == [15, 15]


def test_an_episode_that_fills_the_memory_alone_loses_its_oldest():
    memory = hindsight(Method.Episode, copies=1, size=15)
    memory.store_episode(walk(10))
    real, made = split(memory, 5)
    assert real.state_columns["observation"][:, 0].tolist() == [5, 6, 7, 8, 9]
    assert made.state_columns["observation"][:, 0].tolist() == [5, 6, 7, 8, 9]
    assert np.all(made.state_columns["desired_goal"][:, 0] <= 10)
    with pytest.raises(CoachError, match="max_size"):
        hindsight(copies=4, size=15).store_episode(walk(10))


def test_samples_mix_real_and_made():
    memory = hindsight()
    memory.store_episode(walk(20))
    goals = memory.sample(500).states(["desired_goal"])["desired_goal"][:, 0]
    assert 0.7 < np.mean(goals < 1000) < 0.9


def test_single_transitions_and_states_without_goals_are_refused():
    memory = hindsight()
    with pytest.raises(CoachError, match="whole episodes"):
        memory.store(walk(1).transitions[0])
    bare = Transition({"observation": np.zeros(2)}, 0, 0.0, {"observation": np.zeros(2)}, True)
    with pytest.raises(CoachError, match="desired_goal"):
        memory.store_episode(as_episode([bare]))
    odd = walk(1)
    for state in (odd.transitions[0].state, odd.transitions[0].next_state):
        state["desired_goal"] = np.zeros(3)
    with pytest.raises(CoachError, match="shape"):
        memory.store_episode(odd)


def test_parameters_build_both():
    for parameters in (
        EpisodicHindsightExperienceReplayParameters(),
        EpisodicHRLHindsightExperienceReplayParameters(),
    ):
        with pytest.raises(CoachError, match="hindsight_transitions_per_regular_transition"):
            dynamic_import_and_instantiate_module_from_params(parameters)
        parameters.hindsight_transitions_per_regular_transition = 2
        with pytest.raises(CoachError, match="hindsight_goal_selection_method"):
            dynamic_import_and_instantiate_module_from_params(parameters)
        parameters.hindsight_goal_selection_method = Method.Final
        with pytest.raises(CoachError, match="goals_space"):
            dynamic_import_and_instantiate_module_from_params(parameters)
        parameters.goals_space = GOALS
        memory = dynamic_import_and_instantiate_module_from_params(parameters)
        memory.store_episode(walk(3))
        assert memory.num_transitions() == 9


def test_upper_levels_pretend_to_have_asked_for_what_was_reached():
    memory, episode = hindsight(Method.Final, 1, cls=EpisodicHRLHindsightExperienceReplay), walk(4)
    memory.store_episode(episode)
    real, made = split(memory, 4)
    for part in (real, made):
        np.testing.assert_array_equal(part.action_column, part.next_state_columns["achieved_goal"])
    assert made.state_columns["desired_goal"][:, 0].tolist() == [4.0] * 4
    assert episode.transitions[0].action[0] == 9.0
    with pytest.raises(CoachError, match="whole episodes"):
        memory.store(episode.transitions[0])
    episode.transitions[0].action = 1
    with pytest.raises(CoachError, match="action of shape"):
        memory.store_episode(episode)


class NearGoals(EpisodicHindsightExperienceReplay):
    """A user's choice of goals: what the transition itself has reached."""

    def _sample_goal(self, episode_transitions, transition_index):
        return self.goals_space.goal_from_state(episode_transitions[transition_index].next_state)


class FarGoals(EpisodicHindsightExperienceReplay):
    def _sample_goal(self, episode_transitions, transition_index):
        return super()._sample_goal(episode_transitions, transition_index) + 100


@pytest.mark.parametrize(("kind", "shift"), [(NearGoals, None), (FarGoals, 100), (None, 0)])
def test_a_subclass_chooses_the_goals_of_copies(kind, shift):
    goals = GoalsSpace("achieved_goal", ReachingGoal(0.1), GoalsSpace.DistanceMetric.Euclidean)
    memory = (kind or EpisodicHindsightExperienceReplay)(
        (MemoryGranularity.Transitions, 100), 1, HindsightGoalSelectionMethod.Final, goals
    )
    steps = []
    for number in range(4):
        state = {"desired_goal": np.array([9.0]), "achieved_goal": np.array([float(number)])}
        steps.append(
            Transition(state, 0, 0.0, {**state, "achieved_goal": np.array([number + 1.0])}, game_over=number == 3)
        )
    memory.store_episode(as_episode(steps))
    wanted = memory.get_last_complete_episode().transitions[4:]
    expected = [1.0, 2.0, 3.0, 4.0] if shift is None else [4.0 + shift] * 4
    assert [step.state["desired_goal"].item() for step in wanted] == expected
    assert memory._sample_goal(steps, 2).item() == (3.0 if shift is None else 4.0 + shift)
