"""Output that cannot be written, because its disk is full or its reader has gone, ends no run without a checkpoint."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from tests.faults.processes import ROOT, TOO_LONG

pytestmark = pytest.mark.faults

SETTINGS = (
    "agent_params.network_wrappers['main'].batch_size=8; agent_params.memory.max_size=(MemoryGranularity.Transitions, "
    "500); heatup_steps=EnvironmentSteps(20); evaluation_steps=EnvironmentEpisodes(1); "
    "steps_between_evaluation_periods=EnvironmentSteps(10); improve_steps=EnvironmentSteps({steps})"
)
WAYS = {
    "one process": ["-p", "CartPole_DQN"],
    "-n 2": ["-p", "CartPole_A3C", "-n", "2"],
    "-dc": ["-p", "CartPole_DQN", "-dc"],
    "--seeds": ["-p", "CartPole_DQN", "--seeds", "2"],
}
"""Without a value of its own for the batch, where the agent has none."""


def coach(directory: pathlib.Path, *arguments: str, **streams: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "rl_coach", *arguments], cwd=directory, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}, **streams,
    )  # fmt: skip


def flags(way: str, steps: int) -> list[str]:
    settings = SETTINGS if "CartPole_DQN" in WAYS[way] else SETTINGS.split("; ", 2)[2]
    return [*WAYS[way], "-f", "jax", "-ep", ".", "-e", "run", "-cp", settings.format(steps=steps)]


@pytest.mark.parametrize(
    "way", [way if way == "one process" else pytest.param(way, marks=pytest.mark.slow) for way in WAYS]
)
def test_a_run_whose_output_has_no_room_trains_to_its_end(tmp_path, way):
    with open("/dev/full", "w") as full:
        run = coach(tmp_path, *flags(way, 60), stdout=full, stderr=full)
        assert run.wait(TOO_LONG) == 0
    assert list(tmp_path.rglob("*.ckpt"))


@pytest.mark.parametrize(
    "way",
    [way if way == "one process" else pytest.param(way, marks=pytest.mark.slow) for way in WAYS if way != "--seeds"],
)
def test_a_run_whose_output_nobody_reads_any_more_saves_a_checkpoint(tmp_path, way):
    """As ``coach | head`` does."""
    with open(tmp_path / "errors.txt", "w+") as errors:
        run = coach(tmp_path, *flags(way, 10**7), stdout=subprocess.PIPE, stderr=errors)
        assert any("evaluation " in line or "Training" in line for line in run.stdout)
        run.stdout.close()
        assert run.wait(TOO_LONG) == 129
        told = (tmp_path / "errors.txt").read_text()
        assert "coach: stopped because the reader of the output has ended" in told and "Traceback" not in told
    assert list(tmp_path.rglob("*.ckpt"))


@pytest.mark.parametrize("command", ["--list", "algorithms"])
def test_a_list_that_nobody_reads_to_its_end_is_no_error(tmp_path, command):
    reader, writer = os.pipe()
    os.close(reader)
    listing = coach(tmp_path, command, stdout=writer, stderr=subprocess.PIPE)
    assert listing.communicate(timeout=TOO_LONG)[1] == "" and listing.returncode == 0
    os.close(writer)
