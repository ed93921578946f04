"""Search spaces: settings with several values, such as ``"learning_rate=1e-4,3e-4; discount=uniform(0.9, 0.999)"``.

The text has the form of ``-cp``. A setting may have several values, separated by commas. A value may contain the
distributions ``choice(...)``, ``uniform(low, high)``, ``log_uniform(low, high)``, ``integers(low, high)`` and
``log_integers(low, high)``. For example, ``LinearSchedule(1, uniform(0.01, 0.1), integers(1000, 20000))`` varies the
numbers of a schedule.
"""

from __future__ import annotations

import ast
import copy
import itertools
import math
import random
import re
import sys
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Sequence, Union

from rl_coach.command_line import custom_parameters
from rl_coach.runs.record import settings_in
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utils import CoachError

Values = Mapping[str, Any]
"""Drawn values by the names of their distributions."""

_RANGES = {
    "uniform": (False, False), "log_uniform": (True, False), "integers": (False, True), "log_integers": (True, True)
}  # fmt: skip
_CHOICE = "choice"
_NOT_IN_NAMES = re.compile(r"[^\w.+-]+")
_LONGEST_VALUE, _LONGEST_NAME = 40, 200
_TRIES = 100


@dataclass(frozen=True)
class Choice:
    """A distribution over several values. :param values: the values, in the form of ``-cp``"""

    values: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, ...]:
        """All values, which are all checked."""
        return self.values

    def __str__(self) -> str:
        return f"{_CHOICE}({', '.join(self.values)})"

    def draw(self, generator: random.Random) -> str:
        return generator.choice(self.values)


@dataclass(frozen=True)
class Range:
    """A distribution of numbers from ``low`` to ``high``.

    :param low: the smallest number
    :param high: the largest number
    :param is_log: True for a uniform distribution of the number's logarithm; False for a uniform distribution of the
        number
    :param is_whole: True for whole numbers
    """

    low: float
    high: float
    is_log: bool = False
    is_whole: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number, which are checked."""
        return self.low, self.high

    def __str__(self) -> str:
        name = next(name for name, kind in _RANGES.items() if kind == (self.is_log, self.is_whole))
        return f"{name}({self.low:g}, {self.high:g})"

    def draw(self, generator: random.Random) -> float:
        if self.is_whole and not self.is_log:
            return generator.randint(int(self.low), int(self.high))
        if not self.is_log:
            return generator.uniform(self.low, self.high)
        value = math.exp(generator.uniform(math.log(self.low), math.log(self.high)))
        return round(value) if self.is_whole else value


Distribution = Union[Choice, Range]


@dataclass(frozen=True)
class Dimension:
    """A setting with several values.

    :param name: the setting's path, as the user has written it
    :param value: the expression of the setting's value; names in it are placeholders for drawn values
    :param distributions: the distributions of the drawn values, by these names
    """

    name: str
    value: ast.expr
    distributions: Mapping[str, Distribution]

    def text(self, drawn: Values) -> str:
        """The setting's value for ``-cp``. :param drawn: the values that replace the placeholders"""
        written = {name: _written(drawn[name], one) for name, one in self.distributions.items()}
        if isinstance(self.value, ast.Name) and self.value.id in written:
            return written[self.value.id]
        return ast.unparse(_Filled(written).visit(copy.deepcopy(self.value)))


@dataclass(frozen=True)
class Setting:
    """A point of the search space.

    :param name: the differences from the other points, such as ``learning_rate=1e-4,discount=0.9``; also used as the
        name of a directory
    :param custom_parameter: the settings for ``-cp``, with whole paths
    """

    name: str
    custom_parameter: str


def parse(text: str, what: str) -> list[Dimension]:
    """Parse the dimensions of a search space.

    :param what: the beginning of error messages
    :raises CoachError: if the text cannot be parsed, the ends of a range are not allowed, or a path appears twice
    """
    source = text.strip().strip(";").strip()
    statements = custom_parameters.statements(source, what, "path=value,value")
    dimensions = [_dimension(statement, source, what) for statement in statements]
    if not dimensions:
        raise CoachError(f"{what}: there is no setting: write path=value,value")
    names = [one.name for one in dimensions]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CoachError(f"{what}: '{twice}' is set twice: leave one out")
    return dimensions


def grid(dimensions: Sequence[Dimension], what: str) -> list[Values]:
    """All combinations of values.

    :param what: the beginning of error messages
    :raises CoachError: if a setting has a range, because a range has no finite list of values
    """
    found = distributions(dimensions)
    for name, one in found.items():
        if isinstance(one, Range):
            raise CoachError(f"{what}: '{name}' has a range: use --random N, which draws N combinations")
    values = [one.values for one in found.values() if isinstance(one, Choice)]
    return [dict(zip(found, combination)) for combination in itertools.product(*values)]


