"""Imports run downward and in no circle, those included that stand in strings.

The floors are those of the contract in ``pyproject.toml``, which import-linter keeps for imports that it can see.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys

import grimp
import pytest

import rl_coach

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = pathlib.Path(rl_coach.__file__).parent
MODULE_PATH = re.compile(r"rl_coach(\.\w+)+(:\w+)?")


def floors() -> list[set[str]]:
    """The rooms of each floor, the lowest floor first."""
    with open(ROOT.parent / "pyproject.toml", "rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [set(re.findall(r"\w+", layer)) for layer in reversed(layers)]


FLOORS = floors()


def floor_of(module: str) -> int:
    """:param module: the dotted path below ``rl_coach``"""
    room = module.split(".")[0]
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def module_paths(source: str) -> list[str]:
    """The module paths that stand in strings of a source, without ``rl_coach.``."""
    strings = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    found = (text for text in strings if isinstance(text, str) and MODULE_PATH.fullmatch(text))
    return [text.removeprefix("rl_coach.").split(":")[0] for text in found]


def upward_paths(module: str, source: str) -> list[str]:
    return [path for path in module_paths(source) if floor_of(path) > floor_of(module)]


def sources() -> list[pathlib.Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_path_in_a_string_points_upward(path):
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    assert upward_paths(module, path.read_text(encoding="utf-8")) == []


def test_an_upward_path_in_a_string_is_found():
    source = 'make = load("rl_coach.graph_managers.graph_manager:GraphManager")\nname = "rl_coach.spaces"\n'
    assert upward_paths("environments.gym_environment", source) == ["graph_managers.graph_manager"]


def test_no_modules_import_each_other_in_a_circle():
    # an agent's parts name its type, which is imported for the type checker alone
    graph = grimp.build_graph("rl_coach", exclude_type_checking_imports=True)
    left = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while leaves := {module for module, imported in left.items() if not imported}:
        left = {module: imported - leaves for module, imported in left.items() if module not in leaves}
    # what is left stands on a circle, or imports what does
    assert sorted(left) == []
