from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

pytest.importorskip("panel")

from bokeh.document import Document
from bokeh.document.models import DocumentModelManager

from rl_coach.dashboard.curves import Curve, bounds, extremes, line_of, short_titles, smooth, thin
from rl_coach.dashboard.plot import SignalPlot
from rl_coach.dashboard.view import LARGEST_WINDOW
from rl_coach.runs.mean_curve import mean_of

values = arrays(np.float64, st.integers(0, 400), elements=st.floats(-1e6, 1e6))


def curve(y, **arrays):
    y = np.asarray(y, dtype=float)
    return Curve(("run", "signal", "left"), "run", 0, 0, False, np.arange(y.size, dtype=float), y, **arrays)


def test_window_is_the_mean_of_the_last_values():
    np.testing.assert_allclose(smooth(np.array([1.0, 3.0, 5.0, 7.0]), "window", 2), [1, 2, 4, 6])


def test_exponential_weighs_by_age():
    # span 3: alpha = 1/2, so weights 1, 1/2, 1/4, normalised
    np.testing.assert_allclose(
        smooth(np.array([4.0, 2.0, 6.0]), "exponential", 3), [4, (2 + 2) / 1.5, (6 + 1 + 1) / 1.75]
    )


def test_a_window_that_is_not_given_is_a_twentieth_of_the_values():
    y = np.arange(60.0)
    np.testing.assert_array_equal(smooth(y, "window", 0), smooth(y, "window", 3))
    few, many = np.arange(39.0), np.arange(100_000.0)
    np.testing.assert_array_equal(smooth(few, "exponential", 0), few)
    np.testing.assert_array_equal(smooth(many, "window", 0), smooth(many, "window", LARGEST_WINDOW))


@pytest.mark.parametrize("kind", ["none", "window", "exponential"])
def test_a_window_of_one_changes_nothing(kind):
    y = np.array([1.0, -4.0])
    assert smooth(y, kind, 1) is y


@given(values, st.sampled_from(["window", "exponential"]), st.integers(2, 50))
def test_smoothing_stays_between_the_extremes(y, kind, window):
    smoothed = smooth(y, kind, window)
    assert smoothed.shape == y.shape
    if y.size:
        slack = 1e-6 * max(1.0, np.abs(y).max())
        assert y.min() - slack <= smoothed.min() and smoothed.max() <= y.max() + slack


@given(values, st.integers(8, 60))
def test_thinning_keeps_the_extremes_and_the_ends(y, points):
    picked = extremes(y, points)
    assert picked.size <= max(points + 2, 4)
    assert np.all(np.diff(picked) > 0)
    if y.size:
        assert {0, y.size - 1} <= set(picked.tolist())
        assert y[picked].min() == y.min() and y[picked].max() == y.max()


def test_thinning_leaves_no_stretch_out():
    picked = extremes(np.random.default_rng(0).normal(size=10_000), 1600)
    assert np.diff(picked).max() < 2 * 10_000 / 799


def test_zoomed_in_all_points_are_there_and_the_rest_stays_in_outline():
    full = curve(np.random.default_rng(0).normal(size=100_000))
    thinned = thin(full, (50_000, 50_300), 1000)
    inside = (thinned.x >= 50_000) & (thinned.x <= 50_300)
    assert inside.sum() == 301
    assert thinned.x[0] == 0 and thinned.x[-1] == 99_999
    assert thinned.x.size < 2000


def test_lines_are_finite_positive_on_a_log_axis_and_ascending():
    x = np.array([3.0, 1.0, 2.0, np.nan, 5.0, 0.0])
    y = np.array([30.0, 10.0, np.nan, 4.0, -5.0, 1.0])
    np.testing.assert_array_equal(line_of(x, y)[0], [0, 1, 3, 5])
    np.testing.assert_array_equal(line_of(x, y, log_x=True)[0], [1, 3, 5])
    np.testing.assert_array_equal(line_of(x, y, log_x=True, log_y=True)[1], [10, 30])


def test_mean_over_runs_with_its_standard_deviation():
    x = np.array([1.0, 2.0, 3.0])
    mean = mean_of(
        [(x, np.array([1.0, 2.0, 3.0])), (x, np.array([3.0, 4.0, 5.0])), (x, np.array([2.0, 3.0, 4.0]))], "std"
    )
    np.testing.assert_allclose(mean["y"], [2, 3, 4])
    np.testing.assert_allclose(mean["high"] - mean["y"], [1, 1, 1])
    np.testing.assert_allclose(mean["count"], [3, 3, 3])


