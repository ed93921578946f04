"""Processes of a run that fail: how often they are started again."""

from __future__ import annotations

import sys

import pytest

from rl_coach.orchestrators.watched_process import MOST_RESTARTS, LocalProcess


@pytest.fixture
def process(tmp_path):
    """A process that always fails, started."""
    made = LocalProcess("worker-0", [sys.executable, "-S", "-E", "-c", "raise SystemExit(1)"], tmp_path / "log", {})
    made.start()
    return made


def restarts(process, most, after_each=lambda number: None):
    """Start it again while that is of use. :return: how often"""
    for number in range(most):
        process.process.wait()
        after_each(number)
        if not process.starts_again():
            return number
    return most


def test_a_process_is_given_up_after_failures_however_much_time_is_between_them(process, capsys):
    assert restarts(process, 2 * MOST_RESTARTS) == MOST_RESTARTS
    assert f"{MOST_RESTARTS + 1} times, and no new steps were stored in between" in capsys.readouterr().out


def test_stored_steps_make_earlier_failures_forgotten(process):
    def stores(number):
        process.note_stored({"worker-0.life": 32 * (1 + min(number, MOST_RESTARTS))})

    assert restarts(process, 5 * MOST_RESTARTS, stores) == 2 * MOST_RESTARTS
