from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("panel")

from rl_coach.dashboard.view import (
    DRAWINGS,
    LARGEST_WINDOW,
    SMOOTHINGS,
    TABS,
    THEMES,
    X_AXES,
    View,
    from_query,
    to_query,
)

words = st.text(min_size=1, max_size=12)
names = st.lists(words, max_size=4, unique=True).map(tuple)
numbers = st.floats(-1e9, 1e9).map(lambda number: float(format(number, ".10g")))
views = st.builds(
    View,
    runs=names,
    colours=st.lists(st.integers(0, 40), max_size=4).map(tuple),
    left=names,
    right=names,
    x=st.sampled_from(list(X_AXES)),
    smoothing=st.sampled_from(SMOOTHINGS),
    window=st.integers(0, LARGEST_WINDOW),
    raw=st.booleans(),
    group=st.text(max_size=8),
    draw=st.sampled_from(DRAWINGS),
    log_x=st.booleans(),
    log_y=st.booleans(),
    zoom=st.one_of(st.just(()), st.tuples(*[numbers] * 4), st.tuples(*[numbers] * 6)),
    filter=st.text(max_size=12),
    regex=st.booleans(),
    sort=words,
    tab=st.sampled_from(TABS),
    episode=st.integers(-1, 10_000),
    steps=names,
    live=st.booleans(),
    theme=st.sampled_from(THEMES),
    columns=names,
    archived=st.booleans(),
    pins=names,
    across=st.text(max_size=8),
    result=st.text(max_size=8),
    axes=names,
)


@given(views)
def test_the_address_holds_the_whole_view(view):
    assert from_query(to_query(view)) == view


def test_the_default_view_needs_no_address():
    assert to_query(View()) == ""
    assert from_query("") == from_query("?") == View()


def test_an_address_reads_well():
    view = View(runs=("CartPole_DQN/21_11_2026-10_30",), left=("Training Reward",), x="time")
    assert to_query(view) == "?runs=CartPole_DQN/21_11_2026-10_30&left=Training+Reward&x=time"


@pytest.mark.parametrize(
    "query",
    [
        "?x=sideways",
        "?across_scale=log10",
        "?window=many",
        "?zoom=1,2",
        "?zoom=1,2,3,nan",
        "?colours=a",
        "?tab=/etc",
        "?nothing=1",
        "?theme=pink",
    ],
)
def test_what_cannot_be_meant_keeps_its_default(query):
    assert from_query(query) == View()


@given(st.text(max_size=200))
def test_no_address_is_an_error(query):
    assert isinstance(from_query(query), View)


def test_a_window_is_kept_within_its_limits():
    assert from_query("?window=100000").window == LARGEST_WINDOW
    assert from_query("?window=-3").window == 0
