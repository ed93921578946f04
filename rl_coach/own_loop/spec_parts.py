"""Parts that specifications of TensorForce and of RLgraph have in common: layers, optimizers, memories, exploration."""

from __future__ import annotations

import copy
import logging
import math
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from rl_coach.architectures.embedder_parameters import INPUT_RESCALING, InputEmbedderParameters
from rl_coach.architectures.layers import (
    BatchnormActivationDropout,
    Conv2d,
    Dense,
    Flatten,
    Layer,
    LayerNorm,
    SameConv2d,
)
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters, LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, GradientClippingMethod
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.spec_filters import add_reward_filters, add_state_filters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.demonstration_replay import DemonstrationReplayParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule, HalvingSchedule, LinearSchedule, Schedule, after
from rl_coach.utilities.spec_fields import Fields, number, shown
from rl_coach.utils import CoachError

logger = logging.getLogger("rl_coach")

OPTIMIZERS = {
    "adam": "Adam", "rmsprop": "RMSProp", "rms_prop": "RMSProp", "gradient_descent": "SGD", "sgd": "SGD",
    "adadelta": "Adam", "adagrad": "RMSProp", "nadam": "Adam", "evolutionary": "SGD", "natural_gradient": "SGD",
}  # fmt: skip
_NEAREST = ("adadelta", "adagrad", "nadam", "evolutionary", "natural_gradient")
_WRAPPERS = ("optimized_step", "subsampling_step", "synchronization", "meta_optimizer", "global_optimizer")
_OF_STEPS = (
    "ls_max_iterations", "ls_accept_ratio", "ls_mode", "ls_parameter", "ls_unroll_loop", "fraction", "unroll_loop",
    "cg_max_iterations", "cg_damping", "cg_unroll_loop", "num_samples", "sync_frequency", "update_weight",
)  # fmt: skip
ACTIVATIONS = {
    **{name: name for name in ("relu", "tanh", "sigmoid", "elu", "selu", "softplus", "leaky_relu")},
    "lrelu": "leaky_relu",
    "linear": "none",
    "identity": "none",
    "none": "none",
}
_MOST_UNITS = 65_536
_MOST_LAYERS = 100
_SMALLEST_PHASES = 50_000
SEPARATE = "use_separate_networks_per_head"


