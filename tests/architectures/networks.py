"""Small networks for tests: spaces, parameters, and a wrapper that teaches one towards random targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.base_parameters import (
    AgentParameters,
    AlgorithmParameters,
    NetworkParameters,
    TaskParameters,
)
from rl_coach.spaces import (
    BoxActionSpace,
    DiscreteActionSpace,
    RewardSpace,
    SpacesDefinition,
    StateSpace,
    VectorObservationSpace,
)
from tests.frameworks import FRAMEWORK

VECTOR = {"observation": VectorObservationSpace(3)}
TWO_VECTORS = {"observation": VectorObservationSpace(3), "measurements": VectorObservationSpace(2)}
DISCRETE = DiscreteActionSpace(4)
BOX = BoxActionSpace(2, low=np.array([-1.0, 0.0]), high=np.array([1.0, 4.0]))
UNBOUNDED_BOX = BoxActionSpace(2)


def spaces(observations: dict[str, Any], action: Any) -> SpacesDefinition:
    return SpacesDefinition(state=StateSpace(dict(observations)), goal=None, action=action, reward=RewardSpace(1))


def network_parameters(heads: list, observations: Any = ("observation",), **changes: Any) -> NetworkParameters:
    """A network with 8 units in each embedder and in the middleware, unless ``changes`` say otherwise."""
    network = NetworkParameters()
    network.input_embedders_parameters = {name: InputEmbedderParameters(scheme=[Dense(8)]) for name in observations}
    network.middleware_parameters = FCMiddlewareParameters(scheme=[Dense(8)])
    network.heads_parameters = heads
    for name, value in changes.items():
        setattr(network, name, value)
    return network


def wrap(network: NetworkParameters, definition: SpacesDefinition, seed: int = 0) -> NetworkWrapper:
    parameters = AgentParameters(AlgorithmParameters(), None, None, {"main": network})
    parameters.task_parameters = TaskParameters(framework_type=FRAMEWORK)
    return NetworkWrapper(
        parameters,
        has_target=network.create_target_network,
        has_global=False,
        name="main",
        spaces=definition,
        rng=np.random.default_rng(seed),
    )


def random_inputs(wrapper: NetworkWrapper, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """[rows, ...] for each of the network's inputs; images are uint8."""
    found: dict[str, np.ndarray] = {}
    for name, shape in wrapper.state.function.input_shapes.items():
        if len(shape) == 3 and shape[0] > 10:
            found[name] = rng.integers(0, 256, (rows, *shape), dtype=np.uint8)
        else:
            found[name] = rng.normal(size=(rows, *shape)).astype(np.float32)
    return found


def framework_outputs(
    wrapper: NetworkWrapper, inputs: dict[str, np.ndarray], group: str = "weights"
) -> list[np.ndarray]:
    """What the framework itself makes of the weights that it holds, as ``predict`` orders it."""
    state = wrapper.state
    buffers = {"weights": "buffers", "target_weights": "target_buffers"}[group]
    heads, _, _ = state.function(state.arrays(group), state.arrays(buffers), inputs, training=False)
    outputs = [heads[head][name] for head, name in state.function.public_outputs]
    return [output.asnumpy() if hasattr(output, "asnumpy") else np.asarray(output) for output in outputs]


def teach(wrapper: NetworkWrapper, updates: int, rng: np.random.Generator, rate: float = 1.0) -> None:
    """Changes all weights and buffers as training does: by compiled steps, towards random targets.

    :param rate: at which a target follows
    """
    from rl_coach.architectures.update import LearningBatch, TrainingStep, Update

    def rule(ops: Any, networks: dict, batch: LearningBatch) -> Update:
        heads = networks["main"].online(batch.states)
        # the square of every output moves every weight, whatever the heads are
        loss = sum(ops.mean(ops.square(output - 2.0)) for head in heads for output in head.values())
        return Update({"main": loss})

    parameters = {"main": wrapper.network_parameters}
    step = TrainingStep({"main": wrapper.state.function}, parameters, rule)
    learner = wrapper.framework.make_learner(step, {"main": wrapper.state}, ("main",))
    rows = 4
    columns = {f"states/{name}": value for name, value in random_inputs(wrapper, rows * updates, rng).items()}
    columns["weights"] = np.ones(rows * updates, np.float32)
    follow = {"main": rate} if wrapper.has_target else None
    learner.train(columns, num_updates=updates, target_rates=follow)
