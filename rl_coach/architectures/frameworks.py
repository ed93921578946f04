"""Which framework a run's networks are built on."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from rl_coach.base_parameters import Frameworks
from rl_coach.utils import CoachError

_MODULES = {Frameworks.tensorflow: "rl_coach.architectures.tensorflow_components.framework"}
_KERAS_BACKENDS = {Frameworks.tensorflow: "tensorflow"}


def load_framework(framework: Frameworks) -> Any:
    """The module that builds networks on ``framework``: ``make_network``, ``make_learner`` and ``export_network``.

    :raises CoachError: the framework is not there, or Keras runs on another one already
    """
    if framework not in _MODULES:
        known = ", ".join(f"'{one.name}'" for one in _MODULES)
        raise CoachError(f"networks cannot be built on '{framework.name}' yet: use {known}")
    _choose_keras_backend(_KERAS_BACKENDS[framework])
    return importlib.import_module(_MODULES[framework])


def _choose_keras_backend(backend: str) -> None:
    if "keras" in sys.modules:
        running = sys.modules["keras"].backend.backend()
        if running != backend:
            raise CoachError(f"this process runs Keras on {running} already: start another one for {backend}")
        return
    os.environ["KERAS_BACKEND"] = backend
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow greets on every import otherwise
