"""MiniGrid's task ``MiniGrid-MemoryS7-v0`` with a fixed start (Chevalier-Boisvert et al. 2023, "Minigrid & miniworld:
modular & customizable reinforcement learning environments for goal-oriented tasks").
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


def minigrid_memory(size: int = 7, render_mode: str | None = None, **settings: Any) -> gymnasium.Env:
    """The agent sees an object, walks through a corridor, and must go to the same object at its end.

    MiniGrid starts each episode at a random place between the object and the corridor's end, where the agent often does
    not see the object. Here, the agent starts next to the object. An observation is 7 x 7 x 20 numbers that are 0 or 1:
    kind, colour and state of each visible cell. The reward is 0, or at the right object 1 - 0.9 * steps / max_steps.

    :param size: width and height of the grid in cells, odd
    :param render_mode: as for ``gymnasium.make``
    :param settings: other arguments of MiniGrid's ``MemoryEnv``
    :raises ModuleNotFoundError: if MiniGrid is not installed
    """
    from minigrid.envs import MemoryEnv
    from minigrid.wrappers import ImgObsWrapper, OneHotPartialObsWrapper

    class NextToTheObject(MemoryEnv):
        def _gen_grid(self, width: int, height: int) -> None:
            super()._gen_grid(width, height)
            self.agent_pos = np.array((1, height // 2))

    cells = ImgObsWrapper(OneHotPartialObsWrapper(NextToTheObject(size=size, render_mode=render_mode, **settings)))
    return gymnasium.wrappers.FlattenObservation(cells)
