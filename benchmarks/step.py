"""Counts the functions of Coach that one training step calls: ``python -m benchmarks.step [--work W2] [--list]``.

The script counts every call of a function of rl_coach in a usual training step: acting, observing, storing, and one
update. These are the functions that a reader must read to understand a step. For the works of PPO, the script counts
the calls of one training phase: from the beginning of the graph's ``train`` to its end. A "change of file" is a call of
a function in another file than the previous call.

``--work players`` counts a step of two DQN agents in one environment. ``--work checkpoint`` counts the saving of a
checkpoint of W2. ``--copies`` prints the time of a step of one copy, without environment and update, for 1 to 1,024
copies.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import inspect
import itertools
import pathlib
import sys
import time
from dataclasses import replace
from typing import Any, Callable

import rl_coach
from benchmarks.coach_side import AGENTS, create, graph_of, runner
from benchmarks.null_environment import NullPlayersParameters
from benchmarks.works import WORKS
from rl_coach.core_types import EnvironmentSteps
from rl_coach.graph_managers.graph_manager import SimpleScheduleWithoutEvaluation

ROOT = str(pathlib.Path(rl_coach.__file__).parent)
STEPS_TO_COMPARE = 30
Call = tuple[str, str]
"""A file below ``rl_coach`` and a function's name."""


def main() -> None:
    """Print the calls of one step, and the longest classes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step", description=__doc__)
    works = [w.name for w in WORKS.values() if w.algorithm in ("dqn", "ppo")]
    parser.add_argument("--work", default="W2", choices=[*works, "players", "checkpoint"])
    parser.add_argument("--copies", action="store_true", help="print the cost of a step of each copy")
    parser.add_argument("--framework", default="tensorflow", choices=["tensorflow", "jax"])
    parser.add_argument("--list", action="store_true", help="name each function")
    options = parser.parse_args()
    if options.copies:
        print_costs_of_copies(options.framework)
        return
    calls = calls_of(options.work, options.framework)
    by_file = collections.Counter(file for file, _ in set(calls))
    for file, count in by_file.most_common():
        print(f"{count:5}  {file}")
        if options.list:
            for name, times in collections.Counter(name for f, name in calls if f == file).items():
                print(f"         {times} {name}")
    changes = changes_of_file(calls)
    print(f"{len(set(calls)):5}  functions in {len(by_file)} files, {len(calls)} calls, {changes} changes of file")
    print()
    for name, lines, methods in longest_classes():
        print(f"{lines:5} lines, {methods:3} methods of its own: {name}")


def calls_of(work: str, framework: str) -> list[Call]:
    """The calls of a step, a training phase or a save, in order. :param work: the value of ``--work``"""
    if work == "players":
        return most_frequent_step(runner_of_players(framework))
    if work == "checkpoint":
        return calls_of_a_save(framework)
    find_calls = calls_of_a_phase if WORKS[work].algorithm == "ppo" else calls_of_a_step
    return find_calls(work, framework)


def runner_of_players(framework: str) -> Callable[[int], None]:
    """A function that makes steps of two DQN agents in one environment."""
    from rl_coach.graph_managers.multi_agent_graph_manager import MultiAgentGraphManager

    agents = [AGENTS["dqn"](WORKS["W2"]) for _ in range(2)]
    graph = MultiAgentGraphManager(agents, NullPlayersParameters(), SimpleScheduleWithoutEvaluation())
    create(graph, framework)
    return lambda steps: graph.train_and_act(EnvironmentSteps(steps))


def calls_of_a_save(framework: str) -> list[Call]:
    """The calls while a checkpoint is saved, in order."""
    graph = graph_of(WORKS["W2"])
    create(graph, framework)
    graph.train_and_act(EnvironmentSteps(200))
    graph.save_checkpoint()
    calls: list[Call] = []
    _trace(lambda frame, event, call: calls.append(call) if event == "call" else None, graph.save_checkpoint)
    return calls


def print_costs_of_copies(framework: str) -> None:
    """Print the time of a step of one copy, in microseconds. PPO acts with a 64 x 64 policy in environments that do
    nothing.
    """
    level = "benchmarks.null_environment:NullVectorEnvironment"
    for copies in (1, 8, 64, 256, 1024):
        work = replace(WORKS["W16"], environments=copies, rollout=10**9, level=level if copies > 1 else None)
        run = runner(work, framework)
        steps = copies * max(200, 20_000 // copies)
        run(steps)
        began = time.perf_counter()
        run(steps)
        print(f"{copies:6} copies: {1e6 * (time.perf_counter() - began) / steps:7.2f} us a step of each", flush=True)


def calls_of_a_step(work: str, framework: str) -> list[Call]:
    """The calls of a step of the graph's level in which the network acts, in order. The step is a usual one: no episode
    begins or ends in it, and the target network is not updated.
    """
    return most_frequent_step(runner(WORKS[work], framework))


def most_frequent_step(run: Callable[[int], None]) -> list[Call]:
    """The calls of the most frequent kind of step in which the network acts, in order.

    :param run: a function that makes the given number of environment steps
    """
    run(600)
    acting: collections.Counter[tuple[Call, ...]] = collections.Counter()
    while acting.total() < STEPS_TO_COMPARE:
        calls = tuple(_step(run))
        acting[calls] += any(name == "OnnxPredictor.__call__" for _, name in calls)
    return list(acting.most_common(1)[0][0])


def calls_of_a_phase(work: str, framework: str) -> list[Call]:
    """The calls of a training phase, from the beginning of the graph's ``train`` to its end, in order."""
    run = runner(WORKS[work], framework)
    run(2 * WORKS[work].rollout)
    phases: list[list[Call]] = []
    training = None  # the frame of the outermost call of ``train``

    def on_event(frame: Any, event: str, call: Call) -> None:
        nonlocal training
        if event == "return":
            training = None if frame is training else training
            return
        if training is None and call[1].rpartition(".")[2] == "train":
            training = frame
            phases.append([])
        if training is not None:
            phases[-1].append(call)

    _trace(on_event, lambda: run(WORKS[work].rollout))
    return max(phases, key=len)  # most calls of ``train`` do nothing: no training is due


