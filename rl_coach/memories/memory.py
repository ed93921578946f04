"""Base of all memories, which store the transitions that agents learn from."""

from __future__ import annotations

import math
import os
from enum import Enum
from typing import Any

import numpy as np

from rl_coach.base_parameters import Parameters
from rl_coach.core_types import Batch, CsvDataset, Episode, Transition
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.utilities.overrides import OverrideTable
from rl_coach.utilities.requirements import FLAG
from rl_coach.utils import CoachError

OVERRIDES = OverrideTable(
    {
        "knows_episodes": ("get_all_complete_episodes_transitions",),
        "stores_episodes": ("store_episode",),
        # goals of hindsight that are drawn together, by those that are chosen one by one
        "_goals": ("_sample_goal",),
        # a class that has its own way to store must see what comes in columns too
        "_extend": ("store", "store_episode"),
        "store_columns": ("store", "store_episode"),
    }
)


class MemoryGranularity(Enum):
    """The unit of a memory's size."""

    Transitions = 0
    Episodes = 1


class MemoryParameters(Parameters):
    """Settings of an agent's memory.

    :ivar max_size: ``(MemoryGranularity, number)``, how much is kept before the oldest goes
    :ivar shared_memory: the workers of one machine store into one memory
    :ivar load_memory_from_file_path: fills the memory before training; as ``AlgorithmParameters`` has it
    """

    constraints = {"shared_memory": FLAG}

    def __init__(self) -> None:
        self.max_size: Any = None
        self.shared_memory = False
        self.load_memory_from_file_path: Any = None

    @property
    def path(self) -> str:
        """``"module:Class"`` of the memory."""
        return "rl_coach.memories.memory:Memory"


