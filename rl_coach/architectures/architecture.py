"""The online network or the target network, as agents use it."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

from rl_coach.architectures.network_saver import NetworkSaver
from rl_coach.architectures.onnx_model import with_weights
from rl_coach.architectures.onnx_predictor import OnnxPredictor
from rl_coach.architectures.target_learning import Fitted, TargetLearning
from rl_coach.architectures.threads import num_acting_threads
from rl_coach.base_parameters import AgentParameters
from rl_coach.saver import SaverCollection
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError


def refuse(additional_fetches: Any) -> None:
    """Refuse tensors of TensorFlow 1. :raises CoachError: if there are ``additional_fetches``"""
    if additional_fetches:
        raise CoachError("additional_fetches needs TensorFlow 1, which is not supported: use predict()")


class Architecture:
    """The online network or the target network. It predicts with its weights, and reads and writes them. The online
    network also learns.

    :param agent_parameters: the agent's parameters
    :param spaces: the agent's spaces
    :param name: ``<network>/online`` or ``<network>/target``
    :param state: the ``NetworkState`` with the weights and buffers of both networks
    :param group: ``'weights'`` for the online network, ``'target_weights'`` for the target
    :param export: returns the network as an ONNX graph; called at the first prediction
    :param rng: draws the noise of NoisyNet layers
    :param target_learning: makes the updates of the online network; None for a target

    :ivar waits_for_updates: if True, a prediction waits for the updates in progress and uses the new weights. If False,
        a prediction may use the weights from before these updates
    """

    def __init__(
        self, agent_parameters: AgentParameters, spaces: SpacesDefinition, name: str, *, state: Any, group: str,
        export: Any, rng: np.random.Generator, target_learning: TargetLearning | None = None,
    ):  # fmt: skip
        self.ap = agent_parameters
        self.spaces = spaces
        self.name = name
        self.network_wrapper_name = name.split("/")[0]
        self.network_parameters = agent_parameters.network_wrappers[self.network_wrapper_name]
        self._state = state
        self._groups = (group, "buffers" if group == "weights" else "target_buffers")
        self._export = export
        self._rng = rng
        self._target_learning = target_learning
        self._predictor: OnnxPredictor | None = None
        self._version = -1  # lower than each version number of the state
        # only values of the online network are kept for acting, so a target has to wait
        self.waits_for_updates = group != "weights"
        self._noise = state.function.noise_buffers
        self.has_noise = True  # False: the noise of NoisyNet layers is zero
        self.recurrent_state: dict[str, np.ndarray] = {}
        self.reset_internal_memory()

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs of ``predict``, in order: ``output_<head>_<name>``, for example ``output_0_q``."""
        return [f"output_{head}_{name}" for head, name in self._state.function.public_outputs]

    @property
    def recurrent_outputs(self) -> dict[str, str]:
        """The outputs with the new recurrent state, by the names of the inputs for the old one. Empty for a network
        without a recurrent state.
        """
        return {name: f"next_{name}" for name in self.recurrent_state}

    def reset_internal_memory(self) -> None:
        """Start the state of a recurrent network at zero, as at the beginning of an episode."""
        sizes = self._state.function.recurrent_sizes
        self.recurrent_state = {name: np.zeros((1, size), np.float32) for name, size in sizes.items()}

    def predict(
        self,
        inputs: dict[str, Any],
        outputs: list[str] | None = None,
        squeeze_output: bool = True,
        initial_feed_dict: Any = None,
    ) -> Any:
        """Compute the network's outputs.

        A recurrent network takes one row at a time and keeps its state until ``reset_internal_memory`` is called.

        :param inputs: arrays [B, ...] by name
        :param outputs: names of the outputs, from ``output_names``; None for all
        :param squeeze_output: return a single output itself, not a list of one
        :return: [B, ...] arrays, one for each output, in order
        :raises CoachError: if a recurrent network got several rows
        """
        predictor = self._fresh_predictor()
        if self.recurrent_state and len(next(iter(inputs.values()))) != 1:
            raise CoachError("a recurrent network predicts one row at a time: use predict_sequence for many rows")
        values = predictor({**inputs, **self.recurrent_state})
        names = list(predictor.exported.output_shapes)
        if self.recurrent_state:
            self.recurrent_state = {name: values[names.index(f"next_{name}")] for name in self.recurrent_state}
            kept = len(names) - len(self.recurrent_state)
            names, values = names[:kept], values[:kept]
        if outputs is not None:
            values = [values[names.index(name)] for name in outputs]
        return values[0] if squeeze_output and len(values) == 1 else values

    def predict_with(self, weights: list[np.ndarray], inputs: dict[str, Any]) -> Any:
        """Compute the network's outputs with other weights. The network itself does not change.

        :param weights: the weights to use, in the order of ``get_weights``
        :param inputs: arrays [B, ...] by name
        """
        predictor = self._fresh_predictor()
        predictor.set_weights(weights)  # the buffers do not change
        self._version = -1  # the next prediction loads the network's own weights again
        values = predictor(inputs)
        return values[0] if len(values) == 1 else values

    def predict_sequence(
        self, rows: dict[str, np.ndarray], output: str, recurrent_state: dict[str, np.ndarray] | None = None
    ) -> np.ndarray:
        """Compute an output for T consecutive steps of an episode.

        The recurrent state that the network uses to act does not change.

        :param rows: the inputs [T, ...] by name
        :param output: the name of the output
        :param recurrent_state: the recurrent state before the first step; None for zeros
        :return: the output [T, ...]
        """
        if not self.recurrent_state:
            return self.predict(rows, outputs=[output])
        acting_state = self.recurrent_state
        self.reset_internal_memory()
        self.recurrent_state = recurrent_state or self.recurrent_state
        length = len(next(iter(rows.values())))
        steps = [{name: column[t : t + 1] for name, column in rows.items()} for t in range(length)]
        values = np.concatenate([self.predict(step, outputs=[output]) for step in steps])
        self.recurrent_state = acting_state
        return values

    def unroll(self, steps: dict[str, np.ndarray], recurrent_state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute the outputs of a recurrent network for S sequences of T steps in parallel.

        The recurrent state that the network uses to act does not change.

        :param steps: the inputs [S, T, ...] by name
        :param recurrent_state: the recurrent state before the first steps, [S, size] by name
        :return: [S, T, ...] by name, the outputs and the recurrent state after each step (see ``recurrent_outputs``)
        """
        predictor, state = self._fresh_predictor(), recurrent_state
        names, found = list(predictor.exported.output_shapes), []
        for t in range(next(iter(steps.values())).shape[1]):
            inputs = {name: np.ascontiguousarray(column[:, t]) for name, column in steps.items()}
            found.append(dict(zip(names, predictor({**inputs, **state}))))
            state = {name: found[-1][output] for name, output in self.recurrent_outputs.items()}
        return {name: np.stack([outputs[name] for outputs in found], axis=1) for name in names}

    def _fresh_predictor(self) -> OnnxPredictor:
        kept = None if self.waits_for_updates else self._state.kept
        version = self._state.version if kept is None else kept.version
        if self._version != version:
            arrays = self._state.arrays(*self._groups) if kept is None else kept.arrays
            # arrays that are not float32 are states of random generators, which only updates use
            weights = [array for array in arrays if array.dtype == np.float32]
            if self._predictor is None:
                # not earlier, so that a network that never predicts is not exported
                threads = num_acting_threads(self.num_parameters, self._state.has_convolutions)
                self._predictor = OnnxPredictor(self._export(), weights, threads)
            else:
                self._predictor.set_weights(weights)
            self._version = version
        assert self._predictor is not None
        if self._noise:
            self._renew_noise(self._predictor.weights)
        return self._predictor

    def onnx_model(self, metadata: Mapping[str, str], outputs: Sequence[str] | None = None) -> bytes:
        """Return a complete ONNX model with the current weights. The noise of NoisyNet layers is zero.

        :param metadata: the model's ``metadata_props``
        :param outputs: names of the outputs to keep, from ``output_names`` and ``recurrent_outputs``; None for all
        :return: the serialised ``ModelProto``
        """
        arrays = [array for array in self._state.arrays(*self._groups) if array.dtype == np.float32]
        first = self._state.num_arrays(self._groups[0])
        for index in self._noise:
            arrays[first + index] = np.zeros_like(arrays[first + index])
        return with_weights(self._export(), arrays, metadata, outputs)

    def _renew_noise(self, arrays: list[np.ndarray]) -> None:
        first = self._state.num_arrays(self._groups[0])
        for index in self._noise:
            shape = arrays[first + index].shape
            sample = self._rng.standard_normal(shape) if self.has_noise else np.zeros(shape)
            # in place: ONNX Runtime reads the array at its bound address
            arrays[first + index][...] = np.sign(sample) * np.sqrt(np.abs(sample))

    @property
    def num_parameters(self) -> int:
        """The number of trained parameters: the sum of the sizes of all weights."""
        return sum(array.size for array in self._state.arrays(self._groups[0]))

    def get_weights(self) -> list[np.ndarray]:
        """Copies of the trained weights, in the order of the network's variables."""
        return [np.array(array) for array in self._state.arrays(self._groups[0])]

    def set_weights(self, weights: list[np.ndarray], rate: float = 1.0) -> None:
        """Set the weights to (1 - rate) * old weights + rate * ``weights``."""
        if rate != 1.0:
            weights = [old + rate * (new - old) for old, new in zip(self.get_weights(), weights)]
        self._state.set_arrays(self._groups[0], weights)

    def get_variable_value(self, variable: int) -> np.ndarray:
        """A copy of one weight array. :param variable: the position of the array in ``get_weights``"""
        return self.get_weights()[self._position(variable)]

    def set_variable_value(self, assign_op: int, value: np.ndarray, placeholder: Any = None) -> None:
        """Replace one weight array. ``placeholder`` is ignored.

        :param assign_op: the position of the array in ``get_weights``"""
        weights = self.get_weights()
        weights[self._position(assign_op)] = np.asarray(value)
        self.set_weights(weights)

    def _position(self, variable: Any) -> int:
        size = len(self._state.arrays(self._groups[0]))
        if not isinstance(variable, (int, np.integer)) or not 0 <= variable < size:
            raise CoachError(
                f"network '{self.name}' has no variable {variable!r}: give the position of a weight in get_weights(), "
                f"0 to {size - 1}"
            )
        return int(variable)

    @classmethod
    def construct(cls, variable_scope: str, devices: Sequence[str], *args: Any, **kwargs: Any) -> Architecture:
        """Call the constructor with ``args`` and ``kwargs``. The other arguments were for TensorFlow 1 and are
        ignored.
        """
        return cls(*args, **kwargs)

    @staticmethod
    def parallel_predict(
        sess: Any, network_input_tuples: Sequence[tuple[Architecture, dict[str, np.ndarray]]]
    ) -> list[np.ndarray]:
        """The outputs of several networks in one list, each for its inputs. The session ``sess`` is ignored."""
        found = (network.predict(inputs, squeeze_output=False) for network, inputs in network_input_tuples)
        return [output for outputs in found for output in outputs]

    @property
    def _learning(self) -> TargetLearning:
        if self._target_learning is None:
            raise CoachError(
                f"network '{self.name}' does not learn: train the online network, then call update_target_network()"
            )
        return self._target_learning

    def train_on_batch(
        self, inputs: dict[str, np.ndarray], targets: Any, scaler: float = 1.0, additional_fetches: Any = None,
        importance_weights: np.ndarray | None = None,
    ) -> Fitted:  # fmt: skip
        """Make an update towards targets that the caller computed; see ``TargetLearning.train``.

        :param scaler: divides the gradients
        """
        refuse(additional_fetches)
        return self._learning.train(inputs, targets, importance_weights, scaler)

    def accumulate_gradients(
        self, inputs: dict[str, np.ndarray], targets: Any, additional_fetches: Any = None,
        importance_weights: np.ndarray | None = None, no_accumulation: bool = False,
    ) -> Fitted:  # fmt: skip
        """Add a batch's gradients to the sum that ``apply_gradients_and_sync_networks`` applies.

        :param no_accumulation: discard the earlier batches
        :return: the same as for ``train_on_batch``, for this batch only
        """
        refuse(additional_fetches)
        return self._learning.accumulate(inputs, targets, importance_weights, no_accumulation)

    def reset_accumulated_gradients(self) -> None:
        """Discard the accumulated gradients."""
        self._learning.accumulated = []

    def apply_gradients(self, gradients: Sequence[np.ndarray] | None, scaler: float = 1.0) -> None:
        """Make an optimizer step with gradients that the caller computed.

        :param gradients: one for each weight array, in the order of ``get_weights``; they are not clipped. None uses
            the sum of the accumulated gradients, and does not discard this sum
        :param scaler: divides the gradients
        """
        self._learning.apply(gradients, scaler)

    def apply_and_reset_gradients(self, gradients: Sequence[np.ndarray], scaler: float = 1.0) -> None:
        """Make an optimizer step with the given gradients, then discard the accumulated gradients."""
        self.apply_gradients(gradients, scaler)
        self.reset_accumulated_gradients()

    def collect_savers(self, parent_path_suffix: str) -> SaverCollection:
        """Return a saver that writes the weights to a separate file. The run's checkpoints contain the weights too.

        :param parent_path_suffix: the path of the agent that owns the network, such as ``level/agent``
        """
        path = ".".join([*parent_path_suffix.split("/"), *self.name.split("/")]).lstrip(".")
        return SaverCollection(NetworkSaver(path, self._state, self._groups))
