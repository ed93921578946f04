from __future__ import annotations

import math

import numpy as np
import pytest

from rl_coach.runs.statistics import (
    improvement_interval,
    interval_over_runs,
    iqm,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    profile_interval,
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


def test_the_interval_of_a_mean_is_students():
    # mean 2, deviation 1; t for 2 degrees of freedom is 4.303
    low, high = interval_over_runs([np.array([1.0, 2.0, 3.0])], resamples=100_000)
    half = 4.303 / 3**0.5
    assert (low, high) == pytest.approx((2 - half, 2 + half), rel=0.02)


@pytest.mark.parametrize(("runs", "draws"), [(3, 600), (4, 400), (5, 400), (10, 400)])
@pytest.mark.parametrize("form", ["one", "several with unequal deviations", "curve"])
def test_intervals_of_few_runs_contain_the_true_mean(runs, draws, form):
    generator = np.random.default_rng(runs)
    inside = []
    for _ in range(draws):
        if form == "one":
            low, high = interval_over_runs([generator.normal(0, 1, runs)], resamples=200)
        elif form == "curve":
            low, high = interval_over_runs([generator.normal(0, 1, (runs, 2))], resamples=200)
        else:
            strata = [generator.normal(0, scale, runs) for scale in (1.0, 5.0, 0.1)]
            low, high = interval_over_runs(strata, lambda values: values.mean(axis=0), resamples=200)
        inside.append(np.mean((low <= 0) & (high >= 0)))
    assert np.mean(inside) >= 0.9


@pytest.mark.parametrize("runs", [1, 2])
def test_fewer_than_three_runs_have_no_interval(runs):
    assert np.isnan(interval_over_runs([np.arange(runs, dtype=float)])).all()
    ends = interval_over_runs([np.array([[0.0, 1.0], [2.0, 3.0], [np.nan, 4.0]])])
    np.testing.assert_array_equal(np.isnan(ends), [[True, False], [True, False]])


def test_strata_are_drawn_each_for_itself():
    """Two environments, each with equal runs: whichever are drawn, the mean over both is the same."""
    strata = [np.full((3, 2), 10.0), np.full((3, 2), 20.0)]
    low, high = interval_over_runs(strata)
    np.testing.assert_array_equal([low, high], np.full((2, 2), 15.0))
    mixed = interval_over_runs([np.concatenate(strata)])
    assert np.all(mixed[0] < 15) and np.all(mixed[1] > 15)


def test_the_same_seed_gives_the_same_interval_and_points_in_parts_too(monkeypatch):
    from rl_coach.runs import statistics

    values = np.random.default_rng(1).normal(size=(6, 50))
    values[0, :10] = np.nan
    whole = interval_over_runs([values], seed=3)
    monkeypatch.setattr(statistics, "_LARGEST_RESAMPLE_BYTES", 1)
    np.testing.assert_array_equal(whole, interval_over_runs([values], seed=3))
    assert not np.array_equal(whole, interval_over_runs([values], seed=4))
    assert np.all(whole[0] <= whole[1])


def test_no_runs_are_refused():
    with pytest.raises(ValueError, match="no runs"):
        interval_over_runs([])


def test_what_lies_above_the_target_does_not_make_up_for_others():
    # (0.5 + 0 + 0) / 3
    assert optimality_gap(np.array([0.5, 1.0, 7.0])) == pytest.approx(0.5 / 3)
    assert optimality_gap(np.array([150.0, 250.0]), target=200) == 25


def test_the_probability_of_improvement_by_hand():
    # of the four pairs (3, 1), (3, 3), (2, 1), (2, 3) two are won and one is even
    assert probability_of_improvement([np.array([3.0, 2.0])], [np.array([1.0, 3.0])]) == 2.5 / 4
    both = [np.array([3.0, 2.0]), np.array([1.0])], [np.array([1.0, 3.0]), np.array([0.0, 0.5])]
    assert probability_of_improvement(*both) == pytest.approx((2.5 / 4 + 1) / 2)
    low, high = improvement_interval([np.array([5.0, 6])], [np.array([1.0, 2])])
    # (1 - p)² = t² p (1 - p) (1 + (1 - p) / (2 - p) + p / (1 + p)) / 4 with t = 4.303
    variance = low * (1 - low) * (1 + (1 - low) / (2 - low) + low / (1 + low)) / 4
    assert (1 - low) ** 2 == pytest.approx(4.303**2 * variance) and high == pytest.approx(1.0)


@pytest.mark.parametrize(("runs", "other_runs"), [(3, 3), (3, 4), (4, 4), (10, 3), (10, 10)])
@pytest.mark.parametrize("difference", [0.0, 1.0, 2.0])
def test_intervals_of_an_improvement_contain_the_true_probability(runs, other_runs, difference):
    """A bootstrap of normal scores contains it in 78% and 67% of the cases with three runs each."""
    generator, true = np.random.default_rng(1), (1 + math.erf(difference / 2)) / 2
    ends = np.array([
        improvement_interval([generator.normal(difference, 1, runs)], [generator.normal(0, 1, other_runs)])
        for _ in range(1000)
    ])  # fmt: skip
    assert np.mean((ends[:, 0] <= true) & (true <= ends[:, 1])) > 0.93
    assert np.all((ends >= 0) & (ends <= 1))


@pytest.mark.parametrize("strata", [[3], [4], [10], [3, 3], [10, 3]])
def test_intervals_of_a_profile_contain_the_true_shares(strata):
    """A bootstrap contains them in 40% of the cases with three runs at a share of 16% or 84%."""
    generator, thresholds = np.random.default_rng(2), np.array([-2.0, -1, 0, 1, 2])
    true = np.array([(1 - math.erf(one / math.sqrt(2))) / 2 for one in thresholds])
    inside = []
    for _ in range(1000):
        scores = [generator.normal(size=runs) for runs in strata]
        low, high = profile_interval(scores, thresholds)
        assert np.all((low >= 0) & (low <= performance_profile(scores, thresholds)) & (low <= high) & (high <= 1))
        inside.append((low <= true) & (true <= high))
    assert np.all(np.mean(inside, axis=0) > 0.93)


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
        """Ours are by Student's t. With 28 and 36 runs they are nearly the percentiles of rliable's bootstrap."""
        ours = interval_over_runs(list(self.A.T), resamples=20_000)
        np.testing.assert_allclose(ours, [0.49, 0.655], atol=0.03)
        ours = interval_over_runs(list(self.B.T), resamples=20_000)
        np.testing.assert_allclose(ours, [0.41111111, 0.61666667], atol=0.03)
        ours = improvement_interval(list(self.A.T), list(self.B.T))
        np.testing.assert_allclose(ours, [0.42857143, 0.73015873], atol=0.03)
