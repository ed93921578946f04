"""Hierarchical actor-critic: what each level is rewarded for, which subgoals are tested, and what a miss costs."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.ddpg_agent import DDPGAgentParameters
from rl_coach.agents.hac_ddpg_agent import HACDDPGAgentParameters
from rl_coach.architectures.update import LearningBatch
from rl_coach.coach import BAD_INPUT, main
from rl_coach.core_types import Directive, EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.policy import Policy
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK, not_on_mxnet
from tests.zoo.goals import WIDTH, hierarchy, levels

HORIZON = 5


def rows_of(memory: Any) -> list[list[Any]]:
    """The transitions of each complete episode."""
    return [episode.transitions for episode in memory.get_all_complete_episodes()]


def played(manager: Any, episodes: int = 20) -> list[Any]:
    """Play training episodes without learning. :return: the agents, the top level's first"""
    with manager.phase_context(RunPhase.TRAIN):
        manager.act(EnvironmentEpisodes(episodes))
    return manager.get_agents()


def without_copies(agents: list[Any]) -> list[Any]:
    for agent in agents:
        agent.memory.hindsight_transitions_per_regular_transition = 0
    return agents


def test_a_level_is_rewarded_for_its_own_goal_and_terminates_only_there(tmp_path):
    agents = levels()
    without_copies(agents)
    top, bottom = played(hierarchy(tmp_path, agents))
    ends = {"reached": 0, "time limit": 0}
    for episode in rows_of(bottom.memory):
        goals = {step.state["desired_goal"].item() for step in episode}
        assert len(goals) == 1 and len(episode) <= HORIZON
        for step in episode:
            is_reached = bool(abs(step.next_state["achieved_goal"] - step.state["desired_goal"]) <= WIDTH)
            assert (step.reward, step.terminated) == (0.0 if is_reached else -1.0, is_reached)
            assert step.game_over is (step is episode[-1])
        if len(episode) == HORIZON and not episode[-1].terminated:
            ends["time limit"] += 1
        ends["reached"] += episode[-1].terminated
    assert all(ends.values())
    # the top level's reward is that of one step, however many steps the level below took for it
    rewards = {step.reward for episode in rows_of(top.memory) for step in episode if not step.info["penalty"]}
    assert rewards == {-1.0, 0.0}


def test_the_end_of_the_environment_truncates_a_level_that_missed_its_goal(tmp_path):
    agents = without_copies(levels())
    manager = hierarchy(tmp_path, agents)
    top, bottom = manager.get_agents()
    environment = manager.environments[0]
    with manager.phase_context(RunPhase.TRAIN):
        while not environment.last_env_response.terminated:
            manager.act(EnvironmentSteps(1))
    last = rows_of(bottom.memory)[-1][-1]
    was_reached = bool(abs(last.next_state["achieved_goal"] - last.state["desired_goal"]) <= WIDTH)
    assert last.game_over and last.terminated is was_reached
    assert top.episode.buffer.transitions[-1].terminated


def test_a_missed_subgoal_that_was_tested_costs_the_horizon(tmp_path):
    agents = without_copies(levels())
    agents[0].algorithm.sub_goal_testing_rate = 0.5
    manager = hierarchy(tmp_path, agents)
    directives: list[Directive] = []
    bottom_level = manager.level_managers[1]
    step = bottom_level.step
    bottom_level.step = lambda directive: directives.append(directive) or step(directive)
    top, _ = played(manager)
    rows = [row for episode in rows_of(top.memory) for row in episode]
    penalized = [row for row in rows if row.reward == -HORIZON]
    replaced = [row for row in rows if row.reward > -HORIZON]
    assert len(replaced) == len(directives) and 0 < len(penalized) < sum(each.is_tested for each in directives)
    proposed = {each.goal.item() for each in directives if each.is_tested}
    for row in penalized:
        assert row.terminated and row.game_over and row.action.item() in proposed
        assert abs(row.action - row.next_state["achieved_goal"]).item() > WIDTH
    for row, directive in zip(replaced, directives):  # the action is what the level below reached
        assert row.action == row.next_state["achieved_goal"]
        is_missed = abs(directive.goal - row.action).item() > WIDTH
        assert row.info["penalty"] == (-HORIZON if directive.is_tested and is_missed else 0)


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_as_many_subgoals_are_tested_as_the_rate_says_and_none_in_an_evaluation(rate, tmp_path):
    agents = without_copies(levels())
    agents[0].algorithm.sub_goal_testing_rate = rate
    manager = hierarchy(tmp_path, agents)
    bottom_level, bottom = manager.level_managers[1], manager.get_agents()[1]
    tested: list[bool] = []
    step = bottom_level.step

    def stepped(directive: Directive) -> Any:
        response = step(directive)
        tested.append(directive.is_tested)
        assert (bottom.exploration_policy.phase is RunPhase.TEST) is (
            directive.is_tested or manager.phase is RunPhase.TEST
        )
        return response

    bottom_level.step = stepped
    played(manager, 60)
    assert np.mean(tested) == pytest.approx(rate, abs=0.12) and len(tested) > 60
    tested.clear()
    with manager.phase_context(RunPhase.TEST):
        manager.act(EnvironmentEpisodes(3))
    assert tested and not any(tested)


