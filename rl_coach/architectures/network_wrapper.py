"""A network and its target, as an agent holds them."""

from __future__ import annotations

import copy
import functools
from typing import Any, Sequence

import numpy as np

from rl_coach.architectures.architecture import Architecture
from rl_coach.architectures.blueprint import NetworkBlueprint
from rl_coach.architectures.frameworks import load_framework
from rl_coach.architectures.head_losses import head_loss_rule
from rl_coach.architectures.learner import Learner, LearningResult
from rl_coach.architectures.network_inputs import embed_what_is_there
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.packing import padded
from rl_coach.architectures.threads import set_num_threads
from rl_coach.architectures.update import Optimizer, TrainingStep
from rl_coach.base_parameters import AgentParameters, Frameworks, NetworkParameters
from rl_coach.core_types import ActionProbabilities, PredictionType, QActionStateValue, VStateValue
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError


class OnlineNetwork(Architecture):
    """The network that learns; it also takes gradients, from agents that accumulate them themselves.

    :param wrapper: the wrapper that holds it
    """

    def __init__(self, wrapper: NetworkWrapper, *args: Any):
        super().__init__(*args)
        self._wrapper = wrapper

    def accumulate_gradients(
        self,
        inputs: dict[str, np.ndarray],
        targets: Any,
        additional_fetches: Any = None,
        importance_weights: np.ndarray | None = None,
    ) -> tuple[float, list[float], float, list]:
        """See ``NetworkWrapper.accumulate_gradients``."""
        return self._wrapper.accumulate_gradients(inputs, targets, importance_weights)

    def train_on_batch(
        self,
        inputs: dict[str, np.ndarray],
        targets: Any,
        additional_fetches: Sequence = (),
        importance_weights: np.ndarray | None = None,
    ) -> tuple[float, list[float], float, list]:
        """See ``NetworkWrapper.train_and_sync_networks``."""
        return self._wrapper.train_and_sync_networks(inputs, targets, additional_fetches, importance_weights)


