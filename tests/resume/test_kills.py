"""kill -9 at random moments: a good checkpoint always remains, and a run goes on from it."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
import time

import pytest

from rl_coach.checkpoint import best_checkpoint, checkpoint_name, find_checkpoint, load_checkpoint, save_checkpoint
from tests.resume import saver
from tests.zoo.states import differences, final_state, rows

pytestmark = [pytest.mark.resume, pytest.mark.slow]

KILLS_OF_SAVER = 94
KILLS_OF_COACH = 6
MEMORY_BYTES = 8 << 20
ROOT = pathlib.Path(__file__).parents[2]


def start(*arguments: str, cwd: pathlib.Path = ROOT) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, cwd=cwd,
        text=True, bufsize=1,
    )  # fmt: skip


def kill_after(process: subprocess.Popen, seconds: float) -> list[str]:
    """Kill at that time. :return: the lines that came in the meantime; one that the kill cut off says nothing"""
    time.sleep(seconds)
    process.kill()
    lines = process.communicate()[0].split("\n")[:-1]
    assert all(line.startswith("sav") for line in lines), "\n".join(lines)
    return lines


def test_killed_at_random_a_process_that_saves_leaves_a_whole_checkpoint(tmp_path):
    """Half of the kills at least come within a save."""
    chance = random.Random(11)
    save_checkpoint(tmp_path, checkpoint_name(0, 0), saver.content(0, MEMORY_BYTES), {"number": 0})
    newest = inside = kills = 0
    duration = 0.05
    while kills < KILLS_OF_SAVER or inside < KILLS_OF_SAVER // 2:
        process = start("-m", "tests.resume.saver", str(tmp_path), str(MEMORY_BYTES))
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("saving"), first
        began = time.monotonic()
        if kills % 2:
            assert process.stdout.readline().startswith("saved")
            duration = time.monotonic() - began
        lines = [first.strip(), *kill_after(process, chance.uniform(0, duration * (1 if kills % 2 == 0 else 3)))]
        kills += 1
        inside += lines[-1].startswith("saving")
        state, manifest = load_checkpoint(find_checkpoint(tmp_path))
        number = saver.check(state)
        announced = max(int(line.split()[1]) for line in lines)
        finished = [int(line.split()[1]) for line in lines if line.startswith("saved")]
        assert max([newest, *finished]) <= number <= announced and manifest["number"] == number
        newest = number
        best = best_checkpoint(tmp_path)
        if best is not None:
            saver.check(load_checkpoint(tmp_path / best)[0])
        assert kills < 4 * KILLS_OF_SAVER
    assert inside >= KILLS_OF_SAVER // 2


PRESET = """
from tests.zoo.runs import graph_of
graph_manager = graph_of("DQN with prioritized replay", 900)
"""


def test_killed_at_random_coach_goes_on_as_if_nothing_had_happened(tmp_path):
    (tmp_path / "plan.py").write_text(PRESET)
    flags = ("-p", "plan.py", "--checkpoint_save_steps", "20", "--seed", "5", "--nocolor")
    whole = start("-m", "rl_coach.coach", *flags, "-e", "whole", cwd=tmp_path)
    text = whole.communicate()[0]
    assert whole.returncode == 0, text

    chance = random.Random(3)
    process = start("-m", "rl_coach.coach", *flags, "-e", "parts", cwd=tmp_path)
    kills = 0
    while True:
        directory = wait_for_experiment(tmp_path, process)
        before = newest_number(directory)
        while process.poll() is None and newest_number(directory) <= before + chance.randrange(5):
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.05))
        if process.poll() is not None or kills == KILLS_OF_COACH:
            break
        process.kill()
        process.communicate()
        kills += 1
        load_checkpoint(find_checkpoint(directory))
        process = start("-m", "rl_coach.coach", "--resume", str(directory), cwd=tmp_path)
    text = process.communicate()[0]
    assert process.returncode == 0, text
    assert kills >= KILLS_OF_COACH // 2
    (uninterrupted,) = (tmp_path / "experiments" / "whole").iterdir()
    assert differences(final_state(uninterrupted), final_state(directory)) == []
    assert rows(uninterrupted) == rows(directory)


def wait_for_experiment(base: pathlib.Path, process: subprocess.Popen) -> pathlib.Path:
    """The experiment's directory, once there is a checkpoint in it."""
    while True:
        for directory in (base / "experiments").glob("parts/*"):
            if (directory / "checkpoint" / ".coach_checkpoint").exists():
                return directory
        if process.poll() is not None:
            raise AssertionError(process.communicate()[0])
        time.sleep(0.02)


def newest_number(directory: pathlib.Path) -> int:
    return int(os.path.basename(find_checkpoint(directory)).partition("_")[0])
