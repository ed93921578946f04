"""Runs a program until it ends or the run is stopped."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
from typing import Mapping, Sequence

from rl_coach.utilities.stop_signals import stop_signals

_SECONDS_BETWEEN_LOOKS = 0.1


def exit_code(command: Sequence[str], environment: Mapping[str, str], output: pathlib.Path) -> int | None:
    """Run a program to its end, or until the run is asked to stop.

    :param output: the file for the program's output
    :return: the exit code; None if the program and its child processes were stopped
    """
    with open(output, "wb") as file:
        child = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    try:
        while child.poll() is None and stop_signals.asked is None:
            try:
                child.wait(_SECONDS_BETWEEN_LOOKS)
            except subprocess.TimeoutExpired:
                continue
    finally:
        if is_left := child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return None if is_left or stop_signals.asked is not None else child.returncode
