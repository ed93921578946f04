"""The loop of an agent and its environments, with the methods of RLgraph's ``SingleThreadedWorker``."""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, Mapping

import numpy as np

from rl_coach.own_loop.played import Episode, Loop, gymnasium_environment, positive
from rl_coach.own_loop.spec_agent import SpecAgent
from rl_coach.own_loop.spec_parts import left_out
from rl_coach.utilities.spec_fields import Fields
from rl_coach.utilities.user_code import takes
from rl_coach.utils import CoachError

logger = logging.getLogger("rl_coach")

ENVIRONMENTS = ("openai", "openai-gym", "open-ai-gym")
"""The values of ``type`` in a specification that mean an environment of Gymnasium."""
_OF_THE_AGENT = (
    "update_mode", "update_interval", "steps_before_update", "batch_size", "sync_interval", "sync_tau", "sample_size",
    "num_iterations",
)  # fmt: skip


class SingleThreadedWorker:
    """The loop of an agent in one environment or several. The environments are stepped one after the other.

    :param env_spec: an environment (see ``PlayedEnvironment``); a function that returns one; or a dict with
        ``gym_env``, an id of Gymnasium
    :param agent: an agent for a specification, with the same number of environments (``num_envs``)
    :param num_environments: number of environments; if it is above 1, ``env_spec`` must be a function or a dict
    :param frameskip: number of times that each action is executed; the rewards are summed
    :param episode_finish_callback: called after each episode with its return, its duration in seconds, its number of
        actions and, if it has this argument, ``env_num``
    :param preprocessing_spec: not supported; give it to the agent
    :param worker_executes_preprocessing: has no effect
    :param render: has no effect; make the environment with a window instead
    :param environment: older name of ``env_spec``
    :raises CoachError: if an argument is wrong
    """

    def __init__(
        self,
        env_spec: Any = None,
        agent: SpecAgent | None = None,
        num_environments: int = 1,
        frameskip: int = 1,
        episode_finish_callback: Callable[..., Any] | None = None,
        preprocessing_spec: Any = None,
        worker_executes_preprocessing: bool = True,
        render: bool = False,
        *,
        environment: Any = None,
    ):
        env_spec = environment if env_spec is None else env_spec
        if agent is None or env_spec is None:
            raise CoachError("a SingleThreadedWorker needs an env_spec and an agent")
        if preprocessing_spec:
            raise CoachError("a worker does not support preprocessing_spec: give it to the agent instead")
        if render:
            logger.warning("render has no effect: make the environment with visualize=True, or render_mode='human'")
        if len(agent.env_names) != num_environments:
            raise CoachError(
                f"the agent has {len(agent.env_names)} environments, the worker {num_environments}: give both the same "
                f"number (num_envs and num_environments)"
            )
        self.agent = agent
        self.num_environments = num_environments
        self.frameskip = positive("frameskip", frameskip)
        self.episode_finish_callback = episode_finish_callback
        self._loop = Loop(agent, _environments_of(env_spec, num_environments))

    def execute_timesteps(
        self,
        num_timesteps: int,
        max_timesteps_per_episode: int | None = None,
        update_spec: Mapping[str, Any] | None = None,
        use_exploration: bool = True,
        frameskip: int | None = None,
        reset: bool = True,
    ) -> dict[str, float]:
        """Play a number of actions, counted over all environments.

        :param num_timesteps: the number of actions
        :param max_timesteps_per_episode: actions after which an episode is truncated; None or 0 for no limit
        :param update_spec: ``{"do_updates": False}`` to play without learning; None for the agent's ``update_spec``
        :param use_exploration: False for the policy's best actions
        :param frameskip: number of times that each action is executed; None for the worker's setting
        :param reset: True begins new episodes; False continues the episodes in progress
        :return: ``timesteps_executed``, ``episodes_executed``, ``env_frames`` (with repetitions), ``runtime`` in
            seconds, ``ops_per_second``, ``env_frames_per_second``, ``episodes_per_minute``, ``mean_episode_runtime``,
            and ``mean_episode_reward``, ``max_episode_reward`` and ``final_episode_reward`` of the episodes that ended.
            If no episode ended, these are the rewards of the episodes in progress
        :raises CoachError: if an argument is wrong
        """
        limit = positive("num_timesteps", num_timesteps)
        settings = (max_timesteps_per_episode, update_spec, use_exploration, frameskip, reset)
        return self._execute(lambda timesteps, episodes: timesteps >= limit, *settings)

    def execute_episodes(
        self,
        num_episodes: int,
        max_timesteps_per_episode: int | None = None,
        update_spec: Mapping[str, Any] | None = None,
        use_exploration: bool = True,
        frameskip: int | None = None,
        reset: bool = True,
    ) -> dict[str, float]:
        """Play until a number of episodes has ended, counted over all environments.

        :param num_episodes: the number of episodes
        :param max_timesteps_per_episode: this and all other arguments are as for ``execute_timesteps``
        """
        limit = positive("num_episodes", num_episodes)
        settings = (max_timesteps_per_episode, update_spec, use_exploration, frameskip, reset)
        return self._execute(lambda timesteps, episodes: episodes >= limit, *settings)

    def _execute(
        self,
        is_over: Callable[[int, int], bool],
        longest: int | None,
        update_spec: Mapping[str, Any] | None,
        explores: bool,
        frameskip: int | None,
        reset: bool,
    ) -> dict[str, float]:
        repetitions = self.frameskip if frameskip is None else positive("frameskip", frameskip)
        learns, loop = self._learns(update_spec), self._loop
        began, timesteps, ended = time.perf_counter(), 0, list[Episode]()
        frames = loop.frames
        if reset:
            loop.begin()
        elif not loop.episodes:
            raise CoachError("no episode has begun: execute with reset=True first")
        before, self.agent.updates_itself = self.agent.updates_itself, learns
        try:
            while not is_over(timesteps, len(ended)):
                for number, episode in enumerate(loop.step(longest or None, not explores, repetitions)):
                    if episode.is_over:
                        self._tell(number, episode)
                        ended.append(episode)
                timesteps += self.num_environments
        finally:
            self.agent.updates_itself = before
        return _statistics(ended, loop.episodes, timesteps, loop.frames - frames, time.perf_counter() - began)

    def _learns(self, update_spec: Mapping[str, Any] | None) -> bool:
        of_agent = self.agent.spec.document.get("update_spec") or {}
        fields = Fields(update_spec or {}, "update_spec")
        learns = fields.flag("do_updates")
        fields.refuse("set it in the agent's specification instead", *_OF_THE_AGENT)
        fields.finish()
        return bool(of_agent.get("do_updates", True)) if learns is None else learns

    def _tell(self, number: int, episode: Episode) -> None:
        """Call the callback for an episode that has ended."""
        if self.episode_finish_callback is not None:
            callback, about = self.episode_finish_callback, (episode.total, episode.duration, episode.timesteps)
            by_name = {**dict(zip(("episode_return", "duration", "timesteps"), about)), "env_num": number}
            if takes(callback, **by_name):
                callback(**by_name)
            elif takes(callback, *about, env_num=number):
                callback(*about, env_num=number)
            else:
                callback(*about)


