from __future__ import annotations

import itertools

import numpy as np
import pytest

from rl_coach.runs.statistics import bootstrap_interval, iqm


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
