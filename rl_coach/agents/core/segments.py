"""Learning from segments of episodes: each is learned from once, in the order in which they were played."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from rl_coach.agents.core.learning import Learning
from rl_coach.agents.core.rollout import Rollout
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.padding import padded, padded_sequences
from rl_coach.core_types import Batch, PlayUnit
from rl_coach.memories.backend.wire import UNREADABLE
from rl_coach.memories.memory import Memory
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.utilities.sound_values import is_count, is_finite
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.agents.core.episode import SegmentedEpisode
    from rl_coach.agents.core.experience import ExperienceChunk

Columns = dict[str, np.ndarray]

_MOST_STEPS = 10_000_000  # of an episode


@dataclass
class SegmentStart:
    """Place of a segment in its episode.

    :param first: number of steps of the episode before it
    :param is_complete: the episode ended with it, and was not only cut off for a while
    :param states: the state of a recurrent network before its first step; empty for zeros
    """

    first: int = 0
    is_complete: bool = True
    states: dict[str, np.ndarray] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The place as plain data and arrays."""
        return {"first": self.first, "is_complete": self.is_complete, "states": dict(self.states)}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> SegmentStart:
        """The place that ``plain`` gave.

        :raises CoachError: it is none
        """
        try:
            states = {str(name): np.asarray(array, np.float32) for name, array in plain["states"].items()}
            first, is_complete = plain["first"], plain["is_complete"]
            if not is_count(first) or first > _MOST_STEPS:
                raise ValueError(f"it begins at step {first!r}")
            if not isinstance(is_complete, bool) or not all(map(is_finite, states.values())):
                raise ValueError("its end or its states are none")
            return cls(first, is_complete, states)
        except UNREADABLE as error:
            raise CoachError(f"a segment does not say where in its episode it is: {error!r}") from error


class Segment(Batch):
    """Steps of one episode in order, and their place in it.

    :param batch: the steps
    :param start: their place; by default they are a whole episode
    :param copy: the copy of the environment that they were played in; None if another process played them

    :ivar outputs: a network's outputs for each state and for what follows the last step, [T + 1, ...] by name; None
        if no network has been asked yet
    """

    def __init__(self, batch: Batch, start: SegmentStart | None = None, copy: int | None = None):
        super().__init__(batch)
        self.start = SegmentStart() if start is None else start
        self.copy = copy
        self.outputs: Columns | None = None

    @classmethod
    def of(cls, batch: Batch) -> Segment:
        """The batch, as a whole episode if it does not know its place."""
        return batch if isinstance(batch, cls) else cls(batch)

    def states_and_following(self, names: Iterable[str]) -> Columns:
        """[T + 1, ...] by name, the observations of each step and those that the last step led to."""
        states, following = self.state_columns, self.next_state_columns
        return {name: np.concatenate([states[name], following[name][-1:]]) for name in names}

    def state_before(self, recurrent_state: Mapping[str, np.ndarray]) -> Columns:
        """[1, size] by name, the state of a recurrent network before the first step.

        :param recurrent_state: one of that network
        """
        return {name: self.start.states.get(name, np.zeros_like(state)) for name, state in recurrent_state.items()}

    def columns(self, input_names: Iterable[str], recurrent_state: Mapping[str, np.ndarray]) -> Columns:
        """The columns that rules need of segments. Each row weighs 1 / T, so that a segment's rows give its mean.

        :param input_names: the observations that networks or the rule look at
        :param recurrent_state: a state of the recurrent network by the names of its parts; empty where there is none
        """
        found = {f"states/{name}": self.state_columns[name] for name in input_names}
        found["actions"] = self.action_column
        found["weights"] = np.full(len(self), 1.0 / len(self), np.float32)
        for name, state in self.state_before(recurrent_state).items():
            # every row has it, for columns have equal lengths; the first one's is where the network starts
            found[f"states/{name}"] = np.repeat(state, len(self), axis=0)
        return found


