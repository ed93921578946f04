"""RLgraph's agents: what their specifications mean here, and their methods.

A loop that was written for RLgraph runs with its imports changed::

    from rl_coach.own_loop.rlgraph import Agent, DQNAgent, FloatBox, IntBox, OpenAIGymEnv, SingleThreadedWorker
"""

from __future__ import annotations

import math
import pathlib
from functools import partial
from typing import Any, Mapping, Sequence

import numpy as np

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgentParameters
from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DuelingQHeadParameters, QHeadParameters
from rl_coach.architectures.values import ValuesParameters
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.own_loop.forms import SINGLE, Part, Parts, part_of_space
from rl_coach.own_loop.played import TRUNCATED, gymnasium_environment
from rl_coach.own_loop.spec_agent import Family, SpecAgent
from rl_coach.own_loop.spec_fields import Fields, shape_of, shown, whole_number
from rl_coach.own_loop.spec_parts import (
    SEPARATE,
    Definition,
    Stack,
    keep_episodes_for,
    left_out,
    line,
    put_stack,
    set_optimizer,
    set_replay,
    stack_of,
)
from rl_coach.own_loop.worker import SingleThreadedWorker, gymnasium_arguments
from rl_coach.utils import CoachError

_KINDS = {"float": "float", "floatbox": "float", "int": "int", "intbox": "int", "bool": "bool", "boolbox": "bool"}
_REPLAY = {
    "replay": False, "replay_memory": False, "prioritized": True, "prioritized_replay": True,
    "mem_prioritized_replay": True,
}  # fmt: skip
_MOST_ACTIONS = 4096
INTERNALS = "internals are kept by the agent: give none"


# spaces


def FloatBox(low: float | None = None, high: float | None = None, shape: Any = ()) -> dict[str, Any]:
    """A space of numbers. :param low: the smallest; None for no limit, as for ``high``"""
    return {"type": "float", "low": low, "high": high, "shape": shape}


def IntBox(low: int | None = None, high: int | None = None, shape: Any = ()) -> dict[str, Any]:
    """A space of whole numbers from ``low`` to below ``high``; ``IntBox(4)`` begins with 0."""
    return {"type": "int", "low": low, "high": high, "shape": shape}


def BoolBox(shape: Any = ()) -> dict[str, Any]:
    """A space of truth values."""
    return {"type": "bool", "shape": shape}


def Dict(spaces: Mapping[str, Any] | None = None, **named: Any) -> dict[str, Any]:
    """A space of several spaces by name."""
    return {"type": "dict", **(spaces or {}), **named}


def _parts(given: Any, where: str) -> dict[str, Part]:
    named = getattr(given, "spaces", None)  # of Gymnasium's Dict
    if isinstance(named, Mapping):
        return {name: part_of_space(one) for name, one in named.items()}
    if not isinstance(given, Mapping) or (isinstance(given.get("type"), (str, type)) and not _is_dict(given)):
        return {SINGLE: _part(given, where)}
    Fields(given, where)  # its keys are texts
    named = {name: one for name, one in given.items() if not (name == "type" and _is_dict(given))}
    return {name: _part(one, f"{where}.{name}") for name, one in named.items()}


def _is_dict(given: Mapping[str, Any]) -> bool:
    return isinstance(given.get("type"), str) and given["type"].lower() == "dict"


def _part(given: Any, where: str) -> Part:
    if isinstance(given, (type, str)):
        given = {"type": given}
    elif isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        given = {"type": "int", "low": given}
    elif not isinstance(given, Mapping):
        return part_of_space(given)
    fields = Fields(given, where)
    named, shape = fields.get("type"), fields.get("shape")
    name = named.__name__ if isinstance(named, type) else named
    if not isinstance(name, str) or name.lower() not in _KINDS:
        raise CoachError(f"the spec's '{fields.path('type')}' is float, int or bool, not {shown(named)}")
    kind = _KINDS[name.lower()]
    shape = shape_of(shape, fields.path("shape"))
    fields.flag("add_batch_rank")
    low, high = fields.number("low"), fields.number("high")
    fields.finish()
    if kind == "bool":
        return Part(kind, shape, 0.0, 1.0)
    if kind == "int":
        return _choices(fields, shape, low, high)
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if low >= high:
        raise CoachError(f"the spec's '{fields.path('high')}' is above 'low', not {high:g}")
    return Part(kind, shape, low, high)


