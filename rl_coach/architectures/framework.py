"""The seam between Coach and a framework: holding networks, teaching them, and exporting them to act."""

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
    """A library that networks are built on; each has one in its ``framework`` module.

    :param make_function: builds a network from its parameters, the agent's spaces, its name for messages, and the
        source of initial weights. Raises CoachError if a part of it does not exist or does not fit.
    :param hold: makes a ``NetworkState`` from a network and a flag, True if it has a target. Its first values are the
        initial weights.
    :param make_learner: makes a learner from a training step, the networks' states, and the names of the networks that
        act between training phases. The new weights of these networks are read after each phase.
    :param export_network: gives a network as an ONNX graph with weights as inputs. Raises CoachError if it uses an
        operation that cannot be exported.
    :param compiled_loop: the class of loops that are compiled as a whole, None if the framework has none
    :param compiled_seeds: the class of compiled loops for several seeds in one program
    :param compiled_evaluation: the class that plays evaluations during compiled loops
    """

    make_function: Callable[[NetworkParameters, SpacesDefinition, str, np.random.Generator], NetworkFunction]
    hold: Callable[[NetworkFunction, bool], Any]
    make_learner: Callable[[TrainingStep, dict[str, Any], tuple[str, ...]], Learner]
    export_network: Callable[[NetworkFunction], ExportedNetwork]
    compiled_loop: Any = None
    compiled_seeds: Any = None
    compiled_evaluation: Any = None
