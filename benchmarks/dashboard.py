"""Measures the dashboard with many runs: the time until the table and a plot are shown, and the memory.

    python -m benchmarks.dashboard                     1,000 runs × 20 signals × 10,000 rows: 2 GB of CSV
    python -m benchmarks.dashboard --runs 100          100 runs: 200 MB of CSV
    python -m benchmarks.dashboard --runs 200 --rows 100000     200 runs with large files: 3 GB of CSV

A time begins when a headless Chromium opens the page or selects runs. It ends when the page shows the rows or the
lines. There are three measurements:

at once   a new dashboard in which all runs are selected immediately: until the first lines are shown (``first of
          all``), and until one plot shows as many lines as it can (``whole of all``)
first     a new dashboard, which still reads the runs
again     the same dashboard after a restart: it has a cache of the runs

Each time has the processor time of the server and of the browser in parentheses. If the machine has other work, this
processor time says more than the wall time. The server's processor time includes files that it reads in advance.
``memory`` is the largest resident set of the server's process. Needs the extra ``dashboard``, playwright and Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
from pyarrow import csv

SIGNALS = (
    *("Training Iter", "In Heatup", "ER #Transitions", "ER #Episodes", "Episode Length", "Total steps", "Epsilon"),
    *("Shaped Training Reward", "Training Reward", "Update Target Network", "Wall-Clock Time", "Evaluation Reward"),
    *("Shaped Evaluation Reward", "Success Rate", "Loss/Mean", "Loss/Stdev", "Loss/Max", "Loss/Min"),
    *("Learning Rate/Mean", "Q/Mean"),
)
# By default, Playwright checks the page at every frame, which takes much processor time.
_PATIENTLY: dict[str, Any] = {"timeout": 60_000, "polling": 50}
_MOST_LINES = 80
LIMITS = {"table": 3.0, "plot of 10": 2.0, "new row": 5.0, "first of all": 10.0, "whole of all": 60.0, "memory": 1e9}
ROOT = pathlib.Path(__file__).resolve().parent.parent


def write_runs(root: pathlib.Path, runs: int, rows: int) -> int:
    """Write runs with the files of Coach. :return: the size of all CSV files in bytes"""
    total = 0
    for index in range(runs):
        preset = f"Preset_{index // 10 % 20}"
        directory = root / preset / f"{1 + index % 28:02}_11_2026-{index // 60 % 24:02}_{index % 60:02}-{index}"
        directory.mkdir(parents=True)
        path = directory / "worker_0.simple_rl_graph.main_level.main_level.agent_0.csv"
        csv.write_csv(_table(rows, index), path, csv.WriteOptions(quoting_style="none"))
        path.with_suffix(".json").write_text(json.dumps(_settings(index), indent=2))
        (directory / "status.json").write_text('{"state": "finished"}')
        total += path.stat().st_size
    return total


def _settings(seed: int) -> dict[str, Any]:
    """Two hundred parameters, about as many as a preset of Coach has."""
    parts = ("algorithm", "exploration", "memory", "network_wrappers.main", "visualization", "task_parameters")
    agent: dict[str, Any] = {
        part: {f"parameter_{place}_of_the_{part}": [None, 1.0, "EnvironmentSteps(1)"][place % 3] for place in range(32)}
        for part in parts
    }
    agent["__class__"] = "DQNAgentParameters"
    agent["algorithm"]["discount"] = (0.9, 0.99, 0.999)[seed % 3]
    return {
        "run": {"command_line": ["coach", "-p", "Env_DQN"], "platform": "Linux", "versions": {"rl_coach": "2.0.0"}},
        "parameters": {"seed": seed, "agent": agent, "environment": {"level": "Env-v1", "seed": seed * 7919}},
    }


def _table(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"Episode #": np.arange(1, rows + 1)}
    for place, name in enumerate(SIGNALS):
        values = np.round(np.cumsum(rng.normal(0.01, 1, rows)) + place, 5)
        if name in ("Training Iter", "Total steps", "ER #Transitions", "ER #Episodes", "Episode Length"):
            columns[name] = np.arange(1, rows + 1) * 100
        elif name == "Wall-Clock Time":
            columns[name] = np.round(np.arange(1, rows + 1) / 600, 4)
        elif "Evaluation" in name or name == "Success Rate":
            columns[name] = pa.array(values, mask=np.arange(rows) % 50 != 49)
        else:
            columns[name] = values
    return pa.table(columns)


class _Server:
    """A dashboard in a separate process. ``largest`` is the largest resident set so far, in bytes."""

    def __init__(self, root: pathlib.Path, cache: pathlib.Path):
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "dashboard.app", "-d", str(root), "--port", "0", "--no-open"]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert self.process.stdout is not None
        self.address = next(match[0] for line in self.process.stdout if (match := re.search(r"http://\S+", line)))
        self.largest = 0
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def _look(self) -> None:
        status = pathlib.Path(f"/proc/{self.process.pid}/status")
        while self.process.poll() is None:
            try:
                found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text())
            except OSError:
                return
            self.largest = max(self.largest, int(found[1]) * 1024 if found else 0)
            time.sleep(0.05)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


class _Clock:
    """Measures seconds of wall time, of the server's processor time, and of the browser's processor time."""

    def __init__(self, server: _Server):
        self._server = server.process.pid
        self._started = self._now()

    def _now(self) -> tuple[float, float, float]:
        seconds = _processor_seconds(os.getpid())
        server = seconds.pop(self._server, 0.0)
        return time.perf_counter(), server, sum(seconds.values())

    def read(self) -> tuple[float, float, float]:
        clock, server, browser = (after - before for before, after in zip(self._started, self._now()))
        return clock, server, browser


def _processor_seconds(ancestor: int) -> dict[int, float]:
    """Seconds of processor time of each descendant of a process, by process id."""
    parents, seconds = {}, {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid] = int(fields[1])
        seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    below = {ancestor}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return {pid: seconds[pid] for pid in below - {ancestor} if pid in seconds}


def measure(browser: Any, root: pathlib.Path, cache: pathlib.Path, runs: int) -> dict[str, Any]:
    """Open the page and plot 10 runs as lines, then 100 runs as one band."""
    server = _Server(root, cache)
    try:
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        clock = _Clock(server)
        page.goto(server.address)
        page.wait_for_function(_ROWS_SHOWN, arg=runs, **_PATIENTLY)
        result: dict[str, Any] = {"table": clock.read()}
        result["plot of 10"] = _plot(page, server, _some(root, 10), 10, left="Q/Mean")
        many = _some(root, min(100, runs))
        result[f"band over {len(many)}"] = _plot(page, server, many, 1, left="Loss/Mean", draw="std")
        _wait_for_reading(cache, runs)
        result["new row"] = _new_row(page, server, root)
        result["memory"] = float(server.largest)
        page.close()
        return result
    finally:
        server.stop()


def measure_at_once(browser: Any, root: pathlib.Path, cache: pathlib.Path, runs: int) -> dict[str, Any]:
    """Open the page and select all runs before the server has read any of them."""
    server = _Server(root, cache)
    try:
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.goto(server.address)
        page.wait_for_function(_ROWS_SHOWN, arg=runs, **_PATIENTLY)
        clock = _Clock(server)
        page.evaluate(_SELECT, _some(root, runs))
        patiently = {**_PATIENTLY, "timeout": 300_000}
        page.wait_for_function(_SOME_SHOWN, arg=2, **patiently)
        result: dict[str, Any] = {"first of all": clock.read()}
        page.wait_for_function(_WHOLE_SHOWN, arg=min(runs, _MOST_LINES), **patiently)
        result["whole of all"] = clock.read()
        result["memory"] = float(server.largest)
        page.close()
        return result
    finally:
        server.stop()


def _new_row(page: Any, server: _Server, root: pathlib.Path) -> tuple[float, float, float]:
    """Seconds from the writing of a row until the plot shows it. The row is removed afterwards."""
    path = min(root.rglob("*.csv"))
    lines = path.read_bytes()
    index, _, rest = lines[lines.rstrip().rfind(b"\n") + 1 :].partition(b",")
    page.goto(f"{server.address}?{urlencode({'runs': _some(root, 1)[0], 'left': 'Q/Mean'})}")
    page.wait_for_function(_LINES_SHOWN, arg=1, **_PATIENTLY)
    clock = _Clock(server)
    with open(path, "ab") as file:
        file.write(b"%d,%s" % (int(index) + 1, rest))
    page.wait_for_function(_LAST_SHOWN, arg=int(index) + 1, **_PATIENTLY)
    passed = clock.read()
    path.write_bytes(lines)
    return passed


def _wait_for_reading(cache: pathlib.Path, runs: int) -> None:
    deadline = time.monotonic() + 180
    while sum(1 for _ in cache.rglob("*.arrow")) < runs and time.monotonic() < deadline:
        time.sleep(0.5)


def _plot(page: Any, server: _Server, runs: list[str], lines: int, **view: Any) -> tuple[float, float, float]:
    """Seconds from the selection of runs until the page shows their lines. First, the page is opened with one run."""
    page.goto(f"{server.address}?{urlencode([('runs', runs[0]), *view.items()])}")
    page.wait_for_function(_LINES_SHOWN, arg=1, **_PATIENTLY)
    clock = _Clock(server)
    page.evaluate(_SELECT, runs)
    page.wait_for_function(_LINES_SHOWN, arg=lines, **_PATIENTLY)
    if lines == 1:
        page.wait_for_function(_LABEL_SHOWN, arg=f"All runs ({len(runs)})", **_PATIENTLY)
    return clock.read()


_ROWS_SHOWN = """(runs) => {
  const inside = (root) => [...root.querySelectorAll("*")].map((e) => e.shadowRoot && find(e.shadowRoot));
  const find = (root) => root.querySelector(".said") ?? inside(root).find(Boolean);
  const said = find(document);
  return said && said.textContent.startsWith(runs.toLocaleString("en") + " run");
}"""
_LINES_SHOWN = """(lines) => {
  const [view] = window.Bokeh?.index?.query((view) => view.model.name === "signals") ?? [];
  return view && view.model.renderers.filter((r) => r.name && r.data_source.data.x.length > 10).length === lines;
}"""
_SOME_SHOWN = """(lines) => {
  const [view] = window.Bokeh?.index?.query((view) => view.model.name === "signals") ?? [];
  return view && document.querySelector(".veil").hidden && view.model.renderers.filter((r) => r.name).length >= lines;
}"""
_WHOLE_SHOWN = """(lines) => {
  const [view] = window.Bokeh?.index?.query((view) => view.model.name === "signals") ?? [];
  const drawn = view?.model.renderers.filter((r) => r.name && r.data_source.data.x.length > 10).length;
  return drawn === lines && [...document.querySelectorAll(".veil, .reading")].every((said) => said.hidden);
}"""
_LAST_SHOWN = """(last) => {
  const [view] = Bokeh.index.query((view) => view.model.name === "signals");
  return view && view.model.renderers.some((r) => r.name && [...r.data_source.data.x].at(-1) === last);
}"""
_LABEL_SHOWN = """(label) => {
  const [view] = Bokeh.index.query((view) => view.model.name === "signals");
  return view && view.model.renderers.some((r) => r.name === label);
}"""
_SELECT = """(runs) => {
  const components = Bokeh.documents[0].roots().map((root) => root.data).filter((data) => data?.properties);
  const table = components.find((data) => "selected" in data.properties);
  table.selected = runs;
}"""


def _some(root: pathlib.Path, count: int) -> list[str]:
    paths = sorted(root.rglob("*.csv"))[:count]
    return [path.parent.relative_to(root).as_posix() for path in paths]


def main() -> int:
    """Measure and print the times. :return: the exit code, 1 if a time or the memory is above its limit"""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument(
        "--directory", type=pathlib.Path, help="write the runs here and leave them (default: temporary)"
    )
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        root = options.directory or pathlib.Path(scratch, "experiments")
        if not root.exists():
            started = time.perf_counter()
            size = write_runs(root, options.runs, options.rows)
            print(f"wrote {options.runs} runs, {size / 1e9:.2f} GB, in {time.perf_counter() - started:.0f} s")
        browser = playwright.chromium.launch(
            executable_path=options.chromium, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        passed = True
        for name, cache, measured in (
            ("at once", "cache at once", measure_at_once),
            ("first", "cache", measure),
            ("again", "cache", measure),
        ):
            for what, value in measured(browser, root, pathlib.Path(scratch, cache), options.runs).items():
                clock, *processor = value if isinstance(value, tuple) else (value,)
                fits = clock <= LIMITS.get(what, float("inf"))
                passed &= fits
                shown = f"{clock / 1e6:.0f} MB" if what == "memory" else f"{clock:.2f} s"
                more = "  (processor: server {:.2f} s, browser {:.2f} s)".format(*processor) if processor else ""
                print(f"{name:7} {what:15} {shown:>9}{more}{'' if fits else '  over the limit'}", flush=True)
            print(f"{name:7} load average    {os.getloadavg()[0]:9.1f}", flush=True)
        browser.close()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
