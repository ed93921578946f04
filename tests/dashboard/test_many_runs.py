"""Many runs at once, on a disk that is slow, while others grow."""

from __future__ import annotations

import contextlib
import re
import threading
import time

import pytest

pytest.importorskip("panel")

from tests.dashboard.runs import signal_rows, write_run
from tests.dashboard.test_browser import open_page, playwright, plot_when, press  # noqa: F401

# Reads for a page no more runs than a file allows, which says when it was written and how many from then on.
HELD = """
import pathlib, sys, threading, time
from rl_coach.dashboard import app
from rl_coach.runs.signal_file import SignalFile
refresh, lock, gate = SignalFile.refresh, threading.Lock(), pathlib.Path(sys.argv.pop(1))
known, taken = "", 0
def may_read():
    global known, taken
    with lock:
        allowed = gate.read_text()
        known, taken = allowed, (taken if allowed == known else 0) + 1
        return taken <= int(allowed.split()[1])
def held(*given):
    if threading.current_thread().name.startswith("columns"):
        while not may_read():
            time.sleep(0.02)
        time.sleep(0.3)
    return refresh(*given)
SignalFile.refresh = held
sys.exit(app.main())
"""
SLOWLY_DRAWN = HELD.replace(
    "sys.exit",
    """from rl_coach.dashboard.plot import SignalPlot
show = SignalPlot.show
def draw_slowly(*given):
    time.sleep(3)
    return show(*given)
SignalPlot.show = draw_slowly
sys.exit""",
)
RUNS = 24
READING = re.compile(r"^Reading \d+ of 24 runs …$")


@contextlib.contextmanager
def growing(path):
    """A run that gets a row five times a second."""
    ended = threading.Event()

    def grow():
        row = 10
        while not ended.wait(0.2):
            row += 1
            with open(path, "a") as file:
                file.write("\n".join(signal_rows(1, first=row)) + "\n")

    thread = threading.Thread(target=grow)
    thread.start()
    yield
    ended.set()
    thread.join()


@pytest.fixture
def many(tmp_path):
    """Runs that are read when ``allow`` allows it, and another that grows."""
    root = tmp_path / "experiments"
    for seed in range(RUNS):
        write_run(root, "Many", f"20_11_2026-1{seed // 6}_{seed % 6}0", rows=20, seed=seed)
    with growing(write_run(root, "Growing", "21_11_2026-10_00", rows=10)):
        yield root


@pytest.fixture
def allow(tmp_path):
    """Lets the dashboard read that many more runs for a page."""
    gate = tmp_path / "gate"

    def write(count):
        written = tmp_path / "gate.new"
        written.write_text(f"{time.time_ns()} {count}")
        written.replace(gate)
        return str(gate)

    return write


def runs_of(root):
    return sorted(path.parent.relative_to(root).as_posix() for path in (root / "Many").rglob("*.csv"))


def test_lines_come_as_they_are_read_though_there_is_always_news(
    many,
    allow,
    start_dashboard,
    open_page,  # noqa: F811
    screenshot,
):
    page = open_page(start_dashboard(many, program=("-c", HELD, allow(2))).address, runs=runs_of(many))
    playwright.expect(page.locator(".veil")).to_have_text(READING)
    allow(12)
    playwright.expect(page.locator(".reading")).to_have_text(READING)
    playwright.expect(page.locator(".veil")).to_be_hidden()
    some = plot_when(page, "(plot) => Object.keys(plot.lines).length > 0")
    assert len(some["lines"]) < RUNS
    screenshot(page)
    allow(1000)
    plot_when(page, want=RUNS)
    playwright.expect(page.locator(".reading")).to_be_hidden()
    allow(2)
    press(page, "Episode")
    press(page, "Iteration")
    playwright.expect(page.locator(".veil")).to_have_text(READING)
    allow(1000)
    plot_when(page, "(plot) => plot.label === 'Training iteration' && Object.keys(plot.lines).length === 24")


def test_a_reading_that_is_over_is_not_said_to_go_on_while_its_lines_are_drawn(
    many,
    allow,
    start_dashboard,
    open_page,  # noqa: F811
):
    page = open_page(start_dashboard(many, program=("-c", SLOWLY_DRAWN, allow(2))).address, runs=runs_of(many))
    playwright.expect(page.locator(".veil")).to_have_text(READING)
    allow(12)
    playwright.expect(page.locator(".reading")).to_have_text(READING)
    allow(1000)
    playwright.expect(page.locator(".reading")).to_have_text("Computing …")
    plot_when(page, want=RUNS)
    playwright.expect(page.locator(".reading")).to_be_hidden()


def test_it_ends_soon_when_it_is_terminated_while_it_reads_for_a_page(many, allow, start_dashboard, open_page):  # noqa: F811
    dashboard = start_dashboard(many, program=("-c", HELD, allow(2)))
    page = open_page(dashboard.address, runs=runs_of(many))
    playwright.expect(page.locator(".veil")).to_have_text(READING)
    allow(1000)
    dashboard.process.terminate()
    assert dashboard.process.wait(4) == 0
