"""Agents with RLgraph's specifications and methods.

A loop that was written for RLgraph runs with its imports changed::

    from rl_coach.own_loop.rlgraph import Agent, DQNAgent, FloatBox, IntBox, OpenAIGymEnv, SingleThreadedWorker
"""

from __future__ import annotations

import functools
import logging
import math
import pathlib
from typing import Any, Callable, ClassVar, Hashable, Mapping, Sequence

import numpy as np

from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DuelingQHeadParameters, QHeadParameters
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.architectures.values import ValuesParameters
from rl_coach.base_parameters import AgentParameters
from rl_coach.command_line.setting_data import NOT_PLAIN, setting_as_data, setting_from_data
from rl_coach.core_types import ActionInfo, EnvResponse
from rl_coach.own_loop.agent import Agent as OwnLoopAgent
from rl_coach.own_loop.forms import SINGLE
from rl_coach.own_loop.making import algorithm_parameters
from rl_coach.own_loop.played import TRUNCATED, Loop, gymnasium_environment
from rl_coach.own_loop.rlgraph_components import (
    LAYERS,
    REPLAY,
    AdamOptimizer,
    Component,
    Exploration,
    Memory,
    NeuralNetwork,
    Optimizer,
    Policy,
    PreprocessorStack,
    PrioritizedReplay,
    ReplayMemory,
    SACAgentComponent,
    Synchronizable,
    SyncSpecification,
    ValueFunction,
)
from rl_coach.own_loop.rlgraph_spaces import (
    BoolBox,
    ContainerSpace,
    Dict,
    FloatBox,
    IntBox,
    Space,
    Tuple,
    box_of,
    parts_of,
)
from rl_coach.own_loop.spec_agent import (
    Algorithm,
    Family,
    General,
    SpecAgent,
    act_at_random,
    made_of,
    refuse_internals,
    without_meaning,
)
from rl_coach.own_loop.spec_parts import (
    SEPARATE,
    Definition,
    Stack,
    has_state,
    keep_episodes_for,
    left_out,
    put_stack,
    schedule_of,
    set_optimizer,
    set_replay,
    stack_of,
)
from rl_coach.own_loop.spec_table import (
    DEMONSTRATIONS,
    Row,
    anything,
    first_value,
    of_target,
    only,
    refused,
    unused,
)
from rl_coach.own_loop.worker import ENVIRONMENTS, SingleThreadedWorker, gymnasium_arguments
from rl_coach.schedules import ConstantSchedule, LinearSchedule
from rl_coach.space_values import one_number, truth
from rl_coach.spaces import are_equal
from rl_coach.utilities.spec_fields import Fields, choice, flag, number, plain, read_data, shown, whole
from rl_coach.utils import CoachError

logger = logging.getLogger("rl_coach")

# settings that all agents have

_MACHINE = unused("the agent runs in this process, on its devices")
_HERE = unused("set experiment_path instead, which writes signals and checkpoints")


def _set_buffer(definition: Definition, size: int) -> None:
    definition.buffer_size = size


def _unless_buffered(definition: Definition, is_buffered: bool) -> None:
    if not is_buffered:
        definition.buffer_size = None


COMMON = [
    Row("discount", "algorithm.discount", number(0, 1)),
    Row("preprocessing_spec", lambda definition, given: definition.preprocess(given, "preprocessing_spec"), anything),
    Row("execution_spec.mode", (), only("agents run in one process", "single")),
    Row("execution_spec.seed", lambda definition, seed: definition.arguments.update(seed=seed), whole(0, 2**31 - 1)),
    Row("observe_spec.buffer_size", _set_buffer, whole()),
    Row("observe_spec.buffer_enabled", _unless_buffered, flag),
    *_HERE("summary_spec", "saver_spec"),
    *_MACHINE(
        "execution_spec.gpu_spec", "execution_spec.session_config", "execution_spec.ray_spec",
        "execution_spec.disable_monitoring", "execution_spec.device_strategy", "execution_spec.default_device",
        "execution_spec.enable_timeline", "execution_spec.trace_enabled", "execution_spec.distributed_spec",
        "execution_spec.device_map", "execution_spec.enable_profiler",
    ),
    *unused("the agent itself keeps the state of its recurrent layers")("internal_states_space"),
    *unused("Coach builds an agent when it creates the agent", True)("auto_build"),
    Row("name", (), anything),
]  # fmt: skip


UPDATES = [
    Row("update_spec.do_updates", (), flag),  # workers read it; a loop calls ``update`` itself
    Row("update_spec.steps_before_update", lambda definition, count: definition.wait(count), whole(0)),
]


def _network(definition: Definition, fields: Fields, network: str = "main") -> Stack | None:
    """The layers of ``network_spec``, which may be a part of ``policy_spec``."""
    policy = fields.fields("policy_spec")
    own, inner = fields.get("network_spec"), None if policy is None else policy.get("network_spec")
    if own is not None and inner is not None:
        raise CoachError("the spec has both 'network_spec' and 'policy_spec.network_spec': give only one of them")
    given, where = (own, "network_spec") if inner is None else (inner, "policy_spec.network_spec")
    stack = None if given is None else stack_of(given, where, LAYERS)
    put_stack(definition, network, stack, where)
    return stack


def _policy_spec(fields: Fields) -> Fields:
    policy = fields.fields("policy_spec") or Fields({}, "policy_spec")
    policy.choice("type", ("policy", "dueling_policy", "shared_value_function_policy"))
    policy.get("scope")
    left_out(policy, "use get_action(use_exploration=False) instead", "deterministic")
    return policy


def _reads_interval(definition: Definition, fields: Fields) -> None:
    update = fields.fields("update_spec")
    if update is None:
        return
    unit, every = update.choice("update_mode", ("time_steps", "episodes")), update.whole("update_interval")
    definition.play(every, unit == "episodes")


# agents that learn values

VALUES = [
    *COMMON,
    *UPDATES,
    Row("huber_loss", "network_wrappers['main'].replace_mse_with_huber_loss", flag),
    Row("n_step", "algorithm.n_step", whole(1, 1000)),
    Row("update_spec.batch_size", "network_wrappers['main'].batch_size", whole(1, 10**5)),
    *of_target("update_spec.sync_interval", "update_spec.sync_tau"),
    Row("exploration_spec.epsilon_spec", lambda definition, given: _explore(definition, given), anything),
    *refused("an agent that learns Q-values explores with epsilon only")("exploration_spec.noise_spec"),
    *unused("update returns only the loss")("store_last_memory_batch", "store_last_q_table"),
]  # fmt: skip


