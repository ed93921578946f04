"""The runs below a directory, kept up to date in the background and shared by all open pages."""

from __future__ import annotations

import base64
import operator
import os
import pathlib
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Iterable, Sequence

from rl_coach.runs.experiments import (
    RunDescription,
    SignalFile,
    Summary,
    describe,
    empty_table,
    find_signal_files,
    read_end,
    run_ids,
)
from rl_coach.runs.status import FINISHED, RUNNING, STALLED, STATUS_FILE, read_status, state_of

from .cache import ColumnCache

SCAN_EVERY_SECONDS = 1.5
_LONGEST_PAUSE_SECONDS = 3.0
LARGEST_COLUMNS_BYTES = 256 << 20
"""Columns kept in memory; the least recently drawn go first."""
_INDEXING_SLICE_SECONDS = 0.5
_PAGES_GO_FIRST_SECONDS = 1.5
_READ_AT_ONCE_BYTES = 8 << 20
"""So little is read in a moment, whatever a page is doing."""
_LONGEST_REST_SECONDS = 1.0
_SHOW_FOUND_EVERY_SECONDS = 0.4
_KEEP_SUMMARIES_EVERY_SECONDS = 30.0
_ALWAYS_DIFFERENT = {"start_time", "command_line", "experiment_path", "checkpoint_save_dir", "checkpoint_restore_path"}


@dataclass(frozen=True)
class Run:
    """A run as of the last look.

    :param names: the columns of its CSV
    :param error: why it has failed, if it has and said so
    :param said: when its ``status.json`` last changed, seconds since the epoch; 0 if there is none
    :param modified: when the CSV last changed, seconds since the epoch
    :param size: the CSV's size in bytes
    :param offset: how much of it ``summary`` covers; 0 if only its last rows were looked at
    :param seam: the bytes before ``offset``
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

    @property
    def id(self) -> str:
        """The run's id, unique below the root."""
        return self.description.id

    @property
    def path(self) -> str:
        """The CSV's path."""
        return str(self.description.path)


