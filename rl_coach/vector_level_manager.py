"""A level whose agent acts in several copies of one environment at once."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from rl_coach.core_types import EnvResponse, RunPhase
from rl_coach.environments.environment_protocols import CopiedEnvironment, SimulatedEnvironment
from rl_coach.level_manager import LevelManager
from rl_coach.utils import CoachError


class VectorLevelManager(LevelManager):
    """Steps all copies of an environment together; the agent has an episode in each of them.

    The agent's networks choose all actions in one call. Episodes begin and end in each copy by itself; their books are
    closed as they end. Evaluation takes place in one environment, as on any level.

    :param environment: an ``EnvironmentCopies``
    """

    def __init__(self, name: str, agents: Any, environment: CopiedEnvironment, **settings: Any):
        # what a level does in one environment it does here in that of an evaluation alone
        super().__init__(name, agents, cast(SimulatedEnvironment, environment), **settings)
        self._copies = environment
        agent: Any = self.agent
        if self._acts_in_turns or not hasattr(agent, "open_lanes"):
            raise CoachError(f"level '{name}' cannot act in several environments: set env_params.num_environments to 1")
        self._lanes = agent.open_lanes(environment.num_copies)
        # copies whose next episode is to begin, and whether by force
        self._due = dict.fromkeys(range(environment.num_copies), True)

    @property
    def _in_lanes(self) -> bool:
        return self._phase is not RunPhase.TEST

    @property
    def has_one_episode(self) -> bool:
        return not self._in_lanes

    @property
    def total_reward_in_current_episode(self) -> Any:
        if not self._in_lanes:
            return super().total_reward_in_current_episode
        agent: Any = self.agent
        return agent.total_reward_in_current_episode

    def reset_environment(self, force_environment_reset: bool = False) -> None:
        if self._in_lanes:
            self._due = dict.fromkeys(range(self._lanes.count), force_environment_reset)
        else:
            super().reset_environment(force_environment_reset)

    def reset_internal_state(self, force_environment_reset: bool = False) -> None:
        if self._in_lanes:
            self.episode_over = False
        else:
            super().reset_internal_state(force_environment_reset)

    def step(self, action: Any) -> EnvResponse:
        """Act once in each copy.

        :return: the answer of the last one
        """
        if not self._in_lanes:
            return super().step(action)
        self.ended_rewards = []
        if self._due:
            self._begin_episodes()
        chosen = self._lanes.act()
        if None in chosen:
            raise CoachError(f"agent '{self.agent.name}' does not act: set env_params.num_environments to 1")
        responses = self._copies.step_all([info.action for info in chosen])
        for lane, response in enumerate(responses):
            self._lanes.enter(lane)
            self.environment_steps += 1
            if self.agent.observe(response) or response.game_over:
                self._due[lane] = not response.game_over
                self._end_episode()
        return responses[-1]

    def _end_episode(self) -> None:
        self.ended_rewards.append(float(np.sum(self.total_reward_in_current_episode)))
        self.agent.handle_episode_ended()

    def _begin_episodes(self) -> None:
        responses = self._copies.begin_episodes(self._due)
        self._due = {}
        for lane, response in responses.items():
            self._lanes.enter(lane)
            self.agent.reset_internal_state()
            self.agent.observe(response)

    def _episode_state(self) -> dict[str, Any] | None:
        if not self._in_lanes:
            return None
        state: dict[str, Any] = {
            "lanes": {str(lane): self.agent.get_episode_state() for lane in self._lanes},
            "due": {str(lane): is_forced for lane, is_forced in self._due.items()},
            "environment": self._copies.get_episode_state(),
        }
        return None if state["environment"] is None or None in state["lanes"].values() else state

    def resume_saved_episode(self, state: dict[str, Any]) -> bool:
        episode = state["episode"]
        if episode is None:
            return False
        if not self._copies.set_episode_state(episode["environment"]):
            self._copies.set_state(state["environments"]["training"])
            return False
        for lane in self._lanes:
            self.agent.set_episode_state(episode["lanes"][str(lane)])
        self._due = {int(lane): is_forced for lane, is_forced in episode["due"].items()}
        self.episode_over = False
        return True