class Memory:
    """Memory of transitions to learn from. Agents use only the methods and attributes of this class.

    A subclass that keeps its transitions in a list of its own defines ``store`` or ``store_episode``, ``sample``,
    ``length`` and ``clean``. If it assigns the list to ``transitions``, checkpoints contain it.

    Methods have the argument ``lock`` as in Coach 1.0.1. One process stores and samples, so it has no effect.

    :param max_size: ``(MemoryGranularity, number)``
    :cvar keeps_columns: transitions are kept in this class's columns, not in a list of the subclass
    :cvar stores_episodes: agents store whole episodes (``store_episode``), not single transitions; see
        ``receives_episodes``
    :cvar knows_episodes: it returns complete episodes in order; see ``returns_complete_episodes``
    :cvar has_priorities: its samples depend on ``update_priorities``
    :cvar takes_first_priorities: it has ``set_first_priorities``
    :cvar keeps_demonstrations: it has ``keep_as_demonstrations``
    :cvar samples_sequences: it has ``sample_sequences``
    :cvar allow_duplicates: a transition may be in one batch more than once
    :cvar max_n_step: the largest number of rewards that a transition may sum
    """

    keeps_columns = False
    stores_episodes = False
    knows_episodes = False
    has_priorities = False
    takes_first_priorities = False
    keeps_demonstrations = False
    samples_sequences = False
    allow_duplicates = True
    max_n_step: float = math.inf

    def __init__(self, max_size: tuple[MemoryGranularity, int]):
        self.max_size = max_size
        self.memory_backend: Any = None
        self.frozen = False
        self.rng = np.random.default_rng()
        self._store: TransitionStore = TransitionStore(capacity=None)
        self._own_transitions: Any = None

    @property
    def contiguous_frames(self) -> bool:
        """True: sampled stacks of frames are contiguous in memory. False: they are views of [B, K, ...] arrays, which
        is several times faster, for networks that order the axes themselves."""
        return self._store.contiguous_frames

    @contiguous_frames.setter
    def contiguous_frames(self, value: bool) -> None:
        self._store.contiguous_frames = value

    @property
    def draws_many_batches(self) -> bool:
        """True: one sample of K * B transitions is as good as K samples of B, so that the batches of several updates
        can be drawn in one call. False if priorities change in between, if order or duplicates matter, or if a
        subclass keeps and samples the transitions itself."""
        return self.keeps_columns and self.allow_duplicates and not self.has_priorities

    def seed(self, seed: Any) -> None:
        """Restart this memory's random stream from an int or a ``SeedSequence``."""
        self.rng = np.random.default_rng(seed)

    def sample_sequences(self, count: int, length: int, burn_in: int = 0) -> Batch:
        """Draw sequences of episodes; see ``EpisodicExperienceReplay``."""
        raise NotImplementedError(f"{type(self).__name__} does not sample sequences")

    def store(self, obj: Any) -> None:
        """Send a transition to the memory backend, if there is one. A subclass keeps the transition, too."""
        self.assert_not_frozen()
        if self.memory_backend is not None:
            self.memory_backend.store(obj)

    def store_episode(self, episode: Episode) -> None:
        """Send an episode to the memory backend, if there is one. A subclass keeps its transitions, too."""
        self.assert_not_frozen()
        if self.memory_backend is not None:
            self.memory_backend.store(episode)

    def store_columns(self, chunk: Batch, episode_lengths: np.ndarray | None = None) -> None:
        """Store many transitions in one call. Either all are stored or none: see ``check_columns``.

        :param episode_lengths: lengths of the episodes, for memories that store episodes; by default, an episode
            ends after each ``game_over``. Transitions after the last end remain an incomplete episode.
        """
        self.assert_not_frozen()
        self.check_columns(chunk, episode_lengths)
        if all(OVERRIDES.is_replaced(self, way) for way in ("_extend", "store_columns")):
            self._store_one_by_one(chunk, episode_lengths)
        else:
            self._extend(chunk, episode_lengths)

    def _extend(self, chunk: Batch, episode_lengths: np.ndarray | None) -> None:
        """Store columns that have been checked, in the quickest way. Not used where ``store`` was overridden later."""
        self._store_one_by_one(chunk, episode_lengths)

    def _store_one_by_one(self, chunk: Batch, episode_lengths: np.ndarray | None) -> None:
        staged = TransitionStore(capacity=None)
        staged.extend(chunk)
        transitions = staged.transitions()
        ends = episode_ends(chunk, episode_lengths).tolist() if receives_episodes(self) else []
        for start, end in zip([0, *ends], ends):
            self.store_episode(self._as_episode(transitions[start:end]))
        for transition in transitions[ends[-1] if ends else 0 :]:
            self.store(transition)

    def _as_episode(self, transitions: list[Transition]) -> Episode:
        episode = Episode()
        episode.transitions = transitions
        return episode

    def check_columns(self, chunk: Batch, episode_lengths: np.ndarray | None = None) -> None:
        """Compare a chunk with what is stored, before ``store_columns`` changes anything.

        :raises CoachError: a column lacks rows, or has another name, shape or kind of number; the message names it
        """
        self._store.check(chunk)
        if episode_lengths is not None:
            _check_episode_lengths(np.asarray(episode_lengths), len(chunk))

    def get(self, index: int) -> Any:
        """The item at ``index``, oldest first."""
        raise NotImplementedError(f"{type(self).__name__} has no items to get")

    def length(self) -> int:
        """The number of items."""
        raise NotImplementedError(f"{type(self).__name__} does not count its items")

    def sample(self, size: int) -> Batch:
        """A batch of ``size`` transitions."""
        raise NotImplementedError(f"{type(self).__name__} does not sample")

    def update_priorities(self, indices: np.ndarray, error_values: np.ndarray) -> None:
        """Set priorities from the errors [B] of sampled transitions, ``info('idx')`` [B] of their batch."""
        raise CoachError(f"{type(self).__name__} has no priorities; PrioritizedExperienceReplay has")

    def set_first_priorities(self, error_values: np.ndarray) -> None:
        """Set the priorities of the transitions stored last, from errors [N] in the order in which they were stored."""
        raise CoachError(f"{type(self).__name__} takes no priorities; PrioritizedExperienceReplay does")

    def get_all_complete_episodes_transitions(self) -> Batch:
        """The transitions of the complete episodes in order."""
        raise CoachError(f"{type(self).__name__} does not know episodes; EpisodicExperienceReplay does")

    def clean(self) -> None:
        """Forget everything."""
        raise NotImplementedError(f"{type(self).__name__} cannot be cleared")

    def save(self, file_path: str | os.PathLike) -> None:
        """Write the transitions to a file."""
        raise CoachError(f"{type(self).__name__} does not save its transitions")

    def load(self, file_path: str | os.PathLike) -> None:
        """Store the transitions that ``save`` wrote."""
        raise CoachError(f"{type(self).__name__} does not load transitions from files")

    def load_pickled(self, file_path: str | os.PathLike) -> None:
        """Store the transitions of a file that Coach's ``save`` pickled."""
        raise CoachError(f"{type(self).__name__} does not load transitions from Coach's pickles")

    def load_csv(self, csv_dataset: CsvDataset, input_filter: Any) -> None:
        """Store the episodes of a CSV file, after ``input_filter``."""
        raise CoachError(f"{type(self).__name__} does not load CSV files; EpisodicExperienceReplay does")

    def num_transitions(self) -> int:
        """The number of transitions stored."""
        return self._store.length if self._own_transitions is None else len(self._own_transitions)

    @property
    def transitions(self) -> Any:
        """All transitions, oldest first: a ``Batch``, or the list that a subclass has assigned.

        An assignment replaces what is stored. A memory of columns copies the transitions; any other keeps the list
        itself, which the subclass may go on to change.
        """
        if self._own_transitions is not None:
            return self._own_transitions
        return self._store.batch_at(np.arange(self._store.length))

    @transitions.setter
    def transitions(self, value: Any) -> None:
        if not self.keeps_columns:
            self._own_transitions = value
            return
        chunk = Batch(value) if len(value) else None
        self.clean()
        if chunk is not None:
            self.store_columns(chunk)

    def transitions_at(self, positions: np.ndarray) -> Batch:
        """Transitions by their positions, 0 for the oldest."""
        if self._own_transitions is not None:
            return Batch([self._own_transitions[position] for position in positions])
        return self._store.batch_at(positions)

    def next_observations_at(self, name: str, positions: np.ndarray) -> np.ndarray:
        """[N, ...] one observation of the next states of transitions by their positions, 0 for the oldest."""
        if self._own_transitions is not None:
            return self.transitions_at(positions).next_state_columns[name]
        return self._store.observations[name].take(self._store.rows(positions))[1]

    def num_training_transitions(self) -> int:
        """The number of transitions to train on, which are the oldest: all, unless the memory keeps some back."""
        return self.num_transitions()

    def annotate(self, name: str, column: Any, default: Any = None) -> None:
        """Add a column to the stored transitions; ``batch.info(name)`` of samples has it. An older column of that name
        is replaced. A frozen memory can be annotated: its transitions stay as they are.

        Rows that are stored later and have no ``info[name]`` are without a value, which a batch shows as NaN, as 0 in a
        column of integers and as None among objects.

        :param column: [N, ...], a value for each stored transition, oldest first
        :param default: the value of rows that are stored later without one; None for no value
        :raises CoachError: it does not have as many values as the memory has transitions, or another default
        """
        self._store.annotate(name, column, default)

    def mean_reward(self) -> float:
        """The mean reward of the stored transitions, NaN if there are none."""
        if not self.num_transitions():
            return float("nan")
        if self._own_transitions is not None:
            return float(np.mean([transition.reward for transition in self._own_transitions]))
        return float(self._store.rewards.values[self._store.all_rows()].mean())

    def set_memory_backend(self, memory_backend: Any) -> None:
        """Send what is stored here to ``memory_backend`` too."""
        self.memory_backend = memory_backend

    def freeze(self) -> None:
        """Refuse all changes from now on: the content is a fixed data set."""
        self.frozen = True

    def assert_not_frozen(self) -> None:
        """:raises CoachError: the memory is frozen"""
        if self.frozen:
            raise CoachError("the memory is frozen and cannot be changed")

    def get_state(self) -> dict[str, Any]:
        """All that an exact continuation needs, as plain data."""
        store = self._store
        if self._own_transitions is not None:
            store = TransitionStore(capacity=None)
            for transition in self._own_transitions:
                store.append(transition)
        return {"store": store.get_state(), "rng": self.rng.bit_generator.state, "frozen": self.frozen}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned."""
        if self._own_transitions is None:
            self._store.set_state(state["store"])
        else:
            saved = TransitionStore(capacity=None)
            saved.set_state(state["store"])
            self._own_transitions.clear()
            self._own_transitions.extend(saved.transitions())
        self.rng.bit_generator.state = state["rng"]
        self.frozen = state["frozen"]

    def intern_frames(self, state: dict[str, Any]) -> None:
        """Take the state of an episode in progress, restored like this memory, for the one stored last: frames that
        it has in common with the transitions to come are then not stored again."""
        self._store.intern_frames(state)


def returns_complete_episodes(memory: Memory | type[Memory]) -> bool:
    """True if a memory says so, or overrides ``get_all_complete_episodes_transitions``."""
    return memory.knows_episodes or OVERRIDES.is_replaced(memory, "knows_episodes")


def receives_episodes(memory: Memory | type[Memory]) -> bool:
    """True if agents store whole episodes in a memory: it says so, or overrides ``store_episode``."""
    return memory.stores_episodes or OVERRIDES.is_replaced(memory, "stores_episodes")


def episode_ends(chunk: Batch, episode_lengths: np.ndarray | None) -> np.ndarray:
    """[E] the rows after the last of each episode in a chunk: by the lengths, or after each ``game_over``."""
    if episode_lengths is None:
        return np.flatnonzero(chunk.game_over_column) + 1
    return np.cumsum(episode_lengths, dtype=np.int64)


def _check_episode_lengths(lengths: np.ndarray, rows: int) -> None:
    is_valid = lengths.ndim == 1 and (not lengths.size or (lengths.dtype.kind in "iu" and lengths.min() > 0))
    if not is_valid or lengths.sum() > rows:
        raise CoachError(f"the chunk's episode lengths {lengths.tolist()} do not fit its {rows} rows")


def check_max_size(max_size: Any) -> tuple[MemoryGranularity, int]:
    """``max_size`` itself.

    :raises CoachError: it is not a pair of a granularity and a number of at least 0
    """
    valid = isinstance(max_size, (tuple, list)) and len(max_size) == 2 and isinstance(max_size[0], MemoryGranularity)
    if not valid or max_size[1] < 0:
        raise CoachError(f"memory.max_size must be like (MemoryGranularity.Transitions, 1000000), not {max_size}")
    return max_size[0], int(max_size[1])


def is_same_transition(one: Transition, other: Transition) -> bool:
    """True if two transitions have equal contents."""
    return (
        one.game_over == other.game_over
        and np.array_equal(one.action, other.action)  # type: ignore[arg-type]
        and np.array_equal(one.reward, other.reward)  # type: ignore[arg-type]
        and all(np.array_equal(value, other.state[name]) for name, value in one.state.items())  # type: ignore
    )
