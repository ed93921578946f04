from __future__ import annotations

import os
import signal
import threading

import pytest

from rl_coach.graph_managers.stop_signals import StopSignals

HANDLED = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize("number, error", [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_the_first_signal_waits_for_the_end_of_a_step(number, error, capsys):
    signals = StopSignals()
    with pytest.raises(error), signals.listening():
        signals.stop_if_asked()
        os.kill(os.getpid(), number)
        assert not signals.stopped_between_steps
        signals.stop_if_asked()
    assert signals.stopped_between_steps
    assert "once more to exit at once" in capsys.readouterr().out


def test_the_second_signal_does_not_wait():
    signals = StopSignals()
    with pytest.raises(KeyboardInterrupt), signals.listening():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
    assert not signals.stopped_between_steps


def test_afterwards_handlers_are_as_they_were_and_nobody_has_asked():
    before = [signal.getsignal(number) for number in HANDLED]
    signals = StopSignals()
    with pytest.raises(SystemExit), signals.listening():
        os.kill(os.getpid(), signal.SIGTERM)
        signals.stop_if_asked()
    assert [signal.getsignal(number) for number in HANDLED] == before
    with signals.listening():
        signals.stop_if_asked()
        assert not signals.stopped_between_steps


def test_a_person_who_plays_is_not_told(capsys):
    signals = StopSignals()
    with signals.listening(announces=False):
        os.kill(os.getpid(), signal.SIGINT)
    assert capsys.readouterr().out == ""


def test_in_another_thread_handlers_stay_alone():
    before, seen = signal.getsignal(signal.SIGINT), []

    def run() -> None:
        with StopSignals().listening():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]