def _explore(definition: Definition, given: Any) -> None:
    where = "exploration_spec.epsilon_spec"
    if isinstance(given, Mapping):
        fields = Fields(given, where)
        for name in ("scope", "num_timesteps_to_decay"):
            fields.get(name)
        decay = fields.get("decay_spec")
        if decay is not None:
            fields.finish()
            given, where = decay, f"{where}.decay_spec"
    if isinstance(given, Mapping) and given.get("type") in (None, "linear_decay", "linear-decay"):
        given = {"from": 1.0, "to": 0.1, **{name: one for name, one in given.items() if one is not None}}
    schedule = schedule_of(given, where, 0, 1)
    definition.parameters.exploration.epsilon_schedule = (
        schedule if hasattr(schedule, "value_at") else ConstantSchedule(schedule)
    )
    definition.set("exploration.evaluation_epsilon", 0.0)


def _complete_values(definition: Definition, fields: Fields) -> None:
    stack = _network(definition, fields)
    keep_episodes_for(definition, stack)
    policy = _policy_spec(fields)
    kind, is_dueling = policy.get("type"), fields.flag("dueling_q") is not False
    if isinstance(kind, str):
        is_dueling = kind.startswith("dueling")
    adapter, reason = fields.fields("action_adapter_spec"), "Coach's dueling head sets the sizes of its streams itself"
    if adapter is not None:
        is_dueling = "dueling" in (adapter.choice("type", ("dueling-action-adapter", "action-adapter")) or "")
        left_out(adapter, reason, "units_state_value_stream", "units_advantage_stream")
    left_out(policy, reason, "units_state_value_stream", "action_adapter_spec")
    head: Any = DuelingQHeadParameters() if is_dueling else QHeadParameters()
    definition.parameters.network_wrappers["main"].heads_parameters = [head]
    _reads_interval(definition, fields)
    _memory(definition, fields, REPLAY)
    set_optimizer(definition, fields.fields("optimizer_spec"), ["main"])


def _memory(definition: Definition, fields: Fields, kinds: Mapping[str, bool | None]) -> None:
    memory = fields.fields("memory_spec")
    set_replay(definition, memory, kinds, {"alpha": "memory.alpha", "beta": "memory.beta"})
    if memory is not None:
        memory.flag("next_states")
    capacity, batch = fields.at("memory_spec.capacity")[0], fields.at("update_spec.batch_size")[0]
    main = definition.parameters.network_wrappers.get("main")
    if main is not None and batch is None and capacity is not None and capacity < main.batch_size:
        definition.set("network_wrappers['main'].batch_size", int(capacity))


# agents with a policy


def _critic(definition: Definition, fields: Fields, stack: Stack | None) -> None:
    """Set the critic. In Coach, the critic has the layers and the optimizer of the policy."""
    given = fields.get("value_function_spec")
    if given is not None:
        layers = stack_of(given, "value_function_spec", LAYERS)
        definition.set(f"network_wrappers['main'].{SEPARATE}", None if has_state(stack) else True)
        if stack is None:
            put_stack(definition, "main", layers, "value_function_spec")
        elif layers != stack:
            left_out(fields, "Coach's critic has the layers of 'network_spec'", "value_function_spec")
    own = Definition(definition.parameters, space=definition.space)
    set_optimizer(own, fields.fields("value_function_optimizer_spec"), ["main"])
    if any(repr(definition.settings.get(path, value)) != repr(value) for path, value in own.settings.items()):
        left_out(fields, "policy and critic use the same optimizer, 'optimizer_spec'", "value_function_optimizer_spec")


POLICY = [
    *COMMON,
    *UPDATES,
    Row("weight_entropy", "algorithm.beta_entropy", first_value),
    Row("gae_lambda", "algorithm.gae_lambda", number(0, 1)),
    *unused("the agent explores with random actions of its policy")("exploration_spec"),
]


def _complete_policy(definition: Definition, fields: Fields) -> None:
    stack = _network(definition, fields)
    _policy_spec(fields)
    memory = fields.fields("memory_spec")  # stores only the newest episodes
    if memory is not None:
        memory.choice("type", ("ring_buffer", "fifo_queue"))
        definition.set_memory_of_phases(memory.whole("capacity"))
    set_optimizer(definition, fields.fields("optimizer_spec"), ["main"])
    _critic(definition, fields, stack)


def _set_clip(definition: Definition, schedule: Any) -> None:
    if not hasattr(schedule, "value_at"):
        definition.set("algorithm.clip_likelihood_ratio_using_epsilon", float(schedule))
        return
    first = schedule.value_at(0)
    definition.set("algorithm.clip_likelihood_ratio_using_epsilon", first)
    if isinstance(schedule, LinearSchedule):
        share = schedule.final_value / first
        definition.parameters.algorithm.clipping_decay_schedule = LinearSchedule(1.0, share, schedule.decay_steps)
    elif not isinstance(schedule, ConstantSchedule):
        logger.warning("the spec's 'clip_ratio' stays at %g: only a linear schedule from step 0 is supported", first)


PPO = [
    *POLICY,
    Row("clip_ratio", _set_clip, lambda value, where: schedule_of(value, where, 1e-6)),
    Row("value_function_clipping", "algorithm.clip_value_using_epsilon", number(1e-9)),
    *unused("Coach's PPO always standardizes advantages", True)("standardize_advantages"),
    Row("update_spec.sample_size", "network_wrappers['main'].batch_size", whole(1, 10**5)),
    *unused("ppo has no target network")("update_spec.sync_interval"),
]


def _complete_ppo(definition: Definition, fields: Fields) -> None:
    _complete_policy(definition, fields)
    samples_episodes = bool(fields.flag("sample_episodes"))
    update = fields.fields("update_spec") or Fields({}, "update_spec")
    mode, batch = update.choice("update_mode", ("time_steps", "episodes")), update.whole("batch_size", high=10**7)
    every, iterations = update.whole("update_interval"), update.whole("num_iterations", high=10**6)
    if mode != "episodes" and not samples_episodes and batch is not None and every not in (None, batch):
        left_out(update, f"ppo learns after every {batch} steps (batch_size)", "update_interval")
    definition.play(batch or every, samples_episodes)
    sample = update.get("sample_size")
    if iterations is not None:
        share = min(1.0, sample / batch) if sample and batch and not samples_episodes else 1.0
        definition.set("algorithm.optimization_epochs", max(1, round(iterations * share)))


