"""Base classes of Coach 1.0.1 that built TensorFlow 1 graphs: their subclasses are told what to write instead."""

from __future__ import annotations

from typing import Any

from rl_coach.utils import CoachError


class RetiredBase:
    """Base of the retired classes; to subclass one of them is an error of one line.

    :cvar successor: the class to derive from instead
    :cvar method: what that one implements, and what it gets
    """

    successor = ""
    method = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if RetiredBase in cls.__bases__:
            return
        raise CoachError(
            f"{cls.__module__}.{cls.__qualname__} builds a TensorFlow 1 graph, which is gone: derive it from "
            f"{cls.successor} and write {cls.method} (docs/adding_an_agent.md)"
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
