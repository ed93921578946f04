"""A framework that cannot be had says what to install; the tests of networks and agents pass on MXNet too."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from rl_coach.architectures.frameworks import load_framework
from rl_coach.base_parameters import Frameworks
from rl_coach.utils import CoachError

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPATIBLE_MXNET = "rl_coach.architectures.mxnet_components.compatible_mxnet"

on_mxnet = pytest.mark.skipif(
    importlib.util.find_spec("mxnet") is None, reason="the extra rl_coach[mxnet] is not installed"
)


@pytest.mark.parametrize(
    ("framework", "advice"),
    [
        (Frameworks.tensorflow, "pip install tensorflow"),
        (Frameworks.jax, r"pip install 'rl_coach\[jax\]'"),
        (Frameworks.mxnet, r"pip install 'rl_coach\[mxnet\]'"),
    ],
)
def test_a_framework_that_is_not_installed_says_how_to_install_it(framework, advice, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CoachError, match=f"-f {framework.name} needs .*{advice}"):
        load_framework(framework)


def test_mxnet_beside_a_numpy_that_is_too_new_says_so(monkeypatch):
    monkeypatch.delitem(sys.modules, COMPATIBLE_MXNET, raising=False)
    monkeypatch.setattr(np, "__version__", "2.1.0")
    with pytest.raises(CoachError, match=r"needs numpy<2, and this is numpy 2.1.0: pip install 'rl_coach\[mxnet\]'"):
        importlib.import_module(COMPATIBLE_MXNET)


@on_mxnet
@pytest.mark.parametrize(
    "tests",
    [
        ["tests/architectures/test_predictions.py"],
        ["tests/architectures/test_learner.py", "tests/architectures/test_agreement.py"],
        ["tests/agents/test_learning.py", "-k", "seed_decides or between_episodes"],
        ["tests/agents/test_going_on.py", "tests/agents/test_masks_and_ends.py"],
    ],
    ids=["predictions", "updates", "agents", "states"],
)
def test_the_same_tests_on_mxnet(tests):
    environment = {**os.environ, "COACH_TEST_FRAMEWORK": "mxnet"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-1000:]


@on_mxnet
def test_mxnet_needs_neither_tensorflow_nor_keras():
    script = """
import sys
from tests.architectures.test_agreement import numbers
assert numbers("dqn") and not {"tensorflow", "keras", "jax"} & set(sys.modules)
"""
    environment = {**os.environ, "COACH_TEST_FRAMEWORK": "mxnet"}
    result = subprocess.run([sys.executable, "-c", script], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