def changes_of_file(calls: list[Call]) -> int:
    """Number of calls of a function in another file than the previous call."""
    return sum(file != next_file for (file, _), (next_file, _) in itertools.pairwise(calls))


def _step(run: Callable[[int], None]) -> list[Call]:
    steps: list[list[Call]] = [[]]

    def on_event(frame: Any, event: str, call: Call) -> None:
        if event == "call":
            path, name = call
            if name.endswith("LevelManager.step") or (name == "step" and path.endswith("level_manager.py")):
                steps.append([])
            steps[-1].append(call)

    _trace(on_event, lambda: run(3))
    return steps[2]


def _trace(on_event: Callable[[Any, str, Call], None], run: Callable[[], None]) -> None:
    """Call ``run``, and observe the calls of functions of rl_coach.

    :param on_event: called at each call and each return, with the frame, "call" or "return", and the function
    """

    def on_any_event(frame: Any, event: str, argument: Any) -> None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        # ignore comprehensions: before Python 3.12, they are functions
        if event in ("call", "return") and path.startswith(ROOT) and not name.startswith("<"):
            name = frame.f_code.co_qualname if sys.version_info >= (3, 11) else name
            on_event(frame, event, (path[len(ROOT) + 1 :], name))

    sys.setprofile(on_any_event)
    try:
        run()
    finally:
        sys.setprofile(None)


def longest_classes(count: int = 6) -> list[tuple[str, int, int]]:
    """The longest classes of the loaded modules: name, number of lines, and number of methods and properties without
    inherited ones.
    """
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("rl_coach."):
            for cls in vars(module).values():
                if inspect.isclass(cls) and cls.__module__ == name:
                    methods = sum(
                        inspect.isfunction(m) or isinstance(m, (property, staticmethod, classmethod))
                        for m in vars(cls).values()
                    )
                    with contextlib.suppress(OSError):  # a class that a function call has created has no source lines
                        found[f"{name}.{cls.__name__}"] = (len(inspect.getsourcelines(cls)[0]), methods)
    longest = sorted(found.items(), key=lambda item: item[1], reverse=True)[:count]
    return [(name, lines, methods) for name, (lines, methods) in longest]


if __name__ == "__main__":
    main()
