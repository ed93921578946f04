"""Attributes of an agent that belong to the episode in progress."""

from __future__ import annotations

from typing import Any, Iterable

from rl_coach.agents.core.overrides import is_replaced
from rl_coach.utilities.overrides import users_classes
from rl_coach.utils import CoachError

_IN_AN_EPISODE = (
    "act", "begin_episode", "choose_action", "handle_episode_ended", "observe", "observe_transition",
    "reset_internal_state", "update_transition_before_adding_to_replay_buffer",
)  # fmt: skip


class EpisodeAttributes:
    """Knows which attributes of an agent belong to the episode: the attributes that its class declares in
    ``episode_attributes``. Without a declaration, they are the attributes that ``reset_internal_state`` has changed."""

    def __init__(self, agent: Any):
        self._agent = agent
        self._found: set[str] = set()

    @property
    def names(self) -> set[str]:
        """The names of the attributes."""
        return self._found | set(self._agent.episode_attributes or ())

    @property
    def are_declared(self) -> bool:
        """True if the agent declares which attributes belong to an episode."""
        agent = self._agent
        is_declared = agent.episode_attributes is not None and not is_replaced(agent, "episode_attributes")
        return is_declared or not is_replaced(agent, "episode_class")

    def begin_episode(self) -> None:
        """Call the agent's ``reset_internal_state``. Without a declaration, find the attributes that it changes."""
        agent = self._agent
        if self.are_declared:
            agent.reset_internal_state()
            return
        if agent.parallel is not None:  # a user has set the override on the instance, after the copies were made
            raise self._unknown()
        before = dict(vars(agent))
        agent.reset_internal_state()
        # Compare identities: == of arrays has no single answer.
        changed = {name for name, value in vars(agent).items() if name not in before or before[name] is not value}
        self._found |= changed - set(agent.counters)

    def restore(self, names: Iterable[str]) -> None:
        """Add the names from a checkpoint."""
        self._found |= set(names)

    def require_for_copies(self) -> None:
        """Make sure that the agent can act in several episodes at once.

        :raises CoachError: if the agent does not declare its attributes of the episode
        """
        if not self.are_declared or (self._agent.episode_attributes is None and self._may_keep_attributes()):
            raise self._unknown()

    def require_declared(self, made: Iterable[str]) -> None:
        """Check that a user's agent declares all attributes that it created while it acted in several copies.

        :raises CoachError: if an attribute is not declared
        """
        agent = self._agent
        if users_classes(type(agent)) and agent.episode_attributes is None and not set(made) <= set(agent.counters):
            raise self._unknown()

    def _may_keep_attributes(self) -> bool:
        """True if a user's agent overrides a method of the episode and may keep attributes of the episode."""
        names = {name for kind in users_classes(type(self._agent)) for name in vars(kind)}
        return "__init__" in names and "episode_class" not in names and not names.isdisjoint(_IN_AN_EPISODE)

    def _unknown(self) -> CoachError:
        return CoachError(
            f"agent '{self._agent.name}': with several copies of the environment, {type(self._agent).__name__} must "
            f"list its attributes that belong to one episode: set episode_attributes (() if there are none), keep them "
            f"in an episode_class, or set env_params.num_environments to 1"
        )
