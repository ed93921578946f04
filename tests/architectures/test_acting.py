"""Networks built from blueprints act as those they were made of, in a process without a training framework."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import msgpack
import numpy as np
import pytest

from rl_coach.architectures.blueprint import NetworkBlueprint
from rl_coach.architectures.head_parameters import PPOHeadParameters, QHeadParameters
from rl_coach.architectures.layers import NoisyNetDense
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, Frameworks, TaskParameters
from rl_coach.core_types import RunPhase
from rl_coach.utils import CoachError
from tests.architectures.networks import BOX, DISCRETE, VECTOR, network_parameters, random_inputs, spaces, wrap
from tests.frameworks import run_on
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph
from tests.zoo.parameters import dqn

FRAMEWORKS = {"tensorflow", "keras", "jax", "mxnet", "torch"}
OBSERVATIONS = np.random.default_rng(0).normal(size=(3, 1, 3)).astype(np.float32)


def packed(wrapper: Any) -> bytes:
    weights = [array.tobytes() for array in wrapper.online_network.get_weights()]
    return msgpack.packb({"blueprint": wrapper.blueprint().plain(), "weights": weights})


def acting_wrapper(data: bytes, definition: Any, **changes: Any) -> Any:
    """The network of ``packed`` where nothing learns."""
    from rl_coach.architectures.network_wrapper import NetworkWrapper

    plain = msgpack.unpackb(data)
    network = network_parameters([QHeadParameters()], **changes)
    network.blueprint = NetworkBlueprint.from_plain(plain["blueprint"])
    parameters = AgentParameters(AlgorithmParameters(), None, None, {"main": network})
    parameters.task_parameters = TaskParameters(framework_type=Frameworks.acting)
    wrapper = NetworkWrapper(parameters, network.create_target_network, False, "main", definition)
    shapes = [array.shape for array in wrapper.online_network.get_weights()]
    arrays = [np.frombuffer(raw, np.float32).reshape(shape) for raw, shape in zip(plain["weights"], shapes)]
    wrapper.online_network.set_weights(arrays)
    return wrapper


def act_alone(directory: str) -> None:
    """Check the predictions of ``directory``; run in a process of its own."""
    folder = pathlib.Path(directory)
    wrapper = acting_wrapper((folder / "network").read_bytes(), spaces(VECTOR, BOX))
    found = [wrapper.online_network.predict({"observation": row}) for row in OBSERVATIONS]
    np.testing.assert_array_equal(np.array(found), np.load(folder / "expected.npy"))
    assert not FRAMEWORKS & set(sys.modules), FRAMEWORKS & set(sys.modules)


def test_a_recurrent_network_acts_bit_for_bit_in_a_process_without_a_framework(tmp_path):
    middleware = LSTMMiddlewareParameters(number_of_lstm_cells=6, scheme=[])
    wrapper = wrap(network_parameters([PPOHeadParameters()], middleware_parameters=middleware), spaces(VECTOR, BOX))
    (tmp_path / "network").write_bytes(packed(wrapper))
    predictions = [wrapper.online_network.predict({"observation": row}) for row in OBSERVATIONS]
    assert not np.array_equal(predictions[0], predictions[1])
    np.save(tmp_path / "expected.npy", predictions)
    run_on("tensorflow", "-c", f"from tests.architectures.test_acting import act_alone; act_alone({str(tmp_path)!r})")


def test_noise_is_drawn_anew_for_each_action_and_a_target_is_kept():
    network = network_parameters([QHeadParameters(dense_layer=NoisyNetDense)], create_target_network=True)
    wrapper = wrap(network, spaces(VECTOR, DISCRETE))
    acting = acting_wrapper(packed(wrapper), spaces(VECTOR, DISCRETE), create_target_network=True)
    assert msgpack.packb(acting.blueprint().plain()) == msgpack.packb(wrapper.blueprint().plain())
    row = random_inputs(acting, 1, np.random.default_rng(0))
    assert not np.array_equal(*(acting.online_network.predict(row) for _ in range(2)))
    acting.update_target_network()
    for one, other in zip(acting.target_network.get_weights(), wrapper.online_network.get_weights()):
        np.testing.assert_array_equal(one, other)


def test_an_agent_plays_with_it_and_training_is_refused(tmp_path):
    learning = graph(dqn(), Bandit, tmp_path / "trainer")
    trainer = learning.get_agent()
    parameters = dqn()
    parameters.network_wrappers["main"].blueprint = trainer.networks["main"].blueprint()
    manager = graph(parameters, Bandit, tmp_path / "worker", framework=Frameworks.acting)
    agent = manager.get_agent()
    weights = trainer.networks["main"].online_network.get_weights()
    agent.networks["main"].online_network.set_weights(weights)
    manager.phase = learning.phase = RunPhase.TEST
    state = {"observation": np.array([1.0, 0.0], np.float32)}
    np.testing.assert_array_equal(agent.choose_action(state).action, trainer.choose_action(state).action)
    with pytest.raises(CoachError, match="this process only acts"):
        _ = agent.update_loop.learner


def test_without_a_blueprint_it_says_what_is_missing(tmp_path):
    with pytest.raises(CoachError, match="needs a blueprint of network 'main'"):
        graph(dqn(), Bandit, tmp_path, framework=Frameworks.acting)
