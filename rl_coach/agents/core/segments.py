"""Segments of episodes that other processes have played, for agents that learn from each once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rl_coach.core_types import Batch
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.agents.core.experience import Played


_MOST_STEPS = 10_000_000  # of an episode


@dataclass
class SegmentStart:
    """Place of a segment in its episode.

    :param first: number of steps of the episode before it
    :param is_complete: the episode ended with it, and was not only cut off for a while
    :param states: the state of a recurrent network before its first step; empty for zeros
    """

    first: int = 0
    is_complete: bool = True
    states: dict[str, np.ndarray] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The place as plain data and arrays."""
        return {"first": self.first, "is_complete": self.is_complete, "states": dict(self.states)}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> SegmentStart:
        """The place that ``plain`` gave.

        :raises CoachError: it is none
        """
        try:
            states = {str(name): np.asarray(array, np.float32) for name, array in plain["states"].items()}
            first = int(plain["first"])
            if not 0 <= first <= _MOST_STEPS:
                raise ValueError(f"it begins at step {first}")
            return cls(first, bool(plain["is_complete"]), states)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CoachError(f"a segment does not say where in its episode it is: {error!r}") from error


class ReceivedSegments:
    """Segments in the order in which they arrived, until they are learned from."""

    def __init__(self) -> None:
        self._store = TransitionStore(capacity=None)
        self._lengths: list[int] = []
        self._starts: list[SegmentStart] = []

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def num_complete(self) -> int:
        """The number of episodes that ended with one of them."""
        return sum(start.is_complete for start in self._starts)

    def starts_of(self, played: Played, recurrent: dict[str, np.ndarray]) -> list[SegmentStart]:
        """The places of the segments in what arrives.

        :param recurrent: a state of the network, which those that arrive must be like
        :raises CoachError: they are not given for each segment, do not cover the columns, or are none of that network
        """
        rows = 0 if played.columns is None else len(played.columns)
        if len(played.stretches) != len(played.episode_lengths) or sum(played.episode_lengths) != rows:
            raise CoachError(
                f"segments of {sum(played.episode_lengths)} steps in {rows} rows, and places of {len(played.stretches)}"
            )
        starts = [SegmentStart.of(one) for one in played.stretches]
        shapes = {name: np.shape(array) for name, array in recurrent.items()}
        for start in starts:
            found = {name: array.shape for name, array in start.states.items()}
            if found and found != shapes:
                raise CoachError(f"a segment begins in a state {found} of a network whose states are {shapes}")
        return starts

    def add(self, played: Played, starts: list[SegmentStart]) -> None:
        """Keep what has arrived. :param starts: what ``starts_of`` gave for it"""
        if played.columns is not None:
            self._store.extend(played.columns)
            self._lengths += played.episode_lengths
            self._starts += starts

    def take(self) -> list[tuple[Batch, SegmentStart]]:
        """All segments; none is left."""
        if not self._lengths:
            return []
        ends = np.cumsum(self._lengths).tolist()
        rows = zip([0, *ends], ends)
        taken = [(self._store.batch_at(np.arange(*span)), start) for span, start in zip(rows, self._starts)]
        self.clear()
        return taken

    def clear(self) -> None:
        """Forget all segments."""
        self._store, self._lengths, self._starts = TransitionStore(capacity=None), [], []

    def get_state(self) -> dict[str, Any]:
        """The segments as plain data."""
        starts = {f"{i:04d}": start.plain() for i, start in enumerate(self._starts)}
        return {"store": self._store.get_state(), "lengths": list(self._lengths), "starts": starts}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``."""
        self.clear()
        self._store.set_state(state["store"])
        self._lengths = [int(length) for length in state["lengths"]]
        self._starts = [SegmentStart.of(state["starts"][name]) for name in sorted(state["starts"])]
