"""The base class of all memories. A memory stores the transitions from which an agent learns."""

from __future__ import annotations

import math
import os
from enum import Enum
from typing import Any, Iterator

import numpy as np

from rl_coach.base_parameters import RECORDED_DATA, Parameters
from rl_coach.core_types import Batch, CsvDataset, Episode, Transition
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.utilities.overrides import OverrideTable
from rl_coach.utilities.requirements import FLAG
from rl_coach.utils import CoachError

OVERRIDES = OverrideTable(
    {
        "knows_episodes": ("get_all_complete_episodes_transitions",),
        "stores_episodes": ("store_episode",),
        # If a subclass chooses single goals, its method is called for each goal.
        "_goals": ("_sample_goal",),
        # If a subclass has its own method of storing, this method also gets transitions that arrive as columns.
        "_extend": ("store", "store_episode"),
        "store_columns": ("store", "store_episode"),
    }
)


class MemoryGranularity(Enum):
    """The unit of a memory's size: transitions or episodes."""

    Transitions = 0
    Episodes = 1


class MemoryParameters(Parameters):
    """Settings of an agent's memory.

    :ivar max_size: ``(MemoryGranularity, number)``, the largest size; a full memory removes its oldest transitions
    :ivar shared_memory: no effect; it exists for programs written for Coach 1.0.1
    :ivar load_memory_from_file_path: a file or a list of files that are loaded into the memory before training, the
        same as in ``AlgorithmParameters``
    """

    constraints = {"shared_memory": FLAG, "load_memory_from_file_path": RECORDED_DATA}

    def __init__(self) -> None:
        self.max_size: tuple[MemoryGranularity, int] | None = None
        self.shared_memory = False
        self.load_memory_from_file_path: Any = None

    @property
    def path(self) -> str:
        """``"module:Class"`` of the memory."""
        return "rl_coach.memories.memory:Memory"


