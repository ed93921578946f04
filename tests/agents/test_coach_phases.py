"""Coach's methods that decide when an agent learns have effect where a user's agent overrides them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgent
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.core_types import ActionInfo, EnvironmentSteps, RunPhase, Transition
from tests.zoo.agents import of_class
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import clipped_ppo, dqn


class LateDQN(DQNAgent):
    def _should_train(self):
        return super()._should_train() and self.total_steps_counter > 60


class RareDQN(DQNAgent):
    def _should_update(self):
        return self.memory.length() > 0 and self.total_steps_counter % 7 == 0


class ChoosyDQN(DQNAgent):
    """Copies its weights after the updates 5 and 9."""

    def _should_update_online_weights_to_target(self):
        return self.training_iteration in (5, 9)


class LatePPO(ClippedPPOAgent):
    def _should_train(self):
        return super()._should_train() and self.total_steps_counter >= 200


def updates_after_steps(manager: Any, steps: int) -> list[int]:
    agent, found = manager.get_agent(), []
    for _ in range(steps):
        manager.train_and_act(EnvironmentSteps(1))
        found.append(agent.training_iteration)
    return found


def test_a_training_phase_waits_for_the_users_condition(tmp_path):
    late = updates_after_steps(graph(of_class(dqn(), LateDQN), Bandit, tmp_path, schedule(200)), 80)
    assert late[:60] == [0] * 60 and late[60] > 0 and late[-1] == 10  # one for two steps
    rare = updates_after_steps(graph(of_class(dqn(), RareDQN), Bandit, tmp_path, schedule(200)), 28)
    assert [step + 1 for step in range(1, 28) if rare[step] > rare[step - 1]] == [7, 14, 21, 28]


def test_the_same_on_the_instance_and_for_epochs(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path / "dqn", schedule(100))
    manager.get_agent()._should_train = lambda: False
    assert updates_after_steps(manager, 20)[-1] == 0
    late = updates_after_steps(graph(of_class(clipped_ppo(), LatePPO), Bandit, tmp_path, schedule(400)), 260)
    assert late[198] == 0 and late[199:] == [1] * 61


def test_questions_change_nothing(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path, schedule(100))
    manager.heatup(EnvironmentSteps(10))
    agent = manager.get_agent()
    for _ in range(3):
        assert agent._should_train() and agent._should_update() and agent.should_train()
    assert agent.last_training_phase_step == 0


@pytest.mark.parametrize("updates", [1, 4])
def test_targets_are_updated_when_the_user_says(updates, tmp_path):
    parameters = of_class(dqn(), ChoosyDQN)
    parameters.algorithm.num_consecutive_training_steps = updates
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(1)
    manager = graph(parameters, Bandit, tmp_path, schedule(100))
    agent = manager.get_agent()
    network, copied = agent.networks["main"], []
    update = network.update_target_network
    network.update_target_network = lambda rate: (copied.append(agent.training_iteration), update(rate))
    before = network.target_network.get_weights()[0].copy()
    manager.train_and_act(EnvironmentSteps(24))
    assert copied == [5, 9]
    assert not np.array_equal(before, network.target_network.get_weights()[0])


def test_steps_of_other_processes_come_in_two_halves(tmp_path):
    trainer = graph(clipped_ppo(), Bandit, tmp_path, schedule(100))
    agent, state = trainer.get_agent(), {"observation": np.zeros(2, np.float32)}
    steps = [Transition(state, 1, 2.0, state, game_over=number == 2) for number in range(3)]
    with trainer.phase_context(RunPhase.TRAIN):
        agent.reset_internal_state()
        assert agent.emulate_observe_on_trainer(steps[0]) is False and agent.current_episode_buffer.is_empty()
        for step in steps:
            action = agent.emulate_act_on_trainer(step)
            assert isinstance(action, ActionInfo) and action.action == 1 and agent.last_action_info is action
            assert agent.emulate_observe_on_trainer(step) is step.game_over
    assert agent.total_steps_counter == agent.current_episode_steps_counter == 3
    assert agent.total_reward_in_current_episode == 6.0 and agent.current_episode_buffer.length() == 3


def test_overrides_of_the_halves_are_called(tmp_path):
    trainer = graph(dqn(), Bandit, tmp_path, schedule(100))
    agent, state = trainer.get_agent(), {"observation": np.zeros(2, np.float32)}
    acted, seen = agent.emulate_act_on_trainer, []
    agent.emulate_act_on_trainer = lambda transition: (seen.append(transition), acted(transition))
    step = Transition(state, 1, 2.0, state, game_over=False)
    with trainer.phase_context(RunPhase.TRAIN):
        trainer.emulate_act_on_trainer(EnvironmentSteps(1), step)
    assert seen == [step] and agent.memory.length() == 1
