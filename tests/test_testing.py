"""Parts that are built alone and compared with numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.rules.q_learning import greedy_by_target, q_learning_rule
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DuelingQHeadParameters, QHeadParameters
from rl_coach.architectures.layers import Dense, LayerNorm
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import NetworkParameters
from rl_coach.core_types import Transition
from rl_coach.filters.reward.reward_clipping_filter import RewardClippingFilter
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.testing import ComponentTest
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK

ON = {"framework": FRAMEWORK.name}


def test_a_layer():
    dense = ComponentTest(Dense(2), 2, **ON).set_weights([[[1.0, 2.0], [3.0, 4.0]], [10.0, 20.0]])
    dense.test(("outputs", [[1, 1], [2, 0]]), [[14, 26], [12, 24]])
    with pytest.raises(AssertionError, match="outputs"):
        dense.test(("outputs", [[1, 1]]), [[14, 26.1]])
    with pytest.raises(AssertionError, match=r"has the shape \(1, 2\), not \(2,\)"):
        dense.test(("outputs", [[1, 1]]), [14, 26])
    with pytest.raises(CoachError, match="BuiltNetwork has no 'output'; did you mean 'outputs'"):
        dense.test(("output", [[1, 1]]))
    normalized = ComponentTest(LayerNorm(), 2, **ON)
    normalized.test(("outputs", [[1, 3]]), [[-1, 1]], tolerance=1e-4)


def test_an_embedder_and_a_middleware():
    embedder = InputEmbedderParameters(scheme=[Dense(1)], input_rescaling={"vector": 2.0})
    ComponentTest(embedder, 1, **ON).set_weights([[[3.0]], [-1.0]]).test(("outputs", [[4], [-4]]), [[5], [0]])
    middleware = FCMiddlewareParameters("tanh", [Dense(1)])
    ComponentTest(middleware, 1, **ON).set_weights([[[1.0]], [0.0]]).test(("outputs", [[0.5]]), [[np.tanh(0.5)]])


def test_a_head():
    head = ComponentTest(QHeadParameters(), 1, DiscreteActionSpace(3), **ON)
    head.set_weights([[[1.0, 2.0, 3.0]], [0.0, 0.0, 1.0]]).test(("outputs", [[2.0]]), {"q": [[2, 4, 7]]})
    dueling = ComponentTest(DuelingQHeadParameters(), 1, DiscreteActionSpace(3), **ON)
    dueling.set_weights([np.zeros_like(array) for array in dueling.test("get_weights")])
    dueling.test(("outputs", [[2.0]]), {"q": np.zeros((1, 3))})
    with pytest.raises(AssertionError, match="outputs has no 'v'"):
        dueling.test(("outputs", [[2.0]]), {"v": [[0.0]]})


def test_a_filter_and_a_memory():
    ComponentTest(RewardClippingFilter(-1.0, 1.0)).test(("filter", 5.0), 1.0)
    memory = ComponentTest(ExperienceReplayParameters())
    state = {"observation": np.zeros(1)}
    for reward in (1.0, 2.0):
        memory.test(("store", Transition(state=state, action=0, reward=reward, next_state=state, game_over=True)))
    memory.test("num_transitions", 2)


def q_network() -> NetworkParameters:
    network = NetworkParameters()
    network.input_embedders_parameters = {"observation": InputEmbedderParameters("none", [])}
    network.middleware_parameters = FCMiddlewareParameters("none", [])
    network.heads_parameters = [QHeadParameters()]
    network.create_target_network = True
    network.optimizer_type, network.learning_rate = "SGD", 0.25
    return network


def test_an_update_rule():
    rule = q_learning_rule(False, None, greedy_by_target, False)
    test = ComponentTest(rule, 1, networks={"main": q_network()}, **ON)
    test.set_weights({"main": [[[1.0, 2.0]], [0.0, 0.0]]})
    columns = {
        "states/observation": [[1.0]], "next_states/observation": [[3.0]], "actions": [0], "rewards": [1.0],
        "discounts": [0.5],
    }  # fmt: skip
    # the target is 1 + 0.5 max(3, 6) = 4, the value 1; the gradient of (4 - q)^2 is -6 for weight and bias of action 0
    test.test(("update", columns), {"losses": {"main": 9.0}, "errors": [3.0]})
    test.test("get_weights", {"main": [[[2.5, 2.0]], [1.5, 0.0]]})