class Memory:
    """Base class of memories. Agents use only the methods and attributes of this class.

    A subclass may store its transitions in a list. It then defines ``store`` or ``store_episode``, ``sample``,
    ``length`` and ``clean``. If the subclass assigns the list to ``transitions``, checkpoints contain the list.

    Methods have the argument ``lock`` of Coach 1.0.1. It is ignored, because only one process stores and samples.

    :param max_size: ``(MemoryGranularity, number)``, the largest size of the memory
    :cvar keeps_columns: True if transitions are stored in this class's columns, False if in a list of the subclass
    :cvar stores_episodes: True if agents store whole episodes (``store_episode``), not single transitions; see
        ``receives_episodes``
    :cvar knows_episodes: True if the memory returns complete episodes in order; see ``returns_complete_episodes``
    :cvar has_priorities: True if samples depend on ``update_priorities``
    :cvar takes_first_priorities: True if the memory implements ``set_first_priorities``
    :cvar keeps_demonstrations: True if the memory implements ``keep_as_demonstrations``
    :cvar samples_sequences: True if the memory implements ``sample_sequences`` and ``sample_states``
    :cvar allow_duplicates: True if a transition may be in one batch more than once
    :cvar max_n_step: largest number of rewards in a transition's n-step sum
    :cvar relabels: True if the memory adds transitions with other goals and rewards
    :cvar stores_goals_as_actions: True if the last observation of ``needed_observations`` replaces the action
    :ivar needed_observations: names of observations that a state must have
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
        """True if sampled stacks of frames are contiguous arrays. False if they are transposed views of [B, K, ...]
        arrays, which is several times faster.
        """
        return self._store.contiguous_frames

    @contiguous_frames.setter
    def contiguous_frames(self, value: bool) -> None:
        self._store.contiguous_frames = value

    @property
    def draws_many_batches(self) -> bool:
        """True if one sample of K * B transitions may replace K samples of B transitions. One call can then draw the
        batches of several updates. False if priorities change between samples, if order or duplicates matter, or if a
        subclass stores and samples the transitions itself.
        """
        return self.keeps_columns and self.allow_duplicates and not self.has_priorities

    def seed(self, seed: Any) -> None:
        """Seed the memory's random generator with an int or a ``SeedSequence``."""
        self.rng = np.random.default_rng(seed)

    def sample_sequences(self, count: int, length: int, burn_in: int = 0) -> Batch:
        """Draw sequences of transitions from episodes; see ``EpisodicExperienceReplay``."""
        raise NotImplementedError(f"{type(self).__name__} does not sample sequences")

    def sample_states(self, count: int, length: int) -> Batch:
        """Draw sequences of states from consecutive episodes; see ``EpisodicExperienceReplay``."""
        raise NotImplementedError(f"{type(self).__name__} does not sample sequences")

    def store(self, obj: Any) -> None:
        """Send a transition to the memory backend, if there is a backend. A subclass also stores the transition."""
        self.assert_not_frozen()
        if self.memory_backend is not None:
            self.memory_backend.store(obj)

    def store_episode(self, episode: Episode) -> None:
        """Send an episode to the memory backend, if there is a backend. A subclass also stores the transitions."""
        self.assert_not_frozen()
        if self.memory_backend is not None:
            self.memory_backend.store(episode)

    def store_columns(self, chunk: Batch, episode_lengths: np.ndarray | None = None) -> None:
        """Store many transitions in one call. If ``check_columns`` raises an error, no transition is stored.

        :param episode_lengths: lengths of the episodes, for memories that store episodes. With None, an episode ends
            after each ``game_over``. Transitions after the last end become an open episode.
        """
        self.assert_not_frozen()
        self.check_columns(chunk, episode_lengths)
        if all(OVERRIDES.is_replaced(self, way) for way in ("_extend", "store_columns")):
            self._store_one_by_one(chunk, episode_lengths)
        else:
            self._extend(chunk, episode_lengths)

    def _extend(self, chunk: Batch, episode_lengths: np.ndarray | None) -> None:
        """Store checked columns in the fastest way. This method is not called if a subclass overrides ``store``."""
        self._store_one_by_one(chunk, episode_lengths)

    def _store_one_by_one(self, chunk: Batch, episode_lengths: np.ndarray | None) -> None:
        # Objects from a store share the arrays of common frames, as the transitions of an agent do.
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

        :raises CoachError: if a column has missing rows, or another name, shape or kind of number. The message names
            the column
        """
        self._store.check(chunk)
        if episode_lengths is not None and not are_lengths(np.asarray(episode_lengths), len(chunk)):
            lengths = np.asarray(episode_lengths).tolist()
            raise CoachError(f"the chunk's episode lengths {lengths} do not fit its {len(chunk)} rows")

    def get(self, index: int) -> Any:
        """The transition or episode at ``index``, oldest first."""
        raise NotImplementedError(f"{type(self).__name__} has no items to get")

    def length(self) -> int:
        """The number of stored transitions or episodes."""
        raise NotImplementedError(f"{type(self).__name__} does not count its items")

    def sample(self, size: int) -> Batch:
        """Sample a batch of ``size`` transitions."""
        raise NotImplementedError(f"{type(self).__name__} does not sample")

    def update_priorities(self, indices: np.ndarray, error_values: np.ndarray) -> None:
        """Set the priorities of sampled transitions from their errors [B]; ``indices`` is ``info('idx')`` [B]."""
        raise CoachError(f"{type(self).__name__} has no priorities: use PrioritizedExperienceReplay")

    def set_first_priorities(self, error_values: np.ndarray) -> None:
        """Set the priorities of the N newest transitions from their errors [N], oldest first."""
        raise CoachError(f"{type(self).__name__} has no priorities: use PrioritizedExperienceReplay")

    def get_all_complete_episodes_transitions(self) -> Batch:
        """The transitions of the complete episodes in order."""
        raise CoachError(f"{type(self).__name__} does not store episodes: use EpisodicExperienceReplay")

    def clean(self) -> None:
        """Remove all transitions."""
        raise NotImplementedError(f"{type(self).__name__} cannot be cleared")

    def save(self, file_path: str | os.PathLike) -> None:
        """Write the transitions to a file."""
        raise CoachError(f"{type(self).__name__} does not save its transitions")

    def load(self, file_path: str | os.PathLike) -> None:
        """Store the transitions of a file that ``save`` has written."""
        raise CoachError(f"{type(self).__name__} does not load transitions from files")

    def load_pickled(self, file_path: str | os.PathLike) -> None:
        """Store the transitions of a file that Coach 1 pickled."""
        raise CoachError(f"{type(self).__name__} does not load transitions from pickles of Coach 1")

    def load_csv(self, csv_dataset: CsvDataset, input_filter: Any) -> None:
        """Store the episodes of a CSV file, after ``input_filter``."""
        raise CoachError(
            f"{type(self).__name__} does not load CSV files: set memory to EpisodicExperienceReplayParameters()"
        )

    def num_transitions(self) -> int:
        """The number of stored transitions."""
        return self._store.length if self._own_transitions is None else len(self._own_transitions)

    @property
    def num_removed(self) -> int:
        """The number of transitions that a full memory has removed since it was empty."""
        return self._store.first_serial if self._own_transitions is None else 0

    @property
    def transitions(self) -> Any:
        """All transitions, oldest first: a ``Batch``, or the list that a subclass has assigned.

        An assignment replaces the stored transitions. A memory of columns copies the assigned transitions. Other
        memories use the assigned list itself, and the subclass may change this list later.
        """
        if self._own_transitions is not None:
            return self._own_transitions
        return self.transitions_at(np.arange(self.num_transitions()))

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
        """The observation ``name`` [N, ...] in the next states of the transitions at positions [N]."""
        if self._own_transitions is not None:
            return self.transitions_at(positions).next_state_columns[name]
        return self._store.observations[name].take(self._store.rows(positions))[1]

    def num_training_transitions(self) -> int:
        """The number of transitions for training: all, or fewer if the newest are for evaluation."""
        return self.num_transitions()

    def get_shuffled_training_data_generator(self, size: int) -> Iterator[Batch]:
        """Yield batches of ``size`` transitions until each transition for training was used once, in random order. The
        last batch may be smaller.
        """
        order = self.rng.permutation(self.num_training_transitions())
        for start in range(0, len(order), size):
            yield self.transitions_at(order[start : start + size])

    def annotate(self, name: str, column: Any, default: Any = None) -> None:
        """Add a column of values to the stored transitions. ``batch.info(name)`` of a sample returns the values. An
        older column with this name is replaced. A frozen memory can be annotated too, because its transitions do not
        change.

        Later transitions without ``info[name]`` get the default. Without a default, they have no value: a batch then
        has NaN in a column of floats, 0 in a column of integers and None in a column of objects.

        :param column: [N, ...], a value for each stored transition, oldest first
        :param default: value for later transitions without ``info[name]``; None for no value
        :raises CoachError: if the numbers of values and transitions differ, or the default does not fit the values
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
        """From now on, also send all stored transitions to ``memory_backend``."""
        self.memory_backend = memory_backend

    def freeze(self) -> None:
        """Make the memory a fixed data set: all later changes raise an error."""
        self.frozen = True

    def assert_not_frozen(self) -> None:
        """Check that the memory may be changed. :raises CoachError: if the memory is frozen"""
        if self.frozen:
            raise CoachError("the memory is frozen and cannot be changed")

    def get_state(self) -> dict[str, Any]:
        """The state for a checkpoint, as plain data: transitions, random generator and ``frozen``."""
        store = self._store
        if self._own_transitions is not None:
            # Checkpoints contain columns, because they contain no pickled objects.
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
            # In place, because the subclass may have other references to its list.
            self._own_transitions.clear()
            self._own_transitions.extend(saved.transitions())
        self.rng.bit_generator.state = state["rng"]
        self.frozen = state["frozen"]

    def intern_frames(self, state: dict[str, Any]) -> None:
        """Find the frames of a restored state among the newest frames, so that they are not stored again."""
        self._store.intern_frames(state)


