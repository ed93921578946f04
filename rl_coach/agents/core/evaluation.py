"""An evaluation in progress. It does not change the state of its agent."""

from __future__ import annotations

from typing import Any

import numpy as np


class EvaluationInProgress:
    """An evaluation in progress.

    From the construction of this object to ``end``, a separate actor acts for the agent. ``end`` restores the random
    streams, the statistics of the filters, the exploration and the signals, so training continues as if there had been
    no evaluation. Only the open row of the signals is closed.
    """

    def __init__(self, agent: Any):
        self._agent = agent
        streams = [agent.rng, agent.spaces.action.rng, *(network.rng for network in agent.networks.values())]
        self._streams = [(stream, stream.bit_generator.state) for stream in streams]
        self._filters = [(one, one.get_state()) for one in agent.filters.values()]
        self._exploration = agent.exploration_policy.get_state()
        self._samples = agent.signals.put_samples_aside()
        self._attributes = dict(vars(agent))
        self._training_actor = agent.actor
        evaluating = agent.actor.for_evaluation()
        # the order matters: leave saves the training episode's state before the new actor replaces it
        self._training_actor.leave()
        evaluating.enter()

    def seed(self, seed: np.random.SeedSequence) -> None:
        """Seed the random streams for the evaluation, so that its episodes do not depend on the training so far."""
        for (stream, _), own in zip(self._streams, seed.spawn(len(self._streams))):
            stream.bit_generator.state = np.random.default_rng(own).bit_generator.state
        self._agent.exploration_policy.seed(seed.spawn(1)[0])

    def end(self) -> None:
        """End the evaluation, and restore the state of training."""
        agent = self._agent
        self._training_actor.enter()
        for one, state in self._filters:
            one.set_state(state)
        for stream, state in self._streams:
            stream.bit_generator.state = state
        agent.signals.take_up_samples(self._samples)
        agent.exploration_policy.set_state(self._exploration)
        # the evaluation may have created or found attributes of the episode that the training actor did not save
        before = self._attributes
        vars(agent).update({name: before[name] for name in agent.episode_state.names if name in before})
