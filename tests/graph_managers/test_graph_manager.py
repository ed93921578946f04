from __future__ import annotations

import copy
import json
import os
import re
import signal
from functools import partial

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_coach.base_parameters import TaskParameters, TaskRole
from rl_coach.checkpoint import CheckpointStateReader, best_checkpoint, load_checkpoint
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, Frames, RunPhase, TrainingSteps
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters, SimpleSchedule
from rl_coach.logger import screen
from rl_coach.utils import CheckpointError, CoachError, TrainingError
from tests.frameworks import FRAMEWORK
from tests.zoo import graphs
from tests.zoo.agents import CountingAgentParameters
from tests.zoo.environments import Bandit, CountingEnvironmentParameters
from tests.zoo.graphs import counting_graph, schedule
from tests.zoo.parameters import dqn
from tests.zoo.runs import graph_of

CSV = "worker_0.simple_rl_graph.main_level.main_level.agent_0.csv"
PHASES = {"heatup": RunPhase.HEATUP, "train": RunPhase.TRAIN, "test": RunPhase.TEST}


def counts(graph, phase):
    counter = graph.total_steps_counters[PHASES[phase]]
    return counter[EnvironmentSteps], counter[EnvironmentEpisodes], counter[TrainingSteps]


def environments(graph):
    level = graph.level_managers[0]
    return level.environment, level.evaluation_environment


# the schedule is kept exactly


@pytest.mark.parametrize(
    "improve, expected",
    [
        (EnvironmentSteps(23), (23, 4, 23)),
        (EnvironmentEpisodes(7), (35, 7, 35)),
        (TrainingSteps(13), (13, 2, 13)),
    ],
)
def test_improve_trains_exactly_improve_steps(tmp_path, improve, expected):
    graph = counting_graph(tmp_path, schedule(improve, EnvironmentSteps(10), EnvironmentEpisodes(1)))
    graph.improve()
    assert counts(graph, "train") == expected


def test_a_training_phase_is_cut_to_the_updates_that_are_left(tmp_path):
    graph = counting_graph(
        tmp_path,
        schedule(TrainingSteps(25)),
        updates_per_training=10,
        num_consecutive_playing_steps=EnvironmentSteps(4),
    )
    graph.improve()
    assert counts(graph, "train") == (12, 2, 25)


def test_an_agent_without_networks_counts_calls_as_training_steps(tmp_path):
    graph = counting_graph(tmp_path, schedule(TrainingSteps(12)), can_train=False)
    graph.improve()
    assert counts(graph, "train") == (12, 2, 12)


@pytest.mark.parametrize(
    "between, evaluations",
    [(EnvironmentSteps(10), 3), (EnvironmentSteps(23), 1), (EnvironmentEpisodes(2), 3), (TrainingSteps(8), 3)],
)
def test_the_last_period_is_cut_and_followed_by_one_evaluation(tmp_path, between, evaluations):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(23), between, EnvironmentEpisodes(2)))
    graph.improve()
    assert counts(graph, "test")[1] == 2 * evaluations


def test_no_evaluation_follows_the_last_one(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(20), EnvironmentSteps(10), EnvironmentEpisodes(1)))
    graph.improve()
    assert counts(graph, "test")[1] == 2