def _statistics(
    ended: list[Episode], running: list[Episode], timesteps: int, frames: int, seconds: float
) -> dict[str, float]:
    totals = [one.total for one in ended or running]
    return {
        "runtime": seconds,
        "timesteps_executed": timesteps,
        "ops_per_second": timesteps / seconds,
        "env_frames": frames,
        "env_frames_per_second": frames / seconds,
        "episodes_executed": len(ended),
        "episodes_per_minute": len(ended) * 60 / seconds,
        "mean_episode_runtime": float(np.mean([one.duration for one in ended])) if ended else 0.0,
        "mean_episode_reward": float(np.mean(totals)),
        "max_episode_reward": max(totals),
        "final_episode_reward": totals[-1],
    }


def gymnasium_arguments(spec: Mapping[str, Any]) -> tuple[str, bool]:
    """The id of Gymnasium in a specification, and True if the environment is shown in a window.

    :raises CoachError: if the specification has no id, or an entry that Coach does not support
    """
    fields = Fields(spec, "env_spec")
    fields.choice("type", ENVIRONMENTS)
    name, shows = fields.get("gym_env"), fields.get("visualize")
    reason = "use an Atari level with this setting, or the worker's frameskip"
    left_out(fields, reason, "frameskip", "max_num_noops", "episodic_life", "fire_reset")
    fields.finish()
    if not isinstance(name, str):
        raise CoachError("the spec's 'env_spec.gym_env' must be the id of a Gymnasium environment")
    return name, isinstance(shows, (bool, int)) and shows > 0


def _environments_of(given: Any, count: int) -> list[Any]:
    """The environments of a worker, from its arguments."""
    if isinstance(given, Mapping):
        arguments = gymnasium_arguments(given)
        return [gymnasium_environment(*arguments) for _ in range(count)]
    if callable(given):
        return [given() for _ in range(count)]
    if count > 1:
        raise CoachError(
            f"the worker has {count} environments: set env_spec to a function that makes one, or to a dict with gym_env"
        )
    return [given]
