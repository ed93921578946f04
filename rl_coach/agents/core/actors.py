"""The actors of an agent: each acts in one episode and holds the state of that episode."""

from __future__ import annotations

import copy
from typing import Any, Iterator

from rl_coach.agents.core.column_actors import ColumnActors
from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.core_types import StateType
from rl_coach.exploration_policies.exploration_policy import ExplorationPolicy
from rl_coach.filters.filter import InputFilter, OutputFilter
from rl_coach.utilities.episode_state import exchanges_episodes
from rl_coach.utilities.overrides import users_classes

_IN_AN_EPISODE = (
    "act", "begin_episode", "choose_action", "handle_episode_ended", "observe", "observe_transition",
    "reset_internal_state", "update_transition_before_adding_to_replay_buffer",
)  # fmt: skip


def keeps_attributes(agent: Any) -> bool:
    """True if a user's agent overrides a method of the episode and may keep attributes of the episode."""
    names = {name for kind in users_classes(type(agent)) for name in vars(kind)}
    return "__init__" in names and "episode_class" not in names and not names.isdisjoint(_IN_AN_EPISODE)


class Actor:
    """The part of an agent that acts in one episode.

    Networks, memory, learning, statistics, schedules, counters and random streams belong to the agent; all actors share
    them. Filters and exploration policies without a state of the episode are the same objects in all actors.

    :param episode: the episode in progress
    :param input_filter: with the histories of this episode
    :param output_filter: likewise
    :param exploration_policy: with its state of this episode

    :ivar recurrent_states: by network, the recurrent state; known while another actor acts
    :ivar attributes: what ``episode_attributes`` of a user's agent names; known while another actor acts
    """

    def __init__(
        self,
        episode: EpisodeInProgress,
        input_filter: InputFilter,
        output_filter: OutputFilter,
        exploration_policy: ExplorationPolicy,
    ):
        self.episode = episode
        self.input_filter, self.output_filter = input_filter, output_filter
        self.exploration_policy = exploration_policy
        self.recurrent_states: dict[str, Any] = {}
        self.attributes: dict[str, Any] = {}
        members: list[Any] = [*input_filter.members, *output_filter.members, exploration_policy]
        # parts of a user's that exchange episodes themselves
        self._exchanging = [part for part in members if exchanges_episodes(part)]
        self._suspended: list[Any] = []

    @classmethod
    def like(cls, other: Actor, episode: EpisodeInProgress) -> Actor:
        """An actor in another episode, which begins now.

        :raises CoachError: a filter or the exploration policy cannot be copied
        """
        return cls(
            episode,
            other.input_filter.for_another_actor(),
            other.output_filter.for_another_actor(),
            other.exploration_policy.for_another_actor(),
        )

    @classmethod
    def evaluating(cls, other: Actor, episode: EpisodeInProgress) -> Actor:
        """An actor in an evaluation, which leaves no trace in the parts of ``other``.

        :raises CoachError: a filter or the exploration policy cannot be copied
        """
        parts = (other.input_filter, other.output_filter, other.exploration_policy)
        return cls(episode, *(part.for_evaluation() for part in parts))

    def enter(self, agent: Any) -> None:
        """Let the agent act in this episode."""
        agent.episode = self.episode
        agent.input_filter, agent.output_filter = self.input_filter, self.output_filter
        agent.exploration_policy = self.exploration_policy
        for name, state in self.recurrent_states.items():
            agent.networks[name].online_network.recurrent_state = state
        if self.attributes:
            vars(agent).update(self.attributes)
        for part, state in zip(self._exchanging, self._suspended):
            part.resume(state)

    def leave(self, agent: Any) -> None:
        """Store the state that the agent has in this episode."""
        self.episode = agent.episode
        if agent.is_recurrent:
            networks = agent.networks.items()
            self.recurrent_states = {name: one.online_network.recurrent_state for name, one in networks}
        if names := agent.attributes_of_episode:
            self.attributes = {name: vars(agent)[name] for name in names if name in vars(agent)}
        self._suspended = [part.suspend() for part in self._exchanging]


