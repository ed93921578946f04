"""Output of a run: lines on the screen, signals as CSV, the parameters as JSON, videos."""

from __future__ import annotations

import contextlib
import csv
import datetime
import errno
import functools
import io
import itertools
import math
import numbers
import os
import platform
import select
import shutil
import subprocess
import sys
import time
from importlib import metadata
from typing import Any, Callable, ContextManager, Iterable, Iterator, Mapping, Sequence

import numpy as np

from rl_coach import __version__
from rl_coach.base_parameters import unfold_dict_or_list
from rl_coach.core_types import TimeTypes
from rl_coach.installation import missing_package
from rl_coach.runs.event_file import EventFile, check_tensorboardx
from rl_coach.runs.live_region import LiveRegion
from rl_coach.utilities import files
from rl_coach.utilities.safe_reading import read_json
from rl_coach.utilities.stop_signals import leave_lost_terminal, stop_signals
from rl_coach.utils import CoachError

TENSORBOARD_DIRECTORY = "tensorboard"
CONSOLE_FILE = "console.log"
"""The file in a run's directory with the lines that the run printed."""
_MOST_EARLY_LINES = 1000
_STEPS_COLUMN = "Total steps"
_BOARD_METRICS = ("Training Reward", "Evaluation Reward")


class Colors:
    """Escape codes of the terminal, for user code that formats lines."""

    PURPLE = "\033[95m"
    CYAN = "\033[96m"
    DARKCYAN = "\033[36m"
    BLUE = "\033[94m"
    GREEN = "\033[92m"
    YELLOW = "\033[93m"
    RED = "\033[91m"
    WHITE = "\033[37m"
    BG_RED = "\033[41m"
    BG_GREEN = "\033[42m"
    BG_YELLOW = "\033[43m"
    BG_BLUE = "\033[44m"
    BG_PURPLE = "\033[45m"
    BG_CYAN = "\033[30;46m"
    BG_WHITE = "\033[30;47m"
    BG_RESET = "\033[49m"
    BOLD = "\033[1m"
    UNDERLINE_ON = "\033[4m"
    UNDERLINE_OFF = "\033[24m"
    END = "\033[0m"


