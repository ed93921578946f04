"""Construction of the parts of an agent that need its networks, and checks of its settings."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.accumulated_reward import with_accumulated_reward_space
from rl_coach.agents.core.curiosity import make_curious
from rl_coach.agents.core.requirements import requirements_of, unmet_by_recurrent_networks
from rl_coach.agents.core.signals import RowUnit
from rl_coach.agents.core.update_loop import UpdateLoop, UpdateSettings
from rl_coach.architectures.embedder_parameters import ContextEmbedderParameters
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter, filtered_spaces
from rl_coach.filters.observation.action_mask_filter import with_masks_behind
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.logger import screen
from rl_coach.spaces import DiscreteActionSpace, GoalsSpace, SpacesDefinition, VectorObservationSpace
from rl_coach.utilities.errors import refuse
from rl_coach.utils import CoachError


def set_spaces(agent: Any, spaces: SpacesDefinition) -> None:
    """Set the spaces of an agent after its filters, and the goals that it pursues.

    :param spaces: the environment's spaces
    :raises CoachError: if the environment lacks the observation of these goals
    """
    agent.environment_spaces = spaces
    agent.input_filter = with_masks_behind(agent.output_filter, agent.input_filter, spaces)
    # without the pre-network filter: its statistics change, so batches are filtered only before an update
    agent.memory_spaces = filtered_spaces(spaces, agent.input_filter, NoInputFilter(), agent.output_filter)
    if agent.ap.algorithm.use_accumulated_reward_as_measurement:
        agent.memory_spaces.state = with_accumulated_reward_space(agent.memory_spaces.state)
    agent.spaces = filtered_spaces(agent.memory_spaces, NoInputFilter(), agent.pre_network_filter, NoOutputFilter())
    agent.policy_spaces = agent.spaces
    _warn_of_unknown_observations(agent)
    refuse(_unmet_by_goals(agent))
    if isinstance(agent.in_action_space, GoalsSpace):
        agent.in_action_space.set_target_space(spaces.state[agent.in_action_space.goal_name])


def add_learning(agent: Any, seeds: np.random.SeedSequence) -> None:
    """Give an agent with networks its source of batches and the parts that learn. :param seeds: gives the source its
    seed"""
    agent.batches = agent.make_batches()
    _require_passes(agent)
    # before the update loop, because curiosity puts another source around this one
    make_curious(agent)
    agent.batches.seed(seeds.spawn(1)[0])
    agent.update_loop = _make_update_loop(agent)
    agent.learning = agent.make_learning()
    agent.experience.rollout = agent.learning.rollout
    _warn_of_batch_sizes(agent)
    _warn_of_separate_statistics(agent)


def make_networks(agent: Any, seeds: np.random.SeedSequence) -> dict[str, NetworkWrapper]:
    """The networks of an agent by name. :param seeds: gives each network its seed"""
    return {
        name: NetworkWrapper(
            agent.ap,
            has_target=parameters.create_target_network,
            has_global=False,
            name=name,
            spaces=agent.policy_spaces,
            rng=np.random.default_rng(seeds.spawn(1)[0]),
        )
        for name, parameters in agent.ap.network_wrappers.items()
    }


def _make_update_loop(agent: Any) -> UpdateLoop:
    """The part of an agent that updates its networks."""
    parameters = agent.ap
    settings = UpdateSettings(
        parameters.network_wrappers, parameters.algorithm, agent.acting_networks, agent.spaces.action_mask_name,
        agent.batch_network, agent.most_updates_per_call, agent.learning_periods,
    )  # fmt: skip
    return UpdateLoop(
        agent, agent.networks, agent.batches, agent.clock, agent.signals, agent.pre_network_filter, agent.watch,
        settings,
    )  # fmt: skip


def unmet_by_spaces(agent: Any) -> Iterator[str]:
    """Requirements of an agent's memory that the agent's spaces do not meet."""
    memory, states, actions = agent.memory, agent.memory_spaces.state, agent.memory_spaces.action
    if memory.relabels and agent.is_on_policy:
        yield (
            f"agent '{agent.name}' learns on-policy, and {type(memory).__name__} adds transitions with other goals: "
            f"set memory to EpisodicExperienceReplayParameters()"
        )
    # a level above sets the goal
    known = [*states.sub_spaces, *([] if agent.ap.is_a_highest_level_agent else ["desired_goal"])]
    lacking = [name for name in memory.needed_observations if name not in known]
    has_key = hasattr(agent.ap.memory, "state_key_with_the_class_index")
    advice = "set memory.state_key_with_the_class_index, or " if has_key else ""
    for name in lacking:
        yield (
            f"{type(memory).__name__} needs the observation '{name}', and the states of agent '{agent.name}' have only "
            f"{', '.join(map(repr, known))}: {advice}use another memory"
        )
    if memory.stores_goals_as_actions and not lacking:
        goal = memory.needed_observations[-1]
        stored = tuple(map(int, states[goal].shape))
        taken = () if isinstance(actions, DiscreteActionSpace) else tuple(map(int, actions.shape))
        if stored != taken:
            yield (
                f"{type(memory).__name__} stores '{goal}' of shape {stored} as actions, and the actions of agent "
                f"'{agent.name}' have the shape {taken}: use another memory"
            )


def unmet_by_contexts(agent: Any) -> Iterator[str]:
    """A message for each context embedder whose input is not stacked by a filter. The length of a vector does not show
    if the vector is a stack of observations.
    """
    for name, network in agent.ap.network_wrappers.items():
        for observation, embedder in network.input_embedders_parameters.items():
            is_vector = isinstance(agent.spaces.state.sub_spaces.get(observation), VectorObservationSpace)
            if not (is_vector and isinstance(embedder, ContextEmbedderParameters)):
                continue
            members = agent.input_filter.observation_filters.get(observation, {}).values()
            stacks = [one for one in members if isinstance(one, ObservationStackingFilter)]
            if not any(one.stack_size == embedder.steps and one.stacking_axis in (-1, 1) for one in stacks):
                yield (
                    f"network '{name}' of agent '{agent.name}' embeds the last {embedder.steps} observations of "
                    f"'{observation}': add an ObservationStackingFilter({embedder.steps}) to the agent's input_filter"
                )


def unmet_by_acting_beside_learning(agent: Any) -> Iterator[str]:
    """The reason why an agent cannot act while its updates are computed, if ``act_beside_learning`` asks for this."""
    if not agent.ap.algorithm.act_beside_learning:
        return
    needs_newest = agent.is_on_policy or agent.trains_asynchronously or agent.learns_one_by_one
    if needs_newest or not agent.learns_by_rule:
        yield (
            f"agent '{agent.name}' cannot act during its updates: algorithm.act_beside_learning needs an agent that "
            f"has an update rule and learns from steps of any policy; set act_beside_learning to False"
        )


def _unmet_by_goals(agent: Any) -> Iterator[str]:
    """A message if the environment lacks the observation of the goals that the level above sets."""
    pursued = agent.in_action_space
    if isinstance(pursued, GoalsSpace):
        there = list(agent.environment_spaces.state.sub_spaces)
        if pursued.goal_name not in there:
            yield (
                f"agent '{agent.name}' pursues goals of '{pursued.goal_name}', but the observations of the "
                f"environment are {there}: set goal_name of the GoalsSpace to one of them"
            )


def unmet_by_networks(agent: Any) -> Iterator[str]:
    """Unmet requirements on the networks and the exploration policy of an agent."""
    recurrent = [name for name, network in agent.networks.items() if network.is_recurrent]
    yield from unmet_by_recurrent_networks(
        agent.name, recurrent, agent.recurrent_network, agent.learns_from_sequences, agent.learns_from_stored_states
    )
    yield from requirements_of(agent).unmet_by_networks(agent.name, agent.networks, agent.exploration_policy)


def _require_passes(agent: Any) -> None:
    """Raise a ``CoachError`` if the agent needs passes over its data, but its source of batches makes none."""
    if agent.batches.epoch is not None:
        return
    source = type(agent.batches).__name__
    if agent.ap.is_batch_rl_training:
        raise CoachError(
            f"agent '{agent.name}' learns from {source}, but batch reinforcement learning makes passes over single "
            f"transitions: set middleware_parameters to FCMiddlewareParameters(), or return a DataSetPass from "
            f"make_batches"
        )
    if agent.row_unit is RowUnit.EPOCH:
        raise CoachError(
            f"agent '{agent.name}' writes a row for each epoch, but {source} makes no passes over a data set: return a "
            f"DataSetPass from make_batches, or set row_unit to RowUnit.UPDATES"
        )


def _warn_of_batch_sizes(agent: Any) -> None:
    """Warn of a ``batch_size`` without effect: all networks of an agent learn from the same batches."""
    read = [name for name in requirements_of(agent).network_requirements if name in agent.networks]
    # A process that only acts has no use for a batch size.
    if not read or any(agent.networks[name].head_outputs is None for name in read):
        return
    counts, sizes = agent.update_loop.batch_size, {name: agent.ap.network_wrappers[name].batch_size for name in read}
    if others := ", ".join(f"'{name}' ({size})" for name, size in sizes.items() if size != counts):
        screen.warning(
            f"agent '{agent.name}': batch_size of network {others} has no effect; all networks learn from batches of "
            f"{counts}, the batch_size of network '{agent.update_loop.batch_network}'"
        )


def _warn_of_unknown_observations(agent: Any) -> None:
    """Warn of filters of an observation that does not exist."""
    seen = {"input_filter": agent.environment_spaces, "pre_network_filter": agent.memory_spaces}
    for chain, spaces in seen.items():
        # a level above sets the goal
        known = [*spaces.state.sub_spaces, *([] if agent.ap.is_a_highest_level_agent else ["desired_goal"])]
        for name in getattr(agent, chain).observation_filters:
            if name not in known:
                screen.warning(
                    f"agent '{agent.name}': {chain} has filters of the observation '{name}', which have no effect, "
                    f"because the observations are {', '.join(map(repr, known))}"
                )


def _warn_of_separate_statistics(agent: Any) -> None:
    """Warn of ``share_statistics_between_workers = False``, which Coach 1.0.1 supports."""
    if not agent.ap.algorithm.share_statistics_between_workers:
        screen.warning(
            f"agent '{agent.name}': algorithm.share_statistics_between_workers = False has no effect, because all "
            f"workers use the same statistics of filters"
        )
