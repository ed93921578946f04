"""TensorForce's agents (0.3 and 0.4): what their specifications mean here, and their methods.

A loop that was written for TensorForce runs with its imports changed::

    from rl_coach.own_loop.tensorforce import Agent, OpenAIGym, PPOAgent, Runner
"""

from __future__ import annotations

import math
import pathlib
from functools import partial
from typing import Any, Iterable, Mapping

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.n_step_q_agent import NStepQAgentParameters
from rl_coach.agents.naf_agent import NAFAgentParameters
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgentParameters
from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.own_loop.forms import SINGLE, Part, Parts, part_of_space
from rl_coach.own_loop.played import gymnasium_environment
from rl_coach.own_loop.runner import Runner
from rl_coach.own_loop.spec_agent import Family, SpecAgent
from rl_coach.own_loop.spec_fields import Fields, shape_of, shown
from rl_coach.own_loop.spec_parts import (
    SEPARATE,
    Definition,
    Stack,
    after,
    keep_episodes_for,
    left_out,
    line,
    put_stack,
    set_optimizer,
    set_replay,
    stack_of,
)
from rl_coach.schedules import ConstantSchedule, Schedule
from rl_coach.utils import CoachError

_WITHOUT_EFFECT = ("scope", "device", "batching_capacity", "batched_observe", "log_level", "name")
_NEITHER = ("states_preprocessing", "preprocessing", "reward_preprocessing", "variable_noise", "distributions")
_KINDS = ("float", "int", "bool")
_REPLAY = {"replay": False, "naive_prioritized_replay": True, "prioritized_replay": True}
_MOST_ACTIONS = 4096


# states and actions


def _parts(given: Any, where: str, is_action: bool) -> dict[str, Part]:
    if not isinstance(given, Mapping):
        named = getattr(given, "spaces", None)  # of Gymnasium's Dict
        parts = named if isinstance(named, Mapping) else {SINGLE: given}
        return {name: part_of_space(one) for name, one in parts.items()}
    if given and not any(isinstance(given.get(name), Mapping) for name in given):
        return {SINGLE: _part(Fields(given, where), is_action)}
    Fields(given, where)  # its keys are texts
    return {name: _part(Fields(one, f"{where}.{name}"), is_action) for name, one in given.items()}


def _part(fields: Fields, is_action: bool) -> Part:
    given, shape = fields.get("type"), fields.get("shape")
    kind = given.__name__ if isinstance(given, type) else given
    if kind is None:
        kind = "int" if is_action else "float"
    if not isinstance(kind, str) or kind not in _KINDS:
        raise CoachError(f"the spec's '{fields.path('type')}' is float, int or bool, not {shown(given)}")
    shape = shape_of(shape, fields.path("shape"))
    low, high = fields.number("min_value"), fields.number("max_value")
    count = fields.whole("num_actions", "num_values", "num_states", high=_MOST_ACTIONS)
    fields.finish()
    if kind == "bool":
        return Part(kind, shape, 0.0, 1.0)
    if kind == "int" and count is not None:
        return Part(kind, shape, 0.0, count - 1.0)
    if is_action and kind == "int":
        raise CoachError(f"the spec's '{fields.path('num_actions')}' is missing")
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if low >= high:
        raise CoachError(f"the spec's '{fields.path('max_value')}' is above 'min_value', not {high:g}")
    return Part("float", shape, low, high)


def _states(given: Any) -> Parts:
    return _parts(given, "states", False)


def _actions(given: Any) -> Parts:
    return _parts(given, "actions", True)


# settings


def _common(
    parameters: AgentParameters, fields: Fields, space: Any, main: str = "main"
) -> tuple[Definition, Stack | None]:
    """Settings that all agents have: discount, network, and keys of TensorForce's own machinery."""
    definition = Definition(parameters)
    definition.set("algorithm.discount", fields.number("discount", 0, 1))
    for name in _WITHOUT_EFFECT:
        fields.get(name)
    fields.refuse("make it a filter of the agent's parameters, or do it in your loop", *_NEITHER)
    fields.refuse("give experiment_path, which writes signals and checkpoints", "summarizer", "summary_spec", "saver")
    execution = fields.fields("execution")
    if execution is not None:
        execution.choice("type", ("single",))
        execution.refuse("agents run in one process here", "session_config", "distributed_spec")
        execution.finish()
    network = fields.get("network", "network_spec")
    stack = None if network is None else stack_of(network, "network", "tanh")
    put_stack(parameters.network_wrappers[main], stack, space)
    return definition, stack


