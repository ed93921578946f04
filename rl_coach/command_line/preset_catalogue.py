"""Functions that list the presets without importing them, and load a preset."""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import importlib.util
import json
import os
import pathlib
import re
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable

from rl_coach.utilities.errors import CoachError, did_you_mean

if TYPE_CHECKING:
    from types import ModuleType

    from rl_coach.graph_managers.graph_manager import GraphManager

DEFAULT_VARIABLE = "graph_manager"
SCORES_FILE = "scores.json"
MOST_SUGGESTIONS = 4
_DECLARED_NAMES = re.compile(r"^class (\w+)AgentParameters\b(?:(?!^class ).)*?algorithm_names = (\(.*?\))", re.M | re.S)
_NAMED_BY_SETTINGS = ("CrossQ", "RecurrentPPO", "SimbaV2", "TQC")
"""Algorithms that are other algorithms with special settings. They appear only in the names of presets."""


@dataclass(frozen=True)
class PresetSummary:
    """A preset's line in ``coach --list``.

    :param score: the mean reward that was measured after training; empty if it is unknown
    :param target: ``>=`` and the reward that training must reach; empty if the preset sets no such reward
    """

    name: str
    environment: str
    algorithm: str
    score: str = ""
    target: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of the line."""
        return self.name, self.environment, self.algorithm, self.score, self.target

    def contains(self, text: str) -> bool:
        """True if the name, the environment or the algorithm contains the text. Upper and lower case are equal."""
        return any(text.lower() in cell.lower() for cell in self.cells[:3])


def preset_directory() -> pathlib.Path:
    """Directory of the presets that come with Coach."""
    specification = importlib.util.find_spec("rl_coach.presets")
    if specification is None or not specification.submodule_search_locations:
        raise FileNotFoundError("rl_coach.presets is not installed; run: pip install -e .")
    return pathlib.Path(specification.submodule_search_locations[0])


def list_all_presets() -> list[str]:
    """The names of the presets that come with Coach, without the tuned presets, in alphabetical order."""
    return sorted(file.stem for file in preset_directory().glob("*.py") if not file.stem.startswith("_"))


def list_tuned_presets() -> list[str]:
    """The names of the tuned presets, which have the best known settings, in alphabetical order. An example is
    ``tuned/CartPole_DQN``."""
    files = (preset_directory() / "tuned").glob("*.py")
    return sorted(f"tuned/{file.stem}" for file in files if not file.stem.startswith("_"))


def summaries(names: list[str] | None = None) -> list[PresetSummary]:
    """A summary of each preset, from its source text. :param names: None for all presets of ``list_all_presets``"""
    return [_summary(name) for name in (list_all_presets() if names is None else names)]


def _summary(name: str) -> PresetSummary:
    file = preset_directory() / f"{name}.py"
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    agents = [name for name in map(_called_name, calls) if name.endswith("AgentParameters")]
    environments = [call for call in calls if _is_environment(_called_name(call))]
    return PresetSummary(
        name,
        " ".join(dict.fromkeys(map(_environment_text, environments))),
        ", ".join(dict.fromkeys(_algorithm(one.removesuffix("AgentParameters"), name) for one in agents)),
        f"{scores[name]:g}" if name in (scores := _measured_scores()) else "",
        _reward_to_reach(nodes),
    )


def _algorithm(agent: str, preset: str) -> str:
    """The name of a preset's algorithm: the end of the preset's name if it is a name of the algorithm, otherwise the
    usual name.

    :param agent: the name of the class of agent parameters, without ``AgentParameters``
    """
    last = preset.rpartition("_")[2]
    names = _algorithm_names().get(agent, (agent,))
    return last if last in (*names, *_NAMED_BY_SETTINGS) else names[0]


@functools.cache
def _algorithm_names() -> dict[str, tuple[str, ...]]:
    """The ``algorithm_names`` of agent parameters, by class, read from the source texts, because imports are slow."""
    directory = pathlib.Path(__file__).parents[1] / "agents"
    sources = (file.read_text(encoding="utf-8") for file in sorted(directory.glob("*_agent.py")))
    found = (match for source in sources for match in _DECLARED_NAMES.finditer(source))
    return {match[1]: ast.literal_eval(match[2]) for match in found}


@functools.cache
def _measured_scores() -> dict[str, float]:
    return json.loads((preset_directory() / SCORES_FILE).read_text(encoding="utf-8"))


def _reward_to_reach(nodes: Iterable[ast.AST]) -> str:
    """The ``min_reward_threshold`` of a preset, such as ``>= 150``; empty if the preset does not set it."""
    for node in nodes:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith(".min_reward_threshold"):
            return f">= {ast.literal_eval(node.value):g}"
    return ""


def _called_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_environment(name: str) -> bool:
    return name.endswith("EnvironmentParameters") or name in ("GymVectorEnvironment", "Atari")


def _environment_text(call: ast.Call) -> str:
    """The environment of a preset: ``CartPole-v0`` if the preset has a fixed level, ``Atari, any level (-lvl)`` if the
    user must select the level.
    """
    family = _called_name(call).removesuffix("Parameters").removesuffix("Environment").removesuffix("Vector") or "Gym"
    level = next((keyword.value for keyword in call.keywords if keyword.arg == "level"), None)
    if level is None and call.args:
        level = call.args[0]
    if isinstance(level, ast.Constant) and isinstance(level.value, str):
        return level.value.rpartition(":")[2]
    if isinstance(level, ast.Call) and level.args:
        return f"{_level_family(level.args[0], family)}, any level (-lvl)"
    return family


def _level_family(levels: ast.expr, otherwise: str) -> str:
    name = ast.unparse(levels).rpartition(".")[2]
    return name.partition("_")[0].capitalize() if name.isidentifier() else otherwise


def load(preset: str) -> GraphManager:
    """Load the graph manager of a preset.

    :param preset: the name of a preset in upper or lower case, ``tuned/NAME``, ``path.py``, ``path.py:variable``,
        ``package.module`` or ``package.module:variable``
    :raises CoachError: if the preset does not exist, or its file has an error
    """
    module_text, variable = _split(preset)
    module = _load_module(preset, module_text)
    graph_manager: Any = getattr(module, variable, None)
    if not is_graph_manager(graph_manager):
        raise _no_graph_manager(module_text, variable, module)
    return copy.deepcopy(graph_manager)  # a copy, so that the run does not change the loaded module


def _split(preset: str) -> tuple[str, str]:
    module, colon, variable = preset.rpartition(":")
    is_variable = bool(colon) and variable.isidentifier()
    return (module, variable) if is_variable else (preset, DEFAULT_VARIABLE)


def name_of(preset: str) -> str:
    """The default name of a preset's experiments, such as ``CartPole_DQN`` for the presets ``cartpole_dqn`` and
    ``a/CartPole_DQN.py``."""
    module, variable = _split(preset)
    name = pathlib.Path(expand(module)).name
    if module.lower() in map(str.lower, list_tuned_presets()):
        name = f"tuned_{name}"
    name = name.removesuffix(".py") if name.endswith(".py") else name.rpartition(".")[2]
    return name if variable == DEFAULT_VARIABLE else f"{name}_{variable}"


def path_of(preset: str) -> str:
    """The file and variable of a preset, such as ``presets/CartPole_DQN.py:graph_manager``. The result is the same for
    the preset's name in upper or lower case."""
    module, variable = _split(preset)
    return f"{expand(module)}:{variable}"


