"""Episodic replay against a list of episodes."""

import collections
import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_coach.core_types import Batch, Transition, n_step_returns
from rl_coach.memories.episodic.episodic_experience_replay import (
    EpisodicExperienceReplay,
    EpisodicExperienceReplayParameters,
)
from rl_coach.memories.episodic.single_episode_buffer import SingleEpisodeBuffer, SingleEpisodeBufferParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.utils import CoachError, dynamic_import_and_instantiate_module_from_params
from tests.memories.transitions import Steps, as_episode, assert_same

Transitions, Episodes = MemoryGranularity.Transitions, MemoryGranularity.Episodes


def episodic(lengths=(), max_size=(Transitions, 1000), kind="vector", open_steps=0, **settings):
    memory, steps = EpisodicExperienceReplay(max_size, **settings), Steps(kind)
    memory.seed(0)
    for length in lengths:
        for transition in steps.episode(length):
            memory.store(transition)
    for transition in steps.episode(open_steps, ends=False):
        memory.store(transition)
    return memory


def numbers(batch: Batch) -> list:
    return batch.states(["observation"])["observation"][:, 0].astype(int).tolist()


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("steps"), st.integers(1, 8)),
        st.tuples(st.just("unfinished"), st.integers(1, 8)),
        st.tuples(st.just("episode"), st.integers(1, 8)),
        st.tuples(st.just("chunk"), st.integers(1, 8)),
        st.tuples(st.sampled_from(["remove first", "remove last", "close", "clean", "restore"]), st.just(0)),
    ),
    max_size=25,
)


class ListOfEpisodes:
    """The model: episodes as lists, and whether the last is open."""

    def __init__(self, granularity, number):
        self.granularity, self.number = granularity, number
        self.complete: list[list[Transition]] = []
        self.open: list[Transition] = []

    def add(self, transition):
        self.open.append(transition)
        while self.granularity == Transitions and self.number and self.count() > self.number:
            self.drop()
        if transition.game_over:
            self.close()
        self.enforce()

    def count(self):
        return sum(map(len, self.complete)) + len(self.open)

    def drop(self):
        (self.complete or self.open).pop(0)

    def close(self):
        if self.open:
            self.complete.append(self.open)
            self.open = []

    def enforce(self):
        while self.granularity == Episodes and self.number and len(self.complete) + bool(self.open) > self.number:
            self.complete.pop(0)


def apply(operation, argument, memory, model, steps):
    if operation in ("steps", "unfinished"):
        for transition in steps.episode(argument, ends=operation == "steps"):
            memory.store(transition)
            model.add(transition)
    elif operation == "episode":
        transitions = steps.episode(argument, ends=False)
        memory.store_episode(as_episode(transitions))
        model.close()
        for transition in transitions:
            model.add(transition)
        model.close()
    elif operation == "chunk" and not model.open:
        transitions = steps.episode(argument)
        memory.store_columns(Batch(transitions))
        for transition in transitions:
            model.add(transition)
    elif operation == "restore":
        state = copy.deepcopy(memory.get_state())
        memory = EpisodicExperienceReplay(memory.max_size)
        memory.set_state(state)
    elif operation != "chunk":
        change(operation, memory, model)
    return memory


def change(operation, memory, model):
    if operation == "close":
        memory.close_last_episode()
        model.close()
    elif operation == "clean":
        memory.clean()
        model.complete, model.open = [], []
    elif operation == "remove first":
        memory.remove_first_episode()
        if model.complete:
            model.complete.pop(0)
        else:
            model.open = []
    elif operation == "remove last":
        memory.remove_last_episode()
        if model.open:
            model.open = []
        elif model.complete:
            model.complete.pop()


