"""Comparison of a graph with the one that a checkpoint is of."""

from __future__ import annotations

from typing import Iterable

from rl_coach.base_parameters import TaskParameters
from rl_coach.level_manager import LevelManager
from rl_coach.utils import CoachError


def fits_of(levels: Iterable[LevelManager], task: TaskParameters) -> dict[str, str]:
    """Everything that a graph must have in common with a checkpoint's, as texts by name."""
    fits = {"framework": task.framework_type.name}
    for level in levels:
        spaces = level.spaces_definition
        agent = level.agent
        fits |= {f"{what} of {level.name}/{agent.name}": text for what, text in agent.fits().items()}
        for name, space in spaces.state.sub_spaces.items():
            fits[f"observation space {level.name}/{name}"] = repr(space)
        fits[f"action space {level.name}"] = repr(spaces.action)
    return fits


def check_preset(path: str, here: str | None, there: str | None) -> None:
    """Compare the names of the presets that a graph and a checkpoint are of, where both have one; a graph that a
    program has put together has none.

    :param path: the checkpoint, for the message
    :param here: the graph's preset, as ``preset_catalogue.name_of`` gives it
    :param there: the checkpoint's
    :raises CoachError: they differ
    """
    if here and there and here != there:
        raise CoachError(
            f"the checkpoint '{path}' is of the preset {there}, not of {here}: use -p {there}, with -cp and -lvl for "
            "what is to be different"
        )


def check_fit(path: str, here: dict[str, str], there: dict[str, str]) -> None:
    """Compare ``fits_of`` a graph with those that a checkpoint's manifest holds.

    :param path: the checkpoint, for the message
    :raises CoachError: they differ; the message names the first difference
    """
    for name in sorted({*here, *there}, key=_importance):
        if here.get(name) != there.get(name):
            was = f"has {there[name]} as its {name}" if name in there else f"has no {name}"
            is_here = f"here it is {here[name]}" if name in here else "here there is none"
            raise CoachError(f"the checkpoint '{path}' does not fit: it {was}, {is_here}")


def _importance(name: str) -> tuple[int, str]:
    """Other spaces make another network: what is the cause comes first."""
    order = ("framework", "agent", "observation space", "action space")
    return next((i for i, start in enumerate(order) if name.startswith(start)), len(order)), name