@settings(max_examples=25, deadline=None)
@given(improve=st.integers(1, 60), between=st.integers(1, 40), episodes=st.integers(1, 3), length=st.integers(1, 7))
def test_steps_and_evaluations_for_any_schedule(tmp_path_factory, improve, between, episodes, length):
    graph = counting_graph(
        tmp_path_factory.mktemp("run"),
        schedule(EnvironmentSteps(improve), EnvironmentSteps(between), EnvironmentEpisodes(episodes)),
        episode_length=length,
    )
    graph.improve()
    assert counts(graph, "train") == (improve, improve // length, improve)
    assert counts(graph, "test")[1] == episodes * -(-improve // between)
    assert environments(graph)[0].total_steps == improve


def test_heatup_acts_in_whole_episodes_and_does_not_train(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(5), heatup=EnvironmentSteps(12)))
    graph.improve()
    assert counts(graph, "heatup") == (15, 3, 0)
    assert graph.get_agent().training_iteration == 5


def test_evaluation_in_steps_finishes_its_last_episode(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    graph.evaluate(EnvironmentSteps(7))
    assert counts(graph, "test") == (10, 2, 0)


def test_zero_steps_do_nothing(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    graph.heatup(EnvironmentSteps(0))
    graph.train_and_act(EnvironmentSteps(0))
    assert graph.evaluate(EnvironmentEpisodes(0)) is False
    assert graph.get_agent().calls == []


# evaluation stands apart


def test_evaluation_has_its_own_environment_built_when_first_needed(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    training, evaluation = environments(graph)
    assert evaluation is None
    before = training.resets
    graph.evaluate(EnvironmentEpisodes(3))
    training, evaluation = environments(graph)
    assert evaluation is not training and evaluation.seed != training.seed
    assert (training.resets, training.total_steps, evaluation.total_steps) == (before, 0, 15)
    assert evaluation.phase is RunPhase.TEST


def test_an_evaluation_in_the_middle_does_not_disturb_the_training_episode(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    graph.train_and_act(EnvironmentSteps(3))
    in_progress = graph.get_agent().episode
    graph.evaluate(EnvironmentEpisodes(2))
    assert graph.get_agent().episode is in_progress
    graph.train_and_act(EnvironmentSteps(2))
    (episode,) = graph.get_agent().episodes
    assert [response.next_state["observation"][0] for response in episode] == [0, 1, 2, 3, 4, 5]
    assert graph.total_steps_counters[RunPhase.TRAIN][EnvironmentEpisodes] == 1


def test_training_gives_the_same_with_and_without_evaluation(tmp_path):
    observations = []
    for evaluation in (EnvironmentEpisodes(0), EnvironmentEpisodes(1)):
        graph = counting_graph(tmp_path, schedule(EnvironmentSteps(32), EnvironmentSteps(7), evaluation))
        graph.improve()
        observations.append([r.next_state["observation"][1] for e in graph.get_agent().episodes for r in e])
    assert observations[0] == observations[1]


def test_where_the_environment_is_shared_the_training_episode_starts_anew(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    graph.level_managers[0]._evaluation_environment_factory = None
    graph.train_and_act(EnvironmentSteps(3))
    graph.evaluate(EnvironmentEpisodes(1))
    graph.train_and_act(EnvironmentSteps(5))
    (episode,) = graph.get_agent().episodes
    assert len(episode) == 6


def test_evaluation_reward_and_training_reward_are_in_the_csv(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentEpisodes(5), EnvironmentEpisodes(2), EnvironmentEpisodes(2)))
    graph.improve()
    table = pandas.read_csv(tmp_path / CSV)
    assert list(table["Episode #"]) == [1, 2, 3, 4, 5, 6]
    assert list(table["Training Reward"].dropna()) == [5.0] * 5
    assert list(table["Episode #"][table["Evaluation Reward"].notna()]) == [3, 5, 6]


# phases


def test_phases_reach_everyone_and_return(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    agent, environment = graph.get_agent(), environments(graph)[0]
    assert graph.phase is RunPhase.UNDEFINED
    with graph.phase_context(RunPhase.TRAIN):
        assert {graph.phase, agent.phase, environment.phase} == {RunPhase.TRAIN}
        with graph.phase_context(RunPhase.TEST):
            assert {graph.phase, agent.phase} == {RunPhase.TEST}
            assert environment.phase is RunPhase.TRAIN
        assert {graph.phase, agent.phase, environment.phase} == {RunPhase.TRAIN}
    assert {graph.phase, agent.phase, environment.phase} == {RunPhase.UNDEFINED}


def test_a_phase_changes_only_when_it_changes(tmp_path, monkeypatch):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    agent, told = graph.get_agent(), []
    monkeypatch.setattr(agent, "reset_evaluation_state", told.append)
    for _ in range(3):
        graph.train_and_act(EnvironmentSteps(1))
    graph.evaluate(EnvironmentEpisodes(1))
    graph.train_and_act(EnvironmentSteps(1))
    assert told == [RunPhase.TRAIN, RunPhase.TEST, RunPhase.TRAIN]


def test_phases_return_after_an_error(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(9)), fails_at_update=3)
    with pytest.raises(TrainingError):
        graph.improve()
    assert graph.phase is RunPhase.UNDEFINED


def test_the_agent_sees_an_episode_in_order(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)), episode_length=2)
    graph.train_and_act(EnvironmentSteps(3))
    episode = ["reset", "observe", "act", "observe", "act", "observe", "ended"]
    assert graph.get_agent().calls == [*episode, "reset", "observe", "act", "observe"]


def test_training_outside_the_training_phase_is_a_training_phase(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    graph.act(EnvironmentSteps(1))
    graph.train()
    assert graph.phase is RunPhase.UNDEFINED
    assert graph.total_steps_counters[RunPhase.TRAIN][TrainingSteps] == 1


def test_it_says_whether_it_would_train(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    assert not graph.should_train()
    with graph.phase_context(RunPhase.TRAIN):
        graph.act(EnvironmentSteps(1))
        assert graph.should_train() and graph.should_train()
        graph.train()
    assert not graph.should_train()


def test_act_may_wait_for_the_end_of_the_episode(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    with graph.phase_context(RunPhase.TRAIN):
        graph.act(EnvironmentSteps(6), wait_for_full_episodes=True)
    assert counts(graph, "train") == (10, 2, 0)


# the stop condition, and runs that only evaluate


def test_the_stop_condition_stops_after_an_evaluation(tmp_path, capsys):
    plan = schedule(EnvironmentSteps(1000), EnvironmentSteps(10), EnvironmentEpisodes(2))
    graph = counting_graph(tmp_path, plan, apply_stop_condition=True, custom_reward_threshold=4)
    graph.improve()
    assert counts(graph, "train")[0] == 10
    assert (
        "solved: evaluation reward 5 reached the target 4, which the preset sets (env_params" in capsys.readouterr().out
    )


@pytest.mark.parametrize("changes", [{"apply_stop_condition": False}, {"episode_length": 4}])
def test_the_stop_condition_does_not_stop(tmp_path, changes):
    plan = schedule(EnvironmentSteps(30), EnvironmentSteps(10), EnvironmentEpisodes(2))
    graph = counting_graph(tmp_path, plan, **{"apply_stop_condition": True, **changes})
    graph.improve()
    assert counts(graph, "train")[0] == 30


def test_evaluate_only_does_not_train_nor_write_checkpoints(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(30)), evaluate_only=12)
    graph.run()
    assert counts(graph, "test") == (15, 3, 0) and counts(graph, "train") == (0, 0, 0)
    assert not (tmp_path / "checkpoint").exists()
    assert environments(graph)[1].is_closed


def test_evaluate_only_with_zero_goes_on_until_interrupted(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(30)), evaluate_only=0)
    graph.progress.add_evaluation = lambda reward, episodes, status: status.episodes == 4 and graph.stop_signals.ask(2)
    with pytest.raises(KeyboardInterrupt):
        graph.run()
    assert counts(graph, "test")[1] == 4


# seeds, copies


def test_one_seed_gives_one_run(tmp_path):
    graphs = [counting_graph(tmp_path, schedule(EnvironmentSteps(20))) for _ in range(2)]
    for graph in graphs:
        graph.improve()
    assert np.array_equal(graphs[0].get_agent().weights, graphs[1].get_agent().weights)


def test_a_seed_is_drawn_and_recorded(tmp_path):
    task = TaskParameters(experiment_path=str(tmp_path))
    graph = BasicRLGraphManager(
        CountingAgentParameters(), CountingEnvironmentParameters(), schedule(EnvironmentSteps(1))
    )
    graph.create_graph(task)
    assert task.seed is None and graph.seed == graph.task_parameters.seed
    document = json.loads((tmp_path / "worker_0.simple_rl_graph_0.json").read_text())
    assert document["parameters"]["seed"] == graph.seed
    assert document["run"]["versions"]["numpy"] == np.__version__


def test_a_seed_that_the_preset_gives_the_environment_stands(tmp_path):
    environment = CountingEnvironmentParameters()
    environment.seed = 123
    graph = BasicRLGraphManager(CountingAgentParameters(), environment, schedule(EnvironmentSteps(1)))
    graph.create_graph(TaskParameters(experiment_path=str(tmp_path), seed=1))
    assert environments(graph)[0].seed == 123


def test_two_graphs_of_one_preset_share_nothing(tmp_path):
    agent, environment = CountingAgentParameters(), CountingEnvironmentParameters()
    first, second = (BasicRLGraphManager(agent, environment, SimpleSchedule()) for _ in range(2))
    agent.algorithm.discount = 0.5  # presets may still change their parameters
    for graph in (first, second):
        graph.create_graph(TaskParameters(experiment_path=str(tmp_path)))
    assert first.agent_params.algorithm.discount == second.agent_params.algorithm.discount == 0.5
    assert first.agent_params.algorithm is not second.agent_params.algorithm
    assert first.env_params is not second.env_params
    assert first.improve_steps is not second.improve_steps
    assert first.visualization_parameters is not second.visualization_parameters
    assert agent.input_filter is None and agent.task_parameters is None


def test_a_graph_can_be_copied_before_it_is_created(tmp_path):
    graph = BasicRLGraphManager(CountingAgentParameters(), CountingEnvironmentParameters(), SimpleSchedule())
    twin = copy.deepcopy(graph)
    twin.create_graph(TaskParameters(experiment_path=str(tmp_path)))
    assert graph.top_level_manager is None


def test_signals_by_name(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(1)))
    graph.log_signal("mine", 3)
    assert graph.get_signal_value("mine") == 3 and graph.get_signal_value("other") is None


# mistakes


def test_an_unfinished_schedule_is_named(tmp_path):
    with pytest.raises(CoachError, match="heatup_steps is None; it must be EnvironmentSteps"):
        BasicRLGraphManager(
            CountingAgentParameters(), CountingEnvironmentParameters(), ScheduleParameters()
        ).create_graph()


@pytest.mark.parametrize(
    "plan, message",
    [
        (schedule(Frames(3)), "improve_steps .* Frames"),
        (schedule(EnvironmentSteps(3), evaluation=TrainingSteps(3)), "evaluation_steps .* TrainingSteps"),
        (schedule(EnvironmentSteps(3), EnvironmentSteps(0)), "steps_between_evaluation_periods"),
    ],
)
def test_a_schedule_that_cannot_be_kept_is_an_error(tmp_path, plan, message):
    with pytest.raises(CoachError, match=message):
        counting_graph(tmp_path, plan)


@pytest.mark.parametrize(
    "use",
    [
        lambda graph: graph.heatup(EnvironmentSteps(5)),
        lambda graph: graph.train_and_act(EnvironmentSteps(5)),
        lambda graph: graph.evaluate(EnvironmentEpisodes(1)),
        lambda graph: graph.improve(),
    ],
    ids=["heatup", "train_and_act", "evaluate", "improve"],
)
def test_a_graph_that_nobody_created_is_created_when_it_is_used(tmp_path, monkeypatch, use):
    default = partial(TaskParameters, experiment_path=str(tmp_path))
    monkeypatch.setattr("rl_coach.graph_managers.graph_manager.TaskParameters", default)
    graph = BasicRLGraphManager(
        CountingAgentParameters(), CountingEnvironmentParameters(), schedule(EnvironmentSteps(5))
    )
    use(graph)
    assert graph.seed is not None
    assert sum(counts(graph, phase)[0] for phase in PHASES) == 5
    graph.close()


# the part of a process


def test_a_rollout_acts_and_leaves_training_and_checkpoints_to_others(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(12)), role=TaskRole.ROLLOUT, checkpoint_save_steps=5)
    graph.improve()
    assert environments(graph)[0].total_steps == 12 and graph.get_agent().training_iteration == 0
    assert graph.last_checkpoint_path is None and not (tmp_path / "checkpoint").exists()


def test_a_process_that_only_trains_does_not_act(tmp_path):
    manager = graphs.graph(dqn(), Bandit, tmp_path, schedule(EnvironmentSteps(12)), role=TaskRole.TRAINING)
    for use in (manager.act, manager.heatup, manager.train_and_act, manager.evaluate):
        with pytest.raises(CoachError, match="does not act: its task's role is training"):
            use(EnvironmentSteps(1))
    assert manager.get_agent().total_steps_counter == 0


def test_copies_of_the_environment_without_effect_are_a_warning(tmp_path, capsys):
    graphs.graph(dqn(), Bandit, tmp_path, schedule(EnvironmentSteps(12)), copies=3, role=TaskRole.TRAINING)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "num_environments" in line]
    assert "env_params.num_environments = 3 has no effect with -dc" in line


def test_steps_show_the_progress_a_few_times_a_second(tmp_path, monkeypatch):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(12)))
    now, shown = [100.0], []
    monkeypatch.setattr("rl_coach.graph_managers.graph_manager.time.monotonic", lambda: now[0])
    monkeypatch.setattr(graph.progress, "update", shown.append)
    with graph.phase_context(RunPhase.TRAIN):
        for now[0] in (100.0, 100.1, 100.2, 100.3, 100.4):
            graph.act(EnvironmentSteps(1))
    assert len(shown) == 2


