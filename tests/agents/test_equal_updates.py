"""Equal data give equal updates on PyTorch, JAX and TensorFlow, for the rule of every agent."""

from __future__ import annotations

import pytest

from tests.frameworks import run_on, starts_another_framework, where_installed


@pytest.mark.slow  # minutes
@starts_another_framework
@where_installed("torch")
@pytest.mark.parametrize("other", [pytest.param("jax", marks=where_installed("jax")), "tensorflow"])
def test_updates_are_equal_to_a_relative_1e_5(other, tmp_path):
    run_on("torch", "-m", "tests.agents.equal_updates", "record", str(tmp_path))
    run_on(other, "-m", "tests.agents.equal_updates", "compare", str(tmp_path))
