"""The seam between Coach and a framework: holding networks, teaching them, and exporting them to act."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

from rl_coach.architectures.learner import Learner
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.network_state import NetworkState
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition

State = TypeVar("State", bound=NetworkState)


class Framework(Protocol[State]):
    """A library that networks are built on; each has one in its ``framework`` module."""

    def make_function(
        self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator
    ) -> NetworkFunction:
        """Build a network.

        :param name: for messages
        :param rng: the source of initial weights
        :raises CoachError: a part of it does not exist or does not fit
        """
        ...

    def hold(self, function: NetworkFunction, has_target: bool) -> State:
        """A holder of the network's state, at first as it was drawn. :param has_target: a target's state too"""
        ...

    def make_learner(self, step: TrainingStep, networks: dict[str, State], published: tuple[str, ...]) -> Learner:
        """A learner of these networks.

        :param published: the networks that act between training phases, whose new weights are read after each
        """
        ...

    def export_network(self, network: State) -> ExportedNetwork:
        """The network as an ONNX graph with weights as inputs.

        :raises CoachError: it uses an operation that cannot be exported
        """
        ...
