"""The later definition counts, wherever it stands: in the class, a mixin, a grandchild, or on the instance."""

from __future__ import annotations

import pytest

from rl_coach.utilities.overrides import OverrideTable

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
