from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.callbacks import Callback
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.runs import status as run_status
from rl_coach.runs.status import (
    FAILED,
    FINISHED,
    RUNNING,
    STALLED,
    STALLED_AFTER_SECONDS,
    STOPPED,
    RunStatus,
    read_status,
    state_of,
)
from rl_coach.utils import CoachError, TrainingError
from tests.zoo.graphs import counting_graph, schedule


@pytest.mark.parametrize(
    ("status", "age", "state"),
    [
        ({"state": "finished"}, 0, FINISHED),
        ({"state": "failed"}, 0, FAILED),
        ({"state": "stopped"}, 0, STOPPED),
        ({"state": "running"}, 10, RUNNING),
        ({"state": "running"}, STALLED_AFTER_SECONDS + 1, STALLED),
        ({"state": "running", "updated": 999.0}, STALLED_AFTER_SECONDS + 1, RUNNING),
        ({"state": "running", "pid": os.getpid(), "host": socket.gethostname()}, 10, RUNNING),
        ({"state": "running", "pid": 2**22 + 1, "host": "elsewhere"}, 10, RUNNING),
        ({"state": "odd"}, 10, RUNNING),
        ({}, 10, RUNNING),
        ({}, 10_000, FINISHED),
    ],
)
def test_state_of_a_run(status, age, state):
    assert state_of(status, modified=1000.0 - age, now=1000.0) == state


def test_a_run_whose_process_has_gone_has_failed():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert state_of({"state": "running", "pid": process.pid}, modified=1000.0, now=1000.0) == FAILED


@pytest.mark.parametrize("text", ["", '{"state": "fini', "[1]", "finished", None])
def test_a_status_that_cannot_be_read_is_none(tmp_path, text):
    if text is not None:
        (tmp_path / "status.json").write_text(text)
    assert read_status(tmp_path) == {}


@pytest.mark.parametrize(
    ("error", "state", "said"),
    [
        (TrainingError("the loss of\nnetwork 'main' is nan"), FAILED, "the loss of network 'main' is nan"),
        (ZeroDivisionError("division by zero"), FAILED, "ZeroDivisionError: division by zero"),
        (KeyboardInterrupt(), STOPPED, None),
        (SystemExit(143), STOPPED, None),
    ],
)
def test_says_why_a_run_ended(tmp_path, error, state, said):
    RunStatus(tmp_path).set_by(error)
    status = read_status(tmp_path)
    assert (status["state"], status.get("error")) == (state, said)
    assert (status["pid"], status["host"]) == (os.getpid(), socket.gethostname())
    assert os.listdir(tmp_path) == ["status.json"]


def test_it_is_written_no_more_often_than_every_few_seconds(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(run_status.time, "monotonic", lambda: clock[0])
    status = RunStatus(tmp_path)
    status.set(RUNNING)
    (tmp_path / "status.json").unlink()
    clock[0] += run_status.SECONDS_BETWEEN_UPDATES - 0.1
    status.keep_alive()
    assert read_status(tmp_path) == {}
    clock[0] += 0.1
    status.keep_alive()
    assert read_status(tmp_path)["state"] == RUNNING


def test_where_it_cannot_be_written_the_run_goes_on_and_says_so_once(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    status = RunStatus(tmp_path / "file")
    status.set(RUNNING)
    status.set(FINISHED)
    assert capsys.readouterr().out.replace("\n", "").count("cannot be written") == 1


# a run of a graph


def state(directory):
    return read_status(directory).get("state")


def test_a_run_says_that_it_runs_and_that_it_has_finished(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(20)))
    assert state(tmp_path) is None
    agent, seen = graph.get_agent(), []
    train = agent.train
    agent.train = lambda: [seen.append(state(tmp_path)), train()][1]
    graph.improve()
    assert set(seen) == {RUNNING} and state(tmp_path) == FINISHED


def test_a_run_goes_on_saying_that_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(run_status, "SECONDS_BETWEEN_UPDATES", 0.0)
    monkeypatch.setattr("rl_coach.graph_managers.graph_manager.SECONDS_BETWEEN_REDRAWS", 0.0)
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(20)))
    agent, seen = graph.get_agent(), []
    train = agent.train
    agent.train = lambda: [seen.append(read_status(tmp_path)["updated"]), train()][1]
    graph.improve()
    assert len(set(seen)) > 10 and seen == sorted(seen)


