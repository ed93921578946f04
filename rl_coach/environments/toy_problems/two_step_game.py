"""The two-step game of QMIX (Rashid et al. 2018, section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

_PAYOFFS = np.array([[[7.0, 7.0], [7.0, 7.0]], [[0.0, 1.0], [1.0, 8.0]]])


class TwoStepGame:
    """Two players act twice, in PettingZoo's parallel form. In the first step, the action of the first player chooses a
    matrix of payoffs. In the second step, both players choose an entry of the matrix. Each player gets half of the
    chosen payoff.

    The first matrix has 7 everywhere, the second one has (0, 1) and (1, 8). A sum of the players' values cannot
    represent the second matrix, so that VDN prefers the 7. A monotonic function of their values can.

    The observations of both players and the central state are the matrix in one-hot form, [3]: not chosen yet, the
    first or the second.
    """

    metadata: dict[str, Any] = {"name": "two_step_game", "render_modes": []}
    render_mode = None

    def __init__(self) -> None:
        self.possible_agents = ["first", "second"]
        self.agents: list[str] = []
        self.state_space = spaces.Box(0, 1, (3,), np.float32)
        self._place = 0

    def observation_space(self, agent: str) -> spaces.Space:
        return self.state_space

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2)

    def state(self) -> np.ndarray:
        """[3], the chosen matrix in one-hot form."""
        return np.eye(3, dtype=np.float32)[self._place]

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.agents, self._place = list(self.possible_agents), 0
        return self._for_all(self.state()), self._for_all({})

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        first, second = (int(actions[player]) for player in self.possible_agents)
        is_over = self._place > 0
        payoff = float(_PAYOFFS[self._place - 1, first, second]) / len(self.agents) if is_over else 0.0
        if is_over:
            self.agents = []
        else:
            self._place = 1 + first
        told = self._for_all(self.state()), self._for_all(payoff), self._for_all(is_over), self._for_all(False)
        return *told, self._for_all({})

    def _for_all(self, value: Any) -> dict[str, Any]:
        return dict.fromkeys(self.possible_agents, value)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
