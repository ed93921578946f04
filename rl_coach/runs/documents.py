"""The JSON next to a run's CSVs: all parameters, in the form of this release or of Coach 1.0.1."""

from __future__ import annotations

import json
import os
import pathlib
import re
from typing import Any, Iterator

from rl_coach.utilities.safe_reading import read_text
from rl_coach.utils import CoachError

_INDEX = re.compile(r"(?:_\d+)?$")
_SECTION = re.compile(r'^(\w+): \n?"(\w+)" (\{.*?^\})', re.MULTILINE | re.DOTALL)
"""A ``Parameters`` object in a document of Coach 1.0.1: a text with the graph's attributes, some of them in JSON."""
_GRAPH_ATTRIBUTE = re.compile(r"^(name|graph_creation_time|checkpoint_id): \n(.*)$", re.MULTILINE)
_LONGEST_TEXT = 4 << 20
_NAMES_OF_TODAY = {
    "agent_params": "agent",
    "env_params": "environment",
    "task_parameters": "task",
    "visualization_parameters": "visualization",
}


def read_document(csv_path: str | os.PathLike) -> dict[str, Any]:
    """Read the document of the run that wrote a CSV. The result is empty if there is no document or it is incomplete.

    The file has the CSV's own name or the graph's name: ``worker_0.<graph>_0.json`` for
    ``worker_0.<graph>.<level>.<agent>_0.csv``. Names of Coach 1.0.1 are replaced by the names of this release.
    """
    for path in _candidates(pathlib.Path(csv_path)):
        try:
            text = read_text(path)
        except (FileNotFoundError, CoachError):
            continue
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return _parse_sections(text[:_LONGEST_TEXT])
        return document if isinstance(document, dict) else {}
    return {}


def settings_for(csv_path: str | os.PathLike, document: dict[str, Any]) -> dict[str, Any]:
    """The settings in a document, without the settings of agents with signals in other CSVs of the run."""
    parameters = document.get("parameters")
    settings = parameters if isinstance(parameters, dict) else document
    agents = settings.get("agents")
    if not isinstance(agents, dict):
        return settings
    name = _INDEX.sub("", pathlib.Path(csv_path).stem).rpartition(".")[2]
    others = {key: value for key, value in settings.items() if key != "agents"}
    return {**others, "agent": agents[name]} if name in agents else others


def _candidates(csv_path: pathlib.Path) -> Iterator[pathlib.Path]:
    yield csv_path.with_suffix(".json")
    index = _INDEX.findall(csv_path.stem)[0]
    parts = csv_path.stem.removesuffix(index).split(".")
    for ending in dict.fromkeys([index, "_0"]):
        for count in range(len(parts) - 1, 0, -1):
            yield csv_path.with_name(f"{'.'.join(parts[:count])}{ending}.json")


def _parse_sections(text: str) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, kind, content in _SECTION.findall(text):
        try:
            section = json.loads(content, object_hook=_plain_enumeration)
        except (ValueError, RecursionError):
            continue
        if isinstance(section, dict):
            document.setdefault(_name_of_today(name, kind), {**section, "__class__": kind})
    return {**document, "graph": dict(_GRAPH_ATTRIBUTE.findall(text))} if document else {}


def _name_of_today(name: str, kind: str) -> str:
    is_agent = name.isdigit() and kind.endswith("AgentParameters")
    return "agent" if is_agent else _NAMES_OF_TODAY.get(name, name)


def _plain_enumeration(values: dict[str, Any]) -> Any:
    return values["_name_"] if "_name_" in values and "__objclass__" in values else values
