"""Tests of single parts: a layer, an embedder, a middleware, a head, a filter, a memory or an update rule."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.frameworks import load_framework
from rl_coach.architectures.head_parameters import HeadParameters
from rl_coach.architectures.heads import Head
from rl_coach.architectures.layers import Layer, Layers
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters, MiddlewareParameters
from rl_coach.architectures.update import TrainingStep, UpdateRule
from rl_coach.base_parameters import Frameworks, NetworkParameters
from rl_coach.memories.memory import MemoryParameters
from rl_coach.spaces import (
    ActionSpace,
    DiscreteActionSpace,
    ObservationSpace,
    RewardSpace,
    SpacesDefinition,
    StateSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError, did_you_mean, dynamic_import_and_instantiate_module_from_params


class ComponentTest:
    """A part, built on a framework, that is called and whose results are compared with expected numbers.

    ``ComponentTest(Dense(1), 2).set_weights([[[1], [2]], [3]]).test(("outputs", [[10, 20]]), [[53]])``

    Layers and parameters of embedders, middlewares, heads and whole networks have the methods of ``BuiltNetwork``, an
    update rule those of ``BuiltRule``; filters and memories have their own.

    :param component: the part, or its parameters; a rule is ``(ops, networks, batch) -> Update``
    :param observation_space: of the input: a size, or a space; for a head its features
    :param action_space: of a head or a rule; None for two choices
    :param networks: of an update rule, by name
    :param framework: ``tensorflow``, ``jax``, ``mxnet`` or ``torch``
    :param seed: of the initial weights
    :raises CoachError: the framework is not installed, or the part does not fit
    """

    def __init__(
        self,
        component: Any,
        observation_space: int | ObservationSpace = 1,
        action_space: ActionSpace | None = None,
        networks: Mapping[str, NetworkParameters] | None = None,
        framework: str = "tensorflow",
        seed: int = 0,
    ):
        if isinstance(observation_space, int):
            observation_space = VectorObservationSpace(observation_space)
        spaces = SpacesDefinition(
            StateSpace({"observation": observation_space}), None, action_space or DiscreteActionSpace(2), RewardSpace(1)
        )
        if networks is not None:
            self.component: Any = BuiltRule(component, networks, spaces, framework, seed)
        elif isinstance(component, MemoryParameters):
            self.component = dynamic_import_and_instantiate_module_from_params(component)
        elif isinstance(component, _PARTS_OF_NETWORKS):
            self.component = BuiltNetwork(component, spaces, framework, seed)
        else:
            self.component = component

    def set_weights(self, weights: Any) -> ComponentTest:
        """Replace the weights. :return: this test"""
        self.component.set_weights(weights)
        return self

    def test(self, call: str | Sequence[Any], expected: Any = None, tolerance: float = 1e-5) -> Any:
        """Call a method, and compare what it returns.

        :param call: the method's name, or its name and arguments
        :param expected: numbers, or lists and dictionaries of them, of which further entries are left alone; None
            compares nothing
        :param tolerance: the largest difference of a number
        :return: what the method returns
        :raises AssertionError: it returns something else
        :raises CoachError: there is no such method
        """
        name, *arguments = (call,) if isinstance(call, str) else tuple(call)
        if not callable(getattr(self.component, name, None)):
            known = [one for one in dir(self.component) if not one.startswith("_")]
            raise CoachError(f"{type(self.component).__name__} has no '{name}'{did_you_mean(name, known)}")
        found = getattr(self.component, name)(*arguments)
        if expected is not None:
            _compare(found, expected, tolerance, name)
        return found


def _compare(found: Any, expected: Any, tolerance: float, where: str) -> None:
    if isinstance(expected, Mapping):
        for name, value in expected.items():
            assert name in found, f"{where} has no '{name}'"
            _compare(found[name], value, tolerance, f"{where}['{name}']")
    elif isinstance(found, (list, tuple)):
        assert len(found) == len(expected), f"{where} has {len(found)} items, not {len(expected)}"
        for number, (one, value) in enumerate(zip(found, expected)):
            _compare(one, value, tolerance, f"{where}[{number}]")
    else:
        assert np.shape(found) == np.shape(expected), (
            f"{where} has the shape {np.shape(found)}, not {np.shape(expected)}"
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance, err_msg=where)


class _Features(Head):
    """The features themselves, for parts of a network that come before its heads."""

    public = ("features",)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"features": features}


class _FeaturesParameters(HeadParameters):
    def __init__(self) -> None:
        super().__init__("Features")

    @property
    def path(self) -> Any:
        return _Features


_PARTS_OF_NETWORKS = (Layer, InputEmbedderParameters, MiddlewareParameters, HeadParameters, NetworkParameters)


def _network_of(part: Any) -> NetworkParameters:
    """A network of one part, the others of which pass on what they get."""
    if isinstance(part, NetworkParameters):
        return part
    network = NetworkParameters()
    embedder = InputEmbedderParameters("none", [part] if isinstance(part, Layer) else [])
    network.input_embedders_parameters = {
        "observation": part if isinstance(part, InputEmbedderParameters) else embedder
    }
    network.middleware_parameters = (
        part if isinstance(part, MiddlewareParameters) else FCMiddlewareParameters("none", [])
    )
    network.heads_parameters = [part if isinstance(part, HeadParameters) else _FeaturesParameters()]
    return network


class BuiltNetwork:
    """A network, or a part of one, with weights.

    :param part: a layer, or parameters
    :param spaces: of its input and the actions
    :param framework: a name
    :param seed: of the initial weights
    """

    def __init__(self, part: Any, spaces: SpacesDefinition, framework: str, seed: int):
        parameters, chosen = _network_of(part), load_framework(Frameworks[framework])
        function = chosen.make_function(parameters, spaces, "tested", np.random.default_rng(seed))
        self.state = chosen.hold(function, parameters.create_target_network)
        self._is_whole = isinstance(part, NetworkParameters)

    def outputs(self, observations: Any, training: bool = False) -> Any:
        """The part's outputs.

        :param observations: [B, ...], or a dict of such by input
        :param training: batch normalisation over the batch, and dropout
        :return: [B, ...] of a layer, an embedder or a middleware; of a head its outputs by name; of a network a list of
            these
        """
        inputs = observations if isinstance(observations, Mapping) else {"observation": observations}
        arrays = {name: np.asarray(array, np.float32) for name, array in inputs.items()}
        state = self.state
        heads, _, _ = state.function(state.arrays("weights"), state.arrays("buffers"), arrays, training=training)
        found = [{name: _as_numpy(output) for name, output in head.items()} for head in heads]
        return found if self._is_whole else found[0].get("features", found[0])

    def get_weights(self) -> list[np.ndarray]:
        """The weights, in the order in which they are made."""
        return [np.array(array) for array in self.state.arrays("weights")]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Replace the weights.

        :raises ValueError: their number or a shape does not fit
        """
        self.state.set_arrays("weights", [np.asarray(array, np.float32) for array in weights])


