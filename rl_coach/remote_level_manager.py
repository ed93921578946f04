"""Levels whose agents learn from what other processes play."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.experience import EnvironmentProgress, ExperienceChunk
from rl_coach.core_types import EnvResponse, RunPhase
from rl_coach.level_manager import LevelManager
from rl_coach.memories.backend.connection import of_agent
from rl_coach.memories.backend.ledger import Ledger
from rl_coach.multi_agent_level_manager import MultiAgentLevelManager
from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError, Signal

_MOST_EPISODES_AHEAD = 1000  # of an agent whose chunks are stored, while those of another one are discarded


class ExperienceSource(Protocol):
    """Sends what other processes have played."""

    def receive(self) -> tuple[str, ExperienceChunk]:
        """Wait for what was played for one of the agents, and have that agent take it in.

        :return: the agent's stream, and what it has taken in
        """


@dataclass(frozen=True)
class TransportSignals:
    """Signals of an agent about what other processes play for it.

    :param policy_lag: its updates since the policy that played was published
    :param discarded: steps that an older policy has played, so that nothing is learned from them
    :param waiting: the share of their time that workers have waited
    """

    policy_lag: Signal
    discarded: Signal
    waiting: Signal


class RemoteLevelManager(LevelManager):
    """Takes in, at each step, a chunk of what other processes have played. Evaluation takes place here, in an
    environment of its own, as on any level; the training environment tells nothing but its spaces.

    :ivar source: sends the chunks; None until somebody has connected the level
    :ivar ledgers: by stream, the receipts of chunks, which checkpoints hold too
    :ivar transport_signals: by stream, what is written about the chunks
    """

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
            self.transport_signals[stream] = TransportSignals(
                *map(agent.register_signal, ("Policy Lag", "Discarded Steps", "Share of Time Waited"))
            )

    @property
    def is_fed(self) -> bool:  # type: ignore[override]
        return self.source is not None

    @property
    def has_one_episode(self) -> bool:
        return self._phase is RunPhase.TEST

    def step(self, action: Any) -> EnvResponse:
        """Take in the next chunk, waiting for it.

        :return: an answer that says nothing
        """
        if self.has_one_episode:
            return super().step(action)
        assert self.source is not None
        stream, played = self.source.receive()
        self._count(stream, played)
        return EnvResponse({}, 0.0, False)

    def _count(self, stream: str, played: ExperienceChunk) -> None:
        """Count the environment's steps and episodes in what an agent has taken in."""
        self.environment_steps += played.steps
        self.ended_rewards = _rewards(played)

    def put_episode_aside(self) -> Any:
        return self.agent.put_episode_aside()

    def take_up_episode(self, episode: Any, is_restored: bool = False) -> None:
        self.agent.take_up_episode(episode, is_restored)
        self.episode_over = False

    def _episode_state(self) -> dict[str, Any] | None:
        """The agents' episodes, in which nothing ever happens: episodes in progress are the workers'."""
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
    """The same for several agents in one environment, where a chunk has what was played for one of them.

    A step or an episode of the environment counts once all agents have what they played in it. Otherwise heatup could
    end before one of them has any experience.
    """

    def __init__(self, name: str, agents: Any, environment: Any, **settings: Any):
        super().__init__(name, agents, environment, **settings)
        self._ahead = {stream: EnvironmentProgress() for stream in self.ledgers}  # of what has been counted

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
    """Reason why trainer and workers would not share any work, and what to do instead; None if they would."""
    if agent.ap.algorithm.num_consecutive_playing_steps.num_steps == 0:
        return "it never acts: train it in one process, without -dc"
    if not agent.can_train:
        return "it has nothing to train: run it without -dc"
    return None
