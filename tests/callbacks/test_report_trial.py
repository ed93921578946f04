from __future__ import annotations

import pytest

from rl_coach.base_parameters import TaskParameters, VisualizationParameters
from rl_coach.callbacks.tuning import PRUNED, ReportTrial, pruner_of
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from tests.frameworks import FRAMEWORK
from tests.zoo import parameters
from tests.zoo.graphs import schedule

optuna = pytest.importorskip("optuna")


def trained(tmp_path, others):
    """A run of 200 steps with an evaluation after each 50, as the trial after six others."""
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(storage=storage, study_name="s", direction="maximize")
    for _ in range(6):
        other = study.ask()
        for number in range(1, 5):
            other.report(others, number)
        study.tell(other, others)
    trial = study.ask()
    graph = BasicRLGraphManager(
        parameters.dqn(), GymVectorEnvironment("CartPole-v1"), schedule(200, 50, 2, heatup=20),
        VisualizationParameters(dump_csv=False),
    )  # fmt: skip
    graph.callbacks = [ReportTrial(storage, "s", trial._trial_id, "median", 4)]
    graph.create_graph(TaskParameters(framework_type=FRAMEWORK, experiment_path=str(tmp_path), seed=1))
    graph.improve()
    return graph, study.trials[trial.number]


def test_a_trial_that_is_worse_than_others_is_given_up(tmp_path):
    graph, trial = trained(tmp_path, 500.0)
    assert trial.user_attrs == {PRUNED: True} and len(trial.intermediate_values) == 1
    assert 50 <= graph.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps] < 200


def test_a_trial_that_is_better_reports_the_mean_of_its_last_evaluations(tmp_path):
    graph, trial = trained(tmp_path, 1.0)
    assert not trial.user_attrs and len(trial.intermediate_values) == 4
    assert graph.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps] >= 200


def test_reports_are_means_and_go_on_from_a_checkpoint(tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(storage=storage, study_name="s", direction="maximize")
    trial = study.ask()

    class Run:
        last_evaluation = 0.0

        def stop(self, reason):
            raise AssertionError(reason)

    run, callback = Run(), ReportTrial(storage, "s", trial._trial_id, "none", 10)
    for run.last_evaluation in (1.0, 2.0, 6.0):
        callback.on_evaluation_end(run)
    again = ReportTrial(storage, "s", trial._trial_id, "none", 10)
    again.set_state(callback.get_state())
    run.last_evaluation = 10.0
    again.on_evaluation_end(run)
    assert study.trials[0].intermediate_values == {1: 1.0, 2: 1.5, 3: 3.0, 4: 6.0}


def test_pruners():
    kinds = [type(pruner_of(name, 100)).__name__ for name in ("median", "hyperband", "none")]
    assert kinds == ["MedianPruner", "HyperbandPruner", "NopPruner"]