ACTOR_CRITIC = [
    *POLICY,
    *unused("actor_critic learns each time batch_size is reached")(
        "update_spec.update_interval", "update_spec.sync_interval"
    ),
    *unused("actor_critic does not standardize advantages")("standardize_advantages"),
]


def _complete_actor_critic(definition: Definition, fields: Fields) -> None:
    _complete_policy(definition, fields)
    if "algorithm.gae_lambda" in definition.settings:
        definition.set("algorithm.policy_gradient_rescaler", PolicyGradientRescaler.GAE)
    samples_episodes = fields.flag("sample_episodes")
    update = fields.fields("update_spec") or Fields({}, "update_spec")
    update.choice("update_mode", ("time_steps", "episodes"))
    batch = update.whole("batch_size", high=10**7)
    if batch is not None and samples_episodes:
        definition.set("algorithm.apply_gradients_every_x_episodes", batch)
    elif batch is not None:
        definition.set("algorithm.num_steps_between_gradient_updates", batch)
        definition.set("algorithm.apply_gradients_every_x_episodes", 1)


def _weigh_head(number_of_head: int) -> Any:
    def put(definition: Definition, weight: float) -> None:
        definition.parameters.network_wrappers["main"].heads_parameters[number_of_head].loss_weight = weight

    return put


IMPALA = [
    *POLICY,
    Row("worker_sample_size", "algorithm.num_steps_between_gradient_updates", whole(1, 10**6)),
    Row("update_spec.batch_size", "algorithm.segments_per_update", whole(1, 10**6)),
    Row("weight_baseline", _weigh_head(0), number(0, 1e6)),
    Row("weight_pg", _weigh_head(1), number(0, 1e6)),
    *unused("network_spec defines the layers", "large")("architecture"),
    Row("environment_spec", (), Fields),  # SingleIMPALAAgent reads it when it plays
    *unused("your loop steps the environments: set num_envs instead")("num_workers", "visualize"),
    *unused("Coach's impala needs no queue for its segments")("fifo_queue_spec", "dynamic_batching", "batch_apply"),
    *unused("add the last action and the last reward to the states instead")(
        "feed_previous_action_through_nn", "feed_previous_reward_through_nn"
    ),
    *unused("impala learns after every batch_size segments")("update_spec.update_mode", "update_spec.update_interval"),
    *unused("impala has no target network")("update_spec.sync_interval"),
]

SAC = [
    *COMMON,
    *UPDATES,
    Row("initial_alpha", lambda definition, alpha: _set_temperature(definition, alpha), number(1e-6, 1e6)),
    Row("alpha_optimizer_spec", lambda definition, given: _optimize_temperature(definition, given), anything),
    Row("target_entropy", "algorithm.target_entropy", number()),
    Row(
        "double_q",
        lambda definition, twice: setattr(_critic_head(definition), "num_critics", 2 if twice else 1),
        flag,
    ),
    Row(
        "update_spec.batch_size", ("network_wrappers['policy'].batch_size", "network_wrappers['q'].batch_size"),
        whole(1, 10**5),
    ),
    *of_target("update_spec.sync_interval", "update_spec.sync_tau"),
    Row("update_spec.num_iterations", "algorithm.num_consecutive_training_steps", whole(1, 10**6)),
    *unused("the agent explores with random actions of its policy")("exploration_spec"),
    *unused("Coach's sac rounds continuous actions down to choices")("gumbel_softmax_temperature"),
]  # fmt: skip


def _critic_head(definition: Definition) -> Any:
    return definition.parameters.network_wrappers["q"].heads_parameters[0]


def _set_temperature(definition: Definition, alpha: float) -> None:
    temperature = ValuesParameters({"log_temperature": math.log(alpha)}, learning_rate=0.0003)
    definition.parameters.network_wrappers["temperature"] = temperature


def _optimize_temperature(definition: Definition, given: Any) -> None:
    name = "alpha_optimizer_spec"
    if given is False:  # the temperature is constant
        temperature: Any = definition.parameters.network_wrappers.pop("temperature")
        definition.set("algorithm.temperature", math.exp(temperature.trained["log_temperature"]))
    else:
        set_optimizer(definition, Fields({name: given}).fields(name), ["temperature"])


def _complete_sac(definition: Definition, fields: Fields) -> None:
    stack = _network(definition, fields, "policy")
    if has_state(stack):
        raise CoachError("the spec's 'network_spec': sac does not support an LSTM")
    _policy_spec(fields)
    given = fields.get("value_function_spec")
    critics = stack if given is None else stack_of(given, "value_function_spec", LAYERS)
    q = definition.parameters.network_wrappers["q"]
    if critics is not None:
        if critics.cells is not None:
            raise CoachError("the spec's 'value_function_spec': sac does not support an LSTM")
        if critics.units:
            _critic_head(definition).network_layers_sizes = tuple(critics.units)
        put_stack(definition, "q", Stack(critics.convolutions, [], None, critics.by_name), "value_function_spec")
    elif "observation" not in definition.shapes:
        q.input_embedders_parameters = {name: InputEmbedderParameters(scheme=[]) for name in definition.shapes}
    _reads_interval(definition, fields)
    _memory(
        definition,
        fields,
        {"replay": False, "replay_memory": False, "replay_buffer": False, "prioritized_replay": None},
    )
    if (fields.at("memory_spec.type")[0] or "").startswith("prioritized"):
        left_out(fields, "sac samples without priorities", "memory_spec")
    set_optimizer(definition, fields.fields("optimizer_spec"), ["policy"])
    set_optimizer(definition, fields.fields("value_function_optimizer_spec") or fields.fields("optimizer_spec"), ["q"])


RANDOM = [
    *COMMON,
    *unused("a random agent learns nothing")(
        "update_spec", "exploration_spec", "optimizer_spec", "value_function_spec", "memory_spec",
    ),
]  # fmt: skip


def _dqn_parameters(fields: Fields) -> AgentParameters:
    return algorithm_parameters("DQN" if fields.flag("double_q") is False else "DDQN")


_impala = Algorithm(made_of("IMPALA"), IMPALA, _complete_policy)
_DOUBLE = Row("double_q", (), only("the agent always uses double Q-learning", True))


