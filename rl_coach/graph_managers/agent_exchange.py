"""The trainer's exchange with its rollout workers, for one agent: publish policies, and receive chunks."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.agents.core.transport import TransportSignals, blueprints_of, played_in
from rl_coach.base_parameters import DistributedCoachSynchronizationType
from rl_coach.core_types import RunPhase
from rl_coach.data_stores.data_store import DataStore
from rl_coach.memories.backend.connection import of_agent
from rl_coach.memories.backend.streams import TrainerLink
from rl_coach.memories.backend.wire import Chunk, ChunkError, pack
from rl_coach.utilities.errors import reason_of
from rl_coach.utils import CoachError, TrainingError

_SMALL_ROWS, _FRAME_ROWS = 32, 256
_FRAME_BYTES = 4096  # size of an observation; above it, the cost of transport depends only on the number of bytes
_CHUNK_BYTES = 8 << 20
_MOST_UNFIT = 100  # after this number of refused chunks and none stored, no chunk will fit: all workers are alike
_PRICE_OF_PUBLISHING = 10  # the pause is 10 times as long as publishing took, so publishing takes a tenth of the time


@dataclasses.dataclass(frozen=True)
class Exchange:
    """Sizes and times of the exchange between a trainer and its workers.

    :param num_workers: number of workers that are started
    :param window: number of chunks that a worker may send before it waits for a receipt. None is 1 if workers wait for
        each new policy, and 4 otherwise
    :param chunk_rows: number of transitions in a chunk; None for a number that suits the size of the observations
    :param publish_seconds: the shortest time between two policies, in seconds
    :param silence_seconds: the trainer gives up after this number of seconds without Redis, without the data store or
        without workers
    """

    num_workers: int
    window: int | None = None
    chunk_rows: int | None = None
    publish_seconds: float = 0.05
    silence_seconds: float = 600.0


def is_synchronous(agent: Any) -> bool:
    """True if workers wait for each new policy before they act: the agent can learn only from the experience of its
    newest policy, or its settings select SYNC."""
    chosen = agent.ap.algorithm.distributed_coach_synchronization_type
    return agent.learning.needs_newest_policy or chosen is DistributedCoachSynchronizationType.SYNC


class Documents:
    """Documents that a trainer writes to a data store for its workers. If the store loses them, they can be written
    again.

    :param store: the data store

    :ivar trouble: the reason why the last document could not be written; empty if it was written
    """

    def __init__(self, store: DataStore):
        self._store = store
        self.trouble = ""
        self._lost_at = 0.0
        self._documents: dict[str, bytes] = {}

    @property
    def seconds_lost(self) -> float:
        """Seconds since the store began to refuse documents; 0 while it accepts them."""
        return time.monotonic() - self._lost_at if self.trouble else 0.0

    def put(self, name: str, document: bytes) -> bool:
        """Write a document, and keep it for ``put_back``. :return: False if the document could not be written"""
        try:
            self._store.put(name, document)
        except (OSError, CoachError) as error:  # missing access rights may be temporary, too
            if not self.trouble:
                self._lost_at = time.monotonic()
            self.trouble = reason_of(error)
            return False
        self.trouble = ""
        self._documents[name] = document
        return True

    def put_back(self) -> bool:
        """Write all documents again. :return: False if a document could not be written"""
        return all(self.put(name, document) for name, document in list(self._documents.items()))


class AgentExchange:
    """Publishes the policies of one agent, and stores or discards the chunks that workers send for this agent.

    :param stream: the name of the agent's stream of chunks in Redis; empty if the run has only one stream
    :param agent: the agent that learns from the chunks
    :param players: number of players that the agent plays in one environment
    :param link: the trainer's connection to the stream
    :param documents: stores the policies
    :param signals: signals about the chunks, for the CSV
    :param exchange: sizes and times

    :ivar lag: number of updates between the policy that played the newest chunk and the current policy
    :ivar policy_document: the name of the document that contains the newest policy
    """

    def __init__(
        self,
        stream: str,
        agent: Agent,
        players: int,
        link: TrainerLink,
        documents: Documents,
        signals: TransportSignals,
        exchange: Exchange,
    ):
        self.agent, self.link = agent, link
        self.is_synchronous = is_synchronous(agent)
        self.lag = 0
        self.policy_document = of_agent("policy", stream)
        self._players, self._documents, self._signals, self._exchange = players, documents, signals, exchange
        self._published_updates = -1
        self._publish_at = 0.0
        self._chunk_rows = 0
        self._num_unfit = 0

    def start(self, incarnation: int) -> dict[str, Any]:
        """Prepare the agent for chunks.

        :param incarnation: number of this start of the trainer; later starts of the same run have larger numbers
        :return: the settings that workers need before they play for the agent
        """
        agent, exchange = self.agent, self._exchange
        self._chunk_rows = rows = exchange.chunk_rows or self._best_chunk_rows()
        agent.clock.steps_at_once = max(agent.clock.steps_at_once, rows)
        agent.learning.num_players = exchange.num_workers * self._players
        self.link.say(incarnation=incarnation)
        return {
            "networks": blueprints_of(agent.networks), "is_synchronous": self.is_synchronous, "chunk_rows": rows,
            "window": exchange.window or (1 if self.is_synchronous else 4),
            "segment_steps": agent.learning.segment_steps,
        }  # fmt: skip

    def _best_chunk_rows(self) -> int:
        spaces = self.agent.spaces.state.sub_spaces.values()
        size = sum(int(np.prod(space.shape)) for space in spaces)
        rows = _FRAME_ROWS if size >= _FRAME_BYTES else _SMALL_ROWS
        return max(1, min(rows, _CHUNK_BYTES // max(1, size)))

    # policies

    def publish_if_due(self, phase: RunPhase) -> None:
        """Publish a policy if workers need a new policy now. :param phase: the phase that workers must enter"""
        has_new_phase = phase.name != self.link.state.phase
        is_new = self.agent.training_iteration != self._published_updates
        if has_new_phase or (is_new and (self.is_synchronous or time.monotonic() >= self._publish_at)):
            self.publish(phase)

    def publish(self, phase: RunPhase) -> None:
        """Publish the agent's current policy. :param phase: the phase that workers must enter"""
        began, link = time.monotonic(), self.link
        name = (link.state.incarnation, link.state.version + 1)
        policy = {**self.agent.acting_policy(), "incarnation": name[0], "version": name[1]}
        if not self._documents.put(self.policy_document, pack(policy)):
            return
        self._published_updates = policy["updates"]
        wanted = self._wanted_first(phase)
        self.agent.experience.most_steps_ahead = max(self._chunk_rows, wanted["left"] or 0)
        link.say(version=name[1], phase=phase.name, **wanted)
        now = time.monotonic()
        self._publish_at = now + max(self._exchange.publish_seconds, _PRICE_OF_PUBLISHING * (now - began))

    def _wanted(self, phase: RunPhase) -> dict[str, Any]:
        """The number of steps, episodes or segments that workers must still play with the newest policy."""
        if not self.is_synchronous or phase is not RunPhase.TRAIN:
            return {"left": None}
        left, unit = self.agent.learning.left_to_play()
        return {"left": left, "unit": unit.name}

    def _wanted_first(self, phase: RunPhase) -> dict[str, Any]:
        """The result of ``_wanted`` for a policy that is published now, but at least 1. The trainer waits for
        experience after it has published a policy, even if a long heatup has filled the memory already."""
        wanted = self._wanted(phase)
        return wanted if wanted["left"] is None else {**wanted, "left": max(1, wanted["left"])}

    # experience

    def confirm(self) -> None:
        """Send receipts to the workers. If workers wait for each new policy, send the receipts at once, with the number
        of steps that are still to be played. Otherwise wait for more receipts."""
        if self.is_synchronous:
            self.link.push()
        else:
            self.link.push_soon()

    def decide(self, entry: bytes, chunk: Chunk, phase: RunPhase) -> ExperienceChunk | None:
        """Store a chunk in the agent's memory and acknowledge it. A chunk of an older policy is discarded if workers
        must use the newest policy. A chunk that does not fit the agent is refused.

        :param entry: the chunk's id in the stream
        :param chunk: the chunk
        :param phase: the run's phase
        :return: the stored experience; None if the chunk was discarded or refused
        :raises TrainingError: if 100 chunks were refused and none was stored
        """
        link = self.link
        if self.is_synchronous and chunk.policy != link.state.policy:
            link.acknowledge(entry, chunk, is_stored=False)
            self._signals.discarded.add_sample(float(chunk.steps))
            return None
        lag = self.agent.training_iteration - chunk.updates
        try:
            played = played_in(chunk)
            self.agent.take_in(played)
        except (CoachError, MemoryError) as error:
            reason = error.reason if isinstance(error, ChunkError) else f"does not fit ({reason_of(error)[:120]})"
            link.ledger.refused[reason] += 1
            # without a receipt, the worker would wait for this chunk forever
            link.acknowledge(entry, chunk, is_stored=False)
            self._num_unfit += 1
            if self._num_unfit >= _MOST_UNFIT and not link.ledger.stored:
                raise TrainingError(f"none of {self._num_unfit} chunks of workers was stored: {reason}") from None
            return None
        link.acknowledge(entry, chunk, is_stored=True)
        self.lag = lag
        self._signals.policy_lag.add_sample(float(lag))
        waited = chunk.about.get("waited")
        if isinstance(waited, float):
            self._signals.waiting.add_sample(waited)
        if self.is_synchronous:
            link.say(**self._wanted(phase))
        return played

    def totals(self) -> dict[str, Any]:
        """The agent's steps; the numbers of stored and discarded steps, in total and by worker; and the number of
        refused chunks by reason."""
        ledger = self.link.ledger
        return {
            "steps": self.agent.total_steps_counter, "stored": ledger.stored, "discarded": ledger.discarded,
            "refused": dict(ledger.refused),
            "workers": {name: dataclasses.asdict(one) for name, one in sorted(ledger.accounts.items())},
        }  # fmt: skip
