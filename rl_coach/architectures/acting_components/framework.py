"""The framework of processes that only act, such as rollout workers."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from rl_coach.architectures.blueprint import NetworkBlueprint
from rl_coach.architectures.framework import Framework
from rl_coach.architectures.learner import Learner
from rl_coach.architectures.network_function import NetworkFunction, Outputs
from rl_coach.architectures.network_state import NetworkState
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError

CANNOT_LEARN = "this process only acts: networks learn in the trainer, on another framework"


class BlueprintNetwork:
    """A network made from its blueprint; its weights are zeros until they are set. See ``NetworkFunction``."""

    def __init__(self, parameters: NetworkParameters, blueprint: NetworkBlueprint):
        self.parameters = parameters
        self.exported = blueprint.exported
        self.recurrent_sizes = blueprint.recurrent_sizes
        self.input_shapes = {
            name: shape for name, shape in self.exported.input_shapes.items() if name not in self.recurrent_sizes
        }
        self.public_outputs = list(blueprint.public_outputs)
        self.head_outputs: list[tuple[str, ...]] | None = None
        self.noise_buffers = list(blueprint.noise_buffers)
        self.kept_names: tuple[str, ...] = ()
        self._shapes = blueprint.weight_shapes, blueprint.buffer_shapes
        self.is_decayed = [len(shape) > 1 for shape in blueprint.weight_shapes]

    def initial_weights(self) -> list[np.ndarray]:
        return [np.zeros(shape, np.float32) for shape in self._shapes[0]]

    def initial_buffers(self) -> list[np.ndarray]:
        return [np.zeros(shape, np.float32) for shape in self._shapes[1]]

    def with_random_state(self, buffers: list, source: list) -> list:
        return buffers

    def __call__(
        self,
        weights: Sequence,
        buffers: Sequence,
        inputs: dict[str, Any],
        training: bool,
        single_step: bool = False,
        draws_noise: bool = False,
    ) -> tuple[Outputs, dict[str, Any], list]:
        raise CoachError(CANNOT_LEARN)

    def summary(self) -> str:
        """The weights' shapes, as text."""
        return "\n".join(f"  weight_{i:<4} {'x'.join(map(str, shape))}" for i, shape in enumerate(self._shapes[0]))


class ActingNetworkState(NetworkState):
    """Weights and buffers in NumPy arrays; there is no optimizer. See ``NetworkState``."""

    def __init__(self, function: NetworkFunction, has_target: bool):
        online = {"weights": function.initial_weights(), "buffers": function.initial_buffers()}
        target = {f"target_{name}": arrays for name, arrays in online.items()} if has_target else {}
        super().__init__(function, online | target)
        self._arrays = online | target

    def arrays(self, group: str) -> list[np.ndarray]:
        return self._arrays[group]

    def update_target(self, rate: float) -> None:
        self._arrays = TrainingStep.update_targets({"": self._arrays}, {"": rate})[""]
        self.version += 1

    def _replace(self, group: str, arrays: list[np.ndarray]) -> None:
        self._arrays = {**self._arrays, group: [np.array(array) for array in arrays]}


class ActingFramework:
    """See ``Framework``."""

    def make_function(
        self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator
    ) -> NetworkFunction:
        if parameters.blueprint is None:
            raise CoachError(
                f"this process only acts and needs a blueprint of network '{name}': set the network's parameters' "
                f"blueprint to what NetworkWrapper.blueprint() gives in the trainer"
            )
        return BlueprintNetwork(parameters, parameters.blueprint)

    def hold(self, function: NetworkFunction, has_target: bool) -> ActingNetworkState:
        return ActingNetworkState(function, has_target)

    def make_learner(
        self, step: TrainingStep, networks: dict[str, ActingNetworkState], published: tuple[str, ...]
    ) -> Learner:
        raise CoachError(CANNOT_LEARN)

    def export_network(self, network: ActingNetworkState) -> ExportedNetwork:
        if not isinstance(network.function, BlueprintNetwork):
            raise CoachError("values are no network that acts: they have no ONNX graph")
        return network.function.exported


FRAMEWORK: Framework = ActingFramework()