def _choices(fields: Fields, shape: tuple[int, ...], low: float | None, high: float | None) -> Part:
    if low is None and high is None:
        raise CoachError(f"the spec's '{fields.path('high')}' is missing: the number of values")
    first, end = (0.0, low) if high is None else (low or 0.0, high)
    assert end is not None
    whole_number(first, fields.path("low"), -(10**9))
    whole_number(end - first, fields.path("high"), 1, _MOST_ACTIONS)
    return Part("int", shape, first, end - 1)


def _states(given: Any) -> Parts:
    return _parts(given, "state_space")


def _actions(given: Any) -> Parts:
    return _parts(given, "action_space")


# settings


def _common(
    parameters: AgentParameters, fields: Fields, space: Any, network: str = "main"
) -> tuple[Definition, Stack | None]:
    """Settings that all agents have: discount, network, seed and buffers."""
    definition = Definition(parameters)
    definition.set("algorithm.discount", fields.number("discount", 0, 1))
    fields.refuse("make it a filter of the agent's parameters, or do it in your loop", "preprocessing_spec")
    for name in ("summary_spec", "saver_spec"):
        left_out(fields, name, "give experiment_path, which writes signals and checkpoints")
    for name in ("name", "auto_build"):
        fields.get(name)
    execution = fields.fields("execution_spec")
    if execution is not None:
        execution.choice("mode", ("single",))
        seed = execution.whole("seed", low=0, high=2**31 - 1)
        definition.arguments.update({} if seed is None else {"seed": seed})
        execution.finish()
    observe = fields.fields("observe_spec")
    if observe is not None:
        size, is_buffered = observe.whole("buffer_size"), observe.flag("buffer_enabled")
        definition.buffer_size = None if is_buffered is False else size
        observe.finish()
    layers = fields.get("network_spec")
    stack = None if layers is None else stack_of(layers, "network_spec", "linear")
    put_stack(parameters.network_wrappers[network], stack, space)
    return definition, stack


def _update_spec(fields: Fields) -> Fields:
    """The ``update_spec``. Who calls ``update`` is not said there: your loop does, or ``updates_itself``."""
    update = fields.fields("update_spec") or Fields({}, "update_spec")
    update.flag("do_updates")
    return update


def _interval(definition: Definition, update: Fields) -> None:
    unit, every = update.choice("update_mode", ("time_steps", "episodes")), update.whole("update_interval")
    if every is not None:
        step = EnvironmentEpisodes if unit == "episodes" else EnvironmentSteps
        definition.set("algorithm.num_consecutive_playing_steps", step(every))
    definition.wait(update.whole("steps_before_update", low=0))


def _memory(definition: Definition, fields: Fields, kinds: Mapping[str, bool]) -> None:
    memory = fields.fields("memory_spec")
    set_replay(definition, memory, kinds, {"alpha": "memory.alpha", "beta": "memory.beta"})
    if memory is not None:
        memory.flag("next_states")
        memory.finish()


def _ring_buffer(fields: Fields) -> None:
    """The memory of agents that learn from what they have just played, which is as large as that."""
    memory = fields.fields("memory_spec")
    if memory is not None:
        memory.choice("type", ("ring_buffer",))
        memory.whole("capacity")
        memory.finish()


def _dqn(fields: Fields, space: Any) -> Definition:
    is_double = fields.flag("double_q") is not False
    definition, stack = _common(DDQNAgentParameters() if is_double else DQNAgentParameters(), fields, space)
    keep_episodes_for(definition, stack)
    is_dueling = fields.flag("dueling_q") is not False
    adapter = fields.fields("action_adapter_spec")
    if adapter is not None:
        is_dueling = "dueling" in (adapter.choice("type", ("dueling-action-adapter", "action-adapter")) or "")
        for name in ("units_state_value_stream", "units_advantage_stream"):
            left_out(adapter, name, "the streams of a dueling head have sizes of their own")
        adapter.finish()
    main = definition.parameters.network_wrappers["main"]
    main.heads_parameters = [DuelingQHeadParameters() if is_dueling else QHeadParameters()]
    definition.set("network_wrappers['main'].replace_mse_with_huber_loss", fields.flag("huber_loss"))
    if fields.whole("n_step") not in (None, 1):
        raise CoachError("the spec's 'n_step' is 1 for dqn here: Rainbow sums several rewards")
    _memory(definition, fields, _REPLAY)
    update = _update_spec(fields)
    _interval(definition, update)
    definition.set("network_wrappers['main'].batch_size", update.whole("batch_size", high=10**5))
    every = update.whole("sync_interval")
    definition.set(
        "algorithm.num_steps_between_copying_online_weights_to_target",
        None if every is None else EnvironmentSteps(every),
    )
    update.finish()
    set_optimizer(definition, fields.fields("optimizer_spec"), ["main"])
    _explore(definition, fields.fields("exploration_spec"))
    return definition


