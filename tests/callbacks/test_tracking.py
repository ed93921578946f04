"""Tracking with the services' own packages: what they have written is read back."""

from __future__ import annotations

import json
import os
import struct
import time

import imageio
import numpy as np
import pandas
import pytest

from rl_coach.callbacks import TrackMlflow, TrackWandb
from rl_coach.callbacks.tracking import Tracker
from rl_coach.coach import main
from rl_coach.command_line import preset_catalogue
from rl_coach.command_line.arguments import get_argument_parser
from rl_coach.command_line.graph_changes import apply_flags
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.utils import CoachError
from tests.zoo.runs import created, resumed

CSV = "worker_0.simple_rl_graph.main_level.main_level.agent_0.csv"


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """In a directory of its own, without the accounts of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("WANDB_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")


def run(directory, tracker, steps=250, go_on=False):
    """A run of DQN with an evaluation of two episodes after each 100 steps, whose evaluations leave a GIF."""
    graph = (resumed if go_on else created)("DQN", steps, directory)
    graph.use_callbacks([tracker])
    if go_on:
        graph.restore_checkpoint(continue_run=True)
    (directory / "gifs").mkdir(exist_ok=True)
    imageio.mimwrite(directory / "gifs" / "episode.gif", np.zeros((2, 8, 8, 3), np.uint8))
    graph.improve()
    return graph


def written(directory):
    return pandas.read_csv(directory / CSV).dropna(subset="Training Reward")  # rows of the heatup have none


BLOCK, FULL, LAST = 32768, 1, 4


def chunks(data):
    """The records of W&B's file: a head of 7 bytes, then blocks of chunks, as LevelDB writes its log."""
    at, record = 7, b""
    while at < len(data):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (FULL, LAST):
            yield record
            record = b""


def wandb_records(directory):
    """All records of the offline runs below a run's directory, oldest run first.

    A process of W&B writes the files. It may still write after the run has ended, so this waits for its last records.
    """
    from wandb.proto.wandb_internal_pb2 import Record

    for file in sorted(directory.glob("wandb/offline-run-*/run-*.wandb")):
        records, begun = [], time.monotonic()
        while not any(record.HasField("exit") for record in records) and time.monotonic() - begun < 60:
            time.sleep(0.1 if records else 0)
            records = [Record.FromString(data) for data in chunks(file.read_bytes())]
        yield from records


def test_wandb_gets_everything_and_goes_on_under_the_same_id(tmp_path):
    pytest.importorskip("wandb")
    directory = tmp_path / "experiments" / "mine" / "25_11_2026-10_00"
    heatup = run(directory, TrackWandb(tags=["extra"])).total_steps_counters[RunPhase.HEATUP][EnvironmentSteps]
    run(directory, TrackWandb(tags=["extra"]), 350, go_on=True)
    records = list(wandb_records(directory))
    first, second = (record.run for record in records if record.HasField("run"))
    assert first.run_id == second.run_id and (first.project, first.run_group) == ("coach", "mine")
    assert first.display_name == "25_11_2026-10_00" and {"DQN", "CartPole-v1", "extra"} <= set(first.tags)
    config = {update.key: json.loads(update.value_json) for update in first.config.update}
    assert config["seed"] == 5 and config["agent.algorithm.discount"] == 0.9
    rows = [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.HasField("history")
    ]
    lengths = {row["Total steps"]: row["Training Reward"] for row in rows if "Training Reward" in row}
    signals = written(directory)
    assert lengths == dict(zip(signals["Total steps"], signals["Training Reward"]))
    means = [row for row in rows if "evaluation/mean" in row]
    assert [row["Total steps"] for row in means[:2]] == [heatup + 100, heatup + 200], "heatup counts, as in the CSV"
    assert len(means) >= 3 and all(row["evaluation/confidence_low"] <= row["evaluation/mean"] for row in means)
    sent = list(directory.glob("wandb/offline-run-*/files/media/videos/*.gif"))
    assert len(sent) == 1, "a video is sent once"
    artifacts = {record.request.log_artifact.artifact.name for record in records if record.HasField("request")}
    artifacts |= {record.artifact.name for record in records if record.HasField("artifact")}
    assert {f"{first.run_id}-policy", f"{first.run_id}-checkpoint"} <= artifacts