FAMILY = Family(
    "RLgraph",
    {
        "dqn": Algorithm(_dqn_parameters, VALUES, _complete_values),
        "apex": Algorithm(made_of("ApexDQN"), [*VALUES, _DOUBLE], _complete_values),
        "dqfd": Algorithm(
            made_of("DQfD"),
            [
                *VALUES, _DOUBLE, *DEMONSTRATIONS,
                Row("demo_memory_spec.type", (), choice(REPLAY)),
                *unused("the memory keeps all demonstrations")("demo_memory_spec.capacity"),
                *unused("priorities decide the share of demonstrations in a batch")("demo_sample_ratio"),
            ],
            _complete_values,
        ),
        "ppo": Algorithm(made_of("ClippedPPO"), PPO, _complete_ppo),
        "actor_critic": Algorithm(made_of("ActorCritic"), ACTOR_CRITIC, _complete_actor_critic),
        "sac": Algorithm(
            lambda fields: SoftActorCriticAgentParameters(use_value_network=False), SAC, _complete_sac, True, True
        ),
        "impala": _impala,
        "single_impala": _impala,
        "random": Algorithm(made_of("PolicyGradients"), RANDOM, act_at_random(_network)),
    },
    ("state_space",),
    ("action_space",),
    (
        "state_space", "action_space", "discount", "preprocessing_spec", "network_spec", "internal_states_space",
        "policy_spec", "value_function_spec", "exploration_spec", "execution_spec", "optimizer_spec",
        "value_function_optimizer_spec", "observe_spec", "update_spec", "summary_spec", "saver_spec", "auto_build",
        "name",
    ),
    lambda given: parts_of(given, "state_space"),
    lambda given: parts_of(given, "action_space"),
    updates_itself=False,
    general=General(COMMON, "optimizer_spec", _network),
)  # fmt: skip


# methods

_EXTRAS = ("preprocessed_states", "internal_states", "used_exploration")


def _given(*names: str) -> dict[str, Callable[[Any], Any]]:
    """Attributes that are parts of the specification."""

    def of(name: str) -> Callable[[Any], Any]:
        return lambda agent: agent.spec.document.get(name)

    return {name: of(name) for name in names}


def _part_of(kind: type[Component], key: str) -> Callable[[Any], Any]:
    """An attribute that is made from the specification at ``key``; None without this key."""

    def made(agent: Any) -> Any:
        given = agent.spec.document.get(key)
        return None if given is None else kind.from_spec(given)

    return made


def _buffer(column: str) -> Callable[[Any], Any]:
    """An attribute with one column of the episodes in progress, by environment."""
    return lambda agent: {
        name: [getattr(one, column) for one in agent._transitions(index)] for index, name in enumerate(agent.env_names)
    }


def _stack(agent: Any) -> PreprocessorStack:
    stack = PreprocessorStack.from_spec(agent.spec.document.get("preprocessing_spec"))
    stack.get_preprocessed_space(agent.state_space)
    return stack


def _actions_of(agent: Any) -> Space:
    found = {name: box_of(part) for name, part in agent.spec.actions.parts.items()}
    return found[SINGLE] if SINGLE in found else Tuple(list(found.values())) if 0 in found else Dict(found)


def _flat(space: Space) -> Any:
    return space.flatten() if isinstance(space, ContainerSpace) else None


_ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "timesteps": lambda agent: agent.total_steps,
    "train_time_steps": lambda agent: agent.total_updates,
    "name": lambda agent: str(agent.spec.document.get("name") or f"{agent.kind or 'agent'}-agent"),
    "discount": lambda agent: float(agent.graph_manager.agent_params.algorithm.discount),
    "update_spec": lambda agent: dict(agent.spec.document.get("update_spec") or {"do_updates": False}),
    **_given(
        "policy_spec", "network_spec", "optimizer_spec", "observe_spec", "execution_spec", "exploration_spec",
        "action_adapter_spec", "internal_states_space",
    ),
    "optimizer": _part_of(Optimizer, "optimizer_spec"),
    "value_function_optimizer": _part_of(Optimizer, "value_function_optimizer_spec"),
    "neural_network": _part_of(NeuralNetwork, "network_spec"),
    "preprocessor": _stack,
    "preprocessing_required": lambda agent: bool(agent._core.input_filter.observation_filters),
    "preprocessed_state_space": lambda agent: _stack(agent).get_preprocessed_space(agent.state_space),
    "state_space": lambda agent: Space.from_spec(agent.spec.space),
    "action_space": _actions_of,
    "flat_state_space": lambda agent: _flat(agent.state_space),
    "flat_action_space": lambda agent: _flat(agent.action_space),
    "input_spaces": lambda agent: {"states": agent.state_space.with_batch_rank()},
    "record_space": lambda agent: Dict(
        states=agent.state_space, actions=agent.action_space, rewards=float, terminals=BoolBox()
    ),
    "exploration": lambda agent: agent._core.exploration_policy,
    "memory": lambda agent: agent._core.memory,
    "logger": lambda agent: logger,
    "build_options": lambda agent: {},
    "default_env": lambda agent: agent.env_names[0],
    "states_buffer": _buffer("state"),
    "actions_buffer": _buffer("action"),
    "rewards_buffer": _buffer("reward"),
    "next_states_buffer": _buffer("next_state"),
    "terminals_buffer": _buffer("terminated"),
    "internals_buffer": lambda agent: {name: [] for name in agent.env_names},
}  # fmt: skip
_RULES = "losses are update rules in rl_coach/agents/rules; get_td_loss returns the loss of a batch"
_GRAPH = "Coach has no graph to define; override a method of the agent, or write an update rule"
_WEIGHTS = "use get_policy_weights and set_policy_weights"
_OF_GRAPHS = {
    **dict.fromkeys(("loss_function",), _RULES),
    **dict.fromkeys(
        ("define_graph_api", "define_api_methods", "define_api_methods_actor", "define_api_methods_learner",
         "define_api_methods_single", "_build_graph", "root_component", "graph_builder", "graph_executor"),
        _GRAPH,
    ),
    **dict.fromkeys(("vars_merger", "vars_splitter"), _WEIGHTS),
    **dict.fromkeys(("merger", "splitter"), "observe, update and import_observations accept dicts of columns"),
    "policy": f"{_WEIGHTS}, or get_action of the agent; Policy is a policy without an agent",
    "value_function": f"{_WEIGHTS} for its weights; ValueFunction is a value function without an agent",
}  # fmt: skip
_SPECS = "Coach checks a specification when it creates the agent"
__getattr__ = without_meaning(
    "RLgraph",
    {
        **dict.fromkeys(("PPOLossFunction", "IMPALALossFunction", "DQNLossFunction", "LossFunction"), _RULES),
        **dict.fromkeys(("GraphBuilder", "GraphExecutor", "rlgraph_api", "Specifiable"), _GRAPH),
        **dict.fromkeys(
            ("DictMerger", "ContainerMerger", "ContainerSplitter", "DictSplitter"), "pass dicts of columns instead"
        ),
        **dict.fromkeys(("parse_execution_spec", "parse_observe_spec", "parse_update_spec"), _SPECS),
        **dict.fromkeys(("FIFOQueue", "StagingArea", "EnvironmentStepper"), "IMPALAAgent stores its segments itself"),
        **dict.fromkeys(
            ("RayExecutor", "RayWorker", "ApexExecutor", "SyncBatchExecutor"),
            "coach -dc -dcp FILE runs presets on Ray if FILE contains orchestrator = ray",
        ),
        **dict.fromkeys(
            ("MLAgentsEnv", "DeepmindLabEnv", "ViZDoomEnv"),
            "give agent and worker an environment with state_space, action_space, reset and step",
        ),
        "DADSWorker": "Coach does not have the algorithm DADS",
        "get_backend": "select the framework with the agent's argument framework",
        "ActionAdapter": "the action space selects the head of a policy",
    },
    f"module '{__name__}'",
)  # fmt: skip


