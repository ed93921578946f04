"""Uniform replay: what it samples, keeps, refuses and saves."""

import copy

import numpy as np
import pytest

from rl_coach.core_types import Batch, Transition
from rl_coach.memories.memory import Memory, MemoryGranularity, MemoryParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay, ExperienceReplayParameters
from rl_coach.memories.non_episodic.transition_collection import TransitionCollection
from rl_coach.utils import CoachError, dynamic_import_and_instantiate_module_from_params
from tests.memories.transitions import Steps, as_episode, assert_same


def replay(size: int = 100, filled: int = 0, kind: str = "vector", **settings) -> ExperienceReplay:
    memory = ExperienceReplay((MemoryGranularity.Transitions, size), **settings)
    memory.seed(0)
    for transition in Steps(kind).episode(filled):
        memory.store(transition)
    return memory


def numbers(batch: Batch) -> list:
    return batch.states(["observation"])["observation"][:, 0].astype(int).tolist()


def test_parameters_build_it():
    memory = dynamic_import_and_instantiate_module_from_params(ExperienceReplayParameters())
    assert type(memory) is ExperienceReplay and memory.max_size == (MemoryGranularity.Transitions, 1000000)


def test_samples_rows_that_belong_together():
    batch = replay(filled=50).sample(200)
    before = batch.states(["observation"])["observation"][:, 0]
    np.testing.assert_array_equal(batch.next_states(["observation"])["observation"][:, 0], before + 1)
    np.testing.assert_array_equal(batch.actions(), before % 3)
    np.testing.assert_array_equal(batch.rewards(), before / 4)
    np.testing.assert_array_equal(batch.game_overs(), before == 49)
    assert isinstance(batch, Batch) and len(batch) == 200


@pytest.mark.parametrize("allow_duplicates", [True, False])
def test_samples_uniformly_and_only_what_is_stored(allow_duplicates):
    memory = replay(20, 33, allow_duplicates_in_batch_sampling=allow_duplicates)
    counts = np.bincount(np.concatenate([numbers(memory.sample(10)) for _ in range(1000)]), minlength=33)
    assert counts[:13].sum() == 0
    assert np.all(np.abs(counts[13:] - 500) < 110)


def test_without_duplicates_none_is_twice():
    memory = replay(filled=20, allow_duplicates_in_batch_sampling=False)
    for _ in range(50):
        assert len(set(numbers(memory.sample(20)))) == 20
    with pytest.raises(CoachError, match=r"cannot sample 21 of 20.*allow_duplicates_in_batch_sampling"):
        memory.sample(21)


def test_with_duplicates_a_batch_may_be_larger_than_the_memory():
    assert len(replay(filled=3).sample(32)) == 32


def test_nothing_to_sample_is_an_error():
    with pytest.raises(CoachError, match="cannot sample 1 of 0"):
        replay().sample(1)


def test_one_seed_one_sequence():
    first, second = replay(filled=50), replay(filled=50)
    assert [numbers(first.sample(5)) for _ in range(3)] == [numbers(second.sample(5)) for _ in range(3)]
    second.seed(1)
    assert numbers(first.sample(20)) != numbers(second.sample(20))


@pytest.mark.parametrize("kind", ["vector", "stack", "image"])
@pytest.mark.parametrize("filled", [0, 12, 33])
def test_continues_exactly_from_its_state(kind, filled):
    memory, other = replay(20, filled, kind), replay(20, 5, kind)
    other.set_state(copy.deepcopy(memory.get_state()))
    assert len(other.transitions) == memory.length() == min(filled, 20)
    for transition in Steps(kind).episode(15):
        memory.store(transition)
        other.store(transition)
        one, same = memory.sample(4), other.sample(4)
        np.testing.assert_array_equal(one.state_columns["observation"], same.state_columns["observation"])


def test_state_is_plain_data_of_the_filled_part_only():
    state = replay(1000, 10).get_state()["store"]
    assert state["observations"]["observation"]["states"].shape == (10, 2)
    assert state["reward"].shape == (10,)


def test_get_and_remove():
    memory, model = replay(), Steps().episode(6)
    for transition in model:
        memory.store(transition)
    for index in (0, 3, 5, -1, -6):
        assert_same(memory.get(index), model[index])
    assert memory.get(6) is None and memory.get_transition(-7) is None
    memory.remove_transition(0)
    memory.remove_transition(2)
    memory.remove_transition(-1)
    memory.remove_transition(17)
    assert memory.length() == memory.num_transitions() == 3
    for index, transition in enumerate([model[1], model[2], model[4]]):
        assert_same(memory.get(index), transition)


