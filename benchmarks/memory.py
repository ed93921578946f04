"""Compares replay memories: inserts per second, batches per second, and bytes per transition.

    python -m benchmarks.memory [--rounds 5] [--json]

The other memories are the buffers of stable-baselines3 and cpprb, if these packages are installed. Each round measures
one buffer after the other, each in a separate process. The table shows the best of all rounds, because other work of
the machine changes this figure least. A batch has 32 transitions. A buffer has room for 100,000 vectors of 4 numbers,
or for 20,000 stacks of 4 frames of 84x84. The bytes per transition are the growth of the process, divided by the number
of transitions, so they contain fixed costs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import time
from typing import Any, Callable

import numpy as np

from rl_coach.core_types import Batch, Transition
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplay

VECTORS, FRAMES, BATCH_SIZE = 100_000, 20_000, 32
Action = Callable[[], Any]


class FrameStack:
    """Four frames, each stored as a reference, like the outputs of ``ObservationStackingFilter``."""

    def __init__(self, history: list[np.ndarray], axis: int):
        self.history = history
        self.axis = axis

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.stack(self.history, axis=self.axis)


def rate(action: Action, seconds: float) -> float:
    """Calls of ``action`` per second: the highest rate of any five successive calls during ``seconds``."""
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(5):
            action()
        best = max(best, 5 / (time.perf_counter() - start))
    return best


def resident_bytes() -> int:
    """The resident set of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def vector_steps(count: int) -> list[tuple[np.ndarray, int, float, np.ndarray, bool]]:
    """Steps with the sizes of CartPole: state, action, reward, next state, end of the episode."""
    observations = np.random.default_rng(0).random((count + 1, 4)).astype(np.float32)
    rows = list(observations)
    return [(rows[i], i % 2, 1.0, rows[i + 1], i % 200 == 199) for i in range(count)]


def frame_steps(count: int, axis: int) -> Any:
    """Steps with the sizes of Pong. Each step adds one frame to the stack. An episode has 1,000 steps."""
    rng = np.random.default_rng(0)
    history: list[np.ndarray] = []
    for step in range(count):
        if step % 1000 == 0:
            history = [rng.integers(0, 256, (84, 84), np.uint8)] * 4
        following = [*history[1:], rng.integers(0, 256, (84, 84), np.uint8)]
        yield FrameStack(history, axis), step % 6, 0.0, FrameStack(following, axis), step % 1000 == 999
        history = following


def as_transition(step: Any) -> Transition:
    """A step as the transition that an agent stores."""
    before, action, reward, after, ends = step
    return Transition({"observation": before}, action, reward, {"observation": after}, ends)


def in_turn(store: Callable[[Any], Any], items: list) -> Action:
    """A function that stores all items, one after the other."""

    def action() -> None:
        for item in items:
            store(item)

    return action


