"""The JSON beside a run's CSVs: all its parameters, as this release and as Coach 1.0.1 wrote them."""

from __future__ import annotations

import json
import os
import pathlib
import re
from typing import Any, Iterator

_INDEX = re.compile(r"_(\d+)$")
_SECTION = re.compile(r'^(\w+): \n"(\w+)" (\{.*?^\})$', re.MULTILINE | re.DOTALL)
"""A ``Parameters`` object in what Coach 1.0.1 called JSON: a text of the graph's attributes, some of them JSON."""


def read_document(csv_path: str | os.PathLike) -> dict[str, Any]:
    """What is written of the run that a CSV is of; empty if there is nothing, or only a part.

    It lies in a file of the graph's name, ``worker_0.<graph>_0.json`` for ``worker_0.<graph>.<level>.<agent>_0.csv``,
    or in one of the CSV's own name.
    """
    for path in _candidates(pathlib.Path(csv_path)):
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        return _parse(text)
    return {}


def _candidates(csv_path: pathlib.Path) -> Iterator[pathlib.Path]:
    yield csv_path.with_suffix(".json")
    match = _INDEX.search(csv_path.stem)
    if match is None:
        return
    parts = csv_path.stem[: match.start()].split(".")
    for index in dict.fromkeys([match[1], "0"]):
        for count in range(len(parts) - 1, 0, -1):
            yield csv_path.with_name(f"{'.'.join(parts[:count])}_{index}.json")


def _parse(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return _parse_sections(text)
    return document if isinstance(document, dict) else {}


def _parse_sections(text: str) -> dict[str, Any]:
    sections: dict[str, Any] = {}
    for name, kind, content in _SECTION.findall(text):
        try:
            sections[name] = {**json.loads(content), "__class__": kind}
        except (ValueError, RecursionError):
            continue
    return sections
