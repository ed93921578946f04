"""No fast path skips an override in silence: an override is called as often as on the ordinary path, or it excludes the
path. The methods come from the classes, so that new ones are covered."""

from __future__ import annotations

import functools
import inspect
import sys
from collections import Counter
from typing import Any, Collection, Iterable

import pytest

from rl_coach import vector_level_manager
from rl_coach.agents.agent import Agent
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgent
from rl_coach.agents.core.overrides import ALLOWED, override_that_excludes
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.base_parameters import AgentParameters, Frameworks
from rl_coach.compiled_level_manager import CompiledLevelManager
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.categorical import Categorical
from rl_coach.exploration_policies.exploration_policy import choice_override
from rl_coach.filters import pure
from rl_coach.filters.filter import InputFilter, NoOutputFilter
from rl_coach.filters.observation.observation_clipping_filter import ObservationClippingFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.policy.export import policy_of
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utilities.overrides import why_not_on_fast_path
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.agents import of_class
from tests.zoo.environments import Bandit
from tests.zoo.graphs import compiled, graph
from tests.zoo.parameters import clipped_ppo, dqn, pqn

on_jax = pytest.mark.skipif(FRAMEWORK is not Frameworks.jax, reason="loops are compiled on JAX (COACH_TEST_FRAMEWORK)")
HOOKS = {"make_compiled", "record_evaluated", "record_played", "why_not_compiled"}
"""Only compiled loops call these, so that an override of one speaks of such a loop."""


def methods_of(kind: type) -> list[str]:
    """The names of all public and protected methods of a class, inherited ones too."""
    return [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("__")]


def counting(base: type, names: Iterable[str], calls: Counter[str]) -> Any:
    """A user's subclass that counts the calls of some methods and passes them on."""

    def method(name: str) -> Any:
        inherited = getattr(base, name)

        @functools.wraps(inherited)
        def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return inherited(self, *args, **kwargs)

        return counted

    return type("Counting", (base,), {**{name: method(name) for name in names}, "__module__": __name__})


def empty(kind: type) -> Any:
    """An object of a class, of which only the class is of interest."""
    return object.__new__(kind)


def excluded(base: type, name: str, allowed: Collection[str], declaration: str | None) -> bool:
    """True if an override of one method excludes a fast path; the message names it then."""
    found = why_not_on_fast_path(empty(counting(base, [name], Counter())), allowed, declaration)
    assert found in (None, f"Counting.{name}")
    return found is not None


AGENTS = (Agent, ClippedPPOAgent, DQNAgent)


@pytest.mark.parametrize("declaration", ALLOWED)
@pytest.mark.parametrize("base", AGENTS)
def test_an_agents_override_excludes_a_fast_path_or_is_listed(base, declaration):
    for name in methods_of(base):
        is_listed = name in ALLOWED[declaration] or name == declaration
        assert excluded(base, name, ALLOWED[declaration], declaration) is not is_listed, name


@pytest.mark.parametrize("base", [
    Categorical, EpisodicExperienceReplay, ExperienceReplay, InputFilter, NoOutputFilter, ObservationClippingFilter,
    RewardRescaleFilter,
])  # fmt: skip
def test_a_parts_override_excludes_a_path_that_does_not_use_it(base):
    for name in methods_of(base):
        assert excluded(base, name, (), None), name


def test_a_list_names_methods_that_there_are():
    """All agents together have every method of the lists: a list does not keep the names of methods that are gone."""
    kinds = [kind for kind in _all_subclasses(Agent) if kind.__module__.startswith("rl_coach.")]
    known = {name for kind in (Agent, *kinds) for name in dir(kind)}
    assert {name for names in ALLOWED.values() for name in names} - known == set()


def _all_subclasses(kind: type) -> list[type]:
    return [found for one in kind.__subclasses__() for found in (one, *_all_subclasses(one))]


def run_of(parameters: AgentParameters, directory: Any, is_compiled: bool, calls: Counter[str]) -> Counter[str]:
    """The calls of a run with an evaluation and a checkpoint, the building of the graph included."""
    calls.clear()
    manager = compiled(parameters, directory)
    assert isinstance(manager.level_managers[0], CompiledLevelManager) is is_compiled
    manager.train_and_act(EnvironmentSteps(128))
    manager.evaluate(EnvironmentEpisodes(1))
    manager.restore_checkpoint(manager.save_checkpoint(), continue_run=True)
    manager.close()
    return Counter(calls)