def expand(preset: str) -> str:
    """The file of a preset's name, in upper or lower case. Other texts are returned unchanged."""
    by_lower = {name.lower(): name for name in (*list_all_presets(), *list_tuned_presets())}
    name = by_lower.get(preset.lower())
    return preset if name is None else str(preset_directory() / f"{name}.py")


def _load_module(preset: str, module_text: str) -> ModuleType:
    from rl_coach.utilities.dynamic_import import import_file
    from rl_coach.utilities.stop_signals import Terminated

    path = expand(module_text)
    try:
        if path.lower().startswith("tuned/") and not os.path.exists(path):
            raise _unknown_preset(preset)
        if path.endswith(".py") or os.sep in path:
            return import_file(path)
        if "." in path and _module_exists(path):
            return importlib.import_module(path)
    except (CoachError, Terminated):
        raise
    except (Exception, SystemExit) as error:
        raise _preset_error(path, error) from error
    raise _unknown_preset(preset)


def _module_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def presets_with(text: str) -> list[str]:
    """The names of the presets that contain a text, in upper or lower case."""
    known = [*list_all_presets(), *list_tuned_presets()]
    return [name for name in known if text and text.lower() in name.lower()]


def _unknown_preset(preset: str) -> Exception:
    containing = presets_with(preset)
    if not containing:
        known = [*list_all_presets(), *list_tuned_presets()]
        return CoachError(f"no preset '{preset}'{did_you_mean(preset, known)} (coach --list shows all)")
    some = " or ".join(f"'{name}'" for name in containing[:MOST_SUGGESTIONS])
    return CoachError(f"no preset '{preset}'; did you mean {some}? (coach --list {preset} shows {len(containing)})")


def _preset_error(path: str, error: Exception | SystemExit) -> Exception:
    """A ``CoachError`` in one line for an error in a preset or in user code that the preset calls."""
    from rl_coach.installation import missing_package
    from rl_coach.utilities.user_code import in_one_line

    if isinstance(error, ModuleNotFoundError):
        return CoachError(f"preset '{path}': {missing_package(error)}")
    text = in_one_line(error)
    own = [
        f for f in traceback.extract_tb(error.__traceback__) if os.path.realpath(f.filename) == os.path.realpath(path)
    ]
    if own and text.startswith(type(error).__name__):
        text = f"{path}:{own[-1].lineno}: {text}"
    if isinstance(error, SystemExit):
        text += ": a preset must not end the program"
    return CoachError(text if path in text else f"preset '{path}': {text}")


def is_graph_manager(value: Any) -> bool:
    """True for a graph manager."""
    from rl_coach.graph_managers.graph_manager import GraphManager

    return isinstance(value, GraphManager)


def _no_graph_manager(path: str, variable: str, module: ModuleType) -> Exception:
    others = [name for name, value in vars(module).items() if is_graph_manager(value)]
    hint = f"; it has {', '.join(others)}: -p {path}:{others[0]}" if others else "; write graph_manager = ... in it"
    return CoachError(f"preset '{path}' has no graph manager called '{variable}'{hint}")
