"""Random numbers for compiled loops are those of JAX."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from rl_coach.base_parameters import Frameworks
from tests.frameworks import FRAMEWORK

pytestmark = pytest.mark.skipif(FRAMEWORK is not Frameworks.jax, reason="JAX's random numbers (COACH_TEST_FRAMEWORK)")


@pytest.mark.parametrize("count", [1, 100, 2047, 2048, 5000, 70_000])
def test_a_permutation_is_jaxs(count):
    import jax

    from rl_coach.architectures.jax_components import loop_random

    for seed in range(3):
        key = jax.random.key(seed)
        found = jax.jit(loop_random.permutation, static_argnums=1)(key, count)
        np.testing.assert_array_equal(found, jax.random.permutation(key, count))


def test_rows_of_equal_keys_keep_their_order():
    import jax
    import jax.numpy as jnp

    from rl_coach.architectures.jax_components import loop_random

    keys, order = jnp.array([3, 1, 3, 2**32 - 1, 1], jnp.uint32), jnp.array([0, 4, 1, 2, 3], jnp.int32)
    np.testing.assert_array_equal(jax.jit(loop_random._sorted_by)(keys, order), [4, 3, 0, 1, 2])
    keys = keys.at[2].set(2).at[4].set(0)
    np.testing.assert_array_equal(jax.jit(loop_random._sorted_by)(keys, order), [3, 4, 1, 0, 2])


@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize("inputs,units", [(3, 5), (5, 3)])
@pytest.mark.parametrize("rows", [511, 512])
def test_a_dense_layer_has_the_gradients_of_jax(rows, inputs, units, is_inside):
    import jax
    import jax.numpy as jnp
    import keras

    from rl_coach.architectures.jax_components.layers import TransposingDense, inside_loop

    layer = TransposingDense(units, activation="tanh")
    layer.build((None, inputs))
    states, weights = jax.random.normal(jax.random.key(1), (rows, inputs)), [v.value for v in layer.variables]

    def of_layer(weights: list, states: jax.Array) -> jax.Array:
        mapping = list(zip(layer.variables, weights))
        with keras.StatelessScope(state_mapping=mapping):
            return layer(states)

    def plain(weights: list, states: jax.Array) -> jax.Array:
        return jnp.tanh(states @ weights[0] + weights[1])

    def gradients(function):
        def loss(weights: list, states: jax.Array) -> jax.Array:
            return jnp.sum(function(weights, states) ** 2)

        def slope(weights: list) -> jax.Array:
            return sum(jnp.sum(one**2) for one in jax.grad(loss)(weights, states))

        return jax.grad(loss, argnums=(0, 1))(weights, states), jax.grad(slope)(weights)

    with inside_loop() if is_inside else nullcontext():
        found = gradients(of_layer)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(gradients(plain)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_dense_layers_for_blocks_have_the_gradients_of_jax():
    import jax
    import jax.numpy as jnp

    from rl_coach.architectures.jax_components.layers import SplitDenseBlocks

    keys = jax.random.split(jax.random.key(1), 3)
    given = [jax.random.normal(key, shape) for key, shape in zip(keys, [(6, 2, 3), (2, 3, 4), (2, 4)], strict=True)]
    layer = SplitDenseBlocks(4, "zeros")

    def gradients(function):
        return jax.value_and_grad(lambda *given: jnp.sum(jnp.sin(function(*given))), argnums=(0, 1, 2))(*given)

    found = gradients(layer.products)
    expected = gradients(lambda x, kernel, bias: jnp.einsum("bgi,gio->bgo", x, kernel) + bias)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(7, 5), (3, 2, 4)])
def test_the_derivative_of_rmsnorm_and_silu_is_the_one_of_jax(shape):
    import jax
    import jax.numpy as jnp

    from rl_coach.architectures.jax_components.layers import RmsNormSilu

    layer = RmsNormSilu()
    layer.build(shape)
    x, gradient = jax.random.normal(jax.random.key(0), (2, *shape))
    row = jax.random.normal(jax.random.key(1), shape[-1:])

    def fast(x: jax.Array, row: jax.Array) -> jax.Array:
        return layer.stateless_call([row], [], x)[0]

    def plain(x: jax.Array, row: jax.Array) -> jax.Array:
        y = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-4) * row
        return y / (1.0 + jnp.exp(-y))

    (found, pull_back), (expected, by_jax) = (jax.vjp(function, x, row) for function in (fast, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for one, other in zip(pull_back(gradient), by_jax(gradient)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
