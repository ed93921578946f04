"""Attributes of an agent that live in its parts, by the names that Coach gave them."""

from __future__ import annotations

import operator
from typing import Any

from rl_coach.agents.agent_interface import AgentInterface


class Delegated:
    """An attribute of an agent that lives in one of its parts, by the name that Coach gave it.

    :param part: the agent's attribute that holds it; a dot leads on to a part of the part
    :param name: its name there
    """

    def __init__(self, part: str, name: str):
        self._part = operator.attrgetter(part)
        self._name = name

    def __get__(self, agent: Any, owner: type | None = None) -> Any:
        return self if agent is None else getattr(self._part(agent), self._name)

    def __set__(self, agent: Any, value: Any) -> None:
        setattr(self._part(agent), self._name, value)


class DelegatedAttributes(AgentInterface):
    """Attributes that agents written for Coach read and assign."""

    curr_state = Delegated("episode", "curr_state")
    last_action_info = Delegated("episode", "last_action_info")
    current_episode_buffer = Delegated("episode", "buffer")
    current_episode_steps_counter = Delegated("episode", "steps")
    total_reward_in_current_episode = Delegated("episode", "total_reward")
    total_shaped_reward_in_current_episode = Delegated("episode", "total_shaped_reward")
    last_training_phase_step = Delegated("clock", "last_phase")
    last_target_network_update_step = Delegated("clock", "last_target_update")
    agent_logger = Delegated("books", "logger")
    agent_episode_logger = Delegated("books", "step_logger")
    episode_signals = Delegated("books", "episode_signals")
    step_signals = Delegated("books", "step_signals")
    log_to_screen = Delegated("books", "print_episode")
    num_evaluation_episodes_completed = Delegated("books.evaluation", "episodes")
    num_successes_across_evaluation_episodes = Delegated("books.evaluation", "successes")
    accumulated_rewards_across_evaluation_episodes = Delegated("books.evaluation", "reward")
    accumulated_shaped_rewards_across_evaluation_episodes = Delegated("books.evaluation", "shaped_reward")
