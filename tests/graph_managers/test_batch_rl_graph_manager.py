"""Learning from a data set: where the data come from, what is learned from, and what is evaluated."""

from __future__ import annotations

import copy
import csv
import math
import pathlib
import signal
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.awac_agent import AWACAgentParameters
from rl_coach.agents.core.update_loop import DataSetLearning
from rl_coach.agents.cql_agent import CQLAgentParameters
from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.ddqn_bcq_agent import DDQNBCQAgentParameters
from rl_coach.agents.discrete_cql_agent import DiscreteCQLAgentParameters
from rl_coach.agents.iql_agent import IQLAgentParameters
from rl_coach.agents.td3_bc_agent import TD3BCAgentParameters
from rl_coach.base_parameters import AgentParameters, TaskParameters, VisualizationParameters
from rl_coach.core_types import CsvDataset, EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule
from rl_coach.spaces import (
    DiscreteActionSpace,
    RewardSpace,
    SpacesDefinition,
    StateSpace,
    VectorObservationSpace,
)
from rl_coach.utilities.stop_signals import Terminated
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit, SmallEnvironmentParameters, Target
from tests.zoo.graphs import schedule
from tests.zoo.parameters import dqn, ppo, recurrent_dqn
from tests.zoo.states import weights_of

ESTIMATES = (
    "Inverse Propensity Score",
    "Direct Method Reward",
    "Doubly Robust",
    "Sequential Doubly Robust",
    "Weighted Importance Sampling",
)


def learner(with_reward_model: bool = True) -> AgentParameters:
    agent = dqn(DDQNAgentParameters())
    agent.memory = EpisodicExperienceReplayParameters()
    agent.network_wrappers["main"].softmax_temperature = 0.2
    agent.exploration.evaluation_epsilon = 0
    if with_reward_model:
        agent.network_wrappers["reward_model"] = copy.deepcopy(agent.network_wrappers["main"])
    return agent


def batch_graph(
    directory: Any,
    agent: AgentParameters | None = None,
    epochs: int = 8,
    heatup: int = 200,
    seed: int = 1,
    **settings: Any,
) -> BatchRLGraphManager:
    task = {name: settings.pop(name) for name in ("resume", "checkpoint_restore_path") if name in settings}
    settings = {
        "env_params": SmallEnvironmentParameters(Bandit),
        "reward_model_num_epochs": 40,
        "train_to_eval_ratio": 0.75,
        **settings,
    }
    manager = BatchRLGraphManager(
        agent or learner(),
        schedule_params=schedule(TrainingSteps(epochs), TrainingSteps(4), evaluation=3, heatup=heatup),
        vis_params=VisualizationParameters(dump_parameters_documentation=False),
        **settings,
    )
    return manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(directory), seed=seed, **task))


def rows_of(directory: pathlib.Path) -> list[dict[str, str]]:
    (path,) = directory.glob("*.csv")
    return list(csv.DictReader(path.open()))


def test_random_data_teach_the_bandit_and_the_csv_has_a_row_for_each_epoch(tmp_path):
    manager = batch_graph(tmp_path)
    manager.improve()
    manager.close()
    agent, rows = manager.get_agent(), rows_of(tmp_path)
    assert agent.memory.num_transitions() == 200 and agent.total_steps_counter == 200  # it never acts for more
    assert [row["Epoch"] for row in rows] == [str(epoch) for epoch in range(1, 9)]
    assert [row["Training Iter"] for row in rows] == [str(10 * epoch) for epoch in range(1, 9)]  # 160 of 200 rows
    assert [row["Epoch"] for row in rows if row["Evaluation Reward"]] == ["4", "8"]
    assert np.mean(manager.evaluation_rewards) == 10  # the best there is
    for name in ESTIMATES:
        assert [bool(row[name]) for row in rows] == [row["Epoch"] in ("4", "8") for row in rows]
    # what is known of the bandit: the greedy policy earns 1 in each of 10 steps, the data set 0.5
    assert float(rows[-1]["Direct Method Reward"]) == pytest.approx(1, abs=0.15)
    name = "Sequential Doubly Robust of Deployed Policy"
    assert [bool(row[name]) for row in rows] == [row["Epoch"] in ("4", "8") for row in rows]
    # no random episode of 10 steps is one of the greedy policy: importance sampling has nothing to go by, and says so
    assert rows[-1]["Weighted Importance Sampling of Deployed Policy"] == ""
    assert float(rows[-1]["Effective Sample Size of Deployed Policy"]) == 0
    assert float(rows[-1]["Inverse Propensity Score"]) == pytest.approx(1, abs=0.4)


