"""Random numbers for compiled loops are those of JAX."""

from __future__ import annotations

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


@pytest.mark.parametrize("rows", [511, 512])
def test_a_dense_layer_has_the_same_gradients_inside_a_loop(rows):
    import jax
    import jax.numpy as jnp
    import keras

    from rl_coach.architectures.jax_components.layers import LoopedDense, inside_loop

    layer = LoopedDense(5, activation="tanh")
    layer.build((None, 3))
    states, weights = jax.random.normal(jax.random.key(1), (rows, 3)), [v.value for v in layer.variables]

    def loss(weights: list, states: jax.Array) -> jax.Array:
        mapping = list(zip(layer.variables, weights))
        with keras.StatelessScope(state_mapping=mapping):
            return jnp.sum(layer(states) ** 2)

    def slope(weights: list) -> jax.Array:
        return sum(jnp.sum(one**2) for one in jax.grad(loss)(weights, states))

    with inside_loop():
        found = jax.grad(loss, argnums=(0, 1))(weights, states), jax.grad(slope)(weights)
    expected = jax.grad(loss, argnums=(0, 1))(weights, states), jax.grad(slope)(weights)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


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