class RLgraphAgent(SpecAgent):
    """An agent with RLgraph's methods. It also has the methods of ``Agent``, but ``observe`` has RLgraph's arguments.

    Your loop calls ``update``, unless the agent was made with ``updates_itself=True``. You need not declare names of
    environments: each new name becomes the next environment of ``num_envs``.
    """

    family = FAMILY
    kind: ClassVar[str | None] = None
    auto_build = graph_built = True
    attributes = _ATTRIBUTES
    without_meaning = _OF_GRAPHS
    not_called_in_loops = ("get_action", "observe", "update")

    def _begin(self, graph: Any, env_ids: Sequence[Any], updates_itself: bool, definition: Mapping[str, Any]) -> Any:
        super()._begin(graph, env_ids, updates_itself, definition)
        self._drawn: dict[int, list[tuple[Any, ActionInfo]]] = {}  # by the hash of the state
        self._names: dict[Any, int] = {name: index for index, name in enumerate(self.env_names)}
        networks = graph.agent_params.network_wrappers.values()
        self._remembers = any(isinstance(one.middleware_parameters, LSTMMiddlewareParameters) for one in networks)
        self._filters_remember = any(one.remembers_episode for _, one in self._core.input_filter._members())
        return self

    def get_action(
        self,
        states: Any,
        internals: Any = None,
        use_exploration: bool = True,
        apply_preprocessing: bool = True,
        extra_returns: Any = None,
    ) -> Any:
        """Choose an action for one state or for each of several states. Nothing is stored or counted before
        ``observe``.

        :param states: one state, or [N, ...]; with several environments these are their states, in order
        :param internals: not supported; the agent itself keeps the state of a recurrent network
        :param use_exploration: False for the policy's best action
        :param apply_preprocessing: False if the states have been preprocessed already
        :param extra_returns: one or several of ``"preprocessed_states"`` (for ``observe``), ``"internal_states"``
            (always None) and ``"used_exploration"``
        :return: the action in the form of your environment; for several states [N, ...] or a list of dicts. With
            ``extra_returns``, a tuple of the action and these values
        :raises CoachError: if an argument asks for a value that is not supported
        """
        refuse_internals(internals)
        self._refuse_masks()
        wanted = [extra_returns] if isinstance(extra_returns, str) else list(extra_returns or ())
        if unknown := [one for one in wanted if one not in _EXTRAS]:
            allowed = ", ".join(map(repr, _EXTRAS))
            raise CoachError(f"extra_returns has {shown(unknown[0])}: only {allowed} are allowed")
        rows = self.rows_of(states)
        given = [states] if rows is None else rows
        self.graph_manager.enter_phase()
        # filters that remember the episode need all rows in one call: row i continues row i of the last call
        all_rows = functools.cache(lambda: self.predict(_raw(states)))
        is_together = rows is not None and self._filters_remember

        def best(row: int) -> Any:
            return all_rows()[row] if is_together else self.predict(_raw(given[row]))

        settings = (use_exploration, apply_preprocessing, best, rows is None)
        chosen = [self._query(row, one, *settings) for row, one in enumerate(given)]
        actions = chosen[0] if rows is None else chosen if SINGLE not in self.spec.actions.parts else np.asarray(chosen)
        extras = {
            "preprocessed_states": lambda: self.preprocess_states(states) if apply_preprocessing else states,
            "internal_states": list,
            "used_exploration": lambda: bool(use_exploration),
        }
        return (actions, *(extras[name]() for name in wanted)) if wanted else actions

    def _transitions(self, index: int) -> list[Any]:
        """The steps of the episode in progress of an environment."""
        if not self._level.has_one_episode:
            self._core.parallel.enter(index)
        return list(self._core.episode.buffer.transitions)

    def rows_of(self, states: Any) -> list[Any] | None:
        """The states of a batch; None for a single state."""
        space = self.spec.space
        parts = getattr(space, "spaces", None)
        if parts is None:
            one, shape = states, tuple(space.shape or ())
        elif isinstance(states, tuple) or (isinstance(states, Mapping) and states.keys() >= parts.keys()):
            name = 0 if isinstance(states, tuple) else next(iter(parts))
            one, shape = states[name], tuple(parts[name].shape or ())
        else:
            return None
        rank = len(one.raw_shape) if isinstance(one, Preprocessed) else np.ndim(one)
        are_tuples = self._observes_tuples
        return [_row(states, number, are_tuples) for number in range(len(one))] if rank > len(shape) else None

    def _query(
        self, row: int, state: Any, explores: bool, preprocesses: bool, best: Callable[[int], Any], is_single: bool
    ) -> Any:
        """The action for a state. Nothing is stored or counted, except if the network is recurrent.

        :param best: returns the policy's best action for a row, if its state is not in the episode of the environment
        """
        raw = _raw(state)
        count = len(self.env_names)
        index = self._place_of(raw) if is_single and count > 1 else row % count
        if not preprocesses and self.preprocessing_required and raw is state:
            raise CoachError("apply_preprocessing=False needs the states that preprocess_states returned")
        if self._remembers:
            return self._act_with_memory(index, raw, explores)
        core, environment = self._core, self._environments[index]
        if not explores and not (self._filters_remember and self._enters(index, raw)):
            return best(row)
        if not explores:
            info = ActionInfo(self._best_action())
        elif core.acts_by_networks:
            info = core.choose_action(core.run_pre_network_filter_for_inference(self._filtered(index, raw), False))
        else:
            info = core.spaces.action.sample_with_info()
        within = environment.action_space.clip_action_to_space(core.output_filter.filter(info).action)
        action = self.spec.actions.to_user(environment.simulator_action(within))
        if explores:
            place = self._hash_of(raw)
            self._drawn[place] = [*self._drawn.pop(place, [])[-63:], (action, info)]
            if len(self._drawn) > _MOST_DRAWN:
                del self._drawn[next(iter(self._drawn))]
        return action

    def _place_of(self, state: Any) -> int:
        """The environment of a single state: the one in this state, or one between two episodes, or the first one."""
        places = range(len(self.env_names))
        found = (index for index in places if self._enters(index, state))
        return next(found, next(filter(self._episode_is_over, places), 0))

    def _hash_of(self, state: Any) -> int:
        has_parts = isinstance(state, (Mapping, tuple))
        parts = self._environments[0].read(state, {}).values() if has_parts else [state]
        # float32, because a loop may give other types to ``observe`` than to ``get_action``
        return hash(tuple([np.asarray(part, np.float32).tobytes() for part in parts]))

    def _take_drawn(self, state: Any, action: Any) -> ActionInfo | None:
        """The newest draw of an action in a state, which is forgotten; None if the agent did not draw the action."""
        place = self._hash_of(state)
        draws = self._drawn.pop(place, [])
        found = next((one for one in reversed(draws) if are_equal(one[0], action)), None)
        if left := [one for one in draws if one is not found]:
            self._drawn[place] = left
        return None if found is None else found[1]

    def _act_with_memory(self, index: int, state: Any, explores: bool) -> Any:
        """Act in the state, because a recurrent network must see each state exactly once."""
        name = None if len(self.env_names) == 1 else self.env_names[index]
        return self.act(state, name, not explores)

    def _filtered(self, index: int, state: Any) -> Any:
        """A state after the agent's filters. If it is the current state of the episode, the filters use the episode's
        earlier states."""
        if self._enters(index, state):
            return self._core.episode.curr_state
        return self._filter_alone(self._environments[index].read(state, {}))

    def _enters(self, index: int, state: Any) -> bool:
        """True if a state is the current state of an environment's episode; the agent then is in this episode."""
        if self._episode_is_over(index) or not self._environments[index].shows(state, {}):
            return False
        if not self._level.has_one_episode:
            self._core.parallel.enter(index)
        return True

    def _filter_alone(self, state: Any) -> Any:
        core = self._core
        histories = core.input_filter.episode_state()
        core.input_filter.reset()
        try:
            return core.input_filter.filter(EnvResponse(state, 0.0, False), update_internal_state=False)[0].next_state
        finally:
            core.input_filter.set_episode_state(histories)

    def preprocess_states(self, states: Any) -> Any:
        """States after ``preprocessing_spec``, each as the first state of an episode. ``observe`` also accepts these
        states."""
        if not self.preprocessing_required:
            return states
        environment, rows = self._environments[0], self.rows_of(states)
        found = [self._filter_alone(environment.read(one, {})) for one in ([states] if rows is None else rows)]
        parts = getattr(self.spec.space, "spaces", None)
        if parts is not None:
            made = {}
            for name in range(len(parts)) if self._observes_tuples else parts:
                column = np.stack([np.asarray(one[str(name)]) for one in found])
                made[name] = Preprocessed.of(column if rows is not None else column[0], states[name])
            return tuple(made.values()) if self._observes_tuples else made
        column = np.stack([np.asarray(one["observation"]) for one in found])
        return Preprocessed.of(column if rows is not None else column[0], states)

    def observe(  # type: ignore[override]  # RLgraph's order
        self,
        preprocessed_states: Any,
        actions: Any,
        internals: Any = None,
        rewards: Any = 0.0,
        next_states: Any = None,
        terminals: Any = False,
        env_id: Any = None,
    ) -> None:
        """Store steps of an environment. The actions may differ from the agent's actions.

        A step begins an episode if its state is not the last state of the environment's last step.

        :param preprocessed_states: the state, or [N, ...] for N consecutive steps
        :param actions: the action, or [N, ...]
        :param internals: not supported
        :param rewards: a number, or [N]
        :param next_states: the state after the action, also the last state of an episode, or [N, ...]
        :param terminals: True if the episode has ended, or [N]
        :param env_id: name of the environment; None if there is one environment. With N environments, None also means
            one step of each environment
        :raises CoachError: if a state or an action has a wrong form
        """
        refuse_internals(internals)
        self._refuse_masks()
        rows = self.rows_of(preprocessed_states)
        if rows is None:
            self._observe(self._index(env_id), preprocessed_states, actions, rewards, next_states, terminals)
            return
        is_each = env_id is None and len(self.env_names) > 1
        if is_each and len(rows) != len(self.env_names):
            raise CoachError(f"{len(rows)} steps are given for {len(self.env_names)} environments: give env_id")
        for place, state in enumerate(rows):
            index = place if is_each else self._index(env_id)
            after = None if next_states is None else _row(next_states, place, self._observes_tuples, len(rows))
            ends = terminals if np.ndim(terminals) == 0 else _row(terminals, place, False, len(rows))
            action, reward = (_row(column, place, False, len(rows)) for column in (actions, rewards))
            self._observe(index, state, action, reward, after, ends)

    _observe_graph = observe

    def _refuse_masks(self) -> None:
        if self.uses_masks_of_infos:
            raise CoachError(
                "get_action and observe have no argument for an action_mask: add it to the states, as a part "
                "'action_mask', or use a SingleThreadedWorker"
            )

    def _index(self, env_id: Any) -> int:
        if env_id is None:
            return 0
        if not isinstance(env_id, Hashable):
            raise CoachError(f"env_id must be the name of one environment, not {shown(env_id)}")
        if env_id not in self._names:
            taken = {self._names[name] for name in self._names if name not in self.env_names}
            free = [index for index in range(len(self.env_names)) if index not in taken]
            if not free:
                raise CoachError(
                    f"there are {len(self.env_names)} environments, and {env_id!r} is one more: set a larger num_envs"
                )
            self._names[env_id] = free[0]
        return self._names[env_id]

    def _observe(self, index: int, state: Any, action: Any, reward: Any, next_state: Any, terminal: Any) -> None:
        name = self.env_names[index]
        ends, reward = truth(terminal, "'terminals'"), one_number(reward, f"the reward of environment {name!r}")
        where = None if len(self.env_names) == 1 else name
        if self._remembers:
            environment = self._environments[index]
            chosen = environment.fed.action
            if chosen is None or not are_equal(self.spec.actions.to_user(environment.expect_answer(chosen)), action):
                raise CoachError(
                    f"environment {name!r}: an agent with an LSTM can only observe actions of its get_action"
                )
        else:
            self._play(index, _raw(state), action)
        is_full = not ends and next_state is not None and self._fills_buffer(index)
        OwnLoopAgent.observe(self, reward, ends, is_full, _raw(next_state), where)

    def _fills_buffer(self, index: int) -> bool:
        """True if the last action of an environment was the last one of ``buffer_size``."""
        if self.spec.buffer_size is None:
            return False
        if not self._level.has_one_episode:
            self._core.parallel.enter(index)
        return self._core.episode.steps >= self.spec.buffer_size

    def _play(self, index: int, state: Any, action: Any) -> None:
        """Act in a state with a given action, instead of an action that the agent chooses."""
        core, level, environment = self._core, self._level, self._environments[index]
        environment.require_fitting(state)
        chosen = core.output_filter.reverse_filter(
            ActionInfo(environment.environment_action(self.spec.actions.from_user(action)))
        )
        self.graph_manager.enter_phase()
        if environment.fed.deferred is not None:
            self._take_deferred({index: (state, {})})
        if not self._episode_is_over(index) and not (environment.is_fed and environment.shows(state, {})):
            self._leave(index)
        self._show(index, state, {})
        self.graph_manager.begin_step()
        if level.has_one_episode:
            level.look()
        else:
            level.look_in([index])
            core.parallel.enter(index)
        drawn = self._take_drawn(state, action)
        acted = core.act(chosen.action)
        if drawn is not None:  # with the probabilities from the time of the draw
            core.episode.last_action_info = drawn
        environment.expect_answer(acted.action)

    def reset_env_buffers(self, env_id: Any = None) -> None:
        """Leave the episode of an environment. :param env_id: the environment's name; None for all"""
        self.reset(None if env_id is None else self.env_names[self._index(env_id)])

    def call_api_method(self, op: str, inputs: Any = None, return_ops: Any = None) -> Any:
        """Call a method of the agent by its name.

        :param op: the name of the method
        :param inputs: a dict or a list of its arguments, or a single argument
        :param return_ops: not supported: methods return all their outputs
        :raises CoachError: if the agent has no method of this name
        """
        method = None if str(op).startswith("_") else getattr(self, str(op), None)
        if not callable(method):
            raise CoachError(
                f"the agent has no method {op!r}: call_api_method can only call the agent's own methods, because Coach "
                f"has no graph of RLgraph"
            )
        if return_ops:
            raise CoachError("return_ops is not supported: each method returns all its outputs")
        if isinstance(inputs, Mapping) and all(isinstance(name, str) for name in inputs):
            return method(**inputs)
        return method(*(inputs if isinstance(inputs, (list, tuple)) else [] if inputs is None else [inputs]))

    def build(self, build_options: Any = None) -> None:
        """Do nothing: Coach builds an agent when it is created. :param build_options: not supported"""
        if build_options:
            raise CoachError("build_options are not supported, because Coach has no graph of RLgraph: leave them out")

    def _loop_state(self) -> dict[str, Any]:
        written = {index: setting_as_data(name) for name, index in self._names.items() if name not in self.env_names}
        return {**super()._loop_state(), "names": {i: name for i, name in written.items() if name is not NOT_PLAIN}}

    def _set_loop_state(self, state: Mapping[str, Any]) -> None:
        super()._set_loop_state(state)
        names = {setting_from_data(name): int(index) for index, name in state.get("names", {}).items()}
        self._names = {**{name: index for index, name in enumerate(self.env_names)}, **names}
        self._drawn.clear()

    terminate = OwnLoopAgent.close
    get_policy_weights = OwnLoopAgent.get_weights
    set_policy_weights = OwnLoopAgent.set_weights

    def store_model(self, path: Any = None, add_timestep: bool = True) -> str:
        """Write all data that are needed to continue exactly.

        :param path: a directory; None for ``rlgraph-model`` in the current directory
        :param add_timestep: append the number of steps to the name of the directory
        :return: the directory, for ``load_model``
        """
        path = _MODEL if path is None else path
        directory = f"{path}-{self.total_steps}" if add_timestep else str(path)
        self.save(directory)
        return directory

    def load_model(self, path: Any = None, checkpoint_directory: Any = None) -> None:
        """Continue from a model that ``store_model`` wrote.

        :param path: the result of ``store_model``; None for the newest model in the default directory
        :param checkpoint_directory: older name of ``path``
        """
        path = path or checkpoint_directory
        if path is None:
            found = {int(one.name[len(_MODEL) + 1 :]): one for one in pathlib.Path(".").glob(f"{_MODEL}-*")
                     if one.name[len(_MODEL) + 1 :].isdigit()}  # fmt: skip
            path = found[max(found)] if found else _MODEL
        self._restore(path)

    def export_graph(self, filename: Any = None) -> pathlib.Path:
        """The same as ``export_model``. :param filename: a directory that is empty or does not exist"""
        if filename is None:
            raise CoachError("export_graph needs a directory: give filename")
        return self.export_model(filename)


