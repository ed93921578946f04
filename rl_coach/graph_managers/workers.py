"""The rollout workers of a run, as its trainer sees them: they get policies, and give what they have played."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
from collections import Counter
from typing import Any, Callable

import numpy as np

from rl_coach.agents.core.experience import Played
from rl_coach.agents.core.transport import blueprints_of, played_in
from rl_coach.base_parameters import DistributedCoachSynchronizationType
from rl_coach.core_types import RunPhase
from rl_coach.data_stores.data_store import DataStore
from rl_coach.graph_managers.graph_manager import GraphManager
from rl_coach.logger import screen
from rl_coach.memories.backend.connection import reason_of
from rl_coach.memories.backend.streams import PLAYING, TrainerLink
from rl_coach.memories.backend.wire import Chunk, ChunkError, pack
from rl_coach.remote_level_manager import RemoteLevelManager
from rl_coach.runs.live_region import Fields
from rl_coach.utilities import files
from rl_coach.utils import CoachError, LostPartError

TOTALS_FILE = "distributed.json"
_SMALL_ROWS, _FRAME_ROWS = 32, 256
_FRAME_BYTES = 4096  # of an observation: from here on the transport's price is that of the bytes
_CHUNK_BYTES = 8 << 20
_SECONDS_BETWEEN_REPORTS = 1.0
_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_WARNINGS = 60.0
_SECONDS_TO_HEAR_OF_THE_END = 600
_SECONDS_UNTIL_SILENCE_IS_SAID = 30.0
_PAUSE_WITHOUT_REDIS = 0.1
_MOST_WORKERS_SHOWN = 8
_PRICE_OF_PUBLISHING = 10  # a policy is published so rarely that this is a tenth of the time at most


@dataclasses.dataclass(frozen=True)
class Exchange:
    """Sizes and times of the exchange between a trainer and its workers.

    :param num_workers: workers that are started
    :param window: chunks of a worker that may be on their way; None chooses
    :param chunk_rows: transitions in a chunk; None chooses
    :param publish_seconds: between two policies, at least
    :param silence_seconds: without Redis, without the data store, or without any worker, until the trainer gives up
    """

    num_workers: int
    window: int | None = None
    chunk_rows: int | None = None
    publish_seconds: float = 0.05
    silence_seconds: float = 600.0


def is_synchronous(agent: Any) -> bool:
    """True if workers wait for the newest policy: for agents that learn from nothing else, and those that say so."""
    chosen = agent.ap.algorithm.distributed_coach_synchronization_type
    return agent.learning.needs_newest_policy or chosen is DistributedCoachSynchronizationType.SYNC


class Workers:
    """Publishes policies and takes in what comes back; see ``ExperienceSource``.

    :param graph: the trainer's, created
    :param link: the trainer's end of the stream
    :param store: where policies lie
    :param exchange: sizes and times
    """

    def __init__(self, graph: GraphManager, link: TrainerLink, store: DataStore, exchange: Exchange):
        level = graph.level_managers[0]
        if len(graph.level_managers) > 1 or not isinstance(level, RemoteLevelManager):
            raise CoachError(f"graph '{graph.name}' cannot be split into trainer and workers: it has several levels")
        self._graph, self._link, self._store, self._exchange = graph, link, store, exchange
        self._level, self._agent = level, level.agent
        self._is_synchronous = is_synchronous(self._agent)
        self._documents: dict[str, bytes] = {}
        self._published_updates = -1
        self._publish_at = 0.0
        self._times_restored = link.times_restored
        self._heard_at = time.monotonic()
        self._is_silence_said = False
        self._store_trouble, self._store_lost_at = "", 0.0
        self._chunk_rows = 0
        self._report_at = self._line_at = 0.0
        self._warn_at = 0.0
        self._num_warned = 0
        self._reports: dict[str, dict[str, Any]] = {}
        self._playing: dict[str, str] = {}  # by worker, the sender that it is now
        self._lag = 0

    def start(self, incarnation: int) -> None:
        """Begin a new incarnation: tell workers the networks and the first policy."""
        graph, agent = self._graph, self._agent
        self._chunk_rows = rows = self._exchange.chunk_rows or self._best_chunk_rows()
        agent.clock.steps_at_once = max(agent.clock.steps_at_once, rows)
        agent.learning.num_players = self._exchange.num_workers
        blueprint = {
            "networks": blueprints_of(agent.networks), "is_synchronous": self._is_synchronous, "chunk_rows": rows,
            "window": self._exchange.window or (1 if self._is_synchronous else 4),
            "num_workers": self._exchange.num_workers, "segment_steps": agent.learning.segment_steps,
        }  # fmt: skip
        self._link.say(incarnation=incarnation)
        self._level.source = self
        graph.other_fields = self.fields
        self._documents["blueprint"] = pack(blueprint)
        self._put_documents_back()
        self._publish()
        self._link.push()

    def _best_chunk_rows(self) -> int:
        spaces = self._agent.spaces.state.sub_spaces.values()
        size = sum(int(np.prod(space.shape)) for space in spaces)
        rows = _FRAME_ROWS if size >= _FRAME_BYTES else _SMALL_ROWS
        return max(1, min(rows, _CHUNK_BYTES // max(1, size)))

    # policies

    def _publish_if_due(self) -> None:
        if self._store_trouble or self._link.times_restored != self._times_restored:
            self._put_documents_back()
        has_new_phase = self._level.phase.name != self._link.state.phase
        is_new = self._agent.training_iteration != self._published_updates
        if has_new_phase or (is_new and (self._is_synchronous or time.monotonic() >= self._publish_at)):
            self._publish()

    def _put_documents_back(self) -> None:
        if all(self._put(name, document) for name, document in list(self._documents.items())):
            self._times_restored = self._link.times_restored

    def _publish(self) -> None:
        began, link = time.monotonic(), self._link
        name = (link.state.incarnation, link.state.version + 1)
        policy = {**self._agent.acting_policy(), "incarnation": name[0], "version": name[1]}
        if not self._put("policy", pack(policy)):
            return
        self._published_updates = policy["updates"]
        wanted = self._wanted_first()
        self._agent.experience.most_steps_ahead = max(self._chunk_rows, wanted["left"] or 0)
        link.say(version=name[1], phase=self._level.phase.name, **wanted)
        now = time.monotonic()
        self._publish_at = now + max(self._exchange.publish_seconds, _PRICE_OF_PUBLISHING * (now - began))

    def _put(self, name: str, document: bytes) -> bool:
        try:
            self._store.put(name, document)
        except (OSError, CoachError) as error:  # rights may come back, too
            if not self._store_trouble:
                self._store_lost_at = time.monotonic()
            self._store_trouble = reason_of(error)
            return False
        self._store_trouble = ""
        self._documents[name] = document
        return True

    def _wanted(self) -> dict[str, Any]:
        """Steps, episodes or segments left to be played with the newest policy."""
        if not self._is_synchronous or self._level.phase is not RunPhase.TRAIN:
            return {"left": None}
        left, unit = self._agent.learning.left_to_play()
        return {"left": left, "unit": unit.name}

    def _wanted_first(self) -> dict[str, Any]:
        """Likewise of a policy that is published, which is when experience is waited for: at least one. Heatup may have
        been longer than what is learned from, but a step of training begins with playing."""
        wanted = self._wanted()
        return wanted if wanted["left"] is None else {**wanted, "left": max(1, wanted["left"])}

    # experience

    def receive(self, take_in: Callable[[Played], None]) -> Played:
        """See ``ExperienceSource``."""
        self._heard_at, self._is_silence_said = time.monotonic(), False
        self._publish_if_due()
        while True:
            found = self._link.next()
            played = None if found is None else self._decide(*found, take_in)
            if played is not None:
                self._confirm()
                return played
            if found is None:
                self._wait()

    def _confirm(self) -> None:
        """Send receipts; in SYNC at once, with the number of steps that are left to be played."""
        if self._is_synchronous:
            self._link.push()
        else:
            self._link.push_soon()

    def _wait(self) -> None:
        """Hear from Redis, and give everybody their time meanwhile."""
        link = self._link
        if link.push() and not link.has_entries:
            link.wait()
        if link.trouble:
            time.sleep(_PAUSE_WITHOUT_REDIS)
        self._publish_if_due()
        self._graph.attend()
        self._graph.stop_signals.stop_if_asked()
        self._give_up_if_alone()

    def _give_up_if_alone(self) -> None:
        """
        :raises LostPartError: Redis, the data store or all workers have been gone for too long
        """
        link, most, now = self._link, self._exchange.silence_seconds, time.monotonic()
        if link.seconds_lost > most:
            raise LostPartError(f"no Redis for {most:.0f} s: {link.trouble}")
        if self._store_trouble and now - self._store_lost_at > most:
            raise LostPartError(f"no policy could be published for {most:.0f} s: {self._store_trouble}")
        # a worker that only waits, and that the trainer waits for, would do so without end
        if link.trouble or any(report["state"] == PLAYING for report in self._reports.values()):
            self._heard_at, self._is_silence_said = now, False
            return
        what = "all workers have waited" if self._reports else "no worker was heard of"
        if now - self._heard_at > most:
            raise LostPartError(f"{what} for {most:.0f} s: nobody plays for this run")
        if now - self._heard_at > _SECONDS_UNTIL_SILENCE_IS_SAID and not self._is_silence_said:
            self._is_silence_said = True
            screen.warning(
                f"{what} for {_SECONDS_UNTIL_SILENCE_IS_SAID:.0f} s: if none plays, the run is saved and ends after"
                f" {most:.0f} s"
            )

    def _decide(self, entry: bytes, chunk: Chunk, take_in: Callable[[Played], None]) -> Played | None:
        """Take in a chunk, or acknowledge that it is thrown away."""
        link, level = self._link, self._level
        self._note_sender(chunk.sender)
        if self._is_synchronous and chunk.policy != link.state.policy:
            link.acknowledge(entry, chunk, is_stored=False)
            level.discarded.add_sample(float(chunk.steps))
            return None
        lag = self._agent.training_iteration - chunk.updates
        try:
            played = played_in(chunk)
            take_in(played)
        except (CoachError, MemoryError) as error:
            reason = error.reason if isinstance(error, ChunkError) else f"does not fit ({reason_of(error)[:120]})"
            link.ledger.refused[reason] += 1
            link.acknowledge(entry, chunk, is_stored=False)
            return None
        link.acknowledge(entry, chunk, is_stored=True)
        self._lag = lag
        level.policy_lag.add_sample(float(lag))
        waited = chunk.about.get("waited")
        if isinstance(waited, float):
            level.waiting.add_sample(waited)
        if self._is_synchronous:
            link.say(**self._wanted())
        return played

    # what is shown

    def _note_sender(self, sender: str) -> None:
        """Tell programs of a worker that plays for the first time, or again after it has died."""
        name = _worker_of(sender)
        before = self._playing.get(name)
        if before == sender:
            return
        self._playing[name] = sender
        _print_worker(name, "joined" if before is None else "joined again")

    def fields(self) -> Fields:
        """The workers, the lag of their policies and the share of steps that was discarded, to be shown."""
        now = time.monotonic()
        if now >= self._report_at:
            self._report_at = now + _SECONDS_BETWEEN_REPORTS
            self._look_around(now)
        shown = sorted(self._reports.items())
        fields = [(name, _worker_text(report)) for name, report in shown[:_MOST_WORKERS_SHOWN]]
        if len(shown) > _MOST_WORKERS_SHOWN:
            rest = shown[_MOST_WORKERS_SHOWN:]
            fields.append((f"{len(rest)} more", f"{sum(report['rate'] for _, report in rest):,.0f}/s"))
        if self._link.trouble:
            fields.append(("redis", "no answer"))
        ledger = self._link.ledger
        all_steps = ledger.stored + ledger.discarded
        share = ledger.discarded / all_steps if all_steps else 0.0
        return [*fields, ("lag", f"{self._lag:,}"), ("discarded", f"{share:.1%}")]

    def _look_around(self, now: float) -> None:
        """Hear of the workers, say that the trainer lives, and what was refused."""
        link = self._link
        link.look_for_others()
        if link.is_superseded:
            raise CoachError("another trainer has taken over this run: this one ends")
        self._reports = link.reports(self._names())
        link.say(beat=link.state.beat + 1)
        link.push(reads=False)
        if now >= self._line_at:
            self._line_at = now + _SECONDS_BETWEEN_LINES
            self._print_lines()
        if now >= self._warn_at:
            self._warn_of_refused(now)

    def _warn_of_refused(self, now: float) -> None:
        """Say what was refused since the last time, if anything was."""
        reasons = self._link.ledger.refused
        refused = sum(reasons.values())
        if refused > self._num_warned:
            self._warn_at, self._num_warned = now + _SECONDS_BETWEEN_WARNINGS, refused
            most = ", ".join(f"{count} × {reason}" for reason, count in reasons.most_common(3))
            screen.warning(f"{refused} messages of workers were refused so far: {most}")

    def _names(self) -> list[str]:
        started = [f"worker-{i}" for i in range(self._exchange.num_workers)]
        return list(dict.fromkeys([*started, *map(_worker_of, self._link.ledger.accounts)]))

    def _print_lines(self) -> None:
        for name, report in sorted(self._reports.items()):
            _print_worker(name, report["state"], {"Steps/s": round(report["rate"], 1)})

    def _print_last_lines(self) -> None:
        """Tell programs what each worker that has played came to, in all its lives."""
        steps: Counter[str] = Counter()
        for sender, account in self._link.ledger.accounts.items():
            steps[_worker_of(sender)] += account.stored + account.discarded
        for name in sorted(self._playing):
            _print_worker(name, "ended", {"Steps": steps[name]})

    # the end

    def end(self, directory: str | os.PathLike[str]) -> None:
        """Tell the workers that the run is over, and write down the totals. Nothing that fails here changes how the run
        has ended."""
        ledger = self._link.ledger
        if not self._link.is_superseded:
            self._dismiss_workers()
        self._warn_of_refused(time.monotonic())
        self._print_last_lines()
        totals = {
            "steps": self._agent.total_steps_counter, "stored": ledger.stored, "discarded": ledger.discarded,
            "refused": dict(ledger.refused),
            "workers": {name: dataclasses.asdict(one) for name, one in sorted(ledger.accounts.items())},
        }  # fmt: skip
        path = pathlib.Path(directory) / TOTALS_FILE
        try:
            files.write_json(path, totals, synced=False)
        except OSError as error:
            screen.warning(f"the totals '{path}' cannot be written: {error.strerror or error}")

    def _dismiss_workers(self) -> None:
        link = self._link
        link.say(is_over=True)
        # The first try may be the one that finds out that Redis was emptied.
        if link.push(reads=False) or link.push(reads=False):
            link.forget_run(_SECONDS_TO_HEAR_OF_THE_END)
        try:
            self._store.undeploy()
        except (OSError, CoachError) as error:
            screen.warning(f"documents of this run stay in its data store: {reason_of(error)}")


def _worker_of(sender: str) -> str:
    """The name of the worker that a sender is one life of."""
    return sender.rpartition(".")[0]


def _print_worker(name: str, state: str, figures: dict[str, Any] | None = None) -> None:
    if screen.is_read_by_programs:
        screen.log_dict({"Name": name, "State": state, **(figures or {})}, "Worker")


def _worker_text(report: dict[str, Any]) -> str:
    return f"{report['rate']:,.0f}/s {report['state']}"
