"""Writes the pictures of a run in a terminal that the README shows: ``python -m benchmarks.terminal_picture``.

The run uses a pseudo-terminal. One picture shows this terminal during training, the other one at the end.
"""

from __future__ import annotations

import argparse
import io
import pathlib
import sys
import tempfile

import pyte
from rich.console import Console
from rich.text import Text

from tests.terminal import Terminal, terminal

COLUMNS = 110
SECONDS = 600
COMMAND = ("coach", "-p", "CartPole_DQN", "-asc", "--seed", "1")
IMAGES = pathlib.Path(__file__).resolve().parents[1] / "docs" / "images"


def main() -> None:
    """Run ``COMMAND``, and write ``run.svg`` and ``run-end.svg``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path, default=IMAGES, help="where to write (default: %(default)s)")
    directory = parser.parse_args().directory
    program = pathlib.Path(sys.executable).with_name(COMMAND[0])
    with tempfile.TemporaryDirectory() as folder:
        path = f"{program.parent}:/usr/bin:/bin"
        with terminal([str(program), *COMMAND[1:]], COLUMNS, folder, PATH=path) as shown:
            while not (shown.shows("evaluation ") and shown.shows("Training")):
                shown.watch(0.2)
            write(shown, directory / "run.svg")
            shown.watch(SECONDS)
            write(shown, directory / "run-end.svg", folder)


def write(shown: Terminal, path: pathlib.Path, hidden: str = "") -> None:
    """Write the contents of a terminal as an SVG file.

    :param hidden: a path that the picture replaces by ``~``; empty for none
    """
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {' '.join(COMMAND)}", style="bold"))
    rows = [shown.screen.buffer[row] for row in range(shown.screen.lines)]
    for row in rows[: 1 + max(index for index, line in enumerate(shown.screen.display) if line.strip())]:
        line = Text()
        for column in range(shown.screen.columns):
            line.append(row[column].data, style=style_of(row[column]))
        console.print(line)
    path.write_text(console.export_svg(title="coach").replace(hidden or "\0", "~"), encoding="utf-8")
    print(f"wrote {path}")


def style_of(character: pyte.screens.Char) -> str:
    """The style of a character, in the syntax of ``rich``."""
    colour = {"default": "", "brown": "yellow"}.get(character.fg, character.fg)
    return f"{'bold ' if character.bold else ''}{colour}"


if __name__ == "__main__":
    main()
