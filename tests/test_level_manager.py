from __future__ import annotations

import pytest

from rl_coach.core_types import ActionInfo, EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.graph_managers.graph_manager import GraphManager
from rl_coach.level_manager import LevelManager
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import CoachError
from tests.zoo.agents import counting_agent
from tests.zoo.environments import CountingEnvironmentParameters, environment_of
from tests.zoo.graphs import schedule


def level_of(agent=None, episode_length=5, **settings):
    environment = environment_of(CountingEnvironmentParameters(episode_length))
    level = LevelManager("level", agent or counting_agent("agent"), environment, **settings)
    level.phase = RunPhase.TRAIN
    level.reset_internal_state()
    return level


def two_levels(steps_limit=3, episode_length=7, **settings):
    """A level whose agent chooses goals for the agent of the level below."""
    environment = environment_of(CountingEnvironmentParameters(episode_length))
    bottom_agent = counting_agent("bottom")
    bottom_agent.in_action_space = DiscreteActionSpace(4)
    bottom_agent.directives = []
    bottom_agent.set_incoming_directive = bottom_agent.directives.append
    bottom = LevelManager("bottom", bottom_agent, environment, steps_limit=EnvironmentSteps(steps_limit), **settings)
    top = LevelManager("top", counting_agent("top"), bottom, real_environment=environment)
    return top, bottom, environment


class TwoLevelGraph(GraphManager):
    def _create_graph(self, task_parameters):
        top, bottom, environment = two_levels()
        return [top, bottom], [environment]


def test_a_step_acts_and_shows_the_agent_the_answer():
    level = level_of(episode_length=2)
    agent = level.acting_agent
    response = level.step(None)
    assert agent.calls == ["reset", "observe", "act", "observe"]
    assert response is level.environment.last_env_response and not level.episode_over
    assert level.step(None).game_over and level.episode_over
    assert level.environment_steps == 2
    level.handle_episode_ended()
    assert agent.calls[-1] == "ended"


def test_an_agent_that_only_imitates_does_not_move_the_environment():
    agent = counting_agent("agent")
    agent.act = lambda: None
    level = level_of(agent)
    assert level.step(None) is level.environment.last_env_response
    assert level.environment.total_steps == level.environment_steps == 0


def test_an_agent_may_end_its_episode_before_the_environment_does():
    graph = TwoLevelGraph("g", schedule(EnvironmentSteps(1)))
    graph.create_graph()
    top = graph.top_level_manager.acting_agent
    observe = top.observe
    top.observe = lambda response: observe(response) or len(top.episode) == 3
    with graph.phase_context(RunPhase.TRAIN):
        graph.act(EnvironmentEpisodes(2))
    assert [len(episode) for episode in top.episodes] == [3, 3]
    assert graph.environments[0].resets == 3  # one of the constructor, two forced


def test_two_levels_act_in_turns():
    graph = TwoLevelGraph("g", schedule(EnvironmentSteps(1)))
    graph.create_graph()
    top, bottom = (level.acting_agent for level in graph.level_managers)
    chosen, act = [], top.act
    top.act = lambda: chosen.append(act()) or chosen[-1]
    with graph.phase_context(RunPhase.TRAIN):
        graph.act(EnvironmentEpisodes(1))
    assert [response.reward for response in top.episodes[0]] == [0, 3, 3, 1]
    assert len(bottom.episodes[0]) == 8 and len(bottom.directives) == 3
    assert graph.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps] == 7
    assert graph.total_steps_counters[RunPhase.TRAIN][EnvironmentEpisodes] == 1
    assert bottom.directives == [info.action for info in chosen]


def test_the_upper_agent_acts_in_the_directives_of_the_lower():
    top, bottom, _ = two_levels()
    assert top.spaces_definition.action is bottom.agent.in_action_space
    assert bottom.get_random_action() in range(4)
    assert isinstance(bottom.get_random_action_with_info(), ActionInfo)
    assert top.real_environment is bottom.real_environment
    with pytest.raises(CoachError, match="level 'top' cannot receive goals"):
        top.get_random_action()


