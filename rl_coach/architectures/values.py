"""Values of an algorithm that are not part of a network or the memory, such as SAC's temperature. A network without
inputs holds them, so the compiled step trains them and checkpoints store them on each framework.
"""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class ValuesParameters(NetworkParameters):
    """Settings of values. An agent lists them in its ``network_wrappers``, together with its networks.

    In the update rule, ``networks[name].online({})[0]`` returns all values by name, ``Update.losses[name]`` trains the
    trained values, and ``networks[name].keep(mean=...)`` replaces the others.

    :param trained: initial values, such as ``{'log_temperature': 0.0}``; the optimizer trains them on this network's
        loss
    :param kept: initial values of the numbers that the rule replaces itself, such as running statistics
    :param settings: settings of the optimizer, as for each network
    """

    def __init__(
        self, trained: Mapping[str, Any] | None = None, kept: Mapping[str, Any] | None = None, **settings: Any
    ):
        super().__init__(**settings)
        self.trained = dict(trained or {})
        self.kept = dict(kept or {})

    def make_function(
        self, framework: Any, spaces: SpacesDefinition, name: str, rng: np.random.Generator
    ) -> NetworkFunction:
        return ValuesFunction(self, name)


class ValuesFunction(NetworkFunction):
    """Values as a network: no inputs, and one head with the values as outputs."""

    parameters: ValuesParameters

    def __init__(self, parameters: ValuesParameters, name: str):
        super().__init__(parameters, name)
        self.head_outputs = [(*parameters.trained, *parameters.kept)]
        self.kept_names = tuple(parameters.kept)
        self._weights = [np.array(value, np.float32) for value in parameters.trained.values()]
        self._buffers = [np.array(value, np.float32) for value in parameters.kept.values()]

    def __call__(
        self, weights: Any, buffers: Any, inputs: dict[str, Any], training: bool, single_step: bool = False,
        draws_noise: bool = False,
    ) -> tuple[list[dict[str, Any]], dict[str, Any], list]:  # fmt: skip
        values = dict(zip(self.parameters.trained, weights)) | dict(zip(self.kept_names, buffers))
        return [values], {}, list(buffers)

    def summary(self) -> str:
        values = {**self.parameters.trained, **self.parameters.kept}
        return "\n".join([f"values '{self.name}'", *(f"  {name} = {value}" for name, value in values.items())])
