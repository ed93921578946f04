"""The memory of a rollout worker. It stores transitions until they are sent to the trainer."""

from __future__ import annotations

from typing import Any, Mapping

from rl_coach.core_types import Batch, Episode, Transition
from rl_coach.memories.memory import (
    Memory,
    MemoryGranularity,
    MemoryParameters,
    receives_episodes,
    returns_complete_episodes,
)
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.utils import short_dynamic_import

_SAME = ("samples_sequences", "takes_first_priorities", "keeps_demonstrations")


class OutgoingMemoryParameters(MemoryParameters):
    """Parameters of the memory of a rollout worker. In workers, this memory replaces the agent's own memory.

    :param memory: the parameters of the agent's own memory, which the trainer has
    :param sends_segments: True if the trainer learns from segments of episodes
    """

    path = "rl_coach.memories.outgoing:OutgoingMemory"

    def __init__(self, memory: Any, sends_segments: bool = False):
        super().__init__()
        self.max_size = (MemoryGranularity.Episodes, 0)
        own = short_dynamic_import(memory.path)
        self.traits = {
            "stores_episodes": sends_segments or receives_episodes(own),
            "knows_episodes": returns_complete_episodes(own),
            **{name: bool(getattr(own, name)) for name in _SAME},
        }


class OutgoingMemory(Memory):
    """A memory of transitions that have not been sent. The trainer's memory will store them in the same order and form.

    :param max_size: ignored, because transitions are removed when they are sent
    :param traits: attributes of the trainer's memory, such as ``knows_episodes``, by name. ``stores_episodes`` is also
        True if the trainer learns from segments of episodes
    """

    def __init__(self, max_size: tuple[MemoryGranularity, int], traits: Mapping[str, bool]):
        super().__init__(max_size)
        for name, value in traits.items():
            setattr(self, name, value)
        self._episode_lengths: list[int] = []

    def store(self, transition: Transition) -> None:
        """Store a transition."""
        self._store.append(transition)

    def store_episode(self, episode: Episode) -> None:
        """Store the transitions of a complete episode."""
        for transition in episode.transitions:
            self._store.append(transition)
        if episode.transitions:
            self._episode_lengths.append(len(episode.transitions))

    def length(self) -> int:
        """The number of waiting transitions."""
        return self._store.length

    def num_episodes(self) -> int:
        """The number of waiting complete episodes."""
        return len(self._episode_lengths)

    def take(self) -> tuple[Batch | None, list[int]]:
        """Remove all transitions. Return them as columns in which each frame is contained once (None if there are no
        transitions), and the lengths of the complete episodes.
        """
        columns = self._store.chunk() if self._store.length else None
        lengths, self._episode_lengths = self._episode_lengths, []
        self._store = TransitionStore(capacity=None)
        return columns, lengths
