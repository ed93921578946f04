"""What agents require of spaces, memory and networks: values in, lines out, no agent."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.requirements import (
    POLICY,
    AgentRequirements,
    MemoryRequirement,
    NetworkRequirement,
    Q,
    V,
    requirements_of,
    unmet_by_recurrent_networks,
)
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgentParameters
from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.base_parameters import AgentParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import Memory, MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace

TRANSITIONS = (MemoryGranularity.Transitions, 100)


def lines(
    requirements: AgentRequirements,
    parameters: AgentParameters | None = None,
    memory: Memory | None = None,
    actions: Any = None,
    **algorithm: Any,
) -> list[str]:
    parameters = parameters or DQNAgentParameters()
    for name, value in algorithm.items():
        setattr(parameters.algorithm, name, value)
    memory = memory or ExperienceReplay(TRANSITIONS)
    return list(requirements.unmet_by_settings("one", parameters, memory, actions or DiscreteActionSpace(2)))


def test_nothing_is_required_where_nothing_is_declared():
    assert lines(AgentRequirements()) == []


@pytest.mark.parametrize(
    ("actions", "is_met"),
    [
        (BoxActionSpace(2, -1, 1), True),
        (BoxActionSpace(2, -math.inf, 1), False),
        (BoxActionSpace(2, -1, np.array([1, math.inf])), False),
        (DiscreteActionSpace(3), False),
    ],
)
def test_actions_between_finite_bounds(actions, is_met):
    found = lines(AgentRequirements(needs_bounded_actions=True), actions=actions)
    assert is_met == (found == []) and all("'one' needs continuous actions with finite bounds" in one for one in found)


@pytest.mark.parametrize(
    ("need", "memory", "waits", "is_met"),
    [
        (MemoryRequirement.EPISODES, ExperienceReplay, False, False),
        (MemoryRequirement.EPISODES, ExperienceReplay, True, False),
        (MemoryRequirement.EPISODES, EpisodicExperienceReplay, False, True),
        (MemoryRequirement.RETURNS, ExperienceReplay, False, False),
        (MemoryRequirement.RETURNS, ExperienceReplay, True, True),
        (MemoryRequirement.RETURNS, EpisodicExperienceReplay, False, True),
        (MemoryRequirement.NOTHING, ExperienceReplay, False, True),
    ],
)
def test_memories_that_know_episodes_or_returns(need, memory, waits, is_met):
    found = lines(
        AgentRequirements(memory_requirement=need),
        memory=memory(TRANSITIONS),
        store_transitions_only_when_episodes_are_terminated=waits,
    )
    assert is_met == (found == []) and all("set memory to EpisodicExperienceReplayParameters()" in one for one in found)


@pytest.mark.parametrize(("size", "is_met"), [(31, False), (32, True)])
def test_a_batch_must_have_room_in_the_memory(size, is_met):
    parameters = DQNAgentParameters()
    parameters.memory.max_size = (MemoryGranularity.Transitions, size)
    found = lines(AgentRequirements(), parameters)
    assert is_met == (found == [])
    assert is_met or f"batch_size of network 'main' is 32, and memory.max_size is {size} transitions" in found[0]


@pytest.mark.parametrize(("n_step", "is_met"), [(-1, True), (1, True), (2, False)])
def test_sums_of_rewards(n_step, is_met):
    found = lines(AgentRequirements(max_n_step=1), n_step=n_step)
    assert is_met == (found == []) and all(
        "'one' does not support n-step sums of rewards: set algorithm.n_step to -1" in one for one in found
    )


def test_rescalers_that_are_known():
    parameters = PolicyGradientsAgentParameters()
    parameters.algorithm.policy_gradient_rescaler = PolicyGradientRescaler.GAE
    (line,) = lines(AgentRequirements(rescalers=(PolicyGradientRescaler.A_VALUE,)), parameters)
    assert line.endswith(
        "is PolicyGradientRescaler.GAE, which it cannot use: set it to one of PolicyGradientRescaler.A_VALUE"
    )
    assert lines(AgentRequirements(rescalers=(PolicyGradientRescaler.GAE,)), parameters) == []


@pytest.mark.parametrize(
    ("heads", "given", "has_target", "texts"),
    [
        ((Q,), [("q",)], True, []),
        ((Q,), [("embedding", "q"), ("v",)], True, []),  # the first is read
        (
            (Q,),
            [("v",)],
            True,
            ["head 0 of it has the outputs v, but its update rule reads q: set heads_parameters to [QHead"],
        ),
        ((Q,), [("q",)], False, ["it has no target network"]),
        ((V, POLICY), [("v",), ("mean", "standard_deviation")], True, []),
        ((V, POLICY), [("v",)], True, ["it has 1 heads, but its update rule reads 2"]),
        ((V, POLICY), [("v",), ("mean",)], True, ["reads probabilities and log_probabilities or mean and standard_"]),
        ((V, POLICY), [("v",), ("mean", "standard_deviation"), ("v",)], True, ["it has 3 heads"]),
    ],
)
def test_heads_and_targets(heads, given, has_target, texts):
    found = list(NetworkRequirement(heads, has_target=True).unmet_by("it", given, has_target))
    assert len(found) == len(texts) and all(text in line for text, line in zip(texts, found))


def network(heads: Any) -> Any:
    return SimpleNamespace(head_outputs=heads, has_target=True)


def test_networks_that_are_missing_or_only_act_are_not_asked():
    requirements = AgentRequirements(
        network_requirements={"main": NetworkRequirement((Q,)), "other": NetworkRequirement((V,))}
    )
    exploration: Any = SimpleNamespace(draws_by_probabilities=False)
    assert list(requirements.unmet_by_networks("one", {"main": network(None)}, exploration)) == []
    (line,) = requirements.unmet_by_networks("one", {"main": network([("v",)])}, exploration)
    assert line.startswith("head 0 of network 'main' of agent 'one' has the outputs v")


@pytest.mark.parametrize(
    ("predicts_values", "draws", "is_met"), [(True, True, False), (True, False, True), (False, True, True)]
)
def test_probabilities_for_who_predicts_values(predicts_values, draws, is_met):
    exploration: Any = SimpleNamespace(draws_by_probabilities=draws)
    found = list(AgentRequirements(predicts_values=predicts_values).unmet_by_networks("one", {}, exploration))
    assert is_met == (found == []) and all("needs probabilities" in one for one in found)


@pytest.mark.parametrize(
    ("recurrent", "by_sequences", "by_states", "text"),
    [
        ([], False, False, None),
        (["main"], True, False, None),
        (["main"], False, True, None),
        (["main"], False, False, "learns from each state without the states before it"),
        (["main", "critic"], False, True, "network 'critic' of agent 'one' does not act"),
        (["main", "critic"], True, False, None),
    ],
)
def test_recurrent_networks(recurrent, by_sequences, by_states, text):
    found = list(unmet_by_recurrent_networks("one", recurrent, "main", by_sequences, by_states))
    assert len(found) == (text is not None) and all(text in one for one in found)


# which requirements an agent has


class Base:
    network_requirements = {"main": NetworkRequirement((Q,))}
    max_n_step = 1

    def learn_from_batch(self) -> None: ...


class Child(Base):
    def act(self) -> None: ...


class Own(Base):
    def learn_from_batch(self) -> None: ...


class Mixin:
    def learn_from_batch(self) -> None: ...


class Mixed(Mixin, Base): ...


class GrandChild(Own): ...


class Declares(Own):
    network_requirements = {"main": NetworkRequirement((V,))}


class MixedBehind(Declares, Mixin): ...


@pytest.mark.parametrize(
    ("kind", "heads"),
    [(Base, Q), (Child, Q), (Own, None), (Mixed, None), (GrandChild, None), (Declares, V), (MixedBehind, V)],
)
def test_who_replaces_a_method_has_requirements_of_its_own(kind, heads):
    found = requirements_of(kind())
    assert [need.heads for need in found.network_requirements.values()] == ([] if heads is None else [(heads,)])
    assert found.max_n_step == 1  # of which no method is a part


def test_one_instance_may_require_more():
    one = Base()
    one.max_n_step = 0
    assert requirements_of(one).max_n_step == 0
