"""The rule of DreamerV3 in float64, on a network in NumPy, against the paper's equations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.rules.dreamer_v3 import DreamerSettings, dreamer_rule
from rl_coach.architectures.network_function import NetworkParts
from rl_coach.architectures.update import LearningBatch
from rl_coach.architectures.world_model import ModelSize
from rl_coach.spaces import ActionSpace, BoxActionSpace, DiscreteActionSpace
from tests.agents.dreamer_in_numpy import Model, NumpyOps, expected_loss

SIZE, OBSERVATION = ModelSize(deter=16, hidden=8, classes=2, units=8, depth=2), 2
PICTURE = (48, 64, 1)
BOUNDS = np.array([-2.0, 0.0, -1.0]), np.array([4.0, 0.5, 1.0])
LENGTH, SEQUENCES, HORIZON = 4, 3, 3


def shapes(action: ActionSpace) -> list[tuple[int, ...]]:
    """The shapes of all weights, in the order of the layers. The observations are a vector and a picture."""
    units, hidden, deter, stoch, width = SIZE.units, SIZE.hidden, SIZE.deter, SIZE.stoch, SIZE.deter // 8

    def layer(inputs: int, outputs: int, count: int = 1) -> list[tuple[int, ...]]:
        first = [(inputs, outputs), (outputs,), (outputs,)]
        return first + layer(outputs, outputs, count - 1) if count else []

    def output(inputs: int, outputs: int) -> list[tuple[int, ...]]:
        return [(inputs, outputs), (outputs,)]

    middleware = [shape for inputs in (deter, stoch, 3) for shape in layer(inputs, hidden)]
    middleware += [(8, width + 3 * hidden, width), (8, width), (deter,), (8, width, 3 * width), (8, 3 * width)]
    middleware += layer(deter + units + 3 * 4 * 8, hidden) + output(hidden, stoch)
    cells, channels = 3 * 4 * 8, (8, 8, 6, 4, 1)  # the smallest form of the picture, and the filters that enlarge it
    picture = [(8, width, cells // 8), (8, cells // 8), *layer(stoch, 2 * units), *output(2 * units, cells)]
    for before, after in itertools.pairwise(channels):
        picture += [(before,), (5, 5, before, after), (after,)]
    heads = [*layer(SIZE.latent, units, 3), *output(units, OBSERVATION), *picture, *layer(deter, hidden, 2)]
    heads += [*output(hidden, stoch), *layer(SIZE.latent, units), *output(units, 255), *layer(SIZE.latent, units)]
    policy = output(units, 3) * (2 if isinstance(action, BoxActionSpace) else 1)
    heads += [*output(units, 1), *layer(SIZE.latent, units, 3), *policy]
    encoder = layer(OBSERVATION, units, 3)
    for before, after in itertools.pairwise((1, 4, 6, 8, 8)):
        encoder += [(5, 5, before, after), (after,), (after,)]
    return [*encoder, *middleware, *heads, *layer(SIZE.latent, units, 3), *output(units, 255)]


class View:
    """What the rule gets of a network."""

    def __init__(self, online: Model, slow: Model):
        self.parts = self.constant_parts = self.parts_of(online)
        self.target_parts = self.parts_of(slow)

    @staticmethod
    def parts_of(model: Model) -> NetworkParts:
        def advance(embedding: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            deter, probabilities = model.posterior(state["deter"], state["stoch"], state["last_action"], embedding)
            stoch = model.drawn(probabilities, state["noise"])
            return np.concatenate([deter, stoch, probabilities.reshape(len(stoch), -1)], -1), {}

        def head(number: int, features: Any) -> dict[str, Any]:
            latent = features[:, : SIZE.latent]
            if number == 2:
                return dict(zip(("reward_logits", "continue_logits"), model.outcome(latent)))
            if number == 3:
                policy = model.policy(latent)
                if len(policy) == 1:
                    return {"probabilities": policy[0], "log_probabilities": np.log(policy[0])}
                return dict(zip(("mean", "standard_deviation"), policy))
            if number == 0:
                return model.decode(latent)
            name, make = {
                1: ("probabilities_of_state", lambda: model.prior(features[:, : SIZE.deter])),
                4: ("return_logits", lambda: model.head("value", latent)),
            }[number]
            return {name: make()}

        return NetworkParts(model.encode, advance, head)


class Kept:
    """The percentiles before the update, and after it."""

    def __init__(self, **values: float):
        self.before, self.after = values, values

    def online(self, states: dict[str, Any]) -> list[dict[str, float]]:
        return [self.before]

    def keep(self, **values: float) -> None:
        self.after = values


@pytest.mark.parametrize("action", [DiscreteActionSpace(3), BoxActionSpace(3, *BOUNDS)], ids=["discrete", "box"])
def test_the_loss_is_the_papers_in_float64(action):
    rng, is_discrete = np.random.default_rng(0), isinstance(action, DiscreteActionSpace)
    own = 3 if is_discrete else BOUNDS
    observations = {"observation": (OBSERVATION,), "picture": PICTURE}
    online, slow = (
        Model(SIZE, [0.6 * rng.normal(size=shape) for shape in shapes(action)], observations, own) for _ in range(2)
    )
    rows = SEQUENCES * (LENGTH + 1)
    weights = np.ones((SEQUENCES, LENGTH + 1))
    weights[1, 2] = 0.0  # an episode ended after two steps, and the next one began
    columns = {
        "states/observation": rng.normal(size=(rows, OBSERVATION)),
        "states/picture": rng.integers(256, size=(rows, *PICTURE)),
        "states/deter": rng.normal(size=(rows, SIZE.deter)),
        "states/stoch": np.eye(2)[rng.integers(2, size=(rows, 32))].reshape(rows, -1),
        "states/last_action": np.eye(3)[rng.integers(3, size=rows)],
        "actions": rng.integers(3, size=rows) if is_discrete else rng.uniform(*BOUNDS, size=(rows, 3)),
        "rewards": 3 * rng.normal(size=rows),
        "discounts": np.where(rng.random(rows) < 0.2, 0.0, 0.997),
        "weights": weights.ravel(),
        "extra/posterior": rng.random((rows, 32)),
        "extra/imagined": rng.random((rows, HORIZON * (33 if is_discrete else 35))),
    }
    groups: dict[str, dict[str, Any]] = {"states": {}, "extra": {}, "": {}}
    for name, column in columns.items():
        group, _, key = name.rpartition("/")
        groups[group][key] = column
    batch = LearningBatch(next_states={}, scalars={}, states=groups["states"], extra=groups["extra"], **groups[""])
    settings = DreamerSettings(SIZE, LENGTH, HORIZON, 0.95, 3e-4, action, ("picture",))
    kept = Kept(low=-2.0, high=5.0)
    networks: Any = {"main": View(online, slow), "returns": kept}
    update = dreamer_rule(settings)(NumpyOps(), networks, batch)
    expected, low, high, states = expected_loss(online, slow, columns, LENGTH, HORIZON, (-2.0, 5.0))
    # the bins of the rule have 32 bits
    assert update.losses["main"] == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(np.concatenate([update.values["deter"], update.values["stoch"]], axis=-1), states)
    assert (kept.after["low"], kept.after["high"]) == pytest.approx((low, high), rel=1e-6)