class Actors:
    """The actors of an agent that acts in several episodes at once: copies of its environment, or players.

    The agent acts as one of them at a time; ``enter`` changes it. Its networks are asked for all of them at once.

    :param agent: the agent, which acts as the first of them
    :param others: the episodes of the others

    :ivar index: the actor that the agent acts as
    """

    def __init__(self, agent: Any, others: list[EpisodeInProgress]):
        self.index = 0
        self._agent = agent
        first = Actor(agent.episode, agent.input_filter, agent.output_filter, agent.exploration_policy)
        self._actors = [first, *(Actor.like(first, episode) for episode in others)]
        own = {name: vars(agent)[name] for name in agent.attributes_of_episode if name in vars(agent)}
        for actor in self._actors[1:]:
            actor.attributes = copy.deepcopy(own)
        self._attributes = set(vars(agent))
        self._num_attributes = 0
        self._states: dict[int, StateType] = {}
        self._predictions: dict[int, Any] | None = None
        self._columns: ColumnActors | None = None

    # The episodes are objects, or columns if the agent acts in all of them in one pass. Who asks for an object gets it.

    def in_columns(self) -> ColumnActors:
        """All actors as columns, until one of them is entered or its episode is asked for."""
        if self._columns is None:
            episodes = self.episodes
            for actor, episode in zip(self._actors, episodes):
                episode.filter_histories = actor.input_filter.episode_state()
            self._columns = ColumnActors(self._agent, episodes)
        return self._columns

    @property
    def are_in_columns(self) -> bool:
        """True if the episodes are columns now."""
        return self._columns is not None

    def _leave_columns(self) -> None:
        if self._columns is None:
            return
        episodes, self._columns = self._columns.episodes(), None
        self._agent.episode = episodes[self.index]
        for actor, episode in zip(self._actors, episodes):
            actor.episode = episode
            actor.input_filter.set_episode_state(episode.filter_histories)

    @property
    def count(self) -> int:
        """The number of actors."""
        return len(self._actors)

    def enter(self, index: int) -> None:
        """Let the agent act as one of the actors."""
        self._leave_columns()
        if index != self.index:
            self._require_declared()
            self._actors[self.index].leave(self._agent)
            self.index = index
            self._actors[index].enter(self._agent)

    def _require_declared(self) -> None:
        """Refuse a user's agent that made undeclared attributes while it acted."""
        if len(vars(self._agent)) == self._num_attributes:
            return
        self._num_attributes = len(vars(self._agent))
        made = [name for name in vars(self._agent).keys() - self._attributes if not hasattr(type(self._agent), name)]
        if made and users_classes(type(self._agent)):
            self._agent.require_declared_episode(made)

    def __iter__(self) -> Iterator[int]:
        """The indices of the actors in order, each entered."""
        for index in range(self.count):
            self.enter(index)
            yield index

    @property
    def exploration_policies(self) -> list[ExplorationPolicy]:
        """The exploration policies, each once."""
        return list({id(actor.exploration_policy): actor.exploration_policy for actor in self._actors}.values())

    @property
    def episodes(self) -> list[EpisodeInProgress]:
        """The episodes in progress, by actor."""
        self._leave_columns()
        self._actors[self.index].episode = self._agent.episode
        return [actor.episode for actor in self._actors]

    def put_aside(self) -> list[EpisodeInProgress]:
        """All episodes with their states, by actor, for a checkpoint or during an evaluation."""
        return [self._agent.put_episode_aside() for _ in self]

    def take_up(self, episodes: list[EpisodeInProgress], is_restored: bool = False) -> None:
        """Continue episodes of ``put_aside``.

        :param is_restored: they come from a checkpoint
        """
        self._columns = None
        for index, episode in reversed(list(enumerate(episodes))):
            self.enter(index)
            self._agent.take_up_episode(episode, is_restored)

    def ask_together(self, states: dict[int, StateType]) -> None:
        """From now on predict for all of these states in one call, by actor."""
        self._states, self._predictions = states, None

    @property
    def are_asked_together(self) -> bool:
        """True while the states to act in are known, so that networks can be asked for all of them."""
        return bool(self._states)

    @property
    def state(self) -> StateType:
        """The state of the present actor as networks see it."""
        return self._states[self.index]

    @property
    def prediction(self) -> Any:
        """The prediction of the networks for the state of the present actor."""
        if self._predictions is None:
            self._predictions = dict(zip(self._states, self._agent.predict_states(list(self._states.values()))))
        return self._predictions[self.index]
