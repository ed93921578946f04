"""Columns come in as transitions do: the same memory, sampled alike, and all or nothing."""

import copy
import re

import numpy as np
import pytest

from rl_coach.command_line.custom_parameters import parse
from rl_coach.core_types import Batch, Transition
from rl_coach.memories.columns import FrameStacks, allocate
from rl_coach.memories.episodic import (
    EpisodicExperienceReplay,
    EpisodicHindsightExperienceReplay,
    EpisodicHRLHindsightExperienceReplay,
    SingleEpisodeBuffer,
)
from rl_coach.memories.episodic.episodic_hindsight_experience_replay import HindsightGoalSelectionMethod
from rl_coach.memories.memory import Memory, MemoryGranularity, returns_complete_episodes
from rl_coach.memories.non_episodic import BalancedExperienceReplay, ExperienceReplay, PrioritizedExperienceReplay
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.spaces import GoalsSpace, ReachingGoal
from rl_coach.utils import CoachError
from tests.memories.transitions import Steps, as_episode, assert_same

GOALS = GoalsSpace("achieved_goal", ReachingGoal(0.1), GoalsSpace.DistanceMetric.Euclidean)
SIZE = (MemoryGranularity.Transitions, 40)


def with_observations(transitions: list[Transition]) -> list[Transition]:
    """Transitions that any memory takes: with a class, a goal, and an action that could be one."""
    for number, transition in enumerate(transitions):
        for state in (transition.state, transition.next_state):
            state["class"] = np.array([number % 3])
            state["desired_goal"] = np.array([100.0, 0.5], np.float32)
            state["achieved_goal"] = np.asarray(state["observation"], np.float32).ravel()[:2]
        transition.action = np.array([0.25, number], np.float32)
        transition.info = {"lives": number}
    return transitions


class Doubling(ExperienceReplay):
    """A user's memory, written for Coach: it changes what is stored."""

    def store(self, transition, lock=True):
        transition.reward = 2 * transition.reward
        super().store(transition, lock)


class OnlyGood(EpisodicExperienceReplay):
    """A user's memory of episodes."""

    def store_episode(self, episode, lock=True):
        if sum(transition.reward for transition in episode.transitions) > 1:
            super().store_episode(episode, lock)


MAKERS = {
    "uniform": lambda: ExperienceReplay(SIZE),
    "without duplicates": lambda: ExperienceReplay(SIZE, allow_duplicates_in_batch_sampling=False),
    "prioritized": lambda: PrioritizedExperienceReplay(SIZE),
    "balanced": lambda: BalancedExperienceReplay(SIZE, num_classes=3),
    "episodic": lambda: EpisodicExperienceReplay(SIZE, n_step=3),
    "one episode": SingleEpisodeBuffer,
    "hindsight": lambda: EpisodicHindsightExperienceReplay(
        (MemoryGranularity.Transitions, 150), 2, HindsightGoalSelectionMethod.Future, GOALS
    ),
    "hierarchical": lambda: EpisodicHRLHindsightExperienceReplay(
        (MemoryGranularity.Transitions, 150), 2, HindsightGoalSelectionMethod.Episode, GOALS
    ),
    "a user's": lambda: Doubling(SIZE),
    "a user's episodes": lambda: OnlyGood(SIZE),
}


def made(name: str) -> Memory:
    memory = MAKERS[name]()
    memory.seed(0)
    return memory


def store_one_by_one(memory: Memory, episodes: list[list[Transition]]) -> None:
    for transitions in episodes:
        if memory.stores_episodes:
            memory.store_episode(memory._as_episode(transitions))
        else:
            for transition in transitions:
                memory.store(transition)


def assert_same_memory(one: Memory, other: Memory) -> None:
    assert one.length() == other.length() and one.num_transitions() == other.num_transitions()
    for held, expected in zip(one._store.transitions(), other._store.transitions()):
        assert_same_with_arrays(held, expected)
    for _ in range(3):
        mine, theirs = one.sample(6), other.sample(6)
        np.testing.assert_array_equal(mine.reward_column, theirs.reward_column)
        np.testing.assert_array_equal(mine.action_column, theirs.action_column)
        for key in theirs.info_columns:
            np.testing.assert_array_equal(mine.info(key), theirs.info(key))