class ScreenLogger:
    """Prints lines: coloured on a terminal, or in a form that programs can read.

    Without colours there is no live display. Then each event of a run is a line such as
    ``Training> <time> , Name=..., Episode=...``. Titles begin with ``## ``, successes with ``** ``, warnings with
    ``!! `` and errors with ``!!!! ``.

    :param name: a prefix for each line; empty for none
    :param use_colors: True for colours and a live display if the output is a terminal; False prints lines for programs
    :ivar seconds_waited: total seconds of the waits in ``waiting_for``, except waits with ``comes_again``
    """

    def __init__(self, name: str, use_colors: bool = True):
        self.name = name
        self.seconds_waited = 0.0
        self._use_colors = use_colors
        self._console: Any = None
        self._region: LiveRegion | None = None
        self._waited_for: set[str] = set()
        self._forward: Callable[[str, str | None, str], None] | None = None
        self._console_log: str | None = None
        self._early_lines: list[str] = []

    def keep(self, path: str | os.PathLike[str] | None) -> None:
        """Append all further lines to a file, too. The file also gets the lines that were printed since the start of
        this process, or since the last ``keep(None)``.

        :param path: the path of the file; None ends the file, and forgets earlier lines
        """
        self._console_log = None if path is None else os.fspath(path)
        early, self._early_lines = self._early_lines, []
        if path is not None:
            with contextlib.suppress(OSError):  # as in ``note``
                open(path, "a", encoding="utf-8").close()
            self.note("\n".join(early))

    def note(self, text: str) -> None:
        """Append a text to the file of ``keep`` without printing the text. Before ``keep``, the text is kept in memory
        for the file."""
        if self._console_log is None:
            self._early_lines = [*self._early_lines[-_MOST_EARLY_LINES:], text]
        elif text:
            # The run continues if the file cannot be written: the disk may be full, or the directory deleted.
            with contextlib.suppress(OSError), open(self._console_log, "a", encoding="utf-8") as file:
                file.write(f"{text}\n")

    def forward(self, line: Callable[[str, str | None, str], None]) -> None:
        """Send each line to another process, which prints the line. The waits of this process are not shown.

        :param line: function that sends a line; it is called with the arguments of ``print_forwarded``
        """
        self._forward = line

    def print_forwarded(self, text: str, style: str | None, prefix: str) -> None:
        """Print a line that another process has sent; see ``forward``."""
        self._line(text, style, prefix)

    def __deepcopy__(self, memo: dict[int, Any]) -> ScreenLogger:
        """Return this object: copies of a graph print to the same screen."""
        return self

    @property
    def console(self) -> Any:
        """The ``rich`` console that prints coloured lines above the live display."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(highlight=False, markup=False, soft_wrap=True)
        return self._console

    @property
    def is_read_by_programs(self) -> bool:
        """True if each event is a separate line without colours, and there is no live display."""
        return not self._use_colors

    @property
    def is_live(self) -> bool:
        """True if a live display can be shown: on a terminal, but not in a notebook."""
        if not self._use_colors or self._forward is not None:
            return False
        return bool(self.console.is_terminal and not self.console.is_jupyter and not self.console.is_dumb_terminal)

    @property
    def region(self) -> LiveRegion:
        """The part of the terminal that the live display redraws; only if ``is_live``."""
        if self._region is None:
            self._region = LiveRegion(self.console)
        return self._region

    def set_use_colors(self, use_colors: bool) -> None:
        """Switch colours on or off. :param use_colors: False prints lines for programs from now on"""
        self._use_colors = use_colors

    @contextlib.contextmanager
    def waiting_for(self, what: str, comes_again: bool = False) -> Iterator[None]:
        """A context that shows the reason of a wait: on a terminal with the seconds so far, otherwise as one line.

        :param comes_again: True if the wait recurs; then print no line, and do not count it in ``seconds_waited``
        """
        shown: ContextManager[None] = contextlib.nullcontext()
        if self.is_live:
            shown = self.region.waiting_for(what)
        elif self._use_colors and self._forward is None and not comes_again and what not in self._waited_for:
            self._waited_for.add(what)
            self.print(what)
        began = time.monotonic()
        try:
            with shown:
                yield
        finally:
            if not comes_again:
                self.seconds_waited += time.monotonic() - began

    def print(self, *text: Any) -> None:
        """Print a plain line."""
        self._line(" ".join(str(part) for part in text))

    def log(self, data: Any) -> None:
        """Print a line."""
        self._line(str(data))

    def log_dict(self, data: dict[str, Any], prefix: str = "") -> None:
        """Print a line of names and values. Its form for programs is ``prefix> <time> , name=value, name=value``."""
        if self._use_colors:
            values = "  ".join(f"{name}: {value}" for name, value in data.items())
            self._line(f"{prefix} - {values}" if prefix else values)
        else:
            values = ", ".join(f"{name}={value}" for name, value in data.items())
            self._line(f"{prefix}> {datetime.datetime.now():%Y-%m-%d-%H:%M:%S.%f} , {values}")

    def log_title(self, title: str) -> None:
        """Print the title of a part of a run."""
        self._line(title, "bold cyan", "## ")

    def announce(self, title: str) -> None:
        """Print a title if programs read the output. With colours, the live display shows the same information."""
        if not self._use_colors:
            self.log_title(title)

    def separator(self) -> None:
        """Print a line between two parts."""
        self._line("-" * 40, "dim")

    def success(self, text: str) -> None:
        """Print a success."""
        self._line(text, "bold green", "** ")

    def warning(self, text: str) -> None:
        """Print a warning. The run continues."""
        self._line(f"warning: {text}" if self._use_colors else text, "yellow", "!! ")

    def error(self, text: str, crash: bool = True) -> None:
        """Raise or print an error.

        :param crash: True raises a ``CoachError`` with the message; False only prints the message
        """
        if crash:
            raise CoachError(text)
        self._line(f"error: {text}" if self._use_colors else text, "bold red", "!!!! ")

    def ask_input(self, title: str) -> str:
        """The line that the user types; empty without a terminal."""
        return self._ask(title, None) or ""

    def ask_input_with_timeout(
        self, title: str, timeout: float, msg_if_timeout: str = "Timeout expired."
    ) -> str | None:
        """The line that the user types within ``timeout`` seconds; None without an answer or without a terminal."""
        answer = self._ask(title, timeout)
        if answer is None and _can_be_asked():
            self.warning(msg_if_timeout)
        return answer

    def ask_yes_no(self, title: str, default: bool | None = None) -> bool:
        """Ask the user until the answer is yes or no. Without a terminal, do not ask.

        :param default: the result for an empty line, and without a terminal. None asks again after an empty line, and
            means no without a terminal
        :return: True for yes
        """
        choices = {None: "y/n", True: "Y/n", False: "y/N"}[default]
        while True:
            answer = self._ask(f"{title} ({choices})", None)
            if answer is None or (not answer and default is not None):
                return bool(default)
            if answer.lower() in ("y", "yes", "n", "no"):
                return answer.lower().startswith("y")

    def change_terminal_title(self, title: str) -> None:
        """Set the title of the terminal's window."""
        if self.is_live:
            self.console.set_window_title(title)

    def _ask(self, title: str, timeout: float | None) -> str | None:
        """Ask a question. :return: the answer; None without a terminal or an answer in time, or if the input ended"""
        if not _can_be_asked():
            return None
        with self.region.hidden() if self.is_live else contextlib.nullcontext():
            sys.stdout.write(f"{title} ")
            sys.stdout.flush()
            if timeout is not None and not select.select([sys.stdin], [], [], timeout)[0]:
                return None
            with stop_signals.ending_at_once():
                line = sys.stdin.readline()
        return line.strip() if line else None

    def _line(self, text: str, style: str | None = None, prefix: str = "") -> None:
        """Print a line. :param prefix: the beginning of the line if there are no colours"""
        text = f"{self.name}: {text}" if self.name else text
        if self._forward is not None:
            self._forward(text, style, prefix)
            return
        self.note(text)
        try:
            if self._use_colors:
                self.console.print(text, style=style)
            else:
                print(f"{prefix}{text}", flush=True)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            leave_lost_terminal()  # a background run, which gets no SIGHUP, continues