# checkpoints


def test_a_run_ends_with_a_checkpoint_that_can_be_played_back(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(20), EnvironmentSteps(10), EnvironmentEpisodes(1)))
    graph.run()
    assert os.path.basename(graph.last_checkpoint_path) == "0_Step-20.ckpt"
    again = counting_graph(tmp_path, schedule(20), checkpoint_restore_path=str(tmp_path), evaluate_only=5)
    assert np.array_equal(again.get_agent().weights, graph.get_agent().weights)
    again.run()


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    plan = {"evaluate_every": 20, "evaluation": 1, "heatup": 10}
    whole = counting_graph(tmp_path / "whole", schedule(EnvironmentSteps(80), **plan))
    whole.improve()
    first = counting_graph(tmp_path / "parts", schedule(EnvironmentSteps(40), **plan))
    first.improve()
    second = counting_graph(tmp_path / "parts", schedule(EnvironmentSteps(80), **plan), seed=99)
    second.restore_checkpoint(str(tmp_path / "parts"), continue_run=True)
    second.improve()
    assert np.array_equal(second.get_agent().weights, whole.get_agent().weights)
    for phase in PHASES:
        assert counts(second, phase) == counts(whole, phase)


def test_without_continuing_improve_steps_count_from_the_checkpoint(tmp_path):
    counting_graph(tmp_path, schedule(EnvironmentSteps(40))).improve()
    graph = counting_graph(tmp_path, schedule(30), checkpoint_restore_path=str(tmp_path / "checkpoint"))
    graph.improve()
    assert counts(graph, "train")[0] == 70