_MODEL = "rlgraph-model"
_MOST_DRAWN = 4096  # states with actions that were drawn and not observed yet


class Preprocessed(np.ndarray):
    """A state after preprocessing, together with the state before preprocessing.

    :ivar raw: the state before preprocessing
    """

    raw: Any

    @classmethod
    def of(cls, values: np.ndarray, raw: Any) -> Preprocessed:
        """A ``Preprocessed`` state from its two forms.

        :param values: the state after preprocessing
        :param raw: the state before preprocessing
        """
        made = np.asarray(values).view(cls)
        made.raw = raw
        return made

    def __array_finalize__(self, source: Any) -> None:
        self.raw = None

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """The shape of the state before preprocessing."""
        return np.shape(self.raw)


def _raw(state: Any) -> Any:
    """A state before preprocessing."""
    if isinstance(state, Mapping):
        return {name: _raw(part) for name, part in state.items()}
    if isinstance(state, tuple):
        return tuple(map(_raw, state))
    if isinstance(state, Preprocessed) and state.raw is not None:
        return state.raw
    return state


def _row(values: Any, index: int, are_tuples: bool = False, count: int | None = None) -> Any:
    if are_tuples and isinstance(values, tuple):
        return tuple(_row(part, index, count=count) for part in values)
    if isinstance(values, Mapping):
        return {name: _row(part, index, count=count) for name, part in values.items()}
    try:
        if count not in (None, len(values)):
            raise CoachError(f"{shown(values)} has {len(values)} rows, and there are {count} states")
        if isinstance(values, Preprocessed) and values.raw is not None:
            return Preprocessed.of(values[index], values.raw[index])
        return values[index]
    except (LookupError, TypeError):
        raise CoachError(f"{shown(values)} has no row {index}") from None


