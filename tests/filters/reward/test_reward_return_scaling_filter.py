"""Rewards divided by the size of returns, against NumPy and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.core_types import Transition
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.recorded_episodes import filter_recorded
from rl_coach.filters.reward import RewardRescaleFilter, RewardReturnScalingFilter
from rl_coach.utils import CoachError

DISCOUNT = 0.9


def returns_of(episodes: list[np.ndarray]) -> list[float]:
    """G = sum_k discount^k r_{t-k} at each step of each episode, the definition and not the recursion."""
    found = []
    for rewards in episodes:
        for t in range(len(rewards)):
            found.append(sum(DISCOUNT ** (t - k) * rewards[k] for k in range(t + 1)))
    return found


@pytest.mark.parametrize("largest_return", [0.5, 1000.0])
def test_rewards_are_divided_by_the_deviation_or_so_that_no_return_is_too_large(largest_return):
    rng = np.random.default_rng(0)
    episodes = [rng.normal(-2, 3, length) for length in (5, 1, 12)]
    scaling = RewardReturnScalingFilter(DISCOUNT, largest_return)
    played: list[np.ndarray] = []
    for rewards in episodes:
        scaling.reset()
        for t, reward in enumerate(rewards):
            found = scaling.filter(reward)
            returns = returns_of([*played, rewards[: t + 1]])
            divisor = max(np.sqrt(np.var(returns) + 1e-8), np.abs(returns).max() / largest_return)
            assert found == pytest.approx(reward / divisor, rel=1e-9)
        played.append(rewards)
    deviation = float(np.std(returns_of(episodes)))
    assert bool(scaling.scale == pytest.approx(deviation)) is (largest_return > 1)


def test_what_does_not_count_is_divided_all_the_same():
    scaling = RewardReturnScalingFilter(DISCOUNT, 5.0)
    assert scaling.filter(3.0, update_internal_state=False) == 3.0
    for reward in (1.0, -2.0, 4.0):
        scaling.filter(reward)
    scale = scaling.scale
    np.testing.assert_allclose(scaling.filter(np.array([1.0, 2.0])), np.array([1.0, 2.0]) / scale)
    assert scaling.filter(7.0, update_internal_state=False) == 7.0 / scale
    assert scaling.scale == scale


def test_all_recorded_rewards_are_divided_by_the_same_number():
    rng = np.random.default_rng(0)
    episodes = [rng.normal(-2, 3, length) for length in (5, 1, 12)]
    filters = InputFilter()
    filters.add_reward_filter("double", RewardRescaleFilter(2.0))
    filters.add_reward_filter("scale", RewardReturnScalingFilter(DISCOUNT, 1000.0))
    state = {"observation": np.zeros(1)}
    recorded = [[Transition(state, 0, reward, state) for reward in rewards] for rewards in episodes]
    deviation = np.std(returns_of([2 * rewards for rewards in episodes]))
    for rewards, found in zip(episodes, filter_recorded(recorded, filters)):
        np.testing.assert_allclose([step.reward for step in found], 2 * rewards / deviation)


def test_it_goes_on_from_its_state_in_the_middle_of_an_episode():
    one, other = RewardReturnScalingFilter(DISCOUNT), RewardReturnScalingFilter(DISCOUNT)
    for reward in (1.0, -2.0):
        one.filter(reward)
    other.set_state(one.get_state())
    assert [one.filter(reward) for reward in (0.5, 3.0)] == [other.filter(reward) for reward in (0.5, 3.0)]
    with pytest.raises(CoachError, match="has no 'count'"):
        other.set_state({"running": 0.0})


def test_restored_statistics_belong_to_all_actors():
    saved, restored = RewardReturnScalingFilter(DISCOUNT), RewardReturnScalingFilter(DISCOUNT)
    for reward in (1.0, -2.0):
        saved.filter(reward)
    another = restored.for_another_actor()
    restored.set_state(saved.get_state())
    assert another.scale == restored.scale == saved.scale
    another.filter(9.0)
    assert another.scale == restored.scale > saved.scale


def test_episodes_side_by_side_have_returns_of_their_own():
    scaling = RewardReturnScalingFilter(DISCOUNT, 5.0)
    scaling.filter(10.0)
    other = scaling.for_another_actor()
    other.filter(1.0)
    scaling.filter(1.0)
    assert scaling.get_state()["largest"] == pytest.approx(10.0)
    assert scaling.get_state()["running"] == pytest.approx(10.0 * DISCOUNT + 1.0)


@pytest.mark.parametrize(("discount", "largest"), [(1.5, 5.0), (0.9, 0.0)])
def test_bad_settings_are_refused(discount, largest):
    with pytest.raises(CoachError, match="must be between 0 and 1, and largest_return"):
        RewardReturnScalingFilter(discount, largest)
