from __future__ import annotations

import pytest

pytest.importorskip("panel")

from rl_coach.dashboard.signals import by_use
from tests.dashboard.runs import SIGNALS


def test_what_is_looked_at_most_comes_first():
    assert by_use(SIGNALS)[:5] == [
        *("Evaluation Reward", "Training Reward", "Success Rate", "Episode Length", "Loss/Mean"),
    ]
    assert by_use(SIGNALS)[-3:] == ["Training Iter", "Total steps", "Wall-Clock Time"]


def test_means_come_before_spreads_and_each_name_once():
    assert by_use(["A/Max", "Mine", "A/Stdev", "A/Mean", "In Heatup", "A/Max"]) == [
        *("A/Mean", "Mine", "A/Stdev", "A/Max", "In Heatup"),
    ]
