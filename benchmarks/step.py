"""The functions that one step goes through, by file: ``python -m benchmarks.step [--work W2] [--list]``.

Every call of a function of rl_coach in a steady step of training is counted: acting, observing, storing, and one
update. What a reader has to follow to understand a step is what this prints.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import inspect
import pathlib
import sys
from typing import Any, Callable

import rl_coach
from benchmarks.coach_side import runner
from benchmarks.works import WORKS

ROOT = str(pathlib.Path(rl_coach.__file__).parent)
Call = tuple[str, str]
"""A file below ``rl_coach`` and a function's name."""


def main() -> None:
    """Print the calls of one step, and the longest classes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step", description=__doc__)
    parser.add_argument("--work", default="W2", choices=[w.name for w in WORKS.values() if w.algorithm == "dqn"])
    parser.add_argument("--framework", default="tensorflow", choices=["tensorflow", "jax"])
    parser.add_argument("--list", action="store_true", help="name each function")
    options = parser.parse_args()
    calls = calls_of_a_step(options.work, options.framework)
    by_file = collections.Counter(file for file, _ in set(calls))
    for file, count in by_file.most_common():
        print(f"{count:5}  {file}")
        if options.list:
            for name, times in collections.Counter(name for f, name in calls if f == file).items():
                print(f"         {times} {name}")
    print(f"{len(set(calls)):5}  functions in {len(by_file)} files, {len(calls)} calls")
    print()
    for name, lines, methods in longest_classes():
        print(f"{lines:5} lines, {methods:3} methods of its own: {name}")


def calls_of_a_step(work: str, framework: str) -> list[Call]:
    """The calls of a step in which the network acts and no episode ends, in order, from one step of the graph's level
    to the next."""
    run = runner(WORKS[work], framework)
    run(600)
    steps = [_traced(run) for _ in range(8)]
    rare = ("handle_episode_ended", "attend")
    return max((s for s in steps if not any(name.endswith(rare) for _, name in s)), key=len)


def _traced(run: Callable[[int], None]) -> list[Call]:
    steps: list[list[Call]] = [[]]

    def on_event(frame: Any, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        # comprehensions are functions before Python 3.12 only
        if event != "call" or not path.startswith(ROOT) or frame.f_code.co_name.startswith("<"):
            return
        name = frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name
        if name.endswith("LevelManager.step") or (name == "step" and path.endswith("level_manager.py")):
            steps.append([])
        steps[-1].append((path[len(ROOT) + 1 :], name))

    sys.setprofile(on_event)
    try:
        run(3)
    finally:
        sys.setprofile(None)
    return steps[2]


def longest_classes(count: int = 6) -> list[tuple[str, int, int]]:
    """The longest classes that a run has loaded: name, lines, methods and properties of their own."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("rl_coach."):
            for cls in vars(module).values():
                if inspect.isclass(cls) and cls.__module__ == name:
                    methods = sum(
                        inspect.isfunction(m) or isinstance(m, (property, staticmethod, classmethod))
                        for m in vars(cls).values()
                    )
                    with contextlib.suppress(OSError):  # a class that a call made has no lines
                        found[f"{name}.{cls.__name__}"] = (len(inspect.getsourcelines(cls)[0]), methods)
    longest = sorted(found.items(), key=lambda item: item[1], reverse=True)[:count]
    return [(name, lines, methods) for name, (lines, methods) in longest]


if __name__ == "__main__":
    main()
