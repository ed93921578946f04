"""Run cells: ``python -m tests.conformance``.

    run [CELL ...]   run these cells, or all of a framework.
    find             find the refusals again, and write refused.json.
    page             write docs/what_goes_together.md.

``--framework`` is the framework of this process, jax by default. ``--workers`` is the number of cells at a time.
``--agent`` finds the refusals of one agent, such as a new one.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=("run", "find", "page"))
    parser.add_argument("cells", nargs="*")
    parser.add_argument("--framework", default="jax", choices=("jax", "tensorflow", "mxnet", "torch"))
    parser.add_argument("--agent")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_intermixed_args()
    named = {text.split("/")[2] for text in arguments.cells}
    framework = named.pop() if named else arguments.framework
    os.environ["KERAS_BACKEND"] = os.environ["COACH_TEST_FRAMEWORK"] = framework
    import tests.conftest  # noqa: F401  which lets XLA compile in haste

    if arguments.what == "page":
        from tests.conformance.page import write

        write()
        return 0
    if arguments.what == "find":
        from tests.conformance.finding import find

        find(framework, arguments.workers, arguments.agent)
        return 0
    return _run(arguments.cells, framework, arguments.workers)


def _run(texts: list[str], framework: str, workers: int) -> int:
    from tests.conformance.axes import Cell, cells_of
    from tests.conformance.cells import command_of, verdict
    from tests.conformance.forks import results

    cells = [Cell.of(text) for text in texts] or cells_of(framework)
    if importlib.util.find_spec("jax") is None and not texts:
        computed = [cell for cell in cells if cell.way == "compiled"]
        cells = [cell for cell in cells if cell not in computed]
        print(f"{len(computed)} cells are left out: their environment is computed by JAX, which is not installed")
    begun, counts = time.monotonic(), {"ran": 0, "refused": 0, "failed": 0}
    for cell, result in results(verdict, cells, workers):
        what, faults = ("failed", [result]) if isinstance(result, str) else result
        counts["failed" if faults else what] += 1
        for fault in faults:
            print(f"{cell}\n    {fault}\n    {command_of(cell)}", flush=True)
    print(f"{len(cells)} cells on {framework}: {counts}; {time.monotonic() - begun:.0f} s")
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
