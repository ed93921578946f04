"""CSV files of recorded episodes, in Coach's layout."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from typing import Sequence

import numpy as np

from rl_coach.core_types import Batch, CsvDataset
from rl_coach.logger import screen
from rl_coach.utilities.safe_reading import read_bytes
from rl_coach.utils import CoachError, did_you_mean

_REQUIRED = ("episode_id", "reward")
_PROBABILITIES = "all_action_probabilities"
_FEATURE, _NEXT = "state_feature_", "next_"
_SINGLE = ("episode_id", "action", "reward", "terminated", "truncated", "is_raw", "transition_number", _PROBABILITIES)
_NOT_READ = ("episode_name",)  # part of Coach's layout, but only for human readers
# names that other programs give to the ends of episodes: if such a column was ignored, episodes
# that were cut off would count as terminated
_ENDS = re.compile(
    r"(.*[^a-z]|is)?(done|termin(al|ate|ated|ation)|truncat(e|ed|ion)|time_?(out|limit)|game_?over)s?([^a-z](flag|mask))?"
    r"|((is|episode|step|trajectory)_?)*(ends?|ended|last)",
    re.I,
)
_MISSING = ("", "nan", "none", "null", "na", "<na>")  # what pandas and others write for a missing value
_TRUTH = {"0": False, "false": False, "1": True, "true": True}
_OTHER_ENCODINGS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_csv(dataset: CsvDataset) -> tuple[Batch, np.ndarray, bool]:
    """Read the steps of a CSV file in Coach's layout.

    A row is a step. The columns are ``episode_id``, ``action`` (or ``action_0``, ``action_1``, … for a vector),
    ``reward`` and the elements of the state: ``state_feature_0``, ``state_feature_1``, … The elements of another
    observation are ``state_NAME_0``, …

    The next state of a step is the state of the next row, so n rows of an episode give n - 1 transitions. Exception: if
    only the last row is ``terminated``, this row is a transition too, because its next state is not needed. If the file
    has columns of the next state (``next_state_feature_0``, …), each row is a transition.

    Optional columns:

    - ``terminated`` and ``truncated`` (0 or 1, False or True) show how an episode ended. If ``terminated`` is missing,
      episodes that are not ``truncated`` count as terminated.
    - ``all_action_probabilities`` is a list such as ``[0.5, 0.5]``.
    - ``is_raw`` is 0 if the values are the output of an agent's filters.
    - ``transition_number`` must increase within an episode; without columns of the next state, by 1 in each row.

    Other columns are not read; a warning lists their names.

    :return: the transitions, one episode after the other; the lengths [E] of the episodes; and True if the values are
        raw
    :raises CoachError: if the file cannot be read, a column is missing, or a cell has a wrong value
    """
    table = _Table(dataset.filepath)
    layout = _Layout(table.header, table.path)
    numbers = {name: table.numbers(name) for name in layout.number_columns}
    is_raw = _is_raw(table)
    order, lengths = _by_episode(table)
    ends = _Ends(table, layout, order, lengths, dataset.is_episodic)

    def states(features: dict[str, list[str]]) -> dict[str, np.ndarray]:
        return {name: np.stack([numbers[one] for one in parts], axis=1) for name, parts in features.items()}

    state = states(layout.states)
    after = states(layout.next_states) if layout.has_next else None
    kept, following = order[ends.is_step], np.append(order[1:], order[-1:])[ends.is_step]
    # the state itself replaces a missing next state; a terminated step does not use it
    following = np.where(ends.has_no_next[ends.is_step], kept, following)
    actions = [numbers[name] for name in layout.actions]
    columns = Batch.from_columns(
        {name: column[kept] for name, column in state.items()},
        np.stack(actions, axis=1)[kept] if layout.has_vectors else _whole_if_possible(actions[0])[kept],
        numbers["reward"][kept],
        ends.is_last[ends.is_step],
        {name: state[name][following] if after is None else after[name][kept] for name in state},
        terminateds=ends.terminated[ends.is_step],
        info={_PROBABILITIES: table.probabilities()[kept]} if _PROBABILITIES in table.header else {},
    )
    return columns, ends.lengths, is_raw


class _Layout:
    """The columns of a CSV file by their meaning: states, next states and actions."""

    def __init__(self, header: list[str], path: str):
        if len(header) == 1 and (separator := re.search(r"[;\t|]", header[0])):
            raise CoachError(f"'{path}' has {separator[0]!r} between its columns: save it with commas")
        self._path = path
        self.states, self.next_states = _features(header, "state_"), _features(header, f"{_NEXT}state_")
        vectors = [name for name in header if re.fullmatch(r"action_\d+", name)]
        self.has_vectors, self.has_next = bool(vectors), bool(self.next_states)
        self._require_all(header, vectors)
        vectors.sort(key=_number_of)
        features = [*self.states.values(), *self.next_states.values()]
        for columns in (*features, vectors):
            self._require_numbers(columns)
        self.actions = vectors or ["action"]
        self.number_columns = ["reward", *self.actions, *itertools.chain(*features)]
        self._say_what_is_not_read(header)

    def _require_all(self, header: list[str], vectors: list[str]) -> None:
        twice = sorted(name for name, count in Counter(header).items() if count > 1)
        if twice:
            raise CoachError(f"'{self._path}' has the column '{twice[0]}' twice")
        if vectors and "action" in header:
            raise CoachError(f"'{self._path}' has the columns 'action' and '{vectors[0]}': remove one of them")
        missing = [name for name in _REQUIRED if name not in header]
        missing += [] if vectors or "action" in header else ["action"]
        missing += [] if self.states else [f"{_FEATURE}0"]
        for one, other, prefix in ((self.states, self.next_states, _NEXT), (self.next_states, self.states, "")):
            lost = [name for name in one if name not in other] if self.has_next else []
            missing += [prefix + one[name][0].removeprefix(_NEXT) for name in lost[:1]]
        if missing:
            hint = did_you_mean(missing[0], header)
            raise CoachError(f"'{self._path}' has no column {', '.join(map(repr, missing))}{hint}")
        for name in self.next_states:
            if (found := len(self.next_states[name])) != (right := len(self.states[name])):
                raise CoachError(
                    f"'{self._path}' has {right} columns of the state '{name}' and {found} of its next state"
                )

    def _require_numbers(self, columns: list[str]) -> None:
        for expected, column in enumerate(columns):
            if _number_of(column) < expected:
                raise CoachError(
                    f"'{self._path}': the columns '{columns[expected - 1]}' and '{column}' have the same number"
                )
            if _number_of(column) > expected:
                lost = f"{column.rpartition('_')[0]}_{expected}"
                raise CoachError(f"'{self._path}' has the column '{column}' but no column '{lost}'")

    def _say_what_is_not_read(self, header: list[str]) -> None:
        known = {*self.number_columns, *_SINGLE, *_NOT_READ}
        unknown = [name for name in header if name not in known]
        if ends := [name for name in unknown if _ENDS.fullmatch(name)]:
            raise CoachError(
                f"'{self._path}': the column '{ends[0]}' is not known: name it 'terminated' (the episode ended by "
                f"itself) or 'truncated' (it was cut off)"
            )
        if unknown:
            screen.warning(f"'{self._path}': the columns {', '.join(map(repr, unknown))} are not read")


def _number_of(column: str) -> int:
    return int(column.rpartition("_")[2])


def _features(header: Sequence[str], prefix: str) -> dict[str, list[str]]:
    """The columns of each observation, by the observation's name, in order of their numbers."""
    found: dict[str, list[str]] = {}
    for column in header:
        if match := re.fullmatch(rf"{prefix}(.+)_\d+", column):
            name = "observation" if match[1] == "feature" else match[1]
            found.setdefault(name, []).append(column)
    return {name: sorted(columns, key=_number_of) for name, columns in found.items()}


