"""The framework that tests build networks on: TensorFlow, or what ``COACH_TEST_FRAMEWORK`` names."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from rl_coach.base_parameters import Frameworks

FRAMEWORK = Frameworks[os.environ.get("COACH_TEST_FRAMEWORK", "tensorflow")]


def run_on(framework: str, *arguments: str) -> None:
    """Run Python with these arguments in a process on another framework, for one process has one.

    :raises AssertionError: it failed; the message has what it printed
    """
    root = pathlib.Path(__file__).resolve().parents[1]
    environment = {**os.environ, "COACH_TEST_FRAMEWORK": framework, "KERAS_BACKEND": framework, "PYTHONPATH": str(root)}
    result = subprocess.run([sys.executable, *arguments], env=environment, cwd=root, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-1000:]
