"""The later definition counts, wherever it stands: in the class, a mixin, a grandchild, or on the instance."""

from __future__ import annotations

import pytest

from rl_coach.utilities.overrides import OverrideTable, overridden, why_not_on_fast_path

TABLE = OverrideTable({"answer": ("ask",), "guess": ("ask", "look")}, replaced_beside={"guess"})


class Base:
    answer = 1
    guess = 1

    def ask(self): ...
    def look(self): ...


class Asks(Base):
    def ask(self): ...


class Mixin:
    def ask(self): ...


class Mixed(Mixin, Base):
    pass


class Grandchild(Asks):
    pass


class AnswersLater(Asks):
    answer = 2


class Both(Base):
    answer = guess = 2

    def ask(self): ...


@pytest.mark.parametrize(
    ("cls", "is_replaced"),
    [(Base, False), (Asks, True), (Mixed, True), (Grandchild, True), (AnswersLater, False), (Both, False)],
)
def test_the_later_definition_counts(cls, is_replaced):
    assert TABLE.is_replaced(cls, "answer") is is_replaced
    assert TABLE.is_replaced(cls(), "answer") is is_replaced


def test_the_instance_comes_last():
    one = Base()
    one.ask = lambda: None
    assert TABLE.is_replaced(one, "answer") and not TABLE.is_replaced(Base, "answer")
    one.answer = 3
    assert not TABLE.is_replaced(one, "answer")


def test_where_a_class_has_both_the_table_says_which_counts():
    assert TABLE.is_replaced(Both, "guess") and not TABLE.is_replaced(Both, "answer")
    assert not TABLE.is_replaced(Base, "guess"), "there both are first defined"


def test_each_method_of_several_counts():
    one = Base()
    one.look = lambda: None
    assert TABLE.is_replaced(one, "guess") and not TABLE.is_replaced(one, "answer")


class FastBase:
    """One of Coach's classes."""

    __module__ = "rl_coach.example"
    limit = 2

    def act(self): ...
    def ask(self): ...
    def describe(self): ...
    def look(self): ...


class FastDerived(FastBase):
    __module__ = "rl_coach.example"

    def ask(self): ...


class Path(FastBase):
    """A user's class, which has a method with a new name."""

    def helper(self): ...


class Noted(FastBase):
    def ask(self): ...


class Speaks(Noted):
    def describe(self): ...


class SpeaksNoMore(Speaks):
    @property
    def look(self): ...


class Between(FastBase):
    """A user's mixin that comes after one of Coach's classes."""

    def ask(self): ...


class BehindCoachs(FastDerived, Between):
    pass


class Plain:
    def ask(self): ...


class AsProperty(FastBase):
    limit = property(lambda self: 3)


@pytest.mark.parametrize(
    ("cls", "override"),
    [
        (FastBase, None), (FastDerived, None), (Path, None), (Noted, "Noted.ask"), (Speaks, None),
        (SpeaksNoMore, "SpeaksNoMore.look"), (BehindCoachs, "Between.ask"), (Plain, "Plain"),
        (AsProperty, "AsProperty.limit"),
    ],
)  # fmt: skip
def test_a_fast_path_names_the_override_that_it_does_not_list(cls, override):
    assert why_not_on_fast_path(cls(), {"act"}, "describe") == override


def test_a_fast_path_allows_what_it_lists():
    assert why_not_on_fast_path(Noted(), {"ask"}, "describe") is None
    assert why_not_on_fast_path(Speaks(), (), None) == "Speaks.describe"


def test_a_method_on_the_instance_excludes_it():
    part = FastBase()
    part.value = part.helper = lambda: None
    assert why_not_on_fast_path(part, (), "describe") is None, "new names"
    part.ask = lambda: None
    assert why_not_on_fast_path(part, (), "describe") == "FastBase.ask"
    part.describe = lambda: None
    assert why_not_on_fast_path(part, (), "describe") is None, "it speaks for itself"


@pytest.mark.parametrize("kind, expected", [(Base, set()), (Asks, {"ask"}), (Mixed, {"ask"}), (Grandchild, {"ask"})])
def test_methods_that_a_later_class_or_the_instance_overrides_are_found(kind, expected):
    part = kind()
    assert overridden(part, Base, ("ask", "look")) == expected
    part.look = lambda: None
    assert overridden(part, Base, ("ask", "look")) == {"look", *expected}
