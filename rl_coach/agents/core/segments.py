"""Learning from segments of episodes. An agent learns once from each segment, in the order of play."""

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
from rl_coach.utilities import plain_data
from rl_coach.utilities.sound_values import is_count, is_finite
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.agents.core.episode import SegmentedEpisode
    from rl_coach.agents.core.experience import ExperienceChunk

Columns = dict[str, np.ndarray]

_MOST_STEPS = 10_000_000  # largest number of steps in an episode: a larger number in a message is an error


@dataclass
class SegmentStart:
    """The place of a segment in its episode.

    :param first: number of steps of the episode before the segment
    :param is_complete: True if the episode ended with the segment, False if it continues
    :param states: the recurrent state before the first step of the segment; empty for zeros
    """

    first: int = 0
    is_complete: bool = True
    states: dict[str, np.ndarray] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The place as plain data and arrays."""
        return {"first": self.first, "is_complete": self.is_complete, "states": dict(self.states)}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> SegmentStart:
        """The place from the result of ``plain``. :raises CoachError: if the data do not describe a place"""
        try:
            states = {str(name): np.asarray(array, np.float32) for name, array in plain["states"].items()}
            first, is_complete = plain["first"], plain["is_complete"]
            if not is_count(first) or first > _MOST_STEPS:
                raise ValueError(f"it begins at step {first!r}")
            if not isinstance(is_complete, bool) or not all(map(is_finite, states.values())):
                raise ValueError("'is_complete' or 'states' is not valid")
            return cls(first, is_complete, states)
        except UNREADABLE as error:
            raise CoachError(f"a segment has no valid place in its episode: {error!r}") from error


class Segment(Batch):
    """Steps of one episode in order, and their place in the episode.

    :param batch: the steps
    :param start: the place of the steps in the episode; by default the steps are a whole episode
    :param copy: the number of the copy of the environment; None if another process played the steps

    :ivar outputs: a network's outputs for each state and for the last next state, [T + 1, ...] by name; None until a
        network has predicted them
    """

    def __init__(self, batch: Batch, start: SegmentStart | None = None, copy: int | None = None):
        super().__init__(batch)
        self.start = SegmentStart() if start is None else start
        self.copy = copy
        self.outputs: Columns | None = None

    @classmethod
    def of(cls, batch: Batch) -> Segment:
        """The batch as a segment. A batch that has no place counts as a whole episode."""
        return batch if isinstance(batch, cls) else cls(batch)

    def states_and_following(self, names: Iterable[str]) -> Columns:
        """[T + 1, ...] by name, the observations before each step and after the last step."""
        states, following = self.state_columns, self.next_state_columns
        return {name: np.concatenate([states[name], following[name][-1:]]) for name in names}

    def state_before(self, recurrent_state: Mapping[str, np.ndarray]) -> Columns:
        """[1, size] by name, the state of a recurrent network before the first step.

        :param recurrent_state: any state of this network, for names and shapes
        """
        return {name: self.start.states.get(name, np.zeros_like(state)) for name, state in recurrent_state.items()}

    def columns(self, input_names: Iterable[str], recurrent_state: Mapping[str, np.ndarray]) -> Columns:
        """The columns that rules for segments need. Each row has the weight 1 / T, so the loss is a mean over the rows.

        :param input_names: the observations that networks or the rule read
        :param recurrent_state: any recurrent state by the names of its parts; empty without a recurrent network
        """
        found = {f"states/{name}": self.state_columns[name] for name in input_names}
        found["actions"] = self.action_column
        found["weights"] = np.full(len(self), 1.0 / len(self), np.float32)
        for name, state in self.state_before(recurrent_state).items():
            # columns must have equal lengths, so each row repeats the state; only the first row's value is used
            found[f"states/{name}"] = np.repeat(state, len(self), axis=0)
        return found


def outputs_of(asked: NetworkWrapper, segments: Sequence[Segment]) -> list[Columns]:
    """[T + 1, ...] by name, the outputs for the states of each segment and the state after it. One call predicts
    for all segments. A recurrent network unrolls them side by side."""
    network = asked.online_network
    rows = [segment.states_and_following(asked.input_names) for segment in segments]
    lengths = [len(segment) + 1 for segment in segments]
    if network.recurrent_state:
        longest = max(lengths)
        # the last row fills up shorter segments: padding at the end cannot change the outputs of earlier steps
        places = [np.minimum(np.arange(longest), length - 1) for length in lengths]
        steps = {name: np.stack([one[name][at] for one, at in zip(rows, places)]) for name in rows[0]}
        before = [segment.state_before(network.recurrent_state) for segment in segments]
        states = {name: np.concatenate([one[name] for one in before]) for name in network.recurrent_state}
        found = network.unroll(steps, states)
        return [{name: found[name][i, :length] for name in network.output_names} for i, length in enumerate(lengths)]
    together = {name: np.concatenate([one[name] for one in rows]) for name in rows[0]}
    outputs = network.predict(together, squeeze_output=False)
    parts = [np.split(output, np.cumsum(lengths)[:-1]) for output in outputs]
    return [dict(zip(network.output_names, part)) for part in zip(*parts)]


class ReceivedSegments:
    """Segments from other processes in the order of arrival. They are kept until an update learns from them."""

    def __init__(self) -> None:
        self._store = TransitionStore(capacity=None)
        self._lengths: list[int] = []
        self._starts: list[SegmentStart] = []

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def num_complete(self) -> int:
        """The number of segments that end their episode."""
        return sum(start.is_complete for start in self._starts)

    def starts_of(self, played: ExperienceChunk, recurrent: Mapping[str, np.ndarray]) -> list[SegmentStart]:
        """The places of the segments in received experience.

        :param recurrent: a state of the agent's network; received states must have its names and shapes
        :raises CoachError: if a segment has no place, the segments do not cover the columns, or a recurrent state does
            not fit the network
        """
        rows = 0 if played.columns is None else len(played.columns)
        if len(played.segment_starts) != len(played.episode_lengths) or sum(played.episode_lengths) != rows:
            raise CoachError(
                f"the received segments have {sum(played.episode_lengths)} steps, but the experience has "
                f"{rows} rows and the starts of {len(played.segment_starts)} segments"
            )
        starts = [SegmentStart.of(one) for one in played.segment_starts]
        shapes = {name: np.shape(array) for name, array in recurrent.items()}
        for start in starts:
            found = {name: array.shape for name, array in start.states.items()}
            if found and found != shapes:
                raise CoachError(
                    f"the recurrent state of a segment has the shapes {found}, but the network has {shapes}"
                )
        return starts

    def add(self, played: ExperienceChunk, starts: list[SegmentStart]) -> None:
        """Keep received experience. :param starts: the places of its segments, from ``starts_of``"""
        if played.columns is not None:
            self._store.extend(played.columns)
            self._lengths += played.episode_lengths
            self._starts += starts

    def take(self, count: int | None = None) -> list[Segment]:
        """Remove and return the oldest segments. :param count: their number, None for all"""
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
        starts = plain_data.numbered(start.plain() for start in self._starts)
        return {"store": self._store.get_state(), "lengths": list(self._lengths), "starts": starts}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that ``get_state`` returned."""
        self.clear()
        self._store.set_state(state["store"])
        self._lengths = [int(length) for length in state["lengths"]]
        self._starts = [SegmentStart.of(start) for start in plain_data.in_order(state["starts"])]