def assert_holds(memory, model):
    assert memory.num_complete_episodes() == len(model.complete)
    assert memory.num_transitions() == model.count()
    assert memory.num_transitions_in_complete_episodes() == model.count() - len(model.open)
    episodes = [*model.complete, *([model.open] if model.open else [])]
    assert memory.length() == len(episodes)
    for index, transitions in enumerate(episodes):
        episode = memory.get(index)
        assert episode.is_complete == (index < len(model.complete))
        assert len(episode) == len(transitions)
        for held, stored in zip(episode.transitions, transitions):
            held._n_step_discounted_rewards = stored._n_step_discounted_rewards = None
            assert_same(held, stored)


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(["vector", "stack", "image"]),
    max_size=st.sampled_from([(Transitions, 4), (Transitions, 15), (Transitions, 0), (Episodes, 1), (Episodes, 3)]),
    operations=OPERATIONS,
)
def test_holds_the_newest_episodes(kind, max_size, operations):
    memory, model, steps = EpisodicExperienceReplay(max_size), ListOfEpisodes(*max_size), Steps(kind)
    for operation, argument in operations:
        memory = apply(operation, argument, memory, model, steps)
        assert_holds(memory, model)
        if memory.num_complete_episodes():
            sampled = memory.sample(4)
            held = memory.get_all_complete_episodes_transitions().next_state_columns["observation"]
            for row in sampled.next_state_columns["observation"]:
                assert any(np.array_equal(row, other) for other in held)


def test_parameters_build_it():
    memory = dynamic_import_and_instantiate_module_from_params(EpisodicExperienceReplayParameters())
    assert (memory.max_size, memory.n_step, memory.train_to_eval_ratio) == ((Transitions, 1000000), -1, 1)


@pytest.mark.parametrize("n_step", [-1, 1, 3, 50])
def test_returns_are_those_of_the_episode(n_step):
    stored, given_episode = episodic(n_step=n_step), as_episode(Steps().episode(9), discount=0.9, n_step=n_step)
    stored.discount = 0.9
    for transition in Steps().episode(9):
        stored.store(transition)
    stored.store_episode(given_episode)
    expected = n_step_returns(np.arange(9) / 4, 0.9, n_step)
    for episode in stored.get_all_complete_episodes():
        assert [t.n_step_discounted_rewards for t in episode.transitions] == expected.tolist()
    batch = stored.sample(20)
    assert batch.n_step_discounted_rewards().dtype == np.float32
    np.testing.assert_allclose(
        batch.n_step_discounted_rewards(), expected[(batch.rewards() * 4).astype(int)], rtol=1e-6
    )


def test_returns_bootstrap_from_the_old_policy():
    transitions = Steps().episode(6)
    for step, transition in enumerate(transitions):
        transition.info = {"max_action_value": 10.0 * step}
    expected = as_episode(
        [copy.copy(t) for t in transitions], discount=0.5, n_step=2, bootstrap_total_return_from_old_policy=True
    )
    expected.update_discounted_rewards()
    memory = episodic(n_step=2)
    memory.discount, memory.bootstrap_total_return_from_old_policy = 0.5, True
    for transition in transitions:
        memory.store(transition)
    held = memory.get(0).transitions
    assert [t.n_step_discounted_rewards for t in held] == [t.n_step_discounted_rewards for t in expected.transitions]


@pytest.mark.parametrize("known", [(), (0, 1, 3, 4, 5)], ids=["none", "all but one"])
def test_returns_do_not_bootstrap_from_values_that_nobody_predicted(known):
    transitions = Steps().episode(6)
    for step in known:
        transitions[step].info = {"max_action_value": 1.0}
    memory = episodic(n_step=2)
    memory.bootstrap_total_return_from_old_policy = True
    with pytest.raises(CoachError, match="no network chose the action"):
        for transition in transitions:
            memory.store(transition)


def test_returns_that_are_known_are_kept():
    episode = as_episode(Steps().episode(5), discount=0.3, n_step=2)
    episode.update_transitions_rewards_and_bootstrap_data()
    known = [t.n_step_discounted_rewards for t in episode.transitions]
    memory = episodic()
    memory.store_episode(episode)
    assert [t.n_step_discounted_rewards for t in memory.get(0).transitions] == known


def test_returns_of_rewards_that_are_not_numbers_are_known():
    """NaN is what they are: a diverged environment is not an episode that goes on."""
    memory = episodic()
    transitions = Steps().episode(5)
    transitions[3].reward = float("nan")
    memory.store_episode(as_episode(transitions))
    restored = episodic()
    restored.set_state(memory.get_state())
    for held in (memory, restored):
        assert np.isnan([t.n_step_discounted_rewards for t in held.get(0).transitions]).tolist() == [True] * 4 + [False]
        assert np.isnan(held.sample(50).n_step_discounted_rewards()).any()