def test_the_global_generators_are_restored_too(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(20)))
    graph.save_checkpoint()
    expected = np.random.random(3)
    counting_graph(tmp_path, schedule(EnvironmentSteps(20)), checkpoint_restore_path=str(tmp_path))
    assert np.array_equal(np.random.random(3), expected)


def test_checkpoints_are_saved_between_episodes_when_due(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(17)), checkpoint_save_secs=0)
    graph.improve()
    names = [checkpoint.name for checkpoint in CheckpointStateReader(str(tmp_path / "checkpoint")).get_all()]
    assert names == ["0_Step-5.ckpt", "1_Step-10.ckpt", "2_Step-15.ckpt", "3_Step-17.ckpt"]


def test_where_several_episodes_go_on_at_a_time_no_checkpoint_waits_for_the_end_of_one(tmp_path):
    graph = graph_of("DQN in several environments", 6)  # two of each copy, whose poles stand longer than that
    graph.heatup_steps, graph.evaluation_steps = EnvironmentSteps(18), EnvironmentEpisodes(0)
    graph.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1, checkpoint_save_secs=0))
    graph.improve()
    checkpoints = CheckpointStateReader(str(tmp_path / "checkpoint")).get_all()
    assert len(checkpoints) > 1, "after each step of training"


def test_the_newest_checkpoints_and_the_best_are_kept(tmp_path):
    plan = schedule(EnvironmentSteps(60), EnvironmentSteps(20), EnvironmentEpisodes(1))
    graph = counting_graph(tmp_path, plan, checkpoint_save_secs=3600)
    graph.checkpoints_to_keep = 1
    rewards = iter([3.0, 8.0, 1.0])
    graph._evaluation_episodes = lambda steps, collected: collected.append(next(rewards))
    graph.improve()
    directory = str(tmp_path / "checkpoint")
    names = [checkpoint.name for checkpoint in CheckpointStateReader(directory).get_all()]
    assert names == ["1_Step-40.ckpt", "2_Step-60.ckpt"]
    assert best_checkpoint(directory) == "1_Step-40.ckpt"
    assert load_checkpoint(os.path.join(directory, names[0]))[1]["evaluation_reward"] == 8.0