def coach_vectors() -> dict[str, tuple[Action, int]]:
    memory = ExperienceReplay((MemoryGranularity.Transitions, VECTORS))
    transitions = [as_transition(step) for step in vector_steps(1000)]
    chunk = Batch(transitions)
    for _ in range(VECTORS // 1000):
        memory.store_columns(chunk)
    return {
        "inserts": (in_turn(memory.store, transitions), 1000),
        "inserts in chunks": (lambda: memory.store_columns(chunk), 1000),
        "batches": (lambda: memory.sample(BATCH_SIZE), 1),
    }


def coach_prioritized() -> dict[str, tuple[Action, int]]:
    memory = PrioritizedExperienceReplay((MemoryGranularity.Transitions, VECTORS))
    transitions = [as_transition(step) for step in vector_steps(1000)]
    for _ in range(VECTORS // 1000):
        memory.store_columns(Batch(transitions))
    rng = np.random.default_rng(0)
    memory.update_priorities(np.arange(VECTORS), rng.random(VECTORS))
    errors = rng.random(BATCH_SIZE)

    def sample_and_update() -> None:
        memory.update_priorities(memory.sample(BATCH_SIZE).info("idx"), errors)

    return {
        "prioritized inserts": (in_turn(memory.store, transitions), 1000),
        "prioritized batches": (lambda: memory.sample(BATCH_SIZE), 1),
        "prioritized batches, updated": (sample_and_update, 1),
    }


def coach_frames(axis: int, contiguous: bool) -> dict[str, tuple[Action, int]]:
    small = ExperienceReplay((MemoryGranularity.Transitions, BATCH_SIZE))
    for step in frame_steps(BATCH_SIZE, axis):
        small.store(as_transition(step))  # load all code before the first measurement of the memory
    before = resident_bytes()
    memory = ExperienceReplay((MemoryGranularity.Transitions, FRAMES))
    memory.contiguous_frames = contiguous
    for step in frame_steps(FRAMES, axis):
        memory.store(as_transition(step))
    used = (resident_bytes() - before) / FRAMES
    transitions = [as_transition(step) for step in frame_steps(1000, axis)]
    return {
        "frame inserts": (in_turn(memory.store, transitions), 1000),
        "frame batches": (lambda: memory.sample(BATCH_SIZE), 1),
        "bytes a transition of frames": (lambda: used, 0),
    }


def sb3_buffer(low: Any, high: Any, shape: tuple[int, ...], dtype: Any, size: int) -> Any:
    from gymnasium import spaces
    from stable_baselines3.common.buffers import ReplayBuffer

    observations = spaces.Box(low, high, shape, dtype)
    return ReplayBuffer(size, observations, spaces.Discrete(6), device="cpu", handle_timeout_termination=False)


def sb3_vectors() -> dict[str, tuple[Action, int]]:
    buffer = sb3_buffer(-np.inf, np.inf, (4,), np.float32, VECTORS)
    steps = [(s, n, np.array([a]), np.array([r]), np.array([d]), [{}]) for s, a, r, n, d in vector_steps(1000)]
    store = in_turn(lambda step: buffer.add(*step), steps)
    for _ in range(VECTORS // 1000):
        store()
    return {"inserts": (store, 1000), "batches": (lambda: buffer.sample(BATCH_SIZE), 1)}


def sb3_frames() -> dict[str, tuple[Action, int]]:
    sb3_buffer(0, 255, (4, 84, 84), np.uint8, 1)
    before = resident_bytes()
    buffer = sb3_buffer(0, 255, (4, 84, 84), np.uint8, FRAMES)

    def add(step: Any) -> None:
        state, action, reward, following, ends = step
        values = (np.asarray(state), np.asarray(following), np.array([action]), np.array([reward]), np.array([ends]))
        buffer.add(*values, [{}])

    for step in frame_steps(FRAMES, 0):
        add(step)
    used = (resident_bytes() - before) / FRAMES
    return {
        "frame inserts": (in_turn(add, list(frame_steps(1000, 0))), 1000),
        "frame batches": (lambda: buffer.sample(BATCH_SIZE), 1),
        "bytes a transition of frames": (lambda: used, 0),
    }


def cpprb_vectors(prioritized: bool) -> dict[str, tuple[Action, int]]:
    import cpprb

    fields = {"obs": {"shape": 4}, "act": {"dtype": np.int64}, "rew": {}, "next_obs": {"shape": 4}, "done": {}}
    buffer = (cpprb.PrioritizedReplayBuffer if prioritized else cpprb.ReplayBuffer)(VECTORS, fields)
    steps = [{"obs": s, "act": a, "rew": r, "next_obs": n, "done": d} for s, a, r, n, d in vector_steps(1000)]
    store = in_turn(lambda step: buffer.add(**step), steps)
    for _ in range(VECTORS // 1000):
        store()
    if not prioritized:
        return {"inserts": (store, 1000), "batches": (lambda: buffer.sample(BATCH_SIZE), 1)}
    errors = np.random.default_rng(0).random(BATCH_SIZE)

    def sample_and_update() -> None:
        buffer.update_priorities(buffer.sample(BATCH_SIZE, 0.4)["indexes"], errors)

    return {
        "prioritized inserts": (store, 1000),
        "prioritized batches": (lambda: buffer.sample(BATCH_SIZE, 0.4), 1),
        "prioritized batches, updated": (sample_and_update, 1),
    }


def cpprb_frames(contiguous: bool) -> dict[str, tuple[Action, int]]:
    import cpprb

    image = {"shape": (84, 84, 4), "dtype": np.uint8}
    fields = {"obs": image, "act": {"dtype": np.int64}, "rew": {}, "done": {}}
    before = resident_bytes()
    buffer = cpprb.ReplayBuffer(FRAMES, fields, next_of="obs", stack_compress="obs")

    def add(step: Any) -> None:
        state, action, reward, following, ends = step
        buffer.add(obs=np.asarray(state), act=action, rew=reward, next_obs=np.asarray(following), done=ends)
        if ends:
            buffer.on_episode_end()

    def sample() -> None:
        batch = buffer.sample(BATCH_SIZE)
        if contiguous:
            np.ascontiguousarray(batch["obs"]), np.ascontiguousarray(batch["next_obs"])

    for step in frame_steps(FRAMES, -1):
        add(step)
    used = (resident_bytes() - before) / FRAMES
    return {
        "frame inserts": (in_turn(add, list(frame_steps(1000, -1))), 1000),
        "frame batches": (sample, 1),
        "bytes a transition of frames": (lambda: used, 0),
    }


BUFFERS: dict[str, tuple[str, Callable[[], dict[str, tuple[Action, int]]]]] = {
    "rl_coach": ("rl_coach", lambda: {**coach_vectors(), **coach_prioritized()}),
    "rl_coach, stacks channels-last": ("rl_coach", lambda: coach_frames(-1, contiguous=True)),
    "rl_coach, channels-last views": ("rl_coach", lambda: coach_frames(-1, contiguous=False)),
    "rl_coach, stacks channels-first": ("rl_coach", lambda: coach_frames(0, contiguous=True)),
    "stable-baselines3": ("stable_baselines3", lambda: sb3_vectors()),
    "stable-baselines3, channels-first": ("stable_baselines3", sb3_frames),
    "cpprb": ("cpprb", lambda: {**cpprb_vectors(False), **cpprb_vectors(True)}),
    "cpprb, channels-last views": ("cpprb", lambda: cpprb_frames(contiguous=False)),
    "cpprb, stacks channels-last": ("cpprb", lambda: cpprb_frames(contiguous=True)),
}


def measure(name: str, seconds: float) -> dict[str, float]:
    """All figures of one buffer, by their names."""
    actions = BUFFERS[name][1]()
    return {work: rate(action, seconds) * each if each else action() for work, (action, each) in actions.items()}


def in_own_process(name: str, seconds: float) -> dict[str, float]:
    """Measure one buffer in a new process, so that buffers share no memory and no caches.

    :return: its figures, by their names
    """
    command = [sys.executable, "-m", "benchmarks.memory", "--only", name, "--seconds", str(seconds)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def best(name: str, rounds: list[dict[str, float]]) -> dict[str, float]:
    """The best figure of all rounds, by its name: the highest rate, or the smallest number of bytes."""
    return {work: (min if work.startswith("bytes") else max)(r[work] for r in rounds) for work in rounds[0]}


def main() -> None:
    """Measure all buffers and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each figure is measured in a round")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.seconds)))
        return
    present = [name for name, (package, _) in BUFFERS.items() if importlib.util.find_spec(package)]
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in present}
    for _ in range(options.rounds):
        for name in present:
            rounds[name].append(in_own_process(name, options.seconds))
    figures = {name: best(name, rounds[name]) for name in present}
    if options.json:
        print(json.dumps(figures))
        return
    for work in dict.fromkeys(work for columns in figures.values() for work in columns):
        print(f"\n{work}{'' if work.startswith('bytes') else ' a second'}")
        for name, columns in figures.items():
            if work in columns:
                print(f"    {name:36s}{columns[work]:>14,.0f}")


if __name__ == "__main__":
    main()