class NetworkWrapper:
    """A network of an agent: ``online_network`` learns, and ``target_network`` is moved towards it.

    :param agent_parameters: the agent's parameters; ``network_wrappers[name]`` are this network's
    :param has_target: keep a target network
    :param has_global: the network is shared between workers
    :param name: the network's name, unique within its agent
    :param spaces: the agent's spaces
    :param rng: the source of initial weights
    """

    def __init__(
        self,
        agent_parameters: AgentParameters,
        has_target: bool,
        has_global: bool,
        name: str,
        spaces: SpacesDefinition,
        replicated_device: Any = None,
        worker_device: Any = None,
        rng: np.random.Generator | None = None,
    ):
        self.ap = agent_parameters
        self.name = name
        self.has_target = has_target
        self.has_global = has_global
        self.network_parameters = agent_parameters.network_wrappers[name]
        self.rng = np.random.default_rng() if rng is None else rng
        task = agent_parameters.task_parameters
        framework = task.framework_type if task else Frameworks.tensorflow
        wanted_threads = task.num_threads if task else None
        embed_what_is_there(agent_parameters.network_wrappers, spaces)
        set_num_threads(framework, wanted_threads, agent_parameters.network_wrappers, spaces)
        self.framework = load_framework(framework)
        function = self.network_parameters.make_function(self.framework, spaces, name, self.rng)
        self.state = self.framework.hold(function, has_target)
        self._optimizer = Optimizer(self.network_parameters)
        self._exported: ExportedNetwork | None = None
        self._accumulated: list[dict[str, np.ndarray]] = []
        self.input_names = list(self.state.function.input_shapes)
        self.online_network = OnlineNetwork(self, self.state, "weights", self.exported, self.rng)
        self._target = Architecture(self.state, "target_weights", self.exported, self.rng) if has_target else None

    @property
    def target_network(self) -> Architecture:
        """The target network.

        :raises CoachError: there is none
        """
        if self._target is None:
            raise CoachError(f"network '{self.name}' has no target network: set create_target_network")
        return self._target

    def exported(self) -> ExportedNetwork:
        """The network as an ONNX graph; exported once, for online and target network alike.

        :raises CoachError: it has no inputs
        """
        if not self.state.function.input_shapes:
            raise CoachError(f"network '{self.name}' holds values and predicts nothing: read get_weights()")
        if self._exported is None:
            self._exported = self.framework.export_network(self.state)
        return self._exported

    def blueprint(self) -> NetworkBlueprint:
        """The network as plain data but for its weights, to be acted with where there is no training framework."""
        return NetworkBlueprint.of(self.state.function, self.exported())

    def outputs_named(self, *suffixes: str) -> tuple[str, ...]:
        """Those of its outputs that are called so, in the order of the network."""
        return tuple(name for name in self.online_network.output_names if name.split("_", 2)[2] in suffixes)

    @property
    def is_recurrent(self) -> bool:
        """True if the network carries a state from step to step."""
        return bool(self.state.function.recurrent_sizes)

    def learning_rate_at(self, training_step: int) -> float:
        """The step size in a training step, from 0 on."""
        return self._optimizer.learning_rate(training_step)

    def update_target_network(self, rate: float = 1.0) -> None:
        """Move the target's weights towards the online ones; 1 copies them."""
        self.state.update_target(rate)

    def update_online_network(self, rate: float = 1.0) -> None:
        """Move the online weights towards the target's; 1 copies them."""
        self.online_network.set_weights(self.target_network.get_weights(), rate)

    def train_and_sync_networks(
        self,
        inputs: dict[str, np.ndarray],
        targets: Any,
        additional_fetches: Sequence = (),
        importance_weights: np.ndarray | None = None,
        use_inputs_for_apply_gradients: bool = False,
    ) -> tuple[float, list[float], float, list]:
        """Make an update towards targets that the caller computed.

        :param inputs: [B, ...] observations by name; ``output_<i>_0`` holds the actions of policy head i
        :param targets: an array for each head: [B, A] for Q, [B] for V, [B] advantages for a policy
        :param importance_weights: [B], each row's weight in the loss; ones if not given
        :return: the loss, each head's loss, the gradients' norm before clipping, and an empty list
        """
        if additional_fetches:
            raise CoachError("additional_fetches named TensorFlow 1 tensors, which are gone: use predict()")
        return self._read(self._teacher.train(padded(self._supervised_columns(inputs, targets, importance_weights))))

    def accumulate_gradients(
        self, inputs: dict[str, np.ndarray], targets: Any, importance_weights: np.ndarray | None = None
    ) -> tuple[float, list[float], float, list]:
        """Add a batch to those that ``apply_gradients_and_sync_networks`` will learn from together.

        Weights do not change in between, so the batches are kept instead of their gradients; the sum is the same.

        :return: as ``train_and_sync_networks``, for this batch alone
        """
        columns = self._supervised_columns(inputs, targets, importance_weights)
        self._accumulated.append(columns)
        updates = self.state.updates
        result = self._read(self._examiner.train(padded(columns)))
        self.state.updates = updates  # nothing was updated
        return result

    def apply_gradients_and_sync_networks(self, reset_gradients: bool = True, additional_inputs: Any = None) -> None:
        """Make an update with the sum of the gradients accumulated.

        :param reset_gradients: forget them afterwards
        """
        if not self._accumulated:
            raise CoachError(f"network '{self.name}' has no gradients to apply: call accumulate_gradients first")
        rows = sum(len(columns["weights"]) for columns in self._accumulated)
        # the loss is a mean over all rows; each batch's own mean is wanted, and their sum
        scaled = [{**c, "weights": c["weights"] * (rows / len(c["weights"]))} for c in self._accumulated]
        self._teacher.train(padded({name: np.concatenate([c[name] for c in scaled]) for name in scaled[0]}))
        if reset_gradients:
            self._accumulated = []

    @staticmethod
    def parallel_prediction(network_input_tuples: Sequence[tuple[Architecture, dict[str, np.ndarray]]]) -> list:
        """The predictions of several networks, each for its own inputs, in one list."""
        predictions = (network.predict(inputs) for network, inputs in network_input_tuples)
        return [output for outputs in predictions for output in (outputs if isinstance(outputs, list) else [outputs])]

    def _supervised_columns(
        self, inputs: dict[str, np.ndarray], targets: Any, importance_weights: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        columns = {f"states/{name}": np.asarray(inputs[name]) for name in self.input_names}
        for i, target in enumerate(targets if isinstance(targets, (list, tuple)) else [targets]):
            columns[f"extra/target_{i}"] = np.asarray(target, np.float32)
            if f"output_{i}_0" in inputs:
                columns[f"extra/action_{i}"] = np.asarray(inputs[f"output_{i}_0"], np.float32)
        size = len(columns[f"states/{self.input_names[0]}"])
        weights = np.ones(size, np.float32) if importance_weights is None else importance_weights
        columns["weights"] = np.asarray(weights, np.float32).reshape(size)
        return columns

    def _read(self, result: LearningResult) -> tuple[float, list[float], float, list]:
        losses = [float(loss[0]) for loss in result.signals.values()]
        return float(result.losses[self.name][0]), losses, float(result.gradient_norms[self.name][0]), []

    @functools.cached_property
    def _teacher(self) -> Learner:
        """Learns from the heads' targets."""
        return self._learner_of_targets(self.network_parameters)

    @functools.cached_property
    def _examiner(self) -> Learner:
        """Tells losses and gradients, and leaves the network as it is."""
        parameters = copy.copy(self.network_parameters)
        parameters.optimizer_type, parameters.learning_rate = "SGD", 0.0
        return self._learner_of_targets(parameters)

    def _learner_of_targets(self, parameters: NetworkParameters) -> Learner:
        step = TrainingStep(
            {self.name: self.state.function}, {self.name: parameters}, head_loss_rule(self.name, parameters)
        )
        return self.framework.make_learner(step, {self.name: self.state}, (self.name,))

    @property
    def layout(self) -> str:
        """The shapes of the weights, which another network must have to take this one's state."""
        return " ".join("x".join(map(str, array.shape)) for array in self.state.arrays("weights"))

    def get_state(self) -> dict:
        """Weights, buffers, optimizer state and target as arrays by name, gradients waiting to be applied, number of
        updates, and the noise."""
        arrays: dict[str, Any] = {
            group: {f"{i:03d}": np.array(array) for i, array in enumerate(self.state.arrays(group))}
            for group in self.state.groups()
        }
        return {
            **arrays,
            "accumulated": list(self._accumulated),
            "updates": self.state.updates,
            "rng": self.rng.bit_generator.state,
        }

    def set_state(self, state: dict) -> None:
        """Restore what ``get_state`` gave.

        :raises ValueError: a shape does not fit
        """
        for group in self.state.groups():
            self.state.set_arrays(group, [state[group][name] for name in sorted(state[group])])
        self._accumulated = list(state["accumulated"])
        self.state.updates = state["updates"]
        self.rng.bit_generator.state = state["rng"]

    def summary(self) -> str:
        """The layers with their shapes and numbers of parameters, as text."""
        return self.state.function.summary()


_PREDICTED = {VStateValue: ("v",), QActionStateValue: ("q",), ActionProbabilities: ("probabilities", "mean")}


def predictions_of(
    networks: dict[str, NetworkWrapper], states: dict[str, np.ndarray], prediction_type: type[PredictionType]
) -> Any:
    """Prediction of the first of several networks that makes one of a kind, for states [B, ...].

    :raises CoachError: no network does
    """
    for network in networks.values():
        for name in network.outputs_named(*_PREDICTED.get(prediction_type, ())):
            return network.online_network.predict(states, outputs=[name])
    raise CoachError(f"none of the networks ({', '.join(networks)}) predicts {prediction_type.__name__}")