def ppo_of(kind: type) -> AgentParameters:
    sys.modules[__name__].Counting = kind  # type: ignore[attr-defined]
    return of_class(clipped_ppo(), kind)


@on_jax
def test_a_compiled_loop_calls_the_listed_methods_as_often_as_the_ordinary_loop(tmp_path, monkeypatch):
    calls: Counter[str] = Counter()
    kind = counting(ClippedPPOAgent, ALLOWED["make_compiled"] - HOOKS, calls)
    found = run_of(ppo_of(kind), tmp_path / "compiled", True, calls)
    monkeypatch.setattr(BasicRLGraphManager, "_may_be_compiled", staticmethod(lambda parameters: False))
    assert found == run_of(ppo_of(kind), tmp_path / "ordinary", False, calls)
    assert {"make_update_rule", "create_networks", "get_state", "set_state"} <= set(found)


@pytest.mark.parametrize(("base", "make"), [(ClippedPPOAgent, clipped_ppo), (DQNAgent, dqn)])
def test_columns_call_the_listed_methods_as_often_as_the_ordinary_path(base, make, tmp_path, monkeypatch):
    calls: Counter[str] = Counter()
    names = ALLOWED["columns"].intersection(methods_of(base)) - HOOKS - {"choose_actions"}
    sys.modules[__name__].Counting = counting(base, names, calls)  # type: ignore[attr-defined]
    found = []
    for why_not in (None, "to compare"):
        if why_not is not None:
            monkeypatch.setattr(vector_level_manager, "why_not_in_columns", lambda agent: "to compare")
        calls.clear()
        parameters = of_class(make(), sys.modules[__name__].Counting)
        manager = graph(parameters, GymVectorEnvironment("CartPole-v1"), tmp_path / str(why_not), copies=3)
        manager.train_and_act(EnvironmentSteps(129))
        manager.evaluate(EnvironmentEpisodes(1))
        manager.restore_checkpoint(manager.save_checkpoint(), continue_run=True)
        assert manager.level_managers[0]._acts_in_columns is (why_not is None)
        manager.close()
        found.append(Counter(calls))
    assert found[0] == found[1] and {"learning_columns", "train"} & set(found[0])


def with_filters(kinds: Iterable[type]) -> AgentParameters:
    parameters, chain = clipped_ppo(), InputFilter()
    observation, reward = kinds
    chain.add_observation_filter("observation", "mine", observation(-10.0, 10.0))
    chain.add_reward_filter("mine", reward(2.0))
    parameters.input_filter = chain
    return parameters


@on_jax
def test_a_compiled_loop_calls_the_listed_methods_of_filters_as_often(tmp_path, monkeypatch):
    calls: Counter[str] = Counter()
    kinds = [
        counting(base, pure.ALLOWED.intersection(methods_of(base)) - {"pure"}, calls)
        for base in (ObservationClippingFilter, RewardRescaleFilter)
    ]
    found = run_of(with_filters(kinds), tmp_path / "compiled", True, calls)
    monkeypatch.setattr(BasicRLGraphManager, "_may_be_compiled", staticmethod(lambda parameters: False))
    assert (
        found == run_of(with_filters(kinds), tmp_path / "ordinary", False, calls) and found["get_filtered_reward_space"]
    )


@on_jax
@pytest.mark.parametrize("name", ["prepare_batch_for_inference", "update_log", "log_to_screen"])
def test_a_line_names_the_override_and_the_ordinary_loop_calls_it(name, tmp_path, capsys):
    calls: Counter[str] = Counter()
    parameters = ppo_of(counting(ClippedPPOAgent, [name], calls))
    run_of(parameters, tmp_path, False, calls)
    assert (
        f"the loop is not compiled as a whole: a compiled loop would not call Counting.{name}\n"
        in capsys.readouterr().out
    )
    assert calls[name] or name == "log_to_screen"  # only programs read its line


