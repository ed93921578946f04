"""Every agent, on TensorFlow and on JAX: a seed repeats a run to the last bit, and a run that is resumed ends as one in
one go."""

from __future__ import annotations

import pytest

from tests.frameworks import run_on, where_installed
from tests.zoo.runs import AGENTS, created, resumed
from tests.zoo.states import differences, final_state, rows

pytestmark = [pytest.mark.resume, pytest.mark.slow]


@pytest.mark.parametrize("name", AGENTS)
def test_runs_repeat_and_resume_to_the_bit(name, tmp_path):
    whole = created(name, 200, tmp_path / "whole")
    whole.run()
    assert "at random" in name or whole.get_agent().training_iteration > 0
    created(name, 200, tmp_path / "again").run()
    created(name, 100, tmp_path / "parts").run()
    resumed(name, 200, tmp_path / "parts", seed=None).run()
    for other in ("again", "parts"):
        assert differences(final_state(tmp_path / "whole"), final_state(tmp_path / other)) == []
        assert rows(tmp_path / "whole") == rows(tmp_path / other)


@where_installed("jax")
def test_they_do_on_jax_too():
    run_on("jax", "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", "to_the_bit", __file__)