def _optimizer(definition: Definition, fields: Fields | None) -> int | None:
    """An optimizer, which may be one of several steps. :return: number of its steps"""
    if fields is None or not fields.is_type("multi_step"):
        set_optimizer(definition, fields, ["main"])
        return None
    steps, inner = fields.whole("num_steps", high=10**6), fields.fields("optimizer")
    fields.finish()
    set_optimizer(definition, inner, ["main"])
    return steps


def _update_mode(fields: Fields, default_unit: str) -> tuple[str, int | None, int | None]:
    """The unit that updates are counted in, the size of a batch, and the distance of updates; ``batch_size`` and
    ``update_frequency`` beside it are those of 0.3."""
    size, every = fields.whole("batch_size", high=10**7), fields.whole("update_frequency")
    mode = fields.fields("update_mode")
    if mode is None:
        return default_unit, size, every
    if size is not None or every is not None:
        raise CoachError("the spec's 'update_mode' says what 'batch_size' and 'update_frequency' say: give one of them")
    unit = mode.choice("unit", ("timesteps", "episodes")) or default_unit
    size, every = mode.whole("batch_size", high=10**7), mode.whole("frequency")
    mode.finish()
    return unit, size, every


def _value_agent(parameters: AgentParameters, fields: Fields, space: Any) -> Definition:
    """An agent with a replay memory."""
    definition, stack = _common(parameters, fields, space)
    unit, batch, every = _update_mode(fields, "timesteps")
    definition.set(
        "network_wrappers['main'].batch_size", batch if batch is None or batch <= 10**5 else _too_many(batch)
    )
    if every is not None:
        step = EnvironmentSteps if unit == "timesteps" else EnvironmentEpisodes
        definition.set("algorithm.num_consecutive_playing_steps", step(every))
    memory = fields.fields("memory", "memory_spec")
    keys = {"prioritization_weight": "memory.alpha", "prioritization_constant": "memory.epsilon"}
    if memory is not None:
        for name in ("include_next_states", "random_sampling"):
            memory.flag(name)
        memory.whole("buffer_size")
    keep_episodes_for(definition, stack)
    set_replay(definition, memory, _REPLAY, keys)
    if memory is not None:
        memory.finish()
    definition.set("algorithm.num_consecutive_training_steps", _optimizer(definition, fields.fields("optimizer")))
    definition.set("algorithm.num_consecutive_training_steps", fields.whole("repeat_update", high=10**6))
    definition.wait(fields.whole("first_update", low=0))
    _target(definition, fields)
    fields.refuse("agents that learn values have no such term", "entropy_regularization")
    return definition


def _too_many(batch: int) -> int:
    raise CoachError(f"the spec's 'batch_size' is a whole number from 1 to 100,000, not {batch}")


def _target(definition: Definition, fields: Fields) -> None:
    """Target network, loss and exploration of agents that learn values."""
    every = fields.whole("target_sync_frequency")
    definition.set(
        "algorithm.num_steps_between_copying_online_weights_to_target",
        None if every is None else EnvironmentSteps(every),
    )
    definition.set("algorithm.rate_for_copying_weights_to_target", fields.number("target_update_weight", 1e-9, 1))
    huber = fields.number("huber_loss", 0)
    if huber not in (None, 0.0, 1.0):
        raise CoachError(f"the spec's 'huber_loss' is 1, 0 or none here, not {huber:g}")
    definition.set("network_wrappers['main'].replace_mse_with_huber_loss", None if huber is None else huber == 1.0)
    _explore(definition, fields.fields("actions_exploration", "explorations_spec", "exploration"))


class HalvingSchedule(Schedule):
    """A value whose distance to the last one halves at even intervals, until it is there.

    :param initial_value: the first
    :param final_value: the last
    :param steps: number of steps to it
    :param half_lives: number of intervals in them
    """

    def __init__(self, initial_value: float, final_value: float, steps: int, half_lives: float):
        super().__init__(initial_value)
        self.final_value = final_value
        self.steps = steps
        self.half_lives = half_lives

    def value_at(self, step: int) -> float:
        if step >= self.steps:
            return self.final_value
        share = 2.0 ** (-self.half_lives * step / self.steps)
        return self.final_value + share * (self.initial_value - self.final_value)


