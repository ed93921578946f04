"""Overrides in users' classes. They can make a declaration void, and exclude a fast path.

A declaration (such as ``action_choice`` of an exploration policy) describes methods (such as ``get_action``). If a
subclass overrides only the method, the inherited declaration is wrong and must not be used. So the definition that
Python finds first counts: on the instance, then in its class, mixins and bases.
"""

from __future__ import annotations

import itertools
from functools import cache
from types import FunctionType
from typing import Any, Collection, Iterable, Mapping, Sequence


class OverrideTable:
    """A table of declarations and the methods that they describe. If a subclass overrides one of these methods, the
    inherited declaration is void.

    :param replaced_by: the methods by the name of the declaration
    :param replaced_beside: declarations that are void even if one class overrides both the declaration and a method
    """

    def __init__(self, replaced_by: Mapping[str, tuple[str, ...]], replaced_beside: Collection[str] = ()):
        self.replaced_by = replaced_by
        self._replaced_beside = replaced_beside

    def is_replaced(self, holder: Any, name: str) -> bool:
        """True if a declaration is void, because a subclass or the instance overrides one of its methods.

        If one class has both, the declaration is valid; exceptions are the declarations in ``replaced_beside``.

        :param holder: an object, or a class
        :param name: a key of ``replaced_by``
        """
        methods, is_class = self.replaced_by[name], isinstance(holder, type)
        kind: Any = holder if is_class else type(holder)
        own = () if is_class else tuple(known for known in (name, *methods) if known in vars(holder))
        return _is_replaced(kind, own, name, methods, name in self._replaced_beside)


@cache
def _is_replaced(kind: Any, on_instance: tuple[str, ...], name: str, methods: tuple[str, ...], beside: bool) -> bool:
    definers = [on_instance, *map(vars, kind.__mro__)]

    def first(one: str) -> int:
        return next((place for place, names in enumerate(definers) if one in names), len(definers))

    declared = first(name)
    is_overridden = any(name in names for names in definers[declared + 1 :])
    wins_where_both_are = beside and is_overridden
    return any(first(method) < declared + wins_where_both_are for method in methods)


def overridden(holder: Any, base: type, names: Iterable[str]) -> frozenset[str]:
    """The methods of ``base`` that a subclass or the instance overrides. :param names: the methods to look at"""
    kind, own = type(holder), vars(holder)
    return frozenset(name for name in names if name in own or getattr(kind, name) is not getattr(base, name))


def users_classes(kind: type) -> list[type]:
    """The user's classes, from the most derived class to the first class of Coach."""
    return list(itertools.takewhile(lambda one: not _comes_with_coach(one), kind.__mro__))


def coachs_class(kind: type) -> type:
    """The first class among ``kind`` and its bases that comes with Coach; ``kind`` itself if there is none."""
    return next((one for one in kind.__mro__ if _comes_with_coach(one)), kind)


def why_not_on_fast_path(part: Any, allowed: Collection[str], declaration: str | None = None) -> str | None:
    """The override that prevents a fast path, as ``Class.method``; None if the part may use the path.

    A fast path does not call all methods that the ordinary path calls. So it lists the methods that a user may override
    (``allowed``). If a user's class or the instance overrides any other method of Coach, the part must not use the fast
    path. Methods with new names do not count, because Coach does not call them.

    :param part: an agent, a filter, a memory or an exploration policy
    :param allowed: the methods that the fast path calls as often as the ordinary path does
    :param declaration: the method that describes the part to the fast path. If a user's class defines it, only
        overrides in its subclasses count
    """
    kind, own = type(part), getattr(part, "__dict__", {})
    classes = [(one, _comes_with_coach(one)) for one in kind.__mro__ if one is not object]
    known = [[vars(later) for later, is_known in classes[place:] if is_known] for place in range(len(classes))]
    if not known[0]:
        return kind.__name__
    for name, value in own.items():  # a cached_property stores its value here, which is not an override
        if callable(value) and name not in allowed and _is_method(known[0], name) and declaration not in own:
            return f"{kind.__name__}.{name}"
    if declaration in own:
        return None
    for (one, is_known), bases in zip(classes, known):
        if is_known:
            continue
        if declaration in vars(one):
            return None
        for name, value in vars(one).items():
            if name not in allowed and _counts(name, value, bases):
                return f"{one.__name__}.{name}"
    return None


def overrides_after(kind: type, declaration: str, allowed: Collection[str]) -> bool:
    """True if a subclass of the class with the declaration overrides a method that is not allowed."""
    classes = [vars(one) for one in kind.__mro__ if one is not object]
    declared = next((place for place, names in enumerate(classes) if declaration in names), len(classes))
    return any(
        name not in allowed and _counts(name, value, classes[place + 1 :])
        for place, names in enumerate(classes[:declared])
        for name, value in names.items()
    )


def _comes_with_coach(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "rl_coach"


def _counts(name: str, value: Any, bases: Sequence[Mapping[str, Any]]) -> bool:
    """True if a value in a class body overrides a method, or replaces a plain attribute by a property."""
    if name == "__init__":  # every path calls it
        return False
    return _is_method(bases, name) or (isinstance(value, property) and any(name in base for base in bases))


def _is_method(classes: Sequence[Mapping[str, Any]], name: str) -> bool:
    found = next((one[name] for one in classes if name in one), None)
    if name.startswith("__"):
        return isinstance(found, FunctionType)
    return callable(found) or hasattr(found, "__get__")