class Store:
    """Finds runs, reads what grew, and hands out columns.

    :ivar runs: by their ids
    :ivar version: grows with every change of ``runs``
    :ivar differing_parameters: the names of those parameters that are not the same in all runs
    :ivar scanned: set once every run has been looked at

    ``runs`` is replaced as a whole, never changed in place, so a page may read it at any time from its own thread.

    :param root: the experiments directory; it may be missing and may vanish
    :param files: only these CSVs, if any are named
    :param cache: where parsed columns are kept; None keeps nothing
    """

    def __init__(
        self, root: str | os.PathLike, files: Sequence[str | os.PathLike] = (), cache: ColumnCache | None = None
    ):
        self.root = pathlib.Path(os.path.abspath(root))
        self.runs: dict[str, Run] = {}
        self.differing_parameters: list[str] = []
        self._compared: list[RunDescription] = []
        self.version = 0
        self.scanned = threading.Event()
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
        """Keep looking in the background."""
        self._thread = threading.Thread(target=self._watch, name="experiments", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop looking, and keep the summaries."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._keep_summaries()

    def _watch(self) -> None:
        while not self._stop.is_set():
            started = time.monotonic()
            is_first = not self.scanned.is_set()
            self.scan()
            # A slow disk gets some rest, yet new rows are found in time. The first look reads what no other does.
            took = 0.0 if is_first else time.monotonic() - started
            deadline = time.monotonic() + min(max(SCAN_EVERY_SECONDS, 5 * took), _LONGEST_PAUSE_SECONDS)
            while not self._stop.is_set() and time.monotonic() < deadline:
                waits = time.monotonic() - self._asked_at < _PAGES_GO_FIRST_SECONDS
                if (waits and self._unread_bytes() > _READ_AT_ONCE_BYTES) or not self.read_some():
                    break
            self._stop.wait(max(0.0, deadline - time.monotonic()))

    def _unread_bytes(self) -> int:
        return sum(run.size for run in self.runs.values() if not run.summary.complete)

    def scan(self) -> bool:
        """Look at every CSV's size and read the newest rows of those that changed; whether anything did.

        The first time, which may take long, the newest runs come first and are shown before the others are read.
        """
        found = self._find()
        by_path = {run.path: run for run in self.runs.values()}
        now, runs, shown_at = time.time(), {}, time.monotonic()
        for (path, stat), run_id in zip(found.items(), run_ids(self.root, list(found))):
            self._may_look.wait(_LONGEST_REST_SECONDS)
            run = self._look(path, stat, run_id, by_path.get(path), now)
            if run is not None:
                runs[run_id] = run
            if not self.scanned.is_set() and time.monotonic() - shown_at > _SHOW_FOUND_EVERY_SECONDS:
                self._publish(dict(runs))
                shown_at = time.monotonic()
        changed = runs != self.runs
        if changed or not self.scanned.is_set():
            self._compare([run.description for run in runs.values()])
            self._publish(runs)
        self.scanned.set()
        return changed

    def _compare(self, descriptions: list[RunDescription]) -> None:
        if len(descriptions) != len(self._compared) or any(map(operator.is_not, descriptions, self._compared)):
            self.differing_parameters = differing_parameters(descriptions)
            self._compared = descriptions

    def _publish(self, runs: dict[str, Run]) -> None:
        self.runs = runs
        self.version += 1

    def _find(self) -> dict[str, os.stat_result]:
        found = {}
        for entry in self._files or find_signal_files(self.root):
            try:
                found[os.fspath(entry)] = entry.stat() if isinstance(entry, os.DirEntry) else os.stat(entry)
            except OSError:
                continue
        return dict(sorted(found.items(), key=lambda item: item[1].st_mtime, reverse=True))

    def _look(self, path: str, stat: os.stat_result, run_id: str, known: Run | None, now: float) -> Run | None:
        said = _when_said(path)
        try:
            if known is None or known.id != run_id:
                known = self._meet(path, stat, run_id)
            elif stat.st_size != known.size or stat.st_mtime != known.modified:
                known = self._read_on(known, stat)
            elif known.state not in (RUNNING, STALLED) and said == known.said:
                return known
        except OSError:
            return None
        status = read_status(os.path.dirname(path)) if said else {}
        state = state_of(status, stat.st_mtime, now)
        # A status that only says anew that the run goes on is no news to a page.
        said = 0.0 if state in (RUNNING, STALLED) else said
        return replace(known, state=state, error=str(status.get("error", "")), said=said)

    def _meet(self, path: str, stat: os.stat_result, run_id: str) -> Run:
        run = Run(describe(path, self.root, run_id), modified=stat.st_mtime, size=stat.st_size)
        kept = self._kept.get(path)
        if kept and kept["size"] == stat.st_size and kept["modified"] == stat.st_mtime:
            return replace(
                run,
                summary=Summary(**kept["summary"]),
                names=tuple(kept["names"]),
                offset=kept["offset"],
                seam=base64.b64decode(kept["seam"]),
            )
        return _with_end(run)

    def _read_on(self, run: Run, stat: os.stat_result) -> Run:
        if not run.description.parameters:
            run = replace(run, description=describe(run.path, self.root, run.id))
        if not run.offset:
            run = _with_end(run)
        else:
            file = SignalFile(run.path, empty_table(run.names), run.offset, run.seam)
            file.refresh()
            run = self._with_rows_of(run, file)
        return replace(run, modified=stat.st_mtime, size=stat.st_size)

    def _with_rows_of(self, run: Run, file: SignalFile) -> Run:
        continues = run.offset > 0 and not file.restarts
        summary = replace(run.summary) if continues else Summary()
        if file.table is not None:
            summary.add(file.table, run.description.counts_minutes)
        summary.complete = True
        self._summaries_changed = True
        return replace(run, summary=summary, names=tuple(file.names), offset=file.offset, seam=file.seam)

    def read_some(self) -> bool:
        """Read some of the runs that only a tail was read of; whether there were any.

        It takes half a second, or until a page asks for columns.
        """
        waiting = [run for run in self.runs.values() if not run.summary.complete]
        started = time.monotonic()
        deadline = started + _INDEXING_SLICE_SECONDS
        read: dict[str, Run] = {}
        for run in waiting:
            if (whole := self._read_whole(run)) is not None:
                read[run.id] = whole
            if time.monotonic() > deadline or self._asked_at > started or self._stop.is_set():
                break
        if read:
            self._publish({run_id: read.get(run_id, run) for run_id, run in self.runs.items()})
        elif time.monotonic() - self._summaries_kept_at > _KEEP_SUMMARIES_EVERY_SECONDS:
            self._keep_summaries()
        return bool(read)

    def _read_whole(self, run: Run) -> Run | None:
        try:
            file = self._open(run.path)
            file.refresh()
        except OSError:
            return None
        if self._cache:
            self._cache.write(file)
        return self._with_rows_of(replace(run, offset=0), file)

    def _keep_summaries(self) -> None:
        self._summaries_kept_at = time.monotonic()
        if not self._cache or not self._summaries_changed:
            return
        self._summaries_changed = False
        self._cache.write_summaries({run.path: _kept(run) for run in self.runs.values() if run.offset})

    def _open(self, path: str) -> SignalFile:
        return self._cache.read(path) if self._cache else SignalFile(path)

    def let_pages_go_first(self) -> None:
        """Leave the processor to a page that is being drawn: reading ahead goes on a moment later."""
        self._asked_at = time.monotonic()

    def rest(self) -> None:
        """Look at nothing until ``go_on``, while a page is made: whoever opens it waits for that, not for all runs."""
        self._may_look.clear()

    def go_on(self) -> None:
        """Look again."""
        self.let_pages_go_first()
        self._may_look.set()

    def columns(self, run_ids: Iterable[str]) -> dict[str, SignalFile]:
        """The signals of runs, up to date. Runs that are gone are left out."""
        self.let_pages_go_first()
        wanted = [run_id for run_id in run_ids if run_id in self.runs]
        with ThreadPoolExecutor(2, "columns") as pool:
            files = dict(zip(wanted, pool.map(self._column_file, wanted)))
        self._forget_columns()
        return {run_id: file for run_id, file in files.items() if file is not None}

    def _column_file(self, run_id: str) -> SignalFile | None:
        path = self.runs[run_id].path
        with self._columns_lock:
            lock = self._file_locks.setdefault(path, threading.Lock())
        with lock:
            with self._columns_lock:
                file = self._columns.pop(path, None)
            try:
                file = file or self._open(path)
                file.refresh()
            except OSError:
                return None
            with self._columns_lock:
                self._columns[path] = file
            return file

    def _forget_columns(self) -> None:
        with self._columns_lock:
            total = sum(file.nbytes for file in self._columns.values())
            while total > LARGEST_COLUMNS_BYTES and len(self._columns) > 1:
                total -= self._columns.popitem(last=False)[1].nbytes


def differing_parameters(descriptions: Sequence[RunDescription]) -> list[str]:
    """The names of the parameters that are not the same in all runs, in order."""
    differing: set[str] = set()
    seen: dict[str, list[Any]] = {}
    for description in descriptions:
        for name, value in description.parameters.items():
            first = seen.setdefault(name, [value, 0])
            first[1] += 1
            if name not in differing and (value != first[0] or type(value) is not type(first[0])):
                differing.add(name)
    differing.update(name for name, (_, count) in seen.items() if count < len(descriptions))
    return sorted(name for name in differing if name.rpartition(".")[2] not in _ALWAYS_DIFFERENT)


def _when_said(path: str) -> float:
    try:
        return os.stat(os.path.join(os.path.dirname(path), STATUS_FILE)).st_mtime
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
        "summary": asdict(run.summary),
    }
