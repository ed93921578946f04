"""What native code prints: kept back, but for a failure, of which it may say more."""

from __future__ import annotations

import os

import pytest

from rl_coach.architectures.native_messages import quiet_native_code

FLOOD = b"I0000 00:00:1795356922.915514   27112 port.cc:153] oneDNN custom operations are on.\n"


@pytest.mark.parametrize(
    ("error", "shown"),
    [(None, "a line of the user's\n"), (KeyboardInterrupt, "a line of the user's\n"), (RuntimeError, "I0000")],
)
def test_the_log_of_native_code_shows_only_where_something_failed(monkeypatch, capfd, error, shown):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")

    def speak():
        with quiet_native_code():
            os.write(2, FLOOD)
            os.write(2, b"a line of the user's\n")
            if error:
                raise error

    if error:
        with pytest.raises(error):
            speak()
    else:
        speak()
    said = capfd.readouterr().err
    assert said.startswith(shown) and ("oneDNN" in said) == (error is RuntimeError)
