"""What another process has played counts as if it had been played here."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.core.episode import EpisodeReport
from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.filters.reward.reward_normalization_filter import RewardNormalizationFilter
from rl_coach.schedules import LinearSchedule
from rl_coach.utils import CoachError
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import clipped_ppo, dqn


def normalized_dqn():
    parameters = dqn()
    parameters.exploration.epsilon_schedule = LinearSchedule(1.0, 0.0, 100)
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4)
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
    parameters.input_filter.add_reward_filter("normalize", RewardNormalizationFilter())
    return parameters


def test_a_trainer_that_takes_in_what_a_worker_played_stands_where_the_worker_does(tmp_path):
    worker = graph(normalized_dqn(), Bandit, tmp_path / "worker", schedule(100))
    trainer = graph(normalized_dqn(), Bandit, tmp_path / "trainer", schedule(100))
    player, learner = worker.get_agent(), trainer.get_agent()
    player.can_train = False  # a worker
    player.input_filter.take_gathered()
    trainer.phase = RunPhase.TRAIN
    for _ in range(3):
        before = player.memory.num_transitions()
        worker.train_and_act(EnvironmentSteps(20))
        columns = player.memory.transitions[before:]
        reports = [EpisodeReport(RunPhase.TRAIN, 10, 5.0, 5.0, {"Q": [0.5]})] * 2
        gathered = {"input_filter": player.input_filter.take_gathered()}
        learner.take_in(ExperienceChunk(20, [10, 10], columns, reports, gathered))
        learner.train()
    assert learner.total_steps_counter == player.total_steps_counter == 60
    assert learner.current_episode == 6
    assert learner.exploration_policy.epsilon_schedule.current_value == pytest.approx(0.4)
    assert learner.exploration_policy.epsilon_schedule.num_steps == player.exploration_policy.epsilon_schedule.num_steps
    mine, theirs = (agent.memory.transitions for agent in (learner, player))
    np.testing.assert_array_equal(mine.state_columns["observation"], theirs.state_columns["observation"])
    np.testing.assert_array_equal(mine.rewards(), theirs.rewards())
    ours, others = (agent.input_filter.get_state() for agent in (learner, player))
    for name in ("observation/observation/normalize", "reward/normalize"):
        assert ours[name]["count"] == others[name]["count"] == 66
        np.testing.assert_allclose(ours[name]["mean"], others[name]["mean"], rtol=1e-12)
        np.testing.assert_allclose(ours[name]["squared_deviations"], others[name]["squared_deviations"], rtol=1e-12)
    assert learner.training_iteration == 15, "20 steps at once make five phases of four"
    trainer.close()


def test_the_decay_of_ppos_clipping_goes_by_what_others_played(tmp_path):
    parameters = clipped_ppo()
    parameters.algorithm.clipping_decay_schedule = LinearSchedule(1.0, 0.0, 100)
    manager = graph(parameters, Bandit, tmp_path, schedule(100))
    manager.phase = RunPhase.TRAIN
    agent = manager.get_agent()
    agent.take_in(ExperienceChunk(25))
    assert agent.ap.algorithm.clipping_decay_schedule.current_value == pytest.approx(0.75)


def test_columns_that_do_not_fit_change_nothing(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path, schedule(100))
    manager.train_and_act(EnvironmentSteps(5))
    agent = manager.get_agent()
    columns = agent.memory.transitions
    columns.state_columns = {"observation": np.zeros((len(columns), 3), np.float32)}
    with pytest.raises(CoachError, match="observation"):
        agent.take_in(ExperienceChunk(5, [5], columns))
    assert agent.memory.num_transitions() == agent.total_steps_counter == 5
