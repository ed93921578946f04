from __future__ import annotations

import numpy as np
import pytest

from rl_coach.runs.experiments import describe, load, run_ids
from rl_coach.runs.signal_file import SignalFile
from rl_coach.runs.workers import RunSignals
from tests.dashboard.runs import write_run

HEADER = "Episode #,Training Iter,Total steps,Wall-Clock Time,Evaluation Reward\n"


def read(tmp_path, name, *rows, header=HEADER):
    path = tmp_path / name
    path.write_text(header + "".join(f"{row}\n" for row in rows))
    file = SignalFile(path)
    file.refresh()
    return file


def test_rows_of_workers_are_in_the_order_of_time_and_counts_are_of_the_whole_run(tmp_path):
    first = read(tmp_path, "worker_0.csv", "1,2,10,1,", "2,5,30,3,7")
    second = read(tmp_path, "worker_1.csv", "1,10,100,2,", "2,20,150,4,9")
    evaluating = read(tmp_path, "worker_2.csv", "1,0,1000,2.5,5")
    signals = RunSignals([first, second, evaluating], [True, True, False])
    assert signals.rows == 5 and signals.names == first.names
    assert list(signals.column("Wall-Clock Time")) == [1, 2, 2.5, 3, 4]
    assert list(signals.workers()) == [0, 1, 2, 0, 1]
    assert list(signals.column("Total steps")) == [10, 110, 110, 130, 180]
    assert list(signals.column("Training Iter")) == [2, 12, 12, 15, 25]
    assert list(signals.column("Episode #")) == [1, 2, 2, 3, 4]
    assert np.array_equal(signals.column("Evaluation Reward"), [np.nan, np.nan, 5, 7, 9], equal_nan=True)
    assert np.isnan(signals.column("Loss")).all()


def test_a_missing_count_is_that_of_the_row_before(tmp_path):
    first = read(tmp_path, "worker_0.csv", "1,,10,1,", "2,4,,2,", "3,6,30,,")
    second = read(tmp_path, "worker_1.csv", "1,1,5,1.5,")
    signals = RunSignals([first, second])
    assert list(signals.column("Total steps")) == [10, 15, 15, 35]
    assert list(signals.column("Training Iter")) == [0, 1, 5, 7]


def test_without_a_clock_the_steps_are_the_order(tmp_path):
    header = "Episode #,Total steps\n"
    first = read(tmp_path, "worker_0.csv", "1,10", "2,30", header=header)
    second = read(tmp_path, "worker_1.csv", "1,20", header=header)
    assert list(RunSignals([first, second]).column("Total steps")) == [10, 30, 50]


def test_one_worker_is_as_its_file_and_nothing_written_is_nothing(tmp_path):
    alone = read(tmp_path, "worker_0.csv", "1,2,10,1,", "2,1,30,0.5,")
    assert list(RunSignals([alone]).column("Training Iter")) == [2, 1]
    empty = RunSignals([SignalFile(tmp_path / "nothing.csv")])
    assert (empty.rows, empty.names, list(empty.column("A")), list(empty.workers())) == (0, [], [], [])


def test_columns_stay_as_they_were_when_a_file_grows(tmp_path):
    files = [read(tmp_path, f"worker_{worker}.csv", f"1,2,10,{worker},") for worker in range(2)]
    signals = RunSignals(files)
    with open(files[0].path, "a") as file:
        file.write("2,4,20,2,\n")
    files[0].refresh()
    assert signals.rows == 2 and list(signals.column("Total steps")) == [10, 20]


def test_workers_of_a_run_have_one_id_and_other_agents_have_their_own(tmp_path):
    names = ["A/worker_1.graph.level.agent_0", "A/worker_0.graph.level.agent_0", "B/worker_0.graph.level.agent_0"]
    names += ["B/worker_1.graph.level.agent_0", "B/worker_0.graph.level.other_0", "B/worker_0.graph.level.agent_1"]
    assert run_ids(tmp_path, [str(tmp_path / f"{name}.csv") for name in names]) == [
        *("A", "A", "B/worker_0.graph.level.agent_0", "B/worker_0.graph.level.agent_0"),
        *("B/worker_0.graph.level.other_0", "B/worker_0.graph.level.agent_1"),
    ]


@pytest.fixture
def root(tmp_path):
    """A run of two workers, and one whose third worker only evaluates."""
    for name, rows in (("two", (20, 30)), ("evaluated", (20, 30, 40))):
        for worker, count in enumerate(rows):
            task = {"evaluate_only": 0 if worker == 2 else None}
            write_run(tmp_path, name, "21_11_2026-10_30", rows=count, seed=worker, worker=worker, task=task)
    return tmp_path


def last_steps(root, name, worker):
    (path,) = (root / name).rglob(f"worker_{worker}*.csv")
    file = SignalFile(path)
    file.refresh()
    return file.column("Total steps")[-1]


@pytest.mark.parametrize(("name", "workers"), [("two", 2), ("evaluated", 3)])
def test_a_run_of_several_workers_is_one_row_with_the_steps_of_all_that_train(root, name, workers):
    experiments = load(root / name)
    run = experiments.runs.iloc[0]
    assert len(experiments.runs) == len(experiments.parameters) == 1
    trained = last_steps(root, name, 0) + last_steps(root, name, 1)
    assert (run["workers"], run["kind"], run["seed"], run["steps"]) == (workers, "training", 0, trained)
    signals = experiments.signals
    assert signals["Total steps"].is_monotonic_increasing and signals["Total steps"].iloc[-1] == trained
    assert sorted(signals["worker"].unique()) == list(range(workers))
    alone = [load(path).runs.iloc[0] for path in sorted((root / name).rglob("*.csv"))]
    assert run["last_evaluation_reward"] == pytest.approx(np.mean([one["last_evaluation_reward"] for one in alone]))
    assert run["best_evaluation_reward"] == max(one["best_evaluation_reward"] for one in alone)


def test_a_worker_that_evaluates_until_it_is_stopped_evaluates_only(root):
    (path,) = (root / "evaluated").rglob("worker_2*.csv")
    assert describe(path, root, "id").evaluates_only
