from __future__ import annotations

import itertools

import numpy as np
import pytest

from rl_coach.runs.statistics import (
    bootstrap_interval,
    improvement_interval,
    iqm,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
)


def test_the_mean_of_the_middle_half():
    # 8 values: 1, 2 and 7, 100 are left out; (3 + 4 + 5 + 6) / 4
    assert iqm(np.array([100.0, 1, 6, 3, 2, 5, 4, 7])) == 4.5
    # 5 values: one at each end is left out; (2 + 3 + 4) / 3
    assert iqm(np.array([5.0, 4, 3, 2, 1000])) == 4.0
    assert iqm(np.array([2.0, 4.0])) == 3.0 and iqm(np.array([7.0])) == 7.0


def test_as_scipy_trims():
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(0).normal(size=(13, 6))
    np.testing.assert_allclose(iqm(values), stats.trim_mean(values, 0.25, axis=0))


def test_what_is_missing_is_no_value():
    values = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan], [9.0, 4.0]])
    np.testing.assert_array_equal(iqm(values), [4.0, 4.0])
    assert np.isnan(iqm(np.full((3, 1), np.nan))).all()


def test_the_interval_of_two_runs_by_hand():
    """Of the four equally likely resamples of runs 0 and 1 the means are 0, 1/2, 1/2 and 1."""
    low, high = bootstrap_interval([np.array([0.0, 1.0])], confidence=0.95, resamples=4000)
    assert (low, high) == (0.0, 1.0)
    low, high = bootstrap_interval([np.array([0.0, 1.0])], confidence=0.4, resamples=4000)
    assert (low, high) == (0.5, 0.5)


def test_the_interval_is_that_of_every_possible_resample():
    scores = np.array([3.0, 8.0, 1.0, 6.0])
    every = [iqm(np.array(resample)) for resample in itertools.product(scores, repeat=4)]
    interval = bootstrap_interval([scores], confidence=0.8, resamples=20_000)
    np.testing.assert_allclose(interval, np.percentile(every, [10, 90]), atol=0.26)


def test_strata_are_drawn_each_for_itself():
    """Two environments, each with equal runs: whichever are drawn, the mean over both is the same."""
    strata = [np.full((3, 2), 10.0), np.full((3, 2), 20.0)]
    low, high = bootstrap_interval(strata)
    np.testing.assert_array_equal([low, high], np.full((2, 2), 15.0))
    mixed = bootstrap_interval([np.concatenate(strata)])
    assert np.all(mixed[0] < 15) and np.all(mixed[1] > 15)


def test_the_same_seed_gives_the_same_interval_and_points_in_parts_too(monkeypatch):
    from rl_coach.runs import statistics

    values = np.random.default_rng(1).normal(size=(6, 50))
    values[0, :10] = np.nan
    whole = bootstrap_interval([values], seed=3)
    monkeypatch.setattr(statistics, "_LARGEST_RESAMPLE_BYTES", 1)
    np.testing.assert_array_equal(whole, bootstrap_interval([values], seed=3))
    assert not np.array_equal(whole, bootstrap_interval([values], seed=4))
    assert np.all(whole[0] <= whole[1])


def test_no_runs_are_refused():
    with pytest.raises(ValueError, match="no runs"):
        bootstrap_interval([])


def test_what_lies_above_the_target_does_not_make_up_for_others():
    # (0.5 + 0 + 0) / 3
    assert optimality_gap(np.array([0.5, 1.0, 7.0])) == pytest.approx(0.5 / 3)
    assert optimality_gap(np.array([150.0, 250.0]), target=200) == 25


def test_the_probability_of_improvement_by_hand():
    # of the four pairs (3, 1), (3, 3), (2, 1), (2, 3) two are won and one is even
    assert probability_of_improvement([np.array([3.0, 2.0])], [np.array([1.0, 3.0])]) == 2.5 / 4
    both = [np.array([3.0, 2.0]), np.array([1.0])], [np.array([1.0, 3.0]), np.array([0.0, 0.5])]
    assert probability_of_improvement(*both) == pytest.approx((2.5 / 4 + 1) / 2)
    assert improvement_interval([np.array([5.0, 6])], [np.array([1.0, 2])]) == (1.0, 1.0)


def test_the_profile_by_hand():
    shares = performance_profile([np.array([1.0, 3.0]), np.array([2.0])], np.array([0.0, 1.0, 2.5]))
    np.testing.assert_allclose(shares, [1, 0.75, 0.25])


class TestRliable:
    """Figures of rliable 1.2.0, the package of the measures' authors. It is not installed with the tests, because it
    does not run beside pandas 3. ``aggregate_iqm``, ``aggregate_optimality_gap``, ``probability_of_improvement`` and
    ``create_performance_profile`` gave them, ``get_interval_estimates`` the intervals, of 20,000 resamples."""

    A = np.array([
        [1.21, -0.17, 0.73, 0.43], [0.46, 0.54, -0.01, 0.53], [0.34, 1.6, 0.67, 0.49], [0.52, 0.4, 0.28, 0.48],
        [0.74, 0.53, 0.89, 0.54], [0.61, 1.06, 0.76, 0.45], [0.55, 0.76, 1.18, 0.52],
    ])  # fmt: skip
    B = np.array([
        [0.4, 0.8, 0.2, 0.4], [0.8, 0.7, 0.5, 0.7], [-0.3, 0.8, 0.2, 0.0], [0.6, 0.7, 0.4, 0.2], [0.5, 0.5, 0.9, 0.7],
        [0.6, 0.8, 0.4, 0.2], [0.7, 0.7, 0.4, 0.3], [0.6, -0.2, 0.7, 0.6], [0.0, 0.5, 0.2, 0.7],
    ])  # fmt: skip

    def test_aggregates(self):
        assert [iqm(one.ravel()) for one in (self.A, self.B)] == pytest.approx([0.565, 0.52777778])
        assert [optimality_gap(one.ravel()) for one in (self.A, self.B)] == pytest.approx([0.42714286, 0.53055556])

    def test_probability_of_improvement(self):
        assert probability_of_improvement(list(self.A.T), list(self.B.T)) == pytest.approx(0.58333333)

    def test_profiles(self):
        thresholds = np.array([0, 0.25, 0.5, 0.75, 1])
        for one, shares in (
            (self.A, [0.92857143, 0.92857143, 0.64285714, 0.25, 0.14285714]),
            (self.B, [0.88888889, 0.75, 0.47222222, 0.13888889, 0]),
        ):
            np.testing.assert_allclose(performance_profile(list(one.T), thresholds), shares, rtol=1e-7)

    def test_intervals(self):
        """The ends differ by what chance leaves, as the resamples are others."""
        ours = bootstrap_interval(list(self.A.T), resamples=20_000)
        np.testing.assert_allclose(ours, [0.49, 0.655], atol=0.01)
        ours = bootstrap_interval(list(self.B.T), resamples=20_000)
        np.testing.assert_allclose(ours, [0.41111111, 0.61666667], atol=0.01)
        ours = improvement_interval(list(self.A.T), list(self.B.T), resamples=5000)
        np.testing.assert_allclose(ours, [0.42857143, 0.73015873], atol=0.02)
