"""Chains of an agent's filters: ``InputFilter`` for observations and rewards, ``OutputFilter`` for actions.

Filters need only NumPy, so that a deployed policy can contain them.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Iterator, Mapping, TypeVar, Union

import numpy as np

from rl_coach.core_types import ActionInfo, EnvResponse, Transition
from rl_coach.filters.base_filter import Filter
from rl_coach.spaces import ActionSpace, RewardSpace, Space, SpacesDefinition
from rl_coach.utilities.overrides import OverrideTable
from rl_coach.utilities.plain_data import State
from rl_coach.utils import CoachError, choose_from

if TYPE_CHECKING:
    from rl_coach.filters.action.action_filter import ActionFilter
    from rl_coach.filters.observation.observation_filter import ObservationFilter
    from rl_coach.filters.reward.reward_filter import RewardFilter

Data = TypeVar("Data", EnvResponse, Transition)
AnyFilter = TypeVar("AnyFilter", bound="Filter")


OVERRIDES = OverrideTable({"is_empty": ("filter",)})


def changes_nothing(chain: InputFilter | OutputFilter) -> bool:
    """True if a chain changes no data: it contains no filters, and its class does not override a method."""
    return chain.is_empty and not OVERRIDES.is_replaced(chain, "is_empty")


class _FilterChain(Filter):
    """Base class of ``InputFilter`` and ``OutputFilter``, which contain other filters.

    :param is_a_reference_filter: True for a template, which cannot filter: call it to get a copy
    """

    def __init__(self, is_a_reference_filter: bool, name: str | None):
        super().__init__(name)
        self.i_am_a_reference_filter = is_a_reference_filter

    def __call__(self: AnyFilter) -> AnyFilter:
        """Return a deep copy that is not a template."""
        duplicate = copy.deepcopy(self)
        duplicate.i_am_a_reference_filter = False  # type: ignore[attr-defined]
        return duplicate

    def _members(self) -> Iterator[tuple[tuple[str, ...], Filter]]:
        """The contained filters, each with its path of names, such as (observation, filter)."""
        raise NotImplementedError

    @property
    def members(self) -> list[Filter]:
        """The contained filters, in order."""
        return [member for _, member in self._members()]

    def _refuse(self) -> None:
        raise CoachError(f"this {type(self).__name__} is a reference filter: call it to get a copy to use")

    def reset(self) -> None:
        for _, member in self._members():
            member.reset()

    def for_another_actor(self) -> Any:
        return self._with({path: member.for_another_actor() for path, member in self._members()})

    def for_evaluation(self) -> Any:
        return self._with({path: member.for_evaluation() for path, member in self._members()})

    def _with(self, twins: dict[tuple[str, ...], Any]) -> Any:
        """A copy of the chain with other filters. :param twins: the filters by their paths of names"""
        if all(twins[path] is member for path, member in self._members()):
            return self
        chain = copy.copy(self)
        chain._replace(twins)
        return chain

    def _replace(self, members: dict[tuple[str, ...], Any]) -> None:
        """Replace the contained filters. :param members: the filters by their paths of names"""
        raise NotImplementedError

    def episode_state(self) -> Any:
        states = [member.episode_state() for _, member in self._members()]
        return states if any(state is not None for state in states) else []

    def set_episode_state(self, state: Any) -> None:
        for (_, member), of_member in zip(self._members(), state or ()):
            member.set_episode_state(of_member)

    def set_device(self, device: Any, memory_backend_params: Any = None, mode: str = "numpy") -> None:
        for _, member in self._members():
            member.set_device(device, memory_backend_params, mode)

    def take_gathered(self) -> State:
        gathered = {"/".join(path): member.take_gathered() for path, member in self._members()}
        return {path: state for path, state in gathered.items() if state}

    def merge_gathered(self, gathered: State) -> None:
        members = {"/".join(path): member for path, member in self._members()}
        if unknown := sorted(gathered.keys() - members.keys()):
            raise CoachError(
                f"there is no filter '{unknown[0]}' to add statistics to: use the same filters in all processes"
            )
        for path, state in gathered.items():
            members[path].merge_gathered(state)

    def get_state(self) -> State:
        states = {"/".join(path): member.get_state() for path, member in self._members()}
        return {path: state for path, state in states.items() if state}

    def set_state(self, state: State) -> None:
        members = {"/".join(path): member for path, member in self._members()}
        unknown = sorted(state.keys() - members.keys())
        missing = [path for path, member in members.items() if path not in state and member.get_state()]
        if unknown or missing:
            trouble = [f"'{path}' is only in the checkpoint" for path in unknown]
            trouble += [f"'{path}' is not in the checkpoint" for path in missing]
            raise CoachError(f"the filters differ from the checkpoint's: {'; '.join(trouble)}")
        for path, member_state in state.items():
            members[path].set_state(member_state)

    def save_state_to_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        for path, member in self._members():
            member.save_state_to_checkpoint(checkpoint_dir, self._prefix(checkpoint_prefix, path))

    def restore_state_from_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        for path, member in self._members():
            member.restore_state_from_checkpoint(checkpoint_dir, self._prefix(checkpoint_prefix, path))

    def _prefix(self, checkpoint_prefix: Union[int, str], path: tuple[str, ...]) -> str:
        names = [name.replace("/", ".") for name in path]  # nested observations have names with slashes
        return ".".join([str(checkpoint_prefix), *([self.name] if self.name else []), *names])


def _insert(filters: dict[str, AnyFilter], name: str, new: AnyFilter, first: bool) -> dict[str, AnyFilter]:
    """``filters`` with ``new`` at the beginning or at the end. At the end, a filter of the same name is replaced in its
    place.
    """
    if not first:
        return OrderedDict(filters, **{name: new})
    return OrderedDict([(name, new), *((key, value) for key, value in filters.items() if key != name)])


def _named(filters: Mapping[str, Any], name: str, kind: str) -> Any:
    try:
        return filters[name]
    except KeyError:
        raise CoachError(f"no {kind} has the name '{name}'{choose_from(name, filters)}") from None


class OutputFilter(_FilterChain):
    """A chain of filters that convert the agent's actions to the environment's actions.

    The first filter is next to the environment: its output is the action that the environment gets. The last filter is
    next to the agent.

    :param action_filters: the filters by name
    :param is_a_reference_filter: True for a template: call it to get a copy
    """

    def __init__(
        self,
        action_filters: dict[str, ActionFilter] | None = None,
        is_a_reference_filter: bool = False,
        name: str | None = None,
    ):
        super().__init__(is_a_reference_filter, name)
        self.action_filters: dict[str, ActionFilter] = OrderedDict() if action_filters is None else action_filters

    def _members(self) -> Iterator[tuple[tuple[str, ...], Filter]]:
        return (((name,), member) for name, member in self.action_filters.items())

    def _replace(self, members: dict[tuple[str, ...], Any]) -> None:
        self.action_filters = OrderedDict((name, members[(name,)]) for name in self.action_filters)

    @property
    def is_empty(self) -> bool:
        """True if the chain has no filters and is not a reference filter (a template)."""
        return not (self.action_filters or self.i_am_a_reference_filter)

    def filter(self, action_info: ActionInfo) -> ActionInfo:
        """Convert the agent's action to the environment's action. Return a copy; without filters, return the same
        object.
        """
        if self.i_am_a_reference_filter:
            self._refuse()
        if not self.action_filters:
            return action_info
        filtered = copy.copy(action_info)
        for action_filter in reversed(list(self.action_filters.values())):
            filtered.action = action_filter.filter(filtered.action)
        return filtered

    def reverse_filter(self, action_info: ActionInfo) -> ActionInfo:
        """Convert an action of the environment, for example from a recorded episode, to the agent's action.

        :raises CoachError: if the environment does not have this action, or no action of the agent results in it
        """
        if self.i_am_a_reference_filter:
            self._refuse()
        if not self.action_filters:
            return action_info
        reversed_info = copy.copy(action_info)
        for action_filter in self.action_filters.values():
            action_filter.validate_output_action(reversed_info.action)
            reversed_info.action = action_filter.reverse_filter(reversed_info.action)
        return reversed_info

    def get_unfiltered_action_space(self, output_action_space: ActionSpace) -> ActionSpace:
        """Compute the action space that the agent sees.

        :param output_action_space: the action space of the environment
        :raises CoachError: if a filter cannot output actions of its output space
        """
        space = output_action_space
        for action_filter in self.action_filters.values():
            action_filter.validate_output_action_space(space)
            space = action_filter.get_unfiltered_action_space(space)
        return space

    def add_action_filter(self, filter_name: str, filter: ActionFilter, add_as_the_first_filter: bool = False) -> None:
        """Add a filter on the agent's side. With ``add_as_the_first_filter``, add it on the environment's side."""
        self.action_filters = _insert(self.action_filters, filter_name, filter, add_as_the_first_filter)

    def remove_action_filter(self, filter_name: str) -> None:
        """Remove an action filter.

        :raises CoachError: if there is no action filter with this name
        """
        _named(self.action_filters, filter_name, "action filter")
        del self.action_filters[filter_name]


class NoOutputFilter(OutputFilter):
    """An output filter without filters, for presets: the environment gets the agent's actions unchanged."""

    def __init__(self) -> None:
        super().__init__(is_a_reference_filter=False)