def test_only_complete_episodes_are_sampled():
    memory = episodic([3, 2], open_steps=4)
    assert set(numbers(memory.sample(200))) == {0, 1, 2, 4, 5}
    with pytest.raises(CoachError, match=r"no episode is complete \(episodes: 1, transitions: 4\)"):
        episodic(open_steps=4).sample(1)


def test_consecutive_transitions_are_of_one_episode():
    memory = episodic([4, 2, 6], open_steps=3)
    runs = {tuple(numbers(memory.sample(4, is_consecutive_transitions=True))) for _ in range(500)}
    assert runs == {
        (0,), (0, 1), (0, 1, 2), (0, 1, 2, 3), (1, 2, 3), (2, 3), (3,),
        (5,), (5, 6), (6,),
        (8,), (8, 9), (8, 9, 10), (8, 9, 10, 11), (9, 10, 11, 12), (10, 11, 12, 13), (11, 12, 13), (12, 13), (13,),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lengths", "size"),
    [([30] * 10 + [50], 40), ([30] * 10 + [50], 5), ([4, 2, 6], 3), ([4, 2, 6], 50), ([4, 2, 6], 1)],
)
def test_consecutive_transitions_are_drawn_alike_at_the_ends_of_episodes_and_in_short_ones(lengths, size):
    """A window covers at least one step of an episode of T in T + size - 1 places, and each step in ``size`` of them.
    Counts are within five standard deviations of that, those of all steps and of those that end episodes."""
    memory = episodic(lengths)
    draws, probability = 6000, size / sum(length + size - 1 for length in lengths)
    drawn = [numbers(memory.sample(size, is_consecutive_transitions=True)) for _ in range(draws)]
    names = numbers(memory.get_all_complete_episodes_transitions())
    count = collections.Counter(name for window in drawn for name in window)
    counts = np.asarray([count[name] for name in names])
    deviation = np.sqrt(draws * probability * (1 - probability))
    np.testing.assert_allclose(counts, draws * probability, rtol=0, atol=5 * deviation)
    ends = counts[np.cumsum(lengths) - 1].sum()  # a window has one of them at most
    together = probability * len(lengths)
    assert abs(ends - draws * together) < 5 * np.sqrt(draws * together * (1 - together))


def test_sequences_follow_each_other_with_their_burn_in():
    """Episodes of 4 (steps 0 to 3), 2 (5, 6) and 6 steps (8 to 13), cut into sequences of 3 steps. The first of an
    episode has copies instead of a burn-in of 2 steps."""
    memory = episodic([4, 2, 6], open_steps=3)
    batch = memory.sample_sequences(300, 3, burn_in=2)
    rows = np.asarray(numbers(batch)).reshape(300, 5)
    is_learned, begins = (batch.info(name).reshape(300, 5) for name in ("is_learned", "begins_episode"))
    found = {
        (*row.tolist(), *row[learned].tolist(), bool(first[0])) for row, learned, first in zip(rows, is_learned, begins)
    }
    assert found == {
        (0, 0, 0, 1, 2, 0, 1, 2, True), (1, 2, 3, 3, 3, 3, False),
        (5, 5, 5, 6, 6, 5, 6, True),
        (8, 8, 8, 9, 10, 8, 9, 10, True), (9, 10, 11, 12, 13, 11, 12, 13, False),
    }  # fmt: skip
    without = np.asarray(numbers(memory.sample_sequences(200, 3))).reshape(200, 3)
    assert set(without[:, 0].tolist()) == {0, 3, 5, 8, 11}
    with pytest.raises(CoachError, match="cannot sample"):
        episodic(open_steps=4).sample_sequences(1, 3)