def test_each_directive_may_begin_an_episode_for_the_lower_agent():
    top, bottom, _ = two_levels(should_reset_agent_state_after_time_limit_passes=True)
    for level in (top, bottom):
        level.phase = RunPhase.TRAIN
        level.reset_internal_state()
    for _ in range(2):
        top.step(None)
    calls = bottom.acting_agent.calls
    assert calls == ["reset", "observe", *["act", "observe"] * 3, "ended"] * 2
    for level in (top, bottom):
        level.handle_episode_ended()
    assert bottom.acting_agent.calls == calls and top.acting_agent.calls[-1] == "ended"


def test_a_lower_agent_that_reached_its_goal_begins_anew_with_the_next_directive():
    top, bottom, _ = two_levels()
    for level in (top, bottom):
        level.phase = RunPhase.TRAIN
        level.reset_internal_state()
    agent = bottom.acting_agent
    observe = agent.observe
    agent.observe = lambda response: observe(response) or len(agent.episode) == 2
    top.step(None)
    assert bottom.episode_over and bottom.environment_steps == 1
    top.step(None)
    assert bottom.environment_steps == 2


def test_an_evaluation_parks_the_episode():
    environment = environment_of(CountingEnvironmentParameters(), seed=1)
    level = level_of(evaluation_environment_factory=lambda: environment)
    level.step(None)
    level.phase = RunPhase.TEST
    assert level.active_environment is level.evaluation_environment is environment
    level.reset_environment(True)
    level.reset_internal_state()
    while not level.episode_over:
        level.step(None)
    level.phase = RunPhase.TRAIN
    assert not level.episode_over and level.active_environment is level.environment
    level.step(None)
    assert [r.next_state["observation"][0] for r in level.acting_agent.episode] == [0, 1, 2]


def test_an_evaluation_can_be_forgotten():
    level = level_of()
    before = level.evaluation_state()
    level.phase = RunPhase.TEST
    level.acting_agent.evaluation_rewards = [3.0]
    level.undo_evaluation(before)
    level.phase = RunPhase.TRAIN
    assert level.acting_agent.agent_logger.columns == []


def test_it_trains_within_the_limit():
    level = level_of()
    level.acting_agent.ap.algorithm.updates_per_training = 8
    level.step(None)
    assert level.train() == 8
    level.step(None)
    assert level.train(at_most=3) == 3
    assert level.train() == 0  # nothing has been played since


def test_it_stops_at_the_target_success_rate():
    level = level_of()
    agent = level.acting_agent
    level.environment.target_success_rate = 0.5
    agent.evaluation_rewards = [5.0, 1.0, 1.0]
    assert not level.should_stop()
    agent.evaluation_rewards = [5.0, 1.0]
    assert level.should_stop()


def test_the_state_comes_back():
    level, again = level_of(), level_of()
    for _ in range(5):
        level.step(None)
    again.set_state(level.get_state())
    assert again.environment_steps == 5
    for each in (level, again):
        each.reset_environment(True)
        each.reset_internal_state()
    assert [level.step(None).next_state["observation"][1]] == [again.step(None).next_state["observation"][1]]


@pytest.mark.parametrize("agents", [[], {}, [counting_agent("a"), counting_agent("b")], None])
def test_a_level_has_one_agent(agents):
    with pytest.raises(CoachError, match="needs one agent"):
        LevelManager("level", agents, environment_of(CountingEnvironmentParameters()))


def test_the_steps_limit_counts_steps():
    with pytest.raises(CoachError, match="steps_limit of level 'level'"):
        level_of(steps_limit=EnvironmentEpisodes(1))


def test_closing_closes_both_environments():
    level = level_of(evaluation_environment_factory=lambda: environment_of(CountingEnvironmentParameters()))
    level.phase = RunPhase.TEST
    level.close()
    assert level.environment.is_closed and level.evaluation_environment.is_closed
