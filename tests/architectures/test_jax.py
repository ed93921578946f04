"""JAX does what TensorFlow does: the same updates give the same weights.

One process has one framework, so each runs in a process of its own.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.frameworks import run_on

pytest.importorskip("jax")


@pytest.mark.slow  # what differs here differs in test_agreement too; this one says where
def test_equal_updates_give_equal_weights_and_are_traced_once(tmp_path):
    for framework in ("tensorflow", "jax"):
        run_on(framework, "-m", "tests.architectures.updates", str(tmp_path))
    files = sorted(tmp_path.glob("jax_*.npz"))
    assert len(files) == 5
    for file in files:
        with np.load(file) as ours, np.load(tmp_path / file.name.replace("jax_", "tensorflow_")) as theirs:
            assert_equal_weights(dict(ours), dict(theirs), file.stem)


def assert_equal_weights(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], network: str) -> None:
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        np.testing.assert_allclose(ours[name], array, rtol=1e-4, atol=1e-5, err_msg=f"{network}: {name}")
    before, after = (np.concatenate([ours[n].ravel() for n in ours if n.startswith(p)]) for p in ("before", "after"))
    assert np.abs(after - before).max() > 1e-3


def test_convolutions_in_loops_are_matrix_products_with_the_same_results():
    run_on("jax", "-m", "tests.architectures.convolutions")
