"""Reads the calls and the values in a Python script without running the script."""

from __future__ import annotations

import ast
import operator
from dataclasses import dataclass
from typing import Any, Callable, Sequence

from rl_coach.utils import CoachError

_ACTIVATIONS = {"Tanh": "tanh", "ReLU": "relu", "ELU": "elu", "SELU": "selu", "LeakyReLU": "leaky_relu",
                "Sigmoid": "sigmoid", "Softplus": "softplus"}  # fmt: skip
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}  # fmt: skip

_ENDS_OF_A_LINE = ("start", "end", "end_fraction")


@dataclass(frozen=True)
class Linear:
    """A value that changes linearly during the run.

    :param first: the first value
    :param last: the last value
    :param share: the share of the run in which the value changes; then it is constant
    """

    first: float
    last: float = 0.0
    share: float = 1.0


class UnknownValueError(Exception):
    """Raised if the value of an expression is known only when the script runs."""


def _line_of(node: Any) -> int:
    return getattr(node, "lineno", 0)


class Script:
    """The calls and the values of a script.

    :param source: the script's text
    :param name: the script's name, for messages
    :ivar trains_when_imported: True if an import of the script would train
    :ivar left_out: the parts that are not converted, with their line numbers
    :raises CoachError: if the text is not Python
    """

    def __init__(self, source: str, name: str):
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise CoachError(f"{name}:{getattr(error, 'lineno', 0)}: {getattr(error, 'msg', error)}") from None
        self.left_out: list[tuple[int, str]] = []
        self.nodes = sorted(ast.walk(tree), key=_line_of)
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        top = [one for one in tree.body if not isinstance(one, (ast.FunctionDef, ast.If, ast.ClassDef))]
        self.trains_when_imported = any(
            getattr(getattr(node, "func", None), "attr", "") == "learn" for one in top for node in ast.walk(one)
        )
        self.classes = {node.name for node in self.nodes if isinstance(node, ast.ClassDef)}
        self._imports: dict[str, tuple[str, str]] = {}
        self.values: dict[str, list[tuple[int, ast.expr]]] = {}
        self.functions = {node.name: node for node in self.nodes if isinstance(node, ast.FunctionDef)}
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom):
                self._imports |= {one.asname or one.name: (node.module or "", one.name) for one in node.names}
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._assign(node.targets[0].id, node, node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self._assign(node.target.id, node, node.value)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self._assign(node.target.id, node, ast.BinOp(node.target, node.op, node.value))

    def _assign(self, name: str, node: ast.stmt, value: ast.expr) -> None:
        self.values.setdefault(name, []).append((node.lineno, value))

    def origin(self, node: ast.AST) -> tuple[str, str]:
        """The module and the name of the imported object that an expression (a name or an attribute) stands for."""
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        return self._imports.get(name, ("", name))

    def called(self, node: Any) -> str:
        """The name of the class or function in a call; empty for other expressions."""
        return self.origin(node.func)[1] if isinstance(node, ast.Call) else ""

    def resolve(self, node: Any) -> Any:
        """Replace a name by the expression that was assigned to it. Other expressions are returned unchanged."""
        while isinstance(node, ast.Name) and node.id in self.values:
            before = [value for line, value in self.values[node.id] if line < node.lineno]
            if not before:
                break
            node = before[-1]
        return node

    def value(self, node: Any) -> Any:
        """The value of an expression that consists of literals, arithmetic and names.

        :raises UnknownValueError: if the expression has other parts
        """
        node = self.resolve(node)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.value(one) for one in node.elts]
        if isinstance(node, ast.Dict) and all(node.keys):
            return {self.value(key): self.value(one) for key, one in zip(node.keys, node.values)}
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](self.value(node.left), self.value(node.right))
        if isinstance(node, ast.Attribute) and node.attr in _ACTIVATIONS:
            return _ACTIVATIONS[node.attr]
        if isinstance(node, ast.Lambda):
            return self._linear(node.args.args, node.body)
        if isinstance(node, ast.Call):
            return self._called_value(node)
        raise UnknownValueError(ast.unparse(node))

    def _called_value(self, node: ast.Call) -> Any:
        name = self.called(node)
        if name == "dict":
            return {one.arg: self.value(one.value) for one in node.keywords}
        if name in ("int", "float") and node.args:
            return (int if name == "int" else float)(self.value(node.args[0]))
        if name in ("zeros", "ones"):
            return float(name == "ones")
        if name in ("get_linear_fn", "LinearSchedule"):
            given = self.keywords(node, _ENDS_OF_A_LINE)
            return Linear(*(self.value(given[one]) for one in _ENDS_OF_A_LINE if one in given))
        if (function := self.functions.get(name)) is not None and len(node.args) == 1:
            inner = [one for one in ast.walk(function) if isinstance(one, ast.FunctionDef)][1:]
            returned = inner[0].body[-1] if inner else None
            if isinstance(returned, ast.Return):
                names = {getattr(one, "id", "") for one in _factors(returned.value)}
                if names == {one.args.args[0].arg for one in (function, inner[0]) if one.args.args}:
                    return Linear(self.value(node.args[0]))
        raise UnknownValueError(ast.unparse(node))

    def _linear(self, arguments: Sequence[ast.arg], body: ast.expr) -> Linear | float:
        if len(arguments) == 1:
            names = [one for one in _factors(body) if isinstance(one, ast.Name) and one.id == arguments[0].arg]
            others = [one for one in _factors(body) if one not in names]
            if len(others) == 1 and len(names) <= 1:
                first = self.value(others[0])
                return Linear(first) if names else first
        raise UnknownValueError(f"a function of {len(arguments)} values")

    def leave_out(self, node: Any, text: str) -> None:
        """Record a part that is not converted. :param text: the description of the part"""
        self.left_out.append((_line_of(node), text))

    def keywords(self, call: ast.Call, positional: Sequence[str]) -> dict[str, ast.expr]:
        """The arguments of a call by name, including the arguments in ``**values``.

        :param positional: the names of the positional arguments
        """
        found = dict(zip(positional, call.args))
        for word in call.keywords:
            given = self.resolve(word.value)
            if word.arg is not None:
                found[word.arg] = word.value
            elif isinstance(given, ast.Dict):
                found |= {str(self.value(key)): one for key, one in zip(given.keys, given.values) if key is not None}
            elif self.called(given) == "dict":
                found |= {str(one.arg): one.value for one in given.keywords}
            else:
                self.leave_out(word.value, f"**{ast.unparse(word.value)}")
        return found

    def known(self, name: str, node: Any, otherwise: Any) -> Any:
        """The value of an argument. If the value is not known, record this and return ``otherwise``."""
        try:
            value = self.value(node)
            is_number = isinstance(value, (int, float, list, Linear))
            if value is None or is_number or not isinstance(otherwise, (int, float)):
                return value
            raise TypeError(value)
        except (UnknownValueError, TypeError, ValueError, ArithmeticError):
            self.leave_out(node, f"{name}={ast.unparse(node)}: its value is known only when the script runs")
            return otherwise


def _factors(node: Any) -> list[Any]:
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else [node]
