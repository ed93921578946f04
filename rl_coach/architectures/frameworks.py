"""Frameworks that a run's networks can be built on."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import tempfile
from dataclasses import dataclass
from typing import Iterator

from rl_coach.architectures.compilation_cache import keep_compiled_steps
from rl_coach.architectures.framework import Framework
from rl_coach.base_parameters import Frameworks
from rl_coach.utils import CoachError

_SILENT = "3"
_STDERR = 2


@dataclass(frozen=True)
class _Framework:
    """A framework before it is imported.

    :param module: holds its ``FRAMEWORK``
    :param package: must be installed
    :param install: the command that installs it
    :param uses_keras: its networks are Keras networks
    """

    module: str
    package: str
    install: str
    uses_keras: bool = True


_FRAMEWORKS = {
    Frameworks.tensorflow: _Framework(
        "rl_coach.architectures.tensorflow_components.framework", "tensorflow", "pip install tensorflow"
    ),
    Frameworks.jax: _Framework("rl_coach.architectures.jax_components.framework", "jax", "pip install 'rl_coach[jax]'"),
    Frameworks.mxnet: _Framework(
        "rl_coach.architectures.mxnet_components.framework",
        "mxnet",
        "pip install 'rl_coach[mxnet]' (numpy<2, Python up to 3.12)",
        uses_keras=False,
    ),
    Frameworks.acting: _Framework(
        "rl_coach.architectures.acting_components.framework", "onnxruntime", "pip install onnxruntime", uses_keras=False
    ),
}


def load_framework(framework: Frameworks) -> Framework:
    """The framework of that name.

    :raises CoachError: the framework is not installed, or Keras runs on another one already
    """
    if framework not in _FRAMEWORKS:
        known = ", ".join(f"'{one.name}'" for one in _FRAMEWORKS)
        raise CoachError(f"networks cannot be built on '{framework.name}' yet: use {known}")
    chosen = _FRAMEWORKS[framework]
    if importlib.util.find_spec(chosen.package) is None:
        raise CoachError(f"-f {framework.name} needs {chosen.package}, which is not installed: {chosen.install}")
    if chosen.uses_keras:
        _choose_keras_backend(framework.name)
    keep_compiled_steps(framework)
    with _quiet_native_code():
        return importlib.import_module(chosen.module).FRAMEWORK


def _choose_keras_backend(backend: str) -> None:
    if "keras" in sys.modules:
        running = sys.modules["keras"].backend.backend()
        if running != backend:
            raise CoachError(f"this process runs Keras on {running} already: start another one for {backend}")
        return
    os.environ["KERAS_BACKEND"] = backend
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", _SILENT)


@contextlib.contextmanager
def _quiet_native_code() -> Iterator[None]:
    """Keep what native code prints while it is loaded off the terminal, unless loading fails.

    TensorFlow greets on every import, before it reads ``TF_CPP_MIN_LOG_LEVEL``, so the file descriptor is turned away.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") != _SILENT:
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(_STDERR)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), _STDERR)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(terminal, kept.read())
            raise
        finally:
            os.dup2(terminal, _STDERR)
            os.close(terminal)
