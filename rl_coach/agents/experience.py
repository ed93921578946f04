"""The way of an agent's transitions into its memory: one by one, as n-step transitions, or as whole episodes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rl_coach.agents.episode import EpisodeInProgress, EpisodeReport, new_buffer
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import Batch, CsvDataset, Episode, PickledReplayBuffer, Transition
from rl_coach.filters.filter import InputFilter
from rl_coach.memories.memory import Memory
from rl_coach.utils import CoachError


@dataclass
class Played:
    """What another process has played for an agent, as it arrives.

    :param steps: environment steps, in order
    :param episode_lengths: the number of those in each episode; the last one may go on in what arrives next
    :param columns: the transitions [N, ...], None where the episodes are of no use to learning
    :param reports: the episodes that ended
    :param filters: by the agent's attribute, what its filters' statistics have gathered since the last time
    """

    steps: int
    episode_lengths: list[int] = field(default_factory=list)
    columns: Batch | None = None
    reports: list[EpisodeReport] = field(default_factory=list)
    filters: dict[str, Any] = field(default_factory=dict)


class Experience:
    """Turns the steps of an episode into what a memory keeps.

    :param memory: the agent's
    :param algorithm: the agent's, for returns and n-step rewards
    """

    def __init__(self, memory: Memory, algorithm: AlgorithmParameters):
        self._memory = memory
        self._algorithm = algorithm
        self.stores_whole_episodes = (
            memory.stores_episodes or algorithm.store_transitions_only_when_episodes_are_terminated
        )
        self.remembers_action_info = getattr(algorithm, "bootstrap_total_return_from_old_policy", False)
        if algorithm.n_step != -1 and algorithm.n_step < 1:
            raise CoachError(f"algorithm.n_step is {algorithm.n_step}: it counts steps from 1 on, or is -1")

    def load(self, recorded: Any, input_filter: InputFilter) -> None:
        """Fill the memory with recorded transitions.

        :param recorded: a ``CsvDataset``, a ``PickledReplayBuffer``, or the path of what a memory's ``save`` wrote
        """
        memory: Any = self._memory
        if isinstance(recorded, CsvDataset):
            memory.load_csv(recorded, input_filter)
        elif isinstance(recorded, PickledReplayBuffer):
            memory.load_pickled(recorded.filepath)
        else:
            memory.load(recorded)

    def add(self, transition: Transition, episode: EpisodeInProgress) -> None:
        """Take in one step."""
        if self.remembers_action_info:
            self._add_action_info(transition, episode)
        buffer = episode.buffer
        buffer.insert(transition)
        if self.stores_whole_episodes:
            return
        if self._algorithm.n_step <= 1:
            self._memory.store(transition)
        elif len(buffer.transitions) - episode.num_stored >= self._algorithm.n_step:
            self._memory.store(buffer.n_step_transition(episode.num_stored))
            episode.num_stored += 1

    @staticmethod
    def _add_action_info(transition: Transition, episode: EpisodeInProgress) -> None:
        """Put what the agent knew when it acted beside the transition; what it did not know takes no room."""
        action_info = episode.last_action_info
        assert action_info is not None
        if np.ndim(action_info.all_action_probabilities):
            transition.info["all_action_probabilities"] = action_info.all_action_probabilities
        transition.info["action_value"] = action_info.action_value
        transition.info["state_value"] = action_info.state_value
        transition.info["max_action_value"] = action_info.max_action_value

    def finish(self, episode: EpisodeInProgress) -> float | None:
        """Store what is left of an episode that has ended.

        :return: its discounted return; None if nothing was played since it was last cut
        """
        buffer = episode.buffer
        if not self.stores_whole_episodes and self._algorithm.n_step > 1:
            for row in range(episode.num_stored, buffer.length()):
                self._memory.store(buffer.n_step_transition(row))
            episode.num_stored = buffer.length()
        self._compute_returns(buffer)
        total = None
        if not buffer.is_empty():
            first = buffer.transitions[0].n_step_discounted_rewards
            total = episode.return_before + episode.discount_before * first
        self._store_episode(buffer)
        return total

    def cut(self, episode: EpisodeInProgress) -> None:
        """Store what there is of an episode as an episode of its own, which was truncated; the rest becomes another
        one. For agents that learn before the episodes in all copies of the environment end."""
        buffer = episode.buffer
        if buffer.is_empty() or buffer.is_complete:
            return
        last = copy.copy(buffer.transitions[-1])
        last.game_over = True
        buffer.transitions[-1] = last
        self._compute_returns(buffer)
        episode.return_before += episode.discount_before * buffer.transitions[0].n_step_discounted_rewards
        episode.discount_before *= self._algorithm.discount ** buffer.length()
        self._store_episode(buffer)
        episode.buffer = new_buffer(self._algorithm)

    def _compute_returns(self, buffer: Episode) -> None:
        if self._algorithm.override_episode_rewards_with_the_last_transition_reward and not buffer.is_empty():
            last = buffer.transitions[-1].reward
            for transition in buffer.transitions:
                transition.reward = last
        # returns first: once rewards are n-step sums they would be summed a second time
        buffer.update_discounted_rewards()
        if self.stores_whole_episodes:
            buffer.update_transitions_rewards_and_bootstrap_data()

    def _store_episode(self, buffer: Episode) -> None:
        if self._memory.stores_episodes:
            self._memory.store_episode(buffer)
        elif self.stores_whole_episodes:
            for transition in buffer.transitions:
                self._memory.store(transition)
