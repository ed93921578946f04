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
    original = UpdateLoop.filtered
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def filtered(self: UpdateLoop, batch: Batch, may_update: bool = True) -> Batch:
        found = original(self, batch, may_update)
        if DIRECTORY in os.environ:
            record(os.environ[DIRECTORY], "rows", discount=self._settings.algorithm.discount, **columns_of(found))
        return found

    UpdateLoop.filtered = filtered  # type: ignore[method-assign]


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
