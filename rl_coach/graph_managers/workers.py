"""The trainer's part of a distributed run: publish policies for the rollout workers, and receive their experience."""

from __future__ import annotations

import os
import pathlib
import time
from collections import Counter
from typing import Any, Mapping

from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.core_types import RunPhase
from rl_coach.data_stores.data_store import DataStore
from rl_coach.graph_managers.agent_exchange import AgentExchange, Documents, Exchange
from rl_coach.graph_managers.graph_manager import GraphManager
from rl_coach.logger import screen
from rl_coach.memories.backend.streams import TrainerLink, wait_for_chunks
from rl_coach.memories.backend.wire import pack
from rl_coach.remote_level_manager import RemoteLevelManager
from rl_coach.runs.live_region import Fields
from rl_coach.utilities import files
from rl_coach.utilities.errors import reason_of
from rl_coach.utils import CoachError, LostPartError

TOTALS_FILE = "distributed.json"
_SECONDS_BETWEEN_REPORTS = 1.0
_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_WARNINGS = 60.0
_SECONDS_TO_HEAR_OF_THE_END = 600
_SECONDS_UNTIL_SILENCE_IS_SAID = 30.0
_PAUSE_WITHOUT_REDIS = 0.1
_MOST_WORKERS_SHOWN = 8


