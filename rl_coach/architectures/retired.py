"""Classes of Coach 1.0.1 that built TensorFlow 1 graphs: who derives from them is told what to write instead."""

from __future__ import annotations

import importlib.abc
import sys
from typing import Any, Callable, NoReturn

from rl_coach.utils import CoachError


class RetiredBase:
    """Base of the retired classes; to use one of them, or a subclass, is an error of one line.

    :cvar successor: the class to derive from instead
    :cvar method: the method that this one implements, and its arguments
    """

    successor = ""
    method = ""

    def __new__(cls, *args: Any, **kwargs: Any) -> RetiredBase:
        cls.refuse()

    @classmethod
    def refuse(cls) -> NoReturn:
        """:raises CoachError: always; it says what to write instead"""
        raise CoachError(cls.advice(f"{cls.__module__}.{cls.__qualname__}"))

    @classmethod
    def advice(cls, name: str) -> str:
        """Line that says what to write instead. :param name: what is no more"""
        return (
            f"{name} builds a TensorFlow 1 graph, which is gone: derive it from {cls.successor} and write "
            f"{cls.method} (docs/adding_an_agent.md)"
        )


class Head(RetiredBase):
    """Coach's ``architectures.tensorflow_components.heads.head.Head``."""

    successor = "rl_coach.architectures.heads.Head"
    method = (
        "__call__(self, layers, features, inputs), which returns its outputs by name, and the loss in an update rule"
    )


class InputEmbedder(RetiredBase):
    """Coach's ``architectures.tensorflow_components.embedders.embedder.InputEmbedder``."""

    successor = "rl_coach.architectures.embedders.InputEmbedder"
    method = "embed(self, layers, x), which returns the features"


class Middleware(RetiredBase):
    """Coach's ``architectures.tensorflow_components.middlewares.middleware.Middleware``."""

    successor = "rl_coach.architectures.middlewares.Middleware"
    method = "__call__(self, layers, x, state), which returns the features and the new state"


class _RetiredModules(importlib.abc.MetaPathFinder):
    """Answers the import of a module that Coach had in a package, and that is no more. Asked after all others.

    :param package: its full name
    :param base: of the classes in its modules
    """

    def __init__(self, package: str, base: type[RetiredBase]):
        self._package = package
        self._base = base

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.rpartition(".")[0] == self._package:
            raise CoachError(self._base.advice(fullname))


def retired_names(module: str, base: type[RetiredBase]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module whose other names are no more; of a package, its other modules neither.

    :param module: its full name
    :param base: of the classes that it had
    """
    is_package = hasattr(sys.modules[module], "__path__")
    if is_package:
        sys.meta_path.append(_RetiredModules(module, base))

    def answer(name: str) -> Any:
        may_be_a_module = is_package and name.islower()
        if name.startswith("__") or may_be_a_module:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        raise CoachError(base.advice(f"{module}.{name}"))

    return answer
