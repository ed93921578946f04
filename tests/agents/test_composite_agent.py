from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.agents.composite_agent import (
    CompositeAgent,
    DecisionPolicy,
    MajorityVote,
    MeanDecision,
    RewardPolicy,
    RoundRobin,
    SingleDecider,
)
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import ActionInfo, EnvResponse, RunPhase
from rl_coach.level_manager import LevelManager
from rl_coach.spaces import AgentSelection, DiscreteActionSpace, GoalsSpace, ReachingGoal, SpacesDefinition, StateSpace
from rl_coach.utils import CoachError
from tests.zoo.agents import CountingAgentParameters
from tests.zoo.environments import CountingEnvironmentParameters, environment_of

SPACES = SpacesDefinition(state=StateSpace({}), goal=None, action=DiscreteActionSpace(3), reward=None)


def composite(policy, names="abc", seed=0, **settings):
    agent = CompositeAgent(
        {name: CountingAgentParameters() for name in names},
        VisualizationParameters(),
        policy,
        out_action_space=DiscreteActionSpace(3),
        **settings,
    )
    agent.seed(np.random.SeedSequence(seed))
    agent.create_agents()
    agent.set_environment_parameters(SPACES)
    agent.phase = RunPhase.TRAIN
    agent.reset_internal_state()
    return agent


def infos(*actions):
    return {name: ActionInfo(action) for name, action in zip("abcde", actions)}


def test_a_single_agent_decides():
    policy = SingleDecider("b")
    assert policy.choose_action(infos(0, 1, 2)).action == 1
    policy.decision_maker = "c"
    assert policy.decision_maker == "c" and policy.choose_action(infos(0, 1, 2)).action == 2
    policy.decision_maker = "nobody"
    with pytest.raises(CoachError, match="no deciding agent 'nobody'"):
        policy.choose_action(infos(0, 1))


def test_agents_decide_in_turn():
    policy = RoundRobin(3)
    assert [policy.choose_action(infos(5, 6, 7)).action for _ in range(5)] == [5, 6, 7, 5, 6]
    with pytest.raises(CoachError, match="RoundRobin"):
        policy.choose_action(infos(5))


def test_the_majority_decides_and_the_first_named_among_equals():
    assert MajorityVote().choose_action(infos(2, 1, 1, 0)).action == 1
    assert MajorityVote().choose_action(infos(2, 1, 1, 2)).action == 2


def test_the_mean_of_continuous_actions():
    mean = MeanDecision().choose_action(infos(np.array([0.0, 1.0]), np.array([1.0, 3.0]))).action
    assert np.array_equal(mean, [0.5, 2.0])


def test_a_decision_policy_must_decide():
    with pytest.raises(NotImplementedError):
        DecisionPolicy().choose_action({})


def test_everyone_learns_what_was_decided():
    agent = composite(SingleDecider("b"), decision_makers={"a": True, "b": True, "c": False})
    chosen = agent.act()
    assert all(each.last_action_info.action == chosen.action for each in agent.agents.values())
    assert agent.last_action_info is chosen
    assert [each.total_steps_counter for each in agent.agents.values()] == [1, 1, 1]
    agent.act(2)
    assert all(each.last_action_info.action == 2 for each in agent.agents.values())


def test_a_directive_selects_the_agent_that_decides():
    policy = SingleDecider("a")
    agent = composite(policy, in_action_space=AgentSelection(3))
    agent.set_incoming_directive(2)
    assert policy.decision_maker == "c"


def test_the_agents_draw_from_different_streams():
    agent, twin = composite(MajorityVote(), seed=3), composite(MajorityVote(), seed=3)
    drawn = [[each.rng.random() for each in which.agents.values()] for which in (agent, twin)]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 3


def rewards(agent):
    return [response.reward for response in agent.agents["a"].episode]


def test_reward_policies():
    native, summed = (
        composite(RoundRobin(3), reward_policy=policy)
        for policy in (RewardPolicy.NativeEnvironmentReward, RewardPolicy.AccumulatedEnvironmentRewards)
    )
    for agent in (native, summed):
        for reward in (0.0, 1.0, 2.0):
            agent.observe(EnvResponse({}, reward, False))
    assert rewards(native) == [0, 1, 2] and rewards(summed) == [0, 1, 3]
    summed.reset_internal_state()
    summed.observe(EnvResponse({}, 5.0, False))
    assert rewards(summed) == [5]