def test_a_failed_training_keeps_its_state_apart_from_the_good_ones(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(40)), fails_at_update=13)
    graph.save_checkpoint()
    with pytest.raises(TrainingError, match="update 13"):
        graph.improve()
    assert sorted(os.listdir(tmp_path / "checkpoint")) == [".coach_checkpoint", "0_Step-0.ckpt", "1_Step-13.failed"]
    assert CheckpointStateReader(str(tmp_path / "checkpoint")).get_latest().name == "0_Step-0.ckpt"


@pytest.mark.parametrize("number, error", [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_stops_between_two_steps_with_everything_saved(tmp_path, number, error):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(10**9)))
    agent = graph.get_agent()
    train = agent.train
    agent.train = lambda: os.kill(os.getpid(), number) if agent.total_steps_counter == 13 else train()
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(error):
        graph.run()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert os.path.basename(graph.last_checkpoint_path) == "0_Step-13.ckpt"
    assert list(pandas.read_csv(tmp_path / CSV)["Episode #"]) == [1, 2]
    assert environments(graph)[0].is_closed


def test_a_second_signal_stops_at_once_and_saves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("rl_coach.utilities.stop_signals.SECONDS_OF_ONE_REQUEST", 0.0)
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(10**9)))
    graph.get_agent().train = lambda: [os.kill(os.getpid(), signal.SIGINT) for _ in range(2)]
    with pytest.raises(KeyboardInterrupt):
        graph.improve()
    assert counts(graph, "train")[0] == 1
    assert not (tmp_path / "checkpoint").exists()


