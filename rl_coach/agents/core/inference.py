"""States of an agent in the form that its networks read: filtered, as arrays by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.core_types import StateType


class StateColumns(dict[str, np.ndarray]):
    """Observations of several actors by name, [N, ...] each. Prediction accepts it instead of a list of N states."""


def filtered(agent: Any, state: StateType, update: bool) -> StateType:
    """A state after the pre-network filters of an agent.

    :param update: True: add the state to the filters' statistics, if the agent's settings allow it
    """
    # Filters have one path, for batches. A single state is a batch of one.
    columns = {name: np.asarray(observation)[None] for name, observation in state.items()}
    return {name: column[0] for name, column in filtered_columns(agent, columns, update).items()}


def filtered_columns(agent: Any, columns: dict[str, np.ndarray], update: bool) -> dict[str, np.ndarray]:
    """States [N, ...] by name after the pre-network filters of an agent; see ``filtered``."""
    may_update = update and agent.ap.algorithm.update_pre_network_filters_state_on_inference
    after: dict[str, np.ndarray] = agent.pre_network_filter.filter_columns(columns, may_update)
    agent.watch.compare(columns, after, "pre-network filter", f"at step {agent.clock.steps}")
    return after