def outputs_of(asked: NetworkWrapper, segments: Sequence[Segment]) -> list[Columns]:
    """A network's outputs for the states of each segment and for what follows it, [T + 1, ...] by name.

    All segments are asked about in one call; a recurrent network unrolls them side by side.
    """
    network = asked.online_network
    rows = [segment.states_and_following(asked.input_names) for segment in segments]
    lengths = [len(segment) + 1 for segment in segments]
    if network.recurrent_state:
        longest = max(lengths)
        steps = {name: np.stack([_lengthened(one[name], longest) for one in rows]) for name in rows[0]}
        before = [segment.state_before(network.recurrent_state) for segment in segments]
        states = {name: np.concatenate([one[name] for one in before]) for name in network.recurrent_state}
        found = network.unroll(steps, states)
        return [{name: found[name][i, :length] for name in network.output_names} for i, length in enumerate(lengths)]
    if len(rows) == 1:
        return [dict(zip(network.output_names, network.predict(rows[0], squeeze_output=False)))]
    together = {name: np.concatenate([one[name] for one in rows]) for name in rows[0]}
    outputs = network.predict(together, squeeze_output=False)
    parts = [np.split(output, np.cumsum(lengths)[:-1]) for output in outputs]
    return [dict(zip(network.output_names, part)) for part in zip(*parts)]


def _lengthened(column: np.ndarray, length: int) -> np.ndarray:
    """The column with its last row repeated up to a length."""
    return column[np.minimum(np.arange(length), len(column) - 1)]


