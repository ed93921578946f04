"""The settings of a run: the parameter classes of presets.

Setting a parameter that does not exist raises an error with the nearest name. A typing error in a preset therefore
never leads to a training with a default value.
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import InitVar, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Iterable, Iterator, Union

import numpy as np

from rl_coach.core_types import (
    CsvDataset,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GradientClippingMethod,
    PickledReplayBuffer,
    StepMethod,
    TrainingSteps,
)
from rl_coach.filters.filter import InputFilter, NoInputFilter, OutputFilter
from rl_coach.installation import default_framework
from rl_coach.schedules import Schedule
from rl_coach.utilities.requirements import (
    FLAG,
    FRACTION,
    TEXT,
    Constrained,
    Constraint,
    exactly,
    flags,
    instance,
    limit,
    list_of,
    member,
    number,
    one_of,
    optional,
    schedule,
    steps,
    whole,
)
from rl_coach.utilities.user_code import takes
from rl_coach.utils import CoachError, did_you_mean, public_attributes


class Frameworks(Enum):
    """The libraries that a network can be built on."""

    tensorflow = "TensorFlow"
    mxnet = "MXNet"
    jax = "JAX"
    torch = "PyTorch"
    #: ONNX Runtime, for processes that only act; not a choice of ``-f``
    acting = "ONNX Runtime"


DEFAULT_FRAMEWORK = Frameworks[default_framework()]
"""The framework of a program that does not select a framework."""


def running_framework() -> str:
    """The name of the framework that this process has loaded, or will load by default."""
    keras = sys.modules.get("keras")
    name = keras.backend.backend() if keras is not None else os.environ.get("KERAS_BACKEND", "")
    return name if name in Frameworks.__members__ else DEFAULT_FRAMEWORK.name


class EmbedderScheme(Enum):
    """Size of an input embedder; ``Empty`` has no layers. A preset may give a list of layers instead."""

    Empty = "Empty"
    Shallow = "Shallow"
    Medium = "Medium"
    Deep = "Deep"


class MiddlewareScheme(Enum):
    """Size of a middleware; ``Empty`` has no layers. A preset may give a list of layers instead."""

    Empty = "Empty"
    Shallow = "Shallow"
    Medium = "Medium"
    Deep = "Deep"


class EmbeddingMergerType(Enum):
    """The way in which the outputs of several input embedders become one input of the middleware."""

    Concat = 0
    Sum = 1


class RunType(Enum):
    """The role of a process in a distributed run."""

    ORCHESTRATOR = "orchestrator"
    TRAINER = "trainer"
    ROLLOUT_WORKER = "rollout-worker"

    def __str__(self) -> str:
        return self.value


class DeviceType(Enum):
    """Kind of device that a network is computed on."""

    CPU = "cpu"
    GPU = "gpu"


class Device:
    """A device: its type, and its index among the devices of that type."""

    def __init__(self, device_type: DeviceType, index: int = 0):
        self.device_type = device_type
        self.index = index

    def __repr__(self) -> str:
        return f"{self.device_type.value}{self.index}"


class DistributedCoachSynchronizationType(Enum):
    """Choice between two kinds of distributed training. SYNC: workers wait for each new policy (on-policy). ASYNC:
    workers do not wait, and act with the newest policy that has arrived (off-policy).
    """

    SYNC = "sync"
    ASYNC = "async"


def iterable_to_items(obj: Any) -> Iterable[tuple[Any, Any]]:
    """The (key, value) pairs of a dict, or the (index, value) pairs of a list."""
    if isinstance(obj, dict):
        return obj.items()
    if isinstance(obj, (list, tuple)):
        return enumerate(obj)
    raise ValueError(f"a {type(obj).__name__} has no items")


def unfold_dict_or_list(obj: Any) -> Any:
    """An object as plain data for JSON (dicts, lists, numbers, strings).

    :param obj: the object; an object of another class becomes a dict of its public attributes and its class name
    """
    if isinstance(obj, (dict, list, tuple)):
        folded = {key: unfold_dict_or_list(value) for key, value in iterable_to_items(obj)}
        return {str(key): value for key, value in folded.items()} if isinstance(obj, dict) else list(folded.values())
    if isinstance(obj, Enum):
        return f"{type(obj).__name__}.{obj.name}"
    if isinstance(obj, (str, int, float, bool)) or obj is None:
        return obj
    if isinstance(obj, type) or not hasattr(obj, "__dict__"):
        return str(obj)
    return {"__class__": type(obj).__name__, **unfold_dict_or_list(public_attributes(obj))}


if TYPE_CHECKING:  # with the methods below, checkers would allow any arguments and any attributes

    class _CheckedAfterInit(type):
        pass

    class _RefusesUnknownNames:
        pass

else:

    class _CheckedAfterInit(type):
        """Marks an object as constructed after all its ``__init__`` methods have run."""

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            obj = super().__call__(*args, **kwargs)
            obj.__dict__["_is_constructed"] = True
            return obj

    class _RefusesUnknownNames:
        def __setattr__(self, key: str, value: Any) -> None:
            if not hasattr(self, key) and self.__dict__.get("_is_constructed"):
                suggestion = did_you_mean(key, [name for name in dir(self) if not name.startswith("_")])
                raise TypeError(
                    f"{type(self).__name__} has no parameter '{key}'{suggestion or '; register_var() adds a new one'}"
                )
            # NumPy's numbers are valid settings, but not all readers of settings accept them, such as JSON
            object.__setattr__(self, key, value.item() if isinstance(value, np.generic) else value)


class Parameters(_RefusesUnknownNames, Constrained, metaclass=_CheckedAfterInit):
    """The base class of all settings. After construction, only existing attributes can be set. ``constraints`` limits
    the values of attributes; the values are checked when the graph is created."""

    def register_var(self, key: str, value: Any) -> None:
        """Set a parameter, even if the class does not define a parameter of this name."""
        object.__setattr__(self, key, value)

    @property
    def path(self) -> str:
        """``"module:Class"`` of the class that these parameters describe."""
        raise NotImplementedError(f"{type(self).__name__} does not say which class it describes")

    def __str__(self) -> str:
        lines = [f'"{type(self).__name__}"']
        lines += [f"    {name}: {value}" for name, value in public_attributes(self).items()]
        return "\n".join(lines)


_DATA_SET = instance((str, os.PathLike, CsvDataset, PickledReplayBuffer), "a file of recorded data")
RECORDED_DATA = optional(
    Constraint(
        "a file of recorded data, or a list of one or more such files",
        lambda value: _DATA_SET.holds(value) or (bool(value) and list_of(_DATA_SET).holds(value)),
    )
)
"""The values of ``load_memory_from_file_path``."""


class AlgorithmParameters(Parameters):
    """Hyperparameters of an agent's learning; each algorithm adds its own hyperparameters.

    :ivar num_consecutive_playing_steps: steps or episodes of acting between two training phases
    :ivar num_consecutive_training_steps: number of updates of a training phase
    :ivar heatup_using_network_decisions: act with the untrained policy during heatup, not at random
    :ivar discount: discount factor; 0 counts only the next reward, 1 counts all rewards equally
    :ivar apply_gradients_every_x_episodes: number of episodes in one update; their gradients are added
    :ivar num_steps_between_copying_online_weights_to_target: steps, updates or episodes between two updates of the
        target network; no effect for agents without a target network, such as most on-policy agents
    :ivar rate_for_copying_weights_to_target: the target network moves towards the online weights by this share (Polyak
        averaging); 1 copies the weights
    :ivar load_memory_from_file_path: the data that the memory contains at the start: a ``CsvDataset``, a
        ``PickledReplayBuffer``, ``minari:ID``, the path of a saved memory, or a list of several sources; None for no
        data
    :ivar store_transitions_only_when_episodes_are_terminated: store whole episodes, so that returns are known
    :ivar in_action_space: space of the goals that the agent of the level above may set; None without a level above
    :ivar share_statistics_between_workers: no effect, because workers always share the statistics of filters; a
        warning says so if it is False. It exists for programs written for Coach 1.0.1
    :ivar n_step: number of rewards in a return. With -1, a return sums all rewards to the end of the episode, and an
        agent such as DQN learns from the reward of one step
    :ivar act_for_full_episodes: act in whole episodes between two training phases
    :ivar override_episode_rewards_with_the_last_transition_reward: replace the reward of each step by the episode's
        last reward; steps are stored when the episode has ended
    :ivar update_pre_network_filters_state_on_train: update the statistics of pre-network filters in training
    :ivar update_pre_network_filters_state_on_inference: update the statistics of pre-network filters while acting
    :ivar act_beside_learning: continue to act while an update runs on another core. Until the update ends, the agent
        acts with the previous policy. If one call makes all updates of a training phase, the agent acts with the
        policy before the phase. Only for agents that can learn from the experience of any policy
    """

    constraints = {
        **flags("use_accumulated_reward_as_measurement", "heatup_using_network_decisions"),
        **flags("store_transitions_only_when_episodes_are_terminated", "share_statistics_between_workers"),
        **flags("act_for_full_episodes", "supports_parameter_noise", "act_beside_learning"),
        **flags("override_episode_rewards_with_the_last_transition_reward"),
        **flags("update_pre_network_filters_state_on_train", "update_pre_network_filters_state_on_inference"),
        "num_consecutive_playing_steps": steps(EnvironmentSteps, EnvironmentEpisodes),
        "num_consecutive_training_steps": whole(1),
        "discount": FRACTION,
        "apply_gradients_every_x_episodes": whole(1),
        "num_steps_between_copying_online_weights_to_target": steps(
            EnvironmentSteps, EnvironmentEpisodes, TrainingSteps
        ),
        "rate_for_copying_weights_to_target": FRACTION,
        "n_step": whole(1) | exactly(-1),
        "distributed_coach_synchronization_type": optional(member(DistributedCoachSynchronizationType)),
        "load_memory_from_file_path": RECORDED_DATA,
    }

    def __init__(self) -> None:
        self.use_accumulated_reward_as_measurement = False
        self.num_consecutive_playing_steps: StepMethod = EnvironmentSteps(1)
        self.num_consecutive_training_steps = 1
        self.heatup_using_network_decisions = False
        self.discount = 0.99
        self.apply_gradients_every_x_episodes = 5
        self.num_steps_between_copying_online_weights_to_target: StepMethod = TrainingSteps(0)
        self.rate_for_copying_weights_to_target = 1.0
        self.load_memory_from_file_path: Any = None
        self.store_transitions_only_when_episodes_are_terminated = False
        self.in_action_space: Any = None
        self.share_statistics_between_workers = True
        self.n_step = -1
        self.distributed_coach_synchronization_type: DistributedCoachSynchronizationType | None = None
        self.act_for_full_episodes = False
        self.supports_parameter_noise = False
        self.override_episode_rewards_with_the_last_transition_reward = False
        self.update_pre_network_filters_state_on_train = False
        self.update_pre_network_filters_state_on_inference = True
        self.act_beside_learning = False


class ScheduleParameters(Parameters):
    """Lengths of the parts of a run, in ``EnvironmentSteps``, ``EnvironmentEpisodes`` or ``TrainingSteps``.

    :ivar heatup_steps: length of heatup, in which the agent acts at random before training; 0 for no heatup
    :ivar evaluation_steps: length of an evaluation; 0 for no evaluation. A length in steps is extended to the end of
        the last episode
    :ivar steps_between_evaluation_periods: length of training between two evaluations
    :ivar improve_steps: length of training
    """

    def __init__(self) -> None:
        self.heatup_steps: StepMethod = None  # type: ignore[assignment]
        self.evaluation_steps: StepMethod = None  # type: ignore[assignment]
        self.steps_between_evaluation_periods: StepMethod = None  # type: ignore[assignment]
        self.improve_steps: StepMethod = None  # type: ignore[assignment]


@dataclass(eq=False, repr=False)
class PresetValidationParameters(Parameters):
    """The result that a preset must achieve in its tests.

    :param test: True if a test checks that the preset reaches ``min_reward_threshold``
    :param min_reward_threshold: the mean reward that the preset must reach
    :param max_episodes_to_achieve_reward: largest number of training episodes to reach ``min_reward_threshold``
    :param num_workers: number of workers that train
    :param reward_test_level: the environment level of the reward test
    :param test_using_a_trace_test: compare the CSV of a short run with the CSV of an earlier run
    :param trace_test_levels: the levels of the trace test
    :param trace_max_env_steps: environment steps of the trace test
    :param read_csv_tries: number of attempts to find the CSV
    """

    constraints = {
        **flags("test", "test_using_a_trace_test"),
        "min_reward_threshold": limit(low=-math.inf),
        "max_episodes_to_achieve_reward": number(0),
        "num_workers": whole(1),
        "reward_test_level": optional(TEXT),
        "trace_max_env_steps": number(0),
        "read_csv_tries": whole(0),
    }

    test: bool = False
    min_reward_threshold: float = 0
    max_episodes_to_achieve_reward: int = 1
    num_workers: int = 1
    reward_test_level: str | None = None
    test_using_a_trace_test: bool = True
    trace_test_levels: list[str] | None = None
    trace_max_env_steps: int = 5000
    read_csv_tries: int = 200


@dataclass(eq=False, repr=False)
class NetworkParameters(Parameters):
    """A network of an agent: its parts and its optimisation.

    :param force_cpu: has no effect; it exists for programs written for Coach 1.0.1. See ``TaskParameters.use_cpu``
    :param async_training: with several workers, each worker applies its own gradients to the shared network
    :param shared_optimizer: asynchronous workers share the optimizer's state
    :param scale_down_gradients_by_number_of_workers_for_sync_training: True averages the gradients of several workers;
        False adds them
    :param clip_gradients: limit of the gradients; None does not clip
    :param gradients_clipping_method: the quantity that ``clip_gradients`` limits, such as the norm of all gradients
    :param l2_regularization: factor c of the term c * 0.5 * sum(weights²) in the loss; 0 for no regularization
    :param learning_rate: the optimizer's step size, or a ``Schedule`` over the updates of the network; PPO's schedule
        counts training phases
    :param learning_rate_decay_rate: the learning rate is multiplied by this factor after each
        ``learning_rate_decay_steps``; 0 for no decay. With decay, ``learning_rate`` must be a number
    :param learning_rate_decay_steps: the length of a decay period, in updates of the network; PPO counts training
        phases
    :param input_embedders_parameters: the embedder of each observation, by the observation's name
    :param embedding_merger_type: the way in which the outputs of several embedders are merged
    :param middleware_parameters: the part between embedders and heads
    :param heads_parameters: the heads, in the order of the network's outputs
    :param use_separate_networks_per_head: True if each head gets its own embedders and middleware
    :param optimizer_type: ``'Adam'``, ``'LaProp'`` (with Adam's settings), ``'RMSProp'`` or ``'SGD'``
    :param optimizer_epsilon: the optimizer's epsilon
    :param adam_optimizer_beta1: decay of Adam's mean of gradients
    :param adam_optimizer_beta2: decay of Adam's mean of squared gradients
    :param rms_prop_optimizer_decay: decay of RMSProp's mean of squared gradients
    :param batch_size: number of transitions in one update
    :param replace_mse_with_huber_loss: use the Huber loss in heads with squared errors
    :param create_target_network: create a target network, a slowly updated copy of the weights
    :param softmax_temperature: temperature of a policy's softmax; above 1 the probabilities become more equal, below 1
        less equal
    :param initial_weights: initialization of the weights: ``'xavier'`` (zero biases), ``'kaiming_uniform'`` (weights
        and biases as in PyTorch's layers), ``'orthogonal'``, ``'truncated_normal'``, or an ``InitialWeights`` such as
        ``Orthogonal(gain=0.01)``
    :param output_embedding: also return the middleware's output, as ``embedding`` of the first head
    :ivar blueprint: the ``NetworkBlueprint`` of a network that only acts; None for networks that are trained
    """

    constraints = {
        **flags("force_cpu", "async_training", "shared_optimizer"),
        **flags("scale_down_gradients_by_number_of_workers_for_sync_training", "use_separate_networks_per_head"),
        **flags("replace_mse_with_huber_loss", "create_target_network", "output_embedding", "tensorflow_support"),
        "clip_gradients": optional(limit(0)),
        "gradients_clipping_method": member(GradientClippingMethod),
        "l2_regularization": number(0),
        "learning_rate": number(0) | schedule(number(0)),
        "learning_rate_decay_rate": number(0),
        "learning_rate_decay_steps": whole(0),
        "input_embedders_parameters": instance(dict, "a dictionary of embedders by the observations' names"),
        "embedding_merger_type": member(EmbeddingMergerType),
        "heads_parameters": instance((list, tuple, Parameters), "a list of heads"),
        "optimizer_type": one_of("Adam", "LaProp", "RMSProp", "SGD", any_case=True),
        "optimizer_epsilon": number(0),
        "adam_optimizer_beta1": number(0, below=1),
        "adam_optimizer_beta2": number(0, below=1),
        "rms_prop_optimizer_decay": FRACTION,
        "batch_size": whole(1),
        "softmax_temperature": number(above=0),
    }

    framework: Frameworks = field(init=False, default_factory=lambda: DEFAULT_FRAMEWORK)
    sess: Any = field(init=False, default_factory=lambda: None)
    force_cpu: bool = False
    async_training: bool = False
    shared_optimizer: bool = True
    scale_down_gradients_by_number_of_workers_for_sync_training: bool = True
    clip_gradients: float | None = None
    gradients_clipping_method: GradientClippingMethod = GradientClippingMethod.ClipByGlobalNorm
    l2_regularization: float = 0
    learning_rate: float | Schedule = 0.00025
    learning_rate_decay_rate: float = 0
    learning_rate_decay_steps: int = 0
    input_embedders_parameters: dict[str, Any] = None  # type: ignore[assignment]
    embedding_merger_type: EmbeddingMergerType = EmbeddingMergerType.Concat
    middleware_parameters: Any = None
    heads_parameters: list = None  # type: ignore[assignment]
    use_separate_networks_per_head: bool = False
    optimizer_type: str = "Adam"
    optimizer_epsilon: float = 0.0001
    adam_optimizer_beta1: float = 0.9
    adam_optimizer_beta2: float = 0.99
    rms_prop_optimizer_decay: float = 0.9
    batch_size: int = 32
    replace_mse_with_huber_loss: bool = False
    create_target_network: bool = False
    tensorflow_support: bool = True
    softmax_temperature: float = 1
    initial_weights: Any = "xavier"
    output_embedding: bool = False
    blueprint: Any = field(init=False, default_factory=lambda: None)

    def __post_init__(self) -> None:
        self.input_embedders_parameters = self.input_embedders_parameters or {}
        self.heads_parameters = self.heads_parameters or []

    def unmet(self) -> Iterator[str]:
        yield from super().unmet()
        if self.learning_rate_decay_rate and self.learning_rate_decay_steps and hasattr(self.learning_rate, "value_at"):
            yield (
                "learning_rate is a schedule, and learning_rate_decay_rate and learning_rate_decay_steps make another "
                "schedule: set both to 0, or learning_rate to a number"
            )

    def make_function(self, framework: Any, spaces: Any, name: str, rng: Any) -> Any:
        """Build the network on a framework; see ``Framework.make_function``."""
        return framework.make_function(self, spaces, name, rng)


class NetworkComponentParameters(Parameters):
    """A part of a network.

    :param dense_layer: the class of the part's fully connected layers; None for ``Dense``
    :ivar initial_weights: initialization of this part's weights, as in ``NetworkParameters``; None uses the network's
        initialization. A value also replaces the special initialization of a head, such as small weights of a policy
    """

    # a layer class is called with one argument, the number of units
    constraints = {
        "dense_layer": optional(Constraint("a layer class such as NoisyNetDense", lambda value: takes(value, 1)))
    }

    def __init__(self, dense_layer: Any):
        self.dense_layer = dense_layer
        self.initial_weights: Any = None


_VIDEO_FILTER = Constraint(
    "an object with should_dump, such as MaxDumpFilter()", lambda value: callable(getattr(value, "should_dump", None))
)


@dataclass(eq=False, repr=False)
class VisualizationParameters(Parameters):
    """Output of a run, on the screen and in files.

    :param print_networks_summary: print each network's layers when it is built
    :param dump_csv: write the signals to a CSV
    :param dump_signals_to_csv_every_x_episodes: number of episodes between two writes of the CSV
    :param dump_gifs: write GIF videos of the episodes that ``video_dump_methods`` select
    :param dump_mp4: write MP4 videos of the episodes that ``video_dump_methods`` select
    :param video_dump_methods: ``VideoDumpFilter`` objects; an episode is written if all of them select it
    :param dump_in_episode_signals: write a CSV for each episode, with one row for each step
    :param dump_parameters_documentation: write the parameters as JSON next to the CSV
    :param render: show the environment in a window
    :param native_rendering: with ``render``, let the environment open its own window
    :param max_fps_for_human_control: the frame rate for a human player
    :param tensorboard: write TensorBoard event files
    :param add_rendered_image_to_env_response: add the rendered frame to each step's info
    :param real_time: show the window at the environment's own speed, and end the run when the user closes the window;
        False shows the environment as fast as the agent acts
    """

    constraints = {
        **flags("print_networks_summary", "dump_csv", "dump_gifs", "dump_mp4", "dump_in_episode_signals"),
        **flags("dump_parameters_documentation", "render", "native_rendering", "tensorboard"),
        **flags("add_rendered_image_to_env_response", "real_time"),
        "dump_signals_to_csv_every_x_episodes": whole(1),
        "video_dump_methods": optional(_VIDEO_FILTER | list_of(_VIDEO_FILTER)),
        "max_fps_for_human_control": number(0),
    }

    print_networks_summary: bool = False
    dump_csv: bool = True
    dump_signals_to_csv_every_x_episodes: int = 5
    dump_gifs: bool = False
    dump_mp4: bool = False
    video_dump_methods: Any = None
    dump_in_episode_signals: bool = False
    dump_parameters_documentation: bool = True
    render: bool = False
    native_rendering: bool = False
    max_fps_for_human_control: int = 10
    tensorboard: bool = False
    add_rendered_image_to_env_response: bool = False
    real_time: bool = False

    @property
    def video_dump_filters(self) -> Any:
        """The name of ``video_dump_methods`` as an attribute in Coach 1.0.1."""
        return self.video_dump_methods

    @video_dump_filters.setter
    def video_dump_filters(self, value: Any) -> None:
        self.video_dump_methods = value


class CuriosityParameters(Parameters):
    """Base class of the settings of intrinsic rewards; see ``rl_coach.agents.curiosity``.

    :cvar frameworks: the frameworks that can train the networks of the intrinsic reward; None for all
    """

    frameworks: ClassVar[tuple[Frameworks, ...] | None] = None


class AgentParameters(Parameters):
    """The settings of an agent: its algorithm, exploration policy, memory, networks and filters.

    :param algorithm: the hyperparameters of learning
    :param exploration: the parameters of the exploration policy
    :param memory: the parameters of the memory
    :param networks: the networks' parameters, by name
    :param visualization: output on the screen and in files; None for the defaults
    :cvar algorithm_names: names of the algorithm for ``make_agent``, the usual name first. The default is one
        name: the name of the class without ``AgentParameters``
    :cvar why_not_in_own_loop: the reason why ``make_agent`` cannot make the agent, and an alternative; "" if
        ``make_agent`` can
    :ivar input_filter: changes the environment's observations and rewards; None uses the environment's default filter
    :ivar output_filter: changes the agent's actions; None uses the environment's default filter
    :ivar pre_network_filter: changes the observations that a network gets as input
    :ivar curiosity: settings of an intrinsic reward for new observations, such as ``RNDParameters()``; None for no
        intrinsic reward
    :ivar full_name_id: ``level/agent``, set when the graph is built
    """

    algorithm_names: ClassVar[tuple[str, ...]]
    why_not_in_own_loop: ClassVar[str] = ""
    constraints = {
        **flags("is_a_highest_level_agent", "is_a_lowest_level_agent", "is_batch_rl_training"),
        "visualization": instance(VisualizationParameters, "VisualizationParameters"),
        "algorithm": instance(AlgorithmParameters, "AlgorithmParameters"),
        "network_wrappers": instance(dict, "a dictionary of NetworkParameters by name"),
        "input_filter": optional(instance(InputFilter, "an InputFilter")),
        "output_filter": optional(instance(OutputFilter, "an OutputFilter")),
        "pre_network_filter": instance(InputFilter, "an InputFilter, such as NoInputFilter()"),
        "curiosity": optional(instance(CuriosityParameters, "RNDParameters()")),
        "name": optional(TEXT),
        "full_name_id": optional(TEXT),
    }

    def __init__(
        self,
        algorithm: AlgorithmParameters,
        exploration: Any,
        memory: Any,
        networks: dict[str, NetworkParameters],
        visualization: VisualizationParameters | None = None,
    ):
        self.visualization = VisualizationParameters() if visualization is None else visualization
        self.algorithm: Any = algorithm
        self.exploration: Any = exploration
        self.memory: Any = memory
        self.network_wrappers = networks
        self.input_filter: InputFilter | None = None
        self.output_filter: OutputFilter | None = None
        self.pre_network_filter: InputFilter = NoInputFilter()
        self.curiosity: CuriosityParameters | None = None
        self.full_name_id: str | None = None
        self.name: str | None = None
        self.is_a_highest_level_agent = True
        self.is_a_lowest_level_agent = True
        self.task_parameters: TaskParameters | None = None
        self.is_batch_rl_training = False

    @property
    def path(self) -> str:
        """``"module:Class"`` of the agent.

        :raises CoachError: if the parameters do not belong to a concrete agent
        """
        raise CoachError(f"{type(self).__name__} names no agent: give it a property 'path' that returns 'module:Class'")


class TaskRole(Enum):
    """The part of the control loop that a process runs.

    :ivar BOTH: acting and training in turn, in one process
    :ivar ROLLOUT: only acting; another process trains on the experience
    :ivar TRAINING: only training, on experience of other processes
    """

    BOTH = "both"
    ROLLOUT = "rollout"
    TRAINING = "training"

    @property
    def acts(self) -> bool:
        """True if the process steps environments."""
        return self is not TaskRole.TRAINING

    @property
    def trains(self) -> bool:
        """True if the process updates networks. This process also writes the checkpoints."""
        return self is not TaskRole.ROLLOUT


@dataclass(eq=False, repr=False)
class TaskParameters(Parameters):
    """Settings of a process in a run: the framework, the directory, checkpoints, the seed and so on.

    :param framework_type: the framework that networks are built on
    :param evaluate_only: None trains; 0 evaluates without end; n evaluates n environment steps. Programs for older
        versions of Coach set True, which means 0, or False, which means None
    :param use_cpu: do not use a GPU
    :param experiment_path: the directory that the run writes to
    :param seed: the run's seed, which makes the run repeatable; None draws a seed
    :param checkpoint_save_secs: seconds between checkpoints; None does not count seconds
    :param checkpoint_restore_dir: deprecated name of ``checkpoint_restore_path``
    :param checkpoint_restore_path: the checkpoint to start from
    :param checkpoint_save_dir: directory of the checkpoints
    :param export_onnx_graph: write the networks as ONNX with each checkpoint
    :param apply_stop_condition: stop when the stop condition is met: enough episodes of an evaluation reach the success
        reward (``env_params.custom_reward_threshold``, or the environment's own threshold)
    :param num_gpu: has no effect; it exists for programs written for Coach 1.0.1. See ``num_devices``
    :param checkpoint_memory: save the replay memory in each checkpoint. Without the memory, a run cannot continue
        exactly
    :param checkpoint_save_steps: environment steps of training between checkpoints; None does not count steps
    :param checkpoint_save_episodes: training episodes between checkpoints; None does not count episodes
    :param checkpoint_keep: number of the newest checkpoints that are kept, in addition to the best; 0 keeps all, None
        uses the setting of the graph manager
    :param num_threads: number of threads for the networks; it cannot change after the first network of this process.
        None selects a number by the size of the networks
    :param num_devices: number of devices that share each batch, or that share the environments of a compiled loop;
        several devices need JAX. None uses one device. In compiled loops, None uses all devices if their number divides
        the number of environments
    :param preset: the name of the preset, for checkpoints
    :param resume: continue the run that wrote ``checkpoint_restore_path``, in its directory
    :param role: the part of the control loop that this process runs
    :param seeds_program: the address of the process that computes this run's compiled loop together with the loops of
        other seeds; None computes the loop in this process
    """

    constraints = {
        **flags("use_cpu", "export_onnx_graph", "apply_stop_condition", "checkpoint_memory", "resume"),
        "framework_type": member(Frameworks),
        "task_index": whole(0),
        "evaluate_only": optional(whole(0)) | FLAG,
        "seed": optional(whole(0)),
        "checkpoint_save_secs": optional(number(0)),
        "num_gpu": whole(0),
        "checkpoint_save_steps": optional(whole(1)),
        "checkpoint_save_episodes": optional(whole(1)),
        "checkpoint_keep": optional(whole(0)),
        "num_threads": optional(whole(1)),
        "num_devices": optional(whole(1)),
        "preset": optional(TEXT),
        "seeds_program": optional(TEXT),
        "role": member(TaskRole),
    }

    framework_type: Frameworks = DEFAULT_FRAMEWORK
    task_index: int = field(init=False, default_factory=int)
    evaluate_only: Union[None, int] = None
    use_cpu: bool = False
    experiment_path: Any = "/tmp"
    seed: int | None = None
    checkpoint_save_secs: int | None = None
    checkpoint_restore_dir: InitVar[str | None] = None
    checkpoint_restore_path: str | None = None
    checkpoint_save_dir: str | None = None
    export_onnx_graph: bool = False
    apply_stop_condition: bool = False
    num_gpu: int = 1
    checkpoint_memory: bool = True
    checkpoint_save_steps: int | None = None
    checkpoint_save_episodes: int | None = None
    checkpoint_keep: int | None = None
    resume: bool = False
    preset: str | None = None
    num_threads: int | None = None
    role: TaskRole = TaskRole.BOTH
    seeds_program: str | None = None
    num_devices: int | None = None

    def __post_init__(self, checkpoint_restore_dir: str | None) -> None:
        self.checkpoint_restore_path = self.checkpoint_restore_path or checkpoint_restore_dir

    @property
    def num_evaluation_steps(self) -> int | None:
        """``evaluate_only`` as a number: None trains, 0 evaluates without end."""
        if isinstance(self.evaluate_only, bool):
            return 0 if self.evaluate_only else None
        return self.evaluate_only


delattr(TaskParameters, "checkpoint_restore_dir")  # an argument, not a setting: an assignment must raise an error


class DistributedTaskParameters(TaskParameters):
    """Settings of one of several workers, for programs written for Coach 1.0.1. Coach itself starts workers without
    this class. Addresses, ``job_type`` and numbers of workers have no effect.

    :param parameters_server_hosts: address of the shared parameters, ``host:port``
    :param worker_hosts: addresses of the workers, ``host:port,host:port``
    :param job_type: ``'worker'`` or ``'ps'``
    :param task_index: index of this worker, from 0
    :param num_tasks: number of workers
    :param num_training_tasks: number of workers that train
    """

    def __init__(
        self,
        framework_type: Frameworks,
        parameters_server_hosts: str,
        worker_hosts: str,
        job_type: str,
        task_index: int,
        evaluate_only: Union[None, int] = None,
        num_tasks: int | None = None,
        num_training_tasks: int | None = None,
        use_cpu: bool = False,
        experiment_path: Any = None,
        dnd: Any = None,
        shared_memory_scratchpad: Any = None,
        seed: int | None = None,
        checkpoint_save_secs: int | None = None,
        checkpoint_restore_path: str | None = None,
        checkpoint_save_dir: str | None = None,
        export_onnx_graph: bool = False,
        apply_stop_condition: bool = False,
    ):
        super().__init__(
            framework_type=framework_type,
            evaluate_only=evaluate_only,
            use_cpu=use_cpu,
            experiment_path=experiment_path,
            seed=seed,
            checkpoint_save_secs=checkpoint_save_secs,
            checkpoint_restore_path=checkpoint_restore_path,
            checkpoint_save_dir=checkpoint_save_dir,
            export_onnx_graph=export_onnx_graph,
            apply_stop_condition=apply_stop_condition,
        )
        self.parameters_server_hosts = parameters_server_hosts
        self.worker_hosts = worker_hosts
        self.job_type = job_type
        self.task_index = task_index
        self.num_tasks = num_tasks
        self.num_training_tasks = num_training_tasks
        self.device = None
        self.worker_target = None
        self.dnd = dnd
        self.shared_memory_scratchpad = shared_memory_scratchpad
