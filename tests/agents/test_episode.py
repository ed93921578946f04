"""What belongs to an episode stays with it: in several copies of the environment, in an evaluation, in a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.schedules import ConstantSchedule
from rl_coach.utils import CoachError
from tests.zoo.agents import of_class
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn


class OptionInProgress(EpisodeInProgress):
    """An episode that follows one of several options."""

    def __init__(self, algorithm: Any):
        super().__init__(algorithm)
        self.option = 0
        self.seen: list[int] = []


class OptionAgent(DQNAgent):
    """Draws an option at the start of each episode, and keeps it in the episode."""

    episode_class = OptionInProgress
    options = 0

    def reset_internal_state(self):
        super().reset_internal_state()
        self.options += 1
        self.episode.option = self.options

    def choose_action(self, curr_state):
        self.episode.seen.append(self.episode.option)
        return super().choose_action(curr_state)


class CoachOptionAgent(DQNAgent):
    """The same as people wrote it for Coach: the option is an attribute of the agent."""

    counters = (*DQNAgent.counters, "options")
    options = 0

    def reset_internal_state(self):
        super().reset_internal_state()
        self.options += 1
        self.set_option()

    def set_option(self):
        setattr(self, "option", self.options)  # noqa: B010 - as a class may, whose code nothing reads
        self.seen = []

    def choose_action(self, curr_state):
        self.seen.append(self.option)
        return super().choose_action(curr_state)


class Grandchild(CoachOptionAgent):
    """An agent that inherits such a beginning."""


def greedy_graph(agent: type, directory: Any, copies: int = 1) -> BasicRLGraphManager:
    parameters = of_class(dqn(), agent)
    parameters.exploration.epsilon_schedule = ConstantSchedule(0)
    return graph(parameters, Bandit, directory, schedule(100), seed=3, copies=copies)


def options_of(agent: Any) -> list[tuple[int, list[int]]]:
    """The option of each environment's episode, and those that its actions were chosen by."""
    found = []
    for _ in agent.parallel or [None]:
        holder = agent.episode if isinstance(agent, OptionAgent) else agent
        found.append((holder.option, list(holder.seen)))
    return found


def test_three_copies_each_keep_their_own(tmp_path):
    manager = greedy_graph(OptionAgent, tmp_path, copies=3)
    manager.train_and_act(EnvironmentSteps(12))
    assert options_of(manager.get_agent()) == [(1, [1] * 4), (2, [2] * 4), (3, [3] * 4)]


def test_several_copies_are_refused_where_nobody_says_what_belongs_to_an_episode(tmp_path):
    for kind in (CoachOptionAgent, Grandchild):
        with pytest.raises(CoachError, match="keep them in an episode_class, or set env_params"):
            greedy_graph(kind, tmp_path, copies=3).get_agent()


def test_an_evaluation_in_between_leaves_it_as_it_was(tmp_path):
    for kind in (OptionAgent, CoachOptionAgent):
        manager = greedy_graph(kind, tmp_path / kind.__name__)
        manager.train_and_act(EnvironmentSteps(4))
        manager.evaluate(EnvironmentSteps(15))
        assert manager.get_agent().options == 3
        manager.train_and_act(EnvironmentSteps(3))
        assert options_of(manager.get_agent()) == [(1, [1] * 7)]


def test_a_checkpoint_holds_it(tmp_path):
    for kind, most in ((OptionAgent, 3), (CoachOptionAgent, 1)):
        for copies in {1, most}:
            place = tmp_path / f"{kind.__name__}{copies}"
            manager = greedy_graph(kind, place, copies)
            manager.train_and_act(EnvironmentSteps(6 * copies))
            path = manager.save_checkpoint()
            again = greedy_graph(kind, place / "again", copies)
            again.restore_checkpoint(path, continue_run=True)
            assert options_of(again.get_agent()) == options_of(manager.get_agent())
            assert len(options_of(again.get_agent())) == copies
            again.train_and_act(EnvironmentSteps(copies))
            assert [len(seen) for _, seen in options_of(again.get_agent())] == [7] * copies


def test_coach_names_are_the_fields_of_the_episode(tmp_path):
    manager = greedy_graph(CoachOptionAgent, tmp_path)
    manager.train_and_act(EnvironmentSteps(3))
    agent = manager.get_agent()
    episode = agent.episode
    assert agent.curr_state is episode.curr_state and agent.current_episode_buffer is episode.buffer
    assert agent.current_episode_steps_counter == episode.steps == episode.buffer.length() == 3
    assert agent.total_reward_in_current_episode == episode.total_reward
    agent.total_reward_in_current_episode = 7.5
    assert episode.total_reward == 7.5
    agent.curr_state = {"observation": np.zeros(2)}
    assert episode.curr_state["observation"].tolist() == [0, 0]
    assert agent.phase is not RunPhase.TEST