class ReceivedSegments:
    """Segments in the order in which they arrived, until they are learned from."""

    def __init__(self) -> None:
        self._store = TransitionStore(capacity=None)
        self._lengths: list[int] = []
        self._starts: list[SegmentStart] = []

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def num_complete(self) -> int:
        """The number of episodes that ended with one of them."""
        return sum(start.is_complete for start in self._starts)

    def starts_of(self, played: ExperienceChunk, recurrent: Mapping[str, np.ndarray]) -> list[SegmentStart]:
        """The places of the segments in what arrives.

        :param recurrent: a state of the network, which those that arrive must be like
        :raises CoachError: they are not given for each segment, do not cover the columns, or are none of that network
        """
        rows = 0 if played.columns is None else len(played.columns)
        if len(played.segment_starts) != len(played.episode_lengths) or sum(played.episode_lengths) != rows:
            raise CoachError(
                f"segments of {sum(played.episode_lengths)} steps in {rows} rows, "
                f"and places of {len(played.segment_starts)}"
            )
        starts = [SegmentStart.of(one) for one in played.segment_starts]
        shapes = {name: np.shape(array) for name, array in recurrent.items()}
        for start in starts:
            found = {name: array.shape for name, array in start.states.items()}
            if found and found != shapes:
                raise CoachError(f"a segment begins in a state {found} of a network whose states are {shapes}")
        return starts

    def add(self, played: ExperienceChunk, starts: list[SegmentStart]) -> None:
        """Keep what has arrived. :param starts: what ``starts_of`` gave for it"""
        if played.columns is not None:
            self._store.extend(played.columns)
            self._lengths += played.episode_lengths
            self._starts += starts

    def take(self, count: int | None = None) -> list[Segment]:
        """The oldest segments, which are here no longer. :param count: their number, None for all"""
        ends = np.cumsum(self._lengths, dtype=int).tolist()
        rows = list(zip([0, *ends], ends))[:count]
        taken = [Segment(self._store.batch_at(np.arange(*span)), start) for span, start in zip(rows, self._starts)]
        lengths, starts = self._lengths[len(taken) :], self._starts[len(taken) :]
        rest = self._store.batch_at(np.arange(rows[-1][1], ends[-1])) if lengths else None
        self.clear()
        if rest is not None:
            self._store.extend(rest)
            self._lengths, self._starts = lengths, starts
        return taken

    def clear(self) -> None:
        """Forget all segments."""
        self._store, self._lengths, self._starts = TransitionStore(capacity=None), [], []

    def get_state(self) -> dict[str, Any]:
        """The segments as plain data."""
        starts = {f"{i:04d}": start.plain() for i, start in enumerate(self._starts)}
        return {"store": self._store.get_state(), "lengths": list(self._lengths), "starts": starts}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``."""
        self.clear()
        self._store.set_state(state["store"])
        self._lengths = [int(length) for length in state["lengths"]]
        self._starts = [SegmentStart.of(state["starts"][name]) for name in sorted(state["starts"])]


class SegmentReplay:
    """Draws segments from a memory, some after each new one (Wang et al. 2017, algorithm 1).

    :param memory: keeps whole episodes
    :param rng: draws how many
    :param algorithm: ACER's settings, which may change between updates
    """

    def __init__(self, memory: Memory, rng: np.random.Generator, algorithm: Any):
        self._memory: Any = memory
        self._rng = rng
        self._algorithm = algorithm

    def draw(self) -> Iterator[Batch]:
        """Segments to learn from once more, one after the other."""
        algorithm = self._algorithm
        if self._memory.num_transitions_in_complete_episodes() > algorithm.num_transitions_to_start_replay:
            for _ in range(self._rng.poisson(algorithm.ratio_of_replay)):
                yield self._memory.sample(algorithm.num_steps_between_gradient_updates, True)


@dataclass(frozen=True)
class SegmentSettings:
    """Settings of updates on segments.

    :param steps: the longest segment
    :param per_update: number of segments, the oldest first, that make one update. With 1 each segment makes one. With
        more, the parts of an episode that is longer than ``steps`` count as one, and the update's gradient is the sum
        of all. None is one segment of each copy of the environment or each process that plays: what all of them have
        played since the last update makes one, whose gradient is the mean over all steps. With 1 it is so too for what
        other processes play, unless segments are replayed: an update on one would make the others of the same round
        segments of an older policy, which only rules that replay correct for
    :param received_per_update: number of segments that other processes have sent, the oldest first, that make one
        update, whichever policy has played them: for rules that correct for older ones. None if only what the newest
        policy has played is of use
    :param updates_targets: target networks are updated when the clock says so
    :param target_rates: after each update these networks' targets move towards them at these rates
    """

    steps: int
    per_update: int | None = 1
    received_per_update: int | None = None
    updates_targets: bool = False
    target_rates: Mapping[str, float] = field(default_factory=dict)


class SegmentLearning(Learning):
    """Learns from the newest segment of each episode in progress, or from segments of other processes.

    Weights do not change before an update's last segment is there, so the columns of the others are kept, and the
    update is made on all of them. Segments that have ended together belong to the same update, even if it becomes
    larger than it should. Otherwise the next update would learn from steps of an older policy.

    :param agent: the agent: its settings (``segment_settings``), which may change while a run goes on, its episodes and
        its columns (``learning_columns``) are asked for each time
    :param asked: the network that is asked about segments before they become columns, if there is one
    :param replay: draws segments that are learned from once more after each new one
    :param needed_info: the columns of information, a number for each step, that segments of other processes must have
    :param rollout_columns: makes the columns of the steps of several actors; None if segments are learned from alone
    """

    def __init__(
        self,
        agent: Any,
        asked: NetworkWrapper | None = None,
        replay: SegmentReplay | None = None,
        needed_info: Sequence[str] = (),
        rollout_columns: Callable[[Batch], Columns] | None = None,
    ):
        self._agent = agent
        self._update_loop, self._clock = agent.update_loop, agent.clock
        self._asked, self._replay, self._needed_info = asked, replay, needed_info
        self._rollout_columns, self._rollout = rollout_columns, Rollout()
        self._received = ReceivedSegments()
        self._waiting: list[Columns] = []
        self._num_episodes_waiting = 0

    @property
    def _settings(self) -> SegmentSettings:
        settings: SegmentSettings = self._agent.segment_settings()
        return settings

    @property
    def _episodes(self) -> Sequence[SegmentedEpisode]:
        """The episodes in progress, one for each copy of the environment."""
        agent = self._agent
        return [agent.episode] if agent.parallel is None else agent.parallel.episodes

    @property
    def segment_steps(self) -> int | None:  # type: ignore[override]
        return self._settings.steps

    @property
    def rollout(self) -> Rollout | None:  # type: ignore[override]
        learns_together = self._settings.per_update is None and self._replay is None and self._agent.learns_by_rule
        return self._rollout if self._rollout_columns is not None and learns_together else None

    @property
    def needs_newest_policy(self) -> bool:
        return self._settings.received_per_update is None

    # what is learned from

    def is_due(self) -> bool:
        if len(self._rollout):
            return len(self._rollout) >= self._settings.steps * self._rollout.num_actors
        return self._settings.updates_targets or self._has_arrived() or bool(self._ended())

    def _has_arrived(self) -> bool:
        return len(self._received) > 0 and self.left_to_play()[0] == 0

    def left_to_play(self) -> tuple[int, PlayUnit]:
        """A segment by each process, or the segments or episodes that make one update."""
        if (segments := self._settings.received_per_update) is not None:
            return max(0, segments - len(self._received)), PlayUnit.SEGMENTS
        episodes = self._settings.per_update or 1
        if episodes > 1:
            return max(0, episodes - self._received.num_complete), PlayUnit.EPISODES
        return max(0, self.num_players - len(self._received)), PlayUnit.SEGMENTS

    def require_fitting(self, played: ExperienceChunk) -> None:
        info, rows = ({}, 0) if played.columns is None else (played.columns.info_columns, len(played.columns))
        for name in self._needed_info if rows else ():
            column: Any = info.get(name)
            if np.ma.is_masked(column) or np.shape(column) != (rows,) or not is_finite(column):
                raise CoachError(f"segments without a finite number '{name}' for each step")
        self._received.starts_of(played, self._agent.recurrent_state)

    def take_in(self, played: ExperienceChunk) -> None:
        self._received.add(played, self._received.starts_of(played, self._agent.recurrent_state))

    def _ended(self) -> list[int]:
        """The copies of the environment whose newest segment is to be learned from."""
        episodes, settings = self._episodes, self._settings
        steps = settings.steps
        new = [episode.buffer.length() - episode.num_learned for episode in episodes]
        all_end = settings.per_update is None and self._num_rows_waiting + sum(new) >= steps * len(episodes)
        return [
            copy
            for copy, (episode, count) in enumerate(zip(episodes, new))
            if count > 0 and (count >= steps or all_end or episode.buffer.is_complete)
        ]

    @property
    def _num_rows_waiting(self) -> int:
        return sum(len(columns["weights"]) for columns in self._waiting)

    def _played(self) -> list[Segment]:
        """The segments that have ended in this process."""
        found = []
        for copy in self._ended():
            episode = self._episodes[copy]
            buffer, first = episode.buffer, episode.num_learned
            if not buffer.is_complete:
                buffer.update_discounted_rewards(first)
            start = SegmentStart(first, buffer.is_complete, episode.state_before_segment)
            found.append(Segment(self._update_loop.filtered(Batch(buffer.transitions[first:])), start, copy))
        return found

    def _arrived(self) -> list[Segment]:
        """The segments that other processes have played. The network is asked about all that make one update at once.

        That is not done with ``_played``: networks may round otherwise for another number of rows.
        """
        segments = [
            Segment(self._update_loop.filtered(one), one.start)
            for one in self._received.take(self._settings.received_per_update)
        ]
        if self._asked is not None:
            for segment, outputs in zip(segments, outputs_of(self._asked, segments)):
                segment.outputs = outputs
        return segments

    # learning

    def learn(self, updates_left: int | None = None) -> float:
        if self._settings.updates_targets:
            self._update_loop.update_targets_if_due()
        last = math.inf if updates_left is None else self._clock.updates + updates_left
        if self._clock.updates >= last:
            return 0.0
        if self._rollout_columns is not None and len(self._rollout):
            batch = self._update_loop.filtered(self._rollout.take())
            return self._update_on(padded(self._rollout_columns(batch)))
        loss = self._learn_once(updates_left)
        # segments for several updates may have arrived together
        while not self.needs_newest_policy and self._has_arrived() and self._clock.updates < last:
            loss += self._learn_once(updates_left)
        return loss

    def _learn_once(self, updates_left: int | None) -> float:
        """Learn from what has ended here, or from what has arrived for one update."""
        has_arrived = self._has_arrived()
        segments = self._arrived() if has_arrived else self._played()
        if has_arrived and self._is_update(segments[0]):
            segments = segments[:updates_left]
        loss = sum(map(self._learn_from, segments), 0.0)
        return loss + self._update() if self._waiting and (has_arrived or self._is_update_full()) else loss

    def _is_update(self, segment: Segment) -> bool:
        """True if the segment makes an update by itself."""
        is_of_round = segment.copy is None and self._replay is None
        return not self._agent.learns_by_rule or (self._settings.per_update == 1 and not is_of_round)

    def _is_update_full(self) -> bool:
        if self._settings.per_update is None:
            return self._num_rows_waiting >= self._settings.steps * len(self._episodes)
        return self._num_episodes_waiting >= self._settings.per_update

    def _learn_from(self, segment: Segment) -> float:
        """Learn from a segment in its episode, or keep it for an update that it is a part of."""
        copy = segment.copy or 0
        episode = self._episodes[copy]
        if self._agent.parallel is not None:
            self._agent.parallel.enter(copy)
        if segment.copy is None:  # updates without a rule look at the present episode
            episode.num_learned, episode.state_before_segment = segment.start.first, segment.start.states
        if segment.start.is_complete:
            self._num_episodes_waiting += 1
            self._agent.note_returns(segment)
        loss = self._learn(segment)
        for batch in () if self._replay is None else self._replay.draw():
            loss += self._learn(Segment(self._update_loop.filtered(batch)))
        episode.num_learned = episode.buffer.length()
        episode.state_before_segment = dict(self._agent.recurrent_state)
        return loss

    def _learn(self, segment: Segment) -> float:
        if not self._agent.learns_by_rule:
            loss = self._update_loop.learn_from_batch(segment)
            self._update_loop.close_phase()
            return loss
        self._waiting.append(self._agent.learning_columns(segment))
        return self._update() if self._is_update(segment) else 0.0

    def _update(self) -> float:
        """Make an update on all segments that wait. :return: the loss"""
        segments, self._waiting, self._num_episodes_waiting = self._waiting, [], 0
        if self._settings.per_update in (None, 1):
            rows = sum(len(columns["weights"]) for columns in segments)
            segments = [{**one, "weights": np.full_like(one["weights"], 1.0 / rows)} for one in segments]
        how: dict[str, Any] = {}
        if self._agent.recurrent_state and len(segments) > 1:
            columns, how["sequence_length"] = padded_sequences(segments)
        else:
            columns = padded({name: np.concatenate([one[name] for one in segments]) for name in segments[0]})
        return self._update_on(columns, **how)

    def _update_on(self, columns: Columns, **how: Any) -> float:
        if self._settings.target_rates:
            how["target_rates"] = self._settings.target_rates
        result = self._update_loop.update(columns, **how)
        self._clock.updates += 1
        self._update_loop.close_phase()
        return float(sum(loss[0] for loss in result.losses.values()))

    # state

    def get_state(self) -> dict[str, Any]:
        return {
            "segments": {f"{i:04d}": columns for i, columns in enumerate(self._waiting)},
            "episodes_waiting": self._num_episodes_waiting,
            "received": self._received.get_state(),
            "rollout": self._rollout.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self._waiting = [state["segments"][name] for name in sorted(state["segments"])]
        before = state["counters"].get("_episodes_gathered", 0)  # in checkpoints of older versions
        self._num_episodes_waiting = state.get("episodes_waiting", before)
        self._received.set_state(state["received"])
        self._rollout.set_state(state.get("rollout", {}))  # older checkpoints have none
