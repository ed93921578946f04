"""A dashboard in another process."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

SCREENSHOTS = pathlib.Path(__file__).resolve().parents[2] / "build" / "screenshots"
"""Kept by CI, to be looked at."""

PROGRAM = ("-m", "rl_coach.dashboard.app")


class Dashboard:
    """``dashboard`` over a directory, listening on a port of its own choice."""

    def __init__(self, root: pathlib.Path, cache: pathlib.Path, *flags: str, program: tuple[str, ...] = PROGRAM):
        command = [sys.executable, *program, "-d", str(root), "--port", "0", "--no-open", *flags]
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONUNBUFFERED": "1"}
        self.root = root
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        addresses = (match[0] for line in self.process.stdout if (match := re.search(r"http://\S+", line)))
        self.address = next(addresses)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture(scope="session")
def start_dashboard(tmp_path_factory):
    """Starts dashboards that end with the session."""
    started = []

    def start(root: pathlib.Path, *flags: str, program: tuple[str, ...] = PROGRAM) -> Dashboard:
        started.append(Dashboard(root, tmp_path_factory.mktemp("cache"), *flags, program=program))
        return started[-1]

    yield start
    for dashboard in started:
        dashboard.stop()


@pytest.fixture
def screenshot(request):
    """Keeps a picture of a page under the test's name."""

    def take(page, name=""):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{request.node.name.removeprefix('test_')}{name and '-'}{name}.png")

    return take
