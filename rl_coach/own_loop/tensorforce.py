"""Agents with the specifications and methods of TensorForce (0.3 and 0.4).

A loop that was written for TensorForce runs with its imports changed::

    from rl_coach.own_loop.tensorforce import Agent, OpenAIGym, PPOAgent, Runner
"""

from __future__ import annotations

import logging
import math
import pathlib
from typing import Any, ClassVar, Iterable, Mapping

import numpy as np

from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.architectures.layers import BatchnormActivationDropout, Dense, Layer
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import ActionInfo, EnvironmentEpisodes
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.own_loop.forms import SINGLE, Part, part_of_space
from rl_coach.own_loop.making import algorithm_parameters
from rl_coach.own_loop.played import gymnasium_environment, refuse_swapped
from rl_coach.own_loop.runner import Runner, SingleRunner
from rl_coach.own_loop.spec_agent import (
    Algorithm,
    Family,
    General,
    SpecAgent,
    act_at_random,
    made_of,
    without_meaning,
)
from rl_coach.own_loop.spec_parts import (
    SEPARATE,
    Definition,
    LayerDefaults,
    Stack,
    has_state,
    keep_episodes_for,
    left_out,
    put_stack,
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
from rl_coach.schedules import ConstantSchedule, HalvingSchedule, LinearSchedule, Schedule, after
from rl_coach.utilities.spec_fields import Fields, number, shape_of, shown, whole
from rl_coach.utils import CoachError

logger = logging.getLogger("rl_coach")

_KINDS = ("float", "int", "bool")
_REPLAY: dict[str, bool | None] = {"replay": False, "naive_prioritized_replay": True, "prioritized_replay": True}
_LAYERS = LayerDefaults("tanh", "relu", "same")
_MOST_ACTIONS = 4096
_EXPLORATION = "actions_exploration|explorations_spec|exploration"


# states and actions


def _parts(given: Any, where: str, is_action: bool) -> dict[str, Part]:
    if not isinstance(given, Mapping):
        named = getattr(given, "spaces", None)  # of Gymnasium's Dict
        parts = named if isinstance(named, Mapping) else {SINGLE: given}
        return {name: part_of_space(one) for name, one in parts.items()}
    if given and not any(isinstance(given.get(name), Mapping) for name in given):
        return {SINGLE: _part(Fields(given, where), is_action)}
    Fields(given, where)  # checks that its keys are texts
    return {name: _part(Fields(one, f"{where}.{name}"), is_action) for name, one in given.items()}


def _part(fields: Fields, is_action: bool) -> Part:
    given, shape = fields.get("type"), fields.get("shape")
    kind = given.__name__ if isinstance(given, type) else given
    if kind is None:
        kind = "int" if is_action else "float"
    if not isinstance(kind, str) or kind not in _KINDS:
        raise CoachError(f"the spec's '{fields.path('type')}' must be float, int or bool, not {shown(given)}")
    shape = shape_of(shape, fields.path("shape"))
    low, high = fields.number("min_value"), fields.number("max_value")
    count = fields.whole("num_actions", "num_values", "num_states", high=_MOST_ACTIONS)
    fields.finish()
    if kind == "bool":
        return Part(kind, shape, 0.0, 1.0)
    if kind == "int" and count is not None:
        return Part(kind, shape, 0.0, count - 1.0)
    if is_action and kind == "int":
        raise CoachError(f"the spec's '{fields.path('num_actions')}' is missing: set it to the number of choices")
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if low >= high:
        raise CoachError(f"the spec's '{fields.path('max_value')}' must be above 'min_value', not {high:g}")
    return Part("float", shape, low, high)


# settings that all agents have

_WITHOUT_EFFECT = ("scope", "device", "batching_capacity", "batched_observe", "log_level", "name", "summary_labels")


def _saves(value: Any, where: str) -> None:
    if isinstance(value, Mapping) and value.get("directory") is None:
        return
    unused("set experiment_path instead, which writes signals and checkpoints")(where)[0].read(value, where)


COMMON = [
    Row("discount", "algorithm.discount", number(0, 1)),
    Row(
        "states_preprocessing|states_preprocessing_spec|preprocessing",
        lambda definition, given: definition.preprocess(given, "states_preprocessing"), anything,
    ),
    Row(
        "reward_preprocessing|reward_preprocessing_spec",
        lambda definition, given: definition.preprocess_rewards(given, "reward_preprocessing"), anything,
    ),
    *[Row(name, (), anything) for name in _WITHOUT_EFFECT],
    *[Row(name, (), _saves) for name in ("saver|saver_spec", "summarizer|summary_spec|summarizer_spec")],
    Row("execution.type", (), only("agents run in one process", "single")),
    *refused("agents run in one process")(
        "execution.session_config", "execution.distributed_spec", "session_config", "distributed_spec",
    ),
    *unused("a spec has no noise of weights; set the noise of actions, actions_exploration, instead")("variable_noise"),
    *unused("the action space selects the distribution")("distributions|distributions_spec"),
]  # fmt: skip


def _network(definition: Definition, fields: Fields, network: str = "main") -> Stack | None:
    layers = fields.get("network", "network_spec")
    stack = None if layers is None else stack_of(layers, "network", _LAYERS)
    put_stack(definition, network, stack)
    return stack


def _update_mode(fields: Fields, default_unit: str) -> tuple[str, int | None, int | None]:
    """The unit of updates (timesteps or episodes), the size of a batch, and the number of units between two updates.
    TensorForce 0.3 has ``batch_size`` and ``update_frequency`` instead of ``update_mode``."""
    size, every = fields.whole("batch_size", high=10**7), fields.whole("update_frequency")
    mode = fields.fields("update_mode")
    if mode is None:
        return default_unit, size, every
    if size is not None or every is not None:
        raise CoachError("the spec's 'update_mode' replaces 'batch_size' and 'update_frequency': leave out these two")
    unit = mode.choice("unit", ("timesteps", "episodes", "sequences")) or default_unit
    size, every, length = mode.whole("batch_size", high=10**7), mode.whole("frequency"), mode.whole("length", high=1000)
    if unit != "sequences":
        return unit, size, every
    logger.warning("the spec's 'update_mode' is converted from sequences to timesteps")
    length = length or 8  # TensorForce's default
    return "timesteps", size and size * length, every and every * length


def _phases(fields: Fields, default_unit: str = "timesteps") -> tuple[str, int | None]:
    """The unit and the size of the batches of an agent that learns from its newest steps."""
    unit, size, every = _update_mode(fields, default_unit)
    if every not in (None, size):
        logger.warning("the spec's 'update_mode': the frequency is set to batch_size, because each batch is used once")
    return unit, size


def _play_phases(definition: Definition, fields: Fields) -> tuple[str, int | None]:
    """Set the number of steps or episodes between two updates to the size of a batch. :return: see ``_phases``"""
    unit, size = _phases(fields)
    definition.play(size, unit == "episodes")
    return unit, size


# agents that learn values


def _huber(value: Any, where: str) -> bool:
    huber = number(0)(value, where)
    if huber not in (0.0, 1.0):
        raise CoachError(f"the spec's '{where}' must be 1, 0 or none, not {huber:g}")
    return huber == 1.0


VALUES = [
    *COMMON,
    Row("repeat_update", "algorithm.num_consecutive_training_steps", whole(1, 10**6)),
    Row("first_update", lambda definition, count: definition.wait(count), whole(0)),
    *of_target("target_sync_frequency", "target_update_weight"),
    Row("huber_loss", "network_wrappers['main'].replace_mse_with_huber_loss", _huber),
    Row(_EXPLORATION, lambda definition, given: _explore(definition, given), anything),
    *refused("the loss of agents that learn Q-values does not have this term")("entropy_regularization"),
]  # fmt: skip


def _complete_values(definition: Definition, fields: Fields) -> None:
    stack = _network(definition, fields)
    _replay(definition, fields, stack, ["main"])
    updates = set_optimizer(definition, fields.fields("optimizer"), ["main"])
    definition.set("algorithm.num_consecutive_training_steps", updates)


def _complete_naf(definition: Definition, fields: Fields) -> None:
    _complete_values(definition, fields)
    # Without bounds, the factor L collapses on Pendulum: the advantage vanishes, and the mean gets no gradient.
    definition.set("network_wrappers['main'].heads_parameters[0].diagonal_bounds", (0.1, 10.0))


def _replay(definition: Definition, fields: Fields, stack: Stack | None, networks: list[str]) -> None:
    """Set the batches, the time of updates and the memory of an agent with a replay memory."""
    unit, batch, every = _update_mode(fields, "timesteps")
    if batch is not None and batch > 10**5:
        raise CoachError(f"the spec's 'batch_size' must be a whole number from 1 to 100,000, not {batch}")
    for network in networks:
        definition.set(f"network_wrappers['{network}'].batch_size", batch)
    definition.play(every, unit == "episodes")
    memory = fields.fields("memory", "memory_spec")
    if memory is not None:
        for name in ("include_next_states", "random_sampling"):
            memory.flag(name)
        memory.whole("buffer_size")
    keep_episodes_for(definition, stack)
    keys = {"prioritization_weight": "memory.alpha", "prioritization_constant": "memory.epsilon"}
    set_replay(definition, memory, _REPLAY, keys)


def _explore(definition: Definition, given: Any) -> None:
    fields = Fields({"actions_exploration": given}).fields("actions_exploration")
    if fields is None:
        return
    kinds = (
        "epsilon_decay", "epsilon_anneal", "constant", "linear_decay", "ornstein_uhlenbeck",
        "ornstein_uhlenbeck_process", "gaussian_noise",
    )  # fmt: skip
    kind = fields.choice("type", kinds)
    if kind is None:
        raise CoachError(f"the spec's '{fields.path('type')}' is missing; choose from {', '.join(kinds)}")
    exploration: Any
    if kind.startswith("ornstein"):
        exploration = OUProcessParameters()
        exploration.dt, exploration.sigma = 1.0, 0.3  # TensorForce's defaults, in timesteps
        for name, low in (("mu", -math.inf), ("theta", 0.0), ("sigma", 0.0)):
            value = fields.number(name, low)
            if value is not None:
                setattr(exploration, name, value)
    elif kind == "gaussian_noise":
        exploration, sigma = AdditiveNoiseParameters(), fields.number("sigma", 0)
        fields.refuse("the mean of the noise must be 0", "mu")
        exploration.noise_as_percentage_from_action_space = False
        exploration.noise_schedule = ConstantSchedule(0.3 if sigma is None else sigma)
    else:
        exploration = EGreedyParameters()
        exploration.epsilon_schedule, exploration.evaluation_epsilon = _epsilon(kind, fields), 0.0
    fields.finish()
    definition.parameters.exploration = exploration


def _epsilon(kind: str, fields: Fields) -> Schedule:
    if kind == "constant":
        value = fields.number("epsilon", 0, 1)
        return ConstantSchedule(0.1 if value is None else value)
    first, last = fields.number("initial_epsilon", 0, 1), fields.number("final_epsilon", 0, 1)
    first, last = 1.0 if first is None else first, 0.1 if last is None else last
    count, start = fields.whole("timesteps", high=10**12) or 10_000, fields.whole("start_timestep", low=0) or 0
    if kind != "epsilon_decay":
        return after(start, first, LinearSchedule(first, last, count))
    half_lives = fields.number("half_lives", 1e-3, 1e3)
    return after(start, first, HalvingSchedule(first, last, count, 10.0 if half_lives is None else half_lives))


def _complete_n_step(definition: Definition, fields: Fields) -> None:
    _network(definition, fields)
    unit, batch = _phases(fields)
    if unit == "episodes":
        definition.set("algorithm.apply_gradients_every_x_episodes", batch)
    else:
        definition.set("algorithm.num_steps_between_gradient_updates", batch)
    _latest(definition, fields)
    set_optimizer(definition, fields.fields("optimizer"), ["main"])


def _complete_ddpg(definition: Definition, fields: Fields) -> None:
    stack = _network(definition, fields, "actor")
    critic = fields.fields("critic_network")
    if critic is not None:
        sizes = [critic.whole(name, high=65_536) for name in ("size_t0", "size_t1")]
        relu = BatchnormActivationDropout(activation_function="relu")
        layers: list[Layer] = [one for size in sizes if size is not None for one in (Dense(size), relu)]
        put_stack(definition, "critic", Stack(stack.convolutions if stack else [], layers))
    elif stack is not None:
        put_stack(definition, "critic", Stack(stack.convolutions, stack.dense))
    else:
        put_stack(definition, "critic", None)
    if has_state(stack):
        raise CoachError("the spec's 'network': ddpg_agent does not support an LSTM")
    own = definition.parameters.memory
    _replay(definition, fields, None, ["actor", "critic"])
    if not isinstance(definition.parameters.memory, type(own)):
        left_out(fields, "ddpg_agent samples without priorities", "memory")
        definition.parameters.memory = own
    updates = set_optimizer(definition, fields.fields("optimizer"), ["actor"])
    definition.set("algorithm.num_consecutive_training_steps", updates)
    set_optimizer(definition, fields.fields("critic_optimizer"), ["critic"])


# agents with a policy

POLICY = [
    *COMMON,
    Row("entropy_regularization", "algorithm.beta_entropy", first_value),
    *refused("the agent explores with random actions of its policy")(_EXPLORATION),
    *unused("the agent learns from each step once", True)("keep_last_timestep"),
]


def _latest(definition: Definition, fields: Fields) -> None:
    """Set the memory of an agent that learns from its newest episodes."""
    memory = fields.fields("memory", "memory_spec")
    if memory is not None:
        memory.choice("type", ("latest", "replay"))
        memory.flag("include_next_states")
        definition.set_memory_of_phases(memory.whole("capacity"))


_BASELINES = {"mlp": ("sizes",), "network": ("sizes", "network", "network_spec"), "cnn": ("conv_sizes", "dense_sizes"),
              "custom": ("network", "network_spec"), "aggregated": ("baselines",)}  # fmt: skip


def _baseline(definition: Definition, fields: Fields, stack: Stack | None) -> str | None:
    """Set the critic. :return: ``baseline_mode``"""
    mode, baseline = fields.choice("baseline_mode", ("states", "network")), fields.fields("baseline")
    optimizer = fields.fields("baseline_optimizer")
    if mode is None and (baseline is not None or optimizer is not None):
        raise CoachError("the spec's 'baseline_mode' is missing: set it to states or network")
    if "main" in definition.parameters.network_wrappers:
        is_separate = None if mode is None or has_state(stack) else mode == "states"
        definition.set(f"network_wrappers['main'].{SEPARATE}", is_separate)
    if baseline is not None:
        kind = baseline.choice("type", _BASELINES) or "mlp"
        sizes = [value for name in _BASELINES[kind] if (value := baseline.get(name)) is not None]
        reason = "the baseline has the settings of the policy's network"
        left_out(baseline, reason, "l1_regularization", "l2_regularization", "scope")
        units = None if stack is None or kind != "mlp" else stack.units
        if sizes and (units is None or list(shape_of(sizes[0], baseline.path("sizes"))) != units):
            left_out(fields, "Coach's baseline has the layers of the policy's network", "baseline")
    _optimizer_of_baseline(definition, fields, optimizer)
    return mode


def _optimizer_of_baseline(definition: Definition, fields: Fields, optimizer: Fields | None) -> None:
    if optimizer is None:
        return
    network = "critic" if "critic" in definition.parameters.network_wrappers else "main"
    own = Definition(definition.parameters, space=definition.space)
    count = set_optimizer(own, optimizer, [network])
    if network == "critic":
        definition.settings.update(own.settings)
        definition.set("algorithm.value_epochs", count)
    elif any(repr(definition.settings.get(path, value)) != repr(value) for path, value in own.settings.items()):
        left_out(fields, "policy and baseline use the same optimizer, the policy's", "baseline_optimizer")


PPO = [
    *POLICY,
    Row("likelihood_ratio_clipping", "algorithm.clip_likelihood_ratio_using_epsilon", number(1e-6)),
    Row("gae_lambda", "algorithm.gae_lambda", number(0, 1)),
]


def _complete_ppo(definition: Definition, fields: Fields) -> None:
    stack = _network(definition, fields)
    _latest(definition, fields)
    unit, batch = _play_phases(definition, fields)
    fraction = fields.number("subsampling_fraction", 1e-6, 1)
    if batch is not None and fraction is not None and unit == "timesteps":
        definition.set("network_wrappers['main'].batch_size", max(1, round(batch * fraction)))
    count = fields.whole("optimization_steps", high=10**5)
    if count is not None:
        definition.set("algorithm.optimization_epochs", max(1, round(count * (fraction or 1.0))))
    set_optimizer(definition, fields.fields("step_optimizer", "optimizer"), ["main"])
    _baseline(definition, fields, stack)


def _vpg_parameters(fields: Fields) -> AgentParameters:
    return algorithm_parameters("PolicyGradients" if fields.get("baseline_mode") is None else "ActorCritic")


def _complete_vpg(definition: Definition, fields: Fields) -> None:
    stack = _network(definition, fields)
    _latest(definition, fields)
    unit, batch = _phases(fields, "episodes" if fields.get("update_mode") else "timesteps")
    has_baseline = fields.get("baseline_mode") is not None
    if unit == "episodes":
        definition.set("algorithm.apply_gradients_every_x_episodes", batch)
    elif has_baseline:
        definition.set("algorithm.num_steps_between_gradient_updates", batch)
    elif batch not in (None, 1000):  # TensorForce's default
        left_out(fields, "vpg_agent learns from whole episodes; set their number in update_mode", "batch_size")
    if set_optimizer(definition, fields.fields("optimizer"), ["main"]) not in (None, 1):
        left_out(fields.fields("optimizer") or fields, "vpg_agent learns from each episode once", "num_steps")
    gae_lambda = fields.number("gae_lambda", 0, 1)
    _baseline(definition, fields, stack)
    if gae_lambda is not None:
        if not has_baseline:
            raise CoachError("the spec's 'gae_lambda' needs a 'baseline_mode': set it to states or network")
        definition.set("algorithm.policy_gradient_rescaler", PolicyGradientRescaler.GAE)
        definition.set("algorithm.gae_lambda", gae_lambda)


TRPO = [
    *POLICY[: len(COMMON)],
    *unused("the loss of trpo_agent does not have this term")("entropy_regularization", "likelihood_ratio_clipping"),
    *POLICY[len(COMMON) + 1 :],
    Row("learning_rate", "algorithm.max_kl_divergence", number(1e-9, 1e3)),
    Row("cg_max_iterations", "algorithm.conjugate_gradient_iterations", whole(0, 10**4)),
    Row("cg_damping", "algorithm.conjugate_gradient_damping", number(0, 1e3)),
    Row("ls_max_iterations", "algorithm.line_search_attempts", whole(1, 10**3)),
    *unused("trpo_agent does not have this setting")("cg_unroll_loop", "ls_unroll_loop", "ls_accept_ratio"),
    Row("gae_lambda", "algorithm.gae_lambda", number(0, 1)),
    *unused("trpo_agent computes its steps without an optimizer")("optimizer"),
]


def _complete_trpo(definition: Definition, fields: Fields) -> None:
    stack = _network(definition, fields, "actor")
    if has_state(stack):
        logger.warning("the spec's 'network': the critic of trpo_agent has these layers without the LSTM")
    put_stack(definition, "critic", stack and Stack(stack.convolutions, stack.dense, None, stack.by_name))
    _latest(definition, fields)
    _play_phases(definition, fields)
    _baseline(definition, fields, stack)


def _dqn_parameters(fields: Fields) -> AgentParameters:
    return algorithm_parameters("DDQN" if fields.flag("double_q_model") else "DQN")


_ONE_Q = unused("the agent has one Q-function")("double_q_model")
_DOUBLE = [Row("double_q_model", (), only("the agent always uses double Q-learning; use dqn_agent", True))]


FAMILY = Family(
    "TensorForce",
    {
        "dqn_agent": Algorithm(_dqn_parameters, VALUES, _complete_values),
        "ddqn_agent": Algorithm(made_of("DDQN"), [*VALUES, *_DOUBLE], _complete_values),
        "dqn_nstep_agent": Algorithm(made_of("NStepQ"), [*VALUES, *_ONE_Q], _complete_n_step),
        "naf_agent": Algorithm(made_of("NAF"), [*VALUES, *_ONE_Q], _complete_naf, needs_bounds=True),
        "dqfd_agent": Algorithm(
            made_of("DQfD"),
            [
                *VALUES, *_DOUBLE, *DEMONSTRATIONS,
                *unused("the memory keeps all demonstrations", 10000)("demo_memory_capacity"),
                *unused("priorities decide the share of demonstrations in a batch", 0.2)("demo_sampling_ratio"),
            ],
            _complete_values,
        ),
        "ddpg_agent": Algorithm(made_of("DDPG"), VALUES, _complete_ddpg, needs_bounds=True),
        "ppo_agent": Algorithm(made_of("ClippedPPO"), PPO, _complete_ppo),
        "vpg_agent": Algorithm(_vpg_parameters, POLICY, _complete_vpg),
        "trpo_agent": Algorithm(made_of("TRPO"), TRPO, _complete_trpo),
        "random_agent": Algorithm(made_of("PolicyGradients"), COMMON, act_at_random(_network)),
        "constant_agent": Algorithm(
            made_of("PolicyGradients"), [*COMMON, Row("action_values", (), anything)], act_at_random(_network)
        ),
    },
    ("states", "states_spec"),
    ("actions", "actions_spec"),
    ("states", "actions", "network"),
    lambda given: _parts(given, "states", False),
    lambda given: _parts(given, "actions", True),
    updates_itself=True,
    general=General(COMMON, "optimizer", _network),
)  # fmt: skip


# methods

_MODEL = "tensorforce-model"
_RULES = "losses are update rules in rl_coach/agents/rules; agent.get_td_loss returns the loss of a batch"
_MADE = "Coach creates the networks together with the agent"
_LISTS = "describe a network as a list of layers, or as a list of paths of layers"
_OF_MODEL = {
    **dict.fromkeys(("initialize", "setup", "create_output_operations"), _MADE),
    **dict.fromkeys(
        ("get_optimizer_kwargs", "tf_loss", "tf_loss_per_instance", "tf_optimization", "tf_regularization_losses",
         "tf_discounted_cumulative_reward"),
        _RULES,
    ),
    **dict.fromkeys(("act", "tf_actions_and_internals", "tf_action_exploration"), "use agent.act and agent.predict"),
    **dict.fromkeys(("tf_preprocess_states", "tf_preprocess_reward"), "use the agent's states_preprocessing"),
    "get_summaries": "give the agent an experiment_path; it then writes signals there",
    "update": "use agent.update(batch); the returned loss also has the loss of each row",
}  # fmt: skip
__getattr__ = without_meaning(
    "TensorForce",
    {
        "Model": "use the methods of the agent, and its settings",
        "Configuration": "use a dict",
        "Network": _LISTS,
        "LayerBasedNetwork": _LISTS,
        "LayeredNetwork": _LISTS,
        "layered_network_builder": _LISTS,
        "ThreadedRunner": "an agent with num_envs=N acts in N environments, and coach -n N trains in N processes",
        "DistributedRunner": "coach -dc trains in many processes",
    },
    f"module '{__name__}'",
)


class _Model:
    """TensorForce's model of an agent, with the methods that Coach supports. For other methods, an error recommends a
    replacement.

    :param agent: the agent
    """

    def __init__(self, agent: TensorForceAgent):
        self.save, self.restore = agent.save_model, agent.restore_model
        self.reset, self.observe = agent.reset, agent.observe
        self._agent = agent

    def get_variables(self, include_submodules: bool = False, include_nontrainable: bool = False) -> list[np.ndarray]:
        """All weights of all networks."""
        return [array for arrays in self._agent.get_weights().values() for array in arrays]

    def __getattr__(self, name: str) -> Any:
        return without_meaning("TensorForce", _OF_MODEL, "agent.model")(name)


class TensorForceAgent(SpecAgent):
    """An agent with TensorForce's methods. It also has the methods of ``Agent``."""

    family = FAMILY
    kind: ClassVar[str | None] = None
    attributes: ClassVar[dict[str, Any]] = {
        "timestep": lambda agent: agent.total_steps,
        "episode": lambda agent: sum(
            counter[EnvironmentEpisodes] for counter in agent.graph_manager.total_steps_counters.values()
        ),
        "model": _Model,
    }

    def act(  # type: ignore[override]  # TensorForce's order
        self,
        states: Any,
        deterministic: bool = False,
        independent: bool = False,
        env_ids: Any = None,
        infos: Any = None,
    ) -> Any:
        """Choose an action.

        :param states: as for ``Agent.act``
        :param deterministic: choose the policy's best action, without exploration
        :param independent: the action is not followed by ``observe``, so nothing is stored or counted
        :param env_ids: as for ``Agent.act``, also ``infos``
        """
        if independent:
            return self.predict(states, deterministic, infos)
        return super().act(states, env_ids, deterministic, infos)

    def observe(  # type: ignore[override]  # TensorForce's order
        self, terminal: Any, reward: Any, env_ids: Any = None, infos: Any = None
    ) -> None:
        """Store the reward and the end of the last action. The next state comes with the next ``act``.

        :param terminal: the episode has ended
        :param reward: a number
        :param env_ids: as for ``Agent.observe``, also ``infos``
        """
        refuse_swapped(terminal, reward)
        super().observe(reward, terminal, env_ids=env_ids, infos=infos)

    def should_stop(self) -> bool:
        """False, because only your loop ends the training."""
        return False

    def save_model(self, directory: Any = None, append_timestep: bool = True) -> str:
        """Write all data that are needed to continue exactly.

        :param directory: the directory to write to; None for ``tensorforce-model``
        :param append_timestep: write into a new sub-directory that is named after the number of steps
        :return: the path, for ``restore_model``
        """
        path = pathlib.Path(directory or _MODEL) / (f"timestep-{self.total_steps}" if append_timestep else "")
        self.save(path)
        return str(path)

    def restore_model(self, directory: Any = None, file: Any = None) -> None:
        """Continue from a model that ``save_model`` wrote.

        :param directory: the directory of ``save_model``; its newest model is restored. The directory above it works
            too: after ``save_model("models/mine")``, ``"models"`` finds the model. Scripts for TensorForce use
            ``"models"``, because TensorForce's file names begin with ``mine``
        :param file: a file in ``directory``; without ``directory``, a path
        :raises CoachError: if the directory contains no model
        """
        path = pathlib.Path(directory or ("" if file else _MODEL)) / (file or "")
        found = list(path.glob("timestep-*")) or ([] if file else list(path.glob("*/timestep-*")))
        steps = {int(one.name.rpartition("-")[2]): one for one in found if one.name[9:].isdigit()}
        self._restore(steps[max(steps)] if steps else path)

    def import_demonstrations(self, demonstrations: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> int:
        """Store demonstrations for ``pretrain``.

        :param demonstrations: columns ``states``, ``actions``, ``reward``, ``terminal``; or a dict of these names for
            each step
        :return: number of steps stored
        """
        stored, memory = self.import_observations(demonstrations), self._core.memory
        if getattr(memory, "keeps_demonstrations", False):
            memory.keep_as_demonstrations()
        return stored

    def set_demonstrations(self, batch: Mapping[str, Any]) -> int:
        """The same as ``import_demonstrations``, for columns."""
        return self.import_demonstrations(batch)

    def initialize_model(self) -> None:
        """Do nothing: Coach makes the networks when an agent is created."""

    def pretrain(self, steps: int) -> list[float]:
        """Learn from the memory without acting.

        :param steps: number of updates
        :return: the loss of each update
        """
        return [self.update() for _ in range(steps)]


Agent = TensorForceAgent
LearningAgent = TensorForceAgent


class MemoryAgent(TensorForceAgent):
    """Base of agents with a replay memory."""

    kind: ClassVar[str | None] = None


class BatchAgent(TensorForceAgent):
    """Base of agents that learn from their newest episodes."""

    kind: ClassVar[str | None] = None

    def reset_batch(self) -> None:
        """Leave the episode in progress."""
        self.reset()


DQNAgent = MemoryAgent.thin("DQNAgent", "dqn_agent", "DQN.")
DDQNAgent = MemoryAgent.thin("DDQNAgent", "ddqn_agent", "Double DQN.")
DQNNstepAgent = BatchAgent.thin("DQNNstepAgent", "dqn_nstep_agent", "DQN with returns of several steps.")
NAFAgent = MemoryAgent.thin("NAFAgent", "naf_agent", "Normalized advantage functions.")


class DQFDAgent(MemoryAgent):
    """DQN from demonstrations."""

    kind = "dqfd_agent"

    def observe(  # type: ignore[override]  # the order of this agent alone
        self, reward: Any, terminal: Any, env_ids: Any = None, infos: Any = None
    ) -> None:
        """See ``TensorForceAgent.observe``."""
        super().observe(terminal, reward, env_ids, infos)


DDPGAgent = MemoryAgent.thin("DDPGAgent", "ddpg_agent", "Deep deterministic policy gradients.")
PPOAgent = BatchAgent.thin("PPOAgent", "ppo_agent", "PPO.")
VPGAgent = BatchAgent.thin("VPGAgent", "vpg_agent", "Policy gradients.")
TRPOAgent = BatchAgent.thin("TRPOAgent", "trpo_agent", "TRPO.")
RandomAgent = TensorForceAgent.thin("RandomAgent", "random_agent", "Random actions.")


class ConstantAgent(TensorForceAgent):
    """An agent that always takes the same action. ``action_values`` has the actions by name. An action without a value
    gets the allowed number nearest to 0."""

    kind = "constant_agent"

    def _begin(self, *arguments: Any) -> Any:
        given = self.spec.document.get("action_values")
        self.constant = self.spec.actions.constant(given, "action_values")
        return super()._begin(*arguments)

    def act(  # type: ignore[override]  # TensorForce's order
        self, states: Any, deterministic: bool = True, independent: bool = False, env_ids: Any = None, infos: Any = None
    ) -> Any:
        """See ``TensorForceAgent.act``."""
        return super().act(states, True, independent, env_ids, infos)

    def _best_action(self) -> Any:
        raw = self._environments[0].environment_action(self.spec.actions.from_user(self.constant))
        return self._core.output_filter.reverse_filter(ActionInfo(raw)).action

    def predict(self, states: Any, deterministic: bool = True, infos: Any = None) -> Any:
        drawn = super().predict(states, deterministic, infos)
        return [self.constant for _ in drawn] if isinstance(drawn, list) else self.constant


class OpenAIGym:
    """A Gymnasium environment with TensorForce's methods.

    :param gym_id: the id of the environment
    :param visualize: show it in a window
    """

    def __init__(self, gym_id: str, visualize: bool = False):
        self.gym_id = gym_id
        self.gym = gymnasium_environment(gym_id, visualize)

    @property
    def states(self) -> Any:
        """The space of the states."""
        return self.gym.observation_space

    @property
    def actions(self) -> Any:
        """The space of the actions."""
        return self.gym.action_space

    def reset(self) -> Any:
        """Begin an episode. :return: its first state"""
        return self.gym.reset()[0]

    def execute(self, action: Any) -> tuple[Any, bool, float]:
        """Act once. :return: next state, terminal, reward"""
        state, reward, terminated, truncated, _ = self.gym.step(action)
        return state, terminated or truncated, float(reward)

    def close(self) -> None:
        """Close the environment."""
        self.gym.close()


__all__ = [
    "Agent", "BatchAgent", "ConstantAgent", "DDPGAgent", "DDQNAgent", "DQFDAgent", "DQNAgent", "DQNNstepAgent",
    "LearningAgent", "MemoryAgent", "NAFAgent", "OpenAIGym", "PPOAgent", "RandomAgent", "Runner", "SingleRunner",
    "TRPOAgent", "VPGAgent",
]  # fmt: skip
