"""A network's state in TensorFlow variables, and the training steps that change this state. The steps are compiled with
XLA. One call makes all updates of a training phase.

On CPUs, the convolutions of XLA are slower than TensorFlow's. An update of DQN's Nature network takes 50 ms of
processor time if the whole update is compiled, 43 ms if nothing is compiled, and 32 ms if only the optimizer is
compiled.

Compiled functions are called without TensorFlow's Python wrapper. An update of a 64 x 64 Q-network then takes about 90
us of processor time, including 40 us in XLA. ``ConcreteFunction.__call__`` would add 260 us, and a new tensor for each
batch 80 us more.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from rl_coach.architectures.compilation_cache import forget_compiled_steps
from rl_coach.architectures.learner import CompiledStep, Learner, StepLayout, Variables
from rl_coach.architectures.network_state import CompiledNetworkState
from rl_coach.architectures.tensorflow_components import ops
from rl_coach.architectures.tensorflow_components.functions import shared
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import Frameworks
from rl_coach.utils import CoachError

TRAINED_GROUPS = ("weights", "buffers", "slots")
ALIGNMENT = 64  # bytes; TensorFlow copies memory with an address that is not a multiple of this number


class TensorFlowNetworkState(CompiledNetworkState):
    """The state of a network on TensorFlow; see ``CompiledNetworkState``."""

    ops = ops

    def read(self) -> list[tf.Tensor]:
        """The variables' values as tensors. Within a traced step, these are the values at this point of the step."""
        return [variable.value() for variable in self.variables]

    def assign(self, values: Sequence, old: Sequence) -> None:
        """Assign new values to the variables. :param old: the values before the step"""
        for variable, value, before in zip(self.variables, values, old):
            # an unchanged value is the same object as before and need not be assigned
            if value is not before:
                variable.assign(value)

    def _hold(self, array: np.ndarray) -> tf.Variable:
        return tf.Variable(array)

    def _read(self, index: int) -> np.ndarray:
        return self.variables[index].numpy()

    def _write(self, index: int, value: np.ndarray) -> None:
        tensor = tf.constant(value)
        self.variables[index].assign(tensor)
        # stored here, so that acting need not read the variable
        self.published[index] = tensor._numpy()

    def _compile(self, change: Callable[[Sequence], list]) -> Callable[[], None]:
        @tf.function(autograph=False)
        def changed() -> None:
            before = self.read()
            self.assign(change(before), before)

        def call() -> None:
            self.finish()  # an update may still run in another thread
            changed()
            # the published values are now out of date
            self.published = {}

        return call


class TensorFlowLearner(Learner):
    """The learner on TensorFlow; see ``Learner``.

    :param published: names of the networks that act between training phases; the step returns their new weights
    """

    networks: dict[str, TensorFlowNetworkState]

    def __init__(self, step: TrainingStep, networks: dict[str, TensorFlowNetworkState], published: tuple[str, ...]):
        super().__init__(ops, step, networks)
        self.published = published
        self._has_convolutions = any(network.has_convolutions for network in networks.values())

    def _compile(self, layout: StepLayout, compute: Callable[..., tuple[Variables, list]]) -> CompiledStep:
        def step(vector: tf.Tensor, *others: tf.Tensor) -> tuple[list, list]:
            *large, indices = others if layout.is_indexed else (*others, None)
            before = {name: network.read() for name, network in self.networks.items()}
            after, results = compute(layout, before, vector, large, indices)
            for name, network in self.networks.items():
                network.assign(after[name], before[name])
            return results, [after[name][index] for name, index in acting_weights]

        acting_weights = [
            (name, index)
            for name in (self.published if layout.changes_weights else ())
            for index in self.networks[name].layout.variables_of(("weights", "buffers"))
        ]
        packing = layout.packing
        signature = [tf.TensorSpec((packing.size,), tf.float32)]
        signature += [tf.TensorSpec(shape, dtype) for shape, dtype in packing.large.values()]
        if layout.is_indexed:
            signature.append(tf.TensorSpec((packing.num_updates, layout.batch_size), tf.int32))
        # with convolutions, only the optimizer is compiled; see the figures in the module's docstring
        uses_xla = not self._has_convolutions
        traced = tf.function(step, jit_compile=uses_xla, autograph=False).get_concrete_function(*signature)
        call = DirectCall(traced, shared(traced, uses_xla), self.networks, acting_weights)
        is_waited_for = not any(network.keeps_for_acting for network in self.networks.values())
        return call if is_waited_for or not layout.changes_weights else CallBeside(call)

    def _apply(
        self, state: dict, gradients: dict[str, list], buffers: dict, optimizer_scalars: dict
    ) -> tuple[dict, dict[str, Any]]:
        if not self._has_convolutions:
            return super()._apply(state, gradients, buffers, optimizer_scalars)
        # only the groups that change, because the compiled function would copy the others
        trained = {name: {group: state[name][group] for group in TRAINED_GROUPS} for name in gradients}
        compiled = tf.function(super()._apply, jit_compile=True, autograph=False)
        after, norms = compiled(trained, gradients, {name: buffers[name] for name in gradients}, optimizer_scalars)
        return {name: {**old, "buffers": buffers[name], **after.get(name, {})} for name, old in state.items()}, norms

    def _gradients(self, function: Callable, weights: dict[str, list]) -> tuple[dict[str, list], Any]:
        # persistent, because each loss needs a separate backward pass
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(weights)
            losses, auxiliary = function(weights)
        found = {
            # a weight that a loss does not use has the gradient 0, as on JAX
            name: tape.gradient(loss, weights[name], unconnected_gradients=tf.UnconnectedGradients.ZERO)
            for name, loss in losses.items()
        }
        return found, auxiliary

    def _loop(self, update: Callable, state: dict, num_updates: int, count: Any) -> tuple[dict, Any]:
        flat = tf.nest.flatten(state)
        outputs = tf.TensorArray(tf.float32, size=num_updates, element_shape=None)

        def body(k: tf.Tensor, flat_state: list, outputs: tf.TensorArray) -> tuple:
            new_state, row = update(k, tf.nest.pack_sequence_as(state, flat_state))
            return k + 1, tf.nest.flatten(new_state), outputs.write(k, row)

        _, flat, outputs = tf.while_loop(
            lambda k, *_: k < count, body, (tf.constant(0), flat, outputs), maximum_iterations=num_updates
        )
        return tf.nest.pack_sequence_as(state, flat), outputs.stack()


