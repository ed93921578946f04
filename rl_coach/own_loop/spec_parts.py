"""Parts of a specification that TensorForce and RLgraph describe alike: layers, optimizers, memories, exploration."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import BatchnormActivationDropout, Conv2d, Dense, Flatten, Layer, LayerNorm
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters, LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, NetworkParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.own_loop.spec_fields import Fields, shown
from rl_coach.schedules import ConstantSchedule, LinearSchedule, PieceWiseSchedule, Schedule
from rl_coach.utils import CoachError

logger = logging.getLogger("rl_coach")

OPTIMIZERS = {"adam": "Adam", "rmsprop": "RMSProp", "gradient_descent": "SGD", "sgd": "SGD"}
ACTIVATIONS = {
    **{name: name for name in ("relu", "tanh", "sigmoid", "elu", "selu", "softplus", "leaky_relu")},
    "lrelu": "leaky_relu",
    "linear": "none",
    "identity": "none",
    "none": "none",
}
_MOST_UNITS = 65_536
SEPARATE = "use_separate_networks_per_head"


@dataclass
class Definition:
    """A specification as arguments of ``make_agent``.

    :param parameters: the algorithm's, with the parts that the specification names
    :param settings: values by path, for ``apply_settings``
    :param arguments: further arguments of ``make_agent``
    :param buffer_size: steps after which an episode is cut; None for no limit
    """

    parameters: AgentParameters
    settings: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    buffer_size: int | None = None

    def set(self, path: str, value: Any) -> None:
        """Change a setting, unless the specification does not say it (None)."""
        if value is not None:
            self.settings[path] = value

    def wait(self, steps: int | None) -> None:
        """Act with the policy for so many steps before the first update."""
        if steps is not None:
            self.arguments["heatup_steps"] = steps
            self.settings["algorithm.heatup_using_network_decisions"] = True

    def act_at_random(self) -> None:
        """Never leave the heatup, and learn nothing."""
        self.arguments.update(heatup_steps=10**18, updates_itself=False)


@dataclass
class Stack:
    """Layers of a network.

    :param convolutions: those for images
    :param dense: those behind them
    :param cells: number of LSTM cells at the end; None for none
    """

    convolutions: list[Layer] = field(default_factory=list)
    dense: list[Layer] = field(default_factory=list)
    cells: int | None = None

    @property
    def units(self) -> list[int]:
        """Units of the fully connected layers."""
        return [layer.units for layer in self.dense if isinstance(layer, Dense)]


def stack_of(value: Any, where: str, activation: str) -> Stack:
    """The layers of a list of dicts, as ``{"type": "dense", "size": 64}``.

    :param activation: of a layer that names none
    :raises CoachError: it is no such list; there is no such layer; or they are in an order that networks here lack
    """
    if isinstance(value, Mapping) and set(value) == {"layers"}:
        value = value["layers"]
    if not isinstance(value, (list, tuple)):
        raise CoachError(f"the spec's '{where}' is a list of layers, not {shown(value)}")
    found = Stack()
    for number, one in enumerate(value):
        _add_layer(found, Fields(one, f"{where}[{number}]"), activation)
    return found


def _add_layer(found: Stack, layer: Fields, activation: str) -> None:
    known = ("dense", "conv2d", "flatten", "lstm", "internal_lstm", "nonlinearity", "dropout", "layer_norm")
    kind = layer.choice("type", known) or _missing(layer, "type")
    layer.get("scope")
    if found.cells is not None:
        raise CoachError(f"the spec's '{layer.path('type')}': no layer may follow the LSTM")
    if kind == "dense":
        found.dense += [Dense(_units(layer)), *_activation(layer, activation)]
    elif kind == "conv2d":
        if found.dense:
            raise CoachError(f"the spec's '{layer.path('type')}': convolutions come before other layers")
        window, stride = layer.whole("window", "kernel_size", high=1000), layer.whole("stride", "strides", high=1000)
        filters = layer.whole("size", "filters", high=_MOST_UNITS) or _missing(layer, "size")
        layer.choice("padding", ("VALID", "valid"))
        found.convolutions += [Conv2d(filters, window or 3, stride or 1), *_activation(layer, "relu")]
    elif kind == "flatten":
        found.dense.append(Flatten())
    elif kind in ("lstm", "internal_lstm"):
        found.cells = _units(layer)
    else:
        found.dense.append(_plain_layer(kind, layer))
    layer.finish()


def _plain_layer(kind: str, layer: Fields) -> Layer:
    if kind == "layer_norm":
        return LayerNorm()
    if kind == "dropout":
        return BatchnormActivationDropout(dropout_rate=layer.number("rate", 0, 0.999) or 0.0)
    return BatchnormActivationDropout(activation_function=ACTIVATIONS[layer.choice("name", ACTIVATIONS) or "relu"])


def _units(layer: Fields) -> int:
    return layer.whole("size", "units", high=_MOST_UNITS) or _missing(layer, "size")


def _missing(fields: Fields, name: str) -> Any:
    raise CoachError(f"the spec's '{fields.path(name)}' is missing")


def _activation(layer: Fields, default: str) -> list[Layer]:
    name = ACTIVATIONS[layer.choice("activation", ACTIVATIONS) or default]
    return [] if name == "none" else [BatchnormActivationDropout(activation_function=name)]


def put_stack(network: NetworkParameters, stack: Stack | None, space: Any) -> None:
    """Give a network these layers; without any it keeps its own.

    :param space: Gymnasium's of the states
    """
    named = getattr(space, "spaces", None) or {"observation": space}
    if stack is None:
        return
    network.input_embedders_parameters = {
        name: InputEmbedderParameters(
            activation_function="none", scheme=list(stack.convolutions) if len(part.shape or ()) == 3 else []
        )
        for name, part in named.items()
    }
    if stack.cells is None:
        network.middleware_parameters = FCMiddlewareParameters("none", stack.dense)
    else:
        network.middleware_parameters = LSTMMiddlewareParameters("none", stack.cells, stack.dense)


def set_optimizer(definition: Definition, fields: Fields | None, networks: Sequence[str]) -> None:
    """An optimizer such as ``{"type": "adam", "learning_rate": 1e-3}`` for these networks."""
    if fields is None:
        return
    kind, rate = fields.choice("type", OPTIMIZERS), fields.number("learning_rate", 1e-12, 1e3)
    for name in networks:
        definition.set(f"network_wrappers['{name}'].optimizer_type", OPTIMIZERS.get(kind or ""))
        definition.set(f"network_wrappers['{name}'].learning_rate", rate)
    fields.finish()


def keep_episodes_for(definition: Definition, stack: Stack | None) -> None:
    """Give a network with an LSTM the memory that it learns from: one of whole episodes."""
    if stack is not None and stack.cells is not None:
        definition.parameters.memory = EpisodicExperienceReplayParameters()


def set_replay(
    definition: Definition, fields: Fields | None, kinds: Mapping[str, bool], keys: Mapping[str, str]
) -> None:
    """A replay memory such as ``{"type": "replay", "capacity": 10000}``.

    :param kinds: names of memories, and whether each has priorities
    :param keys: further keys of one with priorities, and the settings that they are
    """
    if fields is None:
        return
    keeps_episodes = isinstance(definition.parameters.memory, EpisodicExperienceReplayParameters)
    kind = fields.choice("type", [one for one in kinds if not (keeps_episodes and kinds[one])])
    if kind is not None and not keeps_episodes:
        is_prioritized = kinds[kind]
        definition.parameters.memory = (
            PrioritizedExperienceReplayParameters() if is_prioritized else ExperienceReplayParameters()
        )
        for key, setting in keys.items() if is_prioritized else ():
            value = fields.number(key, 0, 1e3)
            if value is not None:
                definition.set(setting, ConstantSchedule(value) if setting.endswith("beta") else value)
    capacity = fields.whole("capacity")
    if capacity is not None:
        definition.set("memory.max_size", (MemoryGranularity.Transitions, capacity))


def line(first: float, last: float, steps: int, start: int) -> Schedule:
    """A straight line between two values, which begins after ``start`` steps."""
    return after(start, first, LinearSchedule(first, last, steps))


def after(start: int, first: float, schedule: Schedule) -> Schedule:
    """A schedule that keeps its first value for ``start`` steps before it begins."""
    if not start:
        return schedule
    # a piece has a value more than steps: that of before its first step
    return PieceWiseSchedule([(ConstantSchedule(first), EnvironmentSteps(start - 1)), (schedule, EnvironmentSteps(1))])


def left_out(fields: Fields, name: str, reason: str) -> None:
    """Say that a key changes nothing here."""
    if fields.get(name) is not None:
        logger.warning("the spec's '%s' is left out: %s", fields.path(name), reason)