def _explore(definition: Definition, fields: Fields | None) -> None:
    epsilon = None if fields is None else fields.fields("epsilon_spec")
    if fields is not None:
        fields.refuse("an agent that learns values of choices explores by epsilon alone", "noise_spec")
        fields.finish()
    if epsilon is None:
        return
    decay = epsilon.fields("decay_spec") or epsilon
    decay.choice("type", ("linear_decay",))
    first, last = decay.number("from", 0, 1), decay.number("to", 0, 1)
    steps, start = decay.whole("num_timesteps", high=10**12), decay.whole("start_timestep", low=0)
    decay.finish()
    epsilon.finish()
    schedule = line(1.0 if first is None else first, 0.1 if last is None else last, steps or 10_000, start or 0)
    definition.set("exploration.epsilon_schedule", schedule)
    definition.set("exploration.evaluation_epsilon", 0.0)


def _policy(definition: Definition, fields: Fields, stack: Stack | None) -> None:
    """Settings of agents with a policy and a critic on one network."""
    definition.set("algorithm.beta_entropy", fields.number("weight_entropy"))
    definition.set("algorithm.gae_lambda", fields.number("gae_lambda", 0, 1))
    fields.refuse("a policy explores by itself", "exploration_spec")
    _ring_buffer(fields)
    set_optimizer(definition, fields.fields("optimizer_spec"), ["main"])
    critic = fields.get("value_function_spec")
    if critic is not None:
        layers = stack_of(critic, "value_function_spec", "linear")
        if stack is not None and layers != stack:
            raise CoachError("the spec's 'value_function_spec' has the layers of 'network_spec' here: give the same")
        definition.set(f"network_wrappers['main'].{SEPARATE}", True)
    _same_optimizer(definition, fields, "main")


def _same_optimizer(definition: Definition, fields: Fields, network: str) -> None:
    own = Definition(definition.parameters)
    set_optimizer(own, fields.fields("value_function_optimizer_spec"), [network])
    for path, value in own.settings.items():
        if definition.settings.get(path, value) != value:
            raise CoachError("the spec's 'value_function_optimizer_spec' is 'optimizer_spec' here: give the same")


def _ppo(fields: Fields, space: Any) -> Definition:
    definition, stack = _common(ClippedPPOAgentParameters(), fields, space)
    _policy(definition, fields, stack)
    definition.set("algorithm.clip_likelihood_ratio_using_epsilon", fields.number("clip_ratio", 1e-6))
    if fields.flag("standardize_advantages") is False:
        left_out(fields, "standardize_advantages", "this PPO standardizes them always")
    unit = EnvironmentEpisodes if fields.flag("sample_episodes") else EnvironmentSteps
    update = _update_spec(fields)
    update.choice("update_mode", ("time_steps", "episodes"))
    batch, every = update.whole("batch_size", high=10**7), update.whole("update_interval")
    if unit is EnvironmentSteps and batch is not None and every not in (None, batch):
        raise CoachError(
            "the spec's 'update_spec.update_interval' is its batch_size for ppo: it learns what it played once"
        )
    if (batch or every) is not None:
        definition.set("algorithm.num_consecutive_playing_steps", unit(int(batch or every or 1)))
    sample, iterations = update.whole("sample_size", high=10**5), update.whole("num_iterations", high=10**6)
    definition.set("network_wrappers['main'].batch_size", sample)
    if iterations is not None:
        share = min(1.0, sample / batch) if sample and batch and unit is EnvironmentSteps else 1.0
        definition.set("algorithm.optimization_epochs", max(1, round(iterations * share)))
    left_out(update, "sync_interval", "ppo has no target network")
    update.finish()
    return definition