def test_confidence_is_students_t_over_the_root_of_n():
    x = np.array([1.0])
    lines = [(x, np.array([value])) for value in (1.0, 2.0, 3.0, 4.0, 5.0)]
    mean = mean_of(lines, "confidence")
    # standard deviation sqrt(2.5), t(0.975, 4) = 2.776
    np.testing.assert_allclose(mean["high"] - mean["y"], [2.776 * np.sqrt(2.5 / 5)], rtol=1e-6)


def test_a_mean_is_over_the_runs_that_reach_so_far():
    mean = mean_of(
        [(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0])), (np.array([1.0, 2.0]), np.array([3.0, 3.0]))], "std"
    )
    np.testing.assert_allclose(mean["y"], [2, 2, 1])
    np.testing.assert_allclose(mean["count"], [2, 2, 1])
    assert mean["low"][-1] == mean["high"][-1] == 1
    assert mean_of([(np.empty(0), np.empty(0))], "std")["x"].size == 0


@pytest.mark.parametrize(("late", "first"), [(4.0, 4.0), (40.0, 1.0)])
def test_a_mean_begins_with_all_runs_that_begin_nearly_together(late, first):
    early = np.arange(1.0, 101.0)
    after = early[early >= late]
    mean = mean_of([(early, np.zeros(early.size)), (after, np.full(after.size, 2.0))], "std")
    assert mean["x"][0] == first and mean["x"][-1] == 100
    assert mean["y"][0] == (1 if first == late else 0)


def test_many_lines_are_one_change_of_the_page(monkeypatch):
    looks = []
    recompute = DocumentModelManager.recompute
    monkeypatch.setattr(DocumentModelManager, "recompute", lambda self: [looks.append(1), recompute(self)])
    plot = SignalPlot("light", False, False, lambda zoom: None, lambda work: work())
    document = Document()
    document.add_root(plot.figure)
    x = np.arange(5.0)
    lines = [Curve((str(place), "y", "left"), f"run {place}", place, 0, False, x, x, raw=x) for place in range(20)]
    looks.clear()
    plot.show(lines, "x", "y", "")
    assert len(looks) == 1 and len(plot.figure.renderers) == 40
    plot.show(lines[:5], "x", "y", "")
    assert len(looks) == 2 and len(plot.figure.renderers) == 10


def test_titles_lose_what_all_long_labels_begin_with():
    long = "experiment_with_a_long_name_of_somebody"
    assert short_titles([f"{long}_a (3)", f"{long}_b (3)"]) == ["…a (3)", "…b (3)"]
    assert short_titles(["a", "b"]) == ["a", "b"] and short_titles([]) == []
    (alone,) = short_titles([f"{long}_{long}"])
    assert len(alone) <= 44 and alone.startswith("experiment") and alone.endswith("somebody")
    middles = [f"{'x' * 30}{middle}{'y' * 30}" for middle in "ab"]
    assert short_titles(middles) == middles
    assert short_titles(["sweep · a (3)", "sweep · b · c (3)"]) == ["a (3)", "b · c (3)"]
    assert short_titles(["sweep · a", "sweep"]) == ["sweep · a", "sweep"] and short_titles(["sweep · a"]) == [
        "sweep · a"
    ]


def test_a_single_value_is_drawn_as_a_point():
    plot = SignalPlot("light", False, False, lambda zoom: None, lambda work: work())
    for values, kinds in (([5.0], {"Line", "Scatter"}), ([5.0, 6.0], {"Line"}), ([7.0], {"Line", "Scatter"})):
        plot.show([curve(values)], "x", "y", "")
        assert {renderer.glyph.__class__.__name__ for renderer in plot.figure.renderers} == kinds
        assert all(list(renderer.data_source.data["y"]) == values for renderer in plot.figure.renderers)


def test_bounds_leave_a_margin_and_never_collapse():
    assert bounds([np.array([0.0, 10.0])], [np.array([0.0, 10.0])], False, 0.05) == (-0.5, 10.5)
    assert bounds([np.array([5.0])], [np.array([5.0])], False, 0.05) == (4.5, 5.5)
    assert bounds([np.array([0.0])], [np.array([0.0])], False, 0.05) == (-1, 1)
    assert bounds([], [], False, 0.05) is None
    low, high = bounds([np.array([1.0, 100.0])], [np.array([1.0, 100.0])], True, 0.5)
    np.testing.assert_allclose([low, high], [0.1, 1000])
