"""How much memory replay takes, measured by the operating system in a process of its own."""

import os
import subprocess
import sys

import pytest

PREAMBLE = """
import numpy as np
from rl_coach.core_types import Transition
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplay
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from tests.memories.transitions import Stack

def used():
    # not the pages of programs and libraries, which the kernel drops and brings back as it likes
    with open("/proc/self/status") as file:
        values = dict(line.split(":", 1) for line in file)
    return sum(int(values[name].split()[0]) for name in ("RssAnon", "VmSwap")) * 1024 / 1e6

def play(memory, steps, episode_length=50, shape=(20, 20), sample_every=10):
    frames = []
    for step in range(steps):
        if step % episode_length == 0:
            frames = [np.full(shape, step % 256, np.uint8)] * 4
            state = Stack(frames, -1)
        frames = frames[1:] + [np.full(shape, step % 256, np.uint8)]
        next_state = Stack(frames, -1)
        game_over = step % episode_length == episode_length - 1
        memory.store(Transition({"o": state}, 1, 0.5, {"o": next_state}, game_over, {"value": 0.5}))
        state = next_state
        if sample_every and step > 100 and step % sample_every == 0:
            memory.sample(16)
"""


def megabytes(script: str) -> list[float]:
    # whether an array gets huge pages, each of 2 MB however little of it is used, is chance
    result = subprocess.run(
        [sys.executable, "-c", PREAMBLE + script], env={**os.environ, "NUMPY_MADVISE_HUGEPAGE": "0"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [float(number) for number in result.stdout.split()]


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.mark.parametrize(
    "memory",
    [
        "ExperienceReplay((MemoryGranularity.Transitions, 500))",
        "PrioritizedExperienceReplay((MemoryGranularity.Transitions, 500))",
        "EpisodicExperienceReplay((MemoryGranularity.Transitions, 500))",
        "EpisodicExperienceReplay((MemoryGranularity.Episodes, 10))",
    ],
)
def test_a_small_buffer_stays_small(memory):
    before, after = megabytes(
        f"memory = {memory}\nplay(memory, 5000)\nprint(used())\nplay(memory, 50_000, sample_every=50)\nprint(used())"
    )
    assert after - before < 4


def test_frames_take_the_bytes_of_single_frames():
    before, after = megabytes(
        "memory = ExperienceReplay((MemoryGranularity.Transitions, 1_000_000))\n"
        "play(memory, 200, 100, (84, 84))\n"
        "print(used())\n"
        "play(memory, 20_000, 1000, (84, 84), 0)\n"
        "print(used())"
    )
    assert (after - before) * 1e6 < 1.05 * 20_000 * 84 * 84


def test_on_policy_memories_reuse_their_rows():
    before, after = megabytes(
        "memory = EpisodicExperienceReplay((MemoryGranularity.Transitions, 1_000_000))\n"
        "def phases(number):\n"
        "    for _ in range(number):\n"
        "        play(memory, 500)\n"
        "        memory.clean()\n"
        "phases(2)\n"
        "print(used())\n"
        "phases(40)\n"
        "print(used())"
    )
    assert after - before < 4