def test_sequences_of_states_cross_the_ends_of_short_episodes():
    """Episodes of 4 (steps 0 to 3), 2 (5, 6) and 6 steps (8 to 13), which have 5, 3 and 7 states. "3+" is the state
    after step 3. A sequence of 4 states that reaches over an end of its episode is moved: three of the six places of
    the first episode become 0 1 2 3. The second episode is too short, and the third one follows it."""
    batch = episodic([4, 2, 6], open_steps=3).sample_states(18000, 4)
    rows, is_transition = numbers(batch), batch.info("is_transition")
    names = np.array([f"{row}{'' if real else '+'}" for row, real in zip(rows, is_transition)]).reshape(-1, 4)
    found = collections.Counter(" ".join(sequence) for sequence in names)
    expected = {"0 1 2 3": 3, "1 2 3 3+": 3, "5 6 6+ 8": 4}
    expected |= {"8 9 10 11": 3, "9 10 11 12": 1, "10 11 12 13": 1, "11 12 13 13+": 3}
    assert found.keys() == expected.keys()
    for sequence, count in expected.items():
        assert abs(found[sequence] - 1000 * count) < 5 * np.sqrt(1000 * count)
    assert {*names.ravel()[batch.info("begins_episode")]} == {"0", "5", "8"}
    places = dict(zip(names.ravel(), batch.info("transition_serial").tolist()))
    assert [places[name] for name in ("0", "3", "3+", "5", "6+", "8", "13+")] == [0, 3, 3, 4, 5, 6, 11]


def test_a_sequence_of_states_may_be_longer_than_the_memory():
    """The first of two episodes follows the second one."""
    batch = episodic([2, 1]).sample_states(50, 7)
    rows = {tuple(row) for row in np.reshape(numbers(batch), (-1, 7)).tolist()}
    assert rows == {(0, 1, 1, 3, 3, 0, 1), (3, 3, 0, 1, 1, 3, 3)}
    with pytest.raises(CoachError, match="cannot sample"):
        episodic(open_steps=4).sample_states(1, 3)


def test_a_replaced_value_is_what_the_next_sequence_begins_with():
    """Two episodes of 4 steps with values from 0 to 7, in sequences of 2 steps. The step after the second one gets 70.
    Four more steps remove the first episode, and its steps cannot be replaced any more."""
    memory = episodic([4, 4], max_size=(Transitions, 8))
    memory.annotate("state", np.arange(8.0)[:, None])

    def begins() -> dict[int, float]:
        batch = memory.sample_sequences(100, 2)
        return dict(zip(batch.info("transition_serial")[::2].tolist(), batch.info("state")[::2, 0].tolist()))

    assert begins() == {0: 0.0, 2: 2.0, 4: 4.0, 6: 6.0}
    memory.replace_info("state", np.array([2]), np.array([[70.0]]))
    assert begins() == {0: 0.0, 2: 70.0, 4: 4.0, 6: 6.0}
    for transition in Steps("vector").episode(4):
        transition.info["state"] = np.array([8.0])
        memory.store(transition)
    memory.replace_info("state", np.array([2, 6]), np.array([[-1.0], [60.0]]))
    assert begins() == {4: 4.0, 6: 60.0, 8: 8.0, 10: 8.0}  # step 10 is in the place of step 2


