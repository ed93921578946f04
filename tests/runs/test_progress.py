from __future__ import annotations

import io

import pytest
from rich.console import Console

from rl_coach.core_types import RunPhase
from rl_coach.logger import ScreenLogger
from rl_coach.runs import progress as progress_module
from rl_coach.runs.progress import Progress, Status, duration


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    return now


def status(steps=0, fraction=0.0, phase=RunPhase.TRAIN):
    return Status(phase=phase, episodes=steps // 10, steps=steps, updates=steps, fraction=fraction)


def terminal():
    screen = ScreenLogger("")
    screen._console = Console(file=io.StringIO(), force_terminal=True, width=160, height=20)
    return screen


def test_plain_lines_come_every_ten_seconds(clock, capsys):
    progress = Progress(ScreenLogger("", use_colors=False))
    progress.start()
    for second in range(25):
        clock[0] = 1000.0 + second
        progress.update(status(steps=100 * second, fraction=second / 100))
    progress.stop()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0] == (
        "Training | episode 100 | steps 1,000 | steps/s 100 | updates 1,000 | time 0:10 | left at most 1:30"
    )


def test_each_evaluation_is_a_line(clock, capsys):
    progress = Progress(ScreenLogger("", use_colors=False))
    progress.start()
    progress.add_episode(10.0)
    progress.add_episode(20.0)
    progress.add_evaluation(30.0, 5, status(10))
    progress.add_evaluation(12.5, 1, status(20))
    first, second = capsys.readouterr().out.splitlines()
    assert "reward 20 (mean 15)" in first and first.endswith("evaluation 30 (best 30) | over 5 episodes")
    assert second.endswith("evaluation 12.5 (best 30) | over 1 episode")


def test_nothing_is_shown_before_the_start_and_after_the_stop(clock, capsys):
    progress = Progress(ScreenLogger("", use_colors=False))
    progress.add_evaluation(1.0, 1, status())
    progress.update(status())
    progress.start()
    progress.stop()
    clock[0] += 100
    progress.update(status())
    assert capsys.readouterr().out == ""
    assert progress.best_evaluation == 1.0


def test_a_terminal_shows_one_display_and_no_lines(clock):
    screen = terminal()
    progress = Progress(screen)
    progress.start()
    progress.update(status(50, 0.5))
    clock[0] += 2
    progress.add_evaluation(7.0, 1, status(100, 0.6))
    progress.update(status(100, 0.6))
    progress.stop()
    shown = screen.console.file.getvalue()
    assert "steps/s" in shown and "25" in shown and "over 1 episode" not in shown
    assert shown.endswith("\x1b[2K") or "\x1b[?25h" in shown  # the cursor is back


def test_a_rest_of_years_is_not_shown(clock):
    progress = Progress(ScreenLogger(""))
    progress.start()
    progress.update(status(0, 0.0))
    clock[0] += 5
    progress.update(status(500, 1e-8))
    assert "left" not in progress.line(status(500, 1e-8))


@pytest.mark.parametrize("seconds, text", [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3723, "1:02:03")])
def test_durations(seconds, text):
    assert duration(seconds) == text
