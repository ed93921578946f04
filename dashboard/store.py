"""The runs in a directory. They are read again in the background when they change, and all open pages share them."""

from __future__ import annotations

import base64
import logging
import operator
import os
import pathlib
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from rl_coach.command_line import preset_catalogue
from rl_coach.runs import annotations as run_annotations
from rl_coach.runs.annotations import Annotation
from rl_coach.runs.differences import differing_parameters, varied_parameters
from rl_coach.runs.experiments import (
    EVALUATION_REWARD,
    RunDescription,
    Summary,
    describe,
    describe_run,
    find_signal_files,
    last_growth,
    read_end,
    run_ids,
)
from rl_coach.runs.signal_file import MOST_ROWS, TIME_COLUMNS, SignalFile
from rl_coach.runs.status import FINISHED, RUNNING, STALLED, STATES, STATUS_FILE, read_status, state_of
from rl_coach.runs.system_metrics import METRICS, SYSTEM_FILE
from rl_coach.runs.workers import RunSignals
from rl_coach.utils import CoachError

from .addresses import VIEWS_FILE, Addresses
from .cache import ColumnCache

SCAN_EVERY_SECONDS = 1.5
_LONGEST_PAUSE_SECONDS = 3.0
LARGEST_COLUMNS_BYTES = 256 << 20
"""The largest memory for columns. The columns that were not drawn for the longest time are removed first."""
LARGEST_WHOLE_BYTES = 64 << 20
MOST_WHOLE_COLUMNS = 1000
"""If a file is larger or has more columns, only the drawn columns are read."""
_SUMMARISED = (*TIME_COLUMNS, EVALUATION_REWARD)
Told = Callable[[int, int, Mapping[str, RunSignals]], None]
_logger = logging.getLogger(__name__)
_INDEXING_SLICE_SECONDS = 0.5
_PAGES_GO_FIRST_SECONDS = 1.5
_READ_AT_ONCE_BYTES = 8 << 20
"""The size of data that are read at once. More data are read only while no page waits."""
_LONGEST_REST_SECONDS = 1.0
_SHOW_FOUND_EVERY_SECONDS = 0.4
_KEEP_SUMMARIES_EVERY_SECONDS = 30.0