def assert_same_with_arrays(held: Transition, expected: Transition) -> None:
    for state in (held.state, held.next_state):
        for name in state:
            state[name] = np.asarray(state[name])
    assert_same(held, expected)


@pytest.mark.parametrize("kind", ["vector", "stack", "image"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_chunk_is_stored_as_its_transitions_are(name, kind):
    steps, one_by_one, in_columns = Steps(kind), made(name), made(name)
    for lengths in ([9], [5, 12], [3, 3, 30], [7]):
        episodes = [with_observations(steps.episode(length)) for length in lengths]
        chunk = Batch([transition for transitions in episodes for transition in transitions])
        in_columns.store_columns(copy.deepcopy(chunk))
        store_one_by_one(one_by_one, episodes)
        if isinstance(one_by_one, PrioritizedExperienceReplay):
            for memory in (one_by_one, in_columns):
                batch = memory.sample(5)
                memory.update_priorities(batch.info("idx"), np.arange(5))
    assert_same_memory(in_columns, one_by_one)


@pytest.mark.parametrize("name", ["uniform", "a user's", "a user's episodes"])
def test_frames_of_a_chunk_are_stored_once(name):
    memory, source = made(name), TransitionStore(None)
    for transition in Steps("stack").episode(30):
        source.append(transition)
    memory.store_columns(source.chunk())
    assert memory.num_transitions() == 30
    assert memory._store.observations["observation"].next_frame == 31


def test_what_remains_of_a_chunk_stays_open():
    memory = made("episodic")
    memory.store_columns(Batch([*Steps().episode(4), *Steps().episode(3, ends=False)]))
    assert (memory.num_complete_episodes(), memory.length(), memory.num_transitions()) == (1, 2, 7)
    memory.store_columns(Batch(Steps().episode(2)))
    assert memory.episode_lengths().tolist() == [4, 5]
    memory.store_columns(Batch(Steps().episode(6, ends=False)), episode_lengths=np.array([2, 4]))
    assert memory.episode_lengths().tolist() == [4, 5, 2, 4]


def test_another_precision_does_not_widen_what_is_held():
    memory = made("uniform")
    memory.store_columns(Batch(with_observations(Steps().episode(5))))
    chunk = Batch(with_observations(Steps().episode(5)))
    chunk.state_columns["observation"] = chunk.state_columns["observation"].astype(np.float64)
    chunk.action_column = chunk.action_column.astype(np.float64)
    chunk.state_columns["class"] = chunk.state_columns["class"].astype(np.uint8)
    memory.store_columns(chunk)
    batch = memory.transitions
    assert batch.state_columns["observation"].dtype == batch.action_column.dtype == np.float32
    assert batch.state_columns["class"].dtype == np.int64
    np.testing.assert_array_equal(batch.action_column[:5], batch.action_column[5:])


def without_last_row(columns: dict, name: str) -> None:
    columns[name] = columns[name][:-1]


def renamed(columns: dict, name: str) -> None:
    columns[name + "s"] = columns.pop(name)


def cast(columns: dict, name: str) -> None:
    columns[name] = columns[name].astype(np.complex128)


def reshaped(columns: dict, name: str) -> None:
    columns[name] = np.concatenate([columns[name], columns[name]], axis=1)


def as_text(columns: dict, name: str) -> None:
    columns[name] = np.full(columns[name].shape, "text")


FAULTS = [without_last_row, renamed, cast, reshaped, as_text]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("filled", [True, False])
def test_a_bad_chunk_is_named_and_changes_nothing(name, fault, filled):
    memory = made(name)
    if filled:
        memory.store_columns(Batch(with_observations(Steps().episode(9))))
    before = copy.deepcopy(memory.get_state())
    chunk = Batch(with_observations(Steps().episode(8)))
    fault(chunk.next_state_columns, "observation")
    with pytest.raises(CoachError, match="observation"):
        memory.store_columns(chunk)
    np.testing.assert_equal(memory.get_state(), before)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("action_column", np.zeros((8, 3)), "'action' holds float32"),
        ("action_column", np.array(["left"] * 8), "'action' holds float32"),
        ("reward_column", np.zeros((8, 2), np.float32), "'reward' holds float64"),
        ("game_over_column", np.zeros(7, bool), "'game_over' has 7 rows, but there are 8 rewards"),
        ("terminated_column", np.array(["no"] * 8), "'terminated' is of <U2"),
        ("n_step_column", np.full(8, 0.5), "'n_steps' is of float64"),
        ("return_column", np.zeros((8, 1)), "'n_step_discounted_rewards' is of float64"),
        ("info_columns", {"lives": np.zeros(3)}, r"'info\['lives'\]' has 3 rows"),
        ("info_columns", {"lives": np.array(3)}, r"'info\['lives'\]' has no rows"),
    ],
)
def test_bad_columns_are_named(column, value, message):
    memory = made("prioritized")
    memory.store_columns(Batch(with_observations(Steps().episode(9))))
    before = copy.deepcopy(memory.get_state())
    chunk = Batch(with_observations(Steps().episode(8)))
    setattr(chunk, column, value)
    with pytest.raises(CoachError, match=message):
        memory.store_columns(chunk)
    np.testing.assert_equal(memory.get_state(), before)


