"""What the project's metadata says."""

from __future__ import annotations

import pathlib
import re

METADATA = pathlib.Path(__file__).parents[2] / "pyproject.toml"


def extras() -> set[str]:
    """The names of the extras."""
    text = METADATA.read_text(encoding="utf-8")
    section = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    return set(re.findall(r"^([\w-]+) = \[", section, re.MULTILINE))
