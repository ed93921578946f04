"""Tables of what an override in a user's class makes void.

Two definitions of a class can exclude each other: an exploration policy with a ``get_action`` of its own is not
deployed by the ``action_choice`` that it inherits. The later definition counts, in the order in which Python looks
names up: the instance first, then its class, mixins and bases.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any, Collection, Mapping


class OverrideTable:
    """A table of declarations, and of the methods whose later override makes each of them void.

    :param replaced_by: these methods by the name of the declaration
    :param replaced_beside: declarations that are void too where a class overrides both the declaration and the method
    """

    def __init__(self, replaced_by: Mapping[str, tuple[str, ...]], replaced_beside: Collection[str] = ()):
        self.replaced_by = replaced_by
        self._replaced_beside = replaced_beside

    def is_replaced(self, holder: Any, name: str) -> bool:
        """True if one of the methods that replace ``name`` was overridden later than ``name`` was declared.

        A class that has both means what it declares.

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


def users_classes(kind: type) -> list[type]:
    """The classes of a user's, from the most derived on, before the first class that comes with Coach."""
    return list(itertools.takewhile(lambda one: one.__module__.partition(".")[0] != "rl_coach", kind.__mro__))


def why_not_on_fast_path(part: Any, allowed: Collection[str]) -> str | None:
    """The override that keeps a part off a fast path, ``Class.method``; None if it may take it.

    A fast path does not call every method that the ordinary path calls. So it lists the methods that a user may
    override; any other override of a method that comes with Coach excludes it. New methods do not count.

    :param part: an agent, a filter, a memory or an exploration policy
    :param allowed: the methods that the fast path calls as the ordinary path does
    """
    kind = type(part)
    users = users_classes(kind)
    known = [one for one in kind.__mro__ if one not in users and one is not object]
    for name in vars(part):  # methods that were assigned to the instance
        if callable(vars(part)[name]) and _is_method(known, name) and name not in allowed:
            return f"{kind.__name__}.{name}"
    for one in users:
        for name in vars(one):
            if name not in allowed and not name.startswith("__") and _is_method(known, name):
                return f"{one.__name__}.{name}"
    return None


def _is_method(classes: list[type], name: str) -> bool:
    found = next((vars(one)[name] for one in classes if name in vars(one)), None)
    return callable(found) or isinstance(found, (property, classmethod, staticmethod))