def test_an_evaluation_in_training_leaves_the_share_of_training_as_it_is(tmp_path):
    class Watch(Callback):
        def __init__(self):
            self.shares = []

        def on_step(self, run):
            report = graph.progress.report(graph.status())
            self.shares.append((run.phase, report["done"], report["total"]))

    graph, watch = counting_graph(tmp_path, schedule(EnvironmentSteps(20), 10, evaluation=1)), Watch()
    graph.use_callbacks([watch])
    graph.improve()
    tested = [share for share in watch.shares if share[0] is RunPhase.TEST]
    assert set(tested) == {(RunPhase.TEST, 10, 20), (RunPhase.TEST, 20, 20)}
    watch.shares.clear()
    graph.evaluate(EnvironmentEpisodes(1))
    assert watch.shares[0] == (RunPhase.TEST, 0, 1)  # a run that only evaluates


def test_a_failed_run_says_why_and_runs_again_once_it_is_resumed(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(40)), fails_at_update=13)
    graph.save_checkpoint()
    with pytest.raises(TrainingError):
        graph.run()
    assert state(tmp_path) == FAILED and "update 13" in read_status(tmp_path)["error"]
    resumed = counting_graph(
        tmp_path, schedule(EnvironmentSteps(40)), checkpoint_restore_path=str(tmp_path / "checkpoint"), resume=True
    )
    agent = resumed.get_agent()
    train = agent.train
    agent.train = lambda: [seen.append(state(tmp_path)), train()][1]
    seen = []
    resumed.run()
    assert set(seen) == {RUNNING} and "error" not in read_status(tmp_path) and state(tmp_path) == FINISHED


def test_a_run_that_ends_by_a_bug_has_failed(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(40)))
    graph.get_agent().train = lambda: [][0]
    with pytest.raises(IndexError):
        graph.run()
    assert state(tmp_path) == FAILED and read_status(tmp_path)["error"].startswith("IndexError")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_has_stopped(tmp_path, number):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(10**9)))
    graph.get_agent().train = lambda: os.kill(os.getpid(), number)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        graph.run()
    assert state(tmp_path) == STOPPED


def test_an_evaluation_says_so_too(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(20), evaluation=EnvironmentEpisodes(1)), evaluate_only=5)
    graph.run()
    assert state(tmp_path) == FINISHED


def test_nothing_is_said_without_csvs_or_by_other_workers(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(20)))
    graph.task_parameters.task_index = 1
    graph.setup_logger()
    graph.improve()
    graph.task_parameters.task_index = 0
    graph.visualization_parameters = VisualizationParameters(dump_csv=False)
    graph.setup_logger()
    graph.improve()
    assert state(tmp_path) is None


def test_bad_input_while_running_has_failed(tmp_path):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(40)))

    def refuse():
        raise CoachError("no such thing")

    graph.get_agent().train = refuse
    with pytest.raises(CoachError):
        graph.run()
    assert read_status(tmp_path)["error"] == "no such thing"


def test_a_copy_of_the_status_is_written_where_the_environment_says(tmp_path, monkeypatch):
    """A container's termination message: a file that is there already and that no other can take the place of."""
    copy = tmp_path / "message"
    copy.write_text("x" * 5000)
    monkeypatch.setenv(run_status.STATUS_COPY, str(copy))
    status = RunStatus(tmp_path / "run", lambda: {"steps": 7})
    status.set(RUNNING)
    inode = copy.stat().st_ino
    status.set(FAILED, "out of paper")
    assert json.loads(copy.read_text()) == read_status(tmp_path / "run") and copy.stat().st_ino == inode
    assert read_status(tmp_path / "run")["error"] == "out of paper"