def test_integers_out_of_range_and_fractions_are_refused():
    memory = made("uniform")
    state = {"o": np.array([7], np.uint8)}
    memory.store(Transition(state, 1, 0.0, state, False))
    for values in (np.array([[256]]), np.array([[-1]]), np.array([[0.5]])):
        chunk = Batch([Transition({"o": values[0]}, 1, 0.0, {"o": values[0]}, False)])
        with pytest.raises(CoachError, match=r"'o' holds uint8\[1\]"):
            memory.store_columns(chunk)
    memory.store_columns(Batch([Transition({"o": np.array([255])}, 1, 0.0, {"o": np.array([255])}, False)]))
    assert memory.transitions.state_columns["o"].ravel().tolist() == [7, 255]


def test_frames_that_do_not_fit_are_refused():
    source, memory = TransitionStore(None), made("uniform")
    for transition in Steps("stack").episode(6):
        source.append(transition)
    good = source.chunk()
    memory.store_columns(good)
    before = copy.deepcopy(memory.get_state())
    frames, indices, axis = (getattr(good.state_columns["observation"], name) for name in ("frames", "indices", "axis"))
    for bad in (
        FrameStacks(frames.astype(np.float32), indices, axis),
        FrameStacks(frames[:, :1], indices, axis),
        FrameStacks(frames, indices[:, :2], axis),
        FrameStacks(frames, indices + 5, axis),
        FrameStacks(frames, indices, 0),
    ):
        chunk = source.chunk()
        chunk.state_columns["observation"] = bad
        with pytest.raises(CoachError, match="'observation'"):
            memory.store_columns(chunk)
    np.testing.assert_equal(memory.get_state(), before)


def test_episode_lengths_are_checked():
    for lengths in ([5, 4], [0, 8], [-1], [2.5]):
        memory = made("episodic")
        with pytest.raises(CoachError, match="episode lengths"):
            memory.store_columns(Batch(Steps().episode(8)), episode_lengths=np.array(lengths))
        assert memory.num_transitions() == 0


def test_hindsight_takes_whole_episodes_that_have_room():
    memory = made("hindsight")
    with pytest.raises(CoachError, match="the chunk's last episode is open"):
        memory.store_columns(Batch(with_observations(Steps().episode(8, ends=False))))
    with pytest.raises(CoachError, match="max_size"):
        memory.store_columns(Batch(with_observations(Steps().episode(120))))
    with pytest.raises(CoachError, match="desired_goal"):
        memory.store_columns(Batch(Steps().episode(8)))
    assert memory.num_transitions() == 0


def test_a_balanced_replay_refuses_classes_before_it_stores():
    memory, chunk = made("balanced"), Batch(with_observations(Steps().episode(8)))
    chunk.state_columns["class"][-1] = 3
    with pytest.raises(CoachError, match="class 3"):
        memory.store_columns(chunk)
    assert memory.length() == 0


def test_a_frozen_memory_takes_none():
    memory = made("uniform")
    memory.freeze()
    with pytest.raises(CoachError, match="frozen"):
        memory.store_columns(Batch(Steps().episode(3)))


class Doubles:
    """A mixin that changes what is stored."""

    def store(self, transition, lock=True):
        transition.reward = 2 * transition.reward
        super().store(transition)


class Mixed(Doubles, ExperienceReplay):
    pass


class Grandchild(Doubling):
    pass


