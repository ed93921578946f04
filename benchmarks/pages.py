"""Writes tables between two marks of a page, and finds the presets that a page names."""

from __future__ import annotations

import pathlib
import re
from typing import Callable

REPOSITORY = pathlib.Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "benchmarks.md"
ALGORITHMS = REPOSITORY / "docs" / "algorithms"
MARKED = re.compile(r"<!-- ([\w ]+) -->.*?<!-- end of \1 -->", re.DOTALL)


def write_between(page: pathlib.Path, begin: str, end: str, text: str) -> None:
    """Replace the text between two marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


def write_on_pages(directory: pathlib.Path, begin: str, end: str, table_of: Callable[[set[str]], str]) -> None:
    """Write a table between the marks of each page that has these marks.

    :param table_of: a function that returns the table for the names of presets on a page
    """
    for page in sorted(directory.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if begin in text:
            write_between(page, begin, end, table_of(named_presets(text)))


def named_presets(text: str) -> set[str]:
    """All names in backticks outside of marks. Names of tuned presets include ``tuned/``."""
    return set(re.findall(r"`((?:tuned/)?\w+)`", MARKED.sub(" ", text)))
