"""Checkpoints of single agents of a graph. They are written to ``checkpoint/<agent>/``, next to the checkpoints of the
whole graph."""

from __future__ import annotations

import os
from typing import Any, Iterable

from rl_coach.checkpoint import (
    CheckpointStateReader,
    find_checkpoint,
    keep_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from rl_coach.graph_managers.checkpointing import MOVES, unmet_by
from rl_coach.utilities.errors import refuse
from rl_coach.utils import CoachError


def save_agent(directory: str, name: str, agent: Any, state: dict[str, Any], framework: str, keep: int) -> str:
    """Write a checkpoint of one agent, without its memory.

    :param directory: the directory with a sub-directory for each agent
    :param name: the checkpoint's name
    :param agent: the agent
    :param state: the result of the agent's ``get_state``
    :param framework: the graph's framework
    :param keep: number of the newest checkpoints that are kept; 0 keeps all
    :return: the checkpoint's path
    :raises OSError: if the checkpoint cannot be written
    """
    place = os.path.join(directory, agent.name)
    fits = {"framework": framework, **agent.fits()}
    manifest = {"agent": agent.name, "framework": framework, **MOVES, "fits": fits}
    path = save_checkpoint(place, name, {"agent": {**state, "memory": None}}, manifest)
    keep_checkpoints(place, keep)
    return path


def restore_agent(path: str, agent: Any, framework: str) -> str:
    """Restore one agent. Its memory does not change.

    :param path: a checkpoint of an agent, or a directory of checkpoints (the newest is used)
    :param agent: the agent
    :param framework: the graph's framework
    :return: the checkpoint's path
    :raises CoachError: if there is no checkpoint, or the checkpoint is damaged or does not fit the agent
    """
    path = find_checkpoint(path)
    state, manifest = load_checkpoint(path)
    if "agent" not in manifest:
        raise CoachError(f"the checkpoint '{path}' belongs to a whole graph, not to one agent")
    unmet = unmet_by(manifest, None, {"framework": framework, **agent.fits()})
    refuse(f"the checkpoint '{path}' {line}" for line in unmet)
    # set_state may fail halfway, when parts of the agent have changed already
    before = agent.get_state()
    try:
        agent.set_state(state["agent"])
    except (ArithmeticError, LookupError, ValueError, TypeError, AttributeError) as error:
        agent.set_state(before)
        raise CoachError(f"the checkpoint '{path}' does not fit agent '{agent.name}': {error}") from error
    return path


def agents_alone_in(directory: str, names: Iterable[str]) -> dict[str, str]:
    """The directories of checkpoints of single agents, by the agent's name.

    :param directory: the directory with a sub-directory for each agent
    :param names: the names of the graph's agents
    :return: only agents with checkpoints; empty if the directory has a checkpoint of the whole graph
    """
    if CheckpointStateReader(directory).get_all():
        return {}
    places = {name: os.path.join(directory, name) for name in names}
    return {name: place for name, place in places.items() if CheckpointStateReader(place).get_all()}
