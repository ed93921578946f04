"""Compiled steps are kept where the user says, and nowhere if the user says so."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import threading

import pytest

from rl_coach.architectures.compilation_cache import compilation_cache, forget_compiled_steps, keep_compiled_steps
from rl_coach.base_parameters import Frameworks
from tests.frameworks import run_on, where_installed

NAMES = (
    "COACH_COMPILATION_CACHE",
    "TF_XLA_FLAGS",
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
)


@pytest.fixture
def environment(monkeypatch, tmp_path):
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that what the code sets is undone too
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "jax", raising=False)  # which would be told, and keep what later tests compile
    monkeypatch.setattr("importlib.metadata.version", lambda name: "1.2.3")
    return monkeypatch


def test_in_the_users_cache_directory(environment, tmp_path):
    directory = compilation_cache(Frameworks.tensorflow)
    assert directory.parent == tmp_path / "rl_coach" / "compiled"
    assert directory.name.startswith("tensorflow-1.2.3-")
    assert compilation_cache(Frameworks.mxnet) is None


def test_where_the_user_says(environment, tmp_path):
    environment.setenv("COACH_COMPILATION_CACHE", str(tmp_path / "elsewhere"))
    assert compilation_cache(Frameworks.jax).parent == tmp_path / "elsewhere"


@pytest.mark.parametrize("value", ["off", "OFF", "0", ""])
def test_switched_off(environment, value):
    environment.setenv("COACH_COMPILATION_CACHE", value)
    assert compilation_cache(Frameworks.tensorflow) is None
    keep_compiled_steps(Frameworks.tensorflow)
    assert "TF_XLA_FLAGS" not in os.environ


def test_tensorflow_keeps_the_users_flags(environment):
    environment.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=0")
    keep_compiled_steps(Frameworks.tensorflow)
    flags = os.environ["TF_XLA_FLAGS"]
    directory = compilation_cache(Frameworks.tensorflow)
    assert flags == f"--tf_xla_auto_jit=0 --tf_xla_persistent_cache_directory={directory}" and directory.is_dir()
    keep_compiled_steps(Frameworks.tensorflow)
    assert os.environ["TF_XLA_FLAGS"] == flags


def test_jax_keeps_the_users_choice(environment, tmp_path):
    environment.setenv("JAX_COMPILATION_CACHE_DIR", "/chosen")
    keep_compiled_steps(Frameworks.jax)
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "/chosen"


@where_installed("jax")
def test_jax_that_was_imported_before_is_told_too(environment, tmp_path):
    script = "import jax; from rl_coach.architectures.compilation_cache import *; keep_compiled_steps(Frameworks.jax)"
    kept = str(tmp_path / "kept")
    environment.setenv("COACH_COMPILATION_CACHE", kept)
    run_on("jax", "-c", f"{script}; assert jax.config.jax_compilation_cache_dir.startswith({kept!r})")


def test_forgetting_deletes_what_was_kept_and_nothing_else(environment):
    keep_compiled_steps(Frameworks.tensorflow)
    directory = compilation_cache(Frameworks.tensorflow)
    (directory / "xla_compile_cache_1.pb").write_text("damaged")
    (directory / "notes.txt").write_text("mine")
    assert forget_compiled_steps(Frameworks.tensorflow)
    assert [file.name for file in directory.iterdir()] == ["notes.txt"]
    assert not forget_compiled_steps(Frameworks.tensorflow)


def test_no_more_is_kept_than_there_is_room_for(environment):
    environment.setattr("rl_coach.architectures.compilation_cache.MOST_BYTES", 25)
    directory = compilation_cache(Frameworks.jax)
    directory.mkdir(parents=True)
    for age in range(4):
        file = directory / f"{age} days old"
        file.write_text("ten bytes.")
        os.utime(file, (1_000_000 - 86_400 * age,) * 2)
    keep_compiled_steps(Frameworks.jax)
    assert sorted(file.name for file in directory.iterdir()) == ["0 days old", "1 days old"]


def test_other_runs_may_rename_what_they_keep_at_the_same_time(environment):
    directory = compilation_cache(Frameworks.jax)
    directory.mkdir(parents=True)
    is_over = threading.Event()

    def rename():
        while not is_over.is_set():
            (directory / "step.part").write_bytes(b"step")
            (directory / "step.part").rename(directory / "step")

    other = threading.Thread(target=rename)
    other.start()
    try:
        for _ in range(3000):
            keep_compiled_steps(Frameworks.jax)
    finally:
        is_over.set()
        other.join()


def test_a_framework_of_another_name_keeps_nothing(environment):
    def unknown(name):
        raise importlib.metadata.PackageNotFoundError(name)

    environment.setattr("importlib.metadata.version", unknown)
    assert compilation_cache(Frameworks.tensorflow) is None
