"""``-cp``: change settings on the command line. The text is parsed and never executed.

``"a.b=EnvironmentSteps(1000); c['main'].d=0.5"`` has the form of Python assignments, so Python's parser reads the text.
This module allows only some expressions: paths of attributes and keys on the left of ``=``; literals, arithmetic on
numbers, constructors of ``CONSTRUCTORS`` and members of the enums of ``ENUMS`` on the right.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import operator
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Callable, Iterable, Iterator, Mapping, Union, cast

from rl_coach.base_parameters import Parameters
from rl_coach.command_line.names_elsewhere import hint, hint_on_the_command_line
from rl_coach.command_line.preset_catalogue import is_graph_manager
from rl_coach.core_types import StepMethod
from rl_coach.filters.filter import Filter
from rl_coach.schedules import Schedule
from rl_coach.utilities.errors import refuse
from rl_coach.utilities.requirements import Constraint, constraints_of, wrong_value
from rl_coach.utils import CoachError, choose_from, did_you_mean

_CONSTRUCTORS_BY_MODULE = {
    "core_types": (
        "EnvironmentSteps", "EnvironmentEpisodes", "TrainingSteps", "Frames", "Time", "CsvDataset", "AlwaysDumpFilter",
        "MaxDumpFilter", "EveryNEpisodesDumpFilter", "SelectedPhaseOnlyDumpFilter",
    ),
    "schedules": (
        "ConstantSchedule", "LinearSchedule", "PieceWiseSchedule", "ExponentialSchedule", "StepDecaySchedule",
        "HalvingSchedule",
    ),
    "architectures.layers": ("Dense", "Conv2d", "BatchnormActivationDropout", "NoisyNetDense", "LayerNorm", "Flatten"),
    "architectures.initializers": ("Orthogonal",),
    "architectures.embedder_parameters": ("ContextEmbedderParameters", "InputEmbedderParameters"),
    "architectures.middleware_parameters": (
        "FCMiddlewareParameters", "LSTMMiddlewareParameters", "TransformerMiddlewareParameters",
    ),
    "agents.curiosity": ("RNDParameters",),
}  # fmt: skip
CONSTRUCTORS = {name: f"rl_coach.{module}" for module, names in _CONSTRUCTORS_BY_MODULE.items() for name in names}
"""The classes that a value may construct, and their modules. A layer may also be the class itself, without a call."""

ENUMS = {
    "RunPhase": "rl_coach.core_types",
    "GradientClippingMethod": "rl_coach.core_types",
    "EmbedderScheme": "rl_coach.base_parameters",
    "MiddlewareScheme": "rl_coach.base_parameters",
    "EmbeddingMergerType": "rl_coach.base_parameters",
    "DistributedCoachSynchronizationType": "rl_coach.base_parameters",
    "MemoryGranularity": "rl_coach.memories.memory",
    "ObservationSpaceType": "rl_coach.environments.observation_space_type",
}
"""The enums with members that may be values, and the modules of the enums."""

_INDEX = re.compile(r"\[[^]]*\]")
_LARGEST_EXPONENT = 64
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}


@dataclass(frozen=True)
class Step:
    """A step of a path.

    :param key: the name of an attribute, or the key or index of an item
    :param is_item: True for a key or an index
    """

    key: Union[str, int]
    is_item: bool = False

    def __str__(self) -> str:
        return f"[{self.key!r}]" if self.is_item else f".{self.key}"


@dataclass(frozen=True)
class Assignment:
    """A setting of ``-cp``: the steps of its path, and its value."""

    path: tuple[Step, ...]
    value: Any

    def __str__(self) -> str:
        return "".join(str(step) for step in self.path).lstrip(".")


def apply_custom_parameters(graph_manager: Any, text: str) -> None:
    """Change settings of a graph manager. If a setting is refused, no setting is changed.

    A path starts at an attribute of the graph manager: ``agent_params``, ``env_params``, ``visualization_parameters``,
    ``improve_steps`` and so on. ``schedule_params.improve_steps`` is the same as ``improve_steps``, because the graph
    manager has the attributes of its schedule.

    :param text: the settings, ``path=value; path=value``
    :raises CoachError: if a path does not exist, or its setting does not accept the value
    """
    _set_all((_Target.find(graph_manager, assignment.path), assignment) for assignment in parse(text))


def apply_settings(graph_manager: Any, settings: Mapping[str, Any]) -> list[str]:
    """Change settings of a graph manager to Python values. If a setting is refused, no setting is changed.

    :param settings: values by path, also as nested dictionaries. A path has the form of ``-cp``, or starts at an
        attribute of ``agent_params``. The name of a setting without a path sets it in all networks that have it
    :return: a message for each name that sets several places, with the paths of these places
    :raises CoachError: if a path does not exist, its setting does not accept the value, or a name stands for different
        settings
    """
    said: list[str] = []

    def targets() -> Iterator[tuple[_Target, Assignment]]:
        for name, value in settings.items():
            found = places(graph_manager, name, hint)
            if len(found) > 1:
                said.append(f"'{name}' is set in {' and '.join(found)}")
            for place in found:
                yield from _nested(graph_manager, place, value)

    try:
        _set_all(targets())
    except CoachError as error:
        raise CoachError(str(error).removeprefix("-cp: ")) from None
    return said


def _set_all(targets: Iterable[tuple[_Target, Assignment]]) -> None:
    """Set places to values, in order. A place is found after the settings before it are set, because it may be in the
    new value of such a setting. If a setting is refused, all places get their earlier values again.
    """
    undo: list[Callable[[], None]] = []
    try:
        for target, assignment in targets:
            target.check(assignment)
            undo.append(target.undo())
            target.set(assignment.value)
    except CoachError:
        for restore in reversed(undo):
            restore()
        raise


def places(graph_manager: Any, name: str, hint_for: Callable[[str], str] = hint_on_the_command_line) -> list[str]:
    """The paths of a setting.

    :param name: a path, a path below ``agent_params``, or the end of one or more paths
    :param hint_for: a function that returns Coach's name for a setting of another library, as the end of a message
    :raises CoachError: if there is no such path, or the paths differ in more than the name of a network or an input
    """
    for root in ("", "agent_params."):
        try:
            _Target.find(graph_manager, _parsed_path(f"{root}{name}"))
        except CoachError as error:
            refused = error
        else:
            return [f"{root}{name}"]
    found = [path for path in _all_paths(graph_manager) if path.endswith(f".{name}")]
    if not found:
        known = {path.rpartition(".")[2] for path in _all_paths(graph_manager)}
        suggestion = hint_for(name) or did_you_mean(name, known)
        raise CoachError(f"there is no setting '{name}'{suggestion}") if "." not in name else refused
    if len({_INDEX.sub("", path) for path in found}) > 1:
        raise CoachError(f"there are several settings '{name}': write one of {', '.join(found)}")
    return found


def _nested(graph_manager: Any, path: str, value: Any) -> Iterator[tuple[_Target, Assignment]]:
    """The places and values of a setting. If the value is a dictionary and the place has an object, each entry sets an
    attribute of the object.
    """
    steps = _parsed_path(path)
    target = _Target.find(graph_manager, steps)
    current = target.get()
    if not isinstance(value, dict) or (isinstance(current, dict) and not any(map(_is_object, current.values()))):
        yield target, Assignment(steps, value)
        return
    for name, below in value.items():
        yield from _nested(graph_manager, f"{path}[{name!r}]" if isinstance(current, dict) else f"{path}.{name}", below)


def _parsed_path(text: str) -> tuple[Step, ...]:
    (assignment,) = parse(f"{text} = None")
    return assignment.path


def parse(text: str) -> list[Assignment]:
    """Parse the assignments ``path=value; path=value``, in order.

    :raises CoachError: if a part of the text is not an assignment of an allowed value to a path
    """
    return [Assignment(_path(one.targets[0]), _value(one.value)) for one in statements(text.strip(), "-cp")]


def statements(text: str, what: str, form: str = "path=value") -> list[ast.Assign]:
    """Parse the statements ``path=value; path=value`` of a text.

    :param what: the beginning of error messages
    :param form: the form of a statement, for messages
    :raises CoachError: if the text has another form
    """
    try:
        found = ast.parse(text).body
        other = next((source_of(one) for one in found if not isinstance(one, ast.Assign) or len(one.targets) > 1), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CoachError(
            f"{what}: cannot read {shortened(text)!r}: write {form}; separate several settings by semicolons"
        ) from error
    if other is not None:
        raise CoachError(f"{what}: '{other}' does not have the form {form}")
    return cast("list[ast.Assign]", found)


def _path(node: ast.expr) -> tuple[Step, ...]:
    path = tuple(_steps(node))
    return path[1:] if len(path) > 1 and path[0] == Step("schedule_params") else path


def _steps(node: ast.expr) -> Iterator[Step]:
    if isinstance(node, ast.Name):
        yield _attribute(node.id)
    elif isinstance(node, ast.Attribute):
        yield from _steps(node.value)
        yield _attribute(node.attr)
    elif isinstance(node, ast.Subscript):
        yield from _steps(node.value)
        yield Step(_key(node), is_item=True)
    else:
        raise CoachError(f"-cp: '{source_of(node)}' is not a path: only names, attributes and [keys] may be left of =")


def _attribute(name: str) -> Step:
    if name.startswith("_"):
        raise CoachError(f"-cp: '{name}' is not a parameter: names that start with an underscore cannot be set")
    return Step(name)


def _key(node: ast.Subscript) -> Union[str, int]:
    key = _value(node.slice)
    if isinstance(key, bool) or not isinstance(key, (str, int)):
        raise CoachError(f"-cp: '{source_of(node)}': a key must be a string or a whole number")
    return key


def _value(node: ast.expr) -> Any:
    """The value of an expression. It is computed without ``eval``, and other expressions than the allowed ones are
    refused.
    """
    if isinstance(node, ast.Constant) and not isinstance(node.value, (bytes, complex, type(...))):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        items = [_value(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict):
        return _dictionary(node)
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](number(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _arithmetic(node)
    if isinstance(node, ast.Call):
        return _construct(node)
    if isinstance(node, ast.Attribute):
        return _enum_member(node)
    if isinstance(node, ast.Name) and CONSTRUCTORS.get(node.id) == "rl_coach.architectures.layers":
        return _constructor(node.id)
    raise CoachError(f"-cp: '{source_of(node)}' is not an allowed value{_nearest_name(node)}")


def _dictionary(node: ast.Dict) -> dict:
    keys = [None if key is None else _value(key) for key in node.keys]
    for key in keys:
        if not isinstance(key, (str, int, float)):
            raise CoachError(f"-cp: '{source_of(node)}': a key of a dictionary must be a string or a number")
    return dict(zip(keys, [_value(value) for value in node.values]))


def number(node: ast.expr) -> Any:
    """The value of an expression that is a number. :raises CoachError: if the value is not a number"""
    value = _value(node)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise CoachError(f"-cp: '{source_of(node)}' is not a number; arithmetic needs numbers")
    return value


def _arithmetic(node: ast.BinOp) -> Any:
    left, right = number(node.left), number(node.right)
    if isinstance(node.op, ast.Pow) and abs(right) > _LARGEST_EXPONENT:
        raise CoachError(f"-cp: '{source_of(node)}': an exponent may be at most {_LARGEST_EXPONENT}")
    try:
        result = _BINARY[type(node.op)](left, right)
    except (ArithmeticError, ValueError) as error:
        raise CoachError(f"-cp: '{source_of(node)}' cannot be computed: {error}") from None
    if isinstance(result, complex) or (isinstance(result, int) and result.bit_length() > 2**12):
        raise CoachError(f"-cp: '{source_of(node)}' is too large, or is not a real number")
    return result


def _construct(node: ast.Call) -> Any:
    if not isinstance(node.func, ast.Name):
        raise CoachError(f"-cp: '{source_of(node.func)}' cannot be called here; you can call only {_known()}")
    name = node.func.id
    if name not in CONSTRUCTORS:
        suggestion = did_you_mean(name, CONSTRUCTORS) or f"; you can call {_known()}"
        raise CoachError(f"-cp: '{name}' cannot be called here{suggestion}")
    if any(keyword.arg is None for keyword in node.keywords):
        raise CoachError(f"-cp: '{source_of(node)}': ** is not allowed here")
    arguments = [_value(argument) for argument in node.args]
    keywords = {str(keyword.arg): _value(keyword.value) for keyword in node.keywords}
    constructor = _constructor(name)
    declared = list(inspect.signature(constructor.__init__).parameters.values())[1:]
    parameters = [one.name for one in declared if one.kind is one.POSITIONAL_OR_KEYWORD]
    if unknown := next((keyword for keyword in keywords if keyword not in parameters), None):
        raise CoachError(f"-cp: '{name}' has no parameter '{unknown}'{choose_from(unknown, parameters)}")
    try:
        made = constructor(*arguments, **keywords)
    except (TypeError, ValueError) as error:
        raise CoachError(f"-cp: '{source_of(node)}': {error}") from None
    return _whole_steps(made, node) if isinstance(made, StepMethod) else made


def literal_arguments(what: str, text: str) -> dict[str, Any]:
    """Parse the keyword arguments in ``(name=value, ...)``. The values have the same form as in ``-cp``.

    :param what: the beginning of error messages
    :param text: the arguments with their parentheses
    :raises CoachError: if the text has another form
    """
    try:
        call = ast.parse(f"f{text}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CoachError(f"{what}: '{shortened(text)}' cannot be read: write (name=value, other=value)") from None
    if not isinstance(call, ast.Call) or call.args or any(keyword.arg is None for keyword in call.keywords):
        raise CoachError(f"{what}: give arguments by name, as in (name=value, other=value)")
    try:
        return {str(keyword.arg): _value(keyword.value) for keyword in call.keywords}
    except CoachError as error:
        raise CoachError(str(error).replace("-cp", what, 1)) from None


def _whole_steps(steps: StepMethod, node: ast.Call) -> StepMethod:
    """Convert the number of ``steps`` to an int, so that users can write ``EnvironmentSteps(1e6)``."""
    count: Any = steps.num_steps
    if isinstance(count, bool) or not isinstance(count, (int, float)) or count < 0 or count != count // 1:
        raise CoachError(f"-cp: '{source_of(node)}' needs a whole number, 0 or more")
    return type(steps)(int(count))


def _constructor(name: str) -> Any:
    return getattr(importlib.import_module(CONSTRUCTORS[name]), name)


def _enum_member(node: ast.Attribute) -> Enum:
    if not isinstance(node.value, ast.Name) or node.value.id not in ENUMS:
        raise CoachError(f"-cp: '{source_of(node)}' is not an allowed value{_nearest_name(node.value)}")
    members = getattr(importlib.import_module(ENUMS[node.value.id]), node.value.id).__members__
    if node.attr not in members:
        raise CoachError(f"-cp: '{node.value.id}' has no member '{node.attr}'{choose_from(node.attr, members)}")
    return members[node.attr]


def _nearest_name(node: ast.AST) -> str:
    if not isinstance(node, ast.Name):
        return ""
    begun = [name for name in CONSTRUCTORS if len(node.id) > 2 and name.startswith(node.id)]
    if begun:
        return f"; write {begun[0]}(...)"
    quotes = "" if did_you_mean(node.id, [*CONSTRUCTORS, *ENUMS]) else f"; write a text in quotes: '{node.id}'"
    return did_you_mean(node.id, [*CONSTRUCTORS, *ENUMS, "True", "False", "None"]) or quotes


def _known() -> str:
    return ", ".join(sorted(CONSTRUCTORS))


def source_of(node: ast.AST) -> str:
    """The source text of an expression or a statement, shortened for messages."""
    return shortened(ast.unparse(node))


def shortened(text: str) -> str:
    """A text, cut to 80 characters for messages."""
    return text if len(text) <= 80 else f"{text[:77]}..."


@dataclass(frozen=True)
class _Target:
    """The place at the end of a path: its last step, and the object that has the attribute or item."""

    holder: Any
    last: Step

    @classmethod
    def find(cls, graph_manager: Any, path: tuple[Step, ...]) -> _Target:
        """Find the place of a path.

        :raises CoachError: if the path does not exist; the message contains the nearest path
        """
        target, walked = cls(graph_manager, path[0]), ""
        for following in path[1:]:
            if not target.exists():
                raise CoachError(_no_such_parameter(graph_manager, walked, target))
            walked = f"{walked}{target.last}".lstrip(".")
            target = cls(target.get(), following)
        if not target.exists() and not target.is_new():
            raise CoachError(_no_such_parameter(graph_manager, walked, target))
        return target

    def exists(self) -> bool:
        key = self._key
        if not self.last.is_item:
            if self._is_read_only():  # do not read the attribute, because its property may raise an error
                return True
            if str(key) in _attributes_of_a_run() and is_graph_manager(self.holder):  # it is not a setting
                return False
            return hasattr(self.holder, str(key)) and not inspect.isroutine(self.get())
        if isinstance(self.holder, dict):
            return key in self.holder
        return isinstance(self.holder, list) and isinstance(key, int) and -len(self.holder) <= key < len(self.holder)

    @property
    def _key(self) -> Any:
        """The key of an item. If the keys are classes, a path contains the name of the class, such as a kind of action
        space in the exploration parameters.
        """
        keys = self.holder if self.last.is_item and isinstance(self.holder, dict) else ()
        return {key.__name__: key for key in keys if isinstance(key, type)}.get(str(self.last.key), self.last.key)

    def is_new(self) -> bool:
        """True for a new key of a dictionary of plain values. Dictionaries of networks or embedders accept no new
        key.
        """
        is_free = isinstance(self.holder, dict) and not any(hasattr(item, "__dict__") for item in self.holder.values())
        return self.last.is_item and is_free

    def get(self) -> Any:
        if not self.last.is_item:
            try:
                return getattr(self.holder, str(self.last.key))
            except NotImplementedError as error:
                raise CoachError(f"-cp: '{self.last}' cannot be read: {error}") from error
        return self.holder.get(self._key) if isinstance(self.holder, dict) else self.holder[self._key]

    def set(self, value: Any) -> None:
        if self.last.is_item:
            self.holder[self._key] = value
        else:
            setattr(self.holder, str(self.last.key), value)

    def undo(self) -> Callable[[], None]:
        """A function that gives the place its current value again."""
        if self.is_new() and not self.exists():
            return lambda: self.holder.pop(self._key)
        before = self.get()
        return lambda: self.set(before)

    def check(self, assignment: Assignment) -> None:
        """Check that an assignment is possible.

        :raises CoachError: if the place cannot be set, or the new value has another kind than the current value
        """
        if not self.last.is_item and (self._is_read_only() or not hasattr(self.holder, "__dict__")):
            raise CoachError(f"-cp: '{assignment}' can be read but not set")
        constraint = self._constraint()
        wanted = None if self._is_declared(assignment.value) else _wanted_kind(self.get(), assignment.value)
        if wanted and constraint is not None and isinstance(self.get(), Enum):
            wanted = constraint.allowed
        if isinstance(self.holder, Schedule) and not _is_number(assignment.value):
            wanted = wanted or "a number"
        if wanted:
            # a text of -cp cannot make most objects
            is_fixed = _is_object(current := self.get()) and type(current).__name__ not in CONSTRUCTORS
            instead = f"; to change the present object, set '{assignment}.NAME'" if is_fixed else ""
            raise CoachError(f"-cp: '{assignment}' must be {wanted}, not {assignment.value!r}{instead}")
        if constraint is not None:
            refuse(wrong_value(str(assignment), assignment.value, constraint))

    def _constraint(self) -> Constraint | None:
        """The values that the parameter class allows in this place; None if it does not say so."""
        return None if self.last.is_item else constraints_of(type(self.holder)).get(str(self.last.key))

    def _is_declared(self, value: Any) -> bool:
        """True if the constraints of the parameter class allow the value, although the current value has another kind:
        None, or a schedule instead of a number, or a number instead of a schedule.
        """
        constraint = self._constraint()
        may_differ = value is None or any(isinstance(one, Schedule) for one in (self.get(), value))
        return may_differ and constraint is not None and constraint.holds(value)

    def _is_read_only(self) -> bool:
        if self.last.key == "path" and isinstance(self.holder, Parameters):
            return True  # the path selects the class that these parameters belong to
        attribute = getattr(type(self.holder), str(self.last.key), None)
        return isinstance(attribute, property) and attribute.fset is None

    def names(self) -> list[str]:
        """The names or keys that could be the last step of the path."""
        if not self.last.is_item:
            of_run = _attributes_of_a_run() if is_graph_manager(self.holder) else ()
            names = getattr(self.holder, "__dict__", {})
            return [name for name in names if not name.startswith("_") and name not in of_run]
        if isinstance(self.holder, list):
            return [str(index) for index in range(len(self.holder))]
        return [str(_written(key)) for key in self.holder] if isinstance(self.holder, dict) else []


_GENERAL = ("object", "Constrained", "Parameters", "NetworkComponentParameters", "Filter", "KeepsEpisodeState")
"""General base classes. If two objects have only these base classes in common, one cannot replace the other."""


@functools.cache
def _attributes_of_a_run() -> frozenset[str]:
    """Attributes of graph managers that are not settings."""
    from rl_coach.graph_managers.graph_manager import GraphManager, SimpleSchedule

    settings = {"name", "visualization_parameters", *GraphManager.constraints}
    return frozenset(vars(GraphManager("", SimpleSchedule()))) - settings


def _wanted_kind(current: Any, value: Any) -> str | None:
    """A description of the values that can replace ``current``; None if ``value`` can replace it."""
    if isinstance(current, StepMethod) and not isinstance(value, StepMethod):
        count = value if _is_number(value) else current.num_steps
        return f"a number of steps with its unit, such as EnvironmentSteps({count}) or TrainingSteps({count})"
    if isinstance(current, bool) and not isinstance(value, bool):
        return "True or False"
    if isinstance(current, Enum) and not isinstance(value, (type(current), list, tuple)):
        return f"one of {', '.join(str(member) for member in type(current))}"
    if type(current) in (int, float) and (isinstance(value, (str, Enum, StepMethod, dict)) or _is_object(value)):
        return f"a number such as {current!r}"
    if type(current) is str and isinstance(value, (int, float, list, tuple, dict, StepMethod)):
        return "a text"
    if isinstance(current, type) and not callable(value):
        return f"a layer such as {current.__name__}"
    if _is_object(current):
        return _wanted_object(current, value)
    if isinstance(current, (list, dict)):
        return _wanted_items(current, value)
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_object(value: Any) -> bool:
    """True for objects that contain settings: parameters, filters, schedules, layers."""
    return isinstance(value, (Parameters, Filter, Schedule))


def _wanted_object(current: Any, value: Any) -> str | None:
    """The result of ``_wanted_kind`` for an object. A filter may be None, which selects the environment's filter."""
    kinds = [kind for kind in type(current).__mro__ if not kind.__name__.startswith("_")]
    kind = next(kind for kind in reversed(kinds) if kind.__name__ not in _GENERAL)
    if isinstance(value, kind) or (value is None and isinstance(current, Filter)):
        return None
    return f"{kind.__name__}, such as {type(current).__name__}"


