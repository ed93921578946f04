"""The causal transformer: its attention and a whole network against NumPy, contexts of DQN and PPO, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.embedder_parameters import ContextEmbedderParameters, InputEmbedderParameters
from rl_coach.architectures.head_parameters import QHeadParameters
from rl_coach.architectures.layers import Conv2d, Dense
from rl_coach.architectures.middleware_parameters import TransformerMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, Frameworks, TaskParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.policy import Policy
from rl_coach.spaces import PlanarMapsObservationSpace, VectorObservationSpace
from rl_coach.utils import CoachError
from tests.architectures.networks import DISCRETE, framework_outputs, network_parameters, spaces, wrap
from tests.frameworks import FRAMEWORK, not_on_mxnet
from tests.zoo import parameters, policies
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.states import weights_of

RNG = np.random.default_rng(0)
STEPS, FEATURES = 5, 3
pytestmark = not_on_mxnet("a transformer is refused")


def attention(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, heads: int) -> np.ndarray:
    """[B, T, D] in float64, row by row: softmax of the scores with this token and the tokens before it."""
    found = np.zeros(queries.shape)
    size = queries.shape[2] // heads
    for row, token, head in np.ndindex(queries.shape[0], queries.shape[1], heads):
        own = slice(head * size, (head + 1) * size)
        scores = keys[row, : token + 1, own] @ queries[row, token, own] / np.sqrt(size)
        weights = np.exp(scores - scores.max())
        found[row, token, own] = weights / weights.sum() @ values[row, : token + 1, own]
    return found


def normalised(x: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + offset


class Weights:
    """The weights of a network in the order of its layers, in float64."""

    def __init__(self, wrapper: Any):
        arrays, order = wrapper.state.arrays("weights"), wrapper.state.function.order.get("weights")
        ordered = arrays if not order else [arrays[order.index(place)] for place in range(len(arrays))]
        self._left = [np.asarray(array, np.float64) for array in ordered]

    def next(self, count: int = 2) -> list[np.ndarray]:
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def dense(self, x: np.ndarray) -> np.ndarray:
        kernel, bias = self.next()
        return x @ kernel + bias

    @property
    def are_used_up(self) -> bool:
        return not self._left


def transformed(weights: Weights, x: np.ndarray, heads: int, blocks: int) -> np.ndarray:
    """[B, T, D], all tokens after the blocks."""
    for _ in range(blocks):
        inner = normalised(x, *weights.next())
        queries, keys, values = np.split(weights.dense(inner), 3, axis=-1)
        x = x + weights.dense(attention(queries, keys, values, heads))
        hidden = weights.dense(normalised(x, *weights.next()))
        x = x + weights.dense(np.maximum(hidden, 0))
    return normalised(x, *weights.next())


def shaken(wrapper: Any) -> Any:
    """The network with other weights, so that no scale is 1 and no offset is 0."""
    state = wrapper.get_state()
    for name, array in state["weights"].items():
        state["weights"][name] = np.asarray(array + RNG.normal(0, 0.2, array.shape), np.float32)
    wrapper.set_state(state)
    return wrapper


def network(**settings: Any) -> Any:
    found = network_parameters([QHeadParameters()])
    embedder = ContextEmbedderParameters(scheme=[Dense(8)], steps=STEPS)
    found.input_embedders_parameters = {"observation": embedder}
    found.middleware_parameters = TransformerMiddlewareParameters(**{"width": 8, "heads": 2, "blocks": 2, **settings})
    return found


@pytest.mark.parametrize("width", [8, 4])
def test_a_network_is_its_computation_in_numpy(width):
    stacked = spaces({"observation": VectorObservationSpace(STEPS * FEATURES)}, DISCRETE)
    wrapper = shaken(wrap(network(width=width), stacked))
    rows = RNG.normal(size=(6, STEPS * FEATURES)).astype(np.float32)
    weights, steps = Weights(wrapper), rows.astype(np.float64).reshape(6, FEATURES, STEPS).transpose(0, 2, 1)
    x = np.maximum(weights.dense(steps), 0)
    (positions,) = weights.next(1)
    x = x + positions.reshape(STEPS, 8)
    if width != 8:
        x = weights.dense(x)
    expected = weights.dense(transformed(weights, x, 2, 2)[:, -1])
    assert weights.are_used_up
    found = wrapper.online_network.predict({"observation": rows}, squeeze_output=False)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    (framework,) = framework_outputs(wrapper, {"observation": rows})
    np.testing.assert_allclose(framework, expected, rtol=1e-5, atol=1e-5)


def test_images_of_a_stack_share_their_convolutions():
    frames = RNG.integers(0, 256, (2, 8, 7, STEPS), dtype=np.uint8)
    parameters = network()
    parameters.input_embedders_parameters["observation"].scheme = [Conv2d(3, 3, 2)]
    stacked = PlanarMapsObservationSpace(np.array((8, 7, STEPS)), 0, 255)
    wrapper = wrap(parameters, spaces({"observation": stacked}, DISCRETE))
    assert Weights(wrapper).next(1)[0].shape == (3, 3, 1, 3)
    found = wrapper.online_network.predict({"observation": frames}, squeeze_output=False)[0]
    (framework,) = framework_outputs(wrapper, {"observation": frames})
    np.testing.assert_allclose(found, framework, rtol=1e-4, atol=1e-5)
    changed = frames.copy()
    changed[..., 0] = 255 - changed[..., 0]
    assert not np.allclose(wrapper.online_network.predict({"observation": changed}, squeeze_output=False)[0], found)


def test_dropout_changes_training_alone():
    stacked = spaces({"observation": VectorObservationSpace(STEPS * FEATURES)}, DISCRETE)
    wrapper = wrap(network(dropout_rate=0.5), stacked)
    rows = {"observation": RNG.normal(size=(2, STEPS * FEATURES)).astype(np.float32)}
    first, second = (wrapper.online_network.predict(rows, squeeze_output=False)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(framework_outputs(wrapper, rows)[0], first, rtol=1e-4, atol=1e-5)


def with_context(agent: AgentParameters, steps: int = 3) -> AgentParameters:
    """The agent with a transformer over its last observations."""
    agent.input_filter = InputFilter()
    agent.input_filter.add_observation_filter("observation", "stack", ObservationStackingFilter(steps))
    main = agent.network_wrappers["main"]
    main.input_embedders_parameters = {"observation": ContextEmbedderParameters(scheme=[Dense(8)], steps=steps)}
    main.middleware_parameters = TransformerMiddlewareParameters(width=16)
    return agent


@pytest.mark.parametrize("make", [parameters.dqn, parameters.clipped_ppo])
def test_agents_learn_with_a_context(make, tmp_path):
    manager = graph(with_context(make()), Bandit, tmp_path, schedule(200, heatup=40))
    before = [np.array(array) for array in weights_of(manager)]
    manager.improve()
    after = weights_of(manager)
    assert all(np.isfinite(array).all() for array in after)
    assert any(not np.array_equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.slow
@pytest.mark.skipif(FRAMEWORK is not Frameworks.torch, reason="the other frameworks compile in each test")
def test_pytorch_compiles_the_updates(tmp_path, monkeypatch):
    monkeypatch.setenv("COACH_TORCH_COMPILE", "on")
    manager = graph(with_context(parameters.dqn()), Bandit, tmp_path, schedule(20, heatup=40))
    manager.improve()
    assert manager.get_agent().training_iteration > 0


def test_an_exported_policy_has_the_context_of_the_agent(tmp_path):
    agent = with_context(parameters.dqn())
    agent.task_parameters = TaskParameters(FRAMEWORK, experiment_path=str(tmp_path))
    built = policies.build(agent, policies.VECTOR, policies.DISCRETE)
    policy, rng = Policy.load(policies.write(built, tmp_path / "policy")), np.random.default_rng(3)
    seen: list[np.ndarray] = []
    for _ in range(6):
        seen.append(policies.draw(policies.VECTOR, rng)["observation"])
        stack = np.stack([seen[0]] * (3 - len(seen)) + seen[-3:], axis=-1).ravel()
        (values,) = built.networks["main"].online_network.predict({"observation": stack[None]}, squeeze_output=False)
        assert policy.act(seen[-1]) == values[0].argmax()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"middleware_parameters": TransformerMiddlewareParameters(width=9, heads=2)}, "9 of a transformer is not a"),
        (
            {"input_embedders_parameters": {"observation": InputEmbedderParameters()}},
            r"needs a sequence of steps, not one vector: set the embedders .* ContextEmbedderParameters\(steps\)",
        ),
        (
            {"input_embedders_parameters": {"observation": ContextEmbedderParameters(steps=7)}},
            r"7 steps does not fit an input of the shape \(15,\): add an ObservationStackingFilter\(7\)",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    given = network()
    for name, value in change.items():
        setattr(given, name, value)
    with pytest.raises(CoachError, match=message):
        wrap(given, spaces({"observation": VectorObservationSpace(STEPS * FEATURES)}, DISCRETE))


def test_a_context_needs_the_filter_that_stacks_it(tmp_path):
    agent = with_context(parameters.dqn(), steps=2)  # the problem's vectors have two numbers
    agent.input_filter = InputFilter()
    with pytest.raises(CoachError, match=r"of 'observation': add an ObservationStackingFilter\(2\)"):
        graph(agent, Bandit, tmp_path)
