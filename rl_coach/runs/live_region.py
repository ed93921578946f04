"""The lines at the bottom of a terminal that are redrawn while printed lines scroll above them."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
from typing import Any, Iterator, Sequence

from rl_coach.utilities.stop_signals import stop_signals

_REDRAWS_PER_SECOND = 4
_GAP = 2

_STOPPING = "stopping after this step; a second Ctrl-C exits at once, without a checkpoint"

Fields = Sequence["tuple[str, str]"]
"""Names and values; a name may be empty."""
Columns = Sequence["tuple[str, Sequence[str]]"]
"""Names of columns, each with its cells. All columns have the same number of cells."""


class LiveRegion:
    """The lines at the bottom of a terminal: fields with their names, in one line or as a table, and the wait in
    progress.

    A separate thread draws the region, so the seconds of a wait are shown even while the program is inside a library.
    ``open`` may be called several times: the region disappears after as many calls of ``close``.

    :param console: a ``rich`` console on a terminal
    """

    def __init__(self, console: Any):
        self._console = console
        self._live: Any = None
        self._openings = 0
        self._columns: Columns = ()
        self._waits: tuple[tuple[str, float], ...] = ()
        self._widths: dict[str, int] = {}

    def open(self) -> None:
        """Show the region."""
        self._openings += 1
        if self._live is None:
            self._start()

    def close(self) -> None:
        """Remove the region after as many calls as ``open`` had. Printed lines stay."""
        self._openings -= 1
        if self._openings == 0:
            self._stop()

    def show(self, columns: Columns) -> None:
        """Show these columns from now on, in place of the columns before."""
        self._columns = tuple(columns)

    @contextlib.contextmanager
    def waiting_for(self, what: str) -> Iterator[None]:
        """Inside this context, show a line below the fields: the reason of a wait, and its seconds so far."""
        before = self._waits
        self._waits = (*before, (what, time.monotonic()))
        self.open()
        try:
            yield
        finally:
            self._waits = before
            self.close()

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Inside this context, hide the region, for example for a question to the user."""
        was_shown = self._live is not None
        self._stop()
        try:
            yield
        finally:
            if was_shown:
                self._start()

    def _start(self) -> None:
        from rich.live import Live

        self._live = Live(
            console=self._console,
            get_renderable=self._picture,
            refresh_per_second=_REDRAWS_PER_SECOND,
            transient=True,
            redirect_stderr=sys.stderr.isatty(),
        )
        self._live.start()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _picture(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        lines = [line for row in self._rows(self._console.width) for line in self._row(row)]
        for what, since in self._waits[-1:]:
            lines.append(Text(f"{what} ... {time.monotonic() - since:.0f} s", style="cyan"))
        if stop_signals.asked is not None:
            lines.append(Text(_STOPPING, style="yellow"))
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)

    def _rows(self, width: int) -> list[list[tuple[str, Sequence[str]]]]:
        """The columns in rows of this width. A column never becomes narrower, so the columns to its right do not
        move."""
        rows: list[list[tuple[str, Sequence[str]]]] = []
        left = 0
        for name, cells in self._columns:
            self._widths[name] = needed = max(len(name), *map(len, cells), self._widths.get(name, 0))
            if not rows or needed > left:
                rows.append([])
                left = width
            rows[-1].append((name, cells))
            left -= needed + _GAP
        return rows

    def _row(self, columns: list[tuple[str, Sequence[str]]]) -> list[Any]:
        from rich.text import Text

        widths = [self._widths[name] + _GAP for name, _ in columns]
        lines = zip(*[(name, *cells) for name, cells in columns])
        styles = itertools.chain(["dim"], itertools.repeat("bold"))
        texts = [
            Text("".join(cell.ljust(width) for cell, width in zip(line, widths)), style=style)
            for line, style in zip(lines, styles)
        ]
        for text in texts:
            text.rstrip()
        return texts
