"""Tests of single parts: a layer, an embedder, a middleware, a head, a filter, a memory or an update rule."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from rl_coach.architectures.framework import load_framework
from rl_coach.architectures.standalone import PARTS_OF_NETWORKS, BuiltNetwork
from rl_coach.architectures.update import TrainingStep, UpdateRule
from rl_coach.base_parameters import Frameworks, NetworkParameters, running_framework
from rl_coach.memories.memory import MemoryParameters
from rl_coach.spaces import (
    DiscreteActionSpace,
    ObservationSpace,
    RewardSpace,
    SpacesDefinition,
    StateSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError, did_you_mean, dynamic_import_and_instantiate_module_from_params


class ComponentTest:
    """Builds a part on a framework, calls it, and compares its results with expected numbers.

    ``ComponentTest(Dense(1), 2).set_weights([[[1], [2]], [3]]).test(("outputs", [[10, 20]]), [[53]])``

    A test can call these methods: for layers, embedders, middlewares, heads and whole networks the methods of
    ``BuiltNetwork``; for an update rule the methods of ``BuiltRule``; for filters and memories their own methods.

    :param component: the part, or its parameters; an update rule is a function ``(ops, networks, batch) -> Update``
    :param observation_space: space of the input, or the size of an input vector; for a head the space of its features
    :param action_space: space of actions for a head or an update rule; None for two discrete actions
    :param networks: networks of an update rule, by name
    :param framework: ``tensorflow``, ``jax``, ``mxnet`` or ``torch``; None for the framework of the process
    :param seed: seed of the initial weights
    :param input_spaces: only for a component of ``rl_coach.own_loop.rlgraph``: the spaces of the arguments of its
        methods, by name. ``action_space`` is then a space of RLgraph
    :param build_kwargs: no effect; for programs written for RLgraph
    :raises CoachError: if the framework is not installed, or the part does not fit
    """

    def __init__(
        self,
        component: Any,
        observation_space: int | ObservationSpace = 1,
        action_space: Any = None,
        networks: Mapping[str, NetworkParameters] | None = None,
        framework: str | None = None,
        seed: int = 0,
        *,
        input_spaces: Mapping[str, Any] | None = None,
        build_kwargs: Mapping[str, Any] | None = None,
    ):
        framework, self._is_rlgraph = framework or running_framework(), input_spaces is not None
        if input_spaces is not None:
            self.component: Any = component
            component.build(input_spaces, action_space, framework, seed)
            return
        if isinstance(observation_space, int):
            observation_space = VectorObservationSpace(observation_space)
        spaces = SpacesDefinition(
            StateSpace({"observation": observation_space}), None, action_space or DiscreteActionSpace(2), RewardSpace(1)
        )
        if networks is not None:
            self.component = BuiltRule(component, networks, spaces, framework, seed)
        elif isinstance(component, MemoryParameters):
            self.component = dynamic_import_and_instantiate_module_from_params(component)
        elif isinstance(component, PARTS_OF_NETWORKS):
            self.component = BuiltNetwork(component, spaces, framework, seed)
        else:
            self.component = component

    def set_weights(self, weights: Any) -> ComponentTest:
        """Replace the weights. :return: this test"""
        self.component.set_weights(weights)
        return self

    def read_variable_values(self, variables: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """The variables of a component of RLgraph. :param variables: names of variables; None for all variables"""
        found = self.component.variables()
        return found if variables is None else {name: found[name] for name in variables}

    def test(
        self,
        call: str | Sequence[Any],
        expected: Any = None,
        tolerance: float = 1e-5,
        *,
        expected_outputs: Any = None,
        decimals: int | None = None,
    ) -> Any:
        """Call a method of the part, and compare its result with expected numbers.

        :param call: the method's name, or a tuple of its name and its arguments. For a component of RLgraph, a tuple of
            the name and the argument or the list of arguments; further elements are ignored
        :param expected: numbers, or lists and dictionaries of numbers. Dictionary entries of the result that are not
            expected are ignored. None compares nothing
        :param tolerance: the largest allowed difference of a number
        :param expected_outputs: another name of ``expected``, as in RLgraph
        :param decimals: number of compared digits after the decimal point; it replaces ``tolerance``
        :return: the method's result
        :raises AssertionError: if the result differs
        :raises CoachError: if the method does not exist
        """
        name, *arguments = (call,) if isinstance(call, str) else tuple(call)
        if self._is_rlgraph:
            given = arguments[0] if arguments else []
            arguments = given if isinstance(given, list) else [given]
        expected = expected_outputs if expected is None else expected
        tolerance = tolerance if decimals is None else 1.5 * 10.0**-decimals
        if not callable(getattr(self.component, name, None)):
            known = [one for one in dir(self.component) if not one.startswith("_")]
            raise CoachError(f"{type(self.component).__name__} has no '{name}'{did_you_mean(name, known)}")
        found = getattr(self.component, name)(*arguments)
        if expected is not None:
            _compare(found, expected, tolerance, name)
        return found


def _compare(found: Any, expected: Any, tolerance: float, where: str) -> None:
    if expected is None:
        assert found is None, f"{where} is {found}, not None"
    elif isinstance(expected, Mapping):
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
        digits = 4 * float(np.finfo(np.float32).eps)  # relative tolerance, for large numbers
        np.testing.assert_allclose(found, expected, rtol=digits, atol=tolerance, err_msg=where)


class BuiltRule:
    """An update rule with its networks, by name. :param seed: seed of the initial weights"""

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
        """Make one update.

        :param columns: arrays with B rows by name: ``states/observation``, ``next_states/observation``, ``actions``,
            ``rewards``, ``discounts``, and ``weights`` (default 1). A rule may need more arrays, named ``extra/name``
        :return: a dict with ``losses`` and ``signals``, each by name, and ``errors`` [B] or None
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
        """Replace the weights of networks and of their target networks. :param weights: the weights by network"""
        for name, arrays in weights.items():
            self.networks[name].set_weights(arrays)
            if "target_weights" in self.networks[name].state.groups():
                self.networks[name].state.update_target(1.0)
