"""Converts recorded episodes to the arrays that estimators expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy as np

from rl_coach.core_types import Episode, Transition
from rl_coach.off_policy_evaluators.estimators import log_ratios, with_bootstrap
from rl_coach.utils import CoachError

BEHAVIOUR = "all_action_probabilities"
TARGET = "softmax_policy_prob"
ACTION_VALUES = "q_value"
VALUE = "v_value_q_model_based"
LAST_VALUE = "last_v_value_q_model_based"


@dataclass(frozen=True)
class RecordedEpisodes:
    """Episodes as arrays [E, T], padded after their ends.

    :param log_ratios: log(target / behaviour probability) of the actions taken
    :param rewards: rewards; if an episode was cut off, its last reward includes the discounted value of the last state
    :param mask: True for real steps
    """

    log_ratios: np.ndarray
    rewards: np.ndarray
    mask: np.ndarray


def with_steps(episodes: Sequence[Episode]) -> list[Episode]:
    """The episodes that have steps. :raises CoachError: if there is no step"""
    found = [episode for episode in episodes if len(episode)]
    if not found:
        raise CoachError("there is no recorded episode to evaluate a policy with: use a data set that is not empty")
    return found


def recorded(episodes: Sequence[Episode], discount: float) -> RecordedEpisodes:
    """The arrays of episodes. ``OpeManager.evaluate`` must have written its values into the ``info`` of their
    transitions.

    :raises CoachError: if there is no step, or a reward is a sum over several steps
    """
    episodes = with_steps(episodes)
    if any(transition.n_steps != 1 for episode in episodes for transition in episode.transitions):
        raise CoachError("off-policy evaluation needs the reward of each step: set n_step of the memory to -1 or 1")
    mask = np.arange(max(map(len, episodes))) < np.array([[len(episode)] for episode in episodes])
    target, behaviour = (padded(episodes, mask, taken(name)) for name in (TARGET, BEHAVIOUR))
    ratios = np.zeros(mask.shape)
    ratios[mask] = log_ratios(target[mask], behaviour[mask])
    last = [episode[-1] for episode in episodes]
    values = np.array([0.0 if end.terminated else end.info[LAST_VALUE] for end in last])
    rewards = with_bootstrap(padded(episodes, mask, lambda step: step.reward), mask, values, discount)
    return RecordedEpisodes(ratios, rewards, mask)


def taken(name: str) -> Callable[[Transition], Any]:
    """Reads the element of an ``info`` column that belongs to the action taken."""
    return lambda transition: transition.info[name][transition.action]


def padded(episodes: Sequence[Episode], mask: np.ndarray, read: Callable[[Transition], Any]) -> np.ndarray:
    """[E, T], the number that ``read`` returns for each step; 0 after an episode's end."""
    array = np.zeros(mask.shape)
    array[mask] = [read(transition) for episode in episodes for transition in episode.transitions]
    return array
