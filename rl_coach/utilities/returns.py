"""Returns of rewards that lie one after the other, whatever episodes they are of."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.core_types import n_step_returns
from rl_coach.utils import CoachError


def discounted_returns(
    terminals: Any, rewards: Any, discount: float, final_reward: float = 0.0, horizon: int = 0
) -> np.ndarray:
    """G_t = sum over k of discount^k r_{t+k}, up to the end of the episode (Sutton & Barto 2018, equation 3.8).

    :param terminals: [T], true at the last step of each episode
    :param rewards: [T]
    :param discount: 0 counts the next reward only, 1 all alike
    :param final_reward: the value of the state after the last step, where that is not terminal; it counts as one more
        reward
    :param horizon: number of rewards to sum; 0 for all that are left
    :return: [T] float64
    :raises CoachError: terminals and rewards are not two columns of one length, or a setting is out of its range
    """
    terminal_column, reward_column = np.asarray(terminals).astype(bool), np.asarray(rewards, np.float64)
    if reward_column.ndim != 1 or terminal_column.shape != reward_column.shape:
        raise CoachError(
            f"terminals and rewards are two columns [T], not of the shapes {terminal_column.shape} and "
            f"{reward_column.shape}"
        )
    if not 0 <= discount <= 1:
        raise CoachError(f"a discount is a number from 0 to 1, not {discount}")
    if horizon < 0:
        raise CoachError(f"a horizon is a number of steps, or 0 for all, not {horizon}")
    returns = np.empty_like(reward_column)
    begin, steps = 0, horizon or -1
    for end in (np.flatnonzero(terminal_column) + 1).tolist():
        returns[begin:end] = n_step_returns(reward_column[begin:end], discount, steps)
        begin = end
    unfinished = np.append(reward_column[begin:], final_reward)
    returns[begin:] = n_step_returns(unfinished, discount, steps)[:-1]
    return returns