@dataclass
class Definition:
    """The arguments of ``make_agent`` for a specification.

    :param parameters: the parameters of the algorithm, with the parts from the specification
    :param settings: values by path, for ``apply_settings``
    :param arguments: further arguments of ``make_agent``
    :param buffer_size: number of steps after which an episode is cut; None for no limit
    :param first_update: number of steps before the first update
    :param space: the Gymnasium space of the states
    :param shapes: the shape of each state after preprocessing, by the name of its observation
    """

    parameters: AgentParameters
    settings: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    buffer_size: int | None = None
    first_update: int = 0
    space: Any = None
    shapes: dict[str, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        parts = getattr(self.space, "spaces", None) or {"observation": self.space}
        named = parts if isinstance(parts, Mapping) else {str(index): part for index, part in enumerate(parts)}
        # networks receive a discrete state as a one-hot vector
        self.shapes = {
            name: (int(part.n),) if type(part).__name__ == "Discrete" else tuple(part.shape or (1,))
            for name, part in named.items()
        }

    def preprocess(self, steps: Any, where: str) -> None:
        """Filter the states. :param steps: see ``add_state_filters``"""
        add_state_filters(self._filters(), steps, where, self.shapes)

    def preprocess_rewards(self, steps: Any, where: str) -> None:
        """Filter the rewards. :param steps: see ``add_reward_filters``"""
        add_reward_filters(self._filters(), steps, where)

    def _filters(self) -> InputFilter:
        if self.parameters.input_filter is None:
            self.parameters.input_filter = InputFilter()
        return self.parameters.input_filter

    def set(self, path: str, value: Any) -> None:
        """Change a setting. A value of None does not change the setting, because the specification does not set it."""
        if value is not None:
            self.settings[path] = value

    def wait(self, steps: int) -> None:
        """Set the number of steps before the first update. The agent explores in these steps, too."""
        self.first_update = steps

    def play(self, count: int | None, in_episodes: bool) -> None:
        """Set the number of steps, or of episodes, that are played between two phases of updates."""
        if count is not None:
            unit = EnvironmentEpisodes if in_episodes else EnvironmentSteps
            self.settings["algorithm.num_consecutive_playing_steps"] = unit(count)

    def set_memory_of_phases(self, capacity: int | None) -> None:
        """Set the size of the memory of an agent that learns from the steps of a phase. The memory has room for at
        least one phase and its last episode.

        :param capacity: number of transitions, from the specification; None for the default of the algorithm
        """
        if capacity is not None and isinstance(self.parameters.memory, EpisodicExperienceReplayParameters):
            self.set("memory.max_size", (MemoryGranularity.Transitions, max(capacity, _SMALLEST_PHASES)))


@dataclass
class Stack:
    """Layers of a network.

    :param convolutions: the convolutions for images
    :param dense: the layers after the convolutions
    :param cells: number of LSTM cells at the end; None for no LSTM
    :param by_name: layers for single states by name, before all other layers
    :param scope: the network's name
    :param scopes: the names of the layers with kernels
    """

    convolutions: list[Layer] = field(default_factory=list)
    dense: list[Layer] = field(default_factory=list)
    cells: int | None = None
    by_name: dict[str, Stack] = field(default_factory=dict)
    scope: str = field(default="", compare=False)
    scopes: list[str] = field(default_factory=list, compare=False)

    @property
    def units(self) -> list[int]:
        """Units of the fully connected layers."""
        return [layer.units for layer in self.dense if isinstance(layer, Dense)]


@dataclass(frozen=True)
class LayerDefaults:
    """Default settings of a system's layers.

    :param activation: activation of a fully connected layer
    :param convolution_activation: activation of a convolution
    :param padding: padding of a convolution
    """

    activation: str
    convolution_activation: str
    padding: str


def stack_of(value: Any, where: str, defaults: LayerDefaults) -> Stack:
    """The layers from a list of dicts such as ``{"type": "dense", "size": 64}``.

    :raises CoachError: if the argument is not a list of layers, a layer is unknown, or Coach does not support this
        order of layers
    """
    if isinstance(value, Mapping):
        return _stack_of_dict(Fields(value, where), defaults)
    if not isinstance(value, (list, tuple)):
        raise CoachError(f"the spec's '{where}' must be a list of layers, not {shown(value)}")
    if len(value) > _MOST_LAYERS:
        raise CoachError(f"the spec's '{where}' has {len(value):,} layers; at most {_MOST_LAYERS} are possible")
    found = Stack()
    if value and all(isinstance(one, (list, tuple)) for one in value):
        return _stack_of_paths(value, where, defaults)
    for index, one in enumerate(value):
        _add_layer(found, Fields(one, f"{where}[{index}]"), defaults)
    return found


def _stack_of_paths(paths: Sequence[Any], where: str, defaults: LayerDefaults) -> Stack:
    """The layers of several paths. Each path except the last one reads one state, and ends in an ``output`` that the
    last path reads."""
    by_name: dict[str, Stack] = {}
    for index, path in enumerate(paths):
        here, layers = f"{where}[{index}]", list(path)
        ends = [isinstance(one, Mapping) and one.get("type") == "output" for one in layers]
        if ends and ends[-1]:
            Fields(layers.pop(), here)
        names: Any = None
        if layers and isinstance(layers[0], Mapping) and layers[0].get("type") == "input":
            first = Fields(layers.pop(0), here)
            names, kind = first.get("names", "name"), first.get("aggregation_type")
            if kind not in (None, "concat"):
                logger.warning("the spec's '%s' concatenates its inputs in Coach, instead of %s", here, shown(kind))
        name = names[0] if isinstance(names, (list, tuple)) and len(names) == 1 else names
        stack = stack_of(layers, here, defaults)
        if index == len(paths) - 1:
            return Stack(stack.convolutions, stack.dense, stack.cells, by_name)
        if not isinstance(name, str):
            raise CoachError(
                f"the spec's '{here}' must begin with a layer of the type 'input' that names one state: only the last "
                f"path may have several inputs"
            )
        by_name[name] = stack
    return Stack()


def _stack_of_dict(network: Fields, defaults: LayerDefaults) -> Stack:
    scope = network.get("scope")
    if network.get("network_spec") is not None:  # of RLgraph's value functions
        found = stack_of(network.get("network_spec"), network.path("network_spec"), defaults)
        network.finish()
        return found
    kind = network.choice("type", ("network", "multi_input_stream_nn"))
    key = "post_network_spec" if kind == "multi_input_stream_nn" else "layers"
    layers = network.get(key)
    found = Stack() if layers is None and kind else stack_of(layers, network.path(key), defaults)
    streams, where = network.get("input_network_specs"), network.path("input_network_specs")
    if kind == "multi_input_stream_nn" and streams is not None:
        Fields(streams, where)  # checks that its keys are texts
        found.by_name |= {name: stack_of(one, f"{where}.{name}", defaults) for name, one in streams.items()}
    found.scope = str(scope or "")
    network.finish()
    return found


def _add_layer(found: Stack, layer: Fields, defaults: LayerDefaults) -> None:
    kind = layer.choice("type", (*_LAYERS, *_PLAIN_LAYERS)) or layer.missing("type")
    scope = layer.get("scope")
    if kind in ("dense", "conv2d"):
        found.scopes.append(str(scope or f"{kind}-layer-{len(found.scopes)}"))
    if found.cells is not None:
        raise CoachError(f"the spec's '{layer.path('type')}': no layer may follow the LSTM")
    for name in ("weights_spec", "biases_spec", "l1_regularization", "l2_regularization", "trainable"):
        value = layer.get(name)
        if value not in (None, 0.0, 0, True):
            logger.warning(
                "the spec's '%s' is ignored: one initialisation and one optimizer apply to all layers of a network",
                layer.path(name),
            )
    if kind in _LAYERS:
        _LAYERS[kind](found, layer, defaults)
    else:
        found.dense.append(_plain_layer(kind, layer))
    layer.finish()


def _add_dense(found: Stack, layer: Fields, defaults: LayerDefaults) -> None:
    layer.flag("bias")
    found.dense += [Dense(_units(layer)), *_activation(layer, defaults.activation)]


def _add_convolution(found: Stack, layer: Fields, defaults: LayerDefaults) -> None:
    if any(isinstance(one, Dense) for one in found.dense):
        raise CoachError(f"the spec's '{layer.path('type')}': convolutions come before other layers")
    layer.flag("bias")
    window, stride = layer.whole("window", "kernel_size", high=1000), layer.whole("stride", "strides", high=1000)
    filters = layer.whole("size", "filters", high=_MOST_UNITS) or layer.missing("size")
    padding = layer.choice("padding", ("valid", "same")) or defaults.padding
    kind = SameConv2d if padding == "same" else Conv2d
    activation = _activation(layer, defaults.convolution_activation)
    found.convolutions += [kind(filters, window or 3, stride or 1), *activation]


def _add_lstm(found: Stack, layer: Fields, defaults: LayerDefaults) -> None:
    layer.choice("activation", ACTIVATIONS)
    for name in ("return_sequences", "dropout"):
        layer.get(name)
    found.cells = _units(layer)


def _add_flat(found: Stack, layer: Fields, defaults: LayerDefaults) -> None:
    for name in ("flatten", "flatten_categories"):
        layer.get(name)
    found.dense.append(Flatten())


_LAYERS = {
    "dense": _add_dense, "conv2d": _add_convolution, "flatten": _add_flat, "reshape": _add_flat, "lstm": _add_lstm,
    "internal_lstm": _add_lstm, "lstm_layer": _add_lstm,
}  # fmt: skip
_PLAIN_LAYERS = ("nonlinearity", "dropout", "layer_norm")


def _plain_layer(kind: str, layer: Fields) -> Layer:
    if kind == "layer_norm":
        return LayerNorm()
    if kind == "dropout":
        return BatchnormActivationDropout(dropout_rate=layer.number("rate", 0, 0.999) or 0.0)
    return BatchnormActivationDropout(activation_function=ACTIVATIONS[layer.choice("name", ACTIVATIONS) or "relu"])


def _units(layer: Fields) -> int:
    return layer.whole("size", "units", high=_MOST_UNITS) or layer.missing("size")


def _activation(layer: Fields, default: str) -> list[Layer]:
    name = ACTIVATIONS[layer.choice("activation", ACTIVATIONS) or default]
    return [] if name == "none" else [BatchnormActivationDropout(activation_function=name)]


def put_stack(definition: Definition, name: str, stack: Stack | None, where: str = "network") -> None:
    """Set the layers of a network. An empty stack keeps the default layers.

    :raises CoachError: if a convolution has no image, or a state with layers does not exist
    """
    if stack is None:
        _rename_embedders(definition, name)
        return
    network, shapes = definition.parameters.network_wrappers[name], definition.shapes
    for named in stack.by_name:
        if named not in shapes:
            raise CoachError(f"the spec's '{where}' has layers for {named!r}; the states are {', '.join(shapes)}")
    images = {one for one, shape in shapes.items() if len(shape) == 3}
    if stack.convolutions and not images:
        raise CoachError(f"the spec's '{where}' has a convolution, but no state is an image [height, width, channels]")
    before = {one: stack.by_name.get(one, Stack()) for one in shapes}
    embedders = {
        one: InputEmbedderParameters(
            activation_function="none", input_rescaling=_rescaling(definition, one),
            scheme=[*own.convolutions, *own.dense, *(stack.convolutions if one in images else ())],
        )
        for one, own in before.items()
    }  # fmt: skip
    others = {one: part for one, part in (network.input_embedders_parameters or {}).items() if one == "action"}
    network.input_embedders_parameters = {**embedders, **others}
    if stack.cells is None:
        network.middleware_parameters = FCMiddlewareParameters("none", stack.dense)
    else:
        definition.set(f"network_wrappers['{name}'].{SEPARATE}", False)  # heads share the LSTM
        network.middleware_parameters = LSTMMiddlewareParameters("none", stack.cells, stack.dense)


def has_state(stack: Stack | None) -> bool:
    """True if there is an LSTM."""
    return stack is not None and stack.cells is not None


def _rename_embedders(definition: Definition, name: str) -> None:
    """Give each named state a copy of the network's embedder for ``observation``."""
    embedders = definition.parameters.network_wrappers[name].input_embedders_parameters
    if "observation" in embedders and "observation" not in definition.shapes:
        own = embedders.pop("observation")
        embedders.update({one: copy.deepcopy(own) for one in definition.shapes})


def _rescaling(definition: Definition, name: str) -> dict[str, float] | None:
    """The divisors of a state in the network: None for Coach's defaults; 1 if the specification itself filters the
    state."""
    filters = definition.parameters.input_filter
    has_own = filters is not None and name in filters.observation_filters
    return dict.fromkeys(INPUT_RESCALING, 1.0) if has_own else None


def schedule_of(value: Any, where: str, low: float = -math.inf, high: float = math.inf) -> Any:
    """A number, or a schedule of numbers.

    :param value: a number; ``[from, to]``; ``["linear", from, to]``; or a dict such as
        ``{"type": "linear-decay", "from": 1.0, "to": 0.1, "num_timesteps": 10000}``
    :raises CoachError: if the value has another form
    """
    if isinstance(value, Schedule):
        return value
    if isinstance(value, (list, tuple)) and 1 <= len(value) <= 5:
        parts = list(value)
        kind = parts.pop(0) if isinstance(parts[0], str) else "linear_decay"
        names = ("from", "to", "num_timesteps", "start_timestep")
        value = {"type": kind, **dict(zip(names, parts))}
    if not isinstance(value, Mapping):
        return number(low, high)(value, where)
    fields = Fields(value, where)
    kinds = {"linear_decay": "line", "linear": "line", "constant_decay": "constant", "constant": "constant",
             "exponential_decay": "curve", "exponential": "curve", "polynomial_decay": "line"}  # fmt: skip
    kind = kinds[fields.choice("type", kinds) or "linear_decay"]
    if kind == "constant":
        found: Any = ConstantSchedule(fields.number("constant_value", low, high, "value", "from") or 0.0)
        fields.finish()
        return found
    first, last = fields.number("from", low, high), fields.number("to", min(low, 0.0), high)
    first, last = (1.0 if low < 1 <= high else high) if first is None else first, 0.1 if last is None else last
    count, start = (
        fields.whole("num_timesteps", "timesteps", high=10**12) or 10_000,
        fields.whole("start_timestep", low=0),
    )
    half_lives = fields.number("num_half_lives", 1e-3, 1e3, "half_lives") if kind == "curve" else None
    if kind == "curve":
        found = after(start or 0, first, HalvingSchedule(first, last, count, half_lives or 10.0))
    else:
        found = after(start or 0, first, LinearSchedule(first, last, count))
    fields.finish()
    return found


def set_optimizer(definition: Definition, fields: Fields | None, networks: Sequence[str]) -> int | None:
    """Set the optimizer of networks, from a specification such as ``{"type": "adam", "learning_rate": 1e-3}``.

    :return: number of the optimizer's steps in one update; None if the specification does not set it
    """
    if fields is None:
        return None
    if fields.is_type("multi_step"):
        steps, inner = fields.whole("num_steps", high=10**6), fields.fields("optimizer")
        if inner is not None and inner.is_type("multi_step"):
            raise CoachError(f"the spec's '{inner.path('type')}': a multi_step cannot contain another one")
        set_optimizer(definition, inner, networks)
        return steps
    if fields.is_type("clipped_step"):
        limit, inner = fields.number("clipping_value", 1e-9), fields.fields("optimizer")
        if inner is None:
            return fields.missing("optimizer")
        logger.warning("the spec's '%s' clips the gradients in Coach, not the steps", fields.path("type"))
        _set_all(definition, networks, "clip_gradients", limit)
        _set_all(definition, networks, "gradients_clipping_method", GradientClippingMethod.ClipByValue)
        return set_optimizer(definition, inner, networks)
    left_out(fields, "Coach's optimizers do not have this setting", *_OF_STEPS)
    if any(fields.is_type(name) for name in _WRAPPERS):
        logger.warning("the spec's '%s' has no effect: Coach uses only its 'optimizer'", fields.path("type"))
        inner = fields.fields("optimizer")
        return fields.missing("optimizer") if inner is None else set_optimizer(definition, inner, networks)
    kind, rate = fields.choice("type", OPTIMIZERS), fields.get("learning_rate")
    if kind in _NEAREST:
        logger.warning("the spec's '%s' %s is replaced by %s", fields.path("type"), kind, OPTIMIZERS[kind])
    _set_all(definition, networks, "optimizer_type", OPTIMIZERS.get(kind or ""))
    if rate is not None:
        rate = schedule_of(rate, fields.path("learning_rate"), 1e-12, 1e3)
        _set_all(definition, networks, "learning_rate", rate)
    _set_all(definition, networks, "clip_gradients", fields.number("clip_grad_norm", 1e-9))
    _set_all(definition, networks, "optimizer_epsilon", fields.number("epsilon", 0, 1))
    _set_all(definition, networks, "rms_prop_optimizer_decay", fields.number("decay", 0, 1))
    left_out(fields, "Coach's optimizers do not have this setting", "momentum", "scope")
    fields.finish()
    return None


def _set_all(definition: Definition, networks: Sequence[str], name: str, value: Any) -> None:
    for network in networks:
        definition.set(f"network_wrappers['{network}'].{name}", value)


def keep_episodes_for(definition: Definition, stack: Stack | None) -> None:
    """Set a memory of whole episodes if the network has an LSTM, which learns from whole episodes."""
    if has_state(stack):
        definition.parameters.memory = EpisodicExperienceReplayParameters()


def set_replay(
    definition: Definition, fields: Fields | None, kinds: Mapping[str, bool | None], keys: Mapping[str, str]
) -> None:
    """Set the replay memory, from a specification such as ``{"type": "replay", "capacity": 10000}``.

    :param kinds: the memory of each type in the specification: True has priorities, False has none, None is the default
        memory of the algorithm
    :param keys: Coach's setting for each further key of a memory with priorities
    """
    if fields is None:
        return
    own = definition.parameters.memory
    keeps_episodes = isinstance(own, EpisodicExperienceReplayParameters)
    kind = fields.choice("type", kinds)
    if keeps_episodes and kinds.get(kind or ""):
        left_out(fields, "the agent's memory has whole episodes and no priorities", "type", *keys)
    stays = keeps_episodes or isinstance(own, DemonstrationReplayParameters)
    if kind is not None and not stays and kinds[kind] is not None:
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


def left_out(fields: Fields, reason: str, *names: str) -> None:
    """Warn of keys that have no effect, except if their values are empty or 0."""
    for name in names:
        value = fields.get(name)
        if value is not None and value is not False and value != 0 and value != "":
            logger.warning("the spec's '%s' is ignored: %s", fields.path(name), reason)
