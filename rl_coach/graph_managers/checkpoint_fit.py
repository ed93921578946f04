"""Requirements of a graph on the checkpoint that it is restored from."""

from __future__ import annotations

from typing import Any, Iterable, Iterator

from rl_coach.base_parameters import TaskParameters
from rl_coach.level_manager import LevelManager

_CAUSES = ("framework", "agent", "observation space", "action space")
"""The order of naming: other spaces make another network, so they come first."""
FRAMEWORK = "framework"
MOVES = {"moves": True}
"""In the manifest of a checkpoint whose networks know the order of their arrays, so that any framework reads it."""


def fits_of(levels: Iterable[LevelManager], task: TaskParameters) -> dict[str, str]:
    """Everything that a graph must have in common with a checkpoint's, as texts by name."""
    fits = {FRAMEWORK: task.framework_type.name}
    for level in levels:
        fits |= level.fits()
    return fits


def unmet_by(manifest: dict[str, Any], preset: str | None, fits: dict[str, str]) -> Iterator[str]:
    """Reasons why a graph cannot be restored. Each is a line that begins with the predicate; its subject is the
    checkpoint.

    :param manifest: the checkpoint's
    :param preset: the graph's, as ``preset_catalogue.name_of`` gives it; one that a program has put together has none
    :param fits: the graph's ``fits_of``
    """
    other, there = manifest.get("preset"), manifest.get("fits", {})
    if not isinstance(there, dict):
        yield f"is damaged: 'fits' in its manifest is {there!r}, not a JSON object"
        return
    has_moved = bool(manifest.get("moves")) and there.get(FRAMEWORK) != fits.get(FRAMEWORK)
    if preset and other and preset != other:
        yield (
            f"is of the preset {other}, not of {preset}: use -p {other}, with -cp and -lvl for what is to be different"
        )
    for name in sorted({*fits, *there}, key=_importance):
        if has_moved and (name == FRAMEWORK or _has_equal_words(fits.get(name), there.get(name))):
            continue  # frameworks list the same layers in other orders
        if fits.get(name) != there.get(name):
            was = f"has {there[name]} as its {name}" if name in there else f"has no {name}"
            is_here = f"here it is {fits[name]}" if name in fits else "here there is none"
            yield f"does not fit: it {was}, {is_here}"


def _has_equal_words(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and sorted(one.split()) == sorted(other.split())


def _importance(name: str) -> tuple[int, str]:
    return next((i for i, start in enumerate(_CAUSES) if name.startswith(start)), len(_CAUSES)), name
