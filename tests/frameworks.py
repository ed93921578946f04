"""The framework that tests build networks on: TensorFlow, or what ``COACH_TEST_FRAMEWORK`` names."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
from typing import Any, Container, Iterable

import pytest

from rl_coach.base_parameters import Frameworks
from rl_coach.installation import install_command

FRAMEWORK = Frameworks[os.environ.get("COACH_TEST_FRAMEWORK", "tensorflow")]

starts_another_framework = pytest.mark.skipif(
    FRAMEWORK is not Frameworks.tensorflow, reason="runs with TensorFlow and starts the other framework itself"
)


def not_on_mxnet(reason: str) -> pytest.MarkDecorator:
    """Mark of tests of what MXNet does not have, or has in another form."""
    return pytest.mark.skipif(FRAMEWORK is Frameworks.mxnet, reason=f"on MXNet, {reason}")


_NOT_CURIOUS = "the networks of curiosity cannot be trained"
NOT_ON_MXNET = {
    "decision transformer": "a transformer is refused",
    "dreamer": "its state-space model is refused",
    "trpo": "there are no second derivatives",
    "curious DQN in several environments": _NOT_CURIOUS,
    "curious ClippedPPO in several environments": _NOT_CURIOUS,
}
"""Why an agent does not learn there, by its name in the zoo."""

in_layers_of_keras = pytest.mark.skipif(
    FRAMEWORK in (Frameworks.mxnet, Frameworks.torch),
    reason="a network's layers lie in another order; the rule is the same function",
)


def agents_of_zoo(names: Iterable[str], slow: Container[str] = ()) -> list[Any]:
    """Parameters of a test of many agents, which leaves out on MXNet those that do not learn there."""
    return [
        pytest.param(
            name,
            marks=[
                *([pytest.mark.slow] if name in slow else []),
                *([not_on_mxnet(NOT_ON_MXNET[name])] if name in NOT_ON_MXNET else []),
            ],
        )
        for name in names
    ]


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