def _explore(definition: Definition, fields: Fields | None) -> None:
    if fields is None:
        return
    kinds = (
        "epsilon_decay",
        "epsilon_anneal",
        "constant",
        "ornstein_uhlenbeck",
        "ornstein_uhlenbeck_process",
        "gaussian_noise",
    )
    kind = fields.choice("type", kinds)
    if kind is None:
        raise CoachError(f"the spec's '{fields.path('type')}' is missing; there are {', '.join(kinds)}")
    exploration: Any
    if kind.startswith("ornstein"):
        exploration = OUProcessParameters()
        for name, low in (("mu", None), ("theta", 0.0), ("sigma", 0.0)):
            value = fields.number(name) if low is None else fields.number(name, low)
            if value is not None:
                setattr(exploration, name, value)
    elif kind == "gaussian_noise":
        exploration, sigma = AdditiveNoiseParameters(), fields.number("sigma", 0)
        fields.refuse("noise has the mean 0 here", "mu")
        exploration.noise_as_percentage_from_action_space = False
        exploration.noise_schedule = ConstantSchedule(0.3 if sigma is None else sigma)
    else:
        exploration = EGreedyParameters()
        exploration.epsilon_schedule, exploration.evaluation_epsilon = _epsilon(kind, fields), 0.0
    definition.parameters.exploration = exploration
    fields.finish()


def _epsilon(kind: str, fields: Fields) -> Schedule:
    if kind == "constant":
        value = fields.number("epsilon", 0, 1)
        return ConstantSchedule(0.1 if value is None else value)
    first, last = fields.number("initial_epsilon", 0, 1), fields.number("final_epsilon", 0, 1)
    first, last = 1.0 if first is None else first, 0.1 if last is None else last
    steps, start = fields.whole("timesteps", high=10**12) or 10_000, fields.whole("start_timestep", low=0) or 0
    if kind == "epsilon_anneal":
        return line(first, last, steps, start)
    half_lives = fields.number("half_lives", 1e-3, 1e3)
    return after(start, first, HalvingSchedule(first, last, steps, 10.0 if half_lives is None else half_lives))


def _dqn(fields: Fields, space: Any) -> Definition:
    return _value_agent(DDQNAgentParameters() if fields.flag("double_q_model") else DQNAgentParameters(), fields, space)


def _ddqn(fields: Fields, space: Any) -> Definition:
    if fields.flag("double_q_model") is False:
        raise CoachError("the spec's 'double_q_model' is false, and ddqn_agent is double: use dqn_agent")
    return _value_agent(DDQNAgentParameters(), fields, space)


def _naf(fields: Fields, space: Any) -> Definition:
    fields.refuse("naf_agent has one Q-function", "double_q_model")
    return _value_agent(NAFAgentParameters(), fields, space)


def _n_step(fields: Fields, space: Any) -> Definition:
    parameters = NStepQAgentParameters()
    definition, _ = _common(parameters, fields, space)
    unit, batch, every = _update_mode(fields, "timesteps")
    if unit != "timesteps" or every not in (None, batch):
        raise CoachError("the spec's 'update_mode': dqn_nstep_agent learns each batch_size timesteps once, in order")
    definition.set("algorithm.num_steps_between_gradient_updates", batch)
    _latest(fields)
    _optimizer(definition, fields.fields("optimizer"))
    fields.refuse("dqn_nstep_agent has one Q-function", "double_q_model")
    _target(definition, fields)
    return definition


def _latest(fields: Fields) -> None:
    """The memory of agents that learn from what they have just played, which is as large as that."""
    memory = fields.fields("memory", "memory_spec")
    if memory is not None:
        memory.choice("type", ("latest",))
        memory.flag("include_next_states")
        memory.whole("capacity")
        memory.finish()


def _policy_agent(definition: Definition, fields: Fields) -> None:
    """Settings that all agents with a policy have."""
    definition.set("algorithm.beta_entropy", fields.number("entropy_regularization"))
    fields.refuse("a policy explores by itself", "actions_exploration", "explorations_spec", "exploration")
    _latest(fields)


def _baseline(definition: Definition, fields: Fields, stack: Stack | None) -> str | None:
    """The critic. :return: ``baseline_mode``"""
    mode, baseline = fields.choice("baseline_mode", ("states", "network")), fields.fields("baseline")
    optimizer = fields.fields("baseline_optimizer")
    definition.set(f"network_wrappers['main'].{SEPARATE}", None if mode is None else mode == "states")
    if mode is None and (baseline is not None or optimizer is not None):
        raise CoachError("the spec's 'baseline_mode' is missing: states or network")
    if baseline is not None:
        baseline.choice("type", ("mlp", "network"))
        sizes = baseline.get("sizes")
        baseline.finish()
        own = None if stack is None else stack.units
        if sizes is not None and own is not None and (not isinstance(sizes, (list, tuple)) or list(sizes) != own):
            raise CoachError(f"the spec's 'baseline.sizes' are those of the network here, {own}, not {shown(sizes)}")
    if optimizer is not None:
        _optimizer_of_baseline(definition, optimizer)
    return mode


