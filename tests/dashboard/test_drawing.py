"""The texts of a plot without curves."""

from __future__ import annotations

import types

import pytest

pytest.importorskip("panel")

from rl_coach.dashboard.drawing import draw
from rl_coach.dashboard.view import View


@pytest.mark.parametrize(
    ("runs", "trouble", "said"),
    [
        ((), "", "Select a run in the table above"),
        (("a",), "", "No values yet: a run writes its first row after its first episode."),
        (("a",), "cannot be read: ValueError: x", "A selected run cannot be read: ValueError: x"),
    ],
)
def test_a_plot_without_curves_has_the_reason(runs, trouble, said):
    known = {"a": types.SimpleNamespace(lines=(), trouble=trouble)}
    assert draw(View(runs=runs, left=("Evaluation Reward",)), known, {}, lambda run_id: 0).message.startswith(said)