class SegmentReplay:
    """Draws old segments from a memory after each new segment. The number of old segments has a Poisson distribution
    (Wang et al. 2017, algorithm 1).

    :param rng: draws the number of segments
    :param algorithm: ACER's settings, which may change between updates
    """

    def __init__(self, memory: Memory, rng: np.random.Generator, algorithm: Any):
        self._memory: Any = memory
        self._rng = rng
        self._algorithm = algorithm

    def draw(self) -> Iterator[Batch]:
        """Yield segments to learn from again. There are none before the memory has enough transitions."""
        algorithm = self._algorithm
        if self._memory.num_transitions_in_complete_episodes() > algorithm.num_transitions_to_start_replay:
            for _ in range(self._rng.poisson(algorithm.ratio_of_replay)):
                yield self._memory.sample(algorithm.num_steps_between_gradient_updates, True)


@dataclass(frozen=True)
class SegmentSettings:
    """Settings of updates on segments.

    ``per_update`` has three cases:

    - 1: each segment of this process makes an update. If other processes play, one segment of each process makes one
      update together: with separate updates, the segments after the first update would come from an older policy. Rules
      with replay correct for this, so there each segment makes an update.
    - More than 1: an update learns from this number of complete episodes. The gradient is the sum over all their
      segments.
    - None: an update learns from all steps since the last update, with a segment of each copy of the environment or of
      each process. The gradient is the mean over all steps.

    :param steps: the largest number of steps in a segment
    :param per_update: 1, a number of episodes, or None; see above
    :param received_per_update: number of segments from other processes, the oldest first, that make an update. They may
        come from older policies, for which the rule corrects. None if the rule needs steps of the newest policy
    :param updates_targets: True: target networks are updated when the clock says that they are due
    :param target_rates: a dict from a network to the rate of its target network: the share of the newest weights in an
        update
    :param epochs: number of gradient steps of an update, each on all of its steps
    """

    steps: int
    per_update: int | None = 1
    received_per_update: int | None = None
    updates_targets: bool = False
    target_rates: Mapping[str, float] = field(default_factory=dict)
    epochs: int = 1


