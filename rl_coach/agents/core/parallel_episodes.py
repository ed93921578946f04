"""Several episodes of one agent at once, where it acts in several copies of its environment."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Protocol

from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.core_types import StateType


class Player(Protocol):
    """Acts in one episode at a time, and can exchange it for another one."""

    episode: EpisodeInProgress

    def put_episode_aside(self) -> EpisodeInProgress:
        """The present episode, with everything that belongs to it."""

    def take_up_episode(self, episode: EpisodeInProgress, is_restored: bool = False) -> None:
        """Go on with an episode that was put aside, or that a checkpoint held."""

    def predict_states(self, states: list[StateType]) -> Any:
        """Predictions for states, in the same order."""


class ParallelEpisodes:
    """The episodes of a player, one for each copy of its environment.

    The player is in one of them; the others are put aside. ``enter`` exchanges them, so that everything that an agent
    does in an episode is the same for each environment. Its networks are asked for all environments at once.

    :param player: whose episodes they are
    :param others: the episodes in all environments but the first, in which the player is

    :ivar index: the environment of the episode that the player is in
    """

    def __init__(self, player: Player, others: list[EpisodeInProgress]):
        self.index = 0
        self._player = player
        self._episodes = [player.episode, *others]
        self._states: dict[int, StateType] = {}
        self._predictions: dict[int, Any] | None = None

    @property
    def count(self) -> int:
        """The number of environments."""
        return len(self._episodes)

    def enter(self, index: int) -> None:
        """Make the episode in an environment the player's present one."""
        if index != self.index:
            self._episodes[self.index] = self._player.put_episode_aside()
            self.index = index
            self._player.take_up_episode(self._episodes[index])

    def __iter__(self) -> Iterator[int]:
        """The environments' indices in order, each entered."""
        return self.those_where(lambda episode: True)

    @property
    def states(self) -> list[StateType]:
        """The states to act on, by environment."""
        present = {self.index: self._player.episode}
        return [present.get(index, episode).curr_state for index, episode in enumerate(self._episodes)]

    def those_where(self, holds: Callable[[Any], bool]) -> Iterator[int]:
        """The indices of environments in order, each entered, whose episodes ``holds`` is true of."""
        for index in range(self.count):
            if holds(self._player.episode if index == self.index else self._episodes[index]):
                self.enter(index)
                yield index

    def put_aside(self) -> list[EpisodeInProgress]:
        """All episodes, by environment."""
        return [self._player.put_episode_aside() for _ in self]

    def take_up(self, episodes: list[EpisodeInProgress], is_restored: bool = False) -> None:
        """Go on with episodes that were put aside.

        :param is_restored: they come from a checkpoint
        """
        self._episodes = list(episodes)
        for self.index, episode in reversed(list(enumerate(episodes))):
            self._player.take_up_episode(episode, is_restored)

    def ask_together(self, states: dict[int, StateType]) -> None:
        """From now on predict for all of these states in one call, by environment."""
        self._states, self._predictions = states, None

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
        """The prediction of the player's networks for the state in the present environment."""
        if self._predictions is None:
            self._predictions = dict(zip(self._states, self._player.predict_states(list(self._states.values()))))
        return self._predictions[self.index]
