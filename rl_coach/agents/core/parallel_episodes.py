"""Several episodes of one agent at once, where it acts in several copies of its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

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
        self._states: list[StateType] = []
        self._predictions: Any = None

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

    @property
    def episodes(self) -> list[EpisodeInProgress]:
        """The episodes in progress, by environment."""
        present = {self.index: self._agent.episode}
        return [present.get(index, episode) for index, episode in enumerate(self._episodes)]

    def put_aside(self) -> list[EpisodeInProgress]:
        """All episodes, by environment."""
        return [self._agent.put_episode_aside() for _ in self]

    def take_up(self, episodes: list[EpisodeInProgress], is_restored: bool = False) -> None:
        """Go on with episodes that were put aside; see ``Agent.take_up_episode``."""
        self._episodes = list(episodes)
        for self.index, episode in reversed(list(enumerate(episodes))):
            self._agent.books.writes_steps = self._writes_steps and self.index == 0
            self._agent.take_up_episode(episode, is_restored)

    def act(self) -> list[ActionInfo | None]:
        """An action for each environment."""
        agent = self._agent
        if agent.acts_by_networks and not agent.is_recurrent:
            self.enter(0)
            states = [agent.curr_state, *(episode.curr_state for episode in self._episodes[1:])]
            self._states = [agent.run_pre_network_filter_for_inference(state) for state in states]
        actions = [agent.act() for _ in self]
        self._states, self._predictions = [], None
        return actions

    @property
    def are_asked_together(self) -> bool:
        """True while the states in all environments are known, so that networks can be asked for all of them."""
        return bool(self._states)

    @property
    def state(self) -> StateType:
        """The state in the present environment as networks see it."""
        return self._states[self.index]

    @property
    def prediction(self) -> Any:
        """The prediction of the agent's networks for the state in the present environment."""
        if self._predictions is None:
            self._predictions = self._agent.predict_states(self._states)
        return self._predictions[self.index]
