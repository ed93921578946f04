"""Agents below and beside others: the directives that they take, and the files that they write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest

from rl_coach.agents.agent import Agent
from rl_coach.agents.composite_agent import CompositeAgent, SingleDecider
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import TaskParameters, VisualizationParameters
from rl_coach.callbacks.callback import Callback
from rl_coach.core_types import ActionInfo, Directive, EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter
from rl_coach.graph_managers.graph_manager import GraphManager
from rl_coach.level_manager import LevelManager
from rl_coach.memories.episodic.episodic_hindsight_experience_replay import (
    EpisodicHindsightExperienceReplayParameters,
    HindsightGoalSelectionMethod,
)
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, GoalsSpace, ReachingGoal, VectorObservationSpace
from rl_coach.utils import short_dynamic_import
from tests.frameworks import FRAMEWORK
from tests.zoo.continuous import ddpg
from tests.zoo.environments import Bandit, SmallEnvironment
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn


class SeveralInOne(GraphManager):
    """Two agents that act as one."""

    def _create_graph(self, task_parameters):
        settings = {"frame_skip": 1, "human_control": False, "custom_reward_threshold": None}
        environment = Bandit(level="bandit", seed=0, visualization_parameters=VisualizationParameters(), **settings)
        parameters = {name: dqn() for name in ("left", "right")}
        for each in parameters.values():
            each.task_parameters = task_parameters
            each.input_filter, each.output_filter = NoInputFilter(), NoOutputFilter()
        agent = CompositeAgent(
            parameters, VisualizationParameters(), SingleDecider("left"), DiscreteActionSpace(2), name="both"
        )
        agent.seed(np.random.SeedSequence(1))
        return [LevelManager("main_level", agent, environment)], [environment]


def test_agents_in_a_composite_name_graph_and_level_in_their_files(tmp_path):
    manager = SeveralInOne("pair", schedule(20), VisualizationParameters())
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1))
    manager.heatup(EnvironmentSteps(20))
    manager.close()
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == [
        "worker_0.pair.main_level.main_level.both.left_0.csv",
        "worker_0.pair.main_level.main_level.both.right_0.csv",
    ]


class Listener(Callback):
    def __init__(self):
        self.rows = []

    def on_row(self, run):
        self.rows.append(dict(run.row))

    def on_step(self, run):
        run.log("Steps", run.steps)


def test_callbacks_get_the_rows_of_all_agents_in_a_composite(tmp_path):
    manager, listener = SeveralInOne("pair", schedule(20, heatup=20), VisualizationParameters()), Listener()
    manager.use_callbacks([listener])
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1))
    manager.improve()
    manager.close()
    for agent in ("left", "right"):
        rows = [row for row in listener.rows if f"{agent}/Training Iter" in row]
        assert [row[f"{agent}/Total steps"] for row in rows] == [10, 20, 30, 40]
    columns = [pandas.read_csv(path).columns for path in sorted(tmp_path.glob("*.csv"))]
    assert ["Steps/Mean" in names for names in columns] == [True, False]


def test_a_directive_stays_out_of_the_environments_own_state(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path)
    agent, environment = manager.get_agent(), manager.environments[0]
    agent.set_incoming_directive(np.array([6.0]))
    with manager.phase_context(RunPhase.TRAIN):
        manager.act(EnvironmentSteps(1))
        answer = environment.last_env_response
        agent.set_incoming_directive(np.array([7.0]))
        assert "desired_goal" not in answer.next_state and "desired_goal" not in environment.state
        assert agent.curr_state["desired_goal"] == 7.0
        manager.act(EnvironmentSteps(1))
    # a goal is in force until the next one: a transition has it on both sides
    goals = [
        (step.state["desired_goal"].item(), step.next_state["desired_goal"].item())
        for step in agent.current_episode_buffer.transitions
    ]
    assert goals == [(6.0, 6.0), (7.0, 7.0)]


class Walk(SmallEnvironment):
    """A walk on a line from 0, in steps of 0.1 to the left or to the right, towards a goal that is seen."""

    def observations(self) -> dict[str, Any]:
        place = VectorObservationSpace(1, -1.0, 2.0)
        return {"observation": place, "desired_goal": place}

    def actions(self) -> DiscreteActionSpace:
        return DiscreteActionSpace(2)

    def first_state(self) -> dict[str, np.ndarray]:
        return {"observation": np.zeros(1, np.float32), "desired_goal": np.ones(1, np.float32)}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        place = self.state["observation"] + np.float32(0.2 * action - 0.1)
        self.state = {**self.state, "observation": place}
        return -abs(float(place[0]) - 1.0), False, self.steps >= 12


class GoalsForWalks(GraphManager):
    """DDPG chooses goals for DQN, which takes three steps towards each."""

    def _create_graph(self, task_parameters):
        settings = {"frame_skip": 1, "human_control": False, "custom_reward_threshold": None}
        environment = Walk(level="walk", seed=0, visualization_parameters=VisualizationParameters(), **settings)
        walker, chooser = dqn(), ddpg()
        goals = GoalsSpace("observation", ReachingGoal(0.1), GoalsSpace.DistanceMetric.Euclidean)
        walker.algorithm.in_action_space = goals
        seen = ("observation", "desired_goal")
        walker.network_wrappers["main"].input_embedders_parameters = {
            name: InputEmbedderParameters(scheme=[Dense(8)]) for name in seen
        }
        self.walker, self.chooser = (self.agent_of(one, task_parameters) for one in (walker, chooser))
        self.walker.name, self.chooser.name = "walker", "chooser"
        bottom = LevelManager("bottom", self.walker, environment, steps_limit=EnvironmentSteps(3))
        top = LevelManager("top", self.chooser, bottom, real_environment=environment)
        return [top, bottom], [environment]

    @staticmethod
    def agent_of(parameters: Any, task_parameters: Any) -> Agent:
        parameters.task_parameters = task_parameters
        parameters.input_filter, parameters.output_filter = NoInputFilter(), NoOutputFilter()
        agent = short_dynamic_import(parameters.path)(parameters)
        agent.seed(np.random.SeedSequence(1))
        return agent


@pytest.fixture
def walks(tmp_path) -> Any:
    manager = GoalsForWalks("walks", schedule(20), VisualizationParameters())
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1))
    yield manager
    manager.close()


def test_an_agent_of_continuous_actions_chooses_goals_for_another(walks):
    chooser, walker = walks.chooser, walks.walker
    space = chooser.spaces.action
    assert isinstance(space, BoxActionSpace) and (space.low.item(), space.high.item()) == (-1.0, 2.0)
    assert isinstance(walker.in_action_space, GoalsSpace)
    networks = [chooser.networks["actor"].online_network, walker.networks["main"].online_network]
    before = [network.get_weights() for network in networks]
    walks.heatup(EnvironmentSteps(48))
    with walks.phase_context(RunPhase.TRAIN):
        walks.train_and_act(EnvironmentSteps(48))
    chosen = [step for row in range(chooser.memory.length()) for step in chooser.memory.get(row).transitions]
    pursued = [walker.memory.get(i) for i in range(walker.memory.num_transitions())]
    assert len(pursued) == 3 * len(chosen)
    for row, choice in enumerate(chosen):
        assert -1.0 <= choice.action.item() <= 2.0
        for step in pursued[3 * row : 3 * row + 3]:
            assert step.state["desired_goal"].item() == pytest.approx(choice.action.item())
    assert chooser.training_iteration > 0 and walker.training_iteration > 0
    for network, old in zip(networks, before):
        assert not all(np.array_equal(*pair) for pair in zip(old, network.get_weights()))


def test_a_goal_that_is_tested_is_pursued_without_exploring(walks):
    bottom, walker = walks.level_managers[1], walks.walker
    with walks.phase_context(RunPhase.TRAIN):
        walks.reset_internal_state(True)
        for directive, phase in (
            (Directive(np.array([0.5]), is_tested=True), RunPhase.TEST),
            (np.array([0.7]), RunPhase.TRAIN),
        ):
            bottom.step(directive)
            assert walker.exploration_policy.phase is phase and walker.phase is RunPhase.TRAIN
            assert walker.curr_state["desired_goal"] == Directive.of(directive).goal
        bottom.step(Directive(np.array([0.5]), is_tested=True))
        with walks.phase_context(RunPhase.TEST):
            pass
        assert walker.episode.is_tested and walker.exploration_policy.phase is RunPhase.TEST


def test_the_level_above_may_pass_on_that_it_tests(walks):
    chooser, act = walks.chooser, walks.chooser.act
    chooser.act = lambda: ActionInfo(Directive(act().action, is_tested=True))
    with walks.phase_context(RunPhase.TRAIN):
        walks.act(EnvironmentSteps(3))
    assert walks.walker.episode.is_tested
    assert isinstance(chooser.last_action_info.action, np.ndarray)


class LongWalk(Walk):
    """A walk of fifty steps."""

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        reward, _, _ = super().outcome(action)
        return reward, False, self.steps >= 50


class EpisodesForWalks(GoalsForWalks):
    """Each goal that DDPG chooses begins an episode of at most ten steps for DQN with hindsight."""

    def _create_graph(self, task_parameters):
        settings = {"frame_skip": 1, "human_control": False, "custom_reward_threshold": None}
        environment = LongWalk(level="walk", seed=0, visualization_parameters=VisualizationParameters(), **settings)
        walker, chooser = dqn(), ddpg()
        # never reached, so that only the limit ends the episodes of the walker
        goals = GoalsSpace("observation", ReachingGoal(0.0), GoalsSpace.DistanceMetric.Euclidean)
        walker.algorithm.in_action_space = goals
        walker.visualization = VisualizationParameters(dump_in_episode_signals=True)
        walker.memory = EpisodicHindsightExperienceReplayParameters()
        walker.memory.goals_space, walker.memory.hindsight_transitions_per_regular_transition = goals, 2
        walker.memory.hindsight_goal_selection_method = HindsightGoalSelectionMethod.Future
        self.walker, self.chooser = (self.agent_of(one, task_parameters) for one in (walker, chooser))
        self.walker.name, self.chooser.name = "walker", "chooser"
        bottom = LevelManager(
            "bottom", self.walker, environment, steps_limit=EnvironmentSteps(10),
            should_reset_agent_state_after_time_limit_passes=True,
        )  # fmt: skip
        top = LevelManager("top", self.chooser, bottom, real_environment=environment)
        return [top, bottom], [environment]


def test_each_directive_is_an_episode_in_the_lower_agents_memory(tmp_path):
    manager = EpisodesForWalks("walks", schedule(50), VisualizationParameters())
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1))
    walker, chooser = manager.walker, manager.chooser
    manager.heatup(EnvironmentSteps(50))
    # ten steps and two transitions with another goal for each of them but the last, which has no step after it
    assert walker.memory.num_complete_episodes() == 5 and walker.current_episode == 5
    assert walker.memory.episode_lengths().tolist() == [10 + 2 * 9] * 5
    played = [episode.transitions[9] for episode in walker.memory.get_all_complete_episodes()]
    assert all(step.game_over for step in played)
    assert [step.terminated for step in played] == [False] * 5
    assert chooser.memory.num_complete_episodes() == chooser.current_episode == 1
    goals = [step.action.item() for step in chooser.memory.get_last_complete_episode().transitions]
    assert [step.state["desired_goal"].item() for step in played] == pytest.approx(goals)
    with manager.phase_context(RunPhase.TRAIN):
        manager.act(EnvironmentSteps(20))
        assert walker.memory.num_complete_episodes() == 7 and chooser.memory.num_complete_episodes() == 1
        with manager.phase_context(RunPhase.TEST):
            manager.act(EnvironmentEpisodes(1))
            assert walker.num_evaluation_episodes_completed == 5
        manager.act(EnvironmentSteps(30))
    manager.close()
    assert walker.memory.num_complete_episodes() == walker.current_episode == 10
    rows = pandas.read_csv(tmp_path / "worker_0.walks.bottom.bottom.walker_0.csv")
    assert rows["Episode #"].tolist()[-1] == 10 and rows["Episode Length"].dropna().tolist() == [10] * 10
    # each step is 0.1 long, and the distance to the goal is measured after it
    last = walker.memory.get_last_complete_episode().transitions[:10]
    distances = [abs(step.next_state["observation"] - step.state["desired_goal"]).item() for step in last]
    assert rows["Distance From Goal/Mean"].iloc[-1] == pytest.approx(np.mean(distances), rel=1e-5)
    steps = pandas.read_csv(next(tmp_path.glob("*.walker*.episodes/episode_9.csv")))
    assert steps["Distance From Goal"].tolist() == pytest.approx(distances, rel=1e-5)
    assert steps["Shaped Accumulated Reward"].tolist() == pytest.approx(steps["Shaped Reward"].cumsum().tolist())
    assert steps["ER #Episodes"].tolist() == [9] * 10 and "Update Target Network" in steps