class Workers:
    """Publishes policies and receives the workers' experience, as an ``ExperienceSource``.

    :param graph: the trainer's graph, after ``create_graph``
    :param links: the trainer's connection to each agent's stream of chunks in Redis, by the stream's name
    :param store: the data store of the policies
    :param exchange: sizes and times
    """

    def __init__(self, graph: GraphManager, links: Mapping[str, TrainerLink], store: DataStore, exchange: Exchange):
        level = graph.level_managers[0]
        if len(graph.level_managers) > 1 or not isinstance(level, RemoteLevelManager):
            reason = "has several levels" if len(graph.level_managers) > 1 else "has no RemoteLevelManager"
            raise CoachError(f"graph '{graph.name}' cannot be split into trainer and workers, because it {reason}")
        self._graph, self._level, self._store, self._exchange = graph, level, store, exchange
        self._documents = Documents(store)
        self._agents = {
            stream: AgentExchange(
                stream, agent, level.agent.players_of_stream(stream), links[stream], self._documents,
                level.transport_signals[stream], exchange,
            )
            for stream, agent in level.agent.by_stream.items()
        }  # fmt: skip
        self._links = list(links.values())
        # all streams of a run share one connection, so questions about the run use the first link
        self._link = self._links[0]
        store.documents = (*store.documents, *(one.policy_document for one in self._agents.values()))
        self._turn = list(self._agents)
        self._times_restored = self._count_restored()
        self._heard_at = time.monotonic()
        self._is_silence_said = False
        self._report_at = self._line_at = 0.0
        self._warn_at = 0.0
        self._num_warned = 0
        self._reports: dict[str, dict[str, Any]] = {}
        self._playing: dict[str, str] = {}  # the current sender of each worker; a restarted worker is a new sender

    def start(self, incarnation: int) -> None:
        """Publish the networks and the first policies.

        :param incarnation: number of this start of the trainer; later starts of the same run have larger numbers
        """
        graph = self._graph
        agents = {stream: one.start(incarnation) for stream, one in self._agents.items()}
        blueprint = {"num_workers": self._exchange.num_workers, "agents": agents}
        self._level.source = self
        before = graph.other_fields
        graph.other_fields = lambda: (*before(), *self.fields())
        self._documents.put("blueprint", pack(blueprint))
        for one in self._agents.values():
            one.publish(self._level.phase)
            one.link.push()

    def _count_restored(self) -> int:
        return sum(link.times_restored for link in self._links)

    def _publish_if_due(self) -> None:
        restored = self._count_restored()
        if (self._documents.trouble or restored != self._times_restored) and self._documents.put_back():
            self._times_restored = restored
        for one in self._agents.values():
            one.publish_if_due(self._level.phase)

    # experience

    def receive(self) -> tuple[str, ExperienceChunk]:
        """Wait for experience of one of the agents; see ``ExperienceSource``. The streams take turns, so each agent
        receives experience."""
        self._heard_at, self._is_silence_said = time.monotonic(), False
        self._publish_if_due()
        while True:
            for stream in list(self._turn):
                played = self._next_of(self._agents[stream])
                if played is not None:
                    self._turn.remove(stream)
                    self._turn.append(stream)
                    return stream, played
            self._wait()

    def _next_of(self, one: AgentExchange) -> ExperienceChunk | None:
        """The next experience of a stream that its agent has stored; None if there is no new experience."""
        link = one.link
        if not link.has_entries and len(self._links) > 1:
            link.push_if_due()
        while (found := link.next()) is not None:
            self._note_sender(found[1].sender)
            played = one.decide(*found, self._level.phase)
            if played is not None:
                one.confirm()
                return played
        return None

    def _wait(self) -> None:
        """Wait for chunks from Redis. Meanwhile publish policies, update the display and check for stop signals."""
        links = self._links
        have_answered = [link.push() for link in links]
        if all(have_answered) and not any(link.has_entries for link in links):
            wait_for_chunks(links)
        if self._trouble:
            time.sleep(_PAUSE_WITHOUT_REDIS)
        self._publish_if_due()
        self._graph.attend()
        self._graph.stop_signals.stop_if_asked()
        self._give_up_if_alone()

    @property
    def _trouble(self) -> str:
        return next((link.trouble for link in self._links if link.trouble), "")

    def _give_up_if_alone(self) -> None:
        """End the run if the trainer waits in vain.

        :raises LostPartError: if Redis or the data store did not answer for ``silence_seconds``, or no worker has
            played for so long
        """
        most, now = self._exchange.silence_seconds, time.monotonic()
        if max(link.seconds_lost for link in self._links) > most:
            raise LostPartError(f"no Redis for {most:.0f} s: {self._trouble}")
        if self._documents.seconds_lost > most:
            raise LostPartError(f"no policy could be published for {most:.0f} s: {self._documents.trouble}")
        # the wait would never end if all workers in turn waited for the trainer
        if self._trouble or any(report["phase"] != RunPhase.WAITING.name for report in self._reports.values()):
            self._heard_at, self._is_silence_said = now, False
            return
        what = "all workers have waited" if self._reports else "no worker sent anything"
        if now - self._heard_at > most:
            raise LostPartError(f"{what} for {most:.0f} s: no worker plays for this run")
        if now - self._heard_at > _SECONDS_UNTIL_SILENCE_IS_SAID and not self._is_silence_said:
            self._is_silence_said = True
            screen.warning(
                f"{what} for {_SECONDS_UNTIL_SILENCE_IS_SAID:.0f} s: if no worker plays, the run is saved and ends "
                f"after {most:.0f} s"
            )

    # the display

    def _note_sender(self, sender: str) -> None:
        """If programs read the output, print a line when a worker plays for the first time or after a restart."""
        name = _worker_of(sender)
        before = self._playing.get(name)
        if before == sender:
            return
        self._playing[name] = sender
        _print_worker(name, "joined" if before is None else "joined again")

    def fields(self) -> Fields:
        """Fields for the display: the workers, the lag of their policies and the share of discarded steps."""
        now = time.monotonic()
        if now >= self._report_at:
            self._report_at = now + _SECONDS_BETWEEN_REPORTS
            self._look_around(now)
        shown = sorted(self._reports.items())
        fields = [
            (name, f"{report['rate']:,.0f}/s {_activity(report)}") for name, report in shown[:_MOST_WORKERS_SHOWN]
        ]
        if len(shown) > _MOST_WORKERS_SHOWN:
            rest = shown[_MOST_WORKERS_SHOWN:]
            fields.append((f"{len(rest)} more", f"{sum(report['rate'] for _, report in rest):,.0f}/s"))
        if self._trouble:
            fields.append(("redis", "no answer"))
        stored, discarded = (
            sum(getattr(link.ledger, what) for link in self._links) for what in ("stored", "discarded")
        )
        share = discarded / (stored + discarded) if stored + discarded else 0.0
        lag = max(one.lag for one in self._agents.values())
        return [*fields, ("lag", f"{lag:,}"), ("discarded", f"{share:.1%}")]

    def _look_around(self, now: float) -> None:
        """Read the workers' reports, send the trainer's heartbeat, and print the reasons of refused messages."""
        link = self._link
        link.look_for_others()
        if link.is_superseded:
            raise CoachError("another trainer controls this run now: this trainer ends")
        self._reports = link.reports(self._names())
        for one in self._links:
            one.say(beat=one.state.beat + 1)
            one.push(reads=False)
        if now >= self._line_at:
            self._line_at = now + _SECONDS_BETWEEN_LINES
            for name, report in sorted(self._reports.items()):
                _print_worker(name, _activity(report), {"Steps/s": round(report["rate"], 1)})
        if now >= self._warn_at:
            self._warn_of_refused(now)

    def _warn_of_refused(self, now: float) -> None:
        """Warn of refused messages if there are new ones since the last warning."""
        reasons = sum((link.ledger.refused for link in self._links), Counter())
        refused = sum(reasons.values())
        if refused > self._num_warned:
            self._warn_at, self._num_warned = now + _SECONDS_BETWEEN_WARNINGS, refused
            most = ", ".join(f"{count} × {reason}" for reason, count in reasons.most_common(3))
            screen.warning(f"{refused} messages of workers were refused so far: {most}")

    def _names(self) -> list[str]:
        started = [f"worker-{i}" for i in range(self._exchange.num_workers)]
        heard = [_worker_of(sender) for link in self._links for sender in link.ledger.accounts]
        return list(dict.fromkeys([*started, *heard]))

    # the end

    def end(self, directory: str | os.PathLike[str]) -> None:
        """End the workers, and write the totals to a file. A failure of this method only prints a warning, because the
        run has already ended.

        :param directory: the directory of the file
        """
        if not self._link.is_superseded:
            self._dismiss_workers()
        self._warn_of_refused(time.monotonic())
        # a line for programs with the steps of each worker, summed over its restarts
        steps: Counter[str] = Counter()
        for link in self._links:
            for sender, account in link.ledger.accounts.items():
                steps[_worker_of(sender)] += account.stored + account.discarded
        for name in sorted(self._playing):
            _print_worker(name, "ended", {"Steps": steps[name]})
        totals = {stream: one.totals() for stream, one in self._agents.items()}
        path = pathlib.Path(directory) / TOTALS_FILE
        try:
            files.write_json(path, totals.get("", {"agents": totals}), synced=False)
        except OSError as error:
            screen.warning(f"the totals '{path}' cannot be written: {error.strerror or error}")

    def _dismiss_workers(self) -> None:
        for link in self._links:
            link.say(is_over=True)
        # The first try may fail because Redis was emptied; it restores the stream, and the second try succeeds.
        told = [link for link in self._links if link.push(reads=False) or link.push(reads=False)]
        for link in told:
            link.forget_run(_SECONDS_TO_HEAR_OF_THE_END)
        try:
            self._store.undeploy()
        except (OSError, CoachError) as error:
            screen.warning(f"documents of this run could not be deleted from the data store: {reason_of(error)}")


def _worker_of(sender: str) -> str:
    """The name of a sender's worker. Each restart of a worker is a new sender."""
    return sender.rpartition(".")[0]


def _print_worker(name: str, state: str, figures: dict[str, Any] | None = None) -> None:
    if screen.is_read_by_programs:
        screen.log_dict({"Name": name, "State": state, **(figures or {})}, "Worker")


def _activity(report: dict[str, Any]) -> str:
    return "waiting" if report["phase"] == RunPhase.WAITING.name else "playing"
