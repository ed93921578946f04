"""A replay memory of whole episodes."""

from __future__ import annotations

import collections
import itertools
import os
import warnings
from typing import Any

import numpy as np

from rl_coach.core_types import NO_OLD_VALUE, Batch, CsvDataset, Episode, Transition, n_step_returns
from rl_coach.filters.recorded_episodes import ONE_BY_ONE, filter_recorded, in_order
from rl_coach.logger import screen
from rl_coach.memories.coach_pickles import read_pickled_episodes
from rl_coach.memories.columns import uniform_rows
from rl_coach.memories.csv_episodes import read_csv
from rl_coach.memories.memory import (
    Memory,
    MemoryGranularity,
    MemoryParameters,
    check_max_size,
    episode_ends,
    is_same_transition,
)
from rl_coach.memories.saved_memory import read_saved
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.utilities.files import write_data
from rl_coach.utilities.requirements import check_arguments, exactly, member, number, pair, whole
from rl_coach.utils import CoachError


class EpisodicExperienceReplayParameters(MemoryParameters):
    """Parameters of episodic replay.

    :ivar max_size: largest number of transitions, or of episodes
    :ivar n_step: number of rewards in a return; -1 for all rewards up to the end of the episode
    :ivar train_to_eval_ratio: share of the transitions of a data set for training; the rest is for evaluation. With 1,
        all are for training
    """

    constraints = {
        "max_size": pair(member(MemoryGranularity), number(1), "(MemoryGranularity.Episodes, 1000)"),
        "n_step": whole(1) | exactly(-1),
        "train_to_eval_ratio": number(above=0, high=1),
    }
    path = "rl_coach.memories.episodic.episodic_experience_replay:EpisodicExperienceReplay"

    def __init__(self) -> None:
        super().__init__()
        self.max_size = (MemoryGranularity.Transitions, 1000000)
        self.n_step = -1
        self.train_to_eval_ratio: float = 1


