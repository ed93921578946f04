"""Recording of the batches that agents learn from, in the log of the cell."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from rl_coach.agents.core.update_loop import UpdateLoop
from rl_coach.core_types import Batch
from tests.conformance.log import record

DIRECTORY = "CONFORMANCE_DIRECTORY"
"""The environment variable that names the directory of the log."""


def record_learning() -> None:
    """Write each batch that an agent learns from into the log, from now on in this process."""
    filter_batch, update = UpdateLoop.filtered, UpdateLoop.update
    if hasattr(filter_batch, "__wrapped__"):
        return

    @functools.wraps(filter_batch)
    def filtered(self: UpdateLoop, batch: Batch, may_update: bool = True) -> Batch:
        found = filter_batch(self, batch, may_update)
        _record(self, found)
        return found

    def recorded_update(self: UpdateLoop, columns: Any, batch: Batch | None = None, *more: Any, **how: Any) -> Any:
        # a loop does not call `filtered` if there are no filters
        if batch is not None and not (self._filters.observation_filters or self._filters.reward_filters):
            _record(self, batch)
        return update(self, columns, batch, *more, **how)

    UpdateLoop.filtered = filtered  # type: ignore[method-assign]
    UpdateLoop.update = recorded_update  # type: ignore[method-assign]


def _record(loop: UpdateLoop, batch: Batch) -> None:
    if DIRECTORY in os.environ:
        record(os.environ[DIRECTORY], "rows", discount=loop._settings.algorithm.discount, **columns_of(batch))


def columns_of(batch: Batch) -> dict[str, Any]:
    """A batch as plain arrays."""
    steps = batch.n_step_column
    return {
        "states": {name: np.array(column) for name, column in batch.state_columns.items()},
        "next_states": {name: np.array(column) for name, column in batch.next_state_columns.items()},
        "actions": np.array(batch.action_column),
        "rewards": np.array(batch.reward_column, np.float64),
        "terminated": np.array(batch.terminated_column, bool),
        "over": np.array(batch.game_over_column, bool),
        "n_step": np.ones(len(batch), int) if steps is None else np.array(steps, int),
    }