def test_a_level_that_is_tested_tests_the_levels_below(tmp_path):
    agents = without_copies(levels(3))
    agents[0].algorithm.sub_goal_testing_rate, agents[1].algorithm.sub_goal_testing_rate = 0.5, 0.0
    manager = hierarchy(tmp_path, agents)
    middle, bottom_level = manager.level_managers[1], manager.level_managers[2]
    pairs: list[tuple[bool, bool]] = []
    step = bottom_level.step
    bottom_level.step = lambda directive: (
        pairs.append((middle.agent.episode.is_tested, directive.is_tested)) or step(directive)
    )
    played(manager)
    assert {above is below for above, below in pairs} == {True} and len(set(pairs)) == 2


@not_on_mxnet("a rule takes MXNet's own arrays alone")
def test_targets_stay_between_the_horizon_and_nothing(tmp_path):
    """By hand: -1 + 0.9 * 7 is more than 0, -1 - 0.9 * 7 is less than -5, and -1 - 0.9 * 2 is between them."""
    agent = hierarchy(tmp_path).get_agents()[0]
    batch = LearningBatch(
        states={}, next_states={"value": np.array([7.0, -7.0, -2.0], np.float32)}, actions=np.zeros((3, 1), np.float32),
        rewards=-np.ones(3, np.float32), discounts=np.full(3, 0.9, np.float32), weights=np.ones(3, np.float32),
        extra={}, scalars={},
    )  # fmt: skip
    critic = SimpleNamespace(
        target=lambda inputs: [{"q": inputs["value"]}], online=lambda inputs: [{"q": np.zeros(3, np.float32)}]
    )
    actor = SimpleNamespace(target=lambda inputs: [{"action": np.zeros((3, 1), np.float32)}])
    update = agent.make_update_rule()[0].rule(agent.update_loop.learner.ops, {"actor": actor, "critic": critic}, batch)
    np.testing.assert_allclose(update.errors, [0.0, -5.0, -2.8], rtol=1e-6)


@pytest.mark.parametrize(("bias", "value"), [(-60.0, -5.0), (0.0, -2.5), (2.0, -5 / (1 + math.exp(2))), (60.0, 0.0)])
def test_a_sigmoid_keeps_the_critic_between_the_horizon_and_nothing(bias, value, tmp_path):
    agent = hierarchy(tmp_path).get_agents()[0]
    network = agent.networks["critic"].online_network
    *weights, last = [np.zeros_like(array) for array in network.get_weights()]
    network.set_weights([*weights, last + bias])
    inputs = {name: np.ones((2, 1), np.float32) for name in ("observation", "desired_goal", "action")}
    np.testing.assert_allclose(network.predict(inputs), [value, value], rtol=1e-5, atol=1e-6)


def test_a_hierarchy_learns_to_walk_to_goals(tmp_path):
    manager = hierarchy(tmp_path, steps=EnvironmentEpisodes(150))
    manager.improve()
    manager.evaluate(EnvironmentEpisodes(20))
    arrived = np.mean([reward > -30 for reward in manager.evaluation_rewards])
    assert arrived >= 0.9
    assert all(agent.training_iteration > 0 for agent in manager.get_agents())


def test_each_level_writes_a_csv_and_a_policy_that_acts_as_it_does(tmp_path):
    manager = hierarchy(tmp_path)
    manager.improve()
    manager.close()
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == [
        f"worker_0.hac_graph.level_{i}.level_{i}.agent_{i}_0.csv" for i in range(2)
    ]
    (folder,) = tmp_path.glob("checkpoint/*.ckpt/policy")
    for index, agent in enumerate(manager.get_agents()):
        policy = Policy.load(folder / f"level_{index}.agent_{index}")
        state = {"observation": np.array([0.3], np.float32), "desired_goal": np.array([-0.5], np.float32)}
        np.testing.assert_allclose(policy.act(state), agent.predict_states([state])[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda agents: setattr(agents[1], "memory", ExperienceReplayParameters()), "needs a memory with hindsight"),
        (lambda agents: agents.__setitem__(1, DDPGAgentParameters()), "agent_1 is a DDPGAgent"),
        (lambda agents: setattr(agents[1].algorithm, "in_action_space", None), "in_action_space to a GoalsSpace"),
        (lambda agents: setattr(agents[0].algorithm, "sub_goal_testing_rate", 2), "sub_goal_testing_rate"),
        (lambda agents: setattr(agents[0].algorithm, "time_limit", 0), "time_limit"),
        (lambda agents: agents.clear(), "0 agents"),
    ],
)
def test_mistakes(change, message, tmp_path):
    agents = levels()
    change(agents)
    with pytest.raises(CoachError, match=message):
        hierarchy(tmp_path, agents)


def test_defaults_are_coachs():
    algorithm = HACDDPGAgentParameters().algorithm
    assert (algorithm.time_limit, algorithm.sub_goal_testing_rate) == (40, 0.5)


@pytest.mark.parametrize(
    "preset, level, reason",
    [
        (
            "Pendulum_HAC",
            "Pendulum-v1",
            "pursues goals of 'achieved_goal', but the observations of the environment are ['observation']: set "
            "goal_name of the GoalsSpace to one of them",
        ),
        ("BitFlip_DQN_HER", "CartPole-v1", "the states of agent 'agent' have only 'observation': use another memory"),
    ],
)
def test_an_environment_without_the_goals_is_refused_in_one_line(preset, level, reason, tmp_path, capsys):
    where = ["-lvl", level, "-cp", "env_params.additional_simulator_parameters={}", "-ep", str(tmp_path)]
    assert main(["-p", preset, "-f", FRAMEWORK.name, *where]) == BAD_INPUT
    assert capsys.readouterr().err.splitlines()[-1].endswith(reason)
