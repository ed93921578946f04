"""A level whose agent acts in several copies of one environment at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.core_types import EnvResponse, RunPhase
from rl_coach.environments.environment_protocols import CopiedEnvironment, SimulatedEnvironment
from rl_coach.level_manager import LevelManager
from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError


@dataclass
class VectorEpisode:
    """The episodes of a level in several environments that were put aside.

    :param agent: the agent's, by environment
    :param due: the environments whose next episode is to begin, and whether by force
    """

    agent: list[Any]
    due: dict[int, bool]


plain_data.register(VectorEpisode)


class VectorLevelManager(LevelManager):
    """Steps all copies of an environment together; the agent has an episode in each of them.

    The agent's networks choose all actions in one call. Episodes begin and end in each copy by itself; their books are
    closed as they end. Evaluation takes place in one environment, as on any level.

    :param environment: an ``EnvironmentCopies``
    """

    agent: Agent

    def __init__(self, name: str, agents: Any, environment: CopiedEnvironment, **settings: Any):
        # what a level does in one environment it does here in that of an evaluation alone
        super().__init__(name, agents, cast(SimulatedEnvironment, environment), **settings)
        self._copies = environment
        if self._acts_in_turns or not isinstance(self.agent, Agent):
            raise CoachError(f"level '{name}' cannot act in several environments: set env_params.num_environments to 1")
        self._parallel = self.agent.play_in_copies(environment.num_copies)
        # copies whose next episode is to begin, and whether by force
        self._due = dict.fromkeys(range(environment.num_copies), True)

    @property
    def _in_parallel(self) -> bool:
        return self._phase is not RunPhase.TEST

    @property
    def has_one_episode(self) -> bool:
        return not self._in_parallel

    @property
    def total_reward_in_current_episode(self) -> Any:
        if not self._in_parallel:
            return super().total_reward_in_current_episode
        agent: Any = self.agent
        return agent.total_reward_in_current_episode

    def reset_environment(self, force_environment_reset: bool = False) -> None:
        if self._in_parallel:
            self._due = dict.fromkeys(range(self._parallel.count), force_environment_reset)
        else:
            super().reset_environment(force_environment_reset)

    def reset_internal_state(self, force_environment_reset: bool = False) -> None:
        if self._in_parallel:
            self.episode_over = False
        else:
            super().reset_internal_state(force_environment_reset)

    def step(self, action: Any) -> EnvResponse:
        """Act once in each copy.

        :return: the answer of the last one
        """
        self.ended_rewards = []
        if not self._in_parallel:
            return super().step(action)
        if self._due:
            self._begin_episodes()
        actions = [chosen.action for chosen in self.agent.act_in_copies() if chosen is not None]
        if len(actions) < self._parallel.count:
            raise CoachError(f"agent '{self.agent.name}' does not act: set env_params.num_environments to 1")
        responses = self._copies.step_all(actions)
        for index, response in enumerate(responses):
            self._parallel.enter(index)
            self.environment_steps += 1
            if self.agent.observe(response) or response.game_over:
                self._due[index] = not response.game_over
                self._end_episode()
        return responses[-1]

    def _end_episode(self) -> None:
        self.ended_rewards.append(float(np.sum(self.total_reward_in_current_episode)))
        self.agent.handle_episode_ended()

    def _begin_episodes(self) -> None:
        responses = self._copies.begin_episodes(self._due)
        self._due = {}
        for index, response in responses.items():
            self._parallel.enter(index)
            self.agent.begin_episode()
            self.agent.observe(response)

    def put_episode_aside(self) -> VectorEpisode:
        return VectorEpisode(self._parallel.put_aside(), dict(self._due))

    def take_up_episode(self, episode: VectorEpisode, is_restored: bool = False) -> None:
        self._parallel.take_up(episode.agent, is_restored)
        self._due = dict(episode.due)
        self.episode_over = False
