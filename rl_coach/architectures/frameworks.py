"""Which framework a run's networks are built on."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import tempfile
from dataclasses import dataclass
from typing import Any, Iterator

from rl_coach.architectures.compilation_cache import keep_compiled_steps
from rl_coach.base_parameters import Frameworks
from rl_coach.installation import install_command
from rl_coach.utils import CoachError

_SILENT = "3"
_STDERR = 2


@dataclass(frozen=True)
class _Framework:
    """What builds networks on a framework.

    :param module: where its functions are
    :param package: what must be installed
    :param install: how
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
    Frameworks.jax: _Framework("rl_coach.architectures.jax_components.framework", "jax", install_command("jax")),
    Frameworks.mxnet: _Framework(
        "rl_coach.architectures.mxnet_components.framework",
        "mxnet",
        f"{install_command('mxnet')} (Python up to 3.12)",
        uses_keras=False,
    ),
}


def load_framework(framework: Frameworks) -> Any:
    """The module that builds networks on ``framework``: ``make_network``, ``make_learner`` and ``export_network``.

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
        return importlib.import_module(chosen.module)


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
