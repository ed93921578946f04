"""A compiled step computes what the same step computes uncompiled, and later processes find it."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

from rl_coach.logger import screen
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK, run_on

if FRAMEWORK.name != "torch":
    pytest.skip("about PyTorch: make torch", allow_module_level=True)

import torch

from rl_coach.architectures.torch_components import compilation


@pytest.fixture
def kept(monkeypatch, tmp_path):
    monkeypatch.setenv("COACH_COMPILATION_CACHE", str(tmp_path))
    monkeypatch.setenv("COACH_TORCH_COMPILE", "on")
    return tmp_path


@pytest.fixture
def lines(monkeypatch):
    found: list[str] = []
    monkeypatch.setattr(screen, "warning", found.append)
    return found


def doubled(given: Any) -> list:
    given[0].copy_(given[0] * 2.0)
    return [given[0].sum()]


def example() -> list:
    return [torch.arange(3.0)]


SUMS_WITH_MORE_THREADS = """
import os, torch
from rl_coach.architectures.torch_components import compilation
torch.set_num_threads(max(2, os.cpu_count()))
numbers = [torch.ones(100_000)]
step = compilation.compiled(lambda given: [given[0].sum()], numbers)
torch.set_num_threads(64)
assert [step(numbers)[0].item() for _ in range(100)] == [100_000.0] * 100
"""

COMPARE = """
import numpy as np, pathlib
from tests.architectures.updates import updated
for problem in ("sac", "dropout"):
    found = updated(problem)
    file = pathlib.Path({path!r}) / (problem + ".npz")
    if file.exists():
        with np.load(file) as expected:
            for name in expected.files:
                np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)
    else:
        np.savez(file, **found)
"""


@pytest.mark.slow
def test_a_compiled_update_is_the_uncompiled_one_and_is_found_by_the_next_process(tmp_path, kept, monkeypatch):
    monkeypatch.setenv("COACH_TORCH_COMPILE", "off")
    script = COMPARE.format(path=str(tmp_path))
    run_on("torch", "-c", script)
    monkeypatch.setenv("COACH_TORCH_COMPILE", "on")
    run_on("torch", "-c", script)
    packages = {file: file.stat().st_mtime_ns for file in tmp_path.glob("torch-*/*.pt2")}
    assert len(packages) == 2
    monkeypatch.setenv("CXX", "no-such-compiler")  # nothing is compiled again
    run_on("torch", "-c", script)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.glob("torch-*/*.pt2")} == packages


@pytest.mark.slow
def test_a_sum_may_have_more_threads_than_there_are_processors(kept):
    run_on("torch", "-c", SUMS_WITH_MORE_THREADS)


def test_a_compiled_step_writes_to_its_arguments_and_a_damaged_one_is_replaced(kept):
    step, given = compilation.compiled(doubled, example()), example()
    assert [float(total) for total in step(given)] == [6.0]
    np.testing.assert_array_equal(given[0].numpy(), [0.0, 2.0, 4.0])
    (package,) = kept.glob("torch-*/*.pt2")
    whole = package.stat().st_size
    package.write_bytes(package.read_bytes()[:1000])
    assert [float(total) for total in compilation.compiled(doubled, example())(example())] == [6.0]
    assert package.stat().st_size == whole


@pytest.mark.parametrize(("compiler", "advice"), [("no-such-compiler", ""), ("g++", " (on Debian: apt install g++)")])
def test_without_a_compiler_one_line_says_so_and_the_step_runs(compiler, advice, kept, lines, monkeypatch):
    monkeypatch.setenv("CXX", compiler)
    monkeypatch.setenv("PATH", "/nowhere")
    for _ in range(2):
        assert compilation.compiled(doubled, example()) is doubled
    assert len(lines) == 1 and lines[0].endswith(f"'{compiler}' is missing: install it{advice}")


def test_a_failing_compiler_says_how_to_train_without(kept, monkeypatch):
    monkeypatch.setenv("CXX", "/bin/false")
    with pytest.raises(CoachError, match=r"could not compile the training step: .*COACH_TORCH_COMPILE=off"):
        compilation.compiled(doubled, example())


def test_what_cannot_be_kept_leaves_nothing_and_is_no_error(tmp_path, monkeypatch):
    made = tmp_path / "made"
    made.write_bytes(b"a package")
    compilation._keep(made, made / "torch" / "step.pt2")

    def full(source: Any, destination: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compilation.files.os, "replace", full)
    compilation._keep(made, tmp_path / "torch" / "step.pt2")
    assert not list(tmp_path.glob("torch/*"))


def test_a_request_to_stop_ends_the_compiler_and_the_step_runs(kept, monkeypatch):
    monkeypatch.setattr(stop_signals, "asked", signal.SIGINT)
    assert compilation.compiled(doubled, example()) is doubled
    assert not list(kept.glob("torch-*/*"))
