"""Convolutions on JAX, which are matrix products inside of loops: run by ``test_jax.py``."""

from __future__ import annotations

import unittest.mock
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import QHeadParameters
from rl_coach.architectures.jax_components.layers import JaxLayers, JaxNetwork, PooledConvolution, inside_loop
from rl_coach.architectures.layers import Conv2d
from rl_coach.spaces import PlanarMapsObservationSpace, TensorObservationSpace
from tests.architectures.networks import DISCRETE, network_parameters, spaces
from tests.architectures.test_learner import SETTINGS, B, columns, wrapper_and_learner

CASES = [
    ((36, 36, 4), [Conv2d(8, 8, 4), Conv2d(6, 4, 2), Conv2d(4, 3, 1)]),
    (
        (11, 6, 3),
        [Conv2d(5, 3, 2)],
    ),  # a last row and column that no patch reaches; the kernel is no multiple of the stride
    ((7, 5, 2), [Conv2d(3, 5, 3)]),  # one patch to the right
    ((5, 5, 2), [Conv2d(3, 5, 1)]),  # one patch
    ((6, 6, 2), [Conv2d(3, 1, 2)]),
]


def compare(shape: tuple[int, int, int], layers: list[Conv2d]) -> None:
    """Products and convolutions have the same outputs and the same gradients."""
    parameters = network_parameters([QHeadParameters()])
    parameters.input_embedders_parameters = {"observation": InputEmbedderParameters(scheme=layers)}
    image = TensorObservationSpace(np.array(shape), low=0.0, high=1.0)
    rng = np.random.default_rng(0)
    network = JaxNetwork(parameters, spaces({"observation": image}, DISCRETE), "main", rng)
    images = rng.random((3, *shape)).astype("f")
    weights = network.initial_weights()

    def loss(weights: list, images: jax.Array) -> tuple:
        ((heads,), _, _) = network(weights, [], {"observation": images}, training=True)
        (values,) = heads.values()
        return jax.numpy.sin(values).sum(), values

    def compute(around: AbstractContextManager) -> tuple[str, Any]:
        with around:
            found = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(weights, images)
            # JAX keeps what it traced of a function: this is another one each time
            return str(jax.make_jaxpr(lambda *values: loss(*values))(weights, images)), found

    (plain_program, plain), (program, products) = compute(nullcontext()), compute(inside_loop())
    assert "conv_general_dilated" in plain_program and "conv_general_dilated" not in program
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5), products, plain)


def learn_in_a_loop() -> None:
    """A training phase of several updates has no convolution."""
    image = {"image": PlanarMapsObservationSpace(np.array([9, 9, 2]), 0, 255)}
    embedders = {"image": InputEmbedderParameters(scheme=[Conv2d(3, 4, 2)])}
    wrapper, learner = wrapper_and_learner(observations=image, input_embedders_parameters=embedders, **SETTINGS)
    data = columns(3 * B)
    del data["states/observation"]
    data["states/image"] = np.zeros((3 * B, 9, 9, 2), dtype=np.uint8)
    with unittest.mock.patch.object(keras.layers.Conv2D, "convolution_op", side_effect=AssertionError("convolved")):
        learner.train(data, num_updates=3, target_rates={"main": 0.3})
    assert wrapper.state.updates == 3


def double_and_convolve(size: int) -> None:
    """A convolution of a doubled image is the same as a doubled image and then a convolution, also inside of a loop."""
    rng = np.random.default_rng(size)
    image, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 3, 5), (3,)))
    kernel = rng.standard_normal((size, size, 5, 3)).astype(np.float32)
    doubled, plain = JaxLayers.doubled_convolution_class(3, size, 1), keras.layers.Conv2D(3, size, padding="same")
    large = image.repeat(2, axis=1).repeat(2, axis=2)
    for layer, images in ((doubled, image), (plain, large)):
        layer.build(images.shape)
        layer.set_weights([kernel, bias])
    assert doubled.compute_output_shape(image.shape) == (2, 8, 6, 3)
    for around in (nullcontext(), inside_loop()):
        with around:
            np.testing.assert_allclose(doubled(image), plain(large), rtol=1e-4, atol=1e-4)


def convolve_and_pool(rows: int, size: int, height: int) -> None:
    """A pooled convolution and its gradients are those of a convolution with zeros and then a maximum of four pixels.

    Several images are computed in parts; some of these have one image, and some have several.
    """
    rng = np.random.default_rng(rows)
    images = rng.standard_normal((rows, height, 6, 3)).astype(np.float32)
    kernel = rng.standard_normal((size, size, 3, 4)).astype(np.float32)
    layer = PooledConvolution(4, size, 1)
    layer.build(images.shape)
    assert layer.compute_output_shape(images.shape) == (rows, height // 2, 3, 4)
    weights = jnp.asarray(rng.standard_normal((rows, height // 2, 3, 4)), np.float32)

    def plain(images: Any, kernel: Any) -> Any:
        outputs = jax.lax.conv_general_dilated(
            images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return outputs.reshape(rows, height // 2, 2, 3, 2, 4).max((2, 4))

    np.testing.assert_allclose(layer.convolution_op(images, kernel), plain(images, kernel), rtol=1e-4, atol=1e-4)
    found, expected = (
        jax.vjp(function, images, jnp.asarray(kernel))[1](weights) for function in (layer.convolution_op, plain)
    )
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    for case in CASES:
        compare(*case)
    for odd in (1, 3, 5, 7):
        double_and_convolve(odd)
    for given in ((1, 5, 4), (2, 5, 8), (34, 3, 48), (7, 5, 200)):
        convolve_and_pool(*given)
    learn_in_a_loop()
