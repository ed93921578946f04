"""The state of the episode in progress in a filter or an exploration policy."""

from __future__ import annotations

import copy
from collections import deque
from typing import Any, Mapping

import numpy as np

from rl_coach.schedules import Schedule
from rl_coach.spaces import Space
from rl_coach.utilities.overrides import OverrideTable
from rl_coach.utilities.shared_running_stats import SharedRunningStats
from rl_coach.utils import CoachError

_OVERRIDES = OverrideTable({"episode_attributes": ("reset",)})

_OF_THE_AGENT = (Schedule, Space, SharedRunningStats, np.random.Generator)
"""A user's object is copied for each actor. All copies share the attributes of these kinds."""


class KeepsEpisodeState:
    """Base of filters and exploration policies, which may keep a state of the episode in progress.

    An agent has an actor for each episode in progress. If there are several, each actor needs its own state:

    * A class that declares ``episode_attributes`` shares the objects of all other attributes among the actors. An
      assignment to an attribute belongs to one actor.
    * Any other class gets its own instance for each actor. Schedules, spaces, statistics
      (``NumpySharedRunningStats``) and random generators in its attributes are shared.

    :cvar episode_attributes: names of the attributes that belong to the episode; () for none. A subclass that overrides
        ``reset`` must declare these attributes again, because the declaration of its base does not count
    """

    episode_attributes: tuple[str, ...] | None = None

    def reset(self) -> None:
        """Start a new episode: forget the state of the last episode."""

    @property
    def declares_episode_state(self) -> bool:
        """True if ``episode_attributes`` names all attributes of the episode."""
        return self.episode_attributes is not None and not _OVERRIDES.is_replaced(self, "episode_attributes")

    @property
    def keeps_no_episode_state(self) -> bool:
        """True if the class declares that it keeps no state of an episode."""
        return self.declares_episode_state and not self.episode_attributes

    def for_another_actor(self) -> Any:
        """This object for another actor: a copy at the start of an episode, or the object itself if it keeps no state
        of an episode.

        :raises CoachError: if the object cannot be copied
        """
        if exchanges_episodes(self):
            return self
        if not self.declares_episode_state:
            return self._copied(_OF_THE_AGENT)
        if not self.episode_attributes:
            return self
        twin = copy.copy(self)
        for name in self.episode_attributes:
            setattr(twin, name, copy.deepcopy(getattr(self, name)))
        twin.reset()
        return twin

    def for_evaluation(self) -> Any:
        """This object for an evaluation: a copy at the start of an episode, or the object itself if it keeps no state
        of an episode. The copy shares no changeable state with training, so an evaluation does not affect training.

        :raises CoachError: if the object cannot be copied
        """
        return self if self.keeps_no_episode_state else self._copied((Space,))

    def _copied(self, shared_kinds: tuple[type, ...]) -> Any:
        """A deep copy. It shares attributes of ``shared_kinds`` with this object."""
        shared = {id(value): value for value in vars(self).values() if isinstance(value, shared_kinds)}
        try:
            twin = copy.deepcopy(self, shared)
        except Exception as error:
            name = type(self).__name__
            raise CoachError(
                f"{name} cannot be copied for several episodes ({type(error).__name__}: {error}): name the attributes "
                f"that belong to an episode in {name}.episode_attributes"
            ) from error
        twin.reset()
        return twin

    def episode_state(self) -> Any:
        """The state of the episode, for ``set_episode_state``; None if there is none. Without ``episode_attributes``,
        the state has the attributes that ``reset`` would change now.
        """
        names = self.episode_attributes if self.declares_episode_state else self._changed_by_reset()
        return {name: getattr(self, name) for name in names} if names else None

    def _changed_by_reset(self) -> list[str]:
        if type(self).reset is KeepsEpisodeState.reset or exchanges_episodes(self):
            return []
        try:
            fresh = vars(self._copied((Space,)))
        except CoachError:  # what cannot be copied cannot be saved either: the checkpoint omits the episode
            return list(vars(self))
        return [name for name, value in vars(self).items() if _differs(value, fresh.get(name))]

    def set_episode_state(self, state: Any) -> None:
        """Continue an episode. :param state: the result of ``episode_state``, or None"""
        if state is None:
            return
        if not isinstance(state, Mapping):  # older checkpoints have only the values
            values = state if isinstance(state, (tuple, list)) else (state,)
            state = dict(zip(self.episode_attributes or (), values))
        for name, value in state.items():
            setattr(self, name, value)


def _differs(value: Any, other: Any) -> bool:
    """True if two values differ. Objects differ if their attributes differ. Objects without attributes never differ."""
    if value is other:
        return False
    if isinstance(value, np.ndarray) or isinstance(other, np.ndarray):
        return not np.array_equal(value, other)
    if type(value) is not type(other):
        return True
    if isinstance(value, Mapping):
        return value.keys() != other.keys() or any(_differs(value[name], other[name]) for name in value)
    if isinstance(value, (list, tuple, deque)):
        return len(value) != len(other) or any(map(_differs, value, other))
    if isinstance(value, (bool, int, float, str, bytes, set, np.generic)):
        return bool(value != other)
    return hasattr(value, "__dict__") and _differs(vars(value), vars(other))


def exchanges_episodes(part: Any) -> bool:
    """True if a user's object itself switches between episodes, with ``suspend`` and ``resume``. All actors share this
    object."""
    return hasattr(part, "suspend") and hasattr(part, "resume")
