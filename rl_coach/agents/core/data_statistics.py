"""Normalization by the statistics of a whole data set, for an agent that learns from it without acting."""

from __future__ import annotations

from typing import Iterator

import numpy as np

from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.filters.recorded_episodes import Rows, has_statistics, learn_statistics
from rl_coach.memories.memory import Memory

# All rows at once could need more memory than there is: a memory stores each frame once, but returns whole stacks.
_ROWS_AT_ONCE = 1024


def learn_statistics_of(memory: Memory, filters: InputFilter) -> bool:
    """Compute the statistics of filters from all stored states and rewards. A normalized observation is then (s - mean)
    / (standard deviation + 0.001) (Fujimoto and Gu 2021, "A Minimalist Approach to Offline Reinforcement Learning",
    section 4).

    :return: True if there are filters with statistics
    """
    if not has_statistics(filters):
        return False

    def read() -> Iterator[Rows]:
        count = memory.num_transitions()
        for first in range(0, count, _ROWS_AT_ONCE):
            rows = memory.transitions_at(np.arange(first, min(first + _ROWS_AT_ONCE, count)))
            yield rows.state_columns, rows.reward_column

    members = [member for chain in filters.observation_filters.values() for member in chain.values()]
    for member in members:
        if isinstance(member, ObservationNormalizationFilter):
            member.normalize_as_data_set()
    learn_statistics(filters, read)
    return True
