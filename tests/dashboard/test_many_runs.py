"""Many runs at once, on a disk that is slow, while others grow."""

from __future__ import annotations

import contextlib
import re
import threading

import pytest

pytest.importorskip("panel")

from tests.dashboard.runs import signal_rows, write_run
from tests.dashboard.test_browser import open_page, playwright, plot_when, press  # noqa: F401

SLOW = """
import sys, time
from rl_coach.dashboard import app
from rl_coach.runs.signal_file import SignalFile
refresh = SignalFile.refresh
def slowly(*given):
    time.sleep(0.5)
    return refresh(*given)
SignalFile.refresh = slowly
sys.exit(app.main())
"""
SLOWLY_DRAWN = SLOW.replace(
    "sys.exit",
    """from rl_coach.dashboard.plot import SignalPlot
show = SignalPlot.show
def draw_slowly(*given):
    time.sleep(1)
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
    """Runs that take six seconds to read, and another that grows."""
    root = tmp_path / "experiments"
    for seed in range(RUNS):
        write_run(root, "Many", f"20_11_2026-1{seed // 6}_{seed % 6}0", rows=20, seed=seed)
    with growing(write_run(root, "Growing", "21_11_2026-10_00", rows=10)):
        yield root


def runs_of(root):
    return sorted(path.parent.relative_to(root).as_posix() for path in (root / "Many").rglob("*.csv"))


def test_lines_come_as_they_are_read_though_there_is_always_news(many, start_dashboard, open_page, screenshot):  # noqa: F811
    page = open_page(start_dashboard(many, program=("-c", SLOW)).address, runs=runs_of(many))
    playwright.expect(page.locator(".veil")).to_have_text(READING)
    playwright.expect(page.locator(".reading")).to_have_text(READING)
    playwright.expect(page.locator(".veil")).to_be_hidden()
    some = plot_when(page, "(plot) => Object.keys(plot.lines).length > 0")
    assert len(some["lines"]) < RUNS
    screenshot(page)
    plot_when(page, want=RUNS)
    playwright.expect(page.locator(".reading")).to_be_hidden()
    press(page, "Episode")
    press(page, "Iteration")
    playwright.expect(page.locator(".veil")).to_have_text(READING)
    plot_when(page, "(plot) => plot.label === 'Training iteration' && Object.keys(plot.lines).length === 24")


def test_a_reading_that_is_over_is_not_said_to_go_on_while_its_lines_are_drawn(many, start_dashboard, open_page):  # noqa: F811
    page = open_page(start_dashboard(many, program=("-c", SLOWLY_DRAWN)).address, runs=runs_of(many))
    playwright.expect(page.locator(".reading")).to_have_text(READING)
    playwright.expect(page.locator(".reading")).to_have_text("Computing …")
    plot_when(page, want=RUNS)
    playwright.expect(page.locator(".reading")).to_be_hidden()


def test_it_ends_soon_when_it_is_terminated_while_it_reads_for_a_page(many, start_dashboard, open_page):  # noqa: F811
    dashboard = start_dashboard(many, program=("-c", SLOW))
    page = open_page(dashboard.address, runs=runs_of(many))
    playwright.expect(page.locator(".veil")).to_have_text(re.compile("^Reading [2-6] of 24"))
    dashboard.process.terminate()
    assert dashboard.process.wait(4) == 0
