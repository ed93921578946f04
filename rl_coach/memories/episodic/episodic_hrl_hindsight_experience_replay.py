"""Hindsight replay for the upper levels of a hierarchy (Levy et al. 2019, hierarchical actor-critic)."""

from __future__ import annotations

import copy

import numpy as np

from rl_coach.core_types import Batch, Episode, Transition
from rl_coach.memories.episodic.episodic_hindsight_experience_replay import (
    EpisodicHindsightExperienceReplay,
    EpisodicHindsightExperienceReplayParameters,
)
from rl_coach.utils import CoachError

PENALTY = "penalty"
"""Key in a transition's info. The value is the penalty if the level below was tested and missed the subgoal, otherwise
0.
"""


class EpisodicHRLHindsightExperienceReplayParameters(EpisodicHindsightExperienceReplayParameters):
    """Parameters of hindsight replay for an upper level of a hierarchy. The actions of this level are goals for the
    level below.
    """

    path = "rl_coach.memories.episodic.episodic_hrl_hindsight_experience_replay:EpisodicHRLHindsightExperienceReplay"


class EpisodicHRLHindsightExperienceReplay(EpisodicHindsightExperienceReplay):
    """Hindsight replay for an upper level of a hierarchy. The actions of this level are goals for the level below.

    Each action is replaced by the goal that the level below reached (hindsight action transitions, section 4.2.1).
    This level then learns as if the levels below were already optimal. The goals of this level are relabelled as in
    ``EpisodicHindsightExperienceReplay``.

    If the level below was tested on a subgoal and missed it, the transition's info has a ``penalty`` below 0. This
    transition is stored a second time, with the original action, with the penalty as reward, and as terminated (subgoal
    testing transitions, section 4.2.3). So this level learns to set goals that the level below can reach in time.
    """

    stores_goals_as_actions = True

    def store_episode(self, episode: Episode, lock: bool = True) -> None:
        """Store a complete episode with the reached subgoals as actions. ``episode`` itself does not change.

        :raises CoachError: if an action has another shape than the goals that states reach
        """
        with_reached_actions = copy.copy(episode)
        with_reached_actions.transitions = [self._with_reached_action(t) for t in episode.transitions]
        super().store_episode(with_reached_actions)
        if penalized := [self._penalized(t) for t in episode.transitions if t.info.get(PENALTY)]:
            self._reopen_last_episode()
            for transition in penalized:
                self._store.append(transition)
            self._close_again()

    @staticmethod
    def _penalized(transition: Transition) -> Transition:
        changed = copy.copy(transition)
        changed.reward, changed.game_over, changed.terminated = transition.info[PENALTY], True, True
        # The episode's return does not contain the penalty.
        changed._n_step_discounted_rewards = None
        return changed

    def _with_reached_action(self, transition: Transition) -> Transition:
        self._check_goal(transition.state or {}, transition.next_state or {})
        reached = np.asarray(transition.next_state[self.goals_space.goal_name])  # type: ignore[index]
        self._check_action(np.shape(transition.action), reached.shape)  # type: ignore[arg-type]
        changed = copy.copy(transition)
        changed.action = reached
        return changed

    def check_columns(self, chunk: Batch, episode_lengths: np.ndarray | None = None) -> None:
        super().check_columns(chunk, episode_lengths)
        reached = np.asarray(chunk.next_state_columns[self.goals_space.goal_name])
        self._check_action(chunk.action_column.shape[1:], reached.shape[1:])

    def _check_action(self, action: tuple[int, ...], reached: tuple[int, ...]) -> None:
        if action != reached:
            raise CoachError(
                f"an action of shape {action} cannot be the goal that was reached, "
                f"'{self.goals_space.goal_name}' of shape {reached}"
            )