@dataclass(frozen=True)
class Run:
    """The state of a run, or of a worker or an agent of a run, when it was read last.

    :param description: the run's experiment, preset, parameters and so on
    :param state: ``running``, ``finished`` and so on; see ``rl_coach.runs.status``
    :param error: the reason of the run's failure; empty if it is unknown
    :param said: the time of the last change of ``status.json`` in seconds since the epoch; 0 without ``status.json``
    :param summary: the rewards, steps and times in the CSV
    :param names: the columns of the CSV
    :param modified: the time of the last change of the CSV in seconds since the epoch
    :param size: the size of the CSV in bytes
    :param offset: the number of bytes that ``summary`` covers; 0 if only the last rows were read
    :param seam: the bytes before ``offset``
    :param grew: True if the CSV has grown since it was read first
    :param annotation: the name, tags and note that users have given to the run
    :param annotated: the time of the last change of the annotation in seconds since the epoch
    :param left_out: number of damaged lines in the part of the CSV that ``summary`` covers
    :param is_condensed: True if the CSV has more rows than are kept in memory
    :param trouble: the reason why the run could not be read; empty if it could be read
    :param printed: the parts of ``status.json`` that ``Summary.as_printed`` reads
    :param has_metrics: True if there is a file ``system.metrics`` next to the CSV
    :param workers: the workers of the run, the first worker first; empty if the run has one CSV
    :param agents: the agents that play together in the run, each with its own CSVs; empty if the run has one agent
    :param agent: the name of an agent that plays together with others; empty for a run
    """

    description: RunDescription
    state: str = FINISHED
    error: str = ""
    said: float = 0.0
    summary: Summary = field(default_factory=Summary)
    names: tuple[str, ...] = ()
    modified: float = 0.0
    size: int = -1
    offset: int = 0
    seam: bytes = b""
    grew: bool = False
    annotation: Annotation = field(default_factory=Annotation)
    annotated: float = 0.0
    left_out: int = 0
    is_condensed: bool = False
    trouble: str = ""
    printed: Mapping[str, Any] = field(default_factory=dict)
    has_metrics: bool = False
    workers: tuple[Run, ...] = ()
    agents: tuple[Run, ...] = ()
    agent: str = ""

    @classmethod
    def of_workers(cls, workers: Sequence[Run]) -> Run:
        """Make a run from its workers. A single worker is the run itself."""
        if len(workers) == 1:
            return workers[0]
        trains = [not worker.description.evaluates_only for worker in workers]
        summary = Summary.of_workers([worker.summary for worker in workers], trains)
        return cls._of_parts(
            describe_run([worker.description for worker in workers]), summary, workers, workers=tuple(workers)
        )

    @classmethod
    def of_agents(cls, run_id: str, agents: Sequence[Run]) -> Run:
        """Make a run from its agents. The summary of the run has no rewards, because the agents' rewards cannot be
        combined.

        :param run_id: the run's id
        :param agents: the agents
        """
        about = agents[0].description
        graph, _, _ = about.source.partition(".")
        kinds = ", ".join(dict.fromkeys(agent.description.agent for agent in agents))
        steps, minutes = (
            float(np.fmax.reduce([getattr(agent.summary, name) for agent in agents])) for name in ("steps", "minutes")
        )
        named = [_named(agent, run_id) for agent in agents]
        return cls._of_parts(
            replace(about, id=run_id, worker=None, source=graph, agent=kinds),
            Summary(steps=steps, minutes=minutes, complete=True),
            agents,
            agents=tuple(named),
        )

    @classmethod
    def _of_parts(cls, description: RunDescription, summary: Summary, parts: Sequence[Run], **more: Any) -> Run:
        first = parts[0]
        return cls(
            description,
            state=next((part.state for part in parts if part.state == RUNNING), first.state),
            error=first.error,
            summary=summary,
            names=tuple(dict.fromkeys(name for part in parts for name in part.names)),
            modified=max(part.modified for part in parts),
            size=sum(part.size for part in parts),
            annotation=first.annotation,
            left_out=sum(part.left_out for part in parts),
            is_condensed=any(part.is_condensed for part in parts),
            trouble=next((part.trouble for part in parts if part.trouble), ""),
            printed=first.printed,
            has_metrics=first.has_metrics,
            **more,
        )

    @property
    def lines(self) -> tuple[Run, ...]:
        """The run's agents, or the run itself: one entry for each line of a plot."""
        return self.agents or (self,)

    @property
    def csvs(self) -> tuple[Run, ...]:
        """The workers of the run's agents, or the run itself: one entry for each CSV."""
        return tuple(csv for line in self.lines for csv in line.workers or (line,))

    @property
    def signals(self) -> tuple[str, ...]:
        """The names of the signals that can be drawn."""
        return (*self.names[1:], *(METRICS if self.has_metrics else ()))

    @property
    def has_signals(self) -> bool:
        """False for a run that has begun but has not written a CSV."""
        return self.description.path.name != STATUS_FILE

    @property
    def title(self) -> str:
        """The name that users have given to the run, or the name of its experiment, in one line."""
        return self.annotation.name or " ".join(self.description.experiment.split()) or self.id

    @property
    def remark(self) -> str:
        """A text about problems of the CSV; empty without problems."""
        lines = f"{self.left_out:,} damaged line{'s' if self.left_out > 1 else ''} left out" if self.left_out else ""
        large = f"more than {MOST_ROWS:,} rows: only some of them are drawn" if self.is_condensed else ""
        return "; ".join(part for part in (self.trouble, lines, large) if part)

    @property
    def is_large(self) -> bool:
        """True if the CSV is so large that only the drawn columns are read, and only as many rows as a drawing
        needs."""
        return self.size > LARGEST_WHOLE_BYTES or len(self.names) > MOST_WHOLE_COLUMNS

    @property
    def drawn(self) -> Run:
        """A copy with only the values that a drawing depends on."""
        plain = replace(
            self,
            summary=_NOTHING_READ,
            offset=0,
            seam=b"",
            left_out=0,
            is_condensed=False,
            grew=False,
            said=0.0,
            printed={},
        )
        workers, agents = (tuple(part.drawn for part in parts) for parts in (self.workers, self.agents))
        return replace(plain, workers=workers, agents=agents)

    @property
    def id(self) -> str:
        """The run's id, which is unique in the experiments directory."""
        return self.description.id

    @property
    def path(self) -> str:
        """The path of the CSV; for several workers the path of the first worker's CSV."""
        return str(self.description.path)