class DirectCall:
    """A traced step that is called directly in TensorFlow's runtime, without recording gradients. See
    ``Learner._compile``.

    :param traced: the traced function; its first argument is a vector. A reference to it is kept, because it owns the
        captured tensors
    :param function: the function to call, with the vector and the captured tensors as arguments
    :param networks: the networks that the step changes
    :param acting_weights: the last outputs of the step are the new weights for acting; for each of them, the network
        and the index of the variable
    """

    def __init__(
        self,
        traced: Any,
        function: Any,
        networks: dict[str, TensorFlowNetworkState],
        acting_weights: Sequence[tuple[str, int]],
    ):
        self._traced = traced
        self._name = function.name
        # handles of the networks' variables: the traced function reads and assigns them
        self._captured = list(traced.captured_inputs)
        self._num_outputs = len(traced.outputs)
        self._num_results = self._num_outputs - len(acting_weights)
        self._context = context.context()
        self._vector = HeldTensor(traced.inputs[0].shape[0])
        places = list(enumerate(acting_weights, self._num_results))
        self._places = [
            (network, [(place, index) for place, (name, index) in places if name == owner])
            for owner, network in networks.items()
        ]

    def __call__(self, vector: np.ndarray, large: list[np.ndarray], indices: np.ndarray | None) -> list[np.ndarray]:
        """Make the step and return its results.

        :raises CoachError: if the stored step of an earlier run was damaged, for example by a full disk
        """
        # the last call no longer reads this memory, because train waits for a call before it makes the next call
        self._vector.array[:] = vector  # copied to memory of a tensor, because a new tensor would cost 80 us
        arguments = [self._vector.tensor, *map(tf.constant, large)]
        if indices is not None:
            arguments.append(tf.constant(indices, tf.int32))
        try:
            outputs = self._context.call_function(self._name, arguments + self._captured, self._num_outputs)
        except (tf.errors.OutOfRangeError, tf.errors.DataLossError) as error:
            if not forget_compiled_steps(Frameworks.tensorflow):
                raise
            # no second try: TensorFlow does not compile this function again in this process
            raise CoachError(
                "the stored compiled step of an earlier run is damaged; Coach has deleted all stored steps: start again"
            ) from error
        for network, places in self._places:
            network.published = {index: outputs[place]._numpy() for place, index in places}
        return [output._numpy() for output in outputs[: self._num_results]]


class CallBeside:
    """A compiled step that runs in a separate thread, except for the first call, which compiles it."""

    def __init__(self, call: CompiledStep):
        self._call = call
        self._thread: ThreadPoolExecutor | None = None

    def __call__(self, vector: np.ndarray, large: list[np.ndarray], indices: np.ndarray | None) -> list[Any]:
        if self._thread is None:
            # only one thread, so that updates are made in the order of the calls
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="learning")
            return self._call(vector, large, indices)
        return [OutputsToCome(self._thread.submit(self._call, vector, large, indices))]


class OutputsToCome:
    """The outputs [K, outputs] of updates in another thread. Converting them to an array waits for the updates."""

    def __init__(self, results: Future):
        self._results = results

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._results.result()[0], dtype)


class HeldTensor:
    """A float32 tensor on the memory of the NumPy array ``array``. Writing to ``array`` changes the tensor.

    :param size: the length of the vector
    """

    def __init__(self, size: int):
        # more memory than needed, so that the array can start at a multiple of ALIGNMENT
        room = np.empty(size * 4 + ALIGNMENT, np.uint8)
        start = -room.ctypes.data % ALIGNMENT
        self.array = room[start : start + size * 4].view(np.float32)
        self.tensor = tf.experimental.dlpack.from_dlpack(self.array.__dlpack__())
