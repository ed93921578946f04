"""Record an agent's episodes with the environment's raw values, which no filter has changed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from rl_coach.core_types import RunPhase, Transition
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import GraphManager
from rl_coach.level_manager import LevelManager
from rl_coach.logger import screen
from rl_coach.memories.data_set import DataSet
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import CoachError

_SECONDS_BETWEEN_NEWS = 10.0


def record(graph_manager: GraphManager, steps: int, phase: RunPhase) -> DataSet:
    """Let the agent of a graph play whole episodes without learning, and return the episodes.

    :param graph_manager: a created graph of one agent in one copy of its environment
    :param steps: the smallest number of steps; the last episode is played to its end
    :param phase: ``HEATUP`` acts at random, ``TRAIN`` explores, ``TEST`` acts as in an evaluation
    :return: the episodes with raw values, and the probabilities of discrete actions if the agent computes them
    :raises CoachError: if the graph has several levels, agents or copies of its environment
    """
    level = graph_manager.level_managers[0]
    if not isinstance(graph_manager, BasicRLGraphManager) or not (level.has_real_environment and level.has_one_episode):
        raise CoachError("only one agent in one copy of its environment can be recorded")
    agent: Any = graph_manager.get_agent()
    agent.remember_probabilities()
    episodes: list[list[Transition]] = []
    played, news_at = 0, time.monotonic() + _SECONDS_BETWEEN_NEWS
    with graph_manager.phase_context(phase):
        while played < steps:
            graph_manager.reset_internal_state(force_environment_reset=True)
            episodes.append(_play_episode(level, agent))
            graph_manager.handle_episode_ended()
            played += len(episodes[-1])
            if time.monotonic() >= news_at:
                screen.print(f"recorded {played:,} of {steps:,} steps")
                news_at = time.monotonic() + _SECONDS_BETWEEN_NEWS
    return DataSet.of_episodes(episodes, is_raw=True, spaces=level.spaces_definition)


def _play_episode(level: LevelManager, agent: Any) -> list[Transition]:
    level.look()
    environment: Any = level.active_environment
    # the agent's probabilities fit the environment's actions only if no output filter changes the number of actions
    space = level.spaces_definition.action
    count = space.num_actions if isinstance(space, DiscreteActionSpace) else None
    transitions = []
    while not level.episode_over:
        state = environment.last_env_response.next_state
        chosen = level.choose()
        if chosen is None:
            raise CoachError(f"agent '{agent.name}' learns without acting: there is nothing to record")
        response = environment.step(chosen.action)
        level.take_in(response)
        probabilities = agent.episode.last_action_info.all_action_probabilities
        transitions.append(
            Transition(
                state=state,
                action=chosen.action,
                reward=response.reward,
                next_state=response.next_state,
                game_over=response.game_over,
                info={} if np.shape(probabilities) != (count,) else {"all_action_probabilities": probabilities},
                terminated=response.terminated,
            )
        )
    return transitions
