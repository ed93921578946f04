"""The loop of an agent and an environment, with the methods of TensorForce's ``Runner``."""

from __future__ import annotations

import time
from typing import Any, Callable

from rl_coach.own_loop.agent import Agent
from rl_coach.own_loop.played import Loop, positive
from rl_coach.utilities.user_code import takes
from rl_coach.utils import CoachError


class Runner:
    """The loop of an agent in an environment.

    :param agent: the agent
    :param environment: see ``PlayedEnvironment``
    :param repeat_actions: number of times that each action is executed; the rewards are summed
    :raises CoachError: if the environment has neither ``step`` nor ``execute``

    :ivar episode: number of episodes that have ended
    :ivar timestep: number of actions
    :ivar episode_timestep: number of actions in the current episode
    :ivar episode_rewards: the sum of the rewards of each episode
    :ivar episode_timesteps: number of actions of each episode
    :ivar episode_times: duration of each episode in seconds
    :ivar start_time: Unix time in seconds of the last call of ``run``; None before the first call
    """

    def __init__(self, agent: Agent, environment: Any, repeat_actions: int = 1):
        self._loop = Loop(agent, [environment])
        self.agent = agent
        self.environment = environment
        self.repeat_actions = positive("repeat_actions", repeat_actions)
        self.episode = self.timestep = self.episode_timestep = 0
        self.episode_rewards: list[float] = []
        self.episode_timesteps: list[int] = []
        self.episode_times: list[float] = []
        self.start_time: float | None = None

    @property
    def global_episode(self) -> int:
        """The same as ``episode``."""
        return self.episode

    @property
    def global_timestep(self) -> int:
        """The same as ``timestep``."""
        return self.timestep

    @property
    def episode_lengths(self) -> list[int]:
        """The same as ``episode_timesteps``."""
        return self.episode_timesteps

    def run(
        self,
        num_episodes: int | None = None,
        num_timesteps: int | None = None,
        max_episode_timesteps: int | None = None,
        deterministic: bool = False,
        episode_finished: Callable[..., Any] | None = None,
        *,
        episodes: int | None = None,
        timesteps: int | None = None,
    ) -> None:
        """Play episodes.

        :param num_episodes: number of episodes; None for no limit
        :param num_timesteps: number of actions after which no further episode begins; None for no limit
        :param max_episode_timesteps: actions after which an episode is truncated; None for no limit
        :param deterministic: act without exploration
        :param episode_finished: called after each episode with this Runner. A function of two arguments also receives
            the number of the worker, always 0, as in TensorForce 0.4. The run ends if the function returns False
        :param episodes: older name of ``num_episodes``; ``timesteps`` is the older name of ``num_timesteps``
        :raises CoachError: if no argument limits the length of the run
        """
        num_episodes = episodes if num_episodes is None else num_episodes
        num_timesteps = timesteps if num_timesteps is None else num_timesteps
        if num_episodes is None and num_timesteps is None and episode_finished is None:
            raise CoachError("Runner.run needs num_episodes, num_timesteps, or an episode_finished that ends the run")
        worker = (0,) if episode_finished is not None and takes(episode_finished, self, 0) else ()
        self.start_time = time.time()
        until_episode = None if num_episodes is None else self.episode + num_episodes
        until_timestep = None if num_timesteps is None else self.timestep + num_timesteps
        while (until_episode is None or self.episode < until_episode) and (
            until_timestep is None or self.timestep < until_timestep
        ):
            self._play(max_episode_timesteps, deterministic)
            if episode_finished is not None and episode_finished(self, *worker) is False:
                break

    def _play(self, limit: int | None, deterministic: bool) -> None:
        self._loop.begin()
        self.episode_timestep, is_over = 0, False
        while not is_over:
            [episode] = self._loop.step(limit, deterministic, self.repeat_actions)
            self.episode_timestep, is_over = episode.timesteps, episode.is_over
            self.timestep += 1
        self.episode += 1
        self.episode_rewards.append(episode.total)
        self.episode_timesteps.append(episode.timesteps)
        self.episode_times.append(episode.duration)

    def close(self) -> None:
        """Close agent and environment."""
        self.agent.close()
        self.environment.close()


SingleRunner = Runner
