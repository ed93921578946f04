"""Training steps compiled with XLA: all updates of a training phase in one call."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import tensorflow as tf
from keras import ops

from rl_coach.architectures.learner import CompiledStep, Learner
from rl_coach.architectures.packing import Packing
from rl_coach.architectures.tensorflow_components.network_state import TensorFlowNetworkState
from rl_coach.architectures.update import TrainingStep


def gradients(function: Callable, weights: dict[str, list]) -> tuple[dict[str, list], Any]:
    """Each network's loss differentiated by that network's own weights."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(weights)
        losses, auxiliary = function(weights)
    found = {
        name: tape.gradient(loss, weights[name], unconnected_gradients=tf.UnconnectedGradients.ZERO)
        for name, loss in losses.items()
    }
    return found, auxiliary


class TensorFlowLearner(Learner):
    """See ``Learner``.

    :param published: the networks that act between training phases; their new weights are returned by the step itself
    """

    networks: dict[str, TensorFlowNetworkState]

    def __init__(self, step: TrainingStep, networks: dict[str, TensorFlowNetworkState], published: tuple[str, ...]):
        super().__init__(step, networks)
        self.published = published

    def _compile(
        self, packing: Packing, batch_size: int, is_indexed: bool, follow: dict[str, float], scalar_names: list[str]
    ) -> CompiledStep:
        def step(vector: tf.Tensor, *others: tf.Tensor) -> tuple[tf.Tensor, dict]:
            *large, indices = others if is_indexed else (*others, None)
            rows = packing.unpack_rows(ops, vector)
            all_scalars = packing.unpack_scalars(ops, vector)
            large_columns = dict(zip(packing.large, large))

            def update(k: Any, state: dict) -> tuple[dict, Any]:
                columns = _take(packing, rows, large_columns, k, batch_size, indices)
                return self.one_update(ops, gradients, state, columns, all_scalars[k], scalar_names, follow)

            before = {name: network.read() for name, network in self.networks.items()}
            if packing.num_updates == 1:
                state, outputs = update(0, before)
                outputs = outputs[None]
            else:
                state, outputs = _loop(update, before, packing.num_updates, tf.cast(vector[-1], tf.int32))
            for name, network in self.networks.items():
                network.assign(state[name], before[name])
            published = {
                name: {group: state[name][group] for group in ("weights", "buffers")} for name in self.published
            }
            return outputs, published

        signature = [tf.TensorSpec((packing.size,), tf.float32)]
        signature += [tf.TensorSpec(shape, dtype) for shape, dtype in packing.large.values()]
        if is_indexed:
            signature.append(tf.TensorSpec((packing.num_updates, batch_size), tf.int32))
        compiled = tf.function(step, jit_compile=True, autograph=False).get_concrete_function(*signature)

        def call(vector: np.ndarray, large: list[np.ndarray], indices: np.ndarray | None) -> np.ndarray:
            arguments = [tf.constant(vector), *map(tf.constant, large)]
            if indices is not None:
                arguments.append(tf.constant(indices, tf.int32))
            outputs, published = compiled(*arguments)
            for name, network in self.networks.items():
                network.publish(published.get(name, {}))
                network.version += 1
            return outputs.numpy()

        return call


def _take(packing: Packing, rows: Any, large: dict[str, Any], k: Any, batch_size: int, indices: Any) -> dict[str, Any]:
    """The columns of update k's batch."""
    if indices is not None:
        chosen = indices[k]
        present = tf.maximum(chosen, 0)
        columns = packing.columns(ops, tf.gather(rows, present))
        columns |= {name: tf.gather(column, present) for name, column in large.items()}
        columns["weights"] *= tf.cast(chosen >= 0, tf.float32)
        return columns

    # a slice with a moving start has no static shape, and XLA would pad it to all rows
    def part(column: Any) -> Any:
        return tf.reshape(column, (packing.num_updates, batch_size, *column.shape[1:]))[k]

    return packing.columns(ops, part(rows)) | {name: part(column) for name, column in large.items()}


def _loop(update: Callable, state: dict, num_updates: int, count: tf.Tensor) -> tuple[dict, Any]:
    """``count`` updates one after the other, at most ``num_updates``; their outputs as [num_updates, outputs]."""
    flat = tf.nest.flatten(state)
    outputs = tf.TensorArray(tf.float32, size=num_updates, element_shape=None)

    def body(k: tf.Tensor, flat_state: list, outputs: tf.TensorArray) -> tuple:
        new_state, row = update(k, tf.nest.pack_sequence_as(state, flat_state))
        return k + 1, tf.nest.flatten(new_state), outputs.write(k, row)

    _, flat, outputs = tf.while_loop(
        lambda k, *_: k < count, body, (tf.constant(0), flat, outputs), maximum_iterations=num_updates
    )
    return tf.nest.pack_sequence_as(state, flat), outputs.stack()