Agent = RLgraphAgent


DQNAgent = RLgraphAgent.thin("DQNAgent", "dqn", "DQN; double and dueling unless the specification says otherwise.")
ApexAgent = RLgraphAgent.thin("ApexAgent", "apex", "Ape-X.")
DQFDAgent = RLgraphAgent.thin("DQFDAgent", "dqfd", "DQN from demonstrations.")
PPOAgent = RLgraphAgent.thin("PPOAgent", "ppo", "PPO.")
ActorCriticAgent = RLgraphAgent.thin("ActorCriticAgent", "actor_critic", "Advantage actor-critic.")
SACAgent = RLgraphAgent.thin("SACAgent", "sac", "Soft actor-critic.")


class IMPALAAgent(RLgraphAgent):
    """IMPALA. Its attributes ``default_internal_states_space`` and ``default_environment_spec`` have RLgraph's values.
    Coach does not use them: give the agent a ``state_space`` and an ``action_space``."""

    kind = "impala"
    default_internal_states_space = Tuple(FloatBox(shape=256), FloatBox(shape=256))
    default_environment_spec: ClassVar[dict[str, Any]] = {
        "type": "deepmind_lab", "level_id": "seekavoid_arena_01", "observations": ["RGB_INTERLEAVED", "INSTR"],
        "frameskip": 4,
    }  # fmt: skip

    def get_action(  # type: ignore[override]  # RLgraph's order
        self, states: Any, internal_states: Any = None, use_exploration: bool = True, extra_returns: Any = None,
    ) -> Any:  # fmt: skip
        return super().get_action(states, internal_states, use_exploration, True, extra_returns)


