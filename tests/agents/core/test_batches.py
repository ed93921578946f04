"""Sources of batches on memories and columns, without an agent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.batches import BatchSource, DataSetPass, MemoryBatches, MixedBatches
from rl_coach.core_types import Batch, Transition
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import Memory, MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplay
from rl_coach.utils import CoachError

Transitions = MemoryGranularity.Transitions


def transition(number: int, game_over: bool = False) -> Transition:
    state, after = {"observation": np.array([number], np.float32)}, {"observation": np.array([number + 1], np.float32)}
    return Transition(state=state, action=0, reward=float(number), next_state=after, game_over=game_over)


def filled(memory: Memory, count: int, first: int = 0, episode: int = 5) -> Any:
    """The memory with ``count`` steps whose observations and rewards are their numbers, in episodes of one length."""
    memory.seed(0)
    for number in range(first, first + count):
        memory.store(transition(number, game_over=(number - first) % episode == episode - 1))
    return memory


def replay(count: int = 10, first: int = 0, kind: type = ExperienceReplay) -> Any:
    return filled(kind((Transitions, 64)), count, first)


def numbers(batch: Batch) -> list[int]:
    return batch.state_columns["observation"][:, 0].astype(int).tolist()


def seeded(source: BatchSource) -> Any:
    source.seed(1)
    return source


def test_a_memory_gives_what_it_samples_and_gets_the_errors():
    memory, other = replay(kind=PrioritizedExperienceReplay), replay(kind=PrioritizedExperienceReplay)
    source = MemoryBatches(memory)
    assert source.wants_errors and not source.gives_many_at_once and source.epoch is None and source.get_state() == {}
    batch = source.sample(1, 4)
    assert numbers(batch) == numbers(other.sample(4))
    source.take_errors(batch, np.full(4, 7.0))
    assert memory.maximal_priority == 7 + memory.epsilon
    assert not MemoryBatches(ExperienceReplay((Transitions, 4))).has_rows


@pytest.mark.parametrize("data", [replay(), replay().transitions], ids=["memory", "columns"])
def test_an_epoch_has_each_row_once_in_a_new_order_each_time(data):
    source = seeded(DataSetPass(data))
    assert source.gives_many_at_once and source.epoch == 0
    drawn = []
    for epochs in (0, 0, 1, 1, 2):
        batch = source.sample(1, 4)
        assert len(batch) == 4, "an epoch that ends within a batch goes on with the next one"
        assert source.epoch == epochs
        drawn += numbers(batch)
    assert sorted(drawn[:10]) == sorted(drawn[10:]) == list(range(10))
    assert drawn[:10] != drawn[10:] and drawn[:10] != list(range(10))


def test_several_updates_get_the_rows_that_single_ones_get():
    one, other = seeded(DataSetPass(replay())), seeded(DataSetPass(replay()))
    assert numbers(one.sample(3, 4)) == [number for _ in range(3) for number in numbers(other.sample(1, 4))]
    assert one.epoch == other.epoch == 1


def test_a_batch_larger_than_the_data_set_passes_it_several_times():
    source = seeded(DataSetPass(replay(3)))
    drawn = numbers(source.sample(1, 8))
    assert source.epoch == 2 and sorted(drawn[:3]) == sorted(drawn[3:6]) == [0, 1, 2]


@pytest.mark.parametrize("batches", [0, 1, 2, 5, 6])
def test_a_pass_goes_on_exactly(batches):
    source, other = seeded(DataSetPass(replay())), DataSetPass(replay())
    for _ in range(batches):
        source.sample(1, 4)
    other.set_state(source.get_state())
    assert other.epoch == source.epoch
    for _ in range(7):
        assert numbers(other.sample(1, 4)) == numbers(source.sample(1, 4))
    assert other.epoch == source.epoch == (batches + 7) * 4 // 10


def test_what_is_stored_during_an_epoch_is_in_the_next_one():
    memory = replay()
    source = seeded(DataSetPass(memory))
    first = numbers(source.sample(1, 5))
    memory.store(transition(10))
    first += numbers(source.sample(1, 5))
    assert sorted(first) == list(range(10)) and sorted(numbers(source.sample(1, 11))) == list(range(11))


def test_a_data_set_must_have_rows_and_keep_them():
    memory = replay(0)
    source = DataSetPass(memory)
    assert not source.has_rows
    with pytest.raises(CoachError, match="no rows"):
        source.sample(1, 4)
    filled(memory, 5)
    source.sample(1, 4)
    memory.remove_transition(0)
    with pytest.raises(CoachError, match="had 5 rows when the epoch began, and now has 4"):
        source.sample(1, 4)


def test_a_pass_over_a_split_memory_leaves_the_evaluation_rows_out():
    memory = filled(EpisodicExperienceReplay(train_to_eval_ratio=0.5), 20)
    source = seeded(DataSetPass(memory))
    assert sorted(numbers(source.sample(1, 15))) == list(range(15)) and source.epoch == 1
    memory.prepare_evaluation_dataset()
    kept_back = [int(one.reward) for one in memory.evaluation_dataset_as_transitions]
    assert kept_back == list(range(15, 20))


def mixture(share: float = 0.25, kind: type = ExperienceReplay) -> MixedBatches:
    """Demonstrations 100, 101, ... and what was played, from 0 on."""
    return seeded(
        MixedBatches([(DataSetPass(replay(first=100)), share), (MemoryBatches(replay(kind=kind)), 1 - share)])
    )


def test_each_batch_has_the_shares_of_all_sources():
    source = mixture()
    assert source.gives_many_at_once and not source.wants_errors and source.has_rows
    batch = source.sample(3, 8)
    rows = np.asarray(numbers(batch)).reshape(3, 8)
    assert (rows[:, :2] >= 100).all() and (rows[:, 2:] < 100).all()
    assert batch.rewards().tolist() == rows.ravel().tolist()
    assert (batch.next_state_columns["observation"][:, 0] == rows.ravel() + 1).all()
    assert len(set(rows[:, :2].ravel())) == 6, "a pass has each row once"
    assert source.epoch == 0 and mixture().sample(5, 8) is not None


def test_shares_are_rounded_to_whole_rows():
    counts = np.bincount(mixture(0.3).sample(1, 8).info("batch_source"))
    assert counts.tolist() == [2, 6]
    with pytest.raises(CoachError, match="batch_size 8 is too small"):
        mixture(0.01).sample(1, 8)


@pytest.mark.parametrize("shares", [[], [0.5], [0.5, 0.6], [1.5, -0.5]])
def test_shares_must_add_up_to_one(shares):
    with pytest.raises(CoachError, match="add up to 1"):
        MixedBatches([(MemoryBatches(replay()), share) for share in shares])


def test_errors_go_back_to_the_source_of_each_row():
    demonstrations = replay(first=100, kind=PrioritizedExperienceReplay)
    played = replay(kind=PrioritizedExperienceReplay)
    source = seeded(
        MixedBatches(
            [
                (MemoryBatches(demonstrations), 0.25),
                (MemoryBatches(replay(first=50)), 0.25),
                (MemoryBatches(played), 0.5),
            ]
        )
    )
    assert source.wants_errors and not source.gives_many_at_once
    batch = source.sample(1, 8)
    assert (batch.info("weight")[2:4] == 1).all(), "rows that were not sampled by priority"
    errors = np.asarray(numbers(batch), float)
    source.take_errors(Batch(batch), errors)
    assert demonstrations.maximal_priority == pytest.approx(errors[:2].max())
    assert played.maximal_priority == pytest.approx(max(1, errors[4:].max()), rel=1e-4)
    for memory in (demonstrations, played):
        told = [int(row) for part, row in zip(batch.info("batch_source"), batch.info("idx")) if part != 1]
        assert told and memory._sums.values[:10].max() > 1


def test_an_info_column_that_one_source_lacks_has_placeholders():
    annotated = replay()
    rows = annotated.transitions
    rows.info_columns = {"bonus": np.full(10, 2.0), "label": np.full(10, 3), "text": np.full(10, "a", object)}
    batch = seeded(MixedBatches([(DataSetPass(rows), 0.5), (MemoryBatches(replay()), 0.5)])).sample(1, 4)
    assert batch.info("bonus")[:2].tolist() == [2, 2] and np.isnan(batch.info("bonus")[2:]).all()
    assert batch.info("label").tolist() == [3, 3, 0, 0] and batch.info("text").tolist() == ["a", "a", None, None]


def test_steps_and_returns_are_mixed_too():
    several = replay().transitions
    several.n_step_column, several.return_column = np.full(10, 3, np.int32), np.ones(10, np.float32)
    batch = seeded(MixedBatches([(DataSetPass(several), 0.5), (MemoryBatches(replay()), 0.5)])).sample(1, 4)
    assert batch.n_steps().tolist() == [3, 3, 1, 1] and batch.return_column is None


def test_sources_that_do_not_go_together():
    other = ExperienceReplay((Transitions, 8))
    other.store(Transition(state={"image": np.zeros(1)}, action=0, reward=0.0, next_state={"image": np.zeros(1)}))
    with pytest.raises(CoachError, match="different observations"):
        MixedBatches([(MemoryBatches(replay()), 0.5), (MemoryBatches(other), 0.5)]).sample(1, 4)
    with pytest.raises(CoachError, match="another mixture"):
        MixedBatches([(mixture(), 0.5), (mixture(), 0.5)]).sample(1, 16)

    class Sequences(BatchSource):
        def rule(self, rule: Any) -> Any:
            return lambda *arguments: rule(*arguments)

    with pytest.raises(CoachError, match="not of sequences"):
        MixedBatches([(Sequences(), 1)]).rule(lambda *_: None)


def test_a_mixture_goes_on_exactly():
    source, other = mixture(), mixture()
    source.sample(2, 8)
    other.set_state(source.get_state())
    other._sources[1]._memory.set_state(source._sources[1]._memory.get_state())
    assert [numbers(other.sample(1, 8)) for _ in range(5)] == [numbers(source.sample(1, 8)) for _ in range(5)]


def test_a_seed_decides_the_orders_of_all_passes():
    def drawn(seed: int) -> list[int]:
        source = MixedBatches([(DataSetPass(replay()), 0.5), (DataSetPass(replay()), 0.5)])
        source.seed(seed)
        return numbers(source.sample(1, 20))

    assert drawn(1) == drawn(1) != drawn(2) and drawn(1)[:10] != drawn(1)[10:]
