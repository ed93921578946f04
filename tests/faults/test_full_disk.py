"""A disk without room: at a run's start, in its middle, and at its end."""

from __future__ import annotations

import gc
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.checkpoint import load_checkpoint
from rl_coach.coach import BAD_INPUT, TRAINING_FAILED, main
from rl_coach.core_types import AlwaysDumpFilter, RunPhase
from rl_coach.environments.gym_environment import GymEnvironment
from rl_coach.logger import Logger
from rl_coach.runs.status import FAILED
from tests.faults.processes import Run

pytestmark = pytest.mark.faults

SETTINGS = (
    "agent_params.network_wrappers['main'].batch_size=8; "
    "agent_params.memory.max_size=(MemoryGranularity.Transitions, 500); "
    "heatup_steps=EnvironmentSteps(20); evaluation_steps=EnvironmentEpisodes(0); improve_steps=EnvironmentSteps(60)"
)


def _mount(directory: pathlib.Path, size: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KB, less than a checkpoint."""
    directory = tmp_path / "disk"
    directory.mkdir()
    if not _mount(directory, "256k"):
        pytest.skip("no file system can be mounted here")
    yield directory
    subprocess.run(["umount", "-l", str(directory)], check=True)


def fill(directory: pathlib.Path) -> None:
    with open(directory / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


def coach(directory: pathlib.Path) -> int:
    return main(["-p", "CartPole_DQN", "-ep", str(directory), "-e", "run", "-ns", "--seed", "1", "-cp", SETTINGS])


def test_at_the_end_what_was_trained_lies_elsewhere(small_disk, tmp_path, monkeypatch, capsys):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    assert coach(small_disk) == TRAINING_FAILED
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "Traceback" not in error
    (path,) = re.findall(rf"the state was saved to '({elsewhere}/[^']*\.ckpt)'", error)
    assert load_checkpoint(path)[1]["steps"] == 60
    (run,) = (small_disk / "run").iterdir()
    status = json.loads((run / "status.json").read_text())
    assert status["state"] == FAILED


def test_where_there_is_no_room_anywhere_it_says_so(small_disk, monkeypatch, capsys):
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    assert coach(small_disk) == TRAINING_FAILED
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "is lost" in error


def test_starting_on_a_full_disk_is_one_line(small_disk, capsys):
    fill(small_disk)
    code = coach(small_disk)
    captured = capsys.readouterr()
    assert code in (BAD_INPUT, TRAINING_FAILED) and captured.err.count("\n") == 1
    assert "No space left on device" in captured.err + captured.out


def test_tensorboards_files_end_and_the_run_goes_on(small_disk, tmp_path, capsys):
    """The disk has room for the first of them alone."""
    logger = Logger()
    logger.set_logger_filenames(str(small_disk), "graph.level.agent", task_id=0, tensorboard=True)
    logger.csv_path = str(tmp_path / "signals.csv")
    for episode in range(1, 3000):
        logger.set_current_time(episode)
        for number in range(20):
            logger.create_signal_value(f"Signal {number}", 1.0)
        logger.dump_output_csv()
    logger.close()
    said = capsys.readouterr().out
    assert said.count("cannot be written: No space left on device; the run continues without TensorBoard") == 1
    assert len((tmp_path / "signals.csv").read_text().splitlines()) == 3000


@pytest.mark.parametrize("kind", ["dump_gifs", "dump_mp4"])
def test_videos_end_and_the_run_goes_on(small_disk, capfd, kind):
    for name in ("gifs", "videos"):
        (small_disk / name).mkdir()
    (small_disk / "filler").write_bytes(b"x" * (252 << 10))  # there is room for a part of a video
    visualization = VisualizationParameters(video_dump_methods=AlwaysDumpFilter(), **{kind: True})
    environment = GymEnvironment("CartPole-v1", 1, visualization, seed=1, experiment_path=str(small_disk))
    environment.phase = RunPhase.TRAIN
    for _ in range(6):
        environment.reset_internal_state()
        while not environment.step(0).game_over:
            pass
        environment.handle_episode_ended()
    environment.close()
    gc.collect()
    said = capfd.readouterr()
    assert said.out.count("writing no more videos") == 1 and "Traceback" not in said.out + said.err
    assert [file for file in small_disk.rglob("*.*") if not file.stat().st_size] == [], "of what could not be written"


def test_a_csv_that_becomes_unwritable_is_one_line_and_the_run_goes_on(tmp_path, monkeypatch, capsys):
    """Its place is taken by a directory, which not even root can write rows to."""
    from rl_coach.graph_managers.graph_manager import GraphManager

    heatup = GraphManager.heatup

    def heatup_and_take_the_csvs_place(graph, steps):
        heatup(graph, steps)
        file = pathlib.Path(graph.get_agent().agent_logger.csv_path)
        file.unlink(missing_ok=True)
        file.mkdir()

    monkeypatch.setattr(GraphManager, "heatup", heatup_and_take_the_csvs_place)
    assert coach(tmp_path) == 0
    captured = capsys.readouterr()
    assert captured.out.count("cannot be written") == 1 and "Traceback" not in captured.out + captured.err
    (run,) = (tmp_path / "run").iterdir()
    assert json.loads((run / "status.json").read_text())["state"] == "finished"
    assert list(run.glob("checkpoint/*.ckpt"))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["-n 2", "--seeds 2", "-dc"])
def test_starting_several_processes_on_a_full_disk_is_one_line(small_disk, tmp_path, way):
    fill(small_disk)
    code, text = Run(tmp_path, "-p", "CartPole_A3C", "-f", "jax", *way.split(), "-ep", str(small_disk)).end()
    assert code == BAD_INPUT and "Traceback" not in text, text
    lines = [line for line in text.splitlines() if line.startswith("coach: ")]
    assert len(lines) == 1 and lines[0].endswith("cannot be written: No space left on device"), text


@pytest.mark.slow
def test_seeds_on_a_full_disk_are_told_of_one_by_one(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if not _mount(disk, "1m"):
        pytest.skip("no file system can be mounted here")
    try:
        flags = ["-p", "CartPole_DQN", "-f", "jax", "--seeds", "2", "--at_once", "1", "-ep", str(disk), "-e", "run"]
        run = Run(tmp_path, *flags, "-cp", SETTINGS.replace("(60)", "(1500)"), TMPDIR=str(tmp_path))
        run.wait_for("seed 0 | Training")
        fill(disk)
        code, text = run.end()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    assert code == TRAINING_FAILED and "Traceback" not in text, text
    assert "seed 0 failed: no checkpoint could be written to" in text and "the state was saved to" in text, text
    assert "seed 1 failed: " in text, text
    assert "runs.json' cannot be written: No space left on device" in text, text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "is_told"),
    [
        (["-p", "CartPole_DQN", "-f", "jax"], "status.json' cannot be written"),
        (["-p", "CartPole_A3C", "-f", "jax", "-n", "2"], "status.json' cannot be written"),
        (["-p", "CartPole_DQN", "-f", "jax", "-dc", "--dump_worker_logs"], "the workers' logs cannot be written to"),
    ],
    ids=["one process", "-n 2", "-dc"],
)
def test_a_run_that_is_stopped_on_a_full_disk_keeps_its_exit_code(tmp_path, way, is_told):
    disk = tmp_path / "disk"
    disk.mkdir()
    if not _mount(disk, "1m"):
        pytest.skip("no file system can be mounted here")
    try:
        flags = [*way, "-ep", str(disk), "-e", "run", "-cp", "improve_steps=EnvironmentSteps(10000000)"]
        run = Run(tmp_path, *flags, TMPDIR=str(tmp_path))
        run.wait_for("Training | ", "evaluation ")  # where evaluations are many, they leave no time for the other
        fill(disk)
        os.kill(run.process.pid, signal.SIGINT)
        code, text = run.end()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    assert code == 130 and "Traceback" not in text, text
    assert is_told in text and "coach: stopped\n" in text, text
    (elsewhere,) = re.findall(r"the state was saved to '([^']*\.ckpt)'", text)
    assert load_checkpoint(elsewhere)[1]["steps"] > 0