_NOTHING_READ = Summary()


class Store:
    """Finds runs, reads their new rows, and returns their columns.

    :ivar runs: the runs by id. The dictionary is replaced and never changed in place, so that a page can read it in
        another thread
    :ivar version: a number that increases with each change of ``runs``
    :ivar differing_parameters: the names of the parameters that differ between runs
    :ivar varied_parameters: the result of the function ``varied_parameters``
    :ivar addresses: the stored views of pages
    :ivar scanned: set after all runs were read once
    :ivar trouble: a text about an error in the last read of the directory; empty without an error

    :param root: the experiments directory; it need not exist
    :param files: only these CSVs; empty for all CSVs
    :param cache: the cache of parsed columns; None uses no cache
    :param editable: True allows users to name, tag, archive and delete runs
    """

    def __init__(
        self,
        root: str | os.PathLike,
        files: Sequence[str | os.PathLike] = (),
        cache: ColumnCache | None = None,
        editable: bool = True,
    ):
        self.root = pathlib.Path(os.path.abspath(root))
        self.editable = editable
        self.runs: dict[str, Run] = {}
        self._csvs: dict[str, Run] = {}
        self.addresses = Addresses(self.root / VIEWS_FILE if editable else None)
        self.differing_parameters: list[str] = []
        self.varied_parameters: list[str] = []
        self._compared: list[RunDescription] = []
        self.version = 0
        self.scanned = threading.Event()
        self.trouble = ""
        self._presets = {name.lower(): name for name in preset_catalogue.list_all_presets()}
        self._files = [os.path.abspath(file) for file in files]
        self._cache = cache
        self._kept = cache.read_summaries() if cache else {}
        self._summaries_changed = False
        self._summaries_kept_at = time.monotonic()
        self._columns: OrderedDict[str, SignalFile] = OrderedDict()
        self._columns_lock = threading.Lock()
        self._file_locks: dict[str, threading.Lock] = {}
        self._asked_at = time.monotonic()
        self._may_look = threading.Event()
        self._may_look.set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to read changes in the background."""
        self._thread = threading.Thread(target=self._watch, name="experiments", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop reading, also for pages, and store the summaries in the cache."""
        self._stop.set()
        self._may_look.set()
        if self._thread is not None:
            self._thread.join()
        self._keep_summaries()

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                self._look_once()
                self._say("")
            except Exception as error:
                # Try again later; until then all pages show the error.
                _logger.exception("looking at %s failed", self.root)
                self._say(f"The runs could not be read: {type(error).__name__}: {error}")
                self._stop.wait(_LONGEST_PAUSE_SECONDS)

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self.version += 1

    def _look_once(self) -> None:
        started = time.monotonic()
        is_first = not self.scanned.is_set()
        self.scan()
        # Pause longer on a slow disk. The first read is not measured, because it takes longer than later reads.
        took = 0.0 if is_first else time.monotonic() - started
        deadline = time.monotonic() + min(max(SCAN_EVERY_SECONDS, 5 * took), _LONGEST_PAUSE_SECONDS)
        while not self._stop.is_set() and time.monotonic() < deadline:
            waits = time.monotonic() - self._asked_at < _PAGES_GO_FIRST_SECONDS
            if (waits and self._unread_bytes() > _READ_AT_ONCE_BYTES) or not self.read_some():
                break
        self._stop.wait(max(0.0, deadline - time.monotonic()))

    def _unread_bytes(self) -> int:
        return sum(csv.size for csv in self._csvs.values() if not csv.summary.complete)

    def scan(self) -> bool:
        """Check the size of each CSV, and read the newest rows of changed CSVs.

        The first call may take long. It reads the newest runs first, and publishes runs while it reads the others.

        :return: True if a run has changed
        """
        found = self._find()
        now, csvs, shown_at = time.time(), {}, time.monotonic()
        for (path, stat), run_id in zip(found.items(), self._ids(list(found))):
            self._may_look.wait(_LONGEST_REST_SECONDS)
            if self._stop.is_set():
                return False
            csv = self._look(path, stat, run_id, self._csvs.get(path), now)
            if csv is not None:
                csvs[path] = csv
            if not self.scanned.is_set() and time.monotonic() - shown_at > _SHOW_FOUND_EVERY_SECONDS:
                self._publish(dict(csvs))
                shown_at = time.monotonic()
        changed = csvs != self._csvs
        if changed or not self.scanned.is_set():
            self._publish(csvs, compares=True)
        self.scanned.set()
        return changed

    def _compare(self, descriptions: list[RunDescription]) -> None:
        if len(descriptions) != len(self._compared) or any(map(operator.is_not, descriptions, self._compared)):
            self.differing_parameters = differing_parameters(descriptions)
            self.varied_parameters = varied_parameters(descriptions)
            self._compared = descriptions

    def _publish(self, csvs: dict[str, Run], compares: bool = False) -> None:
        """Publish the runs of CSVs.

        :param csvs: the CSVs by path
        :param compares: True also finds the parameters that differ
        """
        self._csvs, self.runs = csvs, self._runs_of(csvs.values())
        if compares:
            self._compare([run.description for run in self.runs.values()])
        self.version += 1

    def _runs_of(self, csvs: Iterable[Run]) -> dict[str, Run]:
        workers: dict[str, list[Run]] = {}
        for csv in csvs:
            workers.setdefault(csv.id, []).append(csv)
        directories: dict[str, list[Run]] = {}
        for several in workers.values():
            several.sort(key=lambda worker: worker.description.worker or 0)
            agent = Run.of_workers(several)
            directories.setdefault(os.path.dirname(agent.path), []).append(agent)
        runs = {}
        for directory, agents in directories.items():
            agents.sort(key=lambda agent: agent.path)
            for run in [Run.of_agents(self._id_of(directory), agents)] if _play_together(agents) else agents:
                known = self.runs.get(run.id)
                if known is not None and run.description == known.description:
                    # Keep the same description object, because new objects would be compared again.
                    run = replace(run, description=known.description)
                runs[run.id] = replace(run, summary=run.summary.as_printed(run.printed))
        return runs

    def _id_of(self, directory: str) -> str:
        below = os.path.relpath(directory, self.root)
        return self.root.name if below == "." else pathlib.PurePath(below).as_posix()

    def _ids(self, paths: Sequence[str]) -> list[str]:
        """The id of each file's run. If the experiments directory itself is a run, the id is the directory's name, even
        before the run has a CSV."""
        ids, root = run_ids(self.root, paths), os.fspath(self.root)
        at_root = {run_id for path, run_id in zip(paths, ids) if os.path.dirname(path) == root}
        if len(at_root) != 1 or not os.path.exists(os.path.join(root, STATUS_FILE)):
            return ids
        return [self.root.name if run_id in at_root else run_id for run_id in ids]

    def _find(self) -> dict[str, os.stat_result]:
        found = {}
        for entry in self._files or find_signal_files(self.root, with_begun=True):
            try:
                found[os.fspath(entry)] = entry.stat() if isinstance(entry, os.DirEntry) else os.stat(entry)
            except OSError:
                continue
        return dict(sorted(found.items(), key=lambda item: item[1].st_mtime, reverse=True))

    def _look(self, path: str, stat: os.stat_result, run_id: str, known: Run | None, now: float) -> Run | None:
        try:
            return self._looked_at(path, stat, run_id, known, now)
        except OSError:
            return None
        except Exception as error:
            return self._not_read(known or Run(RunDescription(run_id, pathlib.Path(path), run_id)), stat, error)

    def _not_read(self, run: Run, stat: os.stat_result, error: Exception) -> Run:
        """A run with files that cannot be read, and a text about the error."""
        trouble = f"cannot be read: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        if trouble != run.trouble:
            _logger.error("%s %s", run.path, trouble, exc_info=error)
        summary = replace(run.summary, complete=True)
        return replace(run, trouble=trouble, summary=summary, modified=stat.st_mtime, size=stat.st_size)

    def _looked_at(self, path: str, stat: os.stat_result, run_id: str, known: Run | None, now: float) -> Run | None:
        directory, name = os.path.split(path)
        if name == STATUS_FILE:
            return self._begun(path, stat, run_id, known, now)
        said = _when_changed(directory, STATUS_FILE)
        annotated = _when_changed(directory, run_annotations.ANNOTATIONS_FILE)
        if known is None or known.id != run_id:
            known = self._meet(path, stat, run_id)
        elif stat.st_size != known.size or stat.st_mtime != known.modified:
            known = replace(self._read_on(known, stat), grew=True)
        elif known.state not in (RUNNING, STALLED) and (said, annotated) == (known.said, known.annotated):
            return known
        if annotated != known.annotated:
            known = replace(known, annotation=run_annotations.read(path), annotated=annotated)
        if not known.has_metrics and os.path.exists(os.path.join(directory, SYSTEM_FILE)):
            known = replace(known, has_metrics=True)
        status = read_status(directory) if said else {}
        modified = stat.st_mtime
        if not status and not known.grew:
            modified = last_growth(known.description, known.summary, modified)
        state = state_of(status, modified, now)
        # While a run is running, a new time of its status is not a change for pages.
        said = 0.0 if state in (RUNNING, STALLED) else said
        return replace(known, state=state, error=str(status.get("error", "")), said=said, printed=_printed(status))

    def _begun(self, path: str, stat: os.stat_result, run_id: str, known: Run | None, now: float) -> Run | None:
        """A run that has a ``status.json`` but no CSV yet, because it builds its graph or is in heatup. None if
        ``status.json`` does not belong to a run."""
        status, description = read_status(os.path.dirname(path)), known.description if known else None
        if status.get("state") not in STATES:
            return None
        if description is None or not description.parameters:
            settings = sorted(pathlib.Path(path).parent.glob("worker_*.json"))
            described = self._describe(str(settings[0].with_suffix(".csv") if settings else path), run_id)
            description = replace(described, path=pathlib.Path(path))
        return Run(
            description,
            state=state_of(status, stat.st_mtime, now),
            error=str(status.get("error", "")),
            summary=Summary(complete=True),
            # The status is written every two seconds; a new time is not a change for a plot.
            modified=stat.st_mtime if status.get("state") != RUNNING else 0.0,
            size=0,
            printed=_printed(status),
        )

    def _describe(self, path: str, run_id: str) -> RunDescription:
        description = describe(path, self.root, run_id)
        return replace(description, preset=self._presets.get(description.preset.lower(), description.preset))

    def _meet(self, path: str, stat: os.stat_result, run_id: str) -> Run:
        run = Run(self._describe(path, run_id), modified=stat.st_mtime, size=stat.st_size)
        kept = self._kept.get(path)
        if kept and kept["size"] == stat.st_size and kept["modified"] == stat.st_mtime:
            return replace(
                run,
                summary=Summary(**kept["summary"]),
                names=tuple(kept["names"]),
                offset=kept["offset"],
                seam=base64.b64decode(kept["seam"]),
                left_out=kept.get("left_out", 0),
                is_condensed=kept.get("is_condensed", False),
            )
        return _with_end(run)

    def _read_on(self, run: Run, stat: os.stat_result) -> Run:
        if not run.description.parameters:
            run = replace(run, description=self._describe(run.path, run.id))
        if not run.offset:
            run = _with_end(run)
        else:
            file = SignalFile.from_offset(run.path, run.names, run.offset, run.seam, _SUMMARISED)
            file.refresh(self._end_if_stopped)
            run = self._with_rows_of(run, file)
        return replace(run, modified=stat.st_mtime, size=stat.st_size, trouble="")

    def _with_rows_of(self, run: Run, file: SignalFile) -> Run:
        continues = run.offset > 0 and not file.restarts
        summary = replace(run.summary) if continues else Summary()
        if file.table is not None:
            summary.add(file.table, run.description.counts_minutes)
        summary.complete = True
        self._summaries_changed = True
        return replace(
            run,
            summary=summary,
            names=tuple(file.names),
            offset=file.offset,
            seam=file.seam,
            left_out=file.left_out + (run.left_out if continues else 0),
            is_condensed=file.is_condensed or (continues and run.is_condensed),
        )

    def read_some(self) -> bool:
        """Read runs that have been read only in part. Stop after half a second, or if a page needs columns.

        :return: True if a run was read
        """
        waiting = [csv for csv in self._csvs.values() if not csv.summary.complete]
        started = time.monotonic()
        deadline = started + _INDEXING_SLICE_SECONDS
        read: dict[str, Run] = {}
        for csv in waiting:
            if (whole := self._read_whole(csv)) is not None:
                read[csv.path] = whole
            if time.monotonic() > deadline or self._asked_at > started or self._stop.is_set():
                break
        if read:
            self._publish({**self._csvs, **read})
        elif time.monotonic() - self._summaries_kept_at > _KEEP_SUMMARIES_EVERY_SECONDS:
            self._keep_summaries()
        return bool(read)

    def _read_whole(self, run: Run) -> Run | None:
        try:
            file = self._open(run, _SUMMARISED)
            file.refresh(self._end_if_stopped)
        except OSError:
            return None
        except Exception as error:
            return self._not_read(run, os.stat(run.path), error)
        if self._cache and file.wanted is None:
            self._cache.write(file)
        return self._with_rows_of(replace(run, offset=0), file)

    def _end_if_stopped(self) -> None:
        if self._stop.is_set():
            raise InterruptedError(f"the store of {self.root} was stopped")

    def _keep_summaries(self) -> None:
        self._summaries_kept_at = time.monotonic()
        if not self._cache or not self._summaries_changed:
            return
        self._summaries_changed = False
        self._cache.write_summaries({path: _kept(csv) for path, csv in self._csvs.items() if csv.offset})

    def _open(self, run: Run, wanted: Collection[str], is_one_of_many: bool = False) -> SignalFile:
        """The reader of a run's CSV, for all columns; only for the wanted columns if all columns need too much memory.

        :param run: the run
        :param wanted: the names of the wanted columns
        :param is_one_of_many: True if many files are read, so that files that are not cached are read only in part
        """
        if run.is_large:
            return SignalFile(run.path, {*TIME_COLUMNS, *wanted}, MOST_ROWS)
        file = self._cache.read(run.path) if self._cache else SignalFile(run.path)
        return SignalFile(run.path, wanted) if is_one_of_many and file.table is None else file

    def annotate(self, run_ids: Iterable[str], changes: Mapping[str, Any]) -> int:
        """Change the names, tags and notes of runs, or archive runs.

        :param run_ids: the ids of the runs
        :param changes: the new values by name
        :return: the number of changed runs
        :raises CoachError: if this dashboard may not change runs, or a file cannot be written
        """
        chosen = self._changeable(run_ids)
        begun = next((run.title for run in chosen if not run.has_signals), None)
        if begun is not None:
            raise CoachError(f"'{begun}' cannot be changed yet, because it has no CSV yet: try again later")
        for run in chosen:
            run_annotations.write(run.path, changes)
        self._look_again_at(chosen)
        return len(chosen)

    def delete(self, run_ids: Iterable[str]) -> list[tuple[pathlib.Path, pathlib.Path]]:
        """Move all files of runs to the trash. If no other run is in a run's directory, the whole directory is moved.

        :param run_ids: the ids of the runs
        :return: pairs of an old and a new path
        :raises CoachError: if this dashboard may not change runs, a run is running, or a file cannot be moved
        """
        chosen = self._changeable(run_ids)
        running = [run.title for run in chosen if run.state == RUNNING]
        if running:
            raise CoachError(f"'{running[0]}' is running: stop it before you delete it")
        deleted = {csv.path for run in chosen for csv in run.csvs}
        paths = [path for run in chosen for csv in run.csvs for path in self._all_of(csv, deleted)]
        moved = run_annotations.move_to_trash(dict.fromkeys(paths), self.root)
        self._look_again_at(chosen)
        return moved

    def _changeable(self, run_ids: Iterable[str]) -> list[Run]:
        if not self.editable:
            raise CoachError("this dashboard cannot change runs: start it with --edit")
        return [self.runs[run_id] for run_id in run_ids if run_id in self.runs]

    def _all_of(self, csv: Run, deleted: set[str]) -> list[pathlib.Path]:
        directory = pathlib.Path(csv.path).parent
        others = {path for path in self._csvs if pathlib.Path(path).is_relative_to(directory)}
        if directory != self.root and others <= deleted:
            return [directory]
        return [file for file in directory.iterdir() if file.stem == pathlib.Path(csv.path).stem]

    def _look_again_at(self, chosen: Sequence[Run]) -> None:
        """Read the changed runs again and publish them at once."""
        csvs = dict(self._csvs)
        for csv in (csv for run in chosen for csv in run.csvs):
            if not os.path.exists(csv.path):
                csvs.pop(csv.path, None)
            elif csv.path in csvs:
                csvs[csv.path] = replace(csvs[csv.path], annotation=run_annotations.read(csv.path))
        self._publish(csvs)

    def let_pages_go_first(self) -> None:
        """Pause the reading in the background for a moment, because a page needs columns."""
        self._asked_at = time.monotonic()

    def rest(self) -> None:
        """Stop the reading in the background until ``go_on``, so that a new page opens fast."""
        self._may_look.clear()

    def go_on(self) -> None:
        """Continue the reading in the background."""
        self.let_pages_go_first()
        self._may_look.set()

    def columns(
        self, run_ids: Iterable[str], signals: Iterable[str] = (), told: Told = lambda *of: None
    ) -> dict[str, RunSignals]:
        """The newest signals of runs, by the id of the run, or of the agent in a run with several agents. Runs that do
        not exist are left out.

        :param run_ids: the ids of the runs
        :param signals: the needed columns; for large files or many new files, only these columns are read
        :param told: called after each run with the number of runs read, the number of all runs, and the signals so far;
            if it raises an exception, the reading ends
        :raises InterruptedError: if the store was stopped meanwhile
        """
        self.let_pages_go_first()
        runs, needed = self.runs, frozenset(signals)
        wanted = [line for run_id in run_ids if run_id in runs for line in runs[run_id].lines if line.has_signals]
        are_many = sum(line.size for line in wanted) > LARGEST_COLUMNS_BYTES
        read = partial(self._signals_of, signals=needed, is_one_of_many=are_many)
        files: dict[str, RunSignals] = {}
        with ThreadPoolExecutor(2, "columns") as pool:
            try:
                for place, (line, read_signals) in enumerate(zip(wanted, pool.map(read, wanted))):
                    self._end_if_stopped()
                    self.let_pages_go_first()
                    if read_signals is not None:
                        files[line.id] = read_signals
                    told(place + 1, len(wanted), files)
            finally:
                pool.shutdown(cancel_futures=True)
        self._forget_columns()
        return files

    def _signals_of(self, line: Run, signals: frozenset[str], is_one_of_many: bool) -> RunSignals | None:
        csvs = line.csvs
        if line.has_metrics and signals.intersection(METRICS):
            csvs = (*csvs, _metrics_of(line))
        if len(csvs) > 1:
            signals = signals.union(TIME_COLUMNS)  # the rows of several workers are sorted by these columns
        files = [(csv, self._column_file(csv, signals, is_one_of_many)) for csv in csvs if not csv.trouble]
        read = [(csv, file) for csv, file in files if file is not None]
        if not read:
            return None
        return RunSignals([file for _, file in read], [not csv.description.evaluates_only for csv, _ in read])

    def _column_file(self, run: Run, signals: frozenset[str], is_one_of_many: bool) -> SignalFile | None:
        with self._columns_lock:
            lock = self._file_locks.setdefault(run.path, threading.Lock())
        with lock:
            with self._columns_lock:
                file = self._columns.pop(run.path, None)
            try:
                file = file if file is not None and file.has(signals) else self._open(run, signals, is_one_of_many)
                file.refresh(self._end_if_stopped)
            except OSError:
                return None
            except Exception as error:
                self._publish({**self._csvs, run.path: self._not_read(run, os.stat(run.path), error)})
                return None
            with self._columns_lock:
                self._columns[run.path] = file
            return file

    def _forget_columns(self) -> None:
        with self._columns_lock:
            total = sum(file.nbytes for file in self._columns.values())
            while total > LARGEST_COLUMNS_BYTES and len(self._columns) > 1:
                total -= self._columns.popitem(last=False)[1].nbytes


