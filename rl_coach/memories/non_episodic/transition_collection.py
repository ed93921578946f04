"""A plain list of transitions."""

from __future__ import annotations

from typing import Any, Iterable, Iterator

from rl_coach.core_types import Transition


class TransitionCollection:
    """A list of a few ``Transition`` objects, in the order in which they were added."""

    def __init__(self) -> None:
        self._transitions: list[Transition] = []

    def append(self, transition: Transition) -> None:
        """Add one transition."""
        self._transitions.append(transition)

    def extend(self, transitions: Iterable[Transition]) -> None:
        """Add several transitions."""
        self._transitions.extend(transitions)

    def __len__(self) -> int:
        return len(self._transitions)

    def __getitem__(self, index: Any) -> Any:
        return self._transitions[index]

    def __delitem__(self, index: Any) -> None:
        del self._transitions[index]

    def __iter__(self) -> Iterator[Transition]:
        return iter(self._transitions)
