"""Frameworks on which networks can be built: their interface to Coach, and functions that load them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy as np

from rl_coach.architectures.allocator import keep_freed_memory
from rl_coach.architectures.compilation_cache import keep_compiled_steps
from rl_coach.architectures.learner import Learner
from rl_coach.architectures.native_messages import quiet_native_code, silence_tensorflow
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import Frameworks, NetworkParameters
from rl_coach.installation import default_framework, install_command, is_installed, pip_install
from rl_coach.spaces import SpacesDefinition
from rl_coach.utilities.dynamic_import import hidden_modules
from rl_coach.utils import CoachError


@dataclass(frozen=True)
class Framework:
    """A library such as JAX or PyTorch that networks are built on. For each library, ``<name>_components/framework.py``
    defines one object of this class.

    :param make_function: builds a network from its parameters, the agent's spaces, the network's name for messages, and
        the source of initial weights. Raises CoachError if a part of the network does not exist or does not fit.
    :param hold: makes a ``NetworkState`` with the initial weights. Its arguments are a network, and True if the network
        has a target.
    :param make_learner: makes a learner from a training step, the networks' states, and the names of the networks that
        act between training phases. The new weights of these networks are read after each phase.
    :param export_network: returns a network as an ONNX graph with weights as inputs. Raises CoachError if the network
        uses an operation that cannot be exported.
    :param compiled_loop: the class of compiled loops; None if the framework does not support them
    :param compiled_seeds: the class of compiled loops for several seeds in one program
    :param compiled_evaluation: the class that plays evaluations during compiled loops
    :param divided: returns a ``Framework`` that divides each batch between the given number of devices. Raises
        CoachError if there are fewer devices. None if the framework does not support this
    """

    make_function: Callable[[NetworkParameters, SpacesDefinition, str, np.random.Generator], NetworkFunction]
    hold: Callable[[NetworkFunction, bool], Any]
    make_learner: Callable[[TrainingStep, dict[str, Any], tuple[str, ...]], Learner]
    export_network: Callable[[NetworkFunction], ExportedNetwork]
    compiled_loop: Any = None
    compiled_seeds: Any = None
    compiled_evaluation: Any = None
    divided: Callable[[int], Framework] | None = None


@dataclass(frozen=True)
class _Framework:
    """Facts about a framework, without importing it.

    :param package: the Python package of the framework
    :param install: the command that installs the framework
    :param uses_keras: True if its networks are Keras networks
    :param divides_batches: True if several devices can share a batch; see ``Framework.divided``
    :param unneeded: optional modules that the framework imports although Coach does not use them. Coach hides them from
        the import. TensorFlow then imports in 2.6 s of processor time instead of 4.4 s and takes 190 MB less; JAX
        imports in 1.2 s instead of 2.4 s. Keras functions that need a hidden module report that it is missing. A
        program that needs such functions must import Keras before its first network.
    """

    package: str
    install: str
    uses_keras: bool = True
    divides_batches: bool = False
    unneeded: Sequence[str] = ()


# Keras uses them for its scikit-learn wrappers and for plots of images
_UNNEEDED_BY_KERAS = ("sklearn", "matplotlib", "matplotlib.pyplot")


_FRAMEWORKS = {
    # TensorFlow imports JAX only for the converter of TensorFlow Lite
    Frameworks.tensorflow: _Framework(
        "tensorflow", install_command("tensorflow"), unneeded=(*_UNNEEDED_BY_KERAS, "jax")
    ),
    Frameworks.jax: _Framework("jax", install_command("jax"), divides_batches=True, unneeded=_UNNEEDED_BY_KERAS),
    Frameworks.mxnet: _Framework("mxnet", f"{install_command('mxnet')} (Python up to 3.12)", uses_keras=False),
    Frameworks.torch: _Framework("torch", install_command("torch"), uses_keras=False),
    Frameworks.acting: _Framework("onnxruntime", pip_install("onnxruntime"), uses_keras=False),
}


def load_framework(framework: Frameworks, num_devices: int | None = None) -> Framework:
    """Import a framework and return it.

    :param num_devices: number of devices that share each batch, from ``TaskParameters.num_devices``
    :raises CoachError: if the framework is not installed, Keras already runs on another framework, or there are fewer
        devices
    """
    if framework not in _FRAMEWORKS:
        known = ", ".join(f"'{one.name}'" for one in _FRAMEWORKS)
        raise CoachError(f"Coach does not support networks on '{framework.name}': use {known}")
    chosen = _FRAMEWORKS[framework]
    if importlib.util.find_spec(chosen.package) is None:
        if framework is Frameworks.acting:
            raise CoachError(f"a process that only acts needs the package '{chosen.package}': {chosen.install}")
        if framework is not Frameworks.mxnet and not is_installed(default_framework()):
            raise CoachError(
                "no framework is installed: install the extra tensorflow, jax or torch, for example with "
                f"{chosen.install}"
            )
        raise CoachError(f"-f {framework.name} needs the extra {framework.name}: {chosen.install}")
    if num_devices not in (None, 1) and not chosen.divides_batches:
        able = " or ".join(one.name for one, its in _FRAMEWORKS.items() if its.divides_batches)
        raise CoachError(f"{framework.name} learns on one device: leave out num_devices, or use the framework {able}")
    if chosen.uses_keras:
        _choose_keras_backend(framework.name)
    keep_compiled_steps(framework)
    if framework is Frameworks.jax:
        keep_freed_memory()
    with quiet_native_code(), hidden_modules(*chosen.unneeded):
        found = importlib.import_module(f"rl_coach.architectures.{framework.name}_components.framework").FRAMEWORK
        return found if num_devices is None or not chosen.divides_batches else found.divided(num_devices)


def _choose_keras_backend(backend: str) -> None:
    if "keras" in sys.modules:
        running = sys.modules["keras"].backend.backend()
        if running != backend:
            raise CoachError(f"this process already runs Keras on {running}: start another process to use {backend}")
        return
    # Keras reads the variable once, when it is imported
    os.environ["KERAS_BACKEND"] = backend
    silence_tensorflow()
