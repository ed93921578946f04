"""The later definition counts, wherever it stands: in the class, a mixin, a grandchild, or on the instance."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import fields
from typing import Any

import pytest

import rl_coach.agents
from rl_coach.agents.agent import Agent
from rl_coach.agents.core.overrides import REPLACED_BY, is_replaced
from rl_coach.agents.core.requirements import AgentRequirements


class Base:
    def make_update_rule(self) -> Any: ...
    def learn_from_batch(self, batch: Any) -> Any: ...
    def reset_internal_state(self) -> None: ...

    episode_class: Any = None


class WithRule(Base):
    def make_update_rule(self) -> Any: ...


class Own(WithRule):
    def learn_from_batch(self, batch: Any) -> Any: ...


class Mixin:
    def learn_from_batch(self, batch: Any) -> Any: ...


class Mixed(Mixin, WithRule):
    pass


class Grandchild(Own):
    pass


class RuleAfterwards(Own):
    def make_update_rule(self) -> Any: ...


class Both(WithRule):
    def make_update_rule(self) -> Any: ...
    def learn_from_batch(self, batch: Any) -> Any: ...


@pytest.mark.parametrize(
    "cls, learns_itself",
    [(Base, False), (WithRule, False), (Own, True), (Mixed, True), (Grandchild, True), (RuleAfterwards, False),
     (Both, True)],
)  # fmt: skip
def test_an_update_of_its_own_replaces_the_rules_before_it(cls, learns_itself):
    assert is_replaced(cls, "make_update_rule") is learns_itself
    assert is_replaced(cls(), "make_update_rule") is learns_itself


def test_the_instance_comes_last():
    agent = WithRule()
    agent.learn_from_batch = lambda batch: None
    assert is_replaced(agent, "make_update_rule") and not is_replaced(WithRule, "make_update_rule")
    agent.make_update_rule = lambda: None
    assert is_replaced(agent, "make_update_rule"), "where both are, the update may use the rule"
    agent = Own()
    agent.make_update_rule = lambda: None
    assert not is_replaced(agent, "make_update_rule")


def test_a_declaration_beside_an_override_speaks_of_it():
    class Declared(Base):
        episode_class = int

        def reset_internal_state(self) -> None: ...

    class Later(Declared):
        def reset_internal_state(self) -> None: ...

    assert not is_replaced(Base, "episode_class") and not is_replaced(Declared, "episode_class")
    assert is_replaced(Later, "episode_class")
    agent = Declared()
    agent.reset_internal_state = lambda: None
    assert is_replaced(agent, "episode_class")


def test_no_agent_of_ours_voids_what_it_inherits():
    """Except for NAF, whose actions are continuous: it shows its exploration policy no values."""
    modules = [
        importlib.import_module(f"rl_coach.agents.{m.name}") for m in pkgutil.iter_modules(rl_coach.agents.__path__)
    ]
    ours = {kind for m in modules for kind in vars(m).values() if inspect.isclass(kind) and issubclass(kind, Agent)}
    assert len(ours) > 25
    requirements = [one.name for one in fields(AgentRequirements) if one.name in REPLACED_BY]
    void = {
        (kind.__name__, name)
        for kind in ours
        for name in requirements
        if getattr(kind, name, None) and is_replaced(kind, name)
    }
    assert void == {("NAFAgent", "predicts_values")}