class _Table:
    """The cells of a CSV file. :ivar lines: the line number of each row, for messages"""

    def __init__(self, path: str):
        self.path = path
        content = read_bytes(path)
        if content.startswith(_OTHER_ENCODINGS):
            raise CoachError(f"'{path}' has the encoding UTF-16 or UTF-32: save it as UTF-8")
        try:
            # spreadsheet programs write a byte order mark before UTF-8
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise CoachError(f"'{path}', line {line}, is not in the encoding UTF-8: save the file as UTF-8") from None
        # strict: otherwise an unclosed quote would make one cell of all following rows
        reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
        self.rows: list[list[str]] = []
        self.lines: list[int] = []
        try:
            self.header = [name.strip() for name in next(reader, [])]
            for row in filter(None, reader):
                self.rows.append(row)
                self.lines.append(reader.line_num)
        except csv.Error as error:
            raise CoachError(f"'{path}', line {reader.line_num}: {error}") from None
        for row, line in zip(self.rows, self.lines):
            if len(row) != len(self.header):
                raise CoachError(f"'{path}', line {line} has {len(row)} cells, and the header has {len(self.header)}")
        if not self.rows:
            raise CoachError(f"'{path}' has no rows")

    def cells(self, name: str) -> list[str]:
        """The cells of a column, as texts."""
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def refuse(self, row: int, name: str, why: str) -> CoachError:
        """Make the error for a cell, with its line and column. :param why: what is wrong"""
        return CoachError(f"'{self.path}', line {self.lines[row]}, column '{name}': {why}")

    def numbers(self, name: str) -> np.ndarray:
        """The numbers of a column, [N] float64. :raises CoachError: if a cell is not a finite number"""
        cells = self.cells(name)
        try:
            column = np.asarray(cells, dtype=np.float64)
        except ValueError:
            # NumPy's error does not say which cell is wrong
            column = np.asarray([_number(cell) for cell in cells])
        wrong = np.flatnonzero(~np.isfinite(column))
        if len(wrong):
            raise self.refuse(int(wrong[0]), name, f"{cells[wrong[0]]!r:.40} is not a finite number")
        return column

    def names(self, name: str) -> list[str]:
        """The cells of a column. :raises CoachError: if a cell is empty, or the text of a missing value"""
        cells = self.cells(name)
        if (row := next((row for row, cell in enumerate(cells) if cell.strip().lower() in _MISSING), None)) is not None:
            raise self.refuse(row, name, f"{cells[row]!r} is not the name of an episode")
        return cells

    def truths(self, name: str) -> np.ndarray | None:
        """The booleans of a column, [N]; None if the file does not have the column.

        :raises CoachError: if a cell is not 0, 1, False or True
        """
        if name not in self.header:
            return None
        cells = self.cells(name)
        found = [_TRUTH.get(cell.strip().lower(), _TRUTH.get(f"{_number(cell):g}")) for cell in cells]
        if None in found:
            row = found.index(None)
            raise self.refuse(row, name, f"{cells[row]!r:.40} is not 0, 1, False or True")
        return np.asarray(found, bool)

    def probabilities(self) -> np.ndarray:
        """The probabilities of all actions, [N, A] float64.

        :raises CoachError: if a cell is not a list of numbers, or the lists have different lengths
        """
        cells = self.cells(_PROBABILITIES)
        found: list[list[float]] = []
        for row, cell in enumerate(cells):
            inner = re.fullmatch(r"\s*[\[(]?([^\[\]()]*)[\])]?\s*", cell)
            numbers = [_number(one) for one in re.split(r"[,\s]+", inner[1].strip(" ,"))] if inner else [np.nan]
            if not np.all(np.isfinite(numbers)) or len(numbers) != len(found[0] if found else numbers):
                size = f"{len(found[0])} numbers" if found else "numbers"
                raise self.refuse(row, _PROBABILITIES, f"{cell!r:.60} is not a list of {size}, such as [0.5, 0.5]")
            found.append(numbers)
        return np.asarray(found, np.float64)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _whole_if_possible(actions: np.ndarray) -> np.ndarray:
    """Convert actions to integers if all are whole numbers. Otherwise return them unchanged."""
    # from 2^53 on, float64 does not represent all integers
    is_whole = np.all(np.floor(actions) == actions) and np.all(np.abs(actions) < 2**53)
    return actions.astype(np.int64) if is_whole else actions


