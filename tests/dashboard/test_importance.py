"""The importance of settings for a result."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("panel")

from rl_coach.dashboard import importance as module
from rl_coach.dashboard.importance import FEWEST_RUNS, codes, importance

RESULT = "Best evaluation reward"


def runs_of(score, number=40):
    """Runs whose result is a function of three settings, two of which are independent of each other."""
    random = np.random.default_rng(0)
    drawn = [{"rate": 10.0 ** random.uniform(-4, -2), "kind": random.choice(["a", "b", "c"]).item(),
              "noise": random.uniform()} for _ in range(number)]  # fmt: skip
    return [{**one, "twin": one["rate"] * 2, RESULT: score(one)} for one in drawn]


def test_a_setting_that_decides_the_result_is_the_most_important():
    pytest.importorskip("sklearn")
    found = importance(
        runs_of(lambda run: 100 * (run["kind"] == "b") + run["noise"]), ["noise", "rate", "kind"], RESULT
    )
    assert next(iter(found.shares)) == "kind" and found.shares["kind"] > 0.7
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert "40 runs" in found.text and "shows no causes" in found.text


def test_settings_that_changed_together_are_asked_for_once():
    pytest.importorskip("sklearn")
    found = importance(runs_of(lambda run: np.log(run["rate"])), ["rate", "twin", "kind"], RESULT)
    assert "twin" not in found.shares and found.shares["rate"] > 0.9


def test_a_result_of_chance_is_not_trusted():
    pytest.importorskip("sklearn")
    random = np.random.default_rng(1)
    found = importance(runs_of(lambda run: float(random.normal())), ["noise", "rate", "kind"], RESULT)
    assert found.shares and found.text.startswith("Do not trust these shares")


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (runs_of(lambda run: 1.0, FEWEST_RUNS - 1), "needs 8 runs"),
        (runs_of(lambda run: None), "there are 0"),
        (runs_of(lambda run: 1.0), "these runs have equal settings or equal results"),
    ],
)
def test_without_an_answer_it_says_why(runs, said):
    pytest.importorskip("sklearn")
    found = importance(runs, ["rate"], RESULT)
    assert found.shares == {} and said in found.text


def test_without_scikit_learn_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(module, "is_installed", lambda name: False)
    assert "the package 'sklearn' of the extra 'tune' is not installed: " in importance([], [], RESULT).text


def test_words_and_what_is_not_set_have_places_of_their_own():
    assert codes([0.1, None, 3]).tolist() == [0.1, -0.9, 3.0]
    assert codes(["b", None, "a", "b"]).tolist() == [1.0, -1.0, 0.0, 1.0]
