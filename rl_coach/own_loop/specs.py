"""Agents from specifications of TensorForce and of RLgraph."""

from __future__ import annotations

from typing import Any, Mapping

from rl_coach.own_loop.rlgraph import RLgraphAgent
from rl_coach.own_loop.spec_agent import SpecAgent, agent_of_saved
from rl_coach.own_loop.tensorforce import TensorForceAgent
from rl_coach.utilities.spec_fields import read_spec
from rl_coach.utils import CoachError

AGENT_CLASSES: tuple[type[SpecAgent], ...] = (TensorForceAgent, RLgraphAgent)


def agent_from_spec(given: Any, additions: Mapping[str, Any]) -> SpecAgent:
    """The agent for a specification, with the methods of the specification's system. See ``Agent.from_spec``."""
    document = {**read_spec({} if given is None else given), **additions}
    names = [one for one in AGENT_CLASSES if any(key in document for key in (*one.family.states, *one.family.actions))]
    for agent_class in (*names, *AGENT_CLASSES):
        if agent_class.family.kind(document) is not None:
            return agent_class.from_spec(document)
    return (*names, *AGENT_CLASSES)[0].from_spec(document)


def agent_of_saved_spec(saved: Any, given: Mapping[str, Any]) -> SpecAgent:
    """The agent of a specification that ``Agent.save`` wrote.

    :param given: arguments of ``make_agent`` that replace the saved arguments
    :raises CoachError: if the specification is damaged
    """
    name = saved.get("family") if isinstance(saved, dict) else None
    agent_class = next((one for one in AGENT_CLASSES if one.family.name == name), None)
    if agent_class is None:
        raise CoachError(f"the saved spec is damaged: there is no system {name!r}")
    return agent_of_saved(agent_class, saved, given)
