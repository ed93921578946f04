"""Levels with agents that learn from the experience of other processes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.experience import EnvironmentProgress, ExperienceChunk
from rl_coach.agents.core.transport import TransportSignals
from rl_coach.core_types import EnvResponse, RunPhase
from rl_coach.level_manager import LevelManager
from rl_coach.memories.backend.connection import of_agent
from rl_coach.memories.backend.ledger import Ledger
from rl_coach.multi_agent_level_manager import MultiAgentLevelManager
from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError

_MOST_EPISODES_AHEAD = 1000  # limit of one agent's uncounted episodes if another agent's chunks are discarded


class ExperienceSource(Protocol):
    """An object that delivers the experience of other processes."""

    def receive(self) -> tuple[str, ExperienceChunk]:
        """Wait for experience of one of the agents, and store the experience in this agent's memory.

        :return: the name of the agent's stream, and the stored experience
        """


class RemoteLevelManager(LevelManager):
    """The level of a trainer: each step receives a chunk of experience from a rollout worker. Evaluation runs in the
    trainer's process, in a separate environment. The training environment only supplies its spaces.

    :ivar source: delivers the chunks; None before the level is connected
    :ivar ledgers: records of the accepted chunks, by stream; checkpoints contain the ledgers
    :ivar transport_signals: the signals about the chunks, by stream
    """

    trains_in_one_episode = False

    def __init__(self, name: str, agents: Any, environment: Any, **settings: Any):
        self.source: ExperienceSource | None = None
        self.ledgers: dict[str, Ledger] = {}
        self.transport_signals: dict[str, TransportSignals] = {}
        super().__init__(name, agents, environment, **settings)
        for stream, agent in self.agent.by_stream.items():
            reason = agent.reason_to_act_alone or _nothing_to_split(agent)
            if reason is not None:
                raise CoachError(f"agent '{agent.name}' cannot be split into trainer and workers: {reason}")
            agent.is_played_elsewhere = True
            self.ledgers[stream] = Ledger()
            self.transport_signals[stream] = TransportSignals.of(agent)

    @property
    def is_fed(self) -> bool:  # type: ignore[override]
        return self.source is not None

    def step(self, action: Any) -> EnvResponse:
        """Wait for the next chunk, and count its steps.

        :return: a placeholder for the environment's response
        """
        if self.has_one_episode:
            return super().step(action)
        assert self.source is not None
        stream, played = self.source.receive()
        self._count(stream, played)
        return EnvResponse({}, 0.0, False)

    def _count(self, stream: str, played: ExperienceChunk) -> None:
        """Count the environment's steps and episodes in a chunk that an agent has stored."""
        self.environment_steps += played.steps
        self.ended_rewards = _rewards(played)

    def put_episode_aside(self) -> Any:
        return self.agent.put_episode_aside()

    def take_up_episode(self, episode: Any, is_restored: bool = False) -> None:
        self.agent.take_up_episode(episode, is_restored)
        self.episode_over = False

    def _episode_state(self) -> dict[str, Any] | None:
        """The agents' episodes that have not been used yet. The workers have the episodes in progress."""
        return None if self._phase is RunPhase.TEST else {"episode": plain_data.flatten(self.put_episode_aside())}

    def resume_saved_episode(self, state: dict[str, Any]) -> bool:
        episode = state["episode"]
        if episode is None:
            return False
        self.take_up_episode(plain_data.restore(episode["episode"]), is_restored=True)
        return True

    def get_state(self) -> dict[str, Any]:
        ledgers = {of_agent("ledger", stream): ledger.get_state() for stream, ledger in self.ledgers.items()}
        return {**super().get_state(), **ledgers}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        for stream, ledger in self.ledgers.items():
            ledger.set_state(state.get(of_agent("ledger", stream), {}))


class RemoteMultiAgentLevelManager(RemoteLevelManager, MultiAgentLevelManager):
    """``RemoteLevelManager`` for several agents in one environment. A chunk contains the experience of one agent.

    A step or an episode of the environment is counted when all agents have received their experience of it. Otherwise
    heatup could end before an agent has received any experience.
    """

    def __init__(self, name: str, agents: Any, environment: Any, **settings: Any):
        super().__init__(name, agents, environment, **settings)
        self._ahead = {stream: EnvironmentProgress() for stream in self.ledgers}  # progress that is not counted yet

    def _count(self, stream: str, played: ExperienceChunk) -> None:
        own = self._ahead[stream]
        own.steps += played.environment.steps
        own.rewards = [*own.rewards, *played.environment.rewards][-_MOST_EPISODES_AHEAD:]
        steps = min(one.steps for one in self._ahead.values())
        episodes = min(len(one.rewards) for one in self._ahead.values())
        self.environment_steps += steps
        self.ended_rewards = own.rewards[:episodes]
        for one in self._ahead.values():
            one.steps -= steps
            del one.rewards[:episodes]
        if rewards := _rewards(played):
            self.agent.last_rewards[stream] = rewards[-1]

    def get_state(self) -> dict[str, Any]:
        ahead = {stream: [one.steps, list(one.rewards)] for stream, one in self._ahead.items()}
        return {**super().get_state(), "ahead": ahead}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        for stream, (steps, rewards) in state.get("ahead", {}).items():
            self._ahead[stream] = EnvironmentProgress(int(steps), [float(reward) for reward in rewards])


def _rewards(played: ExperienceChunk) -> list[float]:
    return [float(np.sum(report.reward)) for report in played.reports]


def _nothing_to_split(agent: Agent) -> str | None:
    """The reason why the agent cannot be split into trainer and workers, with an alternative; None if it can be."""
    if agent.ap.algorithm.num_consecutive_playing_steps.num_steps == 0:
        return "it never acts; train it in one process: leave out -dc and -n"
    if not agent.can_train:
        return "it has nothing to train: leave out -dc and -n"
    return None
