"""Tables of what an override in a user's class makes void.

Two definitions of a class can exclude each other: an exploration policy with a ``get_action`` of its own is not
deployed by the ``action_choice`` that it inherits. The later definition counts, in the order in which Python looks
names up: the instance first, then its class, mixins and bases.
"""

from __future__ import annotations

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
