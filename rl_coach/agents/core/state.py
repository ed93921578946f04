"""State of an agent that a later run needs to go on exactly, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rl_coach.agents.agent import Agent

FILTERS = ("input_filter", "output_filter", "pre_network_filter")


def state_of(agent: Agent) -> dict[str, Any]:
    """Networks, optimizers, memory, filters, exploration, counters and random streams; not the episode in progress."""
    task = agent.ap.task_parameters
    return {
        "networks": {name: network.get_state() for name, network in agent.networks.items()},
        "memory": agent.memory.get_state() if task is None or task.checkpoint_memory else None,
        "exploration": agent.exploration_policy.get_state(),
        "filters": {name: getattr(agent, name).get_state() for name in FILTERS},
        "rng": agent.rng.bit_generator.state,
        "action_rng": agent.spaces.action.rng.bit_generator.state,
        "books": agent.books.get_state(),
        "clock": agent.clock.get_state(),
        "counters": {name: getattr(agent, name) for name in agent.counters},
    }


def restore(agent: Agent, state: dict[str, Any]) -> None:
    """Give an agent the state of another one, or of another run."""
    for name, network in agent.networks.items():
        network.set_state(state["networks"][name])
    if state["memory"] is not None and not agent.evaluates_only:
        agent.memory.set_state(state["memory"])
    agent.exploration_policy.set_state(state["exploration"])
    for name in FILTERS:
        getattr(agent, name).set_state(state["filters"][name])
    agent.rng.bit_generator.state = state["rng"]
    agent.spaces.action.rng.bit_generator.state = state["action_rng"]
    agent.books.set_state(state["books"])
    agent.clock.set_state(state["clock"])
    for name in agent.counters:
        setattr(agent, name, state["counters"][name])
