from __future__ import annotations

import pytest

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TotalStepsCounter, TrainingSteps
from rl_coach.graph_managers.improvement import Improvement


def begun(start: int, improve, now: int | None = None) -> tuple[Improvement, TotalStepsCounter]:
    """A part that began at ``start`` of the unit that ``improve`` counts in."""
    counter = TotalStepsCounter()
    counter[type(improve)] = start
    improvement = Improvement(counter)
    improvement.begin()
    improvement.set_end(improve)
    counter[type(improve)] = start if now is None else now
    return improvement, counter


@pytest.mark.parametrize("start, now, length, left", [(0, 0, 10, 10), (0, 4, 10, 6), (3, 3, 10, 10), (3, 15, 10, 8)])
def test_periods_are_counted_from_the_start(start, now, length, left):
    improvement, _ = begun(start, EnvironmentSteps(100), now)
    assert improvement.left_of_period(EnvironmentSteps(length)) == EnvironmentSteps(left)


def test_it_is_over_when_the_evaluation_after_the_last_step_is_held():
    improvement, counter = begun(5, EnvironmentEpisodes(10))
    assert not improvement.is_over and improvement.end == EnvironmentEpisodes(15)
    improvement.left_of_period(EnvironmentEpisodes(10))
    counter[EnvironmentEpisodes] = 15
    assert not improvement.is_over
    assert improvement.left_of_period(EnvironmentEpisodes(10)).num_steps == 0
    improvement.evaluation_held()
    assert improvement.is_over


def test_the_fraction_done():
    improvement, _ = begun(20, EnvironmentSteps(40), 30)
    assert improvement.fraction_done == 0.25
    improvement.clear_end()
    assert improvement.fraction_done == 0.0 and improvement.end is None


def test_updates_are_limited_only_where_they_are_counted():
    assert begun(0, TrainingSteps(10), 4)[0].updates_left() == 6
    assert begun(0, EnvironmentSteps(10), 4)[0].updates_left() is None


def test_the_state_comes_back_and_can_be_forgotten():
    improvement, counter = begun(3, EnvironmentSteps(100), 15)
    left = improvement.left_of_period(EnvironmentSteps(10))
    again = Improvement(counter)
    again.set_state(improvement.get_state())
    assert again.has_begun and again.left_of_period(EnvironmentSteps(10)) == left
    again.forget()
    assert not again.has_begun
    again.set_state(again.get_state())
    assert not again.has_begun
