"""Storage of an agent's transitions in its memory: one by one, as n-step transitions, or as whole episodes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from rl_coach.agents.core.episode import EpisodeInProgress, EpisodeReport, new_buffer
from rl_coach.agents.core.recorded_values import require_recorded
from rl_coach.agents.core.rollout import Rollout
from rl_coach.agents.core.sequences import stored_state
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import ActionInfo, Batch, CsvDataset, Episode, PickledReplayBuffer, Transition, n_step_returns
from rl_coach.filters.filter import InputFilter, OutputFilter
from rl_coach.filters.recorded_episodes import filter_recorded
from rl_coach.memories import data_set_files
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import Memory, receives_episodes
from rl_coach.spaces import ActionSpace, DiscreteActionSpace, MultiDiscreteActionSpace, SpacesDefinition
from rl_coach.utilities.sequences import force_list
from rl_coach.utils import CoachError

_MOST_STEPS_AHEAD = 256


def stored_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of an environment's info, for a transition. The copy has no ``weight``: memories give importance weights
    to sampled transitions under this name.
    """
    return {name: value for name, value in info.items() if name != "weight"}


@dataclass
class EnvironmentProgress:
    """Steps and episodes of an environment since the last report to the trainer.

    :param steps: steps of the environment, of all agents together
    :param rewards: the reward that the run reports for each episode that ended in these steps
    """

    steps: int = 0
    rewards: list[float] = field(default_factory=list)


@dataclass
class ExperienceChunk:
    """Steps that another process has played for an agent, in one message.

    :param steps: number of environment steps
    :param episode_lengths: number of these steps in each episode, in order; the last episode may continue in the next
        message
    :param columns: the transitions [N, ...]; None if the steps are only counted
    :param reports: the episodes that ended
    :param filters: statistics that the agent's filters have gathered since the last message; the keys are the agent's
        attributes with the filters
    :param segment_starts: for each episode, the data besides transitions that the agent needs to learn from it; empty
        if the agent needs none
    :param priorities: [N] the first priorities of the transitions; None if the playing process sends none
    :param environment: progress of the environment since the last message, of all agents together
    """

    steps: int
    episode_lengths: list[int] = field(default_factory=list)
    columns: Batch | None = None
    reports: list[EpisodeReport] = field(default_factory=list)
    filters: dict[str, Any] = field(default_factory=dict)
    segment_starts: list[dict[str, Any]] = field(default_factory=list)
    priorities: np.ndarray | None = None
    environment: EnvironmentProgress = field(default_factory=EnvironmentProgress)