def test_an_interrupted_evaluation_leaves_no_half_result(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(50), EnvironmentSteps(10), EnvironmentEpisodes(10)))
    sync = graph.sync
    graph.sync = lambda: graph.stop_signals.ask(signal.SIGINT) if counts(graph, "test")[1] == 3 else sync()
    with pytest.raises(KeyboardInterrupt):
        graph.improve()
    assert "Evaluation Reward" not in pandas.read_csv(tmp_path / CSV)


def test_a_full_disk_is_no_reason_to_stop_before_the_end(tmp_path, monkeypatch, capsys):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(10)))
    good = graph.save_checkpoint()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rl_coach.checkpoint.os.fsync", full)
    with pytest.raises(CheckpointError, match="the training since the last checkpoint is lost"):
        graph.improve()
    monkeypatch.undo()
    assert graph.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps] == 10
    assert "No space left on device" in capsys.readouterr().out
    assert os.listdir(tmp_path / "checkpoint").count(os.path.basename(good)) == 1
    load_checkpoint(good)


def test_a_graph_whose_unit_is_another_one_names_its_checkpoints_after_it(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(10)))
    graph.checkpoints._advanced = lambda: ("Epoch", 3)
    assert os.path.basename(graph.save_checkpoint()) == "0_Epoch-3.ckpt"
    again = counting_graph(tmp_path, schedule(EnvironmentSteps(10)))
    again.restore_checkpoint(str(tmp_path))
    assert os.path.basename(again.save_checkpoint()) == "1_Step-0.ckpt"


