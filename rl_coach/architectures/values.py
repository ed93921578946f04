"""Values of an algorithm outside of networks and memory. A network without inputs holds them.

They are learned by the same compiled step as networks and saved with them, on every framework alike.
"""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class ValuesParameters(NetworkParameters):
    """Settings of values. An agent lists them in its ``network_wrappers``, together with its networks.

    In the update rule ``networks[name].online({})[0]`` gives them all by name, ``Update.losses[name]`` teaches the
    trained ones and ``networks[name].keep(mean=...)`` replaces the others.

    :param trained: initial values, such as ``{'log_temperature': 0.0}``; the optimizer descends this network's loss
    :param kept: initial values of the numbers that the rule replaces itself, such as running statistics
    :param settings: the optimizer's, as for any network
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