class SegmentLearning(Learning):
    """Learns from the newest segment of each episode in progress, or from segments of other processes.

    The columns of segments are kept until the last segment of an update has arrived. Then one update learns from all of
    them. Segments that end at the same time belong to the same update, even if it becomes larger than the settings say.
    In separate updates, the second update would learn from steps of an older policy.

    :param agent: the agent; its ``segment_settings``, episodes and ``learning_columns`` are read at each use, because
        settings may change during a run
    :param asked: the network that predicts for received segments before their columns are made; None if no prediction
        is needed
    :param replay: draws old segments to learn from after each new segment; None without replay
    :param needed_info: names of info columns that received segments must have, with a finite number for each step
    :param rollout_columns: makes the columns of the steps of several actors; None if each segment is a separate batch
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

    # the segments of an update

    def is_due(self) -> bool:
        if len(self._rollout):
            return len(self._rollout) >= self._settings.steps * self._rollout.num_actors
        return self._settings.updates_targets or self._has_arrived() or bool(self._ended())

    def _has_arrived(self) -> bool:
        return len(self._received) > 0 and self.left_to_play()[0] == 0

    def left_to_play(self) -> tuple[int, PlayUnit]:
        """The number of segments or episodes that the next update still needs. By default an update needs one segment
        of each process."""
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
                raise CoachError(f"the experience has segments without a finite number '{name}' for each step")
        self._received.starts_of(played, self._agent.recurrent_state)

    def take_in(self, played: ExperienceChunk) -> None:
        self._received.add(played, self._received.starts_of(played, self._agent.recurrent_state))

    def _ended(self) -> list[int]:
        """The copies of the environment with a segment that has ended: it has enough steps, its episode is over, or
        all copies together have enough steps for an update."""
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
            # a complete episode has its returns already, an open one gets them here
            if not buffer.is_complete:
                buffer.update_discounted_rewards(first)
            start = SegmentStart(first, buffer.is_complete, episode.state_before_segment)
            found.append(Segment(self._update_loop.filtered(Batch(buffer.transitions[first:])), start, copy))
        return found

    def _arrived(self) -> list[Segment]:
        """The received segments of one update. One call predicts for all of them."""
        segments = [
            Segment(self._update_loop.filtered(one), one.start)
            for one in self._received.take(self._settings.received_per_update)
        ]
        # not those from ``_played``: the rounding of outputs could depend on the number of segments in the call
        if self._asked is not None:
            for segment, outputs in zip(segments, outputs_of(self._asked, segments)):
                segment.outputs = outputs
        return segments

    # learning

    def learn(self, updates_left: int | None = None) -> float:
        if self._settings.updates_targets:
            self._update_loop.update_targets_if_due()
        last = math.inf if updates_left is None else self._clock.updates + updates_left
        if self._clock.updates >= last:  # the run has made all its updates
            return 0.0
        if self._rollout_columns is not None and len(self._rollout):
            batch = self._update_loop.filtered(self._rollout.take())
            return self._update_on(padded(self._rollout_columns(batch)))
        loss = self._learn_once(updates_left)
        # a message may hold the segments of several updates
        while not self.needs_newest_policy and self._has_arrived() and self._clock.updates < last:
            loss += self._learn_once(updates_left)
        return loss

    def _learn_once(self, updates_left: int | None) -> float:
        """Learn from the received segments of one update, or from the segments that have ended in this process."""
        has_arrived = self._has_arrived()
        segments = self._arrived() if has_arrived else self._played()
        if has_arrived and self._is_update(segments[0]):
            segments = segments[:updates_left]
        loss = sum(map(self._learn_from, segments), 0.0)
        return loss + self._update() if self._waiting and (has_arrived or self._is_update_full()) else loss

    def _is_update(self, segment: Segment) -> bool:
        """True if the segment alone makes an update."""
        is_of_round = segment.copy is None and self._replay is None
        return not self._agent.learns_by_rule or (self._settings.per_update == 1 and not is_of_round)

    def _is_update_full(self) -> bool:
        if self._settings.per_update is None:
            return self._num_rows_waiting >= self._settings.steps * len(self._episodes)
        return self._num_episodes_waiting >= self._settings.per_update

    def _learn_from(self, segment: Segment) -> float:
        """Learn from a segment, or keep it for an update on several segments."""
        copy = segment.copy or 0
        episode = self._episodes[copy]
        if self._agent.parallel is not None:
            self._agent.parallel.enter(copy)
        if segment.copy is None:  # an update without a rule reads its place from the present episode
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
        """Make one update on all waiting segments. :return: the loss"""
        segments, self._waiting, self._num_episodes_waiting = self._waiting, [], 0
        if self._settings.per_update in (None, 1):
            # a mean over all steps of the update, instead of a sum of the means of its segments
            rows = sum(len(columns["weights"]) for columns in segments)
            segments = [{**one, "weights": np.full_like(one["weights"], 1.0 / rows)} for one in segments]
        how: dict[str, Any] = {}
        if self._agent.recurrent_state and len(segments) > 1:
            # the network unrolls the segments side by side, so all need one length
            columns, how["sequence_length"] = padded_sequences(segments)
        else:
            columns = padded({name: np.concatenate([one[name] for one in segments]) for name in segments[0]})
        return self._update_on(columns, **how)

    def _update_on(self, columns: Columns, **how: Any) -> float:
        if self._settings.target_rates:
            how["target_rates"] = self._settings.target_rates
        if (epochs := self._settings.epochs) > 1:
            # an update learns from all rows in each epoch, so the order of the rows does not matter
            rows = np.arange(len(columns["weights"]), dtype=np.int32)
            how |= {"indices": np.tile(rows, (epochs, 1)), "num_updates": epochs, "training_step": self._clock.updates}
            self._clock.minibatches += epochs
        result = self._update_loop.update(columns, **how)
        self._clock.updates += 1
        self._update_loop.close_phase()
        return float(sum(loss.mean() for loss in result.losses.values()))

    # state

    def get_state(self) -> dict[str, Any]:
        return {
            "segments": plain_data.numbered(self._waiting),
            "episodes_waiting": self._num_episodes_waiting,
            "received": self._received.get_state(),
            "rollout": self._rollout.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self._waiting = plain_data.in_order(state["segments"])
        before = state["counters"].get("_episodes_gathered", 0)  # in checkpoints of older versions
        self._num_episodes_waiting = state.get("episodes_waiting", before)
        self._received.set_state(state["received"])
        self._rollout.set_state(state.get("rollout", {}))  # older checkpoints have none
