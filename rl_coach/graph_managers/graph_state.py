"""State of a graph: all that another process needs to go on with its run exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rl_coach.core_types import RunPhase
from rl_coach.graph_managers.schedule_parameters import UNITS
from rl_coach.logger import screen

if TYPE_CHECKING:
    from rl_coach.graph_managers.graph_manager import GraphManager


def state_of(graph: GraphManager) -> dict[str, Any]:
    """Counters, levels, progress and random streams, as nested dicts of arrays and plain values."""
    assert graph.seeds is not None
    return {
        "counters": {
            phase.name: {unit.__name__: count for unit, count in counter.counters.items()}
            for phase, counter in graph.total_steps_counters.items()
        },
        "reset_required": [graph.reset_required, graph.force_next_reset],
        "levels": {level.name: level.get_state() for level in graph.level_managers},
        "progress": graph.progress.get_state(),
        **graph.improvement.get_state(),
        **graph.seeds.get_state(),
    }


def lost_episode(state: dict[str, Any]) -> bool:
    """True if an episode was in progress that the state does not hold."""
    is_over, _ = state["reset_required"]
    return not is_over and any(level["episode"] is None for level in state["levels"].values())


def restore(graph: GraphManager, state: dict[str, Any]) -> None:
    """Give a graph the state of another run; a new episode begins next."""
    assert graph.seeds is not None
    for phase, counts in state["counters"].items():
        for unit, count in counts.items():
            graph.total_steps_counters[RunPhase[phase]][UNITS[unit]] = count
    for level in graph.level_managers:
        level.set_state(state["levels"][level.name])
    graph.improvement.set_state(state)
    graph.progress.set_state(state["progress"])
    graph.seeds.set_state(state)
    graph.require_reset()


def restore_episode(graph: GraphManager, state: dict[str, Any]) -> bool:
    """Go on in the middle of the episode in which the state was taken; ``restore`` came before.

    :return: True if there was one and it goes on
    """
    is_over, is_forced = state["reset_required"]
    if is_over:
        graph.force_next_reset = is_forced
        return False
    levels = {level: state["levels"][level.name] for level in graph.level_managers}
    # the environment stands at the bottom; if it cannot go on, no level does
    resumed = all(level.resume_saved_episode(saved) for level, saved in reversed(levels.items()))
    graph.reset_required = graph.force_next_reset = not resumed
    if not resumed:
        screen.warning("the episode in which the checkpoint was saved cannot be taken up again: a new one begins")
    return resumed