def _metrics_of(run: Run) -> Run:
    """The file ``system.metrics`` of a run, in the form of a worker that makes no training steps."""
    path = run.description.path.with_name(SYSTEM_FILE)
    return Run(replace(run.description, path=path, evaluates_only=True))


def _play_together(agents: Sequence[Run]) -> bool:
    """True if the CSVs in a directory belong to several agents of one graph."""
    first = agents[0].description
    graphs = {agent.description.source.partition(".")[0] for agent in agents}
    return first.plays_with_others or (len(agents) > 1 and len(graphs) == 1 and "." in first.source)


def _named(agent: Run, run_id: str) -> Run:
    name = agent.description.source.rpartition(".")[2]
    return replace(agent, description=replace(agent.description, id=f"{run_id}/{name}"), agent=name)


def _printed(status: Mapping[str, Any]) -> dict[str, Any]:
    return {name: status[name] for name in ("progress", "evaluation") if name in status}


def _when_changed(directory: str, name: str) -> float:
    try:
        return os.stat(os.path.join(directory, name)).st_mtime
    except OSError:
        return 0.0


def _with_end(run: Run) -> Run:
    names, summary = read_end(run.path, run.description.counts_minutes)
    return replace(run, summary=summary, names=tuple(names))


def _kept(run: Run) -> dict[str, Any]:
    return {
        "size": run.size,
        "modified": run.modified,
        "names": run.names,
        "offset": run.offset,
        "seam": base64.b64encode(run.seam).decode(),
        "left_out": run.left_out,
        "is_condensed": run.is_condensed,
        "summary": asdict(run.summary),
    }
