"""Coach: preset-driven training of reinforcement-learning agents."""

from __future__ import annotations

import importlib

# Not imported from typing: the import of typing is slow, and the program handles signals only after this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rl_coach.own_loop import Agent, make_agent

__all__ = ["Agent", "make_agent"]
__version__ = "2.0.0"


def __getattr__(name: str) -> Any:
    """Import the names of ``rl_coach.own_loop`` at their first use."""
    if name in __all__:
        return getattr(importlib.import_module("rl_coach.own_loop"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
