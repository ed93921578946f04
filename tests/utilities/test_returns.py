"""Returns of a flat batch, against numbers worked out by hand and a sum over all pairs of steps."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.utilities.returns import discounted_returns
from rl_coach.utils import CoachError


def test_numbers_worked_out_by_hand():
    terminals, rewards = [False, True, False, False], [1.0, 2.0, 4.0, 8.0]
    np.testing.assert_array_equal(discounted_returns(terminals, rewards, 0.5), [2, 2, 8, 8])
    np.testing.assert_array_equal(discounted_returns(terminals, rewards, 0.5, final_reward=16), [2, 2, 12, 16])
    np.testing.assert_array_equal(discounted_returns(terminals, rewards, 0.5, 16, horizon=2), [2, 2, 8, 16])
    np.testing.assert_array_equal(discounted_returns(terminals, rewards, 0.5, 16, horizon=1), rewards)
    assert discounted_returns([], [], 0.9, final_reward=3).shape == (0,)


def sum_over_pairs(terminals, rewards, discount, final_reward, horizon):
    """Each return as a sum of its own."""
    returns = []
    for t in range(len(rewards)):
        end = next((i + 1 for i in range(t, len(rewards)) if terminals[i]), None)
        rest = [*rewards[t:], final_reward] if end is None else rewards[t:end]
        returns.append(sum(discount**k * reward for k, reward in enumerate(rest[: horizon or None])))
    return returns


@pytest.mark.parametrize("horizon", [0, 1, 3, 50])
def test_equal_to_a_sum_over_all_pairs(horizon):
    rng = np.random.default_rng(horizon)
    for length in range(30):
        terminals, rewards = rng.random(length) < 0.2, rng.normal(size=length).tolist()
        expected = sum_over_pairs(terminals, rewards, 0.9, 1.5, horizon)
        np.testing.assert_allclose(
            discounted_returns(terminals, rewards, 0.9, 1.5, horizon), expected, rtol=0, atol=1e-12
        )


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (([True], [1.0, 2.0], 0.9), r"two columns \[T\], not of the shapes \(1,\) and \(2,\)"),
        (([True], [1.0], 1.1), "a discount is a number from 0 to 1, not 1.1"),
        (([True], [1.0], 0.9, 0.0, -1), "a horizon is a number of steps, or 0 for all, not -1"),
    ],
)
def test_what_cannot_be_summed_is_refused(arguments, reason):
    with pytest.raises(CoachError, match=reason):
        discounted_returns(*arguments)