def _optimizer_of_baseline(definition: Definition, fields: Fields) -> None:
    """An optimizer that has to be that of the policy."""
    own = Definition(definition.parameters)
    if fields.is_type("multi_step"):
        left_out(fields, "num_steps", "policy and baseline are updated together")
    _optimizer(own, fields)
    for path, value in own.settings.items():
        if definition.settings.get(path, value) != value:
            raise CoachError(
                f"the spec's 'baseline_optimizer': policy and baseline have one optimizer here, whose "
                f"{path.rpartition('.')[2]} is {definition.settings[path]}, not {value}"
            )


def _ppo(fields: Fields, space: Any) -> Definition:
    definition, stack = _common(ClippedPPOAgentParameters(), fields, space)
    _policy_agent(definition, fields)
    unit, batch, every = _update_mode(fields, "timesteps")
    if every not in (None, batch):
        raise CoachError(f"the spec's 'update_mode.frequency' is its batch_size for ppo_agent, not {every}")
    fraction = fields.number("subsampling_fraction", 1e-6, 1)
    if batch is not None:
        step = EnvironmentSteps if unit == "timesteps" else EnvironmentEpisodes
        definition.set("algorithm.num_consecutive_playing_steps", step(batch))
        if fraction is not None and unit == "timesteps":
            definition.set("network_wrappers['main'].batch_size", max(1, round(batch * fraction)))
    steps = fields.whole("optimization_steps", high=10**5)
    if steps is not None:
        definition.set("algorithm.optimization_epochs", max(1, round(steps * (fraction or 1.0))))
    _optimizer(definition, fields.fields("step_optimizer", "optimizer"))
    definition.set("algorithm.clip_likelihood_ratio_using_epsilon", fields.number("likelihood_ratio_clipping", 1e-6))
    definition.set("algorithm.gae_lambda", fields.number("gae_lambda", 0, 1))
    _baseline(definition, fields, stack)
    return definition


def _vpg(fields: Fields, space: Any) -> Definition:
    has_baseline = fields.get("baseline_mode") is not None
    parameters = ActorCriticAgentParameters() if has_baseline else PolicyGradientsAgentParameters()
    definition, stack = _common(parameters, fields, space)
    _policy_agent(definition, fields)
    unit, batch, every = _update_mode(fields, "episodes")
    if unit != "episodes" or every not in (None, batch):
        raise CoachError("the spec's 'update_mode': vpg_agent learns from each batch_size episodes once: unit episodes")
    definition.set("algorithm.apply_gradients_every_x_episodes", batch)
    if _optimizer(definition, fields.fields("optimizer")) not in (None, 1):
        raise CoachError("the spec's 'optimizer.num_steps' is 1 for vpg_agent, which learns from each episode once")
    gae_lambda = fields.number("gae_lambda", 0, 1)
    _baseline(definition, fields, stack)
    if gae_lambda is not None:
        if not has_baseline:
            raise CoachError("the spec's 'gae_lambda' needs a 'baseline_mode'")
        definition.set("algorithm.policy_gradient_rescaler", PolicyGradientRescaler.GAE)
        definition.set("algorithm.gae_lambda", gae_lambda)
    return definition


def _random(fields: Fields, space: Any) -> Definition:
    definition, _ = _common(PolicyGradientsAgentParameters(), fields, space)
    definition.act_at_random()
    return definition


FAMILY = Family(
    "TensorForce",
    {
        "dqn_agent": _dqn, "ddqn_agent": _ddqn, "dqn_nstep_agent": _n_step, "naf_agent": _naf, "ppo_agent": _ppo,
        "vpg_agent": _vpg, "random_agent": _random,
    },
    ("states", "states_spec"),
    ("actions", "actions_spec"),
    _states,
    _actions,
    _common,
    updates_itself=True,
)  # fmt: skip


# methods


