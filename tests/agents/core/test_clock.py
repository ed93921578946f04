"""When training phases and updates of targets are due: numbers only, no agent."""

from __future__ import annotations

from typing import Any

import pytest

from rl_coach.agents.core.clock import TrainingClock
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps


def clock(
    playing: Any = None, targets: Any = None, updates: int = 1, at_once: int = 1, **settings: Any
) -> TrainingClock:
    algorithm = AlgorithmParameters()
    algorithm.num_consecutive_playing_steps = playing or EnvironmentSteps(1)
    algorithm.num_consecutive_training_steps = updates
    algorithm.num_steps_between_copying_online_weights_to_target = targets or EnvironmentSteps(100)
    for name, value in settings.items():
        setattr(algorithm, name, value)
    made = TrainingClock(algorithm)
    made.steps_at_once = at_once
    return made


def at(one: TrainingClock, steps: int = 0, episodes: int = 0, updates: int = 0) -> TrainingClock:
    one.steps, one.episodes, one.updates = steps, episodes, updates
    return one


@pytest.mark.parametrize(
    "playing, last, steps, episodes, is_due",
    [
        (EnvironmentSteps(4), 0, 3, 9, False),
        (EnvironmentSteps(4), 0, 4, 0, True),
        (EnvironmentSteps(4), 4, 7, 0, False),
        (EnvironmentSteps(4), 4, 9, 0, True),
        (EnvironmentEpisodes(2), 3, 500, 4, False),
        (EnvironmentEpisodes(2), 3, 500, 5, True),
    ],
)
def test_phases_follow_the_playing_steps(playing, last, steps, episodes, is_due):
    one = clock(playing)
    one.last_phase = last
    assert at(one, steps, episodes).is_due() is is_due
    assert one.last_phase == last, "asking changes nothing"


def test_a_phase_waits_for_the_end_of_the_episode_where_the_algorithm_does():
    one = clock(EnvironmentSteps(4), act_for_full_episodes=True)
    assert not at(one, 6).is_due(in_episode=lambda: True)
    assert at(one, 6, 1).is_due(in_episode=lambda: False)
    assert at(clock(EnvironmentSteps(4), act_for_full_episodes=False), 6).is_due(in_episode=lambda: True)


@pytest.mark.parametrize(
    "playing, updates, at_once, last, steps, left, made, last_after",
    [
        (EnvironmentSteps(1), 1, 1, 10, 11, None, 1, 11),
        (EnvironmentSteps(4), 3, 1, 0, 5, None, 3, 5),
        (EnvironmentSteps(4), 3, 1, 0, 5, 2, 2, 5),  # cut to what the run still wants
        (EnvironmentSteps(1), 1, 8, 80, 88, None, 8, 88),  # eight copies: eight phases
        (EnvironmentSteps(3), 1, 8, 0, 8, None, 2, 6),  # two steps are left over for the next phase
        (EnvironmentSteps(3), 1, 8, 7, 16, None, 3, 16),  # with them, a third one is due
        (EnvironmentSteps(16), 2, 8, 0, 16, None, 2, 16),
        (EnvironmentSteps(1), 1, 8, 0, 1000, None, 1, 1000),  # what was played before training began is not caught up
        (EnvironmentSteps(3), 1, 8, 0, 1000, None, 1, 1000),  # nor is what would be left of it for the next phase
    ],
)
def test_several_phases_are_due_where_several_steps_come_at_once(
    playing, updates, at_once, last, steps, left, made, last_after
):
    one = clock(playing, updates=updates, at_once=at_once)
    one.last_phase = last
    assert at(one, steps).start_phases(updates_left=left) == made
    assert one.last_phase == last_after


def test_phases_by_episodes_come_one_at_a_time():
    one = clock(EnvironmentEpisodes(2), updates=5, at_once=8)
    assert one.most_phases == 1
    assert at(one, 4000, episodes=7).start_phases() == 5
    assert one.last_phase == 7


@pytest.mark.parametrize(
    "targets, updates_a_phase, wanted, iteration, last, expected",
    [
        (EnvironmentSteps(100), 3, 3, 50, 0, (3, False)),
        (EnvironmentSteps(1), 1, 4, 50, 0, (4, True)),  # four copies: after each update
        (EnvironmentSteps(1), 3, 3, 50, 0, (3, False)),
        (TrainingSteps(1), 3, 3, 50, 49, (3, True)),
        (TrainingSteps(5), 8, 8, 7, 5, (8, True)),  # so short a period passes within calls
        (TrainingSteps(50), 8, 8, 52, 5, (3, False)),
        (TrainingSteps(50), 8, 2, 52, 5, (2, False)),
        (TrainingSteps(50), 8, 8, 130, 5, (1, False)),  # overdue
        (TrainingSteps(312.5), 32, 32, 300, 0, (13, False)),  # a fraction, as in presets for data sets
    ],
)
def test_updates_are_cut_where_targets_are_due_in_between(targets, updates_a_phase, wanted, iteration, last, expected):
    one = clock(targets=targets, updates=updates_a_phase)
    one.last_target_update = last
    assert at(one, updates=iteration).updates_before_targets(wanted) == expected


@pytest.mark.parametrize(
    "targets, steps, iteration, is_due, counted_from",
    [
        (EnvironmentSteps(100), 99, 500, False, 0),
        (EnvironmentSteps(100), 105, 3, True, 105),
        (TrainingSteps(10), 500, 9, False, 0),
        (TrainingSteps(10), 500, 10, True, 10),
    ],
)
def test_targets_count_their_own_kind_of_steps(targets, steps, iteration, is_due, counted_from):
    one = clock(targets=targets)
    assert at(one, steps, updates=iteration).targets_due() is is_due
    assert one.last_target_update == counted_from


def test_settings_may_change_while_a_run_goes_on():
    one = clock(EnvironmentSteps(4))
    assert not at(one, 2).is_due()
    one._algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
    assert at(one, 2).is_due()


def test_the_state_goes_on():
    one, other = clock(), clock()
    one.last_phase, one.last_target_update = 12, 7
    other.set_state(one.get_state())
    assert (other.last_phase, other.last_target_update) == (12, 7)


def test_targets_of_short_periods_are_updated_within_a_call():
    one = clock(targets=TrainingSteps(3))
    one.last_target_update = 4
    assert at(one, updates=5).target_updates(6) == [False, True, False, False, True, False]
    assert at(one, updates=11).targets_due() and one.last_target_update == 10
    assert clock(targets=TrainingSteps(1)).target_updates(2) is None