def test_a_checkpoint_of_something_else_is_refused_with_the_mismatch(tmp_path):
    counting_graph(tmp_path, schedule(EnvironmentSteps(5))).improve()
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(5)))
    graph.level_managers[0].spaces_definition.state["more"] = graph.level_managers[0].spaces_definition.state[
        "observation"
    ]
    weights = graph.get_agent().weights
    with pytest.raises(CoachError, match="it has no observation space main_level/more, here it is Vector"):
        graph.restore_checkpoint(str(tmp_path))
    assert graph.get_agent().weights is weights


def test_the_summary_says_where_everything_is(tmp_path, capsys):
    plan = schedule(EnvironmentEpisodes(2), EnvironmentEpisodes(2), EnvironmentEpisodes(1), EnvironmentSteps(7))
    graph = counting_graph(tmp_path, plan)
    graph.playback_hint = "coach -p Counting -crd there --evaluate 1000"
    graph.run()
    text = capsys.readouterr().out
    assert "evaluation 5 (best 5) over 1 episode | step 20" in text
    assert "evaluation reward 5 (best 5)" in text
    assert "trained 2 episodes, 10 steps, 10 updates in 0:0" in text
    assert "heatup before training: 2 episodes, 10 steps" in text
    assert (
        "the CSV counts both: 4 episodes, 20 steps" in text
        and pandas.read_csv(tmp_path / CSV)["Total steps"].count() == 4
    )
    assert text.rstrip().endswith(f"coach dashboard -d {tmp_path}")
    assert "play it back: coach -p Counting -crd there" in text


def test_each_event_is_a_line_for_programs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(screen, "_use_colors", False)
    plan = schedule(EnvironmentEpisodes(2), EnvironmentEpisodes(2), EnvironmentEpisodes(1), EnvironmentSteps(7))
    graph = counting_graph(tmp_path, plan)
    graph.run()
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("## ")]
    assert titles[:3] == [
        "## Creating graph - name: BasicRLGraphManager",
        "## simple_rl_graph: Starting heatup",
        "## Starting to improve simple_rl_graph task index 0",
    ]
    assert titles[3] == f"## Results stored at: {tmp_path}"
    assert re.fullmatch(r"## Total runtime: \d:\d\d:\d\d\.\d+", titles[4])


def test_the_status_says_where_each_phase_ends(tmp_path, monkeypatch):
    plan = schedule(EnvironmentEpisodes(2), EnvironmentEpisodes(2), EnvironmentSteps(9), EnvironmentSteps(7))
    graph = counting_graph(tmp_path, plan)
    goals = {}
    monkeypatch.setattr(graph.progress, "update", lambda status: goals.update({status.phase: str(status.goal)}))
    monkeypatch.setattr("rl_coach.graph_managers.graph_manager.SECONDS_BETWEEN_REDRAWS", 0.0)
    graph.improve()
    assert goals == {
        RunPhase.HEATUP: "10 of 7 steps",
        RunPhase.TRAIN: "2 of 2 episodes",
        RunPhase.TEST: "10 of 9 steps",
    }


def test_numpy_numbers_are_settings(tmp_path):
    """Also where a reader of the settings takes Python's numbers alone: the run's status is JSON."""
    plan = schedule(EnvironmentEpisodes(np.int64(2)), EnvironmentEpisodes(2), EnvironmentSteps(np.int32(9)))
    graph = counting_graph(tmp_path, plan)
    graph.agent_params.algorithm.discount = np.float32(0.5)
    graph.improve()
    assert json.loads((tmp_path / "status.json").read_text())["progress"]["total"] == 9
    algorithm = graph.level_managers[0].agents["agent"].ap.algorithm
    assert type(algorithm.discount) is float
