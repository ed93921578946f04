"""Docstrings say at their first word what a thing is or does: they begin with a noun or a verb."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

import rl_coach
from rl_coach import dashboard

ROOTS = [pathlib.Path(str(package.__file__)).parent for package in (rl_coach, dashboard)]
RIDDLES = {"what", "whatever", "whether", "how", "one", "where", "when", "which", "who", "whose", "why"}


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, those of attributes included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def riddles(source: str) -> list[int]:
    """Lines of docstrings that begin with neither a noun nor a verb."""
    words = ((line, text.split()) for line, text in docstrings(source))
    return [line for line, text in words if text and text[0].strip(",.:;").lower() in RIDDLES]


def test_the_check_finds_them():
    source = '"""What it is."""\nlimit = 3\n"""How many."""\n\n\ndef f():\n    """Whether."""\n    text = "where"\n'
    assert riddles(source) == [1, 3, 7]
    assert not riddles('def f():\n    """Number of rows.\n\n    What follows may ask."""\n')


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.name)
def test_docstrings_begin_with_a_noun_or_a_verb(root):
    paths = sorted(root.rglob("*.py"))
    assert paths
    found = [f"{path.relative_to(root)}:{line}" for path in paths for line in riddles(path.read_text("utf-8"))]
    assert not found, f"docstrings that begin with What, Whether, How, One, Where and so on: {', '.join(found)}"
