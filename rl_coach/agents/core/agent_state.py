"""The state of an agent in a checkpoint."""

from __future__ import annotations

from typing import Any


def state_of(agent: Any) -> dict[str, Any]:
    """Networks, optimizers, memory, filters, exploration, counters and random streams of an agent."""
    # with shared weights, other workers may have newer weights and optimizer states than this process
    agent.update_loop.take_all()
    _act_as_first(agent)
    task = agent.ap.task_parameters
    state = {
        "networks": {name: network.get_state() for name, network in agent.networks.items()},
        "memory": agent.memory.get_state() if task is None or task.checkpoint_memory else None,
        "exploration": agent.exploration_policy.get_state(),
        "filters": {name: one.get_state() for name, one in agent.filters.items()},
        "rng": agent.rng.bit_generator.state,
        "action_rng": agent.spaces.action.rng.bit_generator.state,
        "books": agent.signals.get_state(),
        "clock": agent.clock.get_state(),
        "counters": {name: getattr(agent, name) for name in agent.counters},
        "training_has_begun": agent.training_has_begun,
    }
    if batches := agent.batches.get_state():
        state["batches"] = batches
    if agent.curiosity is not None:
        state["curiosity"] = agent.curiosity.get_state()
    return state | agent.learning.get_state()


def restore(agent: Any, state: dict[str, Any]) -> None:
    """Restore a state that ``state_of`` returned. A run that only evaluates restores neither the memory nor unwritten
    rows."""
    _act_as_first(agent)
    for name, network in agent.networks.items():
        network.set_state(state["networks"][name])
    if state["memory"] is not None and not agent.evaluates_only:
        agent.memory.set_state(state["memory"])
    agent.exploration_policy.set_state(state["exploration"])
    for name, one in agent.filters.items():
        one.set_state(state["filters"][name])
    agent.rng.bit_generator.state = state["rng"]
    agent.spaces.action.rng.bit_generator.state = state["action_rng"]
    agent.signals.set_state(state["books"], with_unwritten=not agent.evaluates_only)
    agent.clock.set_state(state["clock"])
    for name in agent.counters:
        setattr(agent, name, state["counters"][name])
    # older checkpoints do not say whether before_training was called
    agent.training_has_begun = state.get("training_has_begun", agent.clock.updates > 0)
    if "batches" in state:
        agent.batches.set_state(state["batches"])
    if agent.curiosity is not None:
        agent.curiosity.set_state(state["curiosity"])
    # after the clock and the batches, because the number of the last row comes from their counts
    agent.recorder.skip_written_rows()
    agent.learning.set_state(state)


def _act_as_first(agent: Any) -> None:
    """Let the agent act as its first actor. A checkpoint must not depend on the actor that acted last."""
    if agent.parallel is not None and agent.parallel.index:
        agent.parallel.enter(0)