def _can_be_asked() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


screen = ScreenLogger("")


class BaseLogger:
    """A table of signals in a CSV: one row for each value of the index, one column for each signal.

    A row is written after the index has moved to a later row. A written row never changes. If a value for a written row
    arrives later, it is stored in the first row that is not written yet, as for results of evaluations. So a program
    that reads the file always finds whole lines, and the cost of a row does not depend on the length of the file.

    A new signal adds a column at the right. If the header was written already, the file is once replaced atomically by
    a copy with the new header.

    :param index_name: the name of the first column
    :ivar csv_path: path of the CSV; None keeps the rows in memory
    """

    def __init__(self, index_name: str) -> None:
        self.index_name = index_name
        self.csv_path: str | None = None
        self.time = 0
        self._columns: dict[str, None] = {}
        self._columns_in_file: list[str] = []
        self._rows: dict[int, dict[str, Any]] = {}
        self._first_open_time: int | None = None
        self._is_cut_due = False
        self._has_warned = False
        self._seconds_before = 0.0
        self._started = time.monotonic()

    @property
    def columns(self) -> list[str]:
        """The signals' names, in the order of their first use."""
        return list(self._columns)

    def add_columns(self, names: Iterable[str]) -> None:
        """Add the columns of signals before their first values, so that the first header contains these columns."""
        self._columns |= dict.fromkeys(names)

    def set_current_time(self, time: int) -> None:
        """Move to another row. The next ``dump_output_csv`` writes the rows before this row."""
        self.time = time

    def create_signal_value(
        self, signal_name: str, value: Any, overwrite: bool = True, time: int | None = None
    ) -> bool:
        """Set a signal's value. :return: True if the value was set

        :param overwrite: False keeps an existing value
        :param time: the index of the row; None for the current row. If the row is written already, the first row that
            is not written is used
        """
        index = self._open_index(time)
        row = self._rows.setdefault(index, {self.index_name: index})
        if not overwrite and signal_name in row:
            return False
        row[signal_name] = value
        self._columns[signal_name] = None
        return True

    def create_signal_values(self, values: Mapping[str, Any], overwrite: bool = True) -> None:
        """Set several signals in the current row. :param overwrite: False keeps existing values"""
        index = self._open_index(None)
        row = self._rows.setdefault(index, {self.index_name: index})
        row.update(values if overwrite else {name: values[name] for name in values if name not in row})
        if not values.keys() <= self._columns.keys():
            self._columns |= dict.fromkeys(values)

    def change_signal_value(self, signal_name: str, time: int, value: Any) -> bool:
        """Replace an existing value of a row that is not written yet.

        :return: False if the row has no value of this signal
        """
        if not self.signal_value_exists(signal_name, time):
            return False
        self._rows[self._open_index(time)][signal_name] = value
        return True

    def signal_value_exists(self, signal_name: str, time: int) -> bool:
        """True if an unwritten row has this signal."""
        return signal_name in self._rows.get(self._open_index(time), {})

    def get_signal_value(self, signal_name: str, time: int | None = None) -> Any:
        """A signal's value in an unwritten row; None without a value."""
        return self._rows.get(self._open_index(time), {}).get(signal_name)

    def get_current_wall_clock_time(self) -> float:
        """Minutes of the run so far, including earlier processes of a resumed run."""
        return (self._seconds_before + time.monotonic() - self._started) / 60

    def continue_wall_clock_time(self, minutes: float) -> None:
        """Set the clock of ``get_current_wall_clock_time``. :param minutes: the minutes of the run so far"""
        self._seconds_before, self._started = 60 * minutes, time.monotonic()

    def update_wall_clock_time(self, index: int) -> None:
        """Set ``Wall-Clock Time`` in a row to the current minutes of the run. :param index: the index of the row"""
        self.create_signal_value(TimeTypes.WallClockTime.value.name, self.get_current_wall_clock_time(), time=index)

    def dump_output_csv(self, append: bool = True) -> None:
        """Write the rows before the current row.

        :param append: True does not write the current row, which may still change; False also writes the current row
        """
        self._write_rows([index for index in sorted(self._rows) if index < self.time or not append])

    def close(self) -> None:
        """Write all pending rows."""
        self.dump_output_csv(append=False)

    def get_state(self) -> dict[str, Any]:
        """The unwritten rows, and the seconds of the run so far."""
        return {
            "time": self.time,
            "columns": self.columns,
            "rows": [
                {"index": index, "names": list(row), "values": [_plain(value) for value in row.values()]}
                for index, row in self._rows.items()
            ],
            "first_open_time": self._first_open_time,
            "seconds": self._seconds_before + time.monotonic() - self._started,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned. The next write removes the rows that were written after the
        state was saved. Until then the file does not change, because another part of the restore may fail."""
        self.time = state["time"]
        self._columns = dict.fromkeys(state["columns"])
        self._rows = {row["index"]: dict(zip(row["names"], row["values"])) for row in state["rows"]}
        self._first_open_time = state["first_open_time"]
        self._seconds_before, self._started = state["seconds"], time.monotonic()
        self._is_cut_due = True

    def leave_out_rows(self) -> None:
        """Discard the unwritten rows."""
        self._rows.clear()

    def _open_index(self, time: int | None) -> int:
        index = self.time if time is None else time
        return index if self._first_open_time is None else max(index, self._first_open_time)

    def _write_rows(self, indices: list[int]) -> None:
        if not indices:
            return
        if self.csv_path is not None:
            try:
                self._append_to_file(self.csv_path, [self._rows[index] for index in indices])
            except OSError as error:
                # the rows stay in memory and are written with the next rows when the disk has room
                if not self._has_warned:
                    self._has_warned = True
                    screen.warning(f"'{self.csv_path}' cannot be written: {error.strerror}; its rows are written later")
                return
        for index in indices:
            del self._rows[index]
        self._first_open_time = indices[-1] + 1

    def _append_to_file(self, path: str, rows: list[dict[str, Any]]) -> None:
        if self._is_cut_due and os.path.exists(path):
            self._copy_file(path, self._first_open_time or 0)
        elif 0 < len(self._columns_in_file) < len(self._columns):
            self._copy_file(path)
        self._is_cut_due = False
        if not self._columns_in_file:
            self._write_header(path)
        lines = _csv_lines([[row.get(name) for name in (self.index_name, *self._columns)] for row in rows])
        # write whole lines in one call, so that a reader never sees half a line
        with open(path, "ab", buffering=0) as file:
            before = file.tell()
            if file.write(lines) != len(lines):
                file.truncate(before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _header(self) -> bytes:
        return _csv_lines([[self.index_name, *self._columns]])

    def _write_header(self, path: str) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "wb", buffering=0) as file:
            file.write(self._header())
        self._columns_in_file = list(self._columns)

    def _copy_file(self, path: str, end: int | None = None) -> None:
        """Copy the file with the new columns at the right, without an incomplete last line, and without rows from the
        index ``end`` on, which are newer than the restored state."""
        try:
            with open(path, encoding="utf-8", newline="") as file:
                names, *lines = csv.reader(line for line in file if line.endswith("\n"))
            if names[0] != self.index_name:
                raise ValueError(names[0])
            kept = [line for line in lines if end is None or float(line[0]) < end]
        except (IndexError, ValueError, csv.Error):
            self._keep_aside(path)
            return
        self._columns = dict.fromkeys([*names[1:], *self._columns])
        missing = [""] * (1 + len(self._columns) - len(names))
        files.write_text(path, (self._header() + _csv_lines([line + missing for line in kept])).decode())
        self._columns_in_file = list(self._columns)

    def _keep_aside(self, path: str) -> None:
        """Rename a damaged CSV, so that the next rows are written to a new file."""
        aside = f"{path}.damaged"
        while os.path.exists(aside):
            aside += "_"
        os.replace(path, aside)
        screen.warning(f"'{path}' is damaged: it was renamed to '{aside}', and the signals continue in a new file")
        self._columns_in_file = []


def _plain(value: Any) -> Any:
    """A value of a cell as a number, text or None. NaN becomes None, which is an empty cell."""
    kind = type(value)
    if kind is float:
        return None if math.isnan(value) else value
    if kind in (int, str, bool) or value is None:
        return value
    if isinstance(value, (np.generic, np.ndarray)) and value.size == 1:
        return _plain(value.item())
    return value if isinstance(value, numbers.Number) else str(value)


def _csv_lines(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_plain(value) for value in row] for row in rows)
    return text.getvalue().encode()


class Logger(BaseLogger):
    """The signals of an agent: a row for each episode, in ``worker_0.<graph>.<level>.<agent>_0.csv``.

    :param index_name: the first column
    :ivar listener: called with each written row; None for no listener
    """

    def __init__(self, index_name: str = "Episode #"):
        super().__init__(index_name)
        self.doc_path: str | None = None
        self._settings: Any = {}
        self._board_directory: str | None = None
        self._board: EventFile | None = None
        self.listener: Callable[[dict[str, Any]], None] | None = None

    def set_index_name(self, index_name: str) -> None:
        """Set the name of the first column."""
        self.index_name = index_name

    def set_logger_filenames(
        self,
        _experiments_path: str,
        logger_prefix: str = "",
        task_id: int | None = None,
        add_timestamp: bool = False,
        filename: str = "",
        resume: bool = False,
        tensorboard: bool = False,
    ) -> None:
        """Set the names of the files. A file is created with its first row.

        :param _experiments_path: the experiment's directory
        :param logger_prefix: part of the names, ``<graph>.<level>.<agent>``
        :param task_id: the worker's number
        :param add_timestamp: add the current time to the names
        :param filename: beginning of the names
        :param resume: True continues the newest file with these names; False uses the first free number
        :param tensorboard: also write the signals as TensorBoard events
        """
        stem = _file_stem(logger_prefix, task_id, add_timestamp, filename)
        path = _numbered(os.path.join(_experiments_path, stem), resume)
        self.csv_path, self.doc_path = f"{path}.csv", f"{path}.json"
        if resume and os.path.exists(self.csv_path):
            with open(self.csv_path, encoding="utf-8", errors="replace", newline="") as file:
                header = next(csv.reader(line.replace("\0", "") for line in file), [""])
            self._columns_in_file = header[1:] if header[:1] == [self.index_name] else []
            self._columns = dict.fromkeys(self._columns_in_file)
        if tensorboard:
            self._board_directory = os.path.join(_experiments_path, TENSORBOARD_DIRECTORY, os.path.basename(path))
            check_tensorboardx()

    def set_hyper_parameters(self, parameters: Any) -> None:
        """Set the hyperparameters that TensorBoard shows next to the signals.

        :param parameters: a ``Parameters`` object, or any argument of ``unfold_dict_or_list``
        """
        self._settings = unfold_dict_or_list(parameters)

    def dump_documentation(self, parameters: Any) -> None:
        """Write the parameters and facts about the process as JSON next to the CSV.

        :param parameters: a ``Parameters`` object, or any argument of ``unfold_dict_or_list``
        """
        if self.doc_path is None:
            return
        os.makedirs(os.path.dirname(os.path.abspath(self.doc_path)), exist_ok=True)
        document = {"run": run_record(), "parameters": unfold_dict_or_list(parameters)}
        try:
            before = read_json(self.doc_path)
        except FileNotFoundError:
            before = {}
        except CoachError as error:
            screen.warning(f"{error}; the run writes a new file")
            before = {}
        if before:
            document |= {"run": before.get("run"), "resumed": [*(before.get("resumed") or []), document["run"]]}
        files.write_json(self.doc_path, document)

    def close(self) -> None:
        super().close()
        if self._board is not None:
            with self._board_may_fail():
                self._board.close()
            self._board = None

    def _write_rows(self, indices: list[int]) -> None:
        rows = [(index, self._rows[index]) for index in indices]
        super()._write_rows(indices)
        for index, row in rows:
            if index in self._rows:  # the disk is full; the row is written later
                continue
            if self._board_directory is not None:
                with self._board_may_fail():
                    self._write_events(index, row)
            if self.listener is not None:
                self.listener({self.index_name: index, **row})

    def _write_events(self, index: int, row: dict[str, Any]) -> None:
        """Write the numbers of a row as TensorBoard events, at its environment steps, or at its index without steps."""
        if self._board is None:
            assert self._board_directory is not None
            self._board = EventFile(self._board_directory)
            self._board.add_hyper_parameters(_hyper_parameters(self._settings), _BOARD_METRICS)
        numbers = {name: _plain(value) for name, value in row.items()}
        numbers = {name: number for name, number in numbers.items() if isinstance(number, (bool, int, float))}
        self._board.add(numbers, int(row.get(_STEPS_COLUMN, index)))

    @contextlib.contextmanager
    def _board_may_fail(self) -> Iterator[None]:
        """A context that catches errors of TensorBoard's files. The CSV has the same values, and is still written."""
        try:
            yield
        except OSError as error:
            trouble = f"'{self._board_directory}' cannot be written: {error.strerror}"
            screen.warning(f"{trouble}; the run continues without TensorBoard")
            if self._board is not None:
                self._board.abandon()
            self._board = self._board_directory = None


def _hyper_parameters(settings: Any, path: str = "") -> dict[str, Any]:
    """The settings that are numbers, texts or booleans, by their dotted names."""
    if isinstance(settings, dict):
        parts = (_hyper_parameters(value, f"{path}.{name}" if path else str(name)) for name, value in settings.items())
        return {name: value for part in parts for name, value in part.items()}
    return {path: settings} if isinstance(settings, (bool, int, float, str)) else {}


class EpisodeLogger(BaseLogger):
    """The signals of single episodes: a file for each episode, a row for each step."""

    def __init__(self) -> None:
        super().__init__("Episode Steps")
        self._directory: str | None = None

    def set_logger_filenames(
        self,
        _experiments_path: str,
        logger_prefix: str = "",
        task_id: int | None = None,
        add_timestamp: bool = False,
        filename: str = "",
    ) -> None:
        """Set the directory of the files. The parameters are the same as in ``Logger``."""
        self._directory = os.path.join(
            _experiments_path, _file_stem(logger_prefix, task_id, add_timestamp, filename) + ".episodes"
        )

    def set_episode_idx(self, episode_idx: int) -> None:
        """Write the pending rows of the last episode, and begin the file of the next episode."""
        self.close()
        self.time = 0
        self._first_open_time = None
        self._columns, self._columns_in_file = {}, []
        self.csv_path = self._directory and os.path.join(self._directory, f"episode_{episode_idx}.csv")


def _file_stem(logger_prefix: str, task_id: int | None, add_timestamp: bool, filename: str) -> str:
    worker = "" if task_id is None else f"worker_{task_id}."
    stamp = f"{datetime.datetime.now():%d_%m_%Y-%H_%M}." if add_timestamp else ""
    return f"{filename}{worker}{stamp}{logger_prefix}"


def _numbered(stem: str, resume: bool) -> str:
    """``stem`` with the first free number, such as ``stem_0``; with ``resume`` the last used number."""
    number = 0
    while os.path.exists(f"{stem}_{number}.csv") or os.path.exists(f"{stem}_{number}.json"):
        number += 1
    return f"{stem}_{max(0, number - 1) if resume else number}"


experiment_path: str | None = None
"""The last directory that ``get_experiment_path`` made; None before."""

_STARTED = datetime.datetime.now().astimezone()


@functools.lru_cache(maxsize=1)
def run_record() -> dict[str, Any]:
    """Facts about this process: start time, command line, git revision of the working directory, machine, versions."""
    from rl_coach.runs.system_metrics import gpu_name, processor_name

    return {
        "start_time": _STARTED.isoformat(timespec="seconds"),
        "command_line": sys.argv,
        "git_revision": output_of_git("rev-parse", "HEAD").decode().strip() or None,
        "platform": platform.platform(),
        "processor": processor_name() or platform.machine(),
        "cpu_count": os.cpu_count(),
        "gpu": gpu_name(),
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "rl_coach": __version__}
    for package in ("numpy", "gymnasium", "tensorflow", "keras", "jax", "mxnet", "torch", "onnxruntime"):
        if package in ("numpy", "gymnasium") or package in sys.modules:
            try:
                versions[package] = metadata.version(package)
            except metadata.PackageNotFoundError:
                continue
    return versions


def output_of_git(*arguments: str) -> bytes:
    """The output of git in the working directory; empty without git, or if git needs too much time."""
    try:
        return subprocess.run(["git", *arguments], capture_output=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return b""


def get_experiment_name(initial_experiment_name: str | None = None, default: str = "experiment") -> str:
    """The experiment's name, checked for use as a directory name.

    :param initial_experiment_name: the name that the user has given; None uses ``default``
    :param default: the default name, such as the name of the preset
    :raises CoachError: if the name is not allowed for a directory
    """
    name = (initial_experiment_name or default).strip()
    if not name or name.startswith("..") or ".." in name.split("/") or os.path.isabs(name) or "\0" in name:
        raise CoachError(f"'{name}' cannot be an experiment's name; use letters, digits, '-' and '_'")
    return name


def get_experiment_path(
    experiment_name: str, initial_experiment_path: str | None = None, create_path: bool = True
) -> str:
    """A new directory for a run: ``experiments/<name>/<dd_mm_yyyy-hh_mm>``, with ``-1``, ``-2``, … if it exists.

    :param initial_experiment_path: a directory that replaces ``experiments``
    :param create_path: True creates the directory, so that no other run uses it
    :raises CoachError: if the directory cannot be written
    """
    global experiment_path
    stamp = f"{datetime.datetime.now():%d_%m_%Y-%H_%M}"
    path = os.path.join(initial_experiment_path or "experiments", experiment_name, stamp)
    if create_path:
        experiment_path = make_free_directory(path)
        return experiment_path
    return free_path(path)


def remove_experiment_dir() -> None:
    """Delete the directory that ``get_experiment_path`` created last, with its contents.

    :raises CoachError: if there is no such directory
    """
    if experiment_path is None or not os.path.isdir(experiment_path):
        raise CoachError("there is no experiment directory to remove: get_experiment_path creates one")
    shutil.rmtree(experiment_path)


def summarize_experiment() -> None:
    """Print the directory of the results and the run time of this process; on a terminal, offer to discard the
    results."""
    screen.log_title(f"Results stored at: {experiment_path}")
    screen.log_title(f"Total runtime: {datetime.datetime.now().astimezone() - _STARTED}")
    if screen.ask_yes_no("Discard the experiment's results? This cannot be undone", default=False):
        remove_experiment_dir()


def two_digits(num: int) -> str:
    """A number with at least two digits."""
    return f"{num:02d}"


def make_free_directory(path: str) -> str:
    """Create a directory that no other run uses.

    :return: ``path``; if ``path`` exists, the first free name of ``path-1``, ``path-2``, …
    :raises CoachError: if the directory cannot be written
    """
    for candidate in _alternatives(path):
        try:
            os.makedirs(candidate)
        except FileExistsError:
            continue
        except OSError as error:
            raise CoachError(f"the experiment directory '{candidate}' cannot be written: {error.strerror}") from None
        break
    return candidate


def free_path(path: str) -> str:
    """``path``; if ``path`` exists, the first free name of ``path-1``, ``path-2``, …"""
    return next(candidate for candidate in _alternatives(path) if not os.path.exists(candidate))


def _alternatives(path: str) -> Iterator[str]:
    yield path
    yield from (f"{path}-{number}" for number in itertools.count(1))


def create_gif(images: Sequence[np.ndarray], fps: int = 10, name: str = "Gif", directory: str = ".") -> str:
    """Write images [H, W, 3] uint8 as ``<directory>/gifs/<name>_<time>.gif``. :return: the file's path"""
    return _write_video(images, fps, os.path.join(directory, "gifs"), name, "gif")


def create_mp4(images: Sequence[np.ndarray], fps: int = 10, name: str = "mp4", directory: str = ".") -> str:
    """Write images [H, W, 3] uint8 as ``<directory>/videos/<name>_<time>.mp4``, with an even height and width, which
    the format needs. :return: the file's path"""
    return _write_video(images, fps, os.path.join(directory, "videos"), name, "mp4")


def tiled(images: np.ndarray, columns: int) -> np.ndarray:
    """Arrange images in a grid.

    :param images: [N, H, W] or [N, H, W, C]; N must be a multiple of ``columns``. If C is not 3, only the last channel
        is used
    :param columns: number of images in a row of the grid
    :return: [rows * H, columns * W] or [rows * H, columns * W, 3] uint8
    """
    if images.ndim == 4 and images.shape[-1] != 3:
        images = images[..., -1]
    rows, (height, width) = len(images) // columns, images.shape[1:3]
    grid = images.reshape(rows, columns, *images.shape[1:]).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, *images.shape[3:]).astype(np.uint8)


def write_picture(path: str, image: np.ndarray) -> None:
    """Write an image [H, W] or [H, W, 3] uint8 in the format of the path's suffix.

    :raises CoachError: if imageio is not installed
    """
    try:
        import imageio.v2
    except ModuleNotFoundError as error:
        raise CoachError(f"pictures: {missing_package(error)}") from None
    imageio.v2.imwrite(path, image)


def open_video(path: str, fps: float) -> Any:
    """Open a new video file, GIF or MP4. A GIF repeats without end.

    :param path: the path of the file; its suffix selects the format
    :param fps: frames per second
    :return: the writer: ``append_data(image)`` adds an image [H, W, 3] uint8, and ``close()`` completes the file
    :raises CoachError: if imageio is not installed
    """
    try:
        import imageio.v2
        import imageio_ffmpeg  # noqa: F401
    except ModuleNotFoundError as error:
        raise CoachError(f"videos: {missing_package(error)}") from None
    options: Any = {"fps": fps, "macro_block_size": 2}
    if path.endswith(".gif"):
        options = {"duration": 1000 / fps, "loop": 0}
    return imageio.v2.get_writer(path, mode="I", **options)


def _write_video(images: Sequence[np.ndarray], fps: float, folder: str, name: str, extension: str) -> str:
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}_{datetime.datetime.now():%d_%m_%Y-%H_%M_%S_%f}.{extension}")
    writer = open_video(path, fps)
    for image in images:
        writer.append_data(image)
    writer.close()
    return path