class InputFilter(_FilterChain):
    """Chains of filters between environment and agent: one for each observation, and one for the reward.

    :param observation_filters: for each observation, a dict of filters by name, in the order in which they are applied
    :param reward_filters: the filters of the reward by name, in order
    :param is_a_reference_filter: True for a template: call it to get a copy
    """

    def __init__(
        self,
        observation_filters: dict[str, dict[str, ObservationFilter]] | None = None,
        reward_filters: dict[str, RewardFilter] | None = None,
        is_a_reference_filter: bool = False,
        name: str | None = None,
    ):
        super().__init__(is_a_reference_filter, name)
        self.observation_filters = {} if observation_filters is None else observation_filters
        self.reward_filters: dict[str, RewardFilter] = OrderedDict() if reward_filters is None else reward_filters

    def _members(self) -> Iterator[tuple[tuple[str, ...], Filter]]:
        for observation_name, filters in self.observation_filters.items():
            for name, observation_filter in filters.items():
                yield ("observation", observation_name, name), observation_filter
        for name, reward_filter in self.reward_filters.items():
            yield ("reward", name), reward_filter

    def _replace(self, members: dict[tuple[str, ...], Any]) -> None:
        self.observation_filters = {
            observation: {name: members["observation", observation, name] for name in filters}
            for observation, filters in self.observation_filters.items()
        }
        self.reward_filters = OrderedDict((name, members["reward", name]) for name in self.reward_filters)

    @property
    def is_empty(self) -> bool:
        """True if the chain has no filters and is not a reference filter (a template)."""
        return not (self.observation_filters or self.reward_filters or self.i_am_a_reference_filter)

    def filter(
        self, unfiltered_data: Union[Data, list[Data]], update_internal_state: bool = True, deep_copy: bool = True
    ) -> list[Data]:
        """Filter an ``EnvResponse`` or a ``Transition``, or a list of them. In transitions, both state and next state
        are filtered.

        Without filters, the same objects are returned. With filters, the result consists of shallow copies. The
        originals do not change.

        :param deep_copy: ignored, because the originals do not change
        """
        if self.i_am_a_reference_filter:
            self._refuse()
        data = unfiltered_data if isinstance(unfiltered_data, list) else [unfiltered_data]
        if not data or not (self.observation_filters or self.reward_filters):
            return data
        filtered = [_shallow_copy(item) for item in data]
        if isinstance(filtered[0], Transition):
            self._filter_states([item.state for item in filtered], update_internal_state)
        self._filter_states([item.next_state for item in filtered], update_internal_state)
        for reward_filter in self.reward_filters.values():
            for item in filtered:
                item.reward = reward_filter.filter(item.reward, update_internal_state)
        return filtered

    def _filter_states(self, states: list[dict[str, Any]], update_internal_state: bool) -> None:
        for name, filters in self.observation_filters.items():
            if name not in states[0]:
                continue
            if len(states) == 1:
                states[0][name] = _filter_one(states[0][name], filters, update_internal_state)
                continue
            column: Any = [state[name] for state in states]
            for observation_filter in filters.values():
                column = observation_filter.filter_batch(column, update_internal_state)
            for state, observation in zip(states, column):
                state[name] = observation

    def filter_columns(
        self, columns: dict[str, np.ndarray], update_internal_state: bool = True
    ) -> dict[str, np.ndarray]:
        """Filter a batch of states, a column [B, ...] for each observation. Without filters, return the same dict."""
        if self.i_am_a_reference_filter:
            self._refuse()
        if not self.observation_filters:
            return columns
        filtered = dict(columns)
        for name, filters in self.observation_filters.items():
            if name in filtered:
                for observation_filter in filters.values():
                    filtered[name] = observation_filter.filter_batch(filtered[name], update_internal_state)
        return filtered

    def filter_trained(self, state: dict[str, Any]) -> dict[str, Any]:
        """Filter a state for a trained policy. Statistics do not change. Filters that store data of the episode, such
        as a stack of frames, are updated.
        """
        filtered = dict(state)
        for name, filters in self.observation_filters.items():
            if name in filtered:
                for key, member in filters.items():
                    filtered[name] = _filter_one(filtered[name], {key: member}, member.remembers_episode)
        return filtered

    def filter_evaluated(self, response: EnvResponse) -> EnvResponse:
        """Filter a response in an evaluation. Unlike ``filter``, this does not update statistics; see
        ``filter_trained``.
        """
        if self.i_am_a_reference_filter:
            self._refuse()
        if not (self.observation_filters or self.reward_filters):
            return response
        filtered = _shallow_copy(response)
        filtered.next_state = self.filter_trained(filtered.next_state)
        for reward_filter in self.reward_filters.values():
            filtered.reward = reward_filter.filter(filtered.reward, reward_filter.remembers_episode)
        return filtered

    def filter_rewards(self, rewards: np.ndarray, update_internal_state: bool = True) -> np.ndarray:
        """Filter a batch of rewards [B]. Without filters, return the same array."""
        if self.i_am_a_reference_filter:
            self._refuse()
        for reward_filter in self.reward_filters.values():
            rewards = reward_filter.filter(rewards, update_internal_state)
        return rewards

    def get_filtered_observation_space(self, observation_name: str, input_observation_space: Space) -> Space:
        """Compute the space of a filtered observation.

        :param input_observation_space: the observation's space in the environment; it does not change
        :raises CoachError: if a filter does not support the space
        """
        filters = self.observation_filters.get(observation_name)
        if not filters:
            return input_observation_space
        # a filter written for Coach 1 may change its argument
        space = copy.deepcopy(input_observation_space)
        for observation_filter in filters.values():
            observation_filter.validate_input_observation_space(space)  # type: ignore[arg-type]
            space = observation_filter.get_filtered_observation_space(space)  # type: ignore[arg-type]
        return space

    def get_filtered_reward_space(self, input_reward_space: RewardSpace) -> RewardSpace:
        """Compute the space of filtered rewards. The success threshold of this space still refers to unfiltered
        rewards.
        """
        if not self.reward_filters:
            return input_reward_space
        space = copy.deepcopy(input_reward_space)
        for reward_filter in self.reward_filters.values():
            space = reward_filter.get_filtered_reward_space(space)
        return space

    def copy_filters_from_one_observation_to_another(self, from_observation: str, to_observation: str) -> None:
        """Copy the filters of one observation to another observation.

        :raises CoachError: if the first observation has no filters
        """
        filters = _named(self.observation_filters, from_observation, "filtered observation")
        self.observation_filters[to_observation] = copy.deepcopy(filters)

    def add_observation_filter(
        self,
        observation_name: str,
        filter_name: str,
        filter: ObservationFilter,
        add_as_the_first_filter: bool = False,
    ) -> None:
        """Add a filter after the observation's other filters. With ``add_as_the_first_filter``, add it before them."""
        present = self.observation_filters.get(observation_name, OrderedDict())
        self.observation_filters[observation_name] = _insert(present, filter_name, filter, add_as_the_first_filter)

    def add_reward_filter(self, filter_name: str, filter: RewardFilter, add_as_the_first_filter: bool = False) -> None:
        """Add a filter after the reward's other filters. With ``add_as_the_first_filter``, add it before them."""
        self.reward_filters = _insert(self.reward_filters, filter_name, filter, add_as_the_first_filter)

    def remove_observation_filter(self, observation_name: str, filter_name: str) -> None:
        """Remove a filter of an observation.

        :raises CoachError: if the observation has no filter with this name
        """
        filters = _named(self.observation_filters, observation_name, "filtered observation")
        _named(filters, filter_name, f"filter of the observation '{observation_name}'")
        del filters[filter_name]
        if not filters:
            del self.observation_filters[observation_name]

    def remove_reward_filter(self, filter_name: str) -> None:
        """Remove a filter of the reward.

        :raises CoachError: if there is no reward filter with this name
        """
        _named(self.reward_filters, filter_name, "reward filter")
        del self.reward_filters[filter_name]