@on_jax
@pytest.mark.parametrize("part", ["memory", "input_filter", "output_filter"])
def test_a_line_names_the_override_of_a_part(part, tmp_path, capsys):
    parameters, calls = clipped_ppo(), Counter[str]()
    base, name = {
        "memory": (EpisodicExperienceReplay, "store_episode"), "input_filter": (InputFilter, "filter"),
        "output_filter": (NoOutputFilter, "reset"),
    }[part]  # fmt: skip
    sys.modules[__name__].Counting = counting(base, [name], calls)  # type: ignore[attr-defined]
    if part == "memory":
        path = property(lambda self: f"{__name__}:Counting")
        parameters.memory.__class__ = type("Parameters", (type(parameters.memory),), {"path": path})
    else:
        setattr(parameters, part, sys.modules[__name__].Counting())
    run_of(parameters, tmp_path, False, calls)
    assert f"a compiled loop would not call Counting.{name}\n" in capsys.readouterr().out and calls[name]


@on_jax
@pytest.mark.parametrize("part", ["", "memory", "exploration_policy", "input_filter", "output_filter"])
def test_a_method_that_is_replaced_too_late_is_refused(part, tmp_path):
    manager = compiled(clipped_ppo(), tmp_path)
    agent = manager.get_agent()
    holder = getattr(agent, part) if part else agent
    holder.get_state = dict
    if not part:
        manager.train_and_act(EnvironmentSteps(64))
        holder.update_log = lambda: None
    with pytest.raises(CoachError, match=r"\.(get_state|update_log) was replaced after the loop was compiled"):
        manager.train_and_act(EnvironmentSteps(64))


@on_jax
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("ap.algorithm.discount", 0.1),
        ("ap.algorithm.num_consecutive_playing_steps.num_steps", 32),
        ("ap.network_wrappers.main.batch_size", 8),
        ("exploration_policy.evaluation_epsilon", 0.5),
    ],
)
def test_a_setting_that_changes_too_late_is_refused(path, value, tmp_path):
    manager = compiled(pqn(), tmp_path)
    manager.train_and_act(EnvironmentSteps(64))
    *parts, name = path.split(".")
    holder = manager.get_agent()
    for part in parts:
        holder = holder[part] if isinstance(holder, dict) else getattr(holder, part)
    before = getattr(holder, name)
    setattr(holder, name, value)
    with pytest.raises(CoachError, match=rf"{parts[-1] if value == 32 else name} was .* would have no effect"):
        manager.train_and_act(EnvironmentSteps(64))
    setattr(holder, name, before)
    manager.get_agent().ap.network_wrappers["main"].learning_rate = 0.0
    manager.train_and_act(EnvironmentSteps(64))


def test_an_exported_policy_is_not_changed_by_the_listed_methods(tmp_path):
    """None of them is called between an observation and its action."""
    calls: Counter[str] = Counter()
    agent = graph(dqn(), Bandit, tmp_path).get_agent()
    kind = type(agent)
    names = ALLOWED["policy_description"].intersection(methods_of(kind)) - {"policy_description"}
    agent.__class__ = counting(kind, names, calls)
    assert override_that_excludes(agent, "policy_description") is None
    agent.phase = RunPhase.TEST
    agent.reset_internal_state()
    calls.clear()
    agent.episode.curr_state = {name: space.sample() for name, space in agent.spaces.state.sub_spaces.items()}
    agent.act()
    assert calls == {}


def test_a_policy_is_exported_unless_a_part_acts_otherwise(tmp_path):
    agent = graph(dqn(), Bandit, tmp_path).get_agent()
    about = {"framework": FRAMEWORK.name}
    assert policy_of(agent, about) is not None
    for part, name in (("input_filter", "filter"), ("output_filter", "filter"), ("exploration_policy", "change_phase")):
        holder = getattr(agent, part)
        setattr(holder, name, getattr(holder, name))
        assert policy_of(agent, about) is None, part
        delattr(holder, name)
    assert policy_of(agent, about) is not None


def test_an_exploration_policys_override_excludes_its_deployment_or_does_not_choose():
    for name in methods_of(Categorical):
        policy = counting(Categorical, [name], Counter())(DiscreteActionSpace(2))
        chooses = name not in {
            "action_choice", "advance", "get_control_param", "get_schedules", "get_state", "reset", "resume", "seed",
            "set_state", "set_worker", "suspend", "take_schedules",
        }  # fmt: skip
        assert choice_override(policy) == (f"Counting.{name}" if chooses else None)
