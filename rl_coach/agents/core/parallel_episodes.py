"""Several episodes of one agent at once, where it acts in several copies of its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator

from rl_coach.core_types import ActionInfo, StateType

if TYPE_CHECKING:
    from rl_coach.agents.agent import Agent
    from rl_coach.agents.core.episode import EpisodeInProgress


class ParallelEpisodes:
    """The episodes of an agent, one for each copy of its environment.

    The agent is in one of them; the others are put aside. ``enter`` exchanges them, so that everything that an agent
    does in an episode is the same for each environment. Its networks are asked for all environments at once.

    :param agent: whose episodes they are
    :param count: the number of environments
    """

    def __init__(self, agent: Agent, count: int):
        self.count = count
        self.index = 0
        self._agent = agent
        self._writes_steps = agent.books.writes_steps
        agent.parallel, agent.clock.steps_at_once = self, count
        self._episodes: list[EpisodeInProgress] = [agent.episode_class(agent.ap.algorithm) for _ in range(count)]
        self._episodes[0] = agent.episode
        self._states: dict[int, StateType] = {}
        self._predictions: dict[int, Any] = {}

    def enter(self, index: int) -> None:
        """Make the episode in an environment the agent's present one."""
        if index != self.index:
            self._episodes[self.index] = self._agent.put_episode_aside()
            self._agent.take_up_episode(self._episodes[index])
            self.index = index
            self._agent.books.writes_steps = self._writes_steps and index == 0

    def __iter__(self) -> Iterator[int]:
        """The environments' indices in order, each entered."""
        for index in range(self.count):
            self.enter(index)
            yield index

    def those_where(self, holds: Callable[[Any], bool]) -> Iterator[int]:
        """The indices of environments in order, each entered, whose episodes ``holds`` is true of."""
        for index in range(self.count):
            if holds(self._agent.episode if index == self.index else self._episodes[index]):
                self.enter(index)
                yield index

    def put_aside(self) -> list[EpisodeInProgress]:
        """All episodes, by environment."""
        return [self._agent.put_episode_aside() for _ in self]

    def take_up(self, episodes: list[EpisodeInProgress], is_restored: bool = False) -> None:
        """Go on with episodes that were put aside; see ``Agent.take_up_episode``."""
        self._episodes = list(episodes)
        for self.index, episode in reversed(list(enumerate(episodes))):
            self._agent.books.writes_steps = self._writes_steps and self.index == 0
            self._agent.take_up_episode(episode, is_restored)

    def act(self, indices: Iterable[int] | None = None) -> dict[int, ActionInfo | None]:
        """An action for each of the environments, by index. :param indices: None for all"""
        agent = self._agent
        indices = list(range(self.count) if indices is None else indices)
        if indices and agent.acts_by_networks and not agent.is_recurrent:
            self.enter(indices[0])
            states = {i: agent.curr_state if i == self.index else self._episodes[i].curr_state for i in indices}
            self._states = {i: agent.run_pre_network_filter_for_inference(state) for i, state in states.items()}
        actions = {}
        for index in indices:
            self.enter(index)
            actions[index] = agent.act()
        self._states, self._predictions = {}, {}
        return actions

    @property
    def are_asked_together(self) -> bool:
        """True while the states to act in are known, so that networks can be asked for all of them."""
        return bool(self._states)

    @property
    def state(self) -> StateType:
        """The state in the present environment as networks see it."""
        return self._states[self.index]

    @property
    def prediction(self) -> Any:
        """The prediction of the agent's networks for the state in the present environment."""
        if not self._predictions:
            self._predictions = dict(zip(self._states, self._agent.predict_states(list(self._states.values()))))
        return self._predictions[self.index]
