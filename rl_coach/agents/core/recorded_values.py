"""Recorded transitions: checks against an agent's spaces, and statistics of a whole data set."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.core_types import Batch
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.filters.recorded_episodes import Rows, has_statistics, learn_statistics
from rl_coach.memories.memory import Memory
from rl_coach.space_values import first_wrong_probabilities, refuse_misfit, require_values
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError

PROBABILITIES = "all_action_probabilities"
# all rows at once could need more memory than there is: a memory stores each frame once, but returns whole stacks
_ROWS_AT_ONCE = 1024


def _parts_of(memory: Memory) -> Iterator[tuple[int, Batch]]:
    """All transitions in parts of 1,024 rows, each with the number of its first row."""
    count = memory.num_transitions()
    for first in range(0, count, _ROWS_AT_ONCE):
        yield first, memory.transitions_at(np.arange(first, min(first + _ROWS_AT_ONCE, count)))


def _lacks_probabilities(rows: Batch) -> bool:
    """True if some rows have probabilities of actions, and others have none, which are stored as NaN."""
    if PROBABILITIES not in rows.info_columns:
        return False
    found = np.asarray(rows.info(PROBABILITIES))
    return found.dtype.kind == "f" and bool(np.isnan(found).all(axis=-1).any())


def require_recorded(memory: Memory, spaces: SpacesDefinition, place: Any, before: int = 0) -> None:
    """Check the transitions that a memory has loaded from a file.

    :param spaces: the spaces of stored transitions
    :param place: the file, for the message
    :param before: number of transitions that were stored before the file, including removed transitions
    :raises CoachError: if a value does not belong to its space (the message names the first such step), or if only
        some of the files have probabilities of actions
    """
    earlier = before - memory.num_removed  # negative if the first steps of the file have been removed
    for first, rows in _parts_of(memory):
        if before and _lacks_probabilities(rows):
            raise CoachError(
                f"'{place}': only some of the files have '{PROBABILITIES}': remove it from these files, or add it to "
                f"the other files"
            )
        require_batch(rows, spaces, f"'{place}'", first - earlier)


def require_batch(batch: Batch, spaces: SpacesDefinition, place: str, first: int = 0) -> None:
    """Check rows of recorded steps.

    :param place: the file or the other origin of the rows, for the message
    :param first: the number of the first row, for the message
    :raises CoachError: if a value does not belong to its space
    """
    require_values(spaces.action, batch.action_column, "action", place, first)
    require_values(spaces.reward, np.reshape(batch.reward_column, (len(batch), -1)), "reward", place, first)
    for kind, columns in (("state", batch.state_columns), ("next state", batch.next_state_columns)):
        for name, space in spaces.state.sub_spaces.items():
            if name not in columns:
                found = ", ".join(map(repr, columns)) or "none"
                raise CoachError(f"{place} has no {kind} '{name}': its observations are {found}")
            require_values(space, columns[name], f"{kind} '{name}'", place, first)
    if PROBABILITIES in batch.info_columns:
        misfit = first_wrong_probabilities(spaces.action, batch.info(PROBABILITIES))
        refuse_misfit(misfit, f"'{PROBABILITIES}'", place, first)


def learn_statistics_of(memory: Memory, filters: InputFilter) -> bool:
    """Compute the statistics of filters from all stored states and rewards. A normalized observation is then (s - mean)
    / (standard deviation + 0.001) (Fujimoto and Gu 2021, "A Minimalist Approach to Offline Reinforcement Learning",
    section 4).

    :return: True if there are filters with statistics
    """
    if not has_statistics(filters):
        return False

    def read() -> Iterator[Rows]:
        for _, rows in _parts_of(memory):
            yield rows.state_columns, rows.reward_column

    for member in filters.members:
        if isinstance(member, ObservationNormalizationFilter):
            member.normalize_as_data_set()
    learn_statistics(filters, read, reads_episodes=False)
    return True
