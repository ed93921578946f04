"""Checkpoints of an earlier version are restored in the middle of an episode, and go on as they did then."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from benchmarks.digests import this_machine
from tests.resume import old_checkpoints
from tests.resume.old_checkpoints import EXPECTED, RUNS

pytestmark = [
    pytest.mark.resume,
    pytest.mark.skipif(
        old_checkpoints.FRAMEWORK.name not in ("tensorflow", "jax"), reason="there are none of this framework"
    ),
]


@pytest.mark.parametrize("name", RUNS)
def test_a_checkpoint_of_an_earlier_version_goes_on_as_it_did_then(name, tmp_path):
    old_checkpoints.unpack(name, tmp_path)
    graph = old_checkpoints.restored(name, tmp_path)
    assert not graph.reset_required, "the episode in progress is lost"
    graph.run()
    runs = json.loads(EXPECTED.read_text("utf-8"))["runs"]
    expected, found = runs[f"{old_checkpoints.FRAMEWORK.name}_{name}"], old_checkpoints.outcome(tmp_path)
    # The last bits depend on the processor, the libraries, and XLA's optimizations, which conftest.py switches off:
    # ``XLA_FLAGS= pytest tests/resume/test_old_checkpoints.py`` compares them.
    if expected.pop("machine") == this_machine() and not os.environ.get("XLA_FLAGS"):
        assert found == expected
    else:
        assert (found["counters"], found["rows"]) == (expected["counters"], expected["rows"])
        np.testing.assert_allclose(found["sums"], expected["sums"], rtol=0.01, atol=0.01)