def test_the_reward_for_reaching_the_goal_above():
    goals = GoalsSpace(
        "at", ReachingGoal(distance_from_goal_threshold=0.1, goal_reaching_reward=9), lambda a, b: abs(a - b)
    )
    with pytest.raises(CoachError, match="needs a GoalsSpace"):
        composite(RoundRobin(3), reward_policy=RewardPolicy.ReachingGoal)
    agent = composite(RoundRobin(3), reward_policy=RewardPolicy.ReachingGoal, in_action_space=goals)
    agent.incoming_action = np.array(1.0)
    agent.observe(EnvResponse({"at": np.array([0.0])}, 5.0, False))
    agent.observe(EnvResponse({"at": np.array([1.0])}, 5.0, False))
    assert rewards(agent) == [-1, 9]


def test_an_episode_is_over_with_the_environment_or_when_all_agents_say_so():
    agent = composite(RoundRobin(3))
    assert not agent.observe(EnvResponse({}, 0.0, False))
    assert agent.observe(EnvResponse({}, 0.0, True))
    for each in agent.agents.values():
        each.observe = lambda response: True
    assert agent.observe(EnvResponse({}, 0.0, False))


def test_it_trains_all_within_the_limit():
    agent = composite(RoundRobin(3))
    agent.act()
    assert float(agent.train()) == 1.5 and agent.training_iteration == 3
    agent.act()
    agent.updates_left = 2
    agent.train()
    assert agent.training_iteration == 5


def test_an_episode_put_aside_and_the_state():
    agent = composite(RoundRobin(3), reward_policy=RewardPolicy.AccumulatedEnvironmentRewards)
    agent.observe(EnvResponse({}, 1.0, False))
    agent.act()
    episode = agent.put_episode_aside()
    agent.reset_internal_state()
    agent.take_up_episode(episode)
    agent.observe(EnvResponse({}, 1.0, False))
    assert rewards(agent) == [1, 2]
    again = composite(RoundRobin(3), seed=9)
    again.set_state(agent.get_state())
    assert again.act().action == agent.act().action


def test_an_evaluation_leaves_the_turn_of_training():
    level = LevelManager("level", composite_in_level(), environment_of(CountingEnvironmentParameters()))
    level.phase = RunPhase.TRAIN
    level.reset_internal_state()
    level.step(None)
    before = dict(vars(level.agent.decision_policy))
    level.phase = RunPhase.TEST
    level.reset_internal_state()
    level.step(None)
    level.phase = RunPhase.TRAIN
    assert vars(level.agent.decision_policy) == before


def composite_in_level():
    return CompositeAgent(
        {name: CountingAgentParameters() for name in "ab"}, VisualizationParameters(), RoundRobin(2),
        out_action_space=DiscreteActionSpace(3), name="both",
    )  # fmt: skip


def test_in_a_level():
    agent = composite_in_level()
    level = LevelManager("level", agent, environment_of(CountingEnvironmentParameters()))
    level.reset_internal_state()
    level.step(None)
    assert agent.full_name_id == "level/both" and agent.agents["a"].parent is agent
    assert agent.get_success_rate() == 0.0 and agent.is_on_policy is False


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"decision_makers": {"a": True, "d": True}}, "no agent 'd'"),
        ({"decision_makers": False}, "is False for each agent: set it to True for at least one of"),
    ],
)
def test_mistakes(settings, message):
    with pytest.raises(CoachError, match=message):
        composite(RoundRobin(3), **settings)


def test_what_an_agent_must_define_says_so():
    agent = AgentInterface()
    for call in (agent.reset_internal_state, agent.act, agent.train, agent.get_success_rate, agent.get_state):
        with pytest.raises(NotImplementedError, match="AgentInterface"):
            call()
    for call in (agent.handle_episode_ended, agent.put_episode_aside, agent.sync, agent.close):
        call()
