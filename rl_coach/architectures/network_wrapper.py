"""The networks of an agent: each has an online network and, if wanted, a target network."""

from __future__ import annotations

import copy
import functools
from typing import Any, Sequence

import numpy as np

from rl_coach.architectures.architecture import Architecture, refuse
from rl_coach.architectures.blueprint import NetworkBlueprint
from rl_coach.architectures.framework import load_framework
from rl_coach.architectures.network_inputs import embed_what_is_there
from rl_coach.architectures.network_structure import EMBEDDING
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.target_learning import Fitted, TargetLearning
from rl_coach.architectures.threads import set_num_threads
from rl_coach.architectures.update import Optimizer
from rl_coach.base_parameters import DEFAULT_FRAMEWORK, AgentParameters
from rl_coach.core_types import ActionProbabilities, PredictionType, QActionStateValue, VStateValue
from rl_coach.saver import SaverCollection
from rl_coach.spaces import SpacesDefinition
from rl_coach.utilities import plain_data
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utils import CoachError


class NetworkWrapper:
    """A network of an agent. ``online_network`` learns; ``target_network`` is a delayed copy for computing targets.

    :param agent_parameters: the agent's parameters; ``network_wrappers[name]`` has the parameters of this network
    :param has_target: True for a target network
    :param has_global: True if several workers share the network
    :param name: the network's name, unique within its agent
    :param spaces: the agent's spaces
    :param rng: the source of initial weights

    :ivar optimizer: computes the learning rate of each training step
    """

    def __init__(
        self, agent_parameters: AgentParameters, has_target: bool, has_global: bool, name: str,
        spaces: SpacesDefinition, replicated_device: Any = None, worker_device: Any = None,
        rng: np.random.Generator | None = None,
    ):  # fmt: skip
        self.ap = agent_parameters
        self.name = name
        self.has_target = has_target
        self.has_global = has_global
        self.network_parameters = agent_parameters.network_wrappers[name]
        self.rng = np.random.default_rng() if rng is None else rng
        task = agent_parameters.task_parameters
        framework = task.framework_type if task else DEFAULT_FRAMEWORK
        wanted_threads = task.num_threads if task else None
        # in this order: the number of threads depends on the embedders,
        # and the framework reads this number when it computes for the first time
        embed_what_is_there(agent_parameters.network_wrappers, spaces)
        set_num_threads(framework, wanted_threads, agent_parameters.network_wrappers, spaces)
        # importing and building take seconds each: the checks between them let Ctrl-C end the run
        self.framework = load_framework(framework, task.num_devices if task else None)
        stop_signals.stop_if_asked()
        function = self.network_parameters.make_function(self.framework, spaces, name, self.rng)
        self.state = self.framework.hold(function, has_target)
        stop_signals.stop_if_asked()
        self.optimizer = Optimizer(self.network_parameters)
        self._exported: ExportedNetwork | None = None
        self._target_learning = TargetLearning(name, self.network_parameters, self.framework, self.state)
        self._spaces = spaces
        self.input_names = list(self.state.function.input_shapes)
        architecture = functools.partial(
            Architecture, agent_parameters, spaces, state=self.state, export=self.exported, rng=self.rng
        )
        self.online_network = architecture(f"{name}/online", group="weights", target_learning=self._target_learning)
        self._target = architecture(f"{name}/target", group="target_weights") if has_target else None

    @property
    def target_network(self) -> Architecture:
        """The target network. :raises CoachError: if the network has no target"""
        if self._target is None:
            raise CoachError(f"network '{self.name}' has no target network: set create_target_network to True")
        return self._target

    def exported(self) -> ExportedNetwork:
        """The network as an ONNX graph. It is exported only once: the online and the target network use the same graph.

        :raises CoachError: if the network has no inputs
        """
        if not self.state.function.input_shapes:
            raise CoachError(
                f"network '{self.name}' has no inputs and cannot predict: read its values with get_weights()"
            )
        # the weights are inputs of the graph, so it need not be exported again after an update
        if self._exported is None:
            self._exported = self.framework.export_network(self.state.function)
        return self._exported

    def blueprint(self) -> NetworkBlueprint:
        """The network without its weights as plain data, for a process that acts without a training framework."""
        return NetworkBlueprint.of(self.state.function, self.exported())

    def outputs_named(self, *suffixes: str) -> tuple[str, ...]:
        """The names of the network's outputs that end with one of the suffixes, such as ``'q'``, in order."""
        return tuple(name for name in self.online_network.output_names if name.split("_", 2)[2] in suffixes)

    @property
    def head_outputs(self) -> list[tuple[str, ...]] | None:
        """The names of all outputs of each head; None if the network only acts."""
        return self.state.function.head_outputs

    @property
    def is_recurrent(self) -> bool:
        """True if the network has a recurrent state."""
        return bool(self.state.function.recurrent_sizes)

    def update_target_network(self, rate: float = 1.0) -> None:
        """Update the target network: target = rate * online + (1 - rate) * target. A rate of 1 copies the online
        weights.
        """
        self.state.update_target(rate)

    def update_online_network(self, rate: float = 1.0) -> None:
        """Copy the weights of the network that workers share. Without workers, this has no effect."""

    def sync(self) -> None:
        """Copy the weights of the online network to the target network."""
        self.update_online_network()
        if self.has_target:
            self.update_target_network()

    def train_and_sync_networks(
        self, inputs: dict[str, np.ndarray], targets: Any, additional_fetches: Sequence = (),
        importance_weights: np.ndarray | None = None, use_inputs_for_apply_gradients: bool = False,
    ) -> Fitted:  # fmt: skip
        """Make an update towards targets that the caller computed.

        :param inputs: observations [B, ...] by name; for a policy head i, ``output_<i>_0`` has the actions
        :param targets: an array for each head: [B, A] for Q, [B] for V, advantages [B] for a policy
        :param importance_weights: [B], the weight of each row in the loss; None for ones
        :return: the loss, a list of the heads' losses, the norm of the gradients before clipping, and an empty list
        """
        refuse(additional_fetches)
        return self._target_learning.train(inputs, targets, importance_weights)

    def accumulate_gradients(
        self, inputs: dict[str, np.ndarray], targets: Any, importance_weights: np.ndarray | None = None
    ) -> Fitted:
        """Add a batch's gradients to the sum that ``apply_gradients_and_sync_networks`` applies.

        :return: the same as for ``train_and_sync_networks``, for this batch only
        """
        return self._target_learning.accumulate(inputs, targets, importance_weights)

    def apply_gradients_and_sync_networks(self, reset_gradients: bool = True, additional_inputs: Any = None) -> None:
        """Make an update with the sum of the accumulated gradients.

        :param reset_gradients: True to discard the accumulated gradients after the update
        """
        self.apply_gradients_to_online_network()
        if reset_gradients:
            self.online_network.reset_accumulated_gradients()

    def apply_gradients_to_online_network(
        self, gradients: Sequence[np.ndarray] | None = None, additional_inputs: Any = None
    ) -> None:
        """Make an optimizer step with the given gradients, or with the sum of the accumulated gradients.

        :param gradients: one for each weight array. None uses the sum, and does not discard it"""
        self.online_network.apply_gradients(gradients)

    def apply_gradients_to_global_network(
        self, gradients: Sequence[np.ndarray] | None = None, additional_inputs: Any = None
    ) -> None:
        """Make an optimizer step of the network that workers share. Here this is the online network."""
        self.apply_gradients_to_online_network(gradients)

    @staticmethod
    def parallel_prediction(network_input_tuples: Sequence[tuple[Architecture, dict[str, np.ndarray]]]) -> list:
        """The outputs of several networks in one list, each for its inputs."""
        return Architecture.parallel_predict(None, network_input_tuples)

    def set_is_training(self, state: bool) -> None:
        """Do nothing. The method exists for programs that were written for Coach 1.0.1. Batch normalisation and dropout
        are always in training mode in updates, and never in predictions.
        """

    def collect_savers(self, parent_path_suffix: str) -> SaverCollection:
        """Savers that write the online and the target weights to separate files; see
        ``Architecture.collect_savers``.
        """
        savers = self.online_network.collect_savers(parent_path_suffix)
        if self._target is not None:
            savers.update(self._target.collect_savers(parent_path_suffix))
        return savers

    def embedding(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """The output [B, D] of the middleware, which is the input of the heads. :param inputs: [B, ...] by name"""
        embedder = self._embedder
        for group in ("weights", "buffers"):
            embedder.state.set_arrays(group, self.state.arrays(group))
        return embedder.online_network.predict(inputs, outputs=[f"output_0_{EMBEDDING}"])

    @functools.cached_property
    def _embedder(self) -> NetworkWrapper:
        """A copy of this network with the middleware's output among its outputs."""
        parameters = copy.copy(self.ap)
        own = copy.copy(self.network_parameters)
        own.output_embedding = True
        parameters.network_wrappers = {self.name: own}
        # a separate generator, because the agent's generator must not change; the weights are replaced before use
        return NetworkWrapper(parameters, False, False, self.name, self._spaces, rng=np.random.default_rng(0))

    @property
    def layout(self) -> str:
        """The shapes of the weights as text. A network can restore the state of another network only if both texts are
        equal.
        """
        return " ".join("x".join(map(str, array.shape)) for array in self.state.arrays("weights"))

    def get_state(self) -> dict:
        """The state of the network, for a checkpoint: weights, buffers, optimizer slots and target as arrays by name;
        the copy for acting, if there is one; the batches of accumulated gradients; the number of updates; the state of
        the random generator.
        """
        arrays: dict[str, Any] = {group: _numbered(self.state.arrays(group)) for group in self.state.groups()}
        if self.state.kept is not None:
            arrays["kept"] = {group: _numbered(kept) for group, kept in self.state.kept.groups.items()}
        return {
            **arrays,
            "accumulated": list(self._target_learning.accumulated),
            "updates": self.state.updates,
            "order": self.state.function.order,
            "rng": self.rng.bit_generator.state,
        }

    def set_state(self, state: dict) -> None:
        """Restore the result of ``get_state``. :raises ValueError: if a shape does not fit"""
        for group in self.state.groups():
            self.state.set_arrays(group, self._read(group, state[group], state))
        # after the groups are set, because set_arrays discards the copy for acting
        if self.state.keeps_for_acting and "kept" in state:
            self.state.keep({group: self._read(group, kept, state) for group, kept in state["kept"].items()})
        self._target_learning.accumulated = list(state["accumulated"])
        self.state.updates = state["updates"]
        self.rng.bit_generator.state = state["rng"]

    def _read(self, group: str, arrays: dict[str, np.ndarray], state: dict) -> list[np.ndarray]:
        """The arrays of a group in a checkpoint, in the order of this network."""
        kind = "buffers" if "buffers" in group else "weights"
        written, wanted = (order.get(kind) for order in (state.get("order", {}), self.state.function.order))
        return _reordered(plain_data.in_order(arrays), self.state.arrays(group), written, wanted)

    def summary(self) -> str:
        """A text with the shapes of the weights and the number of trained parameters."""
        return self.state.function.summary()


def _numbered(arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Copies of the arrays in the form of a checkpoint: a dict with the position of each array as its name."""
    return plain_data.numbered(np.array(array) for array in arrays)


def _reordered(
    arrays: list[np.ndarray], own: list[np.ndarray], written: list[int] | None, wanted: list[int] | None
) -> list[np.ndarray]:
    """Arrays of a checkpoint in the order of the network that reads them. Another framework may have written them.

    :param own: the arrays of the reading network. They are used at position -1, for arrays that other frameworks do not
        have
    :param written: the ``order`` of the network that wrote the arrays; None if unknown
    :param wanted: the ``order`` of the reading network; None if unknown
    """
    if written is None or wanted is None or written == wanted or set(written) - {-1} != set(wanted) - {-1}:
        return arrays
    found: list[np.ndarray] = []
    # the slots are several groups, each in the order of the weights
    for start in range(0, len(own), max(1, len(wanted))):
        first = len(found) // len(wanted) * len(written)
        made = dict(zip(written, arrays[first : first + len(written)]))
        found += [own[start + i] if place == -1 else made[place] for i, place in enumerate(wanted)]
    return found


_PREDICTED = {VStateValue: ("v",), QActionStateValue: ("q",), ActionProbabilities: ("probabilities", "mean")}


def predictions_of(
    networks: dict[str, NetworkWrapper], states: dict[str, np.ndarray], prediction_type: type[PredictionType]
) -> Any:
    """The prediction of type ``prediction_type`` for states [B, ...], from the first network that has this output.

    :raises CoachError: if no network has this output
    """
    for network in networks.values():
        for name in network.outputs_named(*_PREDICTED.get(prediction_type, ())):
            return network.online_network.predict(states, outputs=[name])
    raise CoachError(f"none of the networks ({', '.join(networks)}) predicts {prediction_type.__name__}")