def test_an_epoch_has_each_training_row_once_and_never_one_kept_back(tmp_path):
    manager = batch_graph(tmp_path, learner(with_reward_model=False), epochs=3)
    manager._heat_up()
    agent = manager.get_agent()
    agent.memory.annotate("row", np.arange(200))
    drawn: list[np.ndarray] = []
    sample = agent.batches.sample

    def recording(updates: int, size: int) -> Any:
        batch = sample(updates, size)
        drawn.append(batch.info("row"))
        return batch

    agent.batches.sample = recording
    manager.improvement.begin()
    manager.train_and_act(TrainingSteps(3))
    assert sorted(np.concatenate(drawn)) == sorted(list(range(160)) * 3)
    agent.memory.prepare_evaluation_dataset()
    assert len(agent.memory.evaluation_dataset_as_transitions) == 40


def test_unknown_probabilities_of_actions_are_estimated_which_is_said(tmp_path, capsys):
    known, estimated = batch_graph(tmp_path / "known"), batch_graph(tmp_path / "estimated")
    known.improve()
    memory = estimated.get_agent().memory
    store_episode = memory.store_episode

    def without_probabilities(episode: Any, *arguments: Any) -> None:
        for transition in episode.transitions:
            transition.info.pop("all_action_probabilities")
        store_episode(episode, *arguments)

    memory.store_episode = without_probabilities
    estimated.improve()
    assert "".join(capsys.readouterr()).count("have no probabilities of actions") == 1
    steps = estimated.get_agent().memory.evaluation_dataset_as_transitions
    # the random agent's true ones are equal
    actions = len(steps[0].info["all_action_probabilities"])
    found = np.stack([step.info["all_action_probabilities"] for step in steps])
    assert found == pytest.approx(np.full((len(steps), actions), 1 / actions), abs=0.15)
    known.close()
    estimated.close()
    name = "Inverse Propensity Score"
    expected, found_estimate = (float(rows_of(tmp_path / part)[-1][name]) for part in ("known", "estimated"))
    assert found_estimate == pytest.approx(expected, abs=0.3)


def test_fitted_q_evaluation_finds_the_value_of_the_deployed_policy(tmp_path):
    agent = learner()
    agent.network_wrappers["fitted_q"] = copy.deepcopy(agent.network_wrappers["main"])
    manager = batch_graph(tmp_path, agent, fitted_q_num_epochs=100)
    manager.improve()
    manager.close()
    found = [row["Fitted Q Evaluation of Deployed Policy"] for row in rows_of(tmp_path)]
    assert [bool(value) for value in found] == [epoch in (4, 8) for epoch in range(1, 9)]
    # 1 in each step; a limit cuts episodes off, so the value goes on beyond
    assert float(found[-1]) == pytest.approx(1 / (1 - agent.algorithm.discount), rel=0.1)


