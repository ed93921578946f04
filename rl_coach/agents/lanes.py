"""Several episodes of one agent at once, where it acts in several copies of its environment."""

from __future__ import annotations

from typing import Any, Iterator

from rl_coach.core_types import ActionInfo, StateType


class Lanes:
    """The episodes of an agent, one for each copy of its environment.

    An agent's attributes describe one episode. Those of the others are parked here; ``enter`` exchanges them, so that
    everything that an agent does in an episode is the same in each lane. Its networks are asked for all lanes at once.

    :param agent: whose episodes they are
    :param count: how many
    """

    def __init__(self, agent: Any, count: int):
        self.count = count
        self.current = 0
        self._agent = agent
        self._parked = [agent.park_episode() for _ in range(count)]
        self._states: list[StateType] = []
        self._predictions: Any = None

    def enter(self, lane: int) -> None:
        """Make the episode of a lane the agent's present one."""
        if lane != self.current:
            self._parked[self.current] = self._agent.park_episode()
            self._agent.take_up_episode(self._parked[lane])
            self.current = lane

    def __iter__(self) -> Iterator[int]:
        """The lanes in order, each entered."""
        for lane in range(self.count):
            self.enter(lane)
            yield lane

    def act(self) -> list[ActionInfo | None]:
        """An action for each lane."""
        agent = self._agent
        if agent.acts_by_networks and not agent.is_recurrent:
            self.enter(0)
            states = [agent.curr_state, *(parked.fields["curr_state"] for parked in self._parked[1:])]
            self._states = [agent.run_pre_network_filter_for_inference(state) for state in states]
        actions = [agent.act() for _ in self]
        self._states, self._predictions = [], None
        return actions

    @property
    def has_ended_episode(self) -> bool:
        """Whether the episode of any lane has ended and the next has not begun."""
        others = (parked for lane, parked in enumerate(self._parked) if lane != self.current)
        return any(parked.fields["current_episode_buffer"].is_complete for parked in others)

    @property
    def are_asked_together(self) -> bool:
        """Whether the states of all lanes are known, so that networks can be asked for all of them."""
        return bool(self._states)

    @property
    def state(self) -> StateType:
        """The present lane's state as networks see it."""
        return self._states[self.current]

    @property
    def prediction(self) -> Any:
        """What the agent's networks say about the present lane's state."""
        if self._predictions is None:
            self._predictions = self._agent.predict_states(self._states)
        return self._predictions[self.current]