def test_mlflow_gets_everything_and_goes_on_under_the_same_id(tmp_path):
    tracking = pytest.importorskip("mlflow.tracking")
    directory = tmp_path / "experiments" / "mine" / "25_11_2026-10_00"
    run(directory, TrackMlflow(project="my project"))
    run(directory, TrackMlflow(project="my project"), 350, go_on=True)
    client = tracking.MlflowClient()
    (found,) = client.search_runs([client.get_experiment_by_name("my project").experiment_id])
    assert found.info.status == "FINISHED" and found.info.run_name == "25_11_2026-10_00"
    assert found.data.tags["group"] == "mine" and found.data.tags["tags"] == "DQN, CartPole-v1"
    assert found.data.params["seed"] == "5" and found.data.params["agent.algorithm.discount"] == "0.9"
    history = client.get_metric_history(found.info.run_id, "Training Reward")
    signals = written(directory)
    assert {one.step: one.value for one in history} == dict(zip(signals["Total steps"], signals["Training Reward"]))
    assert len(client.get_metric_history(found.info.run_id, "evaluation/confidence_high")) >= 3
    listed = {one.path for folder in ("policy", "checkpoint", "videos")
              for one in client.list_artifacts(found.info.run_id, folder)}  # fmt: skip
    assert {"policy/model.onnx", "checkpoint/manifest.json", "videos/episode.gif"} <= listed


def test_a_service_that_cannot_be_reached_is_one_line(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mlflow.tracking")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    graph = run(tmp_path / "run", TrackMlflow())
    (said,) = [line for line in capsys.readouterr().out.splitlines() if "are sent to MLflow" in line]
    assert said.startswith("warning: no more data are sent to MLflow; the run continues: MlflowException: ")
    assert len(said) < 300
    assert graph.progress.last_evaluation is not None


@pytest.mark.slow
def test_wandb_that_cannot_be_reached_is_tracked_offline(tmp_path, monkeypatch, capsys):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789" * 4)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    run(tmp_path / "run", TrackWandb())
    out = capsys.readouterr().out
    assert "warning: W&B cannot be reached: " in out and "wandb sync " in out and "Traceback" not in out
    assert any(record.HasField("history") for record in wandb_records(tmp_path / "run"))


class Failing(Tracker):
    """A service that fails after three calls."""

    service, package = "Service", "json"

    def __init__(self):
        super().__init__()
        self.calls = []

    def begin(self, about, run_id):
        self.calls.append("begin")
        return "id"

    def log(self, values, steps):
        self.calls.append("log")
        if len(self.calls) == 4:
            raise ConnectionError("gone")

    def end(self):
        self.calls.append("end")


def test_a_service_that_fails_midway_ends_only_the_tracking(tmp_path, capsys):
    tracker = Failing()
    run(tmp_path / "run", tracker)
    assert tracker.calls == ["begin", "log", "log", "log"]
    said = capsys.readouterr().out
    assert said.count("no more data are sent to Service; the run continues: ") == 1
    assert said.count("ConnectionError: gone") == 1


@pytest.mark.parametrize(
    ("given", "classes", "board"),
    [
        ("wandb", [TrackWandb], False),
        ("tensorboard", [], True),
        ("WandB, mlflow,tensorboard", [TrackWandb, TrackMlflow], True),
    ],
)
def test_the_flag_names_services(given, classes, board):
    graph_manager = preset_catalogue.load("CartPole_DQN")
    apply_flags(graph_manager, get_argument_parser().parse_args(["--track", given]))
    assert [type(one) for one in graph_manager.callbacks] == classes
    assert graph_manager.visualization_parameters.tensorboard is board


def test_a_tracker_of_the_preset_is_not_doubled():
    graph_manager = preset_catalogue.load("CartPole_DQN")
    graph_manager.callbacks = [own := TrackWandb(project="mine")]
    apply_flags(graph_manager, get_argument_parser().parse_args(["--track", "wandb"]))
    assert graph_manager.callbacks == [own]


def test_bad_input_is_one_line(capsys, monkeypatch):
    assert main(["-p", "CartPole_DQN", "--track", "wandb,comet"]) == 2
    assert "--track: there is no 'comet'; choose from tensorboard, wandb, mlflow" in capsys.readouterr().err
    monkeypatch.setattr(TrackWandb, "package", "not_there")
    with pytest.raises(CoachError, match="the package 'not_there' is not installed: "):
        graph_manager = preset_catalogue.load("CartPole_DQN")
        TrackWandb().on_creation(graph_manager)
