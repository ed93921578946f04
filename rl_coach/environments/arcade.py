"""Rules of Atari games: lives, the FIRE button, random no-ops at the start, and the console's state."""

from __future__ import annotations

from typing import Any

import numpy as np

FRAMES_PER_SECOND = 60  # frame rate of the console


class ArcadeRules:
    """Counts the lives in a running Atari game, and draws the number of no-ops at its start.

    :param simulator: the ALE environment
    :param random_initialization_steps: largest number of no-ops at the beginning of a game; the number is drawn at
        random
    :param life_loss_ends_training_episode: a lost life ends an episode in training (Mnih et al. 2015, Methods)
    :param seed: seed of the number of no-ops
    """

    def __init__(
        self, simulator: Any, random_initialization_steps: int, life_loss_ends_training_episode: bool, seed: int | None
    ):
        self.life_loss_ends_training_episode = life_loss_ends_training_episode
        self.random_initialization_steps = random_initialization_steps
        self.rng = np.random.default_rng(seed)
        self._ale = simulator.ale
        self._lives = 0
        meanings = simulator.get_action_meanings()
        self.fire_action = 1 if len(meanings) > 1 and meanings[1] == "FIRE" else None

    def has_lost_life(self, info: dict[str, Any]) -> bool:
        """True if there are fewer lives than at the last call."""
        lives = info["lives"]
        lost = lives < self._lives
        self._lives = lives
        return lost

    def is_game_over(self) -> bool:
        """True if no life is left, or the game's time is up."""
        return self._ale.game_over()

    def draw_num_no_ops(self) -> int:
        """Draw the number of no-ops at the beginning of the next game."""
        return int(self.rng.integers(self.random_initialization_steps + 1))

    def get_state(self) -> dict[str, Any]:
        """The random state of the no-ops, the state of the console with its random numbers, and the lives."""
        console = self._ale.cloneState(include_rng=True).serialize()
        return {
            "rng": self.rng.bit_generator.state,
            "console": np.frombuffer(console, dtype=np.uint8).copy(),
            "lives": self._lives,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        from ale_py import ALEState

        self.rng.bit_generator.state = state["rng"]
        self._lives = state["lives"]
        self._ale.restoreState(ALEState(np.asarray(state["console"], np.uint8).tobytes()))
