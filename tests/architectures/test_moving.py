"""A network that has learned on one framework predicts and learns the same on another one."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import (
    DuelingQHeadParameters,
    PPOHeadParameters,
    QHeadParameters,
    VHeadParameters,
)
from rl_coach.architectures.layers import BatchnormActivationDropout, Conv2d, Dense, LayerNorm, NoisyNetDense
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.checkpoint import load_checkpoint, save_checkpoint
from rl_coach.spaces import ImageObservationSpace, SpacesDefinition
from tests.architectures.networks import (
    BOX,
    DISCRETE,
    TWO_VECTORS,
    VECTOR,
    network_parameters,
    random_inputs,
    spaces,
    teach,
    wrap,
)
from tests.frameworks import FRAMEWORK, run_on, where_installed

IMAGE = {"observation": ImageObservationSpace(np.array([12, 12, 3]), high=255)}


def embedding(*layers: Any) -> dict[str, InputEmbedderParameters]:
    return {"observation": InputEmbedderParameters(scheme=list(layers))}


def networks() -> dict[str, tuple[Any, SpacesDefinition]]:
    normalised = BatchnormActivationDropout(batchnorm=True, activation_function="tanh", dropout_rate=0.1)
    return {
        "dueling": (
            network_parameters([DuelingQHeadParameters()], TWO_VECTORS, create_target_network=True),
            spaces(TWO_VECTORS, DISCRETE),
        ),
        "bodies": (
            network_parameters([VHeadParameters(), PPOHeadParameters()], use_separate_networks_per_head=True),
            spaces(VECTOR, BOX),
        ),
        "buffers": (
            network_parameters(
                [QHeadParameters()],
                input_embedders_parameters=embedding(NoisyNetDense(6), normalised, LayerNorm(), Dense(5)),
            ),
            spaces(VECTOR, DISCRETE),
        ),
        "memory": (
            network_parameters(
                [QHeadParameters()],
                middleware_parameters=LSTMMiddlewareParameters(number_of_lstm_cells=6),
                optimizer_type="RMSProp",
            ),
            spaces(VECTOR, DISCRETE),
        ),
        "images": (
            network_parameters([QHeadParameters()], input_embedders_parameters=embedding(Conv2d(4, 3, 2), Dense(5))),
            spaces(IMAGE, DISCRETE),
        ),
    }


def outputs(wrapper: Any) -> np.ndarray:
    wrapper.online_network.reset_internal_memory()
    rows = random_inputs(wrapper, 1, np.random.default_rng(3))
    return np.concatenate([value.ravel() for value in wrapper.online_network.predict(rows, squeeze_output=False)])


def write(directory: str) -> None:
    """Train each network, and write it with its outputs then and after one update more."""
    for name, (parameters, definition) in networks().items():
        wrapper = wrap(parameters, definition)
        teach(wrapper, 3, np.random.default_rng(1))
        save_checkpoint(f"{directory}/{name}", "0_Step-3.ckpt", {"network": wrapper.get_state()}, {})
        before = outputs(wrapper)
        teach(wrapper, 1, np.random.default_rng(2))
        np.savez(f"{directory}/{name}.npz", outputs=before, later=outputs(wrapper))


def check(directory: str) -> None:
    """Go on from what ``write`` wrote."""
    for name, (parameters, definition) in networks().items():
        wrapper = wrap(parameters, definition, seed=9)
        state, _ = load_checkpoint(f"{directory}/{name}/0_Step-3.ckpt")
        wrapper.set_state(state["network"])
        with np.load(f"{directory}/{name}.npz") as expected:
            np.testing.assert_allclose(outputs(wrapper), expected["outputs"], rtol=1e-5, atol=1e-6, err_msg=name)
        if name != "buffers":  # each framework draws its own noise
            teach(wrapper, 1, np.random.default_rng(2))
            assert wrapper.state.updates == 4
            with np.load(f"{directory}/{name}.npz") as expected:
                np.testing.assert_allclose(outputs(wrapper), expected["later"], rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        pytest.param("tensorflow", "torch", marks=where_installed("torch")),
        pytest.param("torch", "jax", marks=[where_installed("torch"), where_installed("jax")]),
    ],
)
@pytest.mark.skipif(FRAMEWORK.name != "tensorflow", reason="starts each framework itself")
def test_what_learned_on_one_framework_goes_on_on_another(source, destination, tmp_path):
    for framework, step in ((source, "write"), (destination, "check")):
        run_on(framework, "-m", "tests.architectures.test_moving", step, str(tmp_path))


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](str(pathlib.Path(sys.argv[2])))
