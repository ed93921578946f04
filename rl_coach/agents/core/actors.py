"""The actors of an agent that acts in several episodes at once."""

from __future__ import annotations

import copy
from typing import Any, Iterable, Iterator

from rl_coach.agents.core.actor import Actor
from rl_coach.agents.core.column_actors import ColumnActors
from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.core_types import ActionInfo, StateType
from rl_coach.exploration_policies.exploration_policy import ExplorationPolicy


class Actors:
    """The actors of an agent that acts in several episodes at once: copies of its environment, or players.

    The agent acts as one actor at a time, and ``enter`` changes to another. Networks predict for all actors in one
    call.

    :param agent: the agent; it acts as the first actor at the beginning

    :ivar index: the number of the present actor, from 0
    """

    def __init__(self, agent: Any, count: int):
        self.index = 0
        self._agent = agent
        first: Actor = agent.actor
        self._actors = [first, *(first.for_another_episode() for _ in range(count - 1))]
        # each actor needs a copy: actors must not share lists and arrays of an episode
        own = {name: vars(agent)[name] for name in agent.episode_state.names if name in vars(agent)}
        for actor in self._actors[1:]:
            actor.episode.attributes = copy.deepcopy(own)
        self._attributes = set(vars(agent))
        self._num_attributes = 0
        self._states: dict[int, StateType] = {}
        self._predictions: dict[int, Any] | None = None
        self._columns: ColumnActors | None = None

    # The episodes are either objects, or columns if the agent acts in all of them in one pass. Access to one episode
    # turns the columns into objects first.

    def in_columns(self) -> ColumnActors:
        """All actors as columns. They become objects again when an actor is entered or ``episodes`` is read."""
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
        for actor, episode in zip(self._actors, episodes):
            episode.attributes = actor.episode.attributes
            actor.episode = episode
            actor.input_filter.set_episode_state(episode.filter_histories)

    @property
    def count(self) -> int:
        """The number of actors."""
        return len(self._actors)

    def enter(self, index: int) -> None:
        """Let the agent act as the actor with this number."""
        self._leave_columns()
        if index != self.index:
            self._require_declared()
            self._actors[self.index].leave()
            self.index = index
            self._actors[index].enter()

    def _require_declared(self) -> None:
        """Raise an error if a user's agent has created attributes while it acted, and has not declared them."""
        # the number of attributes rarely changes, and this runs at each change of the actor
        if len(vars(self._agent)) == self._num_attributes:
            return
        self._num_attributes = len(vars(self._agent))
        made = [name for name in vars(self._agent).keys() - self._attributes if not hasattr(type(self._agent), name)]
        if made:
            self._agent.episode_state.require_declared(made)

    def __iter__(self) -> Iterator[int]:
        """Enter each actor in order, and yield its number."""
        for index in range(self.count):
            self.enter(index)
            yield index

    @property
    def exploration_policies(self) -> list[ExplorationPolicy]:
        """The exploration policies of the actors. A policy that actors share is listed once."""
        return list({id(actor.exploration_policy): actor.exploration_policy for actor in self._actors}.values())

    @property
    def episodes(self) -> list[EpisodeInProgress]:
        """The episodes in progress, in the order of the actors."""
        self._leave_columns()
        return [actor.episode for actor in self._actors]

    def put_aside(self) -> list[EpisodeInProgress]:
        """All episodes with their states, in the order of the actors, for a checkpoint or during an evaluation."""
        return [self._agent.put_episode_aside() for _ in self]

    def take_up(self, episodes: list[EpisodeInProgress], is_restored: bool = False) -> None:
        """Continue episodes that ``put_aside`` returned.

        :param is_restored: True if the episodes come from a checkpoint
        """
        # not turned into objects, because the given episodes replace them
        self._columns = None
        # in reverse order, so that the agent acts as the first actor at the end
        for index, episode in reversed(list(enumerate(episodes))):
            self.enter(index)
            self._agent.take_up_episode(episode, is_restored)

    def act(self, indices: Iterable[int]) -> dict[int, ActionInfo | None]:
        """Choose the actions of some actors. Feed-forward networks predict for all of them in one call.

        :return: the action of each actor; None if the agent learns without acting
        """
        agent, indices = self._agent, list(indices)
        if agent.acts_by_networks and not agent.is_recurrent:
            episodes, seen = self.episodes, agent.run_pre_network_filter_for_inference
            self.ask_together({index: seen(episodes[index].curr_state) for index in indices})
        actions = {}
        for index in indices:
            self.enter(index)
            actions[index] = agent.act()
        self.ask_together({})
        return actions

    def ask_together(self, states: dict[int, StateType]) -> None:
        """Predict for all of these states in one call when the next prediction is needed.

        :param states: a dict from the actor to its state after the filters; an empty dict ends the common predictions
        """
        self._states, self._predictions = states, None

    @property
    def are_asked_together(self) -> bool:
        """True after a call of ``ask_together`` with states: ``prediction`` then predicts for all of these states."""
        return bool(self._states)

    @property
    def state(self) -> StateType:
        """The state of the current actor, after the filters."""
        return self._states[self.index]

    @property
    def prediction(self) -> Any:
        """The prediction of the networks for the state of the current actor. When it is first read, the networks
        predict for all states of ``ask_together``."""
        if self._predictions is None:
            # not earlier: if all actions are random, nothing is predicted
            self._predictions = dict(zip(self._states, self._agent.predict_states(list(self._states.values()))))
        return self._predictions[self.index]
