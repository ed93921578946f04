"""The settings that differ between runs."""

from __future__ import annotations

from collections import Counter
from typing import Any, Sequence

from rl_coach.runs.experiments import RunDescription

_ADMINISTRATIVE = ("run.", "task.", "agent.task_parameters.", "visualization.", "agent.visualization.", "graph.")
NO_SETTING = ("__class__", ".current_value")
_ALWAYS_DIFFERENT = {"start_time", "command_line", "experiment_path", "checkpoint_save_dir", "checkpoint_restore_path"}


def differing_parameters(descriptions: Sequence[RunDescription]) -> list[str]:
    """The names of the parameters that differ between runs, in order. Parameters that do not belong to the
    agent or its environment come last.
    """
    differing: set[str] = set()
    seen: dict[str, list[Any]] = {}
    for description in descriptions:
        for name, value in description.parameters.items():
            first = seen.setdefault(name, [value, 0])
            first[1] += 1
            if name not in differing and (value != first[0] or _kind(value) is not _kind(first[0])):
                differing.add(name)
    differing.update(name for name, (_, count) in seen.items() if count < len(descriptions))
    names = (name for name in differing if name.rpartition(".")[2] not in _ALWAYS_DIFFERENT)
    return sorted(names, key=lambda name: (is_administrative(name), name))


def _kind(value: Any) -> type:
    """The type of a parameter; 1 and 1.0 are of one kind."""
    return float if type(value) is int else type(value)


def ranked_by_difference(descriptions: Sequence[RunDescription]) -> list[str]:
    """The parameters that differ, sorted by the number of runs with another value than the most common value, then by
    the number of runs that have them. Parameters that do not belong to the agent or its environment come last."""

    def rank(name: str) -> tuple[bool, int, int, str]:
        values = [about.parameters.get(name) for about in descriptions]
        counts = Counter(str(value) for value in values if value is not None)
        number = counts.total()
        most_common = max(counts.values(), default=0)
        return is_administrative(name), most_common - number, len(values) - number, name

    return sorted(differing_parameters(descriptions), key=rank)


def varied_parameters(descriptions: Sequence[RunDescription]) -> list[str]:
    """The settings that users have varied: parameters that differ between runs with the same preset, agent and
    environment, in the order of ``ranked_by_difference``. Names of classes, and parameters that do not belong to the
    agent or its environment, are left out.
    """
    alike: dict[tuple[str, str, str, str], list[RunDescription]] = {}
    for about in descriptions:
        if about.parameters:
            alike.setdefault((about.preset, about.agent, about.environment, about.source), []).append(about)
    ranked = (name for several in alike.values() for name in ranked_by_difference(several))
    return [name for name in dict.fromkeys(ranked) if not is_administrative(name) and not name.endswith(NO_SETTING)]


def is_administrative(name: str) -> bool:
    """True for a parameter that does not belong to the agent or its environment."""
    return name.startswith(_ADMINISTRATIVE) or name in ("seed", "environment.seed")
