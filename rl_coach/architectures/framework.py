"""The interface between Coach and a framework: it stores, trains and exports networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from rl_coach.architectures.learner import Learner
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


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
