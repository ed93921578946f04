"""The framework that tests build networks on: TensorFlow, or what ``COACH_TEST_FRAMEWORK`` names."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from rl_coach.base_parameters import Frameworks
from rl_coach.installation import install_command

FRAMEWORK = Frameworks[os.environ.get("COACH_TEST_FRAMEWORK", "tensorflow")]

starts_another_framework = pytest.mark.skipif(
    FRAMEWORK is not Frameworks.tensorflow, reason="runs with TensorFlow and starts the other framework itself"
)


def where_installed(framework: str) -> pytest.MarkDecorator:
    """Mark of tests that run only where the framework is installed."""
    reason = f"{framework} is not installed: {install_command(framework)}"
    return pytest.mark.skipif(importlib.util.find_spec(framework) is None, reason=reason)


def run_on(framework: str, *arguments: str) -> None:
    """Run Python with these arguments in a process on another framework, for one process has one.

    :raises AssertionError: it failed; the message has what it printed
    """
    root = pathlib.Path(__file__).resolve().parents[1]
    environment = {**os.environ, "COACH_TEST_FRAMEWORK": framework, "KERAS_BACKEND": framework, "PYTHONPATH": str(root)}
    result = subprocess.run([sys.executable, *arguments], env=environment, cwd=root, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-1000:]