class InColumnsAgain(Grandchild):
    """Says again how columns are stored, without ``store``."""

    def _extend(self, chunk, episode_lengths):
        self._store.extend(chunk)


def on_the_instance(size):
    memory = ExperienceReplay(size)

    def store(transition):
        transition.reward = 2 * transition.reward
        ExperienceReplay.store(memory, transition)

    memory.store = store
    return memory


@pytest.mark.parametrize(
    ("make", "factor"),
    [(Doubling, 2), (Mixed, 2), (Grandchild, 2), (on_the_instance, 2), (ExperienceReplay, 1), (InColumnsAgain, 1)],
    ids=["class", "mixin", "grandchild", "instance", "Coach's", "declared later"],
)
def test_columns_go_through_a_store_of_a_users(make, factor):
    memory, transitions = make(SIZE), with_observations(Steps().episode(5))
    rewards = [transition.reward for transition in transitions]
    memory.store_columns(Batch(transitions))
    np.testing.assert_allclose(memory.transitions.reward_column, factor * np.asarray(rewards))


class KnowsEpisodes(ExperienceReplay):
    def get_all_complete_episodes_transitions(self):
        return self.transitions


class Complete:
    get_all_complete_episodes_transitions = KnowsEpisodes.get_all_complete_episodes_transitions


class MixedWithEpisodes(Complete, ExperienceReplay):
    pass


class GrandchildWithEpisodes(KnowsEpisodes):
    pass


class Forgets(KnowsEpisodes):
    knows_episodes = False


def with_episodes_on_the_instance(size):
    memory = ExperienceReplay(size)
    memory.get_all_complete_episodes_transitions = lambda: memory.transitions
    return memory


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (KnowsEpisodes, True),
        (MixedWithEpisodes, True),
        (GrandchildWithEpisodes, True),
        (with_episodes_on_the_instance, True),
        (EpisodicExperienceReplay, True),
        (ExperienceReplay, False),
        (Forgets, False),
    ],
)
def test_a_memory_that_returns_complete_episodes_knows_them(make, expected):
    assert returns_complete_episodes(make(SIZE)) is expected
    if isinstance(make, type):
        assert returns_complete_episodes(make) is expected


def test_how_agents_know_a_memory():
    assert [name for name in MAKERS if made(name).stores_episodes] == [
        "episodic",
        "one episode",
        "hindsight",
        "hierarchical",
        "a user's episodes",
    ]
    assert [name for name in MAKERS if made(name).has_priorities] == ["prioritized"]
    one_at_a_time = [name for name in MAKERS if not made(name).draws_many_batches]
    assert one_at_a_time == ["without duplicates", "prioritized", "balanced"]


def test_what_a_memory_cannot_do_is_one_line():
    memory = made("uniform")
    for call in (
        lambda: memory.update_priorities(np.zeros(1, int), np.zeros(1)),
        memory.get_all_complete_episodes_transitions,
        lambda: memory.load_csv(None, None),
        lambda: Memory(SIZE).save("nowhere"),
        lambda: Memory(SIZE).load("nowhere"),
        lambda: Memory(SIZE).load_pickled("nowhere"),
    ):
        with pytest.raises(CoachError, match=r"^\w*(Memory|ExperienceReplay) (has|does)"):
            call()


def test_a_saved_memory_of_hindsight_is_loaded_as_it_was(tmp_path):
    memory, other = made("hindsight"), made("hindsight")
    memory.store_episode(as_episode(with_observations(Steps().episode(8))))
    memory.save(tmp_path / "memory.npz")
    other.load(tmp_path / "memory.npz")
    assert other.num_transitions() == memory.num_transitions() == 8 + 2 * 7
    np.testing.assert_array_equal(
        other.transitions.state_columns["desired_goal"], memory.transitions.state_columns["desired_goal"]
    )


def test_a_column_that_the_machine_has_no_memory_for_says_what_to_set():
    with pytest.raises(CoachError, match="more than this machine can provide") as caught:
        allocate(1 << 40, (1 << 10,), np.dtype(np.uint8), "observation")
    command = re.fullmatch(r'.*; make the memory smaller, for example with -cp "(.*)"', str(caught.value))
    assert command is not None
    (assignment,) = parse(command[1])
    assert assignment.value == (MemoryGranularity.Transitions, 10000)
