"""JAX does what TensorFlow does: the tests of the architectures pass on it, and the same updates give the same weights.

One process has one framework, so each runs in a process of its own.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("jax")

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ["test_update.py", "test_learner.py", "test_predictions.py"]


def run(framework: str, *arguments: str) -> str:
    environment = {**os.environ, "COACH_TEST_FRAMEWORK": framework, "KERAS_BACKEND": framework}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("file", TESTS)
def test_the_tests_of_the_architectures_pass(file):
    passed = run("jax", "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", str(ROOT / "tests/architectures" / file))
    assert " passed" in passed


def test_equal_updates_give_equal_weights_and_are_traced_once(tmp_path):
    for framework in ("tensorflow", "jax"):
        run(framework, "-m", "tests.architectures.updates", str(tmp_path))
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


def test_no_tensorflow_in_a_process_on_jax():
    code = (
        "import sys; from rl_coach.architectures.frameworks import load_framework;"
        "from rl_coach.base_parameters import Frameworks; load_framework(Frameworks.jax);"
        "assert 'tensorflow' not in sys.modules"
    )
    run("jax", "-c", code)
