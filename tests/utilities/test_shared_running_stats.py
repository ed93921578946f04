import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rl_coach.utilities.shared_running_stats import NumpySharedRunningStats
from rl_coach.utils import CoachError


def stats(shape, clip=None, epsilon=1e-2):
    made = NumpySharedRunningStats("test", epsilon=epsilon)
    made.set_params(shape, clip)
    return made


def test_a_worked_example():
    running = stats((2,))
    running.push(np.array([[2.0, 0.0], [4.0, 0.0]]))
    running.push(np.array([9.0, 0.0]))
    assert running.n == 3
    assert running.mean.tolist() == [5.0, 0.0]
    assert running.var[0] == pytest.approx((9 + 1 + 16) / 3)
    assert running.std[1] == pytest.approx(0.1)  # the floor: the square root of epsilon


@given(
    batches=st.lists(
        hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.just(3)), elements=st.floats(-1e3, 1e3)), min_size=1
    )
)
def test_batches_and_single_samples_give_the_statistics_of_all(batches):
    everything = np.concatenate(batches)
    in_batches, one_by_one = stats((3,), epsilon=1e-12), stats((3,), epsilon=1e-12)
    for batch in batches:
        in_batches.push(batch)
        for sample in batch:
            one_by_one.push(sample)
    for running in (in_batches, one_by_one):
        assert running.n == len(everything)
        np.testing.assert_allclose(running.mean, everything.mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(running.var, np.maximum(everything.var(axis=0), 1e-12), rtol=1e-8, atol=1e-9)


def test_it_keeps_its_precision_far_from_zero():
    samples = np.random.default_rng(0).normal(1e8, 1.0, size=(1000, 1))
    running = stats((1,))
    for chunk in np.split(samples, 10):
        running.push(chunk)
    np.testing.assert_allclose(running.std, samples.std(axis=0), rtol=1e-6)


def test_normalizing_clips_and_gives_float32():
    running = stats((1,), clip=(-2, 2))
    running.push(np.array([[-1.0], [1.0]]))
    normalized = running.normalize(np.array([[0.5], [7.0], [-7.0]]))
    assert normalized.dtype == np.float32
    assert normalized.tolist() == [[0.5], [2.0], [-2.0]]


def test_without_samples_values_pass_as_they_are():
    assert stats((2,)).normalize(np.array([3.0, -4.0])).tolist() == [3.0, -4.0]


def test_an_empty_batch_changes_nothing():
    running = stats((2,))
    running.push(np.zeros((0, 2)))
    assert running.n == 0


def test_a_sample_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"need samples of shape \(2,\), not \(3,\)"):
        stats((2,)).push(np.zeros(3))


def test_a_restored_state_continues_exactly(tmp_path):
    rng = np.random.default_rng(1)
    running = stats((4,))
    running.push(rng.normal(size=(7, 4)))
    running.save_state_to_checkpoint(str(tmp_path), "agent.stats")
    restored = stats((4,))
    restored.restore_state_from_checkpoint(str(tmp_path), "agent.stats")
    more = rng.normal(size=(3, 4))
    running.push(more)
    restored.push(more)
    assert restored.n == running.n
    assert restored.mean.tolist() == running.mean.tolist()
    assert restored.var.tolist() == running.var.tolist()


def test_a_state_of_another_shape_or_kind_is_refused():
    with pytest.raises(CoachError, match=r"'test' have shape \(2,\), not \(3,\)"):
        stats((3,)).set_state(stats((2,)).get_state())
    with pytest.raises(CoachError, match="do not contain 'count'"):
        stats((3,)).set_state({})


def test_a_state_is_a_copy():
    running = stats((1,))
    state = running.get_state()
    running.push(np.array([[5.0], [7.0]]))
    assert state["mean"].tolist() == [0.0] and state["squared_deviations"].tolist() == [0.0]
