from __future__ import annotations

import copy
import gc
import os
import signal
import subprocess
import sys
import threading

import pytest

from rl_coach.utilities import stop_signals as module
from rl_coach.utilities.stop_signals import SIGNALS, StopSignals, Terminated, held_back, let_through

ENDS = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated), (signal.SIGHUP, Terminated)]


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture
def any_two_are_two_requests(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_OF_ONE_REQUEST", 0.0)


@pytest.mark.parametrize("number, error", ENDS)
def test_the_first_signal_waits_until_the_program_asks(number, error):
    signals = StopSignals()
    with pytest.raises(error), signals.listening():
        signals.stop_if_asked()
        send(number)
        assert not signals.stopped_between_steps
        signals.stop_if_asked()
    assert signals.stopped_between_steps


def test_the_exit_code_is_that_of_a_shell():
    assert (Terminated(signal.SIGTERM).code, Terminated(signal.SIGHUP).code) == (143, 129)


@pytest.mark.parametrize("number, error", ENDS[:2])
def test_the_second_signal_does_not_wait(number, error, any_two_are_two_requests):
    signals = StopSignals()
    with pytest.raises(error), signals.listening():
        send(number)
        send(number)
    assert not signals.stopped_between_steps


@pytest.mark.parametrize("number, error", ENDS)
def test_a_signal_after_the_end_of_the_time_is_the_first_one(number, error, any_two_are_two_requests):
    signals = StopSignals()
    with pytest.raises(error), signals.listening():
        with signals.ending_after(60):
            send(signal.SIGALRM)
            assert signals.asked == signal.SIGALRM
            send(number)
            assert signals.asked == number
        signals.stop_if_asked()
    assert signals.stopped_between_steps


def test_the_same_signal_twice_at_once_is_one_request():
    """As ``timeout`` sends it: to the process, and to its group."""
    signals = StopSignals()
    with signals.listening():
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert signals.asked == signal.SIGTERM


@pytest.mark.parametrize("second", [signal.SIGHUP, signal.SIGTERM])
def test_nobody_hurries_where_the_terminal_was_closed(second, any_two_are_two_requests):
    signals = StopSignals()
    with signals.listening():
        send(signal.SIGHUP)
        send(second)
        assert signals.asked == signal.SIGHUP


def test_a_signal_in_a_callback_of_the_garbage_collector_is_not_lost():
    """Python discards an exception that is raised there, and with it a KeyboardInterrupt of Python's own handler."""

    def interrupt(phase: str, info: dict) -> None:
        gc.callbacks.remove(interrupt)
        send(signal.SIGINT)

    signals = StopSignals()
    with pytest.raises(KeyboardInterrupt), signals.listening():
        gc.callbacks.append(interrupt)
        gc.collect()
        signals.stop_if_asked()


def test_what_keeps_nothing_ends_at_the_first_signal():
    signals = StopSignals()
    with pytest.raises(KeyboardInterrupt), signals.listening(), signals.ending_at_once():
        send(signal.SIGINT)


def test_afterwards_handlers_are_as_they_were_and_nobody_has_asked():
    before = [signal.getsignal(number) for number in SIGNALS]
    signals = StopSignals()
    with pytest.raises(SystemExit), signals.listening():
        send(signal.SIGTERM)
        signals.stop_if_asked()
    assert [signal.getsignal(number) for number in SIGNALS] == before
    with signals.listening():
        signals.stop_if_asked()
        assert not signals.stopped_between_steps


def test_within_another_it_forgets_nothing():
    signals = StopSignals()
    with pytest.raises(KeyboardInterrupt), signals.listening():
        with signals.listening():
            send(signal.SIGINT)
        signals.stop_if_asked()


def test_a_signal_that_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        signals = StopSignals()
        with signals.listening():
            send(signal.SIGHUP)
            assert signals.asked is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_another_thread_handlers_stay_alone():
    before, seen = signal.getsignal(signal.SIGINT), []

    def run() -> None:
        with StopSignals().listening():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_copy_hears_the_same():
    signals = StopSignals()
    assert copy.deepcopy({"of a graph": signals})["of a graph"] is signals


CHILD = """
import os, sys
print("started", flush=True)
sys.stdin.readline()
from rl_coach.utilities.stop_signals import stop_signals
try:
    with stop_signals.listening():
        stop_signals.stop_if_asked()
except KeyboardInterrupt:
    print("stopped in order")
"""


def child() -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_process_that_is_starting_hears_a_signal_when_it_listens():
    with held_back():
        process = child()
    assert process.stdout is not None and process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate("\n", timeout=60)[0] == "stopped in order\n"
    assert process.returncode == 0


def test_a_process_of_the_users_environment_can_be_ended():
    with held_back(), let_through():
        process = child()
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
