"""The segment tree against NumPy, and prioritized replay against the formulas of Schaul et al. 2016."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_coach.core_types import Batch
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.prioritized_experience_replay import (
    PrioritizedExperienceReplay,
    PrioritizedExperienceReplayParameters,
    SegmentTree,
    SmallestValue,
)
from rl_coach.schedules import LinearSchedule
from rl_coach.utils import CoachError, dynamic_import_and_instantiate_module_from_params
from tests.memories.transitions import Steps

Operation = SegmentTree.Operation
SIZES = st.sampled_from([1, 5, 32, 33, 300, 5000, 9000, 150_000])


def prioritized(size: int = 100, filled: int = 0, **settings) -> PrioritizedExperienceReplay:
    memory = PrioritizedExperienceReplay((MemoryGranularity.Transitions, size), **settings)
    memory.seed(0)
    for transition in Steps().episode(filled):
        memory.store(transition)
    return memory


def numbers(batch: Batch) -> list:
    return batch.states(["observation"])["observation"][:, 0].astype(int).tolist()


@given(size=st.integers(1, 12), seed=st.integers(0, 10_000))
def test_the_smallest_value_is_that_of_the_values(size, seed):
    rng = np.random.default_rng(seed)
    smallest, values = SmallestValue(size), np.full(size, np.inf)
    for _ in range(20):
        # few different values, so that several places hold the smallest; places come twice
        places = rng.integers(size, size=3) if rng.random() < 0.7 else int(rng.integers(size))
        new = rng.choice([1.0, 2.0, 3.0, np.inf], size=np.shape(places)) if rng.random() < 0.7 else 2.0
        smallest.update(places, new)
        values[places] = new
        if rng.random() < 0.5:
            assert smallest.value() == values.min()
    smallest.clear()
    assert smallest.value() == np.inf


@settings(max_examples=60, deadline=None)
@given(size=SIZES, seed=st.integers(0, 1000), batches=st.integers(1, 5))
def test_totals_are_those_of_the_values(size, seed, batches):
    rng = np.random.default_rng(seed)
    trees = {operation: SegmentTree(size, operation) for operation in Operation}
    values = np.full(size, np.nan)
    for _ in range(batches):
        leaves = rng.integers(0, size, rng.integers(1, 400))
        new = rng.random(len(leaves))
        values[leaves] = new
        values[0] = single = rng.random()
        for tree in trees.values():
            tree.update(leaves, new)
            tree.update(0, single)
        np.testing.assert_allclose(trees[Operation.SUM].total_value(), np.nansum(values), rtol=1e-12)
        assert trees[Operation.MIN].total_value() == np.nanmin(values)
        assert trees[Operation.MAX].total_value() == np.nanmax(values)


@settings(max_examples=100, deadline=None)
@given(size=SIZES, seed=st.integers(0, 1000), empty=st.floats(0, 0.99))
def test_a_fraction_finds_the_leaf_where_the_running_sum_passes_it(size, seed, empty):
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 9, size).astype(float) * (rng.random(size) >= empty)
    values[rng.integers(size)] = 1.0
    tree = SegmentTree(size, Operation.SUM)
    tree.update(np.arange(size), values)
    # Points half way between integers, so that rounding decides nothing.
    points = rng.integers(0, int(values.sum()), 50) + 0.5
    leaves, found = tree.sample(points / values.sum())
    np.testing.assert_array_equal(leaves, np.cumsum(values).searchsorted(points, "right"))
    np.testing.assert_array_equal(found, values[leaves])


@pytest.mark.parametrize("size", [3, 40, 700, 20_000])
def test_no_fraction_finds_an_empty_leaf(size):
    rng = np.random.default_rng(size)
    tree = SegmentTree(size, Operation.SUM)
    filled = rng.choice(size, max(1, size // 3), replace=False)
    tree.update(filled, 10.0 ** rng.uniform(-12, 6, len(filled)))
    fractions = np.concatenate([rng.random(5000), [0.0, np.nextafter(1.0, 0.0)]])
    leaves, values = tree.sample(fractions)
    assert np.isin(leaves, filled).all() and values.all()


def test_tree_of_single_elements():
    tree = SegmentTree(4, Operation.SUM)
    for value, name in [(10, "a"), (20, "b"), (5, "c"), (7.5, "d")]:
        tree.add(value, name)
    assert tree.total_value() == 42.5
    assert tree.get_element_by_partial_sum(5) == (0, 10, "a")
    assert tree.get_element_by_partial_sum(30.5) == (2, 5, "c")
    assert tree.get_element_by_partial_sum(40) == (3, 7.5, "d")
    tree.add(1, "e")
    assert tree.total_value() == 33.5 and tree.get_element_by_partial_sum(0.5) == (0, 1, "e")
    tree.update(1, 0)
    assert tree.get_element_by_partial_sum(1.5) == (2, 5, "c")


def test_an_empty_tree_and_no_tree():
    with pytest.raises(ValueError, match="zero"):
        SegmentTree(5, Operation.SUM).sample(np.array([0.5]))
    with pytest.raises(ValueError, match="at least 1"):
        SegmentTree(0, Operation.SUM)


def test_parameters_build_it():
    memory = dynamic_import_and_instantiate_module_from_params(PrioritizedExperienceReplayParameters())
    assert (memory.alpha, memory.beta.current_value, memory.epsilon) == (0.6, 0.4, 1e-6)
    assert prioritized().beta is not prioritized().beta


def test_samples_in_proportion_to_the_priorities():
    memory = prioritized(20, 33, alpha=0.7, epsilon=0.01)
    errors = np.random.default_rng(1).random(20) * 3
    memory.update_priorities(np.arange(20), errors)
    counts = np.bincount(np.concatenate([memory.sample(10).info("idx") for _ in range(3000)]), minlength=20)
    probabilities = (errors + 0.01) ** 0.7 / ((errors + 0.01) ** 0.7).sum()
    np.testing.assert_allclose(counts / counts.sum(), probabilities, atol=0.006)


def test_weights_correct_the_bias():
    memory = prioritized(filled=50, alpha=0.6, beta=LinearSchedule(0.4, 1.0, 10), epsilon=0.1)
    errors = np.linspace(0, 5, 50)
    memory.update_priorities(np.arange(50), errors)
    probabilities = (errors + 0.1) ** 0.6 / ((errors + 0.1) ** 0.6).sum()
    for step in range(12):
        beta = min(1.0, 0.4 + 0.06 * step)
        expected = (50 * probabilities) ** -beta / ((50 * probabilities) ** -beta).max()
        batch = memory.sample(16)
        assert batch.info("weight").dtype == np.float32
        np.testing.assert_allclose(batch.info("weight"), expected[batch.info("idx")], rtol=1e-5)


def test_each_segment_of_the_sum_gives_one():
    memory = prioritized(64, 64)
    for _ in range(20):
        assert sorted(memory.sample(64).info("idx").tolist()) == list(range(64))


def test_idx_is_the_transition_and_weight_one_before_any_update():
    batch = prioritized(filled=10).sample(10)
    assert batch.info("idx").tolist() == numbers(batch)
    assert batch.info("weight").tolist() == [1.0] * 10


def test_new_transitions_get_the_highest_priority_so_far():
    memory = prioritized(100, 50, alpha=1.0, epsilon=0.0)
    memory.update_priorities(np.arange(50), np.full(50, 0.5))
    memory.update_priorities(np.array([7]), np.array([9.0]))
    memory.update_priorities(np.array([7]), np.array([0.5]))
    memory.store(Steps().episode(1)[0])
    memory.store_columns(Batch(Steps().episode(3)))
    counts = np.bincount(np.concatenate([memory.sample(20).info("idx") for _ in range(1000)]), minlength=54)
    np.testing.assert_allclose(counts[50:] / counts[:50].mean(), 18, rtol=0.15)


def test_where_an_index_comes_twice_the_last_error_counts():
    memory = prioritized(filled=4, alpha=1.0, epsilon=0.0)
    memory.update_priorities(np.array([0, 1, 2, 3, 0]), np.array([5.0, 0.0, 0.0, 0.0, 2.0]))
    assert memory._sums.total_value() == 2.0 and memory.sample(4).info("idx").tolist() == [0] * 4


@pytest.mark.parametrize("indices, errors", [([0, 1], [0.5]), ([0], [-0.1]), ([0], [np.nan]), ([0, 1], [0.5, -1e-9])])
def test_bad_errors_are_refused_and_change_nothing(indices, errors):
    memory = prioritized(filled=4)
    with pytest.raises(CoachError, match="update_priorities"):
        memory.update_priorities(np.array(indices), np.array(errors))
    assert memory._sums.total_value() == 4.0


def test_too_few_and_all_zero():
    memory = prioritized(filled=4, epsilon=0.0, allow_duplicates_in_batch_sampling=False)
    with pytest.raises(CoachError, match="cannot sample 5 of 4"):
        memory.sample(5)
    memory = prioritized(filled=4, epsilon=0.0)
    assert set(memory.sample(5).info("idx").tolist()) == {0, 1, 2, 3}
    memory.update_priorities(np.arange(4), np.zeros(4))
    with pytest.raises(CoachError, match="epsilon"):
        memory.sample(1)


def test_without_duplicates_none_is_twice():
    memory = prioritized(filled=12, alpha=1.0, epsilon=1e-3, allow_duplicates_in_batch_sampling=False)
    errors = np.array([100.0] + [1.0] * 11)
    memory.update_priorities(np.arange(12), errors)
    for size in (1, 5, 12):
        batch = memory.sample(size)
        assert len(set(batch.info("idx").tolist())) == size
        expected = ((errors + 1e-3) / (1 + 1e-3)) ** -0.4
        np.testing.assert_allclose(batch.info("weight"), expected[batch.info("idx")], rtol=1e-5)
    assert memory._sums.total_value() == pytest.approx(111 + 12e-3)


def test_what_is_gone_is_not_sampled():
    memory, model = prioritized(filled=10), list(range(10))
    for index in (0, 3, -1):
        memory.remove_transition(index)
        del model[index]
        assert sorted(set(numbers(memory.sample(len(model))))) == model
    memory.clean()
    assert memory._sums.total_value() == 0
    memory.store(Steps().episode(1)[0])
    assert numbers(memory.sample(1)) == [0]


def test_removing_keeps_the_priorities_of_the_others():
    memory = prioritized(filled=5, alpha=1.0, epsilon=0.0)
    memory.update_priorities(np.arange(5), np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    memory.remove_transition(2)
    assert memory._sums.values[:4].tolist() == [1.0, 2.0, 8.0, 16.0]


def test_continues_exactly_from_its_state():
    memory, other = (prioritized(700, n, beta=LinearSchedule(0.4, 1.0, 50)) for n in (1000, 3))
    memory.update_priorities(np.arange(700), np.random.default_rng(0).random(700))
    memory.sample(32)
    other.set_state(copy.deepcopy(memory.get_state()))
    more = Steps().episode(20)
    for transition in more:
        batches = []
        for each in (memory, other):
            each.store(transition)
            batches.append(each.sample(32))
            each.update_priorities(batches[-1].info("idx"), np.linspace(0, 2, 32))
        assert numbers(batches[0]) == numbers(batches[1])
        np.testing.assert_array_equal(batches[0].info("weight"), batches[1].info("weight"))


def test_with_frames_that_push_out_the_oldest():
    memory, steps = PrioritizedExperienceReplay((MemoryGranularity.Transitions, 100)), Steps("image")
    memory.seed(0)
    for _ in range(400):
        memory.store(steps.episode(1)[0])
    held = memory.length()
    assert 80 < held < 100
    assert memory._sums.total_value() == held
    assert len(set(memory.sample(held).info("idx").tolist())) == held


def test_a_tree_is_printed_level_by_level():
    tree = SegmentTree(4, Operation.SUM)
    for value in (1.0, 2.0, 3.0, 4.0):
        tree.add(value, None)
    assert str(tree) == "[10.]\n[3. 7.]\n[1. 2. 3. 4.]\n"
    odd = SegmentTree(3, Operation.MAX)
    odd.update(1, 5.0)
    assert str(odd) == "[5.]\n[  5. -inf]\n[-inf   5. -inf -inf]\n"