def returns_complete_episodes(memory: Memory | type[Memory]) -> bool:
    """True if a memory returns complete episodes: its class sets ``knows_episodes`` or overrides
    ``get_all_complete_episodes_transitions``.
    """
    return memory.knows_episodes or OVERRIDES.is_replaced(memory, "knows_episodes")


def receives_episodes(memory: Memory | type[Memory]) -> bool:
    """True if agents store whole episodes in a memory: its class sets ``stores_episodes`` or overrides
    ``store_episode``.
    """
    return memory.stores_episodes or OVERRIDES.is_replaced(memory, "stores_episodes")


def episode_ends(chunk: Batch, episode_lengths: np.ndarray | None) -> np.ndarray:
    """[E], the row after each episode's last row. With None as lengths, an episode ends at ``game_over``."""
    if episode_lengths is None:
        return np.flatnonzero(chunk.game_over_column) + 1
    return np.cumsum(episode_lengths, dtype=np.int64)


def are_lengths(lengths: Any, rows: int) -> bool:
    """True for an array [E] of whole numbers above 0 with a sum of at most ``rows``: the lengths of episodes."""
    is_list = isinstance(lengths, np.ndarray) and lengths.ndim == 1
    if not is_list or (lengths.size and lengths.dtype.kind not in "iu"):
        return False
    # each length first, because a sum of large numbers overflows
    return not np.any((lengths < 1) | (lengths > rows)) and int(np.sum(lengths)) <= rows


def check_max_size(max_size: Any) -> tuple[MemoryGranularity, int]:
    """Check ``max_size``, and return it as a granularity and an int.

    :raises CoachError: if ``max_size`` is not a pair of a granularity and a number of at least 0
    """
    valid = isinstance(max_size, (tuple, list)) and len(max_size) == 2 and isinstance(max_size[0], MemoryGranularity)
    if not valid or max_size[1] < 0:
        raise CoachError(f"memory.max_size must have the form (MemoryGranularity.Transitions, 1000000), not {max_size}")
    return max_size[0], int(max_size[1])


def is_same_transition(one: Transition, other: Transition) -> bool:
    """True if two transitions have equal contents."""
    return (
        one.game_over == other.game_over
        and np.array_equal(one.action, other.action)  # type: ignore[arg-type]
        and np.array_equal(one.reward, other.reward)  # type: ignore[arg-type]
        and all(np.array_equal(value, other.state[name]) for name, value in one.state.items())  # type: ignore
    )