def _wanted_items(current: list | dict, value: Any) -> str | None:
    """The result of ``_wanted_kind`` for a list or a dictionary. If it contains objects such as layers, the new items
    must be objects of the same kind.
    """
    if not isinstance(value, (list, tuple) if isinstance(current, list) else dict):
        return "a list" if isinstance(current, list) else "a dictionary"
    present, given = (list(one.values()) if isinstance(one, dict) else list(one) for one in (current, value))
    if not any(map(_is_object, present)):
        return None
    wanted = next(filter(None, (_wanted_kind(present[0], one) for one in given)), None)
    return wanted and f"a collection of {wanted}"


def _no_such_parameter(graph_manager: Any, walked: str, target: _Target) -> str:
    step = target.last
    where = f"'{walked}' has" if walked else "there is"
    what = f"item {step.key!r}" if step.is_item else f"parameter '{step.key}'"

    def paths_of(name: str) -> list[str]:
        if name in target.names():
            return [name]
        return [path for path in _all_paths(graph_manager) if path.rpartition(".")[2] == name]

    suggestion = hint_on_the_command_line(str(step.key), paths_of) or did_you_mean(str(step.key), target.names())
    if not step.is_item and isinstance(target.holder, dict) and step.key in target.holder:
        suggestion = f"; did you mean {f'{walked}[{step.key!r}]'!r}?"
    if not suggestion:
        same_name = paths_of(str(step.key))
        suggestion = f"; did you mean {' or '.join(map(repr, same_name[:3]))}?" if same_name else ""
    if not suggestion and target.names():
        suggestion = f"; choose from {', '.join(sorted(target.names()))}"
    return f"-cp: {where} no {what}{suggestion}"


def _all_paths(graph_manager: Any) -> Iterator[str]:
    """The paths of all settings below the graph manager, for suggestions."""
    below = ("agent_params", "env_params", "visualization_parameters")
    for name in below:
        if hasattr(graph_manager, name):
            yield from _paths_below(getattr(graph_manager, name), name, depth=4)


def _paths_below(obj: Any, path: str, depth: int) -> Iterator[str]:
    yield path
    if depth == 0:
        return
    if isinstance(obj, dict):
        for key, value in obj.items():
            yield from _paths_below(value, f"{path}[{_written(key)!r}]", depth - 1)
    elif hasattr(obj, "__dict__") and not isinstance(obj, (Enum, type)):
        for name, value in vars(obj).items():
            if not name.startswith("_"):
                yield from _paths_below(value, f"{path}.{name}", depth - 1)


def _written(key: Any) -> Any:
    """The text of a key in a path. A class is written as its name."""
    return key.__name__ if isinstance(key, type) else key