def _actor_critic(fields: Fields, space: Any) -> Definition:
    definition, stack = _common(ActorCriticAgentParameters(), fields, space)
    _policy(definition, fields, stack)
    if "algorithm.gae_lambda" in definition.settings:
        definition.set("algorithm.policy_gradient_rescaler", PolicyGradientRescaler.GAE)
    samples_episodes = fields.flag("sample_episodes")
    update = _update_spec(fields)
    update.choice("update_mode", ("time_steps", "episodes"))
    batch = update.whole("batch_size", high=10**7)
    if batch is not None and samples_episodes:
        definition.set("algorithm.apply_gradients_every_x_episodes", batch)
    elif batch is not None:
        definition.set("algorithm.num_steps_between_gradient_updates", batch)
        definition.set("algorithm.apply_gradients_every_x_episodes", 1)
    for name in ("update_interval", "sync_interval"):
        left_out(update, name, "actor_critic learns once batch_size is played")
    update.finish()
    return definition


def _sac(fields: Fields, space: Any) -> Definition:
    parameters = SoftActorCriticAgentParameters(use_value_network=False)
    definition, stack = _common(parameters, fields, space, "policy")
    critic = fields.get("value_function_spec")
    critics = stack if critic is None else stack_of(critic, "value_function_spec", "linear")
    head = parameters.network_wrappers["q"].heads_parameters[0]
    if critics is not None:
        if not critics.units or critics.convolutions or critics.cells is not None:
            raise CoachError("the spec's 'value_function_spec' has dense layers alone for sac")
        head.network_layers_sizes = tuple(critics.units)
    named = getattr(space, "spaces", None) or ()
    if named:
        parameters.network_wrappers["q"].input_embedders_parameters = {
            name: InputEmbedderParameters(scheme=[]) for name in named
        }
    head.num_critics = 1 if fields.flag("double_q") is False else 2
    alpha = fields.number("initial_alpha", 1e-6, 1e6)
    if alpha is not None:
        temperature = ValuesParameters({"log_temperature": math.log(alpha)}, learning_rate=0.0003)
        parameters.network_wrappers["temperature"] = temperature
    definition.set("algorithm.target_entropy", fields.number("target_entropy"))
    fields.refuse("a policy explores by itself", "exploration_spec")
    _memory(definition, fields, {"replay": False, "replay_memory": False})
    update = _update_spec(fields)
    _interval(definition, update)
    size = update.whole("batch_size", high=10**5)
    for name in ("policy", "q"):
        definition.set(f"network_wrappers['{name}'].batch_size", size)
    every = update.whole("sync_interval")
    definition.set(
        "algorithm.num_steps_between_copying_online_weights_to_target",
        None if every is None else EnvironmentSteps(every),
    )
    definition.set("algorithm.rate_for_copying_weights_to_target", update.number("sync_tau", 1e-9, 1))
    definition.set("algorithm.num_consecutive_training_steps", update.whole("num_iterations", high=10**6))
    update.finish()
    set_optimizer(definition, fields.fields("optimizer_spec"), ["policy"])
    set_optimizer(definition, fields.fields("value_function_optimizer_spec"), ["q"])
    return definition


def _random(fields: Fields, space: Any) -> Definition:
    definition, _ = _common(PolicyGradientsAgentParameters(), fields, space)
    definition.act_at_random()
    return definition


FAMILY = Family(
    "RLgraph",
    {
        "dqn": _dqn, "ppo": _ppo, "actor_critic": _actor_critic, "sac": _sac, "random": _random,
    },
    ("state_space",),
    ("action_space",),
    _states,
    _actions,
    _common,
    updates_itself=False,
)  # fmt: skip


# methods