@pytest.mark.parametrize(
    ("lengths", "length", "burn_in"),
    [([30] * 10 + [50], 16, 8), ([200] * 3, 16, 8), ([4, 2, 6], 3, 2), ([4, 2, 6], 50, 0), ([4, 2, 6], 1, 1)],
)
def test_all_steps_are_alike_in_sequences(lengths, length, burn_in):
    """A step is in one of S sequences, those at the ends of episodes and those of short ones too. Counts of all steps
    are within five standard deviations of that, and of those that end episodes."""
    memory = episodic(lengths)
    draws, probability = 20000, 1 / sum(-(-episode // length) for episode in lengths)
    batch = memory.sample_sequences(draws, length, burn_in)
    names = numbers(memory.get_all_complete_episodes_transitions())
    count = collections.Counter(np.asarray(numbers(batch))[batch.info("is_learned")].tolist())
    counts = np.asarray([count[name] for name in names])
    deviation = np.sqrt(draws * probability * (1 - probability))
    np.testing.assert_allclose(counts, draws * probability, rtol=0, atol=5 * deviation)
    ends = counts[np.cumsum(lengths) - 1].sum()  # a sequence has one of them at most
    together = probability * len(lengths)
    assert abs(ends - draws * together) <= 5 * np.sqrt(draws * together * max(1 - together, 0))


def test_shuffled_training_batches():
    batches = list(episodic([4, 2, 6], open_steps=3).get_shuffled_training_data_generator(5))
    assert [len(batch) for batch in batches] == [5, 5, 2]
    assert sorted(n for batch in batches for n in numbers(batch)) == [0, 1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13]
    assert list(episodic().get_shuffled_training_data_generator(5)) == []


def test_training_and_evaluation_sets():
    memory = episodic([4, 2, 6, 3], train_to_eval_ratio=0.5)
    assert memory.get_last_training_set_episode_id() is None
    memory.freeze()
    memory.prepare_evaluation_dataset()
    assert memory.get_last_training_set_episode_id() == 2
    assert [len(episode) for episode in memory.evaluation_dataset_as_episodes] == [3]
    assert len(memory.evaluation_dataset_as_transitions) == 3
    training = [n for batch in memory.get_shuffled_training_data_generator(5) for n in numbers(batch)]
    assert len(training) == 12 and max(training) == 13


@pytest.mark.parametrize("ratio", [0, -0.1, 1.5])
def test_ratios_that_make_no_sense(ratio):
    with pytest.raises(CoachError, match="train_to_eval_ratio"):
        episodic(train_to_eval_ratio=ratio)


def test_a_removed_training_episode_is_not_replaced_by_a_later_one():
    memory = episodic([4, 4, 4, 4], train_to_eval_ratio=0.5)
    assert memory.num_training_transitions() == 12
    for _ in range(3):
        memory.remove_last_episode()
    memory.store_episode(as_episode(Steps().episode(5)))
    assert memory.num_training_transitions() == 4 and memory.get_last_training_set_episode_id() == 0
    assert set(memory.sample_sequences(50, 4).info("transition_serial").tolist()) == set(range(4))


def test_a_ratio_that_leaves_nothing_to_evaluate():
    with pytest.raises(CoachError, match="with train_to_eval_ratio 1, all 2 episodes are for training; lower train_to"):
        episodic([2, 2]).prepare_evaluation_dataset()


def test_reading_episodes():
    memory = episodic([4, 2, 6], open_steps=3)
    assert memory.get_episode(4) is None and memory.get(-5) is None
    assert len(memory.get(-1)) == 3 and len(memory.get_last_complete_episode()) == 6
    assert [len(e) for e in memory.get_all_complete_episodes()] == [4, 2, 6]
    assert [len(e) for e in memory.get_all_complete_episodes_from_to(1, 9)] == [2, 6]
    assert memory.episode_lengths().tolist() == [4, 2, 6]
    assert numbers(memory.get_all_complete_episodes_transitions()) == [0, 1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13]
    assert len(memory.transitions) == 15 and episodic().get_last_complete_episode() is None
    assert memory.mean_reward() == np.mean([*range(4), *range(2), *range(6), *range(3)]) / 4


def test_the_episode_of_a_transition():
    memory = episodic([4, 2, 6])
    index, episode = memory.get_episode_for_transition(memory.get(1)[1])
    assert index == 1 and len(episode) == 2
    with pytest.raises(CoachError, match="has this transition"):
        memory.get_episode_for_transition(Steps().episode(30)[-1])


def test_shuffling_keeps_episodes_together():
    memory = episodic([4, 2, 6], kind="stack", open_steps=3)
    before = [e.transitions for e in memory.get_all_complete_episodes()]
    while memory.episode_lengths().tolist() == [4, 2, 6]:
        memory.shuffle_episodes()
    for episode in memory.get_all_complete_episodes():
        original = next(transitions for transitions in before if len(transitions) == len(episode))
        for held, stored in zip(episode.transitions, original):
            assert_same(held, stored)
    assert len(memory.get(-1)) == 3


def test_open_episodes_are_noticed_and_closed():
    memory = episodic([2], open_steps=3)
    with pytest.raises(CoachError, match="is not complete"):
        memory.verify_last_episode_is_closed()
    memory.close_last_episode()
    memory.verify_last_episode_is_closed()
    memory.close_last_episode()
    assert memory.num_complete_episodes() == 2


def test_frozen_memory_refuses_changes():
    memory = episodic([2], open_steps=1)
    memory.freeze()
    changes = [
        lambda: memory.store(Steps().episode(1)[0]),
        lambda: memory.store_episode(as_episode(Steps().episode(1))),
        lambda: memory.store_columns(memory.transitions),
        memory.clean,
        memory.close_last_episode,
        memory.remove_first_episode,
        memory.remove_last_episode,
        memory.shuffle_episodes,
    ]
    for change in changes:
        with pytest.raises(CoachError, match="frozen"):
            change()
    assert memory.num_transitions() == 3


def test_chunks_of_several_episodes():
    source, memory = episodic([3, 5], kind="stack", open_steps=2), episodic(kind="stack")
    memory.store_columns(source._store.chunk())
    assert memory.episode_lengths().tolist() == [3, 5] and memory.num_transitions() == 10
    memory.clean()
    memory.store_columns(source._store.chunk(), episode_lengths=np.array([4, 4]))
    assert memory.episode_lengths().tolist() == [4, 4] and memory.num_transitions() == 10


def test_an_empty_episode_changes_nothing():
    memory = episodic([2])
    memory.store_episode(as_episode([]))
    assert memory.length() == 1


@pytest.mark.parametrize("kind", ["vector", "stack", "image"])
def test_saves_and_loads(kind, tmp_path):
    memory, other = episodic([3, 5], kind=kind, open_steps=2), episodic([1], kind=kind, open_steps=1)
    memory.save(tmp_path / "memory.npz")
    other.load(tmp_path / "memory.npz")
    assert other.episode_lengths().tolist() == [1, 1, 3, 5] and other.num_transitions() == 12
    for index in range(8):
        assert_same(other.transitions[index + 2], memory.transitions[index])


def test_a_single_episode_buffer_keeps_the_newest():
    memory = dynamic_import_and_instantiate_module_from_params(SingleEpisodeBufferParameters())
    assert type(memory) is SingleEpisodeBuffer
    first, second = Steps().episode(3), Steps().episode(2)
    for transition in first:
        memory.store(transition)
    assert memory.length() == 1 and len(memory.get(0)) == 3
    memory.store(second[0])
    assert memory.length() == 1 and len(memory.get(0)) == 1 and memory.num_complete_episodes() == 0


def drawn(memory) -> set:
    """What a split memory gives in any of its ways to sample."""
    batches = [memory.sample(200), memory.sample_sequences(50, 3, 1)]
    batches += [memory.sample(3, is_consecutive_transitions=True) for _ in range(50)]
    return {n for batch in batches for n in numbers(batch)}


def split(lengths=(4, 2, 6, 3), **settings):
    memory = episodic(lengths, train_to_eval_ratio=0.5, **settings)
    memory.prepare_evaluation_dataset()
    return memory


def test_evaluation_rows_are_never_sampled():
    memory = episodic([4, 2, 6, 3], train_to_eval_ratio=0.5)
    assert max(drawn(memory)) > 13, "it is not split yet"
    memory.prepare_evaluation_dataset()
    assert memory.num_training_transitions() == 12
    assert drawn(memory) == {0, 1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13}
    again = episodic(train_to_eval_ratio=0.5)
    again.set_state(memory.get_state())
    assert max(drawn(again)) == 13 and again.num_training_transitions() == 12


def test_a_split_memory_that_loses_its_oldest_episodes():
    memory = split()
    memory.remove_first_episode()
    assert drawn(memory) == {5, 6, 8, 9, 10, 11, 12, 13} and memory.get_last_training_set_episode_id() == 1
    memory.prepare_evaluation_dataset()
    assert [len(episode) for episode in memory.evaluation_dataset_as_episodes] == [3]
    memory.remove_first_episode()
    memory.remove_first_episode()
    assert memory.num_training_transitions() == 0
    with pytest.raises(CoachError, match="for evaluation"):
        memory.sample(1)


def test_a_split_memory_that_loses_its_newest_episodes():
    memory = split()
    memory.remove_last_episode()
    memory.remove_last_episode()
    assert drawn(memory) == {0, 1, 2, 3, 5, 6}


def test_shuffling_a_split_memory_keeps_the_sets_apart():
    memory = split([4, 2, 6, 3, 3, 3])
    training, kept_back = drawn(memory), [len(episode) for episode in memory.evaluation_dataset_as_episodes]
    memory.shuffle_episodes()
    assert drawn(memory) == training
    memory.prepare_evaluation_dataset()
    assert [len(episode) for episode in memory.evaluation_dataset_as_episodes] == kept_back


def test_a_ratio_of_1_trains_on_what_comes_later_too():
    memory = episodic([4, 2])
    assert memory.num_training_transitions() == 6
    for transition in Steps("vector").episode(3):
        memory.store(transition)
    assert memory.num_training_transitions() == 9 and len(memory.sample(4)) == 4