def _shallow_copy(item: Any) -> Any:
    if type(item) is EnvResponse:  # not copy.copy, which takes five times as long and would be called at every step
        return EnvResponse(
            dict(item.next_state), item.reward, item.game_over, dict(item.info), item.goal, item.terminated
        )
    if not isinstance(item, (EnvResponse, Transition)):
        raise ValueError(f"an input filter supports EnvResponse and Transition, not {type(item).__name__}")
    duplicate: Any = copy.copy(item)
    duplicate.info = dict(item.info)
    duplicate.next_state = dict(duplicate.next_state)
    if isinstance(item, Transition):
        duplicate.state = dict(duplicate.state)
    return duplicate


def _filter_one(observation: Any, filters: Mapping[str, ObservationFilter], update_internal_state: bool) -> Any:
    for observation_filter in filters.values():
        if observation_filter.supports_batching:
            observation = observation_filter.filter_batch([observation], update_internal_state)[0]
        else:
            observation = observation_filter.filter(observation, update_internal_state)
    return observation


class NoInputFilter(InputFilter):
    """An input filter without filters, for presets: the agent gets the environment's observations and rewards
    unchanged.
    """

    def __init__(self) -> None:
        super().__init__(is_a_reference_filter=False)


def filtered_spaces(
    spaces: SpacesDefinition, input_filter: InputFilter, pre_network_filter: InputFilter, output_filter: OutputFilter
) -> SpacesDefinition:
    """Compute the spaces that an agent sees behind its filters, from the spaces of the environment."""
    state = {
        name: pre_network_filter.get_filtered_observation_space(
            name, input_filter.get_filtered_observation_space(name, space)
        )
        for name, space in spaces.state.sub_spaces.items()
    }
    return SpacesDefinition(
        state=type(spaces.state)(state),
        goal=spaces.goal,
        action=output_filter.get_unfiltered_action_space(spaces.action),
        reward=input_filter.get_filtered_reward_space(spaces.reward),
    )
