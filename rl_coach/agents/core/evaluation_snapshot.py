"""State that an evaluation leaves as it found it."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

from rl_coach.agents.core.signals import Signals


class EvaluationSnapshot:
    """The random streams, the filters' statistics, the exploration and the signals of an agent before an evaluation.

    :param filters: the agent's filters by name
    :param streams: its random generators
    :param exploration_policy: its exploration policy
    :param signals: its signals, whose open row is closed
    :param attributes: its attributes by name, some of which may belong to its episodes
    """

    def __init__(
        self,
        filters: Mapping[str, Any],
        streams: Sequence[np.random.Generator],
        exploration_policy: Any,
        signals: Signals,
        attributes: Mapping[str, Any],
    ):
        self._filters = [(one, one.get_state()) for one in filters.values()]
        self._streams = [(one, one.bit_generator.state) for one in streams]
        self._exploration_policy, self._exploration = exploration_policy, exploration_policy.get_state()
        self._signals, self._samples = signals, signals.put_samples_aside()
        self.attributes = dict(attributes)

    def seed(self, seed: np.random.SeedSequence, exploration_policy: Any) -> None:
        """Start the random streams of the evaluation. :param exploration_policy: the policy that the evaluation uses"""
        for (stream, _), own in zip(self._streams, seed.spawn(len(self._streams))):
            stream.bit_generator.state = np.random.default_rng(own).bit_generator.state
        exploration_policy.seed(seed.spawn(1)[0])

    def restore(self) -> None:
        """Go on as if there had been no evaluation."""
        for one, state in self._filters:
            one.set_state(state)
        for stream, state in self._streams:
            stream.bit_generator.state = state
        self._signals.take_up_samples(self._samples)
        self._exploration_policy.set_state(self._exploration)
