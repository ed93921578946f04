"""Memories as people wrote them for Coach: they keep transitions in lists of their own."""

from __future__ import annotations

from typing import Any

from rl_coach.core_types import Episode, Transition
from rl_coach.memories.memory import Memory, MemoryGranularity, MemoryParameters


class ListMemoryParameters(MemoryParameters):
    """A memory of a kind.

    :param kind: the class of the memory
    """

    def __init__(self, kind: type[Memory]):
        super().__init__()
        self.max_size = (MemoryGranularity.Transitions, 1000)
        self._kind = kind

    @property
    def path(self) -> str:
        return f"{self._kind.__module__}:{self._kind.__name__}"


class ListMemory(Memory):
    """Samples transitions without duplicates.

    :ivar largest_sample: the most transitions that were asked for at once
    """

    def __init__(self, max_size: Any):
        super().__init__(max_size)
        self.transitions: Any = []
        self.largest_sample = 0

    def store(self, obj: Transition) -> None:
        super().store(obj)
        self.transitions.append(obj)

    def length(self) -> int:
        return len(self.transitions)

    def sample(self, size: int) -> Any:
        self.largest_sample = max(self.largest_sample, size)
        return [self.transitions[row] for row in self.rng.choice(self.length(), size, replace=False)]

    def clean(self) -> None:
        self.transitions = []


class EpisodeListMemory(ListMemory):
    """Keeps the transitions of whole episodes.

    :ivar episodes: the lengths of all episodes that were stored
    """

    def __init__(self, max_size: Any):
        super().__init__(max_size)
        self.episodes: list[int] = []

    def store_episode(self, episode: Episode) -> None:
        super().store_episode(episode)
        self.episodes.append(episode.length())
        self.transitions.extend(episode.transitions)

    def get_all_complete_episodes_transitions(self) -> Any:
        return self.transitions


class EndlessListMemory(EpisodeListMemory):
    """Keeps whole episodes and does not say that the last one has ended."""

    def get_all_complete_episodes_transitions(self) -> Any:
        last = self.transitions[-1]
        last.game_over = last.terminated = False
        return self.transitions