def of_data(agent: AgentParameters) -> AgentParameters:
    agent.memory = EpisodicExperienceReplayParameters()
    for network in agent.network_wrappers.values():
        network.batch_size = 16
    return agent


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(learner, Bandit, id="ddqn"),
        *(
            pytest.param(
                lambda agent=agent: of_data(agent()), problem, id=name, marks=[pytest.mark.slow, pytest.mark.resume]
            )
            for name, agent, problem in (
                ("ddqn_bcq", DDQNBCQAgentParameters, Bandit),
                ("discrete_cql", DiscreteCQLAgentParameters, Bandit),
                ("iql", IQLAgentParameters, Target),
                ("td3_bc", TD3BCAgentParameters, Target),
                ("cql", CQLAgentParameters, Target),
                ("awac", AWACAgentParameters, Target),
            )
        ),
    ],
)
def test_a_run_that_is_killed_within_an_epoch_goes_on_exactly(make, problem, tmp_path, monkeypatch):
    monkeypatch.setattr(DataSetLearning, "UPDATES", 3)

    def graph_in(part: str, **settings: Any) -> BatchRLGraphManager:
        return batch_graph(tmp_path / part, make(), env_params=SmallEnvironmentParameters(problem), **settings)

    whole = graph_in("whole")
    whole.improve()
    killed = graph_in("killed")
    agent, calls = killed.get_agent(), iter(range(10**6))

    def interrupt_in_the_middle() -> None:
        if next(calls) == 17:  # 4 calls to an epoch of 10 updates
            killed.stop_signals.ask(signal.SIGTERM)

    agent.post_training_commands = interrupt_in_the_middle
    with pytest.raises(Terminated):
        killed.improve()
    epochs, rest = divmod(agent.training_iteration, math.ceil(agent.memory.num_training_transitions() / 16))
    assert epochs == 4 and rest > 0 and "Epoch-4" in str(killed.last_checkpoint_path)
    path = str(tmp_path / "killed" / "checkpoint")
    resumed = graph_in("killed", seed=5, checkpoint_restore_path=path, resume=True)
    resumed.improve()
    assert resumed.get_agent().training_iteration == whole.get_agent().training_iteration
    for a, b in zip(weights_of(whole), weights_of(resumed)):
        np.testing.assert_array_equal(a, b)
    whole.close()
    resumed.close()
    expected, found = rows_of(tmp_path / "whole")[-1], rows_of(tmp_path / "killed")[-1]
    assert {name: expected.get(name) for name in ESTIMATES} == {name: found.get(name) for name in ESTIMATES}
    assert expected["Evaluation Reward"] == found["Evaluation Reward"] != ""


@pytest.mark.parametrize("seed", [1, 2])
def test_another_agent_generates_the_data_and_each_value_is_filtered_once(seed, tmp_path):
    agent, generating = learner(), learner(with_reward_model=False)
    agent.input_filter = InputFilter()
    agent.input_filter.add_reward_filter("rescale", RewardRescaleFilter(1 / 4))
    generating.exploration.epsilon_schedule = ConstantSchedule(0.4)
    manager = batch_graph(
        tmp_path,
        agent,
        heatup=0,
        seed=seed,
        experience_generating_agent_params=generating,
        experience_generating_schedule_params=schedule(TrainingSteps(195), heatup=100),
    )
    manager.improve()
    data = manager.get_agent().memory.get_all_complete_episodes_transitions()
    assert len(data) >= 295 and manager.get_agent().total_steps_counter == 0
    assert set(data.rewards().tolist()) == {0, 0.25}
    # random in heatup, and afterwards the mixture of the random and the greedy choice, whichever was taken
    probabilities = data.info("all_action_probabilities")
    assert set(np.unique(np.round(probabilities[:100], 9))) == {0.5}
    assert set(np.unique(np.round(probabilities[100:], 9))) == {0.2, 0.8}
    taken = probabilities[np.arange(len(data)), data.actions()][100:]
    assert np.mean(taken == 0.8) == pytest.approx(0.8, abs=0.1)
    assert not data.game_overs()[:-1].all() and not data.terminated_column.any()  # the bandit's time limit


def write_pulls(path: pathlib.Path, episodes: int = 60) -> CsvDataset:
    """Random pulls in Coach's layout; an episode of 4 rows has 3 transitions."""
    rng, lines = (
        np.random.default_rng(0),
        ["action,all_action_probabilities,episode_id,reward,state_feature_0,state_feature_1"],
    )
    for episode in range(episodes):
        for _ in range(4):
            light, arm = rng.integers(2, size=2)
            lines.append(f'{arm},"[0.5, 0.5]",{episode},{float(light == arm)},{1.0 - light},{float(light)}')
    path.write_text("\n".join(lines))
    return CsvDataset(str(path), is_episodic=True)