class RLgraphAgent(SpecAgent):
    """An agent by RLgraph's methods; those of ``Agent`` are there too, apart from ``observe``.

    Your loop calls ``update``, unless the agent was made with ``updates_itself=True``. Names of environments need not
    be known beforehand: each new one is the next environment of ``num_envs``.
    """

    family = FAMILY

    def __init__(self, *arguments: Any, **settings: Any):
        super().__init__(*arguments, **settings)
        self._asked: dict[int, tuple[Any, Any, bool]] = {}
        self._names: dict[Any, int] = {name: index for index, name in enumerate(self.env_names)}
        self._unnamed = list(range(len(self.env_names)))
        self._buffered = [0] * len(self.env_names)

    @property
    def timesteps(self) -> int:
        """Steps acted."""
        return self.total_steps

    def get_action(
        self,
        states: Any,
        internals: Any = None,
        use_exploration: bool = True,
        apply_preprocessing: bool = True,
        extra_returns: Any = None,
    ) -> Any:
        """Choose an action, or one for each environment.

        :param states: the state of the environment; of several environments [N, ...], in their order
        :param internals: none: the agent keeps the state of a recurrent network
        :param use_exploration: False for the policy's best action. It is counted and stored only if ``observe`` follows
        :param apply_preprocessing: without effect, for specifications here have no preprocessing
        :param extra_returns: ``"preprocessed_states"`` to get these too, for ``observe``
        :return: the action as your environment takes it; with several environments a list; with ``extra_returns`` the
            states behind it
        :raises CoachError: the last action of an environment has no answer yet; or what cannot be given is asked for
        """
        _refuse_internals(internals)
        wanted = [extra_returns] if isinstance(extra_returns, str) else list(extra_returns or ())
        if any(one != "preprocessed_states" for one in wanted):
            raise CoachError(f"extra_returns may be 'preprocessed_states', not {shown(extra_returns)}")
        if use_exploration:
            chosen = self.act(states)
        else:
            chosen = self._best(states)
        indices = range(len(self.env_names))
        for index in indices:
            one, action = (states, chosen) if len(indices) == 1 else (_row(states, index), chosen[index])
            self._asked[index] = (_copied(one), action, use_exploration)
        return (chosen, states) if wanted else chosen

    def _best(self, states: Any) -> Any:
        count = len(self.env_names)
        return self.predict(states) if count == 1 else [self.predict(_row(states, index)) for index in range(count)]

    def observe(  # type: ignore[override]  # RLgraph's order
        self,
        preprocessed_states: Any,
        actions: Any,
        internals: Any,
        rewards: Any,
        next_states: Any,
        terminals: Any = False,
        env_id: Any = None,
    ) -> None:
        """Take in what an environment answered to the action that ``get_action`` chose for it.

        :param preprocessed_states: the state that ``get_action`` was asked about
        :param actions: the action that it chose
        :param internals: none
        :param rewards: a number
        :param next_states: the state after the action, the last one of an episode included
        :param terminals: the episode has come to its end
        :param env_id: name of the environment; None if there is one, or for all, with [N, ...] of everything
        :raises CoachError: state or action are others than those; ``import_observations`` stores what others played
        """
        _refuse_internals(internals)
        if env_id is None and len(self.env_names) > 1:
            for index in range(len(self.env_names)):
                ends = terminals if np.ndim(terminals) == 0 else terminals[index]
                self._observe(
                    index, _row(preprocessed_states, index), _row(actions, index), _row(rewards, index),
                    _row(next_states, index), ends,
                )  # fmt: skip
            return
        index = self._index(env_id)
        self._observe(index, preprocessed_states, actions, rewards, next_states, terminals)

    def _index(self, env_id: Any) -> int:
        if env_id is None:
            return 0
        if env_id not in self._names:
            taken = {self._names[name] for name in self._names if name not in self.env_names}
            free = [index for index in self._unnamed if index not in taken]
            if not free:
                raise CoachError(f"there are {len(self.env_names)} environments, and {env_id!r} is none: give num_envs")
            self._names[env_id] = free[0]
        return self._names[env_id]

    def _observe(self, index: int, state: Any, action: Any, reward: Any, next_state: Any, terminal: Any) -> None:
        name = self.env_names[index]
        if index not in self._asked:
            raise CoachError("observe takes the answer to an action: call get_action first, or import_observations")
        asked, chosen, explores = self._asked[index]
        if not _equal(asked, state) or not _equal(chosen, action):
            raise CoachError(
                f"observe of environment {name!r} has another state or action than get_action had; "
                f"import_observations stores what others played"
            )
        where = None if len(self.env_names) == 1 else name
        if not explores:
            self.act(state, where, deterministic=True)
        size = self.spec.buffer_size
        is_full = size is not None and self._buffered[index] + 1 >= size and not terminal
        super().observe(reward, terminal, is_full, next_state, where)
        del self._asked[index]
        self._buffered[index] = 0 if terminal or is_full else self._buffered[index] + 1

    def reset_env_buffers(self, env_id: Any = None) -> None:
        """Leave the episode of an environment. :param env_id: its name; None for all"""
        indices = range(len(self.env_names)) if env_id is None else [self._index(env_id)]
        for index in indices:
            self._asked.pop(index, None)
            self._buffered[index] = 0
        self.reset(None if env_id is None else self.env_names[indices[0]])

    def get_policy_weights(self) -> dict[str, list[np.ndarray]]:
        """``get_weights``."""
        return self.get_weights()

    def set_policy_weights(self, weights: Mapping[str, Sequence[np.ndarray]]) -> None:
        """``set_weights``."""
        self.set_weights(weights)

    def store_model(self, path: Any = None, add_timestep: bool = True) -> str:
        """Write all that is needed to go on exactly.

        :param path: a directory
        :param add_timestep: append the number of steps to its name
        :return: the directory, for ``load_model``
        """
        if path is None:
            raise CoachError("store_model needs a path")
        directory = f"{path}-{self.total_steps}" if add_timestep else str(path)
        self.save(directory)
        return directory

    def load_model(self, path: Any = None, checkpoint_directory: Any = None) -> None:
        """Go on from what ``store_model`` wrote.

        :param path: what it returned
        :param checkpoint_directory: older name of ``path``
        """
        if (path or checkpoint_directory) is None:
            raise CoachError("load_model needs the path that store_model returned")
        self._restore(path or checkpoint_directory)
        self._asked.clear()

    def export_graph(self, filename: Any = None) -> pathlib.Path:
        """``export_model``. :param filename: a directory that is empty or does not exist"""
        if filename is None:
            raise CoachError("export_graph needs a directory")
        return self.export_model(filename)


