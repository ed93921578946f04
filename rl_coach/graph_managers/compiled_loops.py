"""The conditions for a compiled loop: a level that makes many steps and updates in one call."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.signals import RowUnit
from rl_coach.architectures.layers import NoisyNetDense
from rl_coach.base_parameters import DistributedTaskParameters, Frameworks, TaskParameters
from rl_coach.compiled_level_manager import uncalled_override
from rl_coach.filters.filter import changes_nothing
from rl_coach.filters.pure import PureFilters, without_pure_form
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, OneHotObservationSpace
from rl_coach.utilities.overrides import why_not_on_fast_path
from rl_coach.utilities.requirements import settings_below
from rl_coach.utils import public_attributes


def why_not_compiled(agent: Any, environment: Any, parameters: Any, task: TaskParameters, heats_up: bool) -> str | None:
    """The reason why the loop of an agent in an environment of pure functions cannot be compiled; None if the loop can
    be compiled.

    :param agent: a new agent, without networks
    :param environment: the environment
    :param parameters: the environment's parameters
    :param task: the task parameters
    :param heats_up: True if the run begins with a heatup
    """
    return next(_unmet(agent, environment, parameters, task, heats_up), None)


def _unmet(agent: Any, environment: Any, parameters: Any, task: TaskParameters, heats_up: bool) -> Iterator[str]:
    visualization = agent.ap.visualization
    if task.framework_type is not Frameworks.jax:
        yield f"the framework is {task.framework_type.name}, not jax (-f jax)"
    if isinstance(task, DistributedTaskParameters) or not (task.role.acts and task.role.trains):
        yield "several processes act or learn"
    if visualization.dump_in_episode_signals or visualization.render or environment.is_rendered:
        yield "each step is rendered or written to a file"
    if parameters.frame_skip != 1:
        yield f"env_params.frame_skip is {parameters.frame_skip}"
    copies = parameters.num_environments
    if not isinstance(agent, Agent):
        yield f"{type(agent).__name__} has no compiled form"
    elif (reason := agent.why_not_compiled(copies, environment.action_space, heats_up)) is not None:
        yield reason
    elif (override := uncalled_override(agent)) is not None:
        yield _uncalled(override, override)
    yield from _unmet_by_spaces(environment)
    yield from _unmet_by_filters(agent)
    yield from _unmet_by_settings(agent, copies)


def _uncalled(name: str, part: str) -> str:
    return f"a compiled loop would not call {name}" if "." in name else f"{part} has no compiled form"


def _unmet_by_spaces(environment: Any) -> Iterator[str]:
    actions, observations = environment.action_space, environment.state_space.sub_spaces.values()
    is_discrete = type(actions) is DiscreteActionSpace and actions.raw_actions is None
    if not is_discrete and not (type(actions) is BoxActionSpace and actions.is_raw_vector):
        yield f"actions {actions} have no compiled form"
    if any(isinstance(space, OneHotObservationSpace) for space in observations):
        yield "an observation is of a Discrete or MultiDiscrete space"
    if any(getattr(space, "raw_channels_first", False) for space in observations):
        yield "an observation has its channels on the first axis"


def _unmet_by_filters(agent: Agent) -> Iterator[str]:
    algorithm = agent.ap.algorithm
    for chain in (agent.input_filter, agent.pre_network_filter):
        if (name := without_pure_form(chain)) is not None:
            yield _uncalled(name, f"the filter {name}")
    if PureFilters(agent.input_filter, np).learn:
        yield "an input filter has statistics: move it to agent_params.pre_network_filter"
    if not changes_nothing(agent.output_filter):
        yield "there is an output filter"
    trains_only = algorithm.update_pre_network_filters_state_on_train
    trains_only = trains_only and not algorithm.update_pre_network_filters_state_on_inference
    if not trains_only and PureFilters(agent.pre_network_filter, np).learn:
        yield (
            "pre-network filters have statistics, and a compiled loop updates these only in training: set "
            "agent_params.algorithm.update_pre_network_filters_state_on_train to True and "
            "agent_params.algorithm.update_pre_network_filters_state_on_inference to False"
        )


def _unmet_by_settings(agent: Agent, copies: int) -> Iterator[str]:
    algorithm, networks = agent.ap.algorithm, agent.ap.network_wrappers.values()
    for name in (
        "use_accumulated_reward_as_measurement", "override_episode_rewards_with_the_last_transition_reward",
        "act_beside_learning",
    ):  # fmt: skip
        if getattr(algorithm, name):
            yield f"algorithm.{name} is True"
    if agent.ap.curiosity is not None:
        yield "the agent has an intrinsic reward (agent_params.curiosity)"
    if algorithm.act_for_full_episodes and not agent.is_on_policy:
        yield "training phases wait for the end of an episode"
    if agent.row_unit is not RowUnit.EPISODE:
        yield f"the unit of a row in the agent's CSV is '{agent.row_unit.value}', not 'episode'"
    if agent.ap.is_batch_rl_training or agent.in_action_space is not None:
        yield "the agent learns from recorded data, or receives goals from another agent"
    # the loop draws noise only at updates, so several steps would share it
    steps = algorithm.num_consecutive_playing_steps.num_steps
    parts = (part for network in networks for _, part in settings_below(network))
    if steps > max(1, copies or 1) and any(map(_draws_noise, parts)):
        yield f"NoisyNet draws new noise in each step, and there are {steps} steps between updates"
    for schedule in _schedules_below(algorithm, agent.ap.exploration):
        if (override := why_not_on_fast_path(schedule, ("value_at", "values_at"))) is not None:
            yield _uncalled(override, override)


def _draws_noise(part: Any) -> bool:
    """True if a part of a network is a NoisyNet layer or makes NoisyNet layers."""
    dense_layer = getattr(part, "dense_layer", None)
    return isinstance(part if dense_layer is None else dense_layer(1), NoisyNetDense)


def _schedules_below(*holders: Any) -> Iterator[Any]:
    """The schedules among the settings. A compiled loop does not call their ``step``."""
    for holder in holders:
        for _, part in settings_below(holder):
            yield from (value for value in public_attributes(part).values() if hasattr(value, "current_value"))