def spaces() -> SpacesDefinition:
    return SpacesDefinition(
        state=StateSpace({"observation": VectorObservationSpace(2)}),
        goal=None,
        action=DiscreteActionSpace(2),
        reward=RewardSpace(1),
    )


def test_data_of_a_file_need_no_environment(tmp_path):
    agent = learner()
    agent.memory.load_memory_from_file_path = write_pulls(tmp_path / "pulls.csv")
    manager = batch_graph(tmp_path / "run", agent, heatup=0, env_params=None, spaces_definition=spaces())
    manager.improve()
    manager.close()
    lights = [{"observation": light} for light in np.eye(2, dtype=np.float32)]
    np.testing.assert_array_equal(manager.get_agent().get_all_q_values_for_states(lights).argmax(axis=1), [0, 1])
    rows = rows_of(tmp_path / "run")
    assert float(rows[-1]["Direct Method Reward"]) == pytest.approx(1, abs=0.15)
    assert not any(row["Evaluation Reward"] for row in rows)
    with pytest.raises(CoachError, match="learns only from data: it has no environment to evaluate in"):
        manager.evaluate(EnvironmentEpisodes(1))


def test_what_cannot_be_is_refused_in_a_line(tmp_path):
    def refused(match: str, agent: AgentParameters | None = None, **settings: Any) -> None:
        with pytest.raises(CoachError, match=match) as error:
            batch_graph(tmp_path, agent, **settings).improve()
        assert "\n" not in str(error.value)

    refused(r"a data set consists of episodes: set agent_params.memory to Epi", dqn(DDQNAgentParameters()))
    segments = ppo()
    segments.memory = EpisodicExperienceReplayParameters()
    refused("PPOAgent learns from its newest episodes, not from a data set", segments)
    refused("passes over single transitions: set middleware_parameters to FCMiddlewareParameters()", recurrent_dqn())
    refused("there are no data to learn from", heatup=0)
    refused("train_to_eval_ratio is 1.5; it must be", train_to_eval_ratio=1.5)
    filtered = learner()
    filtered.input_filter = InputFilter()
    filtered.input_filter.add_reward_filter("rescale", RewardRescaleFilter(2))
    generator = {"experience_generating_schedule_params": schedule(TrainingSteps(1))}
    refused("would change the data before", experience_generating_agent_params=filtered, **generator)
    environment = SmallEnvironmentParameters(Bandit)
    environment.default_input_filter = filtered.input_filter
    refused(
        "would change the data before",
        copy.deepcopy(filtered),
        experience_generating_agent_params=learner(),
        env_params=environment,
        **generator,
    )
    refused("needs env_params and experience_generating_schedule_params", experience_generating_agent_params=learner())
    copies = SmallEnvironmentParameters(Bandit)
    copies.num_environments = 2
    refused(
        "set env_params.num_environments to 1",
        experience_generating_agent_params=learner(),
        env_params=copies,
        **generator,
    )
    with pytest.raises(CoachError, match=r"trains in epochs: ask for TrainingSteps\(n\), not EnvironmentSteps\(5\)"):
        batch_graph(tmp_path).train_and_act(EnvironmentSteps(5))
    manager = BatchRLGraphManager(learner(), None, schedule(EnvironmentSteps(3)))
    with pytest.raises(CoachError, match=r"improve_steps is .*; it must be TrainingSteps"):
        manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path)))


def test_a_summary_and_the_display_count_epochs(tmp_path, capsys):
    manager = batch_graph(tmp_path, learner(with_reward_model=False))
    manager.improve()
    status = manager.status()
    assert (status.epochs, status.updates) == (8, 80)
    printed = capsys.readouterr().out
    assert "trained 8 epochs, 80 updates" in printed and "the CSV counts both" not in printed
    assert "| epoch 4 |" in printed
