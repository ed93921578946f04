"""Writes a preset file that changes some settings of another preset."""

from __future__ import annotations

import ast
import pathlib

from rl_coach.command_line import custom_parameters, preset_catalogue


def text_of(preset: str, settings: str, about: str) -> str:
    """The text of a preset file.

    :param preset: the base preset, in a form of ``-p``
    :param settings: the changes in the form of ``-cp``, with whole paths
    :param about: the description of the new preset, in one sentence
    """
    statements = custom_parameters.statements(settings, f"the settings of {preset}")
    names = {node.id for one in statements for node in ast.walk(one) if isinstance(node, ast.Name)}
    modules: dict[str, set[str]] = {}
    for name, module in {**custom_parameters.CONSTRUCTORS, **custom_parameters.ENUMS}.items():
        if name in names:
            modules.setdefault(module, set()).add(name)
    module, variable, loading = _base(preset)
    modules.setdefault(module, set()).add(variable)
    imports = [f"from {one} import {', '.join(sorted(modules[one]))}" for one in sorted(modules)]
    lines = [f'"""{about}"""', "", *imports, "", *loading, *(f"graph_manager.{ast.unparse(one)}" for one in statements)]
    return "\n".join(lines) + "\n"


def _base(preset: str) -> tuple[str, str, list[str]]:
    """The module of the base preset, the name to import from it, and further lines that assign ``graph_manager``, if
    the import does not assign it."""
    path, _, variable = preset_catalogue.path_of(preset).rpartition(":")
    file, directory = pathlib.Path(path), preset_catalogue.preset_directory()
    if file.is_relative_to(directory):
        module = ".".join(["rl_coach.presets", *file.relative_to(directory).with_suffix("").parts])
        return module, variable if variable == "graph_manager" else f"{variable} as graph_manager", []
    if path.endswith(".py"):
        return "rl_coach.utils", "import_file", [f"graph_manager = import_file({str(file.absolute())!r}).{variable}"]
    return path, variable if variable == "graph_manager" else f"{variable} as graph_manager", []
