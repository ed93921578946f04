"""A virtual display, with ``xdotool`` to press keys on it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from typing import Iterator

import pytest


@contextlib.contextmanager
def virtual_display() -> Iterator[str]:
    """Start a virtual display, and return its name. Skip the test if the programs are missing."""
    missing = [program for program in ("Xvfb", "xdotool") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed: apt-get install xvfb xdotool")
    readable, writable = os.pipe()
    command = ["Xvfb", "-displayfd", str(writable), "-screen", "0", "1024x768x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[writable], stderr=subprocess.DEVNULL)
    os.close(writable)
    with os.fdopen(readable) as answer:
        yield f":{int(answer.readline())}"
    server.terminate()
    server.wait()


def press(screen: str, *command: str) -> None:
    """Have ``xdotool`` press a key as a keyboard does, after Coach's window has opened."""
    for words in (["search", "--sync", "--onlyvisible", "--class", "coach"], command):
        environment = {**os.environ, "DISPLAY": screen}
        subprocess.run(["xdotool", *words], env=environment, check=True, stdout=subprocess.DEVNULL, timeout=60)