class SingleIMPALAAgent(RLgraphAgent):
    """IMPALA in one process. If your loop observes no steps, ``update`` plays in the environment of
    ``environment_spec``."""

    kind = "single_impala"
    _loop: Loop | None = None

    def update(self, batch: Mapping[str, Any] | None = None) -> Any:
        """Learn. See ``Agent.update``.

        :return: if ``update`` plays: the number of updates, the loss, an empty array for the losses of rows, and the
            ``rewards`` and ``terminals`` of the played steps
        """
        given = self.spec.document.get("environment_spec")
        if given is None or batch is not None or (self._loop is None and self.total_steps):
            return super().update(batch)
        if self._loop is None:
            left_out(Fields(given, "environment_spec"), "update plays without a window", "visualize")
            self._loop = Loop(self, [OpenAIGymEnv.from_spec({**given, "visualize": False})])
        steps, loss, before = [], 0.0, self.total_updates
        while self.total_updates == before:
            steps += [(one.reward, one.is_over) for one in self._loop.step()]
            loss = super().update()
        rewards, terminals = zip(*steps)
        records = {"rewards": np.asarray(rewards, np.float32), "terminals": np.asarray(terminals)}
        return self.total_updates, loss, np.zeros(0, np.float32), records


RandomAgent = RLgraphAgent.thin("RandomAgent", "random", "Random actions.")


class OpenAIGymEnv:
    """A Gymnasium environment with RLgraph's methods.

    :param gym_env: the id of the environment
    :param visualize: show it in a window
    """

    def __init__(self, gym_env: str, visualize: bool = False):
        self.gym_env = gymnasium_environment(gym_env, visualize)

    @classmethod
    def from_spec(cls, spec: Any = None, **additions: Any) -> OpenAIGymEnv:
        """The environment of ``{"type": "openai", "gym_env": "CartPole-v1"}``.

        :param spec: this dict, the id, or only the type if ``additions`` contain the other entries
        :param additions: entries that replace entries of ``spec``
        :raises CoachError: if the specification is wrong, or has an entry that Coach does not support
        """
        if isinstance(spec, str):
            spec = {"type": spec} if plain(spec) in map(plain, ENVIRONMENTS) or additions else {"gym_env": spec}
        given = spec or {}
        if not isinstance(given, Mapping):
            raise CoachError(f"an environment's spec must be a dict with 'type' and 'gym_env', not {shown(spec)}")
        return cls(*gymnasium_arguments({**given, **additions}))

    @property
    def state_space(self) -> Any:
        """The space of the states."""
        return self.gym_env.observation_space

    @property
    def action_space(self) -> Any:
        """The space of the actions."""
        return self.gym_env.action_space

    def seed(self, seed: int) -> None:
        """Set the seed. The next episode begins with this seed."""
        self.gym_env.reset(seed=seed)

    def reset(self) -> Any:
        """Begin an episode. :return: its first state"""
        return self.gym_env.reset()[0]

    def step(self, actions: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Act once. :return: next state, reward, terminal, info"""
        state, reward, terminated, truncated, info = self.gym_env.step(actions)
        if truncated and not terminated:
            info = {**info, TRUNCATED: True}
        return state, float(reward), terminated or truncated, info

    def terminate(self) -> None:
        """Close the environment."""
        self.gym_env.close()


Environment = OpenAIGymEnv  # the only kind of environment in this module


def config_from_path(path: Any) -> Any:
    """The dict or list in a JSON or YAML file."""
    return read_data(pathlib.Path(path))


read_config_file = config_from_path


__all__ = [
    "ActorCriticAgent", "AdamOptimizer", "Agent", "ApexAgent", "BoolBox", "Component", "ContainerSpace", "DQFDAgent",
    "DQNAgent", "Dict", "Environment", "Exploration", "FloatBox", "IMPALAAgent", "IntBox", "Memory", "NeuralNetwork",
    "OpenAIGymEnv", "Optimizer", "PPOAgent", "Policy", "PreprocessorStack", "PrioritizedReplay", "RandomAgent",
    "ReplayMemory", "SACAgent", "SACAgentComponent", "SingleIMPALAAgent", "SingleThreadedWorker", "Space",
    "SyncSpecification", "Synchronizable", "Tuple", "ValueFunction", "config_from_path", "read_config_file",
]  # fmt: skip
