"""Adds the accumulated reward of the episode to the measurements, if the agent's setting
``algorithm.use_accumulated_reward_as_measurement`` is True."""

from __future__ import annotations

from typing import Any, Iterable

import numpy as np

from rl_coach.core_types import StateType
from rl_coach.spaces import StateSpace, VectorObservationSpace

_NAME, _ELEMENT = "measurements", "accumulated_reward"


def with_accumulated_reward_space(spaces: StateSpace) -> StateSpace:
    """The observation spaces with the measurement ``accumulated_reward``, which has no bounds. This measurement is the
    last element of the observation ``measurements``. The observation is added if the environment does not have it.
    """
    added = VectorObservationSpace(1, measurements_names=[_ELEMENT])
    if _NAME in spaces:
        before = spaces[_NAME]
        added = VectorObservationSpace(
            int(before.num_elements) + 1,
            np.append(before.low, -np.inf),
            np.append(before.high, np.inf),
            [*getattr(before, "measurements_names", []), _ELEMENT],
        )
    return StateSpace({**spaces.sub_spaces, _NAME: added})


def with_accumulated_reward(state: StateType, reward: float) -> StateType:
    """The observations of a state with ``accumulated_reward`` as the last measurement.

    :param reward: the sum of the filtered rewards of the episode so far
    """
    measurements = np.append(np.asarray(state.get(_NAME, ()), np.float32), np.float32(reward))
    return {**state, _NAME: measurements}


def add_accumulated_rewards(episode: Iterable[Any]) -> None:
    """Add the measurement ``accumulated_reward`` to the states of an episode: the sum of the filtered rewards before
    each state.

    :param episode: the episode's transitions, in order
    """
    before = 0.0
    for transition in episode:
        after = before + transition.reward
        transition.state = with_accumulated_reward(transition.state, before)
        transition.next_state = with_accumulated_reward(transition.next_state, after)
        before = after
