"""State that an evaluation leaves as it found it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rl_coach.agents.agent import Agent

_EVALUATION = 0x0E7A1  # apart from what a SeedSequence spawns, whose keys count up from 0
FILTERS = ("input_filter", "output_filter", "pre_network_filter")


class BeforeEvaluation:
    """The random streams, the filters' statistics, the exploration and the signals of an agent as they were before an
    evaluation, which draws from streams of its own: they depend on the run's seed and on the steps that were trained,
    so that holding one evaluation more or fewer changes no other, and training neither.

    :param agent: an agent that is about to be evaluated; it draws from the evaluation's streams from now on
    """

    def __init__(self, agent: Agent, seeds: np.random.SeedSequence):
        self._agent = agent
        self._filters = {name: getattr(agent, name).get_state() for name in FILTERS}
        self._streams = [stream.bit_generator.state for stream in self._all_streams()]
        self._samples = agent.books.put_samples_aside()
        self._exploration = agent.exploration_policy.get_state()
        key = (*seeds.spawn_key, _EVALUATION, agent.total_steps_counter)
        own = np.random.SeedSequence(seeds.entropy, spawn_key=key)
        for stream, seed in zip(self._all_streams(), own.spawn(len(self._streams))):
            stream.bit_generator.state = np.random.default_rng(seed).bit_generator.state
        agent.exploration_policy.seed(own.spawn(1)[0])

    def _all_streams(self) -> list[np.random.Generator]:
        agent = self._agent
        return [agent.rng, agent.spaces.action.rng, *(network.rng for network in agent.networks.values())]

    def restore(self) -> None:
        """Go on as if there had been no evaluation."""
        agent = self._agent
        for name, state in self._filters.items():
            getattr(agent, name).set_state(state)
        for stream, state in zip(self._all_streams(), self._streams):
            stream.bit_generator.state = state
        agent.books.take_up_samples(self._samples)
        agent.exploration_policy.set_state(self._exploration)


def seed_as_data(seed: np.random.SeedSequence) -> dict[str, Any]:
    """A seed as plain data; its numbers as text, for they may have 128 bits."""
    entropy = seed.entropy if isinstance(seed.entropy, (list, tuple)) else [seed.entropy]
    return {"entropy": [str(number) for number in entropy], "spawn_key": list(seed.spawn_key)}


def seed_from_data(data: dict[str, Any]) -> np.random.SeedSequence:
    """The seed that ``seed_as_data`` was given."""
    return np.random.SeedSequence([int(number) for number in data["entropy"]], spawn_key=data["spawn_key"])
