"""State that an evaluation leaves as it found it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rl_coach.agents.core.state import FILTERS

if TYPE_CHECKING:
    from rl_coach.agents.agent import Agent


class BeforeEvaluation:
    """The random streams, the filters' statistics, the exploration and the signals of an agent as they were before an
    evaluation.

    :param agent: an agent that is about to be evaluated
    """

    def __init__(self, agent: Agent):
        self._agent = agent
        self._filters = {name: getattr(agent, name).get_state() for name in FILTERS}
        self._streams = [stream.bit_generator.state for stream in self._all_streams()]
        self._samples = agent.books.put_samples_aside()
        self._exploration = agent.exploration_policy.get_state()

    def _all_streams(self) -> list[np.random.Generator]:
        agent = self._agent
        return [agent.rng, agent.spaces.action.rng, *(network.rng for network in agent.networks.values())]

    def seed(self, seed: np.random.SeedSequence) -> None:
        """Let the evaluation draw from streams of its own."""
        for stream, own in zip(self._all_streams(), seed.spawn(len(self._streams))):
            stream.bit_generator.state = np.random.default_rng(own).bit_generator.state
        self._agent.exploration_policy.seed(seed.spawn(1)[0])

    def restore(self) -> None:
        """Go on as if there had been no evaluation."""
        agent = self._agent
        for name, state in self._filters.items():
            getattr(agent, name).set_state(state)
        for stream, state in zip(self._all_streams(), self._streams):
            stream.bit_generator.state = state
        agent.books.take_up_samples(self._samples)
        agent.exploration_policy.set_state(self._exploration)
