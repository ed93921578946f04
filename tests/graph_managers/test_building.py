"""A graph manager of another kind, out of the functions that graph managers build with."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.human_agent import HumanAgentParameters
from rl_coach.base_parameters import TaskParameters
from rl_coach.command_line.graph_changes import _hand_over_to_human
from rl_coach.command_line.preset_catalogue import load
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter, NoOutputFilter
from rl_coach.graph_managers.building import (
    agent_of_graph,
    as_int,
    choose_form_of_actions,
    environment_of_graph,
    make_agent,
    make_environment,
)
from rl_coach.graph_managers.graph_manager import GraphManager
from rl_coach.level_manager import LevelManager
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import CoachError
from tests.zoo.agents import CountingAgent, CountingAgentParameters, of_class
from tests.zoo.environments import CountingEnvironmentParameters
from tests.zoo.graphs import schedule


class Follower(CountingAgent):
    """Takes directives from the level above."""

    def __init__(self, agent_parameters, parent=None):
        super().__init__(agent_parameters, parent)
        self.in_action_space = DiscreteActionSpace(3)
        self.directives = []

    def set_incoming_directive(self, action):
        self.directives.append(action)


class TwoLevels(GraphManager):
    """A level whose agent tells the agent of the level below what to do for some steps."""

    def __init__(self, leader, follower, env_params, schedule_params, steps_of_a_directive=3):
        super().__init__("two_levels", schedule_params)
        self.agents_params = [leader, follower]
        self.env_params = env_params
        self.steps_of_a_directive = EnvironmentSteps(steps_of_a_directive)

    def _create_graph(self, task_parameters):
        visualization = self.visualization_parameters
        environment_seed, evaluation_seed, *agent_seeds = (self.spawn_seed() for _ in range(4))
        self.env_params = environment_of_graph(self.env_params, task_parameters, environment_seed)
        environment = make_environment(self.env_params, self.env_params.seed, visualization)
        self.agents_params = [
            agent_of_graph(parameters, task_parameters, visualization, self.env_params, name)
            for parameters, name in zip(self.agents_params, ("leader", "follower"))
        ]
        leader, follower = map(make_agent, self.agents_params, agent_seeds)
        bottom = LevelManager(
            "bottom",
            follower,
            environment,
            steps_limit=self.steps_of_a_directive,
            evaluation_environment_factory=lambda: make_environment(
                self.env_params, as_int(evaluation_seed), visualization
            ),
        )
        return [LevelManager("top", leader, bottom, real_environment=environment), bottom], [environment]

    def documentation(self):
        return {**super().documentation(), "agents": self.agents_params, "environment": self.env_params}


def two_levels(directory):
    follower = of_class(CountingAgentParameters(), Follower)
    plan = schedule(30, EnvironmentSteps(15), EnvironmentEpisodes(2))
    graph = TwoLevels(CountingAgentParameters(), follower, CountingEnvironmentParameters(), plan)
    return graph.create_graph(TaskParameters(experiment_path=str(directory), seed=3))


def test_a_graph_of_two_levels_runs_trains_evaluates_and_goes_on(tmp_path):
    graph = two_levels(tmp_path)
    graph.improve()
    leader, follower = (level.agent for level in graph.level_managers)
    counts = graph.total_steps_counters
    assert counts[RunPhase.TRAIN][EnvironmentSteps] == graph.level_managers[1].environment_steps - 20 == 30
    assert counts[RunPhase.TEST][EnvironmentEpisodes] == 4
    # episodes of five steps: a directive for three of them, and one for the other two
    assert len(follower.directives) == 2 * (6 + 4) and leader.updates == follower.updates > 0
    again = two_levels(tmp_path)
    again.restore_checkpoint(str(tmp_path), continue_run=True)
    assert np.array_equal(again.level_managers[0].agent.weights, leader.weights)
    graph.close()


def test_components_get_seeds_and_parameters_of_their_own(tmp_path):
    graph = two_levels(tmp_path)
    leader, follower = graph.agents_params
    assert [leader.name, follower.name] == ["leader", "follower"]
    assert leader.algorithm is not follower.algorithm and leader.task_parameters is graph.task_parameters
    assert graph.level_managers[0].agent.rng.random() != graph.level_managers[1].agent.rng.random()
    assert graph.env_params.seed is not None and graph.env_params.experiment_path == str(tmp_path)


def test_an_agent_gets_the_environments_default_filters_where_it_has_none():
    environment = CountingEnvironmentParameters()
    environment.default_input_filter = InputFilter
    parameters = CountingAgentParameters()
    own = agent_of_graph(parameters, TaskParameters(), None, environment)
    assert type(own.input_filter) is InputFilter and type(own.output_filter) is NoOutputFilter
    assert parameters.input_filter is None
    mine = parameters.input_filter = InputFilter()
    assert agent_of_graph(parameters, TaskParameters(), None, environment).input_filter is not mine


def test_an_environment_that_cannot_be_made_says_so():
    parameters = CountingEnvironmentParameters()
    parameters.episode_length = None
    with pytest.raises(CoachError, match=r"environment .* cannot be made"):
        make_environment(parameters, 1, object())


@pytest.mark.parametrize(
    ("agents", "combines"),
    [
        ([ClippedPPOAgentParameters()], False), ([DQNAgentParameters()], True), ([], True),
        ([ClippedPPOAgentParameters(), DQNAgentParameters()], True), ([HumanAgentParameters()], False),
    ],
)  # fmt: skip
def test_agents_choose_the_form_of_actions_with_several_parts(agents, combines):
    environment = GymVectorEnvironment(level="CartPole-v1")
    choose_form_of_actions(environment, agents)
    assert environment.combines_choices is combines
    choose_form_of_actions(environment, [ClippedPPOAgentParameters()])  # a person's choice remains
    assert environment.combines_choices is combines


@pytest.mark.parametrize(("preset", "combines"), [("CartPole_BC", False), ("CartPole_DQN", True)])
def test_a_person_plays_in_the_form_that_the_presets_agent_learns_from(preset, combines):
    graph_manager = load(preset)
    _hand_over_to_human(graph_manager)
    assert graph_manager.env_params.combines_choices is combines


def test_a_name_without_effect_is_a_warning(capsys):
    for given, called in ((None, "agent"), ("agent", "agent"), ("mine", "agent")):
        parameters = DQNAgentParameters()
        parameters.name = given
        assert agent_of_graph(parameters, TaskParameters(), None, None).name == called
        assert ("the agent's name 'mine' has no effect" in "".join(capsys.readouterr())) == (given == "mine")
