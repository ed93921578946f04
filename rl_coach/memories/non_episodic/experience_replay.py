"""Uniform experience replay (Lin 1992; Mnih et al. 2015)."""

from __future__ import annotations

import os

import numpy as np

from rl_coach.core_types import Batch, Episode, Transition
from rl_coach.memories.coach_pickles import read_pickled_transitions
from rl_coach.memories.columns import uniform_rows
from rl_coach.memories.memory import Memory, MemoryGranularity, MemoryParameters, check_max_size
from rl_coach.memories.saved_memory import read_saved
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.utilities.files import write_data
from rl_coach.utilities.requirements import FLAG, exactly, pair, whole
from rl_coach.utils import CoachError


class ExperienceReplayParameters(MemoryParameters):
    """Parameters of uniform replay.

    :ivar max_size: largest number of transitions
    :ivar allow_duplicates_in_batch_sampling: True if a transition may be in one batch more than once; sampling is then
        faster
    """

    constraints = {
        "max_size": pair(
            exactly(MemoryGranularity.Transitions), whole(1, 10**15), "(MemoryGranularity.Transitions, 1000000)"
        ),
        "allow_duplicates_in_batch_sampling": FLAG,
    }
    path = "rl_coach.memories.non_episodic.experience_replay:ExperienceReplay"

    def __init__(self) -> None:
        super().__init__()
        self.max_size = (MemoryGranularity.Transitions, 1000000)
        self.allow_duplicates_in_batch_sampling = True


class ExperienceReplay(Memory):
    """A memory of the newest transitions. All of them are sampled with the same probability.

    :param max_size: ``(MemoryGranularity.Transitions, number)``; a full memory removes its oldest transitions
    :param allow_duplicates_in_batch_sampling: True to sample with replacement, False without
    """

    keeps_columns = True
    stores_episodes = False

    def __init__(self, max_size: tuple[MemoryGranularity, int], allow_duplicates_in_batch_sampling: bool = True):
        super().__init__(check_max_size(max_size))
        granularity, capacity = self.max_size
        if granularity != MemoryGranularity.Transitions or capacity < 1:
            raise CoachError(
                f"max_size of {type(self).__name__} must be (MemoryGranularity.Transitions, N) with N from 1, not "
                f"{max_size}"
            )
        self.allow_duplicates = allow_duplicates_in_batch_sampling
        self._store = TransitionStore(capacity, self._drop_oldest)

    def _drop_oldest(self, count: int) -> None:
        self._store.drop_first(count)

    def length(self) -> int:
        """The number of stored transitions."""
        return self._store.length

    def store(self, transition: Transition, lock: bool = True) -> None:
        """Store one transition. If the memory is full, the oldest transition is removed."""
        # checked here, because a call would cost time in each step
        if self.frozen:
            self.assert_not_frozen()
        if self.memory_backend is not None:
            self.memory_backend.store(transition)
        self._store.append(transition)

    def store_episode(self, episode: Episode, lock: bool = True) -> None:
        """Store each transition of an episode."""
        for transition in episode.transitions:
            self.store(transition)

    def _extend(self, chunk: Batch, episode_lengths: np.ndarray | None) -> None:
        self._store.extend(chunk)

    def sample(self, size: int) -> Batch:
        """Sample ``size`` transitions.

        :raises CoachError: if the memory is empty, or has fewer than ``size`` transitions and duplicates are not
            allowed
        """
        length = self._store.length
        if length == 0 or (size > length and not self.allow_duplicates):
            self._refuse_sampling(size)
        if self.allow_duplicates:
            drawn = uniform_rows(self.rng, length, size)
        else:
            drawn = self.rng.choice(length, size, replace=False)
        return self._store.batch(self._store.rows(drawn))

    def _refuse_sampling(self, size: int) -> None:
        raise CoachError(
            f"cannot sample {size} of {self._store.length} stored transitions; use a longer heatup"
            f"{'' if self.allow_duplicates else ', or set memory.allow_duplicates_in_batch_sampling to True'}"
        )

    def get_transition(self, transition_index: int, lock: bool = True) -> Transition | None:
        """The transition at an index, oldest first (-1 is the newest); None if the index is out of range."""
        length = self._store.length
        if not -length <= transition_index < length:
            return None
        return self._store.transitions_at(np.asarray([transition_index % length]))[0]

    def get(self, transition_index: int, lock: bool = True) -> Transition | None:
        """The transition at an index; see ``get_transition``."""
        return self.get_transition(transition_index)

    def remove_transition(self, transition_index: int, lock: bool = True) -> None:
        """Remove a transition, fast if it is the oldest. An index out of range is ignored."""
        self.assert_not_frozen()
        length = self._store.length
        if -length <= transition_index < length:
            self._remove(transition_index % length)

    def _remove(self, position: int) -> None:
        self._store.remove(position)

    def clean(self, lock: bool = True) -> None:
        self.assert_not_frozen()
        self._store.clear()

    def save(self, file_path: str | os.PathLike) -> None:
        """Write the transitions to one ``.npz`` file of columns.

        :raises CoachError: if the file cannot be written
        """
        write_data(file_path, {"store": self._store.get_state()})

    def load(self, file_path: str | os.PathLike) -> None:
        """Store the transitions of a file that ``save`` has written. If not all of them fit, the oldest are left out.

        :raises CoachError: if the file cannot be read or contains something else
        """
        saved, _ = read_saved(file_path)
        self.store_columns(saved.chunk())
        self._store.take_defaults(saved)

    def load_pickled(self, file_path: str | os.PathLike) -> None:
        """Store the transitions of a file that Coach 1 pickled; see ``read_pickled_transitions``."""
        for transition in read_pickled_transitions(file_path):
            self.store(transition)