def _is_raw(table: _Table) -> bool:
    marks = table.truths("is_raw")
    if marks is None:
        return True
    if marks.any() != marks.all():
        raise CoachError(f"'{table.path}': is_raw must be 0 in all rows or 1 in all rows, not both")
    return bool(marks[0])


def _by_episode(table: _Table) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the rows, sorted by episode, and the number of rows of each episode. Episodes are in the order
    of their first rows."""
    names, numbers = table.names("episode_id"), dict[str, int]()
    episode = np.asarray([numbers.setdefault(name, len(numbers)) for name in names])
    newest = np.maximum.accumulate(episode)
    again = np.flatnonzero((np.diff(episode) != 0) & (episode[1:] < newest[1:])) + 1
    if len(again) and "transition_number" not in table.header:
        row = int(again[0])
        screen.warning(
            f"'{table.path}', line {table.lines[row]}: episode_id {names[row]!r} occurs again after rows of other "
            f"episodes; all rows with this id are one episode. If the file was joined from several files, their "
            f"episodes need different names"
        )
    # stable, so that the rows of an episode keep their order
    return np.argsort(episode, kind="stable"), np.bincount(episode)


class _Ends:
    """Finds the ends of the episodes in a file. All arrays except ``lengths`` are [N], sorted by episode.

    :param is_episodic: True if the rows with one ``episode_id`` form a whole episode
    :ivar is_step: True for rows that are transitions
    :ivar has_no_next: True for transitions without a known next state
    :ivar is_last: True for the last transition of an episode
    :ivar terminated: True for transitions that terminated their episode
    :ivar lengths: number of transitions of each episode; episodes without transitions are left out
    """

    def __init__(self, table: _Table, layout: _Layout, order: np.ndarray, rows_of: np.ndarray, is_episodic: bool):
        last_rows = np.cumsum(rows_of) - 1
        terminated, truncated = (table.truths(name) for name in ("terminated", "truncated"))
        _require_order(table, order, last_rows, layout.has_next)
        of_rows = np.zeros(len(order), bool) if terminated is None else terminated[order]
        cut_off = np.zeros(len(order), bool) if truncated is None else truncated[order]
        self.is_step, self.has_no_next = np.ones(len(order), bool), np.zeros(len(order), bool)
        if not layout.has_next:
            before = of_rows[np.maximum(last_rows - 1, 0)] & (rows_of > 1)
            self.has_no_next[last_rows] = of_rows[last_rows] & ~before
            self.is_step[last_rows] = self.has_no_next[last_rows]
        ends = np.where(self.is_step[last_rows], last_rows, last_rows - 1)  # the last transition of each episode
        has_any = self.is_step[last_rows] | (rows_of > 1)
        self.is_last = np.zeros(len(order), bool)
        self.is_last[ends[has_any]] = is_episodic
        self.terminated = of_rows
        if terminated is None:
            is_cut = cut_off[ends] | cut_off[last_rows]
            self.terminated = self.is_last.copy()
            self.terminated[ends[has_any]] &= ~is_cut[has_any]
        if is_episodic:
            after_end = self.is_step & ~self.is_last & (of_rows | cut_off)
            if len(found := np.flatnonzero(after_end)):
                raise CoachError(
                    f"'{table.path}', line {table.lines[order[found[0]]]}: the episode has ended, but more rows have "
                    f"its episode_id"
                )
        self.lengths = (rows_of - ~self.is_step[last_rows])[has_any]


def _require_order(table: _Table, order: np.ndarray, last_rows: np.ndarray, has_next: bool) -> None:
    if "transition_number" not in table.header:
        return
    numbers = table.numbers("transition_number")[order]
    steps = np.diff(numbers)
    wrong = (steps <= 0) if has_next else (steps != 1)
    wrong[last_rows[:-1]] = False
    if len(found := np.flatnonzero(wrong)):
        line = table.lines[order[found[0] + 1]]
        raise CoachError(
            f"'{table.path}', line {line}: transition_number must be {'greater' if has_next else 'one more'} than in "
            f"the row before: put the rows of each episode in order"
            f"{'' if has_next else ', or add columns of the next state'}"
        )


def write_csv(path: str, columns: Batch, episode_lengths: np.ndarray, is_raw: bool) -> None:
    """Write episodes in the layout of ``read_csv``, with columns of the next state.

    :param columns: the steps, one episode after the other
    :param episode_lengths: [E], the number of steps of each episode
    :param is_raw: True for values from the environment, False for the output of an agent's filters
    :raises CoachError: if a value is neither a number nor a vector, the columns of an observation would have the names
        of other columns, or the file exists or cannot be written
    """
    parts: dict[str, np.ndarray] = {"episode_id": np.repeat(np.arange(len(episode_lengths)), episode_lengths)}
    actions = columns.action_column
    parts |= {"action": actions} if actions.ndim == 1 else _cells("action", actions, path)
    parts["reward"] = columns.reward_column
    for prefix, states in (("", columns.state_columns), (_NEXT, columns.next_state_columns)):
        for name, column in states.items():
            own = "feature" if name == "observation" else name
            parts |= _cells(f"{prefix}state_{own}", column, path)
    parts["terminated"] = columns.terminated_column.astype(int)
    parts["is_raw"] = np.full(len(columns), int(is_raw))
    if _PROBABILITIES in columns.info_columns:
        parts[_PROBABILITIES] = np.asarray([str(row) for row in columns.info(_PROBABILITIES).tolist()])
    readable = _features(list(parts), "state_")
    if lost := [name for name in columns.state_columns if name not in readable]:
        raise CoachError(
            f"'{path}': a CSV file cannot contain an observation with the name {lost[0]!r}: rename it, or write to "
            "minari:ID"
        )
    try:
        # 'x' never overwrites a file, not even one that appeared after ``require_new``
        with open(path, "x", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(parts)
            writer.writerows(zip(*(column.tolist() for column in parts.values())))
    except OSError as error:
        raise CoachError(f"cannot write '{path}': {error.strerror}") from None


def _cells(name: str, column: np.ndarray, path: str) -> dict[str, np.ndarray]:
    if column.ndim != 2:
        shape = " x ".join(map(str, column.shape[1:]))
        raise CoachError(
            f"'{path}': a CSV file can only contain vectors, but '{name}' is {shape or 'a number'}: write to minari:ID"
        )
    return {f"{name}_{index}": column[:, index] for index in range(column.shape[1])}