class TensorForceAgent(SpecAgent):
    """An agent by TensorForce's methods; those of ``Agent`` are there too, apart from what is named anew."""

    family = FAMILY

    @property
    def timestep(self) -> int:
        """Steps acted."""
        return self.total_steps

    @property
    def episode(self) -> int:
        """Episodes that have ended."""
        counters = self.graph_manager.total_steps_counters.values()
        return sum(counter[EnvironmentEpisodes] for counter in counters)

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
        :param deterministic: the policy's best action, without exploration
        :param independent: no ``observe`` follows: nothing is stored or counted
        :param env_ids: as for ``Agent.act``, as ``infos``
        """
        if independent:
            return self.predict(states, deterministic)
        return super().act(states, env_ids, deterministic, infos)

    def observe(  # type: ignore[override]  # TensorForce's order
        self, terminal: Any, reward: Any, env_ids: Any = None, infos: Any = None
    ) -> None:
        """Take in reward and end of the last action; the next state comes with the next ``act``.

        :param terminal: the episode has come to its end
        :param reward: a number
        :param env_ids: as for ``Agent.observe``, as ``infos``
        """
        super().observe(reward, terminal, env_ids=env_ids, infos=infos)

    def should_stop(self) -> bool:
        """False: nothing but your loop stops an agent."""
        return False

    def save_model(self, directory: Any, append_timestep: bool = True) -> str:
        """Write all that is needed to go on exactly.

        :param directory: where to
        :param append_timestep: write into a directory of its own there, named by the number of steps
        :return: the path, for ``restore_model``
        """
        path = pathlib.Path(directory) / (f"timestep-{self.total_steps}" if append_timestep else "")
        self.save(path)
        return str(path)

    def restore_model(self, directory: Any = None, file: Any = None) -> None:
        """Go on from what ``save_model`` wrote.

        :param directory: where it was written to; the newest there. For ``save_model("models/mine")`` it may be
            ``"models"``, because TensorForce began the names of its files with the last part
        :param file: one of those in ``directory``, or a path without it
        :raises CoachError: there is none
        """
        path = pathlib.Path(directory or "") / (file or "")
        if directory is None and file is None:
            raise CoachError("restore_model needs the directory that save_model wrote to")
        found = list(path.glob("timestep-*")) or ([] if file else list(path.glob("*/timestep-*")))
        steps = {int(one.name.rpartition("-")[2]): one for one in found if one.name[9:].isdigit()}
        self._restore(steps[max(steps)] if steps else path)

    def import_demonstrations(self, demonstrations: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> int:
        """Store what somebody else has played, for ``pretrain``.

        :param demonstrations: columns ``states``, ``actions``, ``reward``, ``terminal``; or a dict of these names for
            each step
        :return: number of steps stored
        """
        if isinstance(demonstrations, Mapping):
            return self.import_observations(_renamed(demonstrations))
        return self.import_observations([_renamed(one) for one in demonstrations])

    def pretrain(self, steps: int) -> list[float]:
        """Learn from the memory without acting.

        :param steps: number of updates
        :return: the loss of each
        """
        return [self.update() for _ in range(steps)]


def _renamed(demonstration: Any) -> dict[str, Any]:
    if not isinstance(demonstration, Mapping):
        raise CoachError(f"a demonstration is a dict, not {shown(demonstration)}")
    if demonstration.get("internals"):
        raise CoachError(INTERNALS)
    names = {"reward": "rewards", "terminal": "terminals", "state": "states", "action": "actions"}
    return {names.get(str(name), str(name)): value for name, value in demonstration.items() if name != "internals"}


INTERNALS = "internals are kept by the agent: give none"

Agent = TensorForceAgent
DQNAgent, DDQNAgent, DQNNstepAgent, NAFAgent, PPOAgent, VPGAgent, RandomAgent = (
    partial(TensorForceAgent.from_spec, type=kind)
    for kind in ("dqn_agent", "ddqn_agent", "dqn_nstep_agent", "naf_agent", "ppo_agent", "vpg_agent", "random_agent")
)


class OpenAIGym:
    """A Gymnasium environment by TensorForce's methods.

    :param gym_id: its id
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
        """:return: next state, terminal, reward"""
        state, reward, terminated, truncated, _ = self.gym.step(action)
        return state, terminated or truncated, float(reward)

    def close(self) -> None:
        """Close it."""
        self.gym.close()


__all__ = [
    "Agent",
    "DQNAgent",
    "DDQNAgent",
    "DQNNstepAgent",
    "NAFAgent",
    "OpenAIGym",
    "PPOAgent",
    "RandomAgent",
    "Runner",
    "VPGAgent",
]
