"""Functions that find the class of a network's part (embedder, middleware or head) from its parameters."""

from __future__ import annotations

from typing import Any, Mapping, TypeVar

from rl_coach.architectures.retired import RetiredBase
from rl_coach.utils import CoachError, did_you_mean, short_dynamic_import

Component = TypeVar("Component")


def component_class(wanted: Any, known: Mapping[str, type[Component]], base: type[Component]) -> type[Component]:
    """Find the class of a head, an embedder or a middleware: a subclass of ``base``, or of ``torch.nn.Module``.

    :param wanted: a name in ``known``, ``'module:Class'`` (or ``'file.py:Class'``), or a class
    :param known: Coach's classes by name
    :raises CoachError: if the class does not exist, is not a subclass of ``base``, or derives from a class that was
        removed
    """
    found = wanted
    if isinstance(wanted, property):  # an attribute of the class of parameters, not of an object
        raise CoachError("the parameters of a network's part must be an object, not a class: add () to the class")
    if isinstance(wanted, str):
        found = known[wanted] if wanted in known else _imported(wanted, known, base)
    if isinstance(found, type) and issubclass(found, RetiredBase):
        found.refuse()
    if not (isinstance(found, type) and (issubclass(found, base) or is_torch_module(found))):
        raise CoachError(f"{wanted!r} is not a part of a network: use a subclass of {base.__module__}.{base.__name__}")
    return found


def is_torch_module(part: type) -> bool:
    """True for a subclass of ``torch.nn.Module``. This function does not import PyTorch."""
    return any((one.__module__, one.__name__) == ("torch.nn.modules.module", "Module") for one in part.__mro__)


def _imported(path: str, known: Mapping[str, type], base: type) -> Any:
    if ":" in path:
        return short_dynamic_import(path)
    suggestion = did_you_mean(path, known) or f": use one of {', '.join(known)}, or 'module:Class' for your own class"
    raise CoachError(f"no {base.__name__} '{path}'{suggestion}")