def _as_numpy(array: Any) -> np.ndarray:
    return array.asnumpy() if hasattr(array, "asnumpy") else np.asarray(array)


class BuiltRule:
    """An update rule with the networks that it changes.

    :param rule: the rule
    :param networks: the networks by name
    :param spaces: of observations and actions
    :param framework: a name
    :param seed: of the initial weights
    """

    def __init__(
        self,
        rule: UpdateRule,
        networks: Mapping[str, NetworkParameters],
        spaces: SpacesDefinition,
        framework: str,
        seed: int,
    ):
        chosen = load_framework(Frameworks[framework])
        self.networks = {
            name: BuiltNetwork(parameters, spaces, framework, seed + number)
            for number, (name, parameters) in enumerate(networks.items())
        }
        states = {name: network.state for name, network in self.networks.items()}
        step = TrainingStep({name: state.function for name, state in states.items()}, dict(networks), rule)
        self._learner = chosen.make_learner(step, states, tuple(states))

    def update(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Make an update.

        :param columns: ``states/observation`` [B, ...], ``next_states/observation``, ``actions``, ``rewards``,
            ``discounts``, and ``weights`` [B], which are 1 if not given; ``extra/name`` as the rule wants them
        :return: ``losses`` and ``signals`` by name, and ``errors`` [B] or None
        """
        given = {name: np.asarray(column) for name, column in columns.items()}
        floats = {n: c.astype(np.float32) if c.dtype.kind == "f" else c for n, c in given.items()}
        rows = len(next(iter(given.values())))
        result = self._learner.train({"weights": np.ones(rows, np.float32), **floats})
        return {
            "losses": {name: float(loss[0]) for name, loss in result.losses.items()},
            "signals": {name: float(value[0]) for name, value in result.signals.items()},
            "errors": None if result.errors is None else result.errors[0],
        }

    def get_weights(self) -> dict[str, list[np.ndarray]]:
        """The weights of each network."""
        return {name: network.get_weights() for name, network in self.networks.items()}

    def set_weights(self, weights: Mapping[str, Sequence[Any]]) -> None:
        """Replace the weights of networks, and of their targets."""
        for name, arrays in weights.items():
            self.networks[name].set_weights(arrays)
            if "target_weights" in self.networks[name].state.groups():
                self.networks[name].state.update_target(1.0)
