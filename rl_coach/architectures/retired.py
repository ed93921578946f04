"""Classes of Coach 1.0.1 that built TensorFlow 1 graphs. A subclass raises an error that names the replacement."""

from __future__ import annotations

import importlib.abc
import sys
from typing import Any, Callable, NoReturn

from rl_coach.utils import CoachError


class RetiredBase:
    """Base class of classes that were removed. Using them, also as a base class, raises an error with a message of one
    line.

    :cvar successor: the class to derive from instead
    :cvar method: the method that a subclass implements, and its arguments
    """

    successor = ""
    method = ""

    def __new__(cls, *args: Any, **kwargs: Any) -> RetiredBase:
        cls.refuse()

    @classmethod
    def refuse(cls) -> NoReturn:
        """Refuse the use of a removed class. :raises CoachError: always; the message names the replacement"""
        raise CoachError(cls.advice(f"{cls.__module__}.{cls.__qualname__}"))

    @classmethod
    def advice(cls, name: str) -> str:
        """A message that names the replacement. :param name: the removed name"""
        return (
            f"{name} needs TensorFlow 1, which Coach does not support: derive from {cls.successor} and write "
            f"{cls.method} (docs/adding_an_agent.md)"
        )


class Head(RetiredBase):
    """``architectures.tensorflow_components.heads.head.Head`` of Coach 1."""

    successor = "rl_coach.architectures.heads.Head"
    method = (
        "__call__(self, layers, features, inputs), which returns the outputs by name; write the loss in an update rule"
    )


class InputEmbedder(RetiredBase):
    """``architectures.tensorflow_components.embedders.embedder.InputEmbedder`` of Coach 1."""

    successor = "rl_coach.architectures.embedders.InputEmbedder"
    method = "embed(self, layers, x), which returns the features"


class Middleware(RetiredBase):
    """``architectures.tensorflow_components.middlewares.middleware.Middleware`` of Coach 1."""

    successor = "rl_coach.architectures.middlewares.Middleware"
    method = "__call__(self, layers, x, state), which returns the features and the new state"


class _RetiredModules(importlib.abc.MetaPathFinder):
    """An import finder that raises an error for the removed modules of a package. It comes after all other finders.

    :param package: the full name of the package
    :param base: the base class of the removed classes in these modules
    """

    def __init__(self, package: str, base: type[RetiredBase]):
        self._package, self._base = package, base

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.rpartition(".")[0] == self._package:
            raise CoachError(self._base.advice(fullname))


def retired_names(module: str, base: type[RetiredBase]) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a module with removed names, or of a package with removed modules.

    :param module: the full name of the module or package
    :param base: the base class of the removed classes
    """
    is_package = hasattr(sys.modules[module], "__path__")
    if is_package:
        sys.meta_path.append(_RetiredModules(module, base))

    def answer(name: str) -> Any:
        may_be_a_module = is_package and name.islower()
        if name.startswith("__") or may_be_a_module:  # Python itself looks up names such as __path__
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        raise CoachError(base.advice(f"{module}.{name}"))

    return answer
