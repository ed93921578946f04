"""TensorFlow's training steps: what is computed the same way is compiled once in a process."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="the functions are TensorFlow's")

from rl_coach.architectures.tensorflow_components.functions import fingerprint, shared  # noqa: E402
from rl_coach.architectures.tensorflow_components.learner import DirectCall  # noqa: E402


def traced(body, shape=(3,)):
    return tf.function(body, autograph=False).get_concrete_function(tf.TensorSpec(shape, tf.float32))


def of(body, shape=(3,)):
    return fingerprint(traced(body, shape).graph.as_graph_def())


def loop(factor, name):
    def body(x):
        with tf.name_scope(name):
            return tf.while_loop(lambda k, x: k < 3, lambda k, x: (k + 1, x * factor), (0, x))[1]

    return body


def test_names_do_not_matter():
    assert of(lambda x: tf.add(x, 1.0, name="first")) == of(lambda x: tf.add(x, 1.0, name="second"))
    assert of(loop(2.0, "first")) == of(loop(2.0, "second"))


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x + 2.0,
        lambda x: x - 1.0,
        lambda x: 1.0 + x,
        lambda x: x + tf.constant(1.0),
        lambda x: (x + 1.0) * 1.0,
    ],
    ids=["another constant", "another operation", "another order", "the same", "one operation more"],
)
def test_what_is_computed_matters(other, request):
    is_same = "the same" in request.node.name
    assert (of(lambda x: x + 1.0) == of(other)) == is_same


def test_shapes_and_bodies_of_loops_matter():
    assert of(lambda x: x + 1.0, (3,)) != of(lambda x: x + 1.0, (4,))
    assert of(loop(2.0, "same")) != of(loop(3.0, "same"))


def adding_to(variable):
    def body(x):
        variable.assign_add(x)
        return variable.read_value()

    return traced(body, (2,))


def test_variables_are_captured_anew():
    first, second = tf.Variable([1.0, 2.0]), tf.Variable([10.0, 20.0])
    functions = [adding_to(variable) for variable in (first, second)]
    one, other = (shared(function, False) for function in functions)
    assert one is other
    DirectCall(functions[1], one, {}, ())(np.ones(2, np.float32), [], None)
    assert second.numpy().tolist() == [11.0, 21.0] and first.numpy().tolist() == [1.0, 2.0]


def test_what_xla_compiles_is_not_what_it_does_not():
    def function():
        return traced(lambda x: x * 7.0)

    assert shared(function(), True) is shared(function(), True)
    assert shared(function(), True) is not shared(function(), False)