def size(dimensions: Sequence[Dimension]) -> int | None:
    """The number of combinations; None if a setting has a range."""
    found = distributions(dimensions).values()
    return math.prod(len(one.ends) for one in found) if all(isinstance(one, Choice) for one in found) else None


def draw(dimensions: Sequence[Dimension], number: int, seed: int = 0) -> list[Values]:
    """Draw different combinations at random.

    :param number: number of combinations; fewer are returned if the space has fewer
    :param seed: the seed; the same seed draws the same combinations
    """
    found = distributions(dimensions)
    generator = random.Random(seed)
    combinations = size(dimensions)
    if combinations is not None and combinations <= sys.maxsize:
        # draw the numbers of combinations, because the list of all combinations may not fit into memory
        places = generator.sample(range(combinations), min(number, combinations))
        return [_combination(found, place) for place in places]
    drawn: list[Values] = []
    for _ in range(number * _TRIES):
        values = {name: one.draw(generator) for name, one in found.items()}
        if values not in drawn:
            drawn.append(values)
        if len(drawn) == number:
            break
    return drawn


def _combination(found: Mapping[str, Distribution], place: int) -> Values:
    """The combination with a given index in the order of ``grid``."""
    chosen = {}
    for name, one in reversed(list(found.items())):
        place, at = divmod(place, len(one.ends))
        chosen[name] = one.ends[at]
    return {name: chosen[name] for name in found}


def settings(graph_manager: Any, combinations: Sequence[tuple[Sequence[Dimension], Values]]) -> list[Setting]:
    """The different settings of combinations. Each setting is checked with a copy of the preset's graph manager.

    :param combinations: pairs of dimensions and their drawn values
    :raises CoachError: if a setting does not exist, or does not accept its value
    """
    written = [{one.name: one.text(drawn) for one in dimensions} for dimensions, drawn in combinations]
    every = list(dict.fromkeys(name for one in written for name in one))
    differ = [name for name in every if len({one.get(name) for one in written}) > 1]
    shown = dict(zip(differ, _short_names(differ)))
    found = {}
    for (dimensions, drawn), texts in zip(combinations, written):
        text = custom_parameter(graph_manager, dimensions, drawn)
        if text not in found:
            stop_signals.stop_if_asked()
            check(graph_manager, text)
            name = ",".join(f"{shown[one]}={_in_a_name(value)}" for one, value in texts.items() if one in shown)
            found[text] = Setting(name, text)
    return _with_own_names(list(found.values()))


def custom_parameter(graph_manager: Any, dimensions: Iterable[Dimension], drawn: Values) -> str:
    """The text for ``-cp`` with the drawn values and whole paths.

    :param drawn: their drawn values
    :raises CoachError: if a setting does not exist, a name stands for different settings, or two names stand for the
        same setting
    """
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    for one in dimensions:
        for place in custom_parameters.places(graph_manager, one.name):
            if place in names:
                raise CoachError(f"'{names[place]}' and '{one.name}' are the same setting, {place}: leave one out")
            names[place], texts[place] = one.name, one.text(drawn)
    return "; ".join(f"{place} = {text}" for place, text in texts.items())


def refuse_fixed(
    graph_manager: Any, dimensions: Iterable[Dimension], fixed: str | None, flags: Mapping[str, str] | None = None
) -> None:
    """Check that ``-cp`` does not set a setting that the search varies or a flag sets.

    :param fixed: the settings of ``-cp``
    :param flags: the beginnings of error messages for settings that a flag sets, by path
    :raises CoachError: if ``-cp`` sets such a setting
    """
    places = {place: one.name for one in dimensions for place in custom_parameters.places(graph_manager, one.name)}
    reasons = {place: f"'{name}' varies" for place, name in places.items()} | dict(flags or {})
    for path, _ in settings_in(fixed or ""):
        if path in reasons:
            raise CoachError(f"{reasons[path]}, and -cp sets {path}: leave one out")


def check(graph_manager: Any, text: str) -> None:
    """Check settings for ``-cp`` with a copy of the graph manager. :raises CoachError: if a value is not accepted"""
    from rl_coach.utilities.requirements import check as check_values

    tried = copy.deepcopy(graph_manager)
    custom_parameters.apply_custom_parameters(tried, text)
    check_values(tried)


def check_each_value(graph_manager: Any, dimensions: Sequence[Dimension]) -> None:
    """Check each value of each dimension, or both ends of its range, with a copy of the graph manager.

    :raises CoachError: if a setting does not exist or refuses a value, or two names stand for the same setting
    """
    firsts = {name: one.ends[0] for name, one in distributions(dimensions).items()}
    custom_parameter(graph_manager, dimensions, firsts)
    for dimension in dimensions:
        ends = {name: one.ends for name, one in dimension.distributions.items()}
        first = {name: values[0] for name, values in ends.items()}
        for name, values in ends.items():
            for value in values:
                check(graph_manager, custom_parameter(graph_manager, [dimension], {**first, name: value}))