def _refuse_internals(internals: Any) -> None:
    if internals is not None and np.size(internals):
        raise CoachError(INTERNALS)


def _row(values: Any, index: int) -> Any:
    if isinstance(values, Mapping):
        return {name: _row(part, index) for name, part in values.items()}
    try:
        return values[index]
    except (LookupError, TypeError):
        raise CoachError(f"{shown(values)} has no row for environment number {index}") from None


def _copied(state: Any) -> Any:
    return {name: np.array(part) for name, part in state.items()} if isinstance(state, Mapping) else np.array(state)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and one.keys() == other.keys() and all(_equal(one[n], other[n]) for n in one)
    return bool(np.array_equal(one, other))


Agent = RLgraphAgent
DQNAgent, PPOAgent, ActorCriticAgent, SACAgent, RandomAgent = (
    partial(RLgraphAgent.from_spec, type=kind) for kind in ("dqn", "ppo", "actor_critic", "sac", "random")
)


class OpenAIGymEnv:
    """A Gymnasium environment by RLgraph's methods.

    :param gym_env: its id
    :param visualize: show it in a window
    """

    def __init__(self, gym_env: str, visualize: bool = False):
        self.gym_env = gymnasium_environment(gym_env, visualize)

    @classmethod
    def from_spec(cls, spec: Any = None, **additions: Any) -> OpenAIGymEnv:
        """The environment of ``{"type": "openai", "gym_env": "CartPole-v1"}``.

        :param spec: such a dict; or the type alone, where ``additions`` say the rest
        :param additions: entries that count instead of those of ``spec``
        :raises CoachError: it is wrong, or says what has no meaning here; in one line
        """
        given = {"type": spec} if isinstance(spec, str) else spec or {}
        if not isinstance(given, Mapping):
            raise CoachError(f"an environment's spec is a dict with 'type' and 'gym_env', not {shown(spec)}")
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
        """Begin anew with this seed."""
        self.gym_env.reset(seed=seed)

    def reset(self) -> Any:
        """Begin an episode. :return: its first state"""
        return self.gym_env.reset()[0]

    def step(self, actions: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """:return: next state, reward, terminal, info"""
        state, reward, terminated, truncated, info = self.gym_env.step(actions)
        if truncated and not terminated:
            info = {**info, TRUNCATED: True}
        return state, float(reward), terminated or truncated, info

    def terminate(self) -> None:
        """Close it."""
        self.gym_env.close()


Environment = OpenAIGymEnv
"""The environments of specifications, of which there is this kind."""

__all__ = [
    "ActorCriticAgent",
    "Agent",
    "BoolBox",
    "DQNAgent",
    "Dict",
    "Environment",
    "FloatBox",
    "IntBox",
    "OpenAIGymEnv",
    "PPOAgent",
    "RandomAgent",
    "SACAgent",
    "SingleThreadedWorker",
]