class EpisodicExperienceReplay(Memory):
    """A memory of whole episodes, oldest first. The last episode may be incomplete (open). Only complete episodes are
    sampled. After a split into training and evaluation set, only episodes of the training set are sampled.

    When an episode becomes complete, the discounted return of each transition is computed.

    :param max_size: ``(MemoryGranularity, number)``, the largest number of transitions or of episodes, including the
        open episode. When the memory is full, the oldest episodes are removed. 0 means no limit. If a single episode is
        larger, its oldest transitions are removed. The other parameters are the same as in
        ``EpisodicExperienceReplayParameters``
    :ivar discount: discount for the returns of episodes that are stored as single transitions. An ``Episode`` has its
        own discount
    :ivar bootstrap_total_return_from_old_policy: the same as in ``Episode``, for episodes that are stored as single
        transitions
    """

    keeps_columns = True
    stores_episodes = True
    knows_episodes = True
    samples_sequences = True

    def __init__(
        self,
        max_size: tuple[MemoryGranularity, int] = (MemoryGranularity.Transitions, 1000000),
        n_step: int = -1,
        train_to_eval_ratio: float = 1,
    ):
        super().__init__(check_max_size(max_size))
        check_arguments(EpisodicExperienceReplayParameters, "memory", train_to_eval_ratio=train_to_eval_ratio)
        granularity, number = self.max_size
        self.n_step = n_step
        self.train_to_eval_ratio = train_to_eval_ratio
        self.discount = 0.99
        self.bootstrap_total_return_from_old_policy = False
        self.evaluation_dataset_as_episodes: list[Episode] | None = None
        self.evaluation_dataset_as_transitions: list[Transition] | None = None
        self.last_training_set_episode_id: int | None = None
        # number of training transitions; None before a split, or if all are for training
        self._num_training: int | None = None
        self._max_episodes = number if granularity == MemoryGranularity.Episodes else 0
        is_limited = granularity == MemoryGranularity.Transitions and number > 0
        self._store = TransitionStore(number if is_limited else None, self._drop_oldest)
        self._lengths: collections.deque[int] = collections.deque()
        self._num_complete = 0

    # Counting

    def length(self, lock: bool = False) -> int:
        """The number of stored episodes. An open episode is counted if it has a transition."""
        return len(self._lengths) + (self._num_open() > 0)

    def _num_open(self) -> int:
        return self._store.length - self._num_complete

    def num_complete_episodes(self) -> int:
        """The number of complete episodes."""
        return len(self._lengths)

    def num_transitions_in_complete_episodes(self) -> int:
        """The number of transitions in complete episodes."""
        return self._num_complete

    def episode_lengths(self) -> np.ndarray:
        """[E], the lengths of the complete episodes, oldest first."""
        return np.fromiter(self._lengths, dtype=np.int64, count=len(self._lengths))

    def episodes_around(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find the complete episodes that contain given transitions.

        :param positions: [N], the positions of the transitions; 0 is the oldest
        :return: the positions of the first and of the last step of these episodes, [N] each
        """
        starts = self._starts()
        episodes = starts.searchsorted(positions, "right") - 1
        return starts[episodes], starts[episodes + 1] - 1

    def _starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.episode_lengths())])

    # Storing

    def store(self, transition: Transition) -> None:
        """Store one transition of the open episode. A transition with ``game_over`` completes the episode."""
        self.assert_not_frozen()
        if self.memory_backend is not None:
            self.memory_backend.store(transition)
        self._store.append(transition)
        if transition.game_over:
            self.close_last_episode()
        self._enforce_max_episodes()

    def store_episode(self, episode: Episode, lock: bool = True) -> None:
        """Store a complete episode. An open episode is closed before. If the transitions have no returns, the returns
        are computed with the episode's discount and ``n_step``.
        """
        super().store_episode(episode)
        self.close_last_episode()
        for transition in episode.transitions:
            self._store.append(transition)
        self._close(episode.discount, episode.n_step, episode.bootstrap_total_return_from_old_policy)
        self._enforce_max_episodes()

    def _extend(self, chunk: Batch, episode_lengths: np.ndarray | None) -> None:
        start = 0
        for end in episode_ends(chunk, episode_lengths).tolist():
            # one episode at a time: a full memory can only remove whole episodes if they are complete
            self._store.extend(chunk[start:end])
            self.close_last_episode()
            self._enforce_max_episodes()
            start = end
        if start < len(chunk):
            self._store.extend(chunk[start:])
            self._enforce_max_episodes()

    def _as_episode(self, transitions: list[Transition]) -> Episode:
        episode = Episode(self.discount, self.bootstrap_total_return_from_old_policy, self.n_step)
        episode.transitions = transitions
        return episode

    def close_last_episode(self, lock: bool = True) -> None:
        """Complete the open episode. Without an open episode, this has no effect."""
        self.assert_not_frozen()
        self._close(self.discount, self.n_step, self.bootstrap_total_return_from_old_policy)

    def _close(self, discount: float, n_step: int, bootstraps: bool) -> None:
        length = self._num_open()
        if length:
            self._set_returns(np.arange(self._num_complete, self._store.length), discount, n_step, bootstraps)
            self._lengths.append(length)
            self._num_complete += length

    def _set_returns(self, positions: np.ndarray, discount: float, n_step: int, bootstraps: bool) -> None:
        store, rows = self._store, self._store.rows(positions)
        rewards = store.rewards.values[rows]
        if store.has_returns(rows) or rewards.ndim > 1:
            return
        returns = n_step_returns(rewards, discount, n_step)
        if bootstraps and 0 < n_step < len(rows):
            column, later = store.info.get("max_action_value"), rows[n_step:]
            if column is None or not all(map(column.has, later)):
                raise CoachError(NO_OLD_VALUE)
            returns[: len(later)] += discount**n_step * column.column.values[later]
        store.put_returns(rows, returns)

    def compute_returns(self, discount: float, n_step: int) -> None:
        """Compute the returns of all complete episodes again, for example after loading a file with the returns of
        another discount. Transitions of several steps keep their returns.
        """
        if self._store.n_steps is not None or not self._lengths or self._store.rewards.values.ndim > 1:
            return
        starts = self._starts()
        # forgotten first, because ``_set_returns`` does not change known returns
        self._store.put_returns(self._store.rows(np.arange(starts[0], starts[-1])), None)
        for start, end in itertools.pairwise(starts):
            self._set_returns(np.arange(start, end), discount, n_step, self.bootstrap_total_return_from_old_policy)

    def _drop_oldest(self, count: int) -> None:
        if self._lengths:
            self._drop_first_episode()
        else:
            self._store.drop_first(1)

    def _drop_first_episode(self) -> None:
        length = self._lengths.popleft()
        self._num_complete -= length
        # training episodes are the oldest, so the removed episode was one of them
        if self._num_training is not None:
            self._num_training = max(0, self._num_training - length)
            self.last_training_set_episode_id = max(-1, (self.last_training_set_episode_id or 0) - 1)
        self._store.drop_first(length)

    def _enforce_max_episodes(self) -> None:
        while self._max_episodes and self.length() > self._max_episodes:
            self._drop_first_episode()

    # Sampling

    def sample(self, size: int, is_consecutive_transitions: bool = False) -> Batch:
        """Draw ``size`` transitions of complete episodes with replacement.

        :param is_consecutive_transitions: True to draw up to ``size`` consecutive transitions of one episode: the
            transitions in a window of ``size`` steps. The window is drawn uniformly from all windows that contain at
            least one step of an episode. A window across the start or the end of an episode gives fewer transitions. So
            each of N transitions in E episodes has the same probability ``size / (N + E * (size - 1))``, also in short
            episodes and near the ends of episodes.
        :raises CoachError: if no episode is complete
        """
        count = self._num_sampled()
        if is_consecutive_transitions:
            positions = self._draw_consecutive(size)
        else:
            positions = uniform_rows(self.rng, count, size)
        return self._store.batch(self._store.rows(positions))

    def sample_sequences(self, count: int, length: int, burn_in: int = 0) -> Batch:
        """Draw ``count`` sequences of ``length`` transitions from complete episodes. Each sequence begins after
        ``burn_in`` transitions of the same episode.

        Each episode is cut into sequences from its first transition on. Sequences do not overlap. The last
        sequence of an episode may be shorter. All S sequences are equally likely, so each transition has the
        probability 1 / S in one draw. In R2D2, sequences of 80 steps overlap by 40, and the first 40 steps are the
        burn-in: so each step is also learned from once (Kapturowski et al. 2019, sections 2.3 and 3).

        The first sequence of an episode has no burn-in: copies of its first transition replace the burn-in. A sequence
        that is shorter is filled with copies of its last transition.

        :param burn_in: number of transitions before each sequence, up to ``length``
        :return: ``count * (burn_in + length)`` rows. ``info['is_learned']`` is True for rows of the sequence itself,
            and False for burn-in and copies. ``info['begins_episode']`` is True for all rows of a sequence at the start
            of an episode. ``info['transition_serial']`` is the number of the transition, for ``replace_info``
        :raises CoachError: if no episode is complete
        """
        self._num_sampled()
        lengths = self._sampled_lengths()
        sequences = -(-lengths // length)
        ends = np.cumsum(sequences)
        choice = uniform_rows(self.rng, int(ends[-1]), count)
        episode = ends.searchsorted(choice, "right")
        place = choice - (ends[episode] - sequences[episode])
        starts = (place * length)[:, None]
        steps = np.arange(-burn_in, length)
        last = lengths[episode][:, None] - 1
        positions = np.clip(starts + steps, 0, last) + self._starts()[episode][:, None]
        is_learned = (steps >= 0) & (starts + steps <= last)
        begins = np.broadcast_to(starts == 0, positions.shape)
        info = {"is_learned": is_learned.ravel(), "begins_episode": begins.ravel()}
        info["transition_serial"] = positions.ravel() + self._store.first_serial
        return self._store.batch(self._store.rows(positions.ravel()), info)

    def sample_states(self, count: int, length: int) -> Batch:
        """Draw ``count`` sequences of ``length`` states from complete episodes. If an episode has fewer states, a
        sequence continues with the first state of the next episode. The oldest episode follows the newest one.

        A sequence may begin at each state that leaves enough states of its episode. The first and the last states of
        an episode are as likely as the others, or more likely. An episode of T transitions has T + 1 states, and the
        last state is the next state of the last transition.

        :param length: at least 2
        :return: ``count * length`` rows. ``info['is_transition']`` is False in the row of an episode's last state. The
            other values of this row belong to the last transition. ``info['begins_episode']`` is True in the row of
            the first state of an episode. ``info['transition_serial']`` is as in ``sample_sequences``
        :raises CoachError: if no episode is complete
        """
        self._num_sampled()
        lengths, transitions = self._sampled_lengths(), length - 1
        # a sequence may reach over an end of its episode: it is moved until it fits
        windows = lengths + transitions - 1
        ends = np.cumsum(windows)
        choice = uniform_rows(self.rng, int(ends[-1]), count)
        episode = ends.searchsorted(choice, "right")
        start = choice - (ends - windows)[episode] - (transitions - 1)
        start = np.clip(start, 0, np.maximum(lengths[episode] - transitions, 0))
        ends = np.cumsum(lengths + 1)
        firsts = ends - lengths - 1
        places = (((firsts[episode] + start)[:, None] + np.arange(length)) % ends[-1]).ravel()
        episode = ends.searchsorted(places, "right")
        steps = places - firsts[episode]
        is_transition = steps < lengths[episode]
        positions = self._starts()[episode] + steps - ~is_transition
        info = {"is_transition": is_transition, "begins_episode": steps == 0}
        info["transition_serial"] = positions + self._store.first_serial
        return self._store.batch(self._store.rows(positions), info)

    def replace_info(self, name: str, serials: np.ndarray, values: np.ndarray) -> None:
        """Replace one info value of some transitions. Transitions that the memory has removed are ignored.

        :param serials: [N], numbers from ``info['transition_serial']`` of ``sample_sequences``. The next transition of
            an episode has the next number
        :param values: [N, ...]
        """
        self._store.replace_info(name, serials, values)

    def _num_sampled(self) -> int:
        """The number of transitions that can be sampled."""
        if not self._lengths:
            raise CoachError(
                f"cannot sample, because no episode is complete (episodes: {self.length()}, transitions: "
                f"{self._store.length}); use a longer heatup"
            )
        if self._num_training is None:
            return self._num_complete
        if not self._num_training:
            raise CoachError(
                f"cannot sample: all {len(self._lengths)} episodes are for evaluation; raise train_to_eval_ratio"
            )
        return self._num_training

    def _sampled_lengths(self) -> np.ndarray:
        lengths = self.episode_lengths()
        return lengths if self._num_training is None else lengths[: (self.last_training_set_episode_id or 0) + 1]

    def _draw_consecutive(self, size: int) -> np.ndarray:
        lengths = self._sampled_lengths()
        places = lengths + size - 1  # number of possible first steps of a window; some are before the episode
        ends = np.cumsum(places)
        place = int(uniform_rows(self.rng, int(ends[-1]), 1)[0])
        episode = int(ends.searchsorted(place, "right"))
        first = place - int(ends[episode] - places[episode]) - (size - 1)
        steps = np.arange(max(first, 0), min(first + size, int(lengths[episode])))
        return self._starts()[episode] + steps

    # Training and evaluation sets

    def get_last_training_set_episode_id(self) -> int | None:
        """The index of the last training episode; None before the split."""
        return self.last_training_set_episode_id

    def num_training_transitions(self) -> int:
        """The number of transitions in the training episodes. The first call with complete episodes splits the memory.
        Later episodes belong to the evaluation set, unless ``train_to_eval_ratio`` is 1."""
        self._split_training_and_evaluation_sets()
        return self._num_complete if self._num_training is None else self._num_training

    def _split_training_and_evaluation_sets(self) -> None:
        if self.last_training_set_episode_id is None and self._lengths:
            # at most the last transition, because no episode contains a later position
            last = min(round(self.train_to_eval_ratio * self._num_complete), self._num_complete - 1)
            self.last_training_set_episode_id = int(self._starts().searchsorted(last, "right")) - 1
            self._keep_evaluation_set_back()

    def _keep_evaluation_set_back(self) -> None:
        last, self._num_training = self.last_training_set_episode_id, None
        if last is not None and self.train_to_eval_ratio < 1:
            self._num_training = int(self._starts()[min(last + 1, len(self._lengths))])

    def prepare_evaluation_dataset(self) -> None:
        """Set the attributes ``evaluation_dataset_as_episodes`` and ``evaluation_dataset_as_transitions`` to the
        episodes after the training episodes.

        :raises CoachError: if no episode is left for evaluation
        """
        self._split_training_and_evaluation_sets()
        first = (self.last_training_set_episode_id or 0) + 1
        episodes = self.get_all_complete_episodes_from_to(first, self.num_complete_episodes())
        if not episodes:
            raise CoachError(
                f"no episode is left for evaluation: with train_to_eval_ratio {self.train_to_eval_ratio}, all "
                f"{self.num_complete_episodes()} episodes are for training; lower train_to_eval_ratio, or record more "
                f"episodes"
            )
        self.evaluation_dataset_as_episodes = episodes
        self.evaluation_dataset_as_transitions = [t for episode in episodes for t in episode.transitions]

    # Reading

    def get_episode(self, episode_index: int, lock: bool = True) -> Episode | None:
        """The episode at an index, oldest first; -1 is the newest, complete or open. None if out of range."""
        if not -self.length() <= episode_index < self.length():
            return None
        index = episode_index % self.length()
        return self._episode(index, is_complete=index < len(self._lengths))

    def _episode(self, index: int, is_complete: bool) -> Episode:
        starts = self._starts()
        end = starts[index + 1] if is_complete else self._store.length
        episode = self._as_episode(self._store.transitions_at(np.arange(starts[index], end)))
        episode.is_complete = is_complete
        return episode

    def get(self, episode_index: int, lock: bool = True) -> Episode | None:
        """The episode at an index; see ``get_episode``."""
        return self.get_episode(episode_index)

    def get_last_complete_episode(self) -> Episode | None:
        """The newest complete episode; None before an episode is complete."""
        return self._episode(len(self._lengths) - 1, is_complete=True) if self._lengths else None

    def get_all_complete_episodes(self) -> list[Episode]:
        """The complete episodes, oldest first."""
        return self.get_all_complete_episodes_from_to(0, self.num_complete_episodes())

    def get_all_complete_episodes_from_to(self, start_episode_id: int, end_episode_id: int) -> list[Episode]:
        """The complete episodes from ``start_episode_id`` up to, not including, ``end_episode_id``."""
        indices = range(self.num_complete_episodes())[start_episode_id:end_episode_id]
        return [self._episode(index, is_complete=True) for index in indices]

    def get_all_complete_episodes_transitions(self) -> Batch:
        """The transitions of the complete episodes, in order; see ``episode_lengths``."""
        return self._store.batch_at(np.arange(self._num_complete))

    def newest_transitions(self, count: int) -> Batch:
        """The newest ``count`` transitions of complete episodes, in order. If there are fewer, all of them."""
        return self.transitions_at(np.arange(max(0, self._num_complete - count), self._num_complete))

    def get_episode_for_transition(self, transition: Transition) -> tuple[int, Episode]:
        """Find the first complete episode with an equal transition. Return its index and the episode.

        :raises CoachError: if no complete episode has an equal transition
        """
        for index in range(len(self._lengths)):
            episode = self._episode(index, is_complete=True)
            if any(is_same_transition(transition, other) for other in episode.transitions):
                return index, episode
        raise CoachError("no complete episode in the memory has this transition")

    def verify_last_episode_is_closed(self) -> None:
        """Check that no episode is open. :raises CoachError: if an episode is open"""
        if self._num_open():
            raise CoachError("the last episode in the memory is not complete: call close_last_episode()")

    # Changing

    def shuffle_episodes(self) -> None:
        """Put the complete episodes in a random order. An open episode stays last. After a split, training episodes
        stay before evaluation episodes."""
        self.assert_not_frozen()
        training, starts = len(self._sampled_lengths()), self._starts()
        order = self.rng.permutation(training)
        if training < len(self._lengths):
            order = np.concatenate([order, training + self.rng.permutation(len(self._lengths) - training)])
        spans = [np.arange(starts[index], starts[index + 1]) for index in order]
        spans.append(np.arange(self._num_complete, self._store.length))
        self._store.reorder(np.concatenate(spans))
        self._lengths = collections.deque(self.episode_lengths()[order].tolist())

    def remove_first_episode(self, lock: bool = True) -> None:
        """Remove the oldest episode."""
        self.assert_not_frozen()
        if self._lengths:
            self._drop_first_episode()
        else:
            self._store.drop_first(self._num_open())

    def remove_last_episode(self, lock: bool = True) -> None:
        """Remove the newest episode, also if it is open."""
        self.assert_not_frozen()
        length = self._num_open()
        if length == 0 and self._lengths:
            length = self._lengths.pop()
            self._num_complete -= length
            if self._num_training is not None and self._num_training > self._num_complete:
                self._num_training, self.last_training_set_episode_id = self._num_complete, len(self._lengths) - 1
        self._store.drop_last(length)

    def clean(self) -> None:
        """Remove all episodes, and undo the split."""
        self.assert_not_frozen()
        self._store.clear()
        self._lengths.clear()
        self._num_complete = 0
        self.last_training_set_episode_id = self._num_training = None
        self.evaluation_dataset_as_episodes = self.evaluation_dataset_as_transitions = None

    # Files

    def load_csv(self, csv_dataset: CsvDataset, input_filter: Any) -> None:
        """Store the episodes of a CSV file; ``csv_episodes.read_csv`` describes the format.

        :param input_filter: filter for raw episodes; its statistics are computed over all of them. None for no filter
        :raises CoachError: if the file cannot be read or is malformed
        """
        columns, lengths, is_raw = read_csv(csv_dataset)
        ends = np.cumsum(lengths)
        episodes = [columns[end - length : end].transitions for end, length in zip(ends, lengths)]
        if is_raw and csv_dataset.is_episodic:
            episodes, cuts = in_order(episodes, input_filter)
            if cuts:
                screen.warning(f"'{csv_dataset.filepath}': {ONE_BY_ONE.format(cuts)}")
        if is_raw and input_filter is not None:
            episodes = filter_recorded(episodes, input_filter)
        for transitions in episodes:
            self.store_episode(self._as_episode(transitions))
        if len(columns) > (held := self._store.length):
            warnings.warn(
                f"'{csv_dataset.filepath}' has {len(columns)} transitions, but only the newest {held} fit into the "
                f"memory",
                stacklevel=2,
            )

    def save(self, file_path: str | os.PathLike) -> None:
        """Write the episodes to one ``.npz`` file of columns.

        :raises CoachError: if the file cannot be written
        """
        write_data(file_path, {"store": self._store.get_state(), "episode_lengths": self.episode_lengths()})

    def load(self, file_path: str | os.PathLike) -> None:
        """Store the episodes of a file that ``save`` has written.

        :raises CoachError: if the file cannot be read or contains something else
        """
        saved, lengths = read_saved(file_path)
        chunk = saved.chunk()
        self._store.check(chunk)
        self.close_last_episode()
        # not store_episode, because the file already contains the relabelled copies of hindsight replay
        self._extend(chunk, lengths)
        self._store.take_defaults(saved)

    def load_pickled(self, file_path: str | os.PathLike) -> None:
        """Store the episodes of a file that Coach 1 pickled; see ``read_pickled_episodes``."""
        for transitions in read_pickled_episodes(file_path):
            self.store_episode(self._as_episode(transitions))

    def get_state(self) -> dict[str, Any]:
        return {
            **super().get_state(),
            "episode_lengths": self.episode_lengths(),
            "last_training_set_episode_id": self.last_training_set_episode_id,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._lengths = collections.deque(np.asarray(state["episode_lengths"]).tolist())
        self._num_complete = sum(self._lengths)
        self.last_training_set_episode_id = state["last_training_set_episode_id"]
        # the number of training transitions is not saved, because it follows from the episode's index
        self._keep_evaluation_set_back()
