"""A framework that cannot be had says what to install; the tests of networks and agents pass on each that can."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys

import numpy as np
import pytest

from rl_coach.architectures.framework import load_framework
from rl_coach.base_parameters import Frameworks
from rl_coach.installation import install_command
from rl_coach.utils import CoachError
from tests.frameworks import run_on, starts_another_framework, where_installed

CONTINUOUS_RUNS = "(twice_n_steps or seed) and (NAF or SAC or gSDE)"
COMPATIBLE_MXNET = "rl_coach.architectures.mxnet_components.compatible_mxnet"


@pytest.mark.parametrize(
    ("framework", "advice"),
    [
        (Frameworks.tensorflow, install_command("tensorflow")),
        (Frameworks.jax, install_command("jax")),
        (Frameworks.mxnet, install_command("mxnet")),
        (Frameworks.torch, install_command("torch")),
    ],
)
def test_a_framework_that_is_not_installed_says_how_to_install_it(framework, advice, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == framework.name else object())
    with pytest.raises(CoachError, match=f"-f {framework.name} needs .*{re.escape(advice)}"):
        load_framework(framework)


def test_without_any_framework_the_extras_are_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CoachError, match="no framework is installed: install the extra tensorflow, jax or torch"):
        load_framework(Frameworks.tensorflow)


@pytest.mark.parametrize(
    ("framework", "message"),
    [
        (Frameworks.acting, "a process that only acts needs the package 'onnxruntime': "),
        (Frameworks.mxnet, "-f mxnet needs the extra mxnet: "),
    ],
)
def test_without_any_framework_the_advice_installs_the_package_that_was_asked_for(framework, message, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CoachError, match=message):
        load_framework(framework)


def test_mxnet_beside_a_numpy_that_is_too_new_says_so(monkeypatch):
    monkeypatch.delitem(sys.modules, COMPATIBLE_MXNET, raising=False)
    monkeypatch.setattr(np, "__version__", "2.1.0")
    with pytest.raises(
        CoachError, match=r"needs numpy<2, but numpy 2.1.0 is installed: " + re.escape(install_command("mxnet"))
    ):
        importlib.import_module(COMPATIBLE_MXNET)


@pytest.mark.slow  # `make test` runs others on JAX, `make mxnet` on MXNet, and `make torch` on PyTorch
@pytest.mark.parametrize(
    "framework", [pytest.param(name, marks=where_installed(name)) for name in ("jax", "mxnet", "torch")]
)
@pytest.mark.parametrize(
    "tests",
    [
        ["tests/architectures/test_predictions.py"],
        ["tests/agents/test_learning.py", "-k", "seed_decides", "-m", "slow"],
        ["tests/exploration_policies/test_state_dependent_noise.py"],
        ["tests/resume", "-k", CONTINUOUS_RUNS],
    ],
    ids=["predictions", "more agents", "noise of the state", "resume and seeds"],
)
def test_the_same_tests_pass(framework, tests):
    run_on(framework, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)


@pytest.mark.slow
@where_installed("jax")
@pytest.mark.parametrize("tests", ["tests/agents/test_every_agent.py", "tests/resume/test_old_checkpoints.py"])
def test_what_every_agent_does_on_jax(tests):
    run_on("jax", "-m", "pytest", "-q", "-p", "no:cacheprovider", tests)


@pytest.mark.parametrize(
    ("framework", "others"),
    [
        pytest.param("jax", {"tensorflow", "mxnet", "torch"}, marks=where_installed("jax")),
        pytest.param("mxnet", {"tensorflow", "keras", "jax", "torch"}, marks=where_installed("mxnet")),
        pytest.param("torch", {"tensorflow", "keras", "jax", "mxnet"}, marks=where_installed("torch")),
    ],
)
def test_a_framework_needs_no_other(framework, others):
    script = "import sys; from tests.architectures.test_agreement import numbers; assert numbers('dqn')"
    run_on(framework, "-c", f"{script} and not set({sorted(others)!r}) & set(sys.modules)")


@starts_another_framework
@pytest.mark.parametrize(
    ("framework", "unneeded"),
    [
        ("tensorflow", {"jax", "matplotlib", "sklearn"}),
        pytest.param("jax", {"matplotlib", "sklearn", "tensorflow"}, marks=where_installed("jax")),
    ],
)
def test_what_keras_can_do_without_is_not_imported_and_stays_importable(framework, unneeded):
    load = "import sys; from tests.architectures.test_agreement import numbers; numbers('dqn')"
    run_on(framework, "-c", f"{load}; assert not {unneeded!r} & sys.modules.keys(); import matplotlib, sklearn")


@starts_another_framework
def test_what_was_imported_before_stays():
    script = "import sys, sklearn; from tests.architectures.test_agreement import numbers; numbers('dqn')"
    run_on("tensorflow", "-c", f"{script}; assert sys.modules['sklearn'] is sklearn; import keras.wrappers")
