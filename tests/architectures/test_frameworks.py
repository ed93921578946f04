"""Which framework a run gets, and what is said where it cannot have one."""

from __future__ import annotations

import importlib.util

import pytest

from rl_coach.architectures.frameworks import load_framework
from rl_coach.base_parameters import Frameworks
from rl_coach.utils import CoachError


def test_a_framework_that_is_not_installed_names_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CoachError, match=r"-f jax needs jax, which is not installed: pip install 'rl_coach\[jax\]'"):
        load_framework(Frameworks.jax)
    with pytest.raises(CoachError, match="pip install tensorflow"):
        load_framework(Frameworks.tensorflow)


def test_a_framework_that_networks_cannot_be_built_on_names_the_others():
    with pytest.raises(CoachError, match="'mxnet' yet: use 'tensorflow', 'jax'"):
        load_framework(Frameworks.mxnet)
