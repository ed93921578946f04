"""Values of an algorithm that belong neither to a network nor to the memory, such as SAC's temperature.

A network without inputs stores these values. So compiled steps train them, and checkpoints contain them, on each
framework.
"""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class ValuesParameters(NetworkParameters):
    """Settings of values. An agent adds these parameters to its ``network_wrappers``, like the parameters of a network.

    In the update rule, ``networks[name].online({})[0]`` returns all values by name. ``Update.losses[name]`` is the loss
    of the trained values. ``networks[name].keep(mean=...)`` replaces the other values.

    :param trained: initial values that the optimizer trains, such as ``{'log_temperature': 0.0}``
    :param kept: initial values that the update rule replaces itself, such as running statistics
    :param settings: settings of the optimizer, the same as in ``NetworkParameters``
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
    """Values as a network without inputs. Its only head outputs the values."""

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
