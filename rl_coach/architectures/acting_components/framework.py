"""The framework of processes that only act, such as rollout workers."""

from __future__ import annotations

from typing import Any, NoReturn, Sequence

import numpy as np

from rl_coach.architectures.blueprint import NetworkBlueprint
from rl_coach.architectures.framework import Framework
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.network_state import NetworkState
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError


class BlueprintNetwork(NetworkFunction):
    """A network that is made from a ``NetworkBlueprint``. All weights are 0 until they are set."""

    def __init__(self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator):
        super().__init__(parameters, name)
        blueprint: NetworkBlueprint | None = parameters.blueprint
        if blueprint is None:
            raise CoachError(
                f"this process only acts and needs a blueprint of network '{name}': call NetworkWrapper.blueprint() in "
                f"the trainer, and set the result as blueprint of the network's parameters"
            )
        self.blueprint = blueprint
        self.recurrent_sizes = blueprint.recurrent_sizes
        shapes = blueprint.input_shapes
        self.input_shapes = {one: shape for one, shape in shapes.items() if one not in self.recurrent_sizes}
        self.public_outputs = blueprint.public_outputs
        self.noise_buffers = blueprint.noise_buffers
        self._weights = [np.zeros(shape, np.float32) for shape in blueprint.weight_shapes]
        self._buffers = [np.zeros(shape, np.float32) for shape in blueprint.buffer_shapes]


class ActingNetworkState(NetworkState):
    """The state of a network in NumPy arrays, without an optimizer; see ``NetworkState``."""

    def __init__(self, function: NetworkFunction, has_target: bool):
        online = {"weights": function.initial_weights(), "buffers": function.initial_buffers()}
        target = {f"target_{name}": arrays for name, arrays in online.items()} if has_target else {}
        super().__init__(function, online | target)
        self._arrays = online | target

    def arrays(self, *groups: str) -> list[np.ndarray]:
        return [array for group in groups for array in self._arrays[group]]

    def update_target(self, rate: float) -> None:
        self._arrays = TrainingStep.update_targets({"": self._arrays}, {"": rate})[""]
        self.version += 1

    def _replace(self, group: str, arrays: Sequence[np.ndarray]) -> None:
        # copies, because a target network may share its arrays with the online network
        self._arrays = {**self._arrays, group: [np.array(array) for array in arrays]}


def refuse_to_learn(*arguments: Any) -> NoReturn:
    """Refuse to make a learner, because this process only acts. :raises CoachError: always"""
    raise CoachError("this process only acts and cannot train networks: train them in the trainer")


def export(network: NetworkFunction) -> ExportedNetwork:
    """Return the ONNX graph of the network's blueprint."""
    if not isinstance(network, BlueprintNetwork):
        raise CoachError("a network of single values does not act, so it has no ONNX graph")
    return network.blueprint


FRAMEWORK = Framework(BlueprintNetwork, ActingNetworkState, refuse_to_learn, export)
