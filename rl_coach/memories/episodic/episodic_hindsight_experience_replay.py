"""Hindsight experience replay (Andrychowicz et al. 2017)."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from rl_coach.core_types import Batch, Episode, Transition
from rl_coach.memories.columns import uniform_rows
from rl_coach.memories.episodic.episodic_experience_replay import (
    EpisodicExperienceReplay,
    EpisodicExperienceReplayParameters,
)
from rl_coach.memories.memory import OVERRIDES, MemoryGranularity, episode_ends
from rl_coach.spaces import GoalsSpace
from rl_coach.utilities.requirements import check_arguments, instance, member, whole
from rl_coach.utils import CoachError

_GOAL = "desired_goal"


class HindsightGoalSelectionMethod(Enum):
    """The source of the goals for relabelled copies (section 4.5)."""

    Future = 0
    Final = 1
    Episode = 2
    Random = 3


class EpisodicHindsightExperienceReplayParameters(EpisodicExperienceReplayParameters):
    """Parameters of hindsight replay. All three attributes must be set.

    :ivar hindsight_transitions_per_regular_transition: number of relabelled copies of each transition; 0 for no copies
    :ivar hindsight_goal_selection_method: source of the copies' goals
    :ivar goals_space: defines the goal that a state reaches, and the reward for it
    """

    constraints = {
        "hindsight_transitions_per_regular_transition": whole(0),
        "hindsight_goal_selection_method": member(HindsightGoalSelectionMethod),
        "goals_space": instance(GoalsSpace, "a GoalsSpace"),
    }
    path = "rl_coach.memories.episodic.episodic_hindsight_experience_replay:EpisodicHindsightExperienceReplay"

    def __init__(self) -> None:
        super().__init__()
        self.hindsight_transitions_per_regular_transition: int | None = None
        self.hindsight_goal_selection_method: HindsightGoalSelectionMethod | None = None
        self.goals_space: GoalsSpace | None = None


class EpisodicHindsightExperienceReplay(EpisodicExperienceReplay):
    """A memory of episodes that adds relabelled copies of transitions: copies with goals that were really reached.

    A copy has another ``desired_goal`` in state and next state, and the reward of ``goals_space`` for this goal. It has
    ``game_over`` and ``terminated`` if it reaches the goal. The new goal is the goal that one of these next states
    reaches:

    - *Future*: the next state of this transition or of a later transition of the episode
    - *Final*: the next state of the last transition of the episode
    - *Episode*: any next state of the episode
    - *Random*: any next state in the memory

    With *Future*, the last transition gets no copy, as in Coach 1: an episode of 10 transitions with 4 copies of each
    is stored as 46 transitions. Copies belong to the same episode as the originals, and have no return.

    :param max_size: ``(MemoryGranularity, number)``; copies are counted. The other parameters are the same as in
        ``EpisodicHindsightExperienceReplayParameters``
    """

    relabels = True
    samples_sequences = False  # because the recurrent state belongs to the original goal, not to the goal of a copy
    max_n_step = 1  # copies have the reward of a single step

    def __init__(
        self,
        max_size: tuple[MemoryGranularity, int],
        hindsight_transitions_per_regular_transition: int,
        hindsight_goal_selection_method: HindsightGoalSelectionMethod,
        goals_space: GoalsSpace,
    ):
        super().__init__(max_size)
        check_arguments(
            EpisodicHindsightExperienceReplayParameters,
            "memory",
            hindsight_transitions_per_regular_transition=hindsight_transitions_per_regular_transition,
            hindsight_goal_selection_method=hindsight_goal_selection_method,
            goals_space=goals_space,
        )
        self.hindsight_transitions_per_regular_transition = hindsight_transitions_per_regular_transition
        self.hindsight_goal_selection_method = hindsight_goal_selection_method
        self.goals_space = goals_space
        self.needed_observations = (_GOAL, goals_space.goal_name)

    def store(self, transition: Transition) -> None:
        """Refuse single transitions. :raises CoachError: always, because hindsight replay needs whole episodes"""
        raise CoachError(f"{type(self).__name__} stores only whole episodes: call store_episode")

    def store_episode(self, episode: Episode, lock: bool = True) -> None:
        """Store a complete episode and its relabelled copies.

        :raises CoachError: if a state has no ``desired_goal``, if this goal has another shape than the goals that
            states reach, or if the copies do not fit into the memory
        """
        # All checks come first, so that an episode is stored completely or not at all.
        for transition in episode.transitions:
            self._check_goal(transition.state or {}, transition.next_state or {})
        copied = self._copied(len(episode))
        self._check_room(len(copied))
        super().store_episode(episode)
        if len(copied):
            self._store_hindsight(episode.transitions, copied)

    def check_columns(self, chunk: Batch, episode_lengths: np.ndarray | None = None) -> None:
        super().check_columns(chunk, episode_lengths)
        ends = episode_ends(chunk, episode_lengths)
        if len(chunk) and (not len(ends) or ends[-1] < len(chunk)):
            raise CoachError(f"{type(self).__name__} stores only whole episodes, but the chunk's last episode is open")
        if len(chunk):
            self._check_goal(*_first_states(chunk))
            self._check_room(len(self._copied(int(np.diff(ends, prepend=0).max()))))

    def _check_goal(self, state: dict[str, Any], next_state: dict[str, Any]) -> None:
        if _GOAL not in state or self.goals_space.goal_name not in state:
            raise CoachError(
                f"hindsight needs '{_GOAL}' and '{self.goals_space.goal_name}' in the state; it has only {list(state)}"
            )
        shape, reached = np.shape(state[_GOAL]), self.goals_space.goal_from_state(next_state)
        if np.shape(reached) != shape and np.size(reached) != np.prod(shape):
            raise CoachError(
                f"'{_GOAL}' has the shape {shape}, but the observation '{self.goals_space.goal_name}' has the shape "
                f"{np.shape(reached)}: set goal_name of memory.goals_space to an observation of the same shape"
            )

    def _check_room(self, copies: int) -> None:
        granularity, size = self.max_size
        if granularity == MemoryGranularity.Transitions and 0 < size < copies:
            raise CoachError(f"{copies} relabelled transitions of one episode do not fit into memory.max_size ({size})")

    def _copied(self, length: int) -> np.ndarray:
        """[C], the index of the original of each copy, in an episode of ``length`` transitions."""
        has_future = self.hindsight_goal_selection_method == HindsightGoalSelectionMethod.Future
        sources = np.arange(length - 1 if has_future and length else length)
        return np.repeat(sources, self.hindsight_transitions_per_regular_transition)

    def _store_hindsight(self, transitions: list[Transition], copied: np.ndarray) -> None:
        goals = self._goals(transitions, copied)
        outcomes = [self._outcome(goal, transitions[index]) for goal, index in zip(goals, copied.tolist())]
        rewards, are_reached = zip(*outcomes)
        # The copies become a part of the last episode. If it is too large for the memory, it loses its oldest
        # transitions.
        self._reopen_last_episode()
        self._store.make_room(len(copied))
        first = self._store.length - len(transitions)
        kept = copied + first >= 0
        rows = self._store.repeat(copied[kept] + first)
        self._relabel(rows, goals[kept], np.asarray(rewards)[kept], np.asarray(are_reached)[kept])
        self._close_again()

    def _reopen_last_episode(self) -> None:
        self._num_complete -= self._lengths.pop()

    def _close_again(self) -> None:
        """Complete the reopened episode. The added transitions get no return."""
        self._lengths.append(self._num_open())
        self._num_complete = self._store.length

    def _relabel(self, rows: np.ndarray, goals: np.ndarray, rewards: np.ndarray, are_reached: np.ndarray) -> None:
        store = self._store
        store.observations[_GOAL].replace(rows, goals)
        store.rewards.put_many(rows, rewards)
        store.game_overs[rows] = store.terminateds[rows] = are_reached
        # The return of the original does not hold for another goal.
        store.put_returns(rows, None)

    def _sample_goal(self, episode_transitions: list[Transition], transition_index: int) -> np.ndarray:
        """Choose a goal for a copy of a transition. A subclass may override this method.

        :param episode_transitions: the transitions of the episode, in order
        :param transition_index: the index of the transition
        """
        return self._draw_goals(episode_transitions, np.asarray([transition_index]))[0]

    def _goals(self, transitions: list[Transition], copied: np.ndarray) -> np.ndarray:
        """[C, ...], a goal for each copy. :param copied: [C], the index of the original of each copy"""
        if OVERRIDES.is_replaced(self, "_goals"):
            chosen = np.asarray([self._sample_goal(transitions, index) for index in copied.tolist()])
            return chosen.reshape(-1, *np.shape(transitions[0].state[_GOAL]))  # type: ignore[index]
        return self._draw_goals(transitions, copied)

    def _draw_goals(self, transitions: list[Transition], copied: np.ndarray) -> np.ndarray:
        method, length = self.hindsight_goal_selection_method, len(transitions)
        if method == HindsightGoalSelectionMethod.Random:
            reached = self._reached_anywhere(len(copied))
        else:
            # Coach 1 reads the state of the following transition instead of the next state; the results are the same.
            states: list[Any] = [*(t.state for t in transitions[1:]), transitions[-1].next_state]
            reached_here = np.asarray([self.goals_space.goal_from_state(state) for state in states])
            reached = reached_here[self._indices_of_goals(copied, length)]
        return reached.reshape(-1, *np.shape(transitions[0].state[_GOAL]))  # type: ignore[index]

    def _indices_of_goals(self, copied: np.ndarray, length: int) -> np.ndarray:
        if self.hindsight_goal_selection_method == HindsightGoalSelectionMethod.Final:
            return np.full_like(copied, length - 1)
        if self.hindsight_goal_selection_method == HindsightGoalSelectionMethod.Episode:
            return uniform_rows(self.rng, length, len(copied))
        return copied + (self.rng.random(len(copied)) * (length - copied)).astype(np.int64)

    def _reached_anywhere(self, count: int) -> np.ndarray:
        columns = self._store.batch_at(uniform_rows(self.rng, self._store.length, count)).next_state_columns
        states = ({name: column[row] for name, column in columns.items()} for row in range(count))
        return np.asarray([self.goals_space.goal_from_state(state) for state in states])

    def _outcome(self, goal: np.ndarray, transition: Transition) -> tuple[float, bool]:
        next_state = {**transition.next_state, _GOAL: goal}  # type: ignore[dict-item]
        return self.goals_space.get_reward_for_goal_and_state(goal, next_state)


def _first_states(chunk: Batch) -> list[dict[str, np.ndarray]]:
    """The state and the next state of the first transition of a chunk."""
    return [
        {name: np.asarray(column[:1])[0] for name, column in columns.items()}
        for columns in (chunk.state_columns, chunk.next_state_columns)
    ]
