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
        # A subclass that chooses single goals must be asked for each goal.
        "_goals": ("_sample_goal",),
        # A subclass with its own method of storing must also receive transitions that arrive as columns.
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

    :ivar max_size: ``(MemoryGranularity, number)``, the largest size; a full memory removes its oldest transitions
    :ivar shared_memory: the workers of one machine store into one memory
    :ivar load_memory_from_file_path: a file, or a list of them, that fills the memory before training, as in
        ``AlgorithmParameters``
    """

    constraints = {"shared_memory": FLAG}

    def __init__(self) -> None:
        self.max_size: tuple[MemoryGranularity, int] | None = None
        self.shared_memory = False
        self.load_memory_from_file_path: Any = None

    @property
    def path(self) -> str:
        """``"module:Class"`` of the memory."""
        return "rl_coach.memories.memory:Memory"


class Memory:
    """Memory of transitions to learn from. Agents use only the methods and attributes of this class.

    A subclass may store its transitions in a list. It then defines ``store`` or ``store_episode``, ``sample``,
    ``length`` and ``clean``. If it assigns the list to ``transitions``, checkpoints contain the list.

    Methods have the argument ``lock`` of Coach 1.0.1. It has no effect, because one process stores and samples.

    :param max_size: ``(MemoryGranularity, number)``
    :cvar keeps_columns: transitions are stored in this class's columns, not in a list of the subclass
    :cvar stores_episodes: agents store whole episodes (``store_episode``), not single transitions; see
        ``receives_episodes``
    :cvar knows_episodes: the memory returns complete episodes in order; see ``returns_complete_episodes``
    :cvar has_priorities: samples depend on ``update_priorities``
    :cvar takes_first_priorities: the memory implements ``set_first_priorities``
    :cvar keeps_demonstrations: the memory implements ``keep_as_demonstrations``
    :cvar samples_sequences: the memory implements ``sample_sequences``
    :cvar allow_duplicates: a transition may be in one batch more than once
    :cvar max_n_step: largest number of rewards in a transition's n-step sum
    :cvar relabels: the memory adds transitions with other goals and rewards
    :cvar stores_goals_as_actions: the last of ``needed_observations`` replaces the action
    :ivar needed_observations: observations that a state must have
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
    relabels = False
    stores_goals_as_actions = False
    needed_observations: tuple[str, ...] = ()

    def __init__(self, max_size: tuple[MemoryGranularity, int]):
        self.max_size = max_size
        self.memory_backend: Any = None
        self.frozen = False
        self.rng = np.random.default_rng()
        self._store: TransitionStore = TransitionStore(capacity=None)
        self._own_transitions: Any = None

    @property
    def contiguous_frames(self) -> bool:
        """True: sampled stacks of frames are contiguous arrays. False: they are views of [B, K, ...] arrays. Views are
        several times faster, and serve networks that order the axes themselves."""
        return self._store.contiguous_frames

    @contiguous_frames.setter
    def contiguous_frames(self, value: bool) -> None:
        self._store.contiguous_frames = value

    @property
    def draws_many_batches(self) -> bool:
        """True: one sample of K * B transitions may replace K samples of B, so one call can draw the batches of several
        updates. False if priorities change between samples, if order or duplicates matter, or if a subclass stores
        and samples the transitions itself."""
        return self.keeps_columns and self.allow_duplicates and not self.has_priorities

    def seed(self, seed: Any) -> None:
        """Restart this memory's random stream from an int or a ``SeedSequence``."""
        self.rng = np.random.default_rng(seed)

    def sample_sequences(self, count: int, length: int, burn_in: int = 0, overlap: bool = False) -> Batch:
        """Draw sequences of transitions from episodes; see ``EpisodicExperienceReplay``."""
        raise NotImplementedError(f"{type(self).__name__} does not sample sequences")

    def store(self, obj: Any) -> None:
        """Send a transition to the memory backend, if there is one. A subclass also stores the transition."""
        self.assert_not_frozen()
        if self.memory_backend is not None:
            self.memory_backend.store(obj)

    def store_episode(self, episode: Episode) -> None:
        """Send an episode to the memory backend, if there is one. A subclass also stores its transitions."""
        self.assert_not_frozen()
        if self.memory_backend is not None:
            self.memory_backend.store(episode)

    def store_columns(self, chunk: Batch, episode_lengths: np.ndarray | None = None) -> None:
        """Store many transitions in one call. If ``check_columns`` refuses them, none is stored.

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
        """Store checked columns in the quickest way. Not used if a further subclass overrides ``store``."""
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
        """Check that a chunk fits the stored transitions, before ``store_columns`` changes the memory.

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
        """Set the priorities of the N newest transitions from their errors [N], oldest first."""
        raise CoachError(f"{type(self).__name__} takes no priorities; PrioritizedExperienceReplay does")

    def get_all_complete_episodes_transitions(self) -> Batch:
        """The transitions of the complete episodes in order."""
        raise CoachError(f"{type(self).__name__} does not know episodes; EpisodicExperienceReplay does")

    def clean(self) -> None:
        """Remove all transitions."""
        raise NotImplementedError(f"{type(self).__name__} cannot be cleared")

    def save(self, file_path: str | os.PathLike) -> None:
        """Write the transitions to a file."""
        raise CoachError(f"{type(self).__name__} does not save its transitions")

    def load(self, file_path: str | os.PathLike) -> None:
        """Store the transitions from a file of ``save``."""
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

        An assignment replaces the stored transitions. A memory of columns copies them. Other memories use the assigned
        list itself, and the subclass may change it later.
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
        """The transitions at positions [N]; 0 is the oldest."""
        if self._own_transitions is not None:
            return Batch([self._own_transitions[position] for position in positions])
        return self._store.batch_at(positions)

    def next_observations_at(self, name: str, positions: np.ndarray) -> np.ndarray:
        """The observation ``name`` [N, ...] of the next states of the transitions at positions [N]; 0 is the oldest."""
        if self._own_transitions is not None:
            return self.transitions_at(positions).next_state_columns[name]
        return self._store.observations[name].take(self._store.rows(positions))[1]

    def num_training_transitions(self) -> int:
        """The number of transitions to train on: all, or the oldest ones if the memory reserves the rest."""
        return self.num_transitions()

    def annotate(self, name: str, column: Any, default: Any = None) -> None:
        """Add a column to the stored transitions. ``batch.info(name)`` of a sample returns its values. An older column
        of that name is replaced. A frozen memory can be annotated too, because its transitions do not change.

        Later transitions without ``info[name]`` get the default. Without a default they have no value: a batch then
        shows NaN among floats, 0 among integers and None among objects.

        :param column: [N, ...], a value for each stored transition, oldest first
        :param default: value for later transitions without ``info[name]``; None for no value
        :raises CoachError: the number of values and of transitions differ, or the default does not fit the values
        """
        self._store.annotate(name, column, default)

    def mean_reward(self) -> float:
        """The mean reward of the stored transitions; NaN for an empty memory."""
        if not self.num_transitions():
            return float("nan")
        if self._own_transitions is not None:
            return float(np.mean([transition.reward for transition in self._own_transitions]))
        return float(self._store.rewards.values[self._store.all_rows()].mean())

    def set_memory_backend(self, memory_backend: Any) -> None:
        """Also send all transitions that are stored from now on to ``memory_backend``."""
        self.memory_backend = memory_backend

    def freeze(self) -> None:
        """Refuse all changes from now on: the memory is a fixed data set."""
        self.frozen = True

    def assert_not_frozen(self) -> None:
        """:raises CoachError: the memory is frozen"""
        if self.frozen:
            raise CoachError("the memory is frozen and cannot be changed")

    def get_state(self) -> dict[str, Any]:
        """State for an exact continuation, as plain data: transitions, random generator, frozen or not."""
        store = self._store
        if self._own_transitions is not None:
            store = TransitionStore(capacity=None)
            for transition in self._own_transitions:
                store.append(transition)
        return {"store": store.get_state(), "rng": self.rng.bit_generator.state, "frozen": self.frozen}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from ``get_state``."""
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
        """Match a restored state of an episode in progress with the newest stored frames. Its next transitions then do
        not store these frames again."""
        self._store.intern_frames(state)


def returns_complete_episodes(memory: Memory | type[Memory]) -> bool:
    """True if a memory returns complete episodes: it sets ``knows_episodes``, or overrides
    ``get_all_complete_episodes_transitions``."""
    return memory.knows_episodes or OVERRIDES.is_replaced(memory, "knows_episodes")


def receives_episodes(memory: Memory | type[Memory]) -> bool:
    """True if agents store whole episodes in a memory: it sets ``stores_episodes``, or overrides ``store_episode``."""
    return memory.stores_episodes or OVERRIDES.is_replaced(memory, "stores_episodes")


def episode_ends(chunk: Batch, episode_lengths: np.ndarray | None) -> np.ndarray:
    """[E] the row after the last row of each episode in a chunk.

    :param episode_lengths: [E], or None: then an episode ends after each ``game_over``
    """
    if episode_lengths is None:
        return np.flatnonzero(chunk.game_over_column) + 1
    return np.cumsum(episode_lengths, dtype=np.int64)


def _check_episode_lengths(lengths: np.ndarray, rows: int) -> None:
    is_valid = lengths.ndim == 1 and (not lengths.size or (lengths.dtype.kind in "iu" and lengths.min() > 0))
    if not is_valid or lengths.sum() > rows:
        raise CoachError(f"the chunk's episode lengths {lengths.tolist()} do not fit its {rows} rows")


def check_max_size(max_size: Any) -> tuple[MemoryGranularity, int]:
    """``max_size`` as a granularity and an int.

    :raises CoachError: ``max_size`` is not a pair of a granularity and a number of at least 0
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
