"""A level whose agent learns from what other processes play."""

from __future__ import annotations

from typing import Any, Callable, Protocol

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.experience import Played
from rl_coach.core_types import EnvResponse, RunPhase
from rl_coach.level_manager import LevelManager
from rl_coach.memories.backend.ledger import Ledger
from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError


class ExperienceSource(Protocol):
    """Sends what other processes have played."""

    def receive(self, take_in: Callable[[Played], None]) -> Played:
        """Wait for what was played and hand it over.

        :param take_in: raises CoachError for what cannot be used, which is thrown away then
        """


class RemoteLevelManager(LevelManager):
    """Takes in, at each step, a chunk of what other processes have played. Evaluation takes place here, in an
    environment of its own, as on any level; the training environment tells nothing but its spaces.

    :ivar source: sends the chunks; None until somebody has connected the level
    :ivar ledger: the receipts of chunks, which checkpoints hold too
    """

    agent: Agent

    def __init__(self, name: str, agents: Any, environment: Any, **settings: Any):
        self.source: ExperienceSource | None = None
        self.ledger = Ledger()
        super().__init__(name, agents, environment, **settings)
        reason = self.agent.reason_to_act_alone or _nothing_to_split(self.agent)
        if reason is not None:
            raise CoachError(f"agent '{self.agent.name}' cannot be split into trainer and workers: {reason}")
        self.agent.is_played_elsewhere = True
        self.policy_lag = self.agent.register_signal("Policy Lag")
        self.discarded = self.agent.register_signal("Discarded Steps")
        self.waiting = self.agent.register_signal("Share of Time Waited")

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
        played = self.source.receive(self.agent.take_in)
        self.environment_steps += played.steps
        self.ended_rewards = [float(np.sum(report.reward)) for report in played.reports]
        return EnvResponse({}, 0.0, False)

    def put_episode_aside(self) -> Any:
        return self.agent.put_episode_aside()

    def take_up_episode(self, episode: Any, is_restored: bool = False) -> None:
        self.agent.take_up_episode(episode, is_restored)
        self.episode_over = False

    def _episode_state(self) -> dict[str, Any] | None:
        """The agent's episode, in which nothing ever happens: episodes in progress are the workers'."""
        return None if self._phase is RunPhase.TEST else {"episode": plain_data.flatten(self.put_episode_aside())}

    def resume_saved_episode(self, state: dict[str, Any]) -> bool:
        episode = state["episode"]
        if episode is None:
            return False
        self.take_up_episode(plain_data.restore(episode["episode"]), is_restored=True)
        return True

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "ledger": self.ledger.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.ledger.set_state(state.get("ledger", {}))


def _nothing_to_split(agent: Agent) -> str | None:
    """Reason why trainer and workers would not share any work, and what to do instead; None if they would."""
    if agent.ap.algorithm.num_consecutive_playing_steps.num_steps == 0:
        return "it never acts: train it in one process, without -dc"
    if not agent.can_train:
        return "it has nothing to train: run it without -dc"
    return None