def test_shuffled_batches_hold_each_transition_once():
    batches = list(replay(filled=25).get_shuffled_training_data_generator(10))
    assert [len(batch) for batch in batches] == [10, 10, 5]
    order = [number for batch in batches for number in numbers(batch)]
    assert sorted(order) == list(range(25)) and order != sorted(order)


def test_mean_reward_and_clean():
    memory = replay(filled=5)
    assert memory.mean_reward() == np.mean(np.arange(5) / 4)
    memory.clean()
    assert memory.length() == 0 and np.isnan(memory.mean_reward()) and len(memory.transitions) == 0
    memory.store(Steps().episode(1)[0])
    assert memory.length() == 1


def test_frozen_memory_refuses_changes():
    memory = replay(filled=5)
    memory.freeze()
    for change in (
        lambda: memory.store(Steps().episode(1)[0]),
        lambda: memory.remove_transition(0),
        lambda: memory.store_columns(memory.transitions),
        memory.clean,
    ):
        with pytest.raises(CoachError, match="frozen"):
            change()
    assert memory.length() == 5


def test_stores_episodes_and_chunks():
    memory, model = replay(), Steps().episode(4)
    memory.store_episode(as_episode(model))
    memory.store_columns(Batch(model))
    assert memory.length() == 8
    for index in range(8):
        assert_same(memory.get(index), model[index % 4])


def test_returns_are_kept_where_they_are_known():
    memory, episode = replay(), as_episode(Steps().episode(3))
    episode.update_discounted_rewards()
    memory.store_episode(episode)
    np.testing.assert_allclose(
        memory.transitions.n_step_discounted_rewards(), [t.n_step_discounted_rewards for t in episode.transitions]
    )
    memory.store(Steps().episode(1)[0])
    assert memory.transitions.return_column is None


@pytest.mark.parametrize("kind", ["vector", "stack", "image"])
def test_saves_and_loads(kind, tmp_path):
    memory = replay(20, 33, kind)
    memory.save(tmp_path / "memory.npz")
    larger, smaller = replay(100, 2, kind), replay(5, 0, kind)
    larger.load(tmp_path / "memory.npz")
    smaller.load(tmp_path / "memory.npz")
    assert (larger.length(), smaller.length()) == (22, 5)
    for index in range(1, 6):
        assert_same(larger.get(-index), memory.get(-index))
        assert_same(smaller.get(-index), memory.get(-index))
    assert [path.name for path in tmp_path.iterdir()] == ["memory.npz"]


def test_truncation_is_kept_apart_from_termination():
    memory = replay()
    memory.store(Transition({"o": np.zeros(1)}, 0, 0.0, {"o": np.zeros(1)}, game_over=True, terminated=False))
    batch = memory.sample(1)
    assert batch.game_overs().tolist() == [True] and batch.terminateds().tolist() == [False]


@pytest.mark.parametrize("name", ["no_such_file.npz", "text.npz"])
def test_loading_what_is_no_memory_is_an_error(name, tmp_path):
    (tmp_path / "text.npz").write_text("nothing of the kind")
    with pytest.raises(CoachError, match=name):
        replay().load(tmp_path / name)


def test_saving_where_nothing_can_be_written_is_an_error(tmp_path):
    with pytest.raises(CoachError, match="cannot write"):
        replay(filled=1).save(tmp_path / "no_such_directory" / "memory.npz")


def test_what_cannot_be_saved_is_named(tmp_path):
    memory, transition = replay(), Steps().episode(1)[0]
    transition.info["simulator"] = object()
    memory.store(transition)
    with pytest.raises(CoachError, match="simulator"):
        memory.save(tmp_path / "memory.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "max_size", [(MemoryGranularity.Episodes, 5), (MemoryGranularity.Transitions, 0), 100, None, ("Transitions", 5)]
)
def test_sizes_that_make_no_sense(max_size):
    with pytest.raises(CoachError, match=r"size"):
        ExperienceReplay(max_size)


def test_backend_sees_what_is_stored():
    class Backend:
        def __init__(self):
            self.seen = []

        def store(self, transition):
            self.seen.append(transition)

    memory, model = replay(), Steps().episode(3)
    backend = Backend()
    memory.set_memory_backend(backend)
    memory.store_episode(as_episode(model))
    assert backend.seen == model


def test_the_base_stores_nothing():
    memory = Memory((MemoryGranularity.Transitions, 1))
    assert MemoryParameters().path == "rl_coach.memories.memory:Memory"
    for call in (lambda: memory.sample(1), memory.clean, memory.length):
        with pytest.raises(NotImplementedError, match="Memory"):
            call()


def test_transition_collection_is_a_list():
    collection, model = TransitionCollection(), Steps().episode(4)
    collection.append(model[0])
    collection.extend(model[1:])
    del collection[1]
    assert len(collection) == 3 and list(collection) == [model[0], *model[2:]] and collection[-1] is model[3]
