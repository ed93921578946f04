"""Transitions to fill memories with in tests: vectors, frame stacks, plain images, and numbers as one-hot vectors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from rl_coach.core_types import Episode, Transition


class Stack:
    """What a stacking filter gives: frames by reference."""

    def __init__(self, history: list[np.ndarray], axis: int):
        self.history = history
        self.axis = axis

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.stack(self.history, axis=self.axis)


class Steps:
    """Makes episodes, numbering each step and frame.

    :param kind: ``'vector'``, ``'stack'`` (of 3 frames), ``'image'``, ``'number'`` (a one-hot vector) or ``'numbers'``
        (two of them; the vector after ten of these has another form)
    """

    def __init__(self, kind: str = "vector", axis: int = -1):
        self.kind = kind
        self.axis = axis
        self._numbers = itertools.count()

    def _frame(self) -> np.ndarray:
        number = next(self._numbers)
        shape = (32, 32) if self.kind == "image" else (2, 3)
        return np.full(shape, [number % 256, number // 256] * 16 if self.kind == "image" else number % 256, np.uint8)

    def _one_hot(self) -> np.ndarray:
        number, vector = next(self._numbers), np.zeros(1200, np.float32)
        places = [number % 600] if self.kind == "number" else [number % 600, 600 + (7 * number) % 600]
        vector[places] = 2 if self.kind == "numbers" and number % 11 == 10 else 1
        return vector

    def _observations(self, length: int) -> list:
        if self.kind == "vector":
            return [np.array([next(self._numbers), 0.5], dtype=np.float32) for _ in range(length + 1)]
        if self.kind in ("number", "numbers"):
            return [self._one_hot() for _ in range(length + 1)]
        frames = [self._frame() for _ in range(length + 1)]
        if self.kind == "image":
            return frames
        padded = [frames[0]] * 2 + frames
        return [Stack(padded[step : step + 3], self.axis) for step in range(length + 1)]

    def episode(self, length: int, ends: bool = True) -> list[Transition]:
        """The transitions of an episode, the last of which is terminal if it ``ends``."""
        observations = self._observations(length)
        return [
            Transition(
                state={"observation": observations[step]},
                action=step % 3,
                reward=step / 4,
                next_state={"observation": observations[step + 1]},
                game_over=ends and step == length - 1,
            )
            for step in range(length)
        ]


def as_episode(transitions: list[Transition], **settings: Any) -> Episode:
    """An ``Episode`` of transitions."""
    episode = Episode(**settings)
    for transition in transitions:
        episode.insert(transition)
    return episode


def assert_same(held: Transition, stored: Transition) -> None:
    """The memory gives what was stored, to the bit."""
    for before, after in ((held.state, stored.state), (held.next_state, stored.next_state)):
        assert before.keys() == after.keys()
        for name in before:
            expected = np.asarray(after[name])
            assert before[name].dtype == expected.dtype
            np.testing.assert_array_equal(before[name], expected)
    np.testing.assert_array_equal(held.action, stored.action)
    assert held.reward == stored.reward
    assert held.game_over == bool(stored.game_over)
    assert held.terminated == bool(stored.terminated)
    assert held.info.keys() == stored.info.keys()
    for key, value in stored.info.items():
        np.testing.assert_array_equal(held.info[key], value)
    assert held._n_step_discounted_rewards == stored._n_step_discounted_rewards
    assert held.n_steps == stored.n_steps
