"""Requirements of a graph on the checkpoint that it is restored from."""

from __future__ import annotations

from typing import Any, Iterable, Iterator

from rl_coach.base_parameters import TaskParameters
from rl_coach.level_manager import LevelManager

_CAUSES = ("framework", "agent", "observation space", "action space")
"""The order of the lines: a difference of spaces also changes the networks, so spaces come before networks."""
FRAMEWORK = "framework"
MOVES = {"moves": True}
"""Marks the manifest of a checkpoint that states the order of its networks' arrays, so that any framework reads it."""


def fits_of(levels: Iterable[LevelManager], task: TaskParameters) -> dict[str, str]:
    """Descriptions by name that must be equal in a graph and in a checkpoint that it restores."""
    fits = {FRAMEWORK: task.framework_type.name}
    for level in levels:
        fits |= level.fits()
    return fits


def unmet_by(manifest: dict[str, Any], preset: str | None, fits: dict[str, str]) -> Iterator[str]:
    """Lines that say why a graph cannot be restored. The subject of each line is the checkpoint, and the line begins
    with the predicate.

    :param manifest: the checkpoint's manifest
    :param preset: the graph's, as ``preset_catalogue.name_of`` gives it; None if a program has built the graph without
        a preset
    :param fits: the graph's ``fits_of``
    """
    other, there = manifest.get("preset"), manifest.get("fits", {})
    if not isinstance(there, dict):
        yield f"is damaged: 'fits' in its manifest is {there!r}, not a JSON object"
        return
    has_moved = bool(manifest.get("moves")) and there.get(FRAMEWORK) != fits.get(FRAMEWORK)
    if preset and other and preset != other:
        yield f"is of the preset {other}, not of {preset}: use -p {other}, with -cp and -lvl for other settings"
    for name in sorted({*fits, *there}, key=_importance):
        if has_moved and (name == FRAMEWORK or _has_equal_words(fits.get(name), there.get(name))):
            continue  # frameworks list the same layers in different orders
        if fits.get(name) != there.get(name):
            was = f"has {there[name]} as its {name}" if name in there else f"has no {name}"
            is_here = f"here it is {fits[name]}" if name in fits else "here there is none"
            yield f"does not fit: it {was}, {is_here}"


def _has_equal_words(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and sorted(one.split()) == sorted(other.split())


def _importance(name: str) -> tuple[int, str]:
    return next((i for i, start in enumerate(_CAUSES) if name.startswith(start)), len(_CAUSES)), name