def _with_own_names(found: Sequence[Setting]) -> list[Setting]:
    """The settings with unique names. If two names are equal, or a name is too long for a file, all names get a number,
    and long names are cut.
    """
    if len({one.name for one in found}) == len(found) and all(len(one.name) <= _LONGEST_NAME for one in found):
        return list(found)
    return [Setting(f"{one.name[:_LONGEST_NAME]}_{number}", one.custom_parameter) for number, one in enumerate(found)]


def distributions(dimensions: Iterable[Dimension]) -> dict[str, Distribution]:
    """The distributions of all dimensions, by the names of their drawn values."""
    return {name: one for dimension in dimensions for name, one in dimension.distributions.items()}


def _dimension(statement: ast.Assign, source: str, what: str) -> Dimension:
    name, value = ast.unparse(statement.targets[0]), statement.value
    is_list = isinstance(value, ast.Tuple) and value.elts and value.col_offset == value.elts[0].col_offset
    options = value.elts if is_list and isinstance(value, ast.Tuple) else [value]
    if not is_list:
        drawing = _Drawing(name, source, what)
        filled = drawing.visit(copy.deepcopy(value))
        if drawing.found:
            return Dimension(name, filled, drawing.found)
    texts = tuple(ast.get_source_segment(source, one) or ast.unparse(one) for one in options)
    return Dimension(name, ast.Name(id=name), {name: _choice(texts, name, what)})


def _choice(texts: Sequence[str], name: str, what: str) -> Choice:
    for text in texts:
        try:
            custom_parameters.parse(f"value = {text}")
        except CoachError as error:
            raise CoachError(str(error).replace("-cp", f"{what}: {name}", 1)) from None
    return Choice(tuple(dict.fromkeys(texts)))


class _Drawing(ast.NodeTransformer):
    """Replaces each distribution in an expression by a name."""

    def __init__(self, name: str, source: str, what: str):
        self._name, self._source, self._what = name, source, what
        self.found: dict[str, Distribution] = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        kind = node.func.id if isinstance(node.func, ast.Name) else ""
        if kind != _CHOICE and kind not in _RANGES:
            return self.generic_visit(node)
        name = self._name if not self.found else f"{self._name}#{len(self.found) + 1}"
        self.found[name] = self._distribution(kind, node)
        return ast.Name(id=name)

    def _distribution(self, kind: str, node: ast.Call) -> Distribution:
        if kind == _CHOICE and node.args and not node.keywords:
            texts = [ast.get_source_segment(self._source, one) or ast.unparse(one) for one in node.args]
            return _choice(texts, self._name, self._what)
        written = f"{self._what}: '{ast.unparse(node)}'"
        if kind == _CHOICE:
            raise CoachError(f"{written}: write {kind}(value, value) with one value or more")
        try:
            if node.keywords:
                raise ValueError
            low, high = (custom_parameters.number(one) for one in node.args)
        except (ValueError, CoachError):
            raise CoachError(f"{written}: write {kind}(low, high) with two numbers") from None
        is_log, is_whole = _RANGES[kind]
        if not (low < high) or (is_log and low <= 0) or (is_whole and (low != int(low) or high != int(high))):
            wanted = f"low < high{', both above 0' if is_log else ''}{', whole numbers' if is_whole else ''}"
            raise CoachError(f"{written}: a range needs {wanted}")
        return Range(low, high, is_log, is_whole)


class _Filled(ast.NodeTransformer):
    """Replaces placeholders in an expression by the texts of drawn values."""

    def __init__(self, written: Mapping[str, str]):
        self._written = written

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._written:
            return node
        return ast.parse(self._written[node.id], mode="eval").body


def _written(value: Any, distribution: Distribution) -> str:
    """A drawn value as a text for ``-cp``. A float has four significant digits, or more in a narrow range."""
    if not isinstance(value, float) or not isinstance(distribution, Range):
        return str(value)
    low, high = distribution.ends
    digits = 4 + max(0, round(math.log10(max(abs(low), abs(high)) / (high - low))))
    return repr(float(min(max(float(f"{value:.{digits}g}"), low), high)))


def _short_names(names: Sequence[str]) -> list[str]:
    """The last part of each path, or the whole path if several paths have the same last part."""
    short = [name.rpartition(".")[2] for name in names]
    return [one if short.count(one) == 1 else name for one, name in zip(short, names)]


def _in_a_name(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", text).strip("_")[:_LONGEST_VALUE]
