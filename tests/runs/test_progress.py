from __future__ import annotations

import dataclasses

import pytest

from rl_coach.core_types import RunPhase
from rl_coach.logger import ScreenLogger
from rl_coach.runs import progress as progress_module
from rl_coach.runs.progress import Goal, Progress, Status, duration, line_of


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    return now


def status(steps=0, total=10_000, phase=RunPhase.TRAIN, tested=0):
    goal = None if total is None else Goal(steps, total, "steps")
    return Status(phase, episodes=steps // 10, steps=steps, updates=steps, goal=goal, evaluation_steps=tested)


def fields(progress, *given, **named):
    return dict(progress.fields(status(*given, **named)))


def test_plain_lines_come_every_ten_seconds(clock, capsys):
    progress = Progress(ScreenLogger(""))
    progress.start()
    for second in range(25):
        clock[0] = 1000.0 + second
        progress.update(status(steps=100 * second))
    progress.stop()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0] == (
        "Training | episode 100 | steps 1,000 | steps/s 100 | updates 1,000 | time 0:10 | "
        "done 1,000 of 10,000 steps | left at most 1:30"
    )


def test_each_evaluation_is_a_line(clock, capsys):
    progress = Progress(ScreenLogger(""))
    progress.start()
    progress.add_evaluation(30.0, 5, status(10))
    progress.add_evaluation(12.5, 1, status(2000))
    assert capsys.readouterr().out.splitlines() == [
        "evaluation 30 (best 30) over 5 episodes | step 10 | time 0:00",
        "evaluation 12.5 (best 30) over 1 episode | step 2,000 | time 0:00",
    ]


def test_programs_get_no_lines_of_progress(clock, capsys):
    progress = Progress(ScreenLogger("", use_colors=False))
    progress.start()
    clock[0] += 100
    progress.update(status())
    progress.add_evaluation(1.0, 1, status())
    progress.stop()
    assert capsys.readouterr().out == "" and progress.best_evaluation == 1.0


def test_nothing_is_shown_before_the_start_and_after_the_stop(clock, capsys):
    progress = Progress(ScreenLogger(""))
    progress.add_evaluation(1.0, 1, status())
    progress.update(status())
    progress.start()
    progress.stop()
    clock[0] += 100
    progress.update(status())
    assert capsys.readouterr().out == ""
    assert progress.best_evaluation == 1.0


def test_an_evaluation_has_its_own_speed_and_episodes(clock):
    progress = Progress()
    progress.fields(status(0))
    clock[0] += 10
    assert fields(progress, 1000)["steps/s"] == "100"
    progress.begin_evaluation(status(1000, tested=500))
    shown = fields(progress, 1000, phase=RunPhase.TEST, tested=500)
    assert (shown["episode"], shown["steps"]) == ("1", "0") and "reward" not in shown
    progress.add_evaluation_episode(4.0)
    progress.add_evaluation_episode(8.0)
    clock[0] += 20
    shown = fields(progress, 1000, phase=RunPhase.TEST, tested=1500)
    assert (shown["episode"], shown["steps"], shown["steps/s"]) == ("3", "1,000", "50")
    assert shown["reward"] == "8 (mean 6)"
    progress.end_evaluation()
    clock[0] += 1
    assert fields(progress, 1100)["steps/s"] == "100"  # the evaluation's time does not count


def test_a_run_without_an_end_says_so_and_what_it_counts(clock):
    progress = Progress()
    shown = fields(progress, 7, total=10_000_000_000)
    assert "done" not in shown and shown["left"] == "no limit: Ctrl-C stops the run"
    stopping = Status(RunPhase.TRAIN, 0, 0, 0, Goal(3, 10**10, "updates", may_end_before=True))
    assert dict(progress.fields(stopping))["left"] == "until the stop condition is met"
    solved = dataclasses.replace(stopping, goal=dataclasses.replace(stopping.goal, reward=195.0))
    assert dict(progress.fields(solved))["left"] == "until evaluations reach 195"
    progress.add_evaluation(9.0, 1, solved)
    assert dict(progress.fields(solved))["left"] == "until evaluations reach 195 (now 9)"
    unlimited = Status(RunPhase.TEST, 0, 0, 0, Goal(3, None, "episodes"))
    shown = dict(progress.fields(unlimited))
    assert shown["done"] == "3 episodes" and shown["left"] == "no limit: Ctrl-C stops the run"


def test_what_is_left_of_training_is_not_told_by_heatup(clock):
    progress = Progress()
    progress.fields(status(0, phase=RunPhase.HEATUP))
    clock[0] += 1
    assert fields(progress, 5000, phase=RunPhase.HEATUP)["left"] == "at most 0:01"
    assert "left" not in fields(progress, 0)


def test_a_compilation_does_not_count_among_the_time_that_steps_take(clock):
    screen = ScreenLogger("", use_colors=False)
    progress = Progress(screen)
    progress.fields(status(0))
    with screen.waiting_for("compiling the training step"):
        clock[0] += 30
    clock[0] += 1
    shown = fields(progress, 100)
    assert (shown["steps/s"], shown["left"]) == ("100", "at most 1:39")
    with screen.waiting_for("saving a checkpoint", comes_again=True):
        clock[0] += 1
    assert fields(progress, 100)["steps/s"] == "50"


def test_a_rest_of_years_is_not_shown(clock):
    progress = Progress()
    progress.fields(status(0, total=500_000_000))
    clock[0] += 5
    assert "left" not in fields(progress, 1, total=500_000_000)


def test_fields_as_a_line():
    assert line_of([("", "Training"), ("episode", "3")]) == "Training | episode 3"


@pytest.mark.parametrize("seconds, text", [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3723, "1:02:03")])
def test_durations(seconds, text):
    assert duration(seconds) == text