class Experience:
    """Stores the steps of episodes in a memory, in the form that the algorithm needs.

    :param algorithm: the settings for the form: single transitions, n-step transitions or whole episodes

    :ivar most_steps_ahead: a message of another process may count at most this many steps more than it has transitions.
        The transitions of these steps follow in later messages
    :ivar remembers_action_info: True if the probabilities and values from the choice of the action are stored with each
        transition
    :ivar segment_starts: for each stored episode, the data besides transitions that the trainer needs to learn from it;
        None if this process learns
    :ivar prioritize: computes the first priorities [N] of transitions; None if the memory sets them, or if the process
        computes them for whole chunks
    :ivar rollout: receives the steps of all actors, for an agent that learns once from each step; None if the memory
        receives them
    """

    def __init__(self, memory: Memory, algorithm: AlgorithmParameters):
        self._memory: Any = memory
        self._algorithm = algorithm
        self.segment_starts: list[dict[str, Any]] | None = None
        self.prioritize: Callable[[Batch], np.ndarray] | None = None
        self.most_steps_ahead = _MOST_STEPS_AHEAD
        self.rollout: Rollout | None = None
        self.remembers_action_info = getattr(algorithm, "bootstrap_total_return_from_old_policy", False)

    @cached_property
    def _receives_episodes(self) -> bool:
        """True if the memory stores whole episodes. Decided once, because each step reads it."""
        return receives_episodes(self._memory)

    @property
    def _stores_whole_episodes(self) -> bool:
        algorithm = self._algorithm
        return (
            algorithm.store_transitions_only_when_episodes_are_terminated
            or algorithm.override_episode_rewards_with_the_last_transition_reward
            or self._receives_episodes
        )

    def load(
        self, recorded: Any, input_filter: InputFilter, output_filter: OutputFilter, spaces: SpacesDefinition
    ) -> None:
        """Fill the memory with recorded transitions. If the memory stores episodes, their returns are computed with
        this agent's discount.

        :param recorded: a ``CsvDataset``, a ``PickledReplayBuffer``, ``minari:ID``, or the path of a CSV file
            (``.csv``), of a pickled buffer (``.p``, ``.pkl``) or of a file from a memory's ``save``; or a list of them
        :param input_filter: applied to values that were recorded before filtering
        :param output_filter: converts the environment's actions (in Minari's data sets) to the agent's actions
        :param spaces: the spaces of stored transitions
        :raises CoachError: if the data do not exist, or a value does not belong to its space
        """
        for source in force_list(recorded):
            self._load(data_set_files.named(source), input_filter, output_filter, spaces)
        if isinstance(self._memory, EpisodicExperienceReplay):
            self._memory.compute_returns(self._algorithm.discount, self._algorithm.n_step)

    def _load(
        self, recorded: Any, input_filter: InputFilter, output_filter: OutputFilter, spaces: SpacesDefinition
    ) -> None:
        memory = self._memory
        before = memory.num_removed + memory.num_transitions()
        if isinstance(recorded, CsvDataset):
            memory.load_csv(recorded, input_filter)
        elif isinstance(recorded, PickledReplayBuffer):
            memory.load_pickled(recorded.filepath)
        elif str(recorded).startswith(data_set_files.MINARI):
            found = data_set_files.read(recorded)
            episodes = list(found.episodes())
            combinations = _combinations_as_parts(found.spaces, spaces.action)
            transition: Any
            for transition in (transition for episode in episodes for transition in episode.transitions):
                if combinations is not None:
                    _split(transition, combinations, spaces.action_mask_name)
                if found.is_raw:
                    transition.action = output_filter.reverse_filter(ActionInfo(transition.action)).action
            self.add_episodes(episodes, input_filter if found.is_raw else None)
        else:
            memory.load(recorded)
        require_recorded(memory, spaces, getattr(recorded, "filepath", recorded), before)

    def add_episodes(self, episodes: Sequence[Episode], input_filter: InputFilter | None) -> None:
        """Store complete episodes that another agent has played. The returns use this agent's discount and settings.

        :param input_filter: filters the episodes, with statistics from all of them; None if the episodes are already
            filtered
        """
        played = [episode.transitions for episode in episodes]
        for transitions in played if input_filter is None else filter_recorded(played, input_filter):
            buffer = new_buffer(self._algorithm)
            for transition in transitions:
                buffer.insert(transition)
            self._end(buffer)
            self._compute_returns(buffer)
            self._memory.store_episode(buffer)

    def add(self, transition: Transition, episode: EpisodeInProgress) -> None:
        """Add one step to the episode. A memory of single transitions also stores the transition that is complete."""
        if self.remembers_action_info:
            self._add_action_info(transition, episode)
        for name, state in episode.acted_from.items():
            # Learning starts a sequence from the state that acted, not from zeros.
            transition.info[stored_state(name)] = state[0]
        buffer = episode.buffer
        buffer.transitions.append(transition)
        algorithm = self._algorithm
        if self._stores_whole_episodes:
            return
        if algorithm.n_step > 1:
            # the oldest transition waits until the rewards of the next n - 1 steps are known
            if len(buffer.transitions) - episode.num_stored < algorithm.n_step:
                return
            transition = buffer.n_step_transition(episode.num_stored)
            episode.num_stored += 1
        self._memory.store(transition)
        if self.prioritize is not None:
            self._memory.set_first_priorities(self.prioritize(Batch([transition])))

    def why_not_in_columns(self) -> str | None:
        """The reason why ``add_columns`` cannot store the steps of several actors at once; None if it can."""
        if self.remembers_action_info or self.prioritize is not None or self.segment_starts is not None:
            return "more is stored than the transitions"
        if self._memory.memory_backend is not None:
            return "the memory sends what it stores"
        if self.rollout is not None:
            return None
        if self._stores_whole_episodes:
            return "the memory stores whole episodes"
        return "a transition sums several rewards" if self._algorithm.n_step > 1 else None

    def add_columns(self, transitions: Batch, acting: np.ndarray | None = None) -> None:
        """Store one step of all actors.

        :param transitions: [N, ...], a transition of each actor
        :param acting: [K] the actors that acted, None for all; the other rows are ignored
        """
        if self.rollout is not None:
            self.rollout.add(transitions, acting)
        else:
            self._memory.store_columns(transitions if acting is None else transitions[acting])

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of stored transitions and episodes, by the names of their CSV columns."""
        transitions, episodes = self._memory.num_transitions(), self._memory.length()
        if self.rollout is not None:
            transitions, episodes = transitions + len(self.rollout), episodes + self.rollout.num_episodes
        return {"ER #Transitions": transitions, "ER #Episodes": episodes}

    def _store(self, transitions: list[Transition]) -> None:
        for transition in transitions:
            self._memory.store(transition)
        if self.prioritize is not None and transitions:
            self._memory.set_first_priorities(self.prioritize(Batch(transitions)))

    @staticmethod
    def _add_action_info(transition: Transition, episode: EpisodeInProgress) -> None:
        """Add the action's probabilities and values to the transition's info. Missing values get no entry."""
        action_info = episode.last_action_info
        assert action_info is not None
        if np.ndim(action_info.all_action_probabilities):
            transition.info["all_action_probabilities"] = action_info.all_action_probabilities
        for name in ("action_value", "state_value", "max_action_value"):
            if (value := getattr(action_info, name)) is not None:
                transition.info[name] = value

    def finish(self, episode: EpisodeInProgress) -> float | None:
        """Store the remaining steps of an episode that has ended. If a level above has ended it, the episode counts as
        truncated.

        :return: the discounted return of the whole episode; None if there was no step since the last cut
        """
        buffer = episode.buffer
        self._end(buffer)
        if not self._stores_whole_episodes and self._algorithm.n_step > 1:
            # The last n - 1 transitions have fewer than n rewards, because the episode has ended.
            self._store([buffer.n_step_transition(row) for row in range(episode.num_stored, buffer.length())])
            episode.num_stored = buffer.length()
        is_empty = buffer.is_empty()
        total = episode.return_before + episode.discount_before * self._compute_returns(buffer)
        self._store_episode(episode)
        return None if is_empty else total

    def require_parts_of_episodes(self) -> None:
        """Check that the agent can learn from an episode that goes on.

        :raises CoachError: if the rewards are known only at the end of the episode
        """
        if self._algorithm.override_episode_rewards_with_the_last_transition_reward:
            raise CoachError(
                "override_episode_rewards_with_the_last_transition_reward needs the end of each episode, but the agent "
                "learns from episodes in progress: set it to False"
            )

    def cut(self, episode: EpisodeInProgress, recurrent_state: Mapping[str, np.ndarray]) -> None:
        """Store the steps so far as a truncated episode; later steps form a separate episode. Agents that learn before
        all episodes have ended use this method.

        :param recurrent_state: the present state of the agent's recurrent network; empty without such a network
        """
        buffer = episode.buffer
        if buffer.is_empty() or buffer.is_complete:
            return
        self._end(buffer)
        episode.return_before += episode.discount_before * self._compute_returns(buffer)
        # The CSV has the return of the whole episode, although the agent learns from it in parts.
        episode.discount_before *= self._algorithm.discount ** buffer.length()
        self._store_episode(episode)
        episode.begin_buffer(self._algorithm, recurrent_state)

    @staticmethod
    def _end(buffer: Episode) -> None:
        if not buffer.is_empty() and not buffer.transitions[-1].game_over:
            # a copy, because a memory of single transitions may hold the same object
            last = copy.copy(buffer.transitions[-1])
            last.game_over = True
            buffer.transitions[-1] = last

    def _compute_returns(self, buffer: Episode) -> float:
        """Set the returns and the n-step rewards of the transitions.

        :return: the discounted sum of all rewards in the buffer, for any ``n_step``
        """
        if self._algorithm.override_episode_rewards_with_the_last_transition_reward and not buffer.is_empty():
            last = buffer.transitions[-1].reward
            for transition in buffer.transitions:
                transition.reward = last
        # the order matters: returns need single rewards, and the last lines replace rewards by n-step sums
        buffer.update_discounted_rewards()
        rewards = np.asarray([transition.reward for transition in buffer.transitions], dtype=np.float64)
        total = float(n_step_returns(rewards, buffer.discount)[0]) if rewards.size else 0.0
        if self._stores_whole_episodes:
            buffer.update_transitions_rewards_and_bootstrap_data()
        return total

    def _store_episode(self, episode: EpisodeInProgress) -> None:
        buffer = episode.buffer
        if self._receives_episodes:
            self._memory.store_episode(buffer)
            if self.segment_starts is not None and not buffer.is_empty():
                self.segment_starts.append(episode.about_buffer())
        elif self._stores_whole_episodes:
            self._store(buffer.transitions)

    def go_on_with(self, episode: EpisodeInProgress) -> None:
        """Prepare the memory to continue an episode from a checkpoint."""
        if not self._stores_whole_episodes:
            # the next stacks share frames with the present state; the memory must store each frame only once
            self._memory.intern_frames(episode.curr_state)

    def store_played(self, played: ExperienceChunk, filters: Mapping[str, Any]) -> None:
        """Store experience from another process, and add its statistics to the filters. After an error, memory and
        filters are unchanged.

        :param filters: the filters that gather statistics, by name
        :raises CoachError: if the experience does not fit the memory or the filters
        """
        # if the memory refuses the columns, the filters return to this state
        before = {name: filters[name].get_state() for name in played.filters}
        try:
            for name, gathered in played.filters.items():
                filters[name].merge_gathered(gathered)
            if played.columns is not None:
                self._memory.store_columns(played.columns, played.episode_lengths or None)
            if played.priorities is not None:
                self._memory.set_first_priorities(played.priorities)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            for name, state in before.items():
                filters[name].set_state(state)
            if isinstance(error, CoachError):
                raise
            raise CoachError(f"the received experience does not fit: {error}") from error


def _combinations_as_parts(recorded: SpacesDefinition | None, own: ActionSpace) -> np.ndarray | None:
    """[A, K], the K parts of each of the A recorded actions, if only the agent's actions are split into parts;
    otherwise None."""
    actions: Any = None if recorded is None else recorded.action
    is_split = isinstance(own, MultiDiscreteActionSpace) and isinstance(actions, DiscreteActionSpace)
    return actions.raw_actions if is_split and actions.counts is not None else None


def _split(transition: Any, combinations: np.ndarray, mask_name: str | None) -> None:
    """Replace the number of a combination by the choices of its parts, and masks [A] over combinations by masks [K, M]
    over the choices of each part. A choice is allowed if a combination with it is allowed.

    :param combinations: [A, K], the parts of each combination
    :param mask_name: the name of the masks among the observations; None if there are no masks
    """
    transition.action = combinations[transition.action]
    for state in (transition.state, transition.next_state):
        if mask_name in state:
            mask = np.asarray(state[mask_name])
            found = np.zeros((combinations.shape[1], combinations.max() + 1), mask.dtype)
            np.maximum.at(found, (np.arange(len(found)), combinations), mask[:, None])
            state[mask_name] = found
