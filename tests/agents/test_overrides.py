"""A method of an agent does the same wherever it is overridden: in the class, in a mixin, in a grandchild or on the
instance."""

from __future__ import annotations

import functools
import inspect
import itertools
import pathlib
import sys
from collections import Counter
from dataclasses import replace
from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.batches import MemoryBatches
from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.agents.core.learning import NoLearning
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.architectures.update import Update
from rl_coach.base_parameters import AgentParameters
from rl_coach.checkpoint import load_checkpoint
from rl_coach.core_types import ActionInfo, EnvironmentSteps, QActionStateValue
from rl_coach.schedules import ConstantSchedule
from rl_coach.utils import CoachError
from tests.zoo.agents import of_class
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn, recurrent_dqn
from tests.zoo.states import leaves, weights_of

WAYS = ("class", "mixin", "grandchild", "instance")

Override = Callable[..., Any]
"""``(agent, inherited, *arguments)``: what the method does instead of ``inherited``, the bound method it overrides."""


class NotingBandit(Bandit):
    """Notes the actions that it is given."""

    def __init__(self, **settings: Any):
        self.taken: list[int] = []
        super().__init__(**settings)

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        self.taken.append(action)
        return super().outcome(action)


def noted(name: str, calls: Counter[str]) -> Override:
    """Counts its calls and passes them on."""

    def override(agent: Any, inherited: Any, *args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        return inherited(*args, **kwargs)

    return override


def agent_class(way: str, overrides: dict[str, Override]) -> type:
    """A DQN agent whose methods are overridden in one of the ways; for ``instance`` it is DQN as it is."""
    owner: list[type] = []

    def method(name: str) -> Any:
        def overriding(self: Any, *args: Any, **kwargs: Any) -> Any:
            return overrides[name](self, getattr(super(owner[0], self), name), *args, **kwargs)

        return overriding

    body = {name: method(name) for name in overrides}
    if way == "instance":
        return DQNAgent
    owner.append(type("Overriding", () if way == "mixin" else (DQNAgent,), body))
    bases = {"class": (DQNAgent,), "mixin": (owner[0], DQNAgent), "grandchild": (owner[0],)}[way]
    return owner[0] if way == "class" else type("Overriding", bases, {})


def overriding_graph(
    way: str, overrides: dict[str, Override], directory: Any, parameters: AgentParameters | None = None, **settings: Any
) -> Any:
    """A graph of such an agent. On the instance, methods are overridden as soon as the graph is there."""
    # a graph finds an agent's class by its module and its name
    sys.modules[__name__].Overriding = agent_class(way, overrides)  # type: ignore[attr-defined]
    of = of_class(parameters or dqn(), sys.modules[__name__].Overriding)
    manager = graph(
        of, NotingBandit, directory, **{"schedule_parameters": schedule(12, heatup=20, evaluation=1), **settings}
    )
    if way == "instance":
        agent = manager.get_agent()
        for name, override in overrides.items():
            setattr(agent, name, functools.partial(override, agent, getattr(agent, name)))
    return manager


def methods_of(agent: type) -> set[str]:
    """The names of all public methods of a class, inherited ones too."""
    return {name for name, _ in inspect.getmembers(agent, inspect.isfunction) if not name.startswith("_")}


# Every public method of an agent is in one of these sets.
IN_A_RUN = {
    "act", "acting_prediction", "before_training", "begin_episode", "begin_training_if_due", "choose_action",
    "close", "collect_savers", "count_played", "fits", "get_state", "get_success_rate", "handle_episode_ended",
    "learn_from_batch", "learning_columns", "learning_scalars", "make_update_rule", "observe", "observe_transition",
    "policy_description", "post_training_commands", "predict_states", "prepare_batch_for_inference",
    "put_episode_aside", "reset_evaluation_state", "reset_internal_state", "restore_checkpoint",
    "run_pre_network_filter_for_inference", "save_checkpoint", "seed_evaluation", "set_state", "should_train",
    "sync", "take_up_episode", "targets_due", "train", "update_log",
    "update_transition_before_adding_to_replay_buffer",
}  # fmt: skip
"""A run, its evaluation and its checkpoint call these."""

WHILE_BUILT = {
    "connect", "create_agents", "create_networks", "init_environment_dependent_modules",
    "initialize_session_dependent_components", "load_memory_from_file", "make_batches", "make_learning",
    "play_in_copies", "register_signal", "seed", "set_environment_parameters", "setup_logger", "unmet_by_actions",
    "unmet_by_networks", "unmet_by_settings",
}  # fmt: skip
"""These have been called when there is an instance to override them on, and are not called again."""

IN_A_COMPILED_LOOP = {"make_compiled", "record_evaluated", "record_played", "why_not_compiled"}
"""A loop that is compiled as a whole, or the question whether one can be, calls these; see
``tests/test_compiled_level_manager.py``."""

IN_COLUMNS = {"choose_actions"}
"""A run that acts in all copies in one pass calls these; see ``tests/agents/core/test_column_actors.py``."""

ONE_BY_ONE = {"columns_of_networks"}
"""A run in which each update depends on the networks calls these; see the actions to bootstrap from below."""

WITH_STORED_STATES = {"note_action"}
"""An agent that stores recurrent states calls these; see ``tests/agents/test_dreamer_v3.py``."""

ON_REQUEST: dict[str, Callable[[Any], Any]] = {
    "acting_policy": lambda agent: agent.acting_policy(),
    "call_memory": lambda agent: agent.call_memory("num_transitions"),
    "cut_episode": lambda agent: agent.cut_episode(),
    "emulate_act_on_trainer": lambda agent: agent.emulate_act_on_trainer(agent.memory.get(-1)),
    "emulate_observe_on_trainer": lambda agent: agent.emulate_observe_on_trainer(agent.memory.get(-1)),
    "get_current_time": lambda agent: agent.get_current_time(),
    "get_predictions": lambda agent: agent.get_predictions(
        {"observation": np.eye(2, dtype=np.float32)}, QActionStateValue
    ),
    "get_state_embedding": lambda agent: agent.get_state_embedding({"observation": np.zeros(2, np.float32)}),
    "listen_to_rows": lambda agent: agent.listen_to_rows(print),
    "log_to_screen": lambda agent: agent.log_to_screen(),
    "remember_probabilities": lambda agent: agent.remember_probabilities(),
    "players_of_stream": lambda agent: agent.players_of_stream(""),
    "observe_played": lambda agent: agent.observe_played(agent.memory.get(-1)),
    "replace_last_action": lambda agent: agent.replace_last_action(ActionInfo(1)),
    "run_off_policy_evaluation": lambda agent: agent.run_off_policy_evaluation(),
    "set_session": lambda agent: agent.set_session(None),
    "set_incoming_directive": lambda agent: agent.set_incoming_directive(np.zeros(2)),
    "take_in": lambda agent: agent.take_in(ExperienceChunk(3)),
    "take_policy": lambda agent: agent.take_policy(agent.acting_policy()),
    "update_step_in_episode_log": lambda agent: agent.update_step_in_episode_log(),
    "freeze_memory": lambda agent: agent.freeze_memory(),
}
"""Other agents, levels, processes and users call these on the agent."""

KNOWN = IN_A_RUN | WHILE_BUILT | IN_A_COMPILED_LOOP | IN_COLUMNS | ONE_BY_ONE | WITH_STORED_STATES | set(ON_REQUEST)


def test_all_public_methods_are_overridden_here():
    methods = methods_of(Agent)
    new, gone = sorted(methods - KNOWN), sorted(KNOWN - methods)
    assert not new, f"no test here overrides {new}: add them to one of the sets above"
    assert not gone, f"agents no longer have {gone}: remove them here"


def plain_bytes(manager: Any) -> list[bytes]:
    """All weights, to compare them bit for bit."""
    return [array.tobytes() for array in weights_of(manager)]


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same run of DQN as it is."""
    manager = overriding_graph("instance", {}, tmp_path_factory.mktemp("untouched"), writes_csv=True)
    manager.improve()
    return manager


def called(way: str, names: set[str], directory: Any) -> tuple[Counter[str], Counter[str], Any]:
    """The calls of overrides that change nothing, while the graph is built and afterwards: in a run, a checkpoint and
    on request."""
    calls: Counter[str] = Counter()
    overrides = {name: noted(name, calls) for name in names}
    manager = overriding_graph(way, overrides, directory, writes_csv=True)
    built = Counter(calls)
    calls.clear()
    manager.improve()
    weights = plain_bytes(manager)
    manager.restore_checkpoint(manager.save_checkpoint(), continue_run=True)
    for request in ON_REQUEST.values():
        request(manager.get_agent())
    manager.close()
    return built, calls, weights


@pytest.mark.parametrize("replaces_rule", [False, True], ids=["rule", "learn_from_batch"])
def test_an_override_that_changes_nothing_is_called_as_often_wherever_it_is(replaces_rule, untouched, tmp_path):
    names = KNOWN if replaces_rule else KNOWN - {"learn_from_batch", "reset_internal_state"}
    found = {way: called(way, names, tmp_path / way) for way in WAYS}
    for way, (built, calls, weights) in found.items():
        assert calls == found["class"][1], way
        assert weights == found["class"][2], way
        assert built == ({} if way == "instance" else found["class"][0]), way
    built, calls, weights = found["class"]
    # an update by learn_from_batch is another compiled call, and the same to a float's last bit only
    assert replaces_rule or weights == plain_bytes(untouched)
    assert set(built) - set(calls) == WHILE_BUILT - {"play_in_copies"}
    assert set(calls) == (names & IN_A_RUN) | set(ON_REQUEST)


def test_it_is_called_as_often_in_several_copies_of_the_environment(tmp_path):
    names = KNOWN - {"learn_from_batch", "reset_internal_state"}
    found = {}
    for way in WAYS:
        calls: Counter[str] = Counter()
        manager = overriding_graph(way, {name: noted(name, calls) for name in names}, tmp_path / way, copies=3)
        built = calls.pop("play_in_copies", 0)
        for name in WHILE_BUILT:
            calls.pop(name, None)
        manager.improve()
        found[way] = (calls, plain_bytes(manager))
        assert built == (way != "instance") and {"act", "observe", "begin_episode"} <= set(calls)
    assert all(one == found["class"] for one in found.values())


# what an override does, and what a run shows of it

Claim = tuple[Override, Callable[[Any, Any], bool]]
"""An override, and ``(graph, untouched)``: True if the graph's run followed it. It is False for an untouched run."""


def weights(manager: Any) -> list[np.ndarray]:
    return manager.get_agent().networks["main"].online_network.get_weights()


def learned_nothing(manager: Any, untouched: Any) -> bool:
    return all(map(np.array_equal, weights(manager), untouched.weights_before))


def learned_otherwise(manager: Any, untouched: Any) -> bool:
    return plain_bytes(manager) != plain_bytes(untouched) and not learned_nothing(manager, untouched)


def made_updates(count: int) -> Callable[[Any, Any], bool]:
    return lambda manager, untouched: manager.get_agent().training_iteration == count


def chose(manager: Any) -> set[int]:
    """The agent's actions after the heatup."""
    return set(manager.get_agent().memory.transitions.actions()[20:])


def took(manager: Any) -> set[int]:
    """The actions that the environment was given after the heatup."""
    return set(manager.level_managers[0].real_environment.taken[20:])


def chose_the_second(manager: Any, untouched: Any) -> bool:
    return chose(manager) == {1}


def took_the_first(manager: Any, untouched: Any) -> bool:
    return took(manager) == {0}


def took_one_only(manager: Any, untouched: Any) -> bool:
    return len(took(manager)) == 1


def has(holds: Callable[[Any], Any]) -> Callable[[Any, Any], bool]:
    """Of the agent."""
    return lambda manager, untouched: bool(holds(manager.get_agent()))


def wrote_no_rows(manager: Any, untouched: Any) -> bool:
    return not any(map(file_rows, pathlib.Path(manager.task_parameters.experiment_path).glob("*.csv")))


def file_rows(file: pathlib.Path) -> int:
    return len(file.read_text().splitlines()[1:])


def with_reward(agent: Any, inherited: Any, transition: Any) -> Any:
    transition.reward = 7.0
    return inherited(transition)


def scaled_rule(agent: Any, inherited: Any) -> Any:
    """The rule, with a loss that a scalar scales."""
    rule = inherited()

    def scaled(ops: Any, networks: Any, batch: Any) -> Any:
        update = rule(ops, networks, batch)
        return Update({"main": batch.scalars.get("scale", 0.0) * update.losses["main"]}, errors=update.errors)

    return scaled


def without_weights(agent: Any, inherited: Any, batch: Any) -> Any:
    columns = inherited(batch)
    return {**columns, "weights": np.zeros_like(columns["weights"])}


def of_four_steps(agent: Any, inherited: Any, response: Any) -> bool:
    return inherited(response) or agent.episode.steps >= 4


def same_observation(agent: Any, inherited: Any, *args: Any) -> dict[str, np.ndarray]:
    return {name: np.ones_like(array) for name, array in inherited(*args).items()}


def asked_by_networks(agent: Any, inherited: Any, batch: Any) -> dict[str, np.ndarray]:
    agent.was_asked = True
    return inherited(batch)


def nothing(agent: Any, inherited: Any, *args: Any) -> None:
    """The inherited method is not called."""


AFTERWARDS: dict[str, dict[str, Claim]] = {
    "an update without the rule": {
        "learn_from_batch": (lambda agent, inherited, batch: (0.5, [0.5], 0.25), learned_nothing),
        "update_transition_before_adding_to_replay_buffer": (
            with_reward, has(lambda agent: set(agent.memory.transitions.rewards()) == {7.0}),
        ),
        "choose_action": (lambda agent, inherited, state: ActionInfo(1), chose_the_second),
        "update_log": (nothing, wrote_no_rows),
    },
    "a rule, and actions that the environment gets": {
        "make_update_rule": (scaled_rule, learned_nothing),
        "predict_states": (lambda agent, inherited, states: np.array([[0.0, 1.0]] * len(states)), chose_the_second),
        "act": (lambda agent, inherited, *args: inherited(*args) and ActionInfo(0), took_the_first),
        "handle_episode_ended": (nothing, has(lambda agent: agent.current_episode == 0)),
    },
    "columns and counts": {
        "learning_columns": (without_weights, learned_nothing),
        "acting_prediction": (lambda agent, inherited, state: np.array([0.0, 1.0]), chose_the_second),
        "count_played": (
            lambda agent, inherited, steps: inherited(2 * steps),
            has(lambda agent: agent.total_steps_counter == 64),
        ),
        "observe": (of_four_steps, has(lambda agent: agent.current_episode == 8)),
    },
    "scalars": {
        "make_update_rule": (scaled_rule, learned_otherwise),
        "learning_scalars": (lambda agent, inherited: {"scale": 100.0}, learned_otherwise),
    },
    "when to learn, and what from": {
        "should_train": (lambda agent, inherited: False, made_updates(0)),
        "prepare_batch_for_inference": (same_observation, took_one_only),
    },
    "training": {
        "train": (lambda agent, inherited: 0.0, made_updates(0)),
        "run_pre_network_filter_for_inference": (same_observation, took_one_only),
        "observe_transition": (
            lambda agent, inherited, transition: transition.game_over,
            has(lambda agent: agent.memory.num_transitions() == 0),
        ),
        "get_success_rate": (
            lambda agent, inherited: 1.0, lambda manager, untouched: manager.level_managers[0].should_stop()
        ),
    },
    "actions to bootstrap from": {
        "select_actions": (lambda agent, inherited, states, values: np.zeros(len(values), int), learned_otherwise),
    },
    "columns by the networks": {
        "select_actions": (lambda agent, inherited, states, values: np.zeros(len(values), int), learned_otherwise),
        "columns_of_networks": (asked_by_networks, has(lambda agent: getattr(agent, "was_asked", False))),
    },
}  # fmt: skip


SEED = 8  # the untouched run chooses both actions


def follow(overrides: dict[str, Override], way: str, directory: Any) -> Any:
    """A run that follows overrides; it is greedy, for what the networks say to show in the actions."""
    parameters = dqn()
    parameters.exploration.epsilon_schedule = ConstantSchedule(0)
    settings = {"schedule_parameters": schedule(12, heatup=20), "seed": SEED, "writes_csv": True}
    manager = overriding_graph(way, overrides, directory, parameters, **settings)
    manager.weights_before = weights(manager)
    manager.improve()
    return manager


@pytest.fixture(scope="module")
def greedy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The run of ``follow`` without overrides."""
    return follow({}, "instance", tmp_path_factory.mktemp("greedy"))


@pytest.mark.parametrize("group", AFTERWARDS)
def test_a_run_follows_an_override_wherever_it_is(group, greedy, tmp_path):
    claims = AFTERWARDS[group]
    runs = {way: follow({name: one for name, (one, _) in claims.items()}, way, tmp_path / way) for way in WAYS}
    for name, (_, holds) in claims.items():
        assert not holds(greedy, greedy), f"an untouched run shows the override of {name}, too"
        for way, manager in runs.items():
            assert holds(manager, greedy), f"{name}: {way}"
    for way, manager in runs.items():
        assert plain_bytes(manager) == plain_bytes(runs["class"]), way


class OwnSource(MemoryBatches):
    """Batches out of the memory, of whom a class is the only thing to see."""


def with_zero_weights(agent: Any, inherited: Any) -> Any:
    networks = inherited()
    online = networks["main"].online_network
    online.set_weights([np.zeros_like(array) for array in online.get_weights()])
    return networks


def remembering(name: str) -> Override:
    """Sets an attribute to the networks that are there."""

    def override(agent: Any, inherited: Any) -> None:
        inherited()
        setattr(agent, name, list(agent.networks))

    return override


def with_bounds(agent: Any, inherited: Any, spaces: Any) -> None:
    inherited(spaces)
    agent.spaces.reward.reward_success_threshold = 3.5


BUILDING: dict[str, dict[str, Claim]] = {
    "parts": {
        "make_batches": (
            lambda agent, inherited: OwnSource(agent.memory), has(lambda agent: isinstance(agent.batches, OwnSource))
        ),
        "register_signal": (
            lambda agent, inherited, name, *args, **kwargs: inherited(f"my {name}", *args, **kwargs),
            has(lambda agent: agent.q_values.name == "my Q"),
        ),
        "initialize_session_dependent_components": (
            remembering("built"), has(lambda agent: getattr(agent, "built", []) == ["main"])
        ),
        "load_memory_from_file": (
            remembering("loaded"), has(lambda agent: getattr(agent, "loaded", []) == ["main"])
        ),
        "init_environment_dependent_modules": (
            remembering("modules"), has(lambda agent: getattr(agent, "modules", []) == ["main"])
        ),
        "set_environment_parameters": (
            with_bounds, has(lambda agent: agent.spaces.reward.reward_success_threshold == 3.5)
        ),
        "setup_logger": (nothing, wrote_no_rows),
        "connect": (
            lambda agent, inherited, owners, *args: inherited((*owners, "mine"), *args),
            has(lambda agent: agent.owners[-1] == "mine"),
        ),
        "create_agents": (
            lambda agent, inherited: setattr(agent, "inside", 1), has(lambda agent: getattr(agent, "inside", 0) == 1)
        ),
    },
    "weights and learning": {
        "create_networks": (with_zero_weights, lambda manager, untouched: not any(map(np.any, weights(manager)))),
        "make_learning": (lambda agent, inherited: NoLearning(agent), made_updates(0)),
    },
    "seeds": {
        "seed": (lambda agent, inherited, seed: inherited(5), learned_otherwise),
    },
}  # fmt: skip


@pytest.mark.parametrize("group", BUILDING)
def test_a_graph_is_built_by_an_override_wherever_it_is(group, greedy, tmp_path):
    """Not on the instance: there is one only when these have been called."""
    claims = BUILDING[group]
    for way in WAYS[:3]:
        manager = follow({name: one for name, (one, _) in claims.items()}, way, tmp_path / way)
        for name, (_, holds) in claims.items():
            assert not holds(greedy, greedy) and holds(manager, greedy), f"{name}: {way}"


@pytest.mark.parametrize("name", ["unmet_by_actions", "unmet_by_settings", "unmet_by_networks"])
def test_a_requirement_of_its_own_refuses_the_agent(name, tmp_path):
    for way in WAYS[:3]:
        with pytest.raises(CoachError, match="not today"):
            overriding_graph(way, {name: lambda agent, inherited: [*inherited(), "not today"]}, tmp_path / way)


def test_a_checkpoint_holds_what_overrides_add_to_it(tmp_path):
    def set_state(agent: Any, inherited: Any, state: dict[str, Any]) -> None:
        agent.note = state["note"]
        inherited(state)

    overrides: dict[str, Override] = {
        "get_state": lambda agent, inherited: {**inherited(), "note": "mine"},
        "set_state": set_state,
        "fits": lambda agent, inherited: {"agent": "of any class"},
    }
    for way in WAYS:
        manager = overriding_graph(way, overrides, tmp_path / way)
        path = manager.save_checkpoint()
        state, about = load_checkpoint(path)
        assert [one for place, one in leaves(state) if place.endswith("/note")] == ["mine"], way
        assert "of any class" in str(about["fits"]), way
        manager.restore_checkpoint(path, continue_run=True)
        assert manager.get_agent().note == "mine", way


@pytest.mark.parametrize("name", ["choose_action", "act", "policy_description"])
def test_a_checkpoint_has_no_policy_that_the_agent_does_not_follow(name, tmp_path):
    def changed(agent: Any, inherited: Any, *args: Any) -> Any:
        return None if name == "policy_description" else inherited(*args)

    for way in WAYS:
        for overrides, has_policy in (({}, True), ({name: changed}, False)):
            directory = tmp_path / way / str(has_policy)
            path = overriding_graph(way, overrides, directory).save_checkpoint()
            assert pathlib.Path(path, "policy").is_dir() is has_policy, way


# the examples of a class whose names decided in silence


class LearnsItself:
    """A mixin that learns nothing, but counts its batches."""

    batches_seen = 0

    def learn_from_batch(self, batch: Any) -> Any:
        self.batches_seen += 1
        return 0.0, [0.0], 0.0


class Mixed(LearnsItself, DQNAgent):
    """DQN, but for how it learns."""


class Mine(DQNAgent):
    """DQN under another name."""


class OwnRule(DQNAgent):
    """DQN with a rule that is DQN's."""

    def make_update_rule(self) -> Any:
        return super().make_update_rule()


class OwnRuleMixin:
    """The rule by itself."""

    def make_update_rule(self) -> Any:
        return super().make_update_rule()  # type: ignore[misc]


class MixedRule(OwnRuleMixin, DQNAgent):
    """DQN with that rule."""


class InheritedRule(OwnRule):
    """Inherits it."""


def test_a_mixin_that_learns_itself_is_called_and_the_rule_does_not_learn(tmp_path):
    manager = graph(of_class(dqn(), Mixed), Bandit, tmp_path, schedule(12, heatup=20))
    before = weights(manager)
    manager.improve()
    agent = manager.get_agent()
    assert agent.batches_seen == agent.training_iteration == 6 and not agent.learns_by_rule
    for one, other in zip(before, weights(manager)):
        np.testing.assert_array_equal(one, other)


def test_a_subclass_that_changes_nothing_learns_with_an_lstm(tmp_path):
    found = []
    for kind in (DQNAgent, Mine, OwnRule, MixedRule, InheritedRule):
        manager = graph(of_class(recurrent_dqn(), kind), Bandit, tmp_path / kind.__name__, schedule(12, heatup=20))
        before = weights(manager)
        manager.improve()
        assert not all(map(np.array_equal, before, weights(manager)))
        found.append(plain_bytes(manager))
    assert all(one == found[0] for one in found)


class Penalised(DQNAgent):
    """DQN whose rule adds a penalty on large values."""

    def make_update_rule(self) -> Any:
        inherited = super().make_update_rule()

        def rule(ops: Any, networks: Any, batch: Any) -> Update:
            update = inherited(ops, networks, batch)
            values = networks["main"].online(batch.states)[0]["q"]  # [B, A]
            return replace(update, losses={"main": update.losses["main"] + 0.1 * ops.mean(values * values)})

        return rule


class ChangedStates(DQNAgent):
    """DQN whose rule looks at states that no sequence has."""

    def make_update_rule(self) -> Any:
        inherited = super().make_update_rule()

        def rule(ops: Any, networks: Any, batch: Any) -> Update:
            return inherited(ops, networks, replace(batch, states={k: 2 * v for k, v in batch.states.items()}))

        return rule


def test_a_term_beside_the_rule_of_dqn_counts_with_an_lstm(tmp_path):
    found = []
    for kind in (DQNAgent, Penalised):
        manager = graph(of_class(recurrent_dqn(), kind), Bandit, tmp_path / kind.__name__, schedule(12, heatup=20))
        manager.improve()
        found.append(weights(manager))
    assert not any(map(np.array_equal, *found))


def test_changed_states_are_refused_with_an_lstm_in_one_line(tmp_path):
    manager = graph(of_class(recurrent_dqn(), ChangedStates), Bandit, tmp_path, schedule(12, heatup=20))
    with pytest.raises(
        CoachError, match="changes observations before it passes them to a recurrent network"
    ) as refusal:
        manager.improve()
    assert "\n" not in str(refusal.value)


def set_in_helper(agent: Any, option: int) -> None:
    agent.option = option


def logged(method: Any) -> Any:
    """A decorator as people write them."""

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return wrapper


def beginning(how: str) -> Override:
    """A ``reset_internal_state`` that gives each episode an option of its own, 1, 2, 3 and so on."""
    numbers = itertools.count(1)

    def plain(agent: Any, inherited: Any) -> None:
        inherited()
        agent.option = next(numbers)

    def helped(agent: Any, inherited: Any) -> None:
        inherited()
        set_in_helper(agent, next(numbers))

    def by_setattr(agent: Any, inherited: Any) -> None:
        inherited()
        setattr(agent, "option", next(numbers))  # noqa: B010 - as a class may, whose code nothing reads

    return {"helper": helped, "setattr": by_setattr, "decorated": logged(plain)}[how]


@pytest.mark.parametrize("how", ["helper", "setattr", "decorated"])
def test_attributes_of_an_episode_are_kept_or_refused(how, tmp_path):
    for way in WAYS:
        with pytest.raises(CoachError, match="keep them in an episode_class, or set env_params") as refusal:
            manager = overriding_graph(way, {"reset_internal_state": beginning(how)}, tmp_path / way, copies=3)
            manager.train_and_act(EnvironmentSteps(3))
        assert "\n" not in str(refusal.value)

        overrides = {"reset_internal_state": beginning(how)}
        manager = overriding_graph(way, overrides, tmp_path / way / "one", schedule_parameters=schedule(100))
        manager.train_and_act(EnvironmentSteps(4))
        assert manager.get_agent().option == 1, way
        manager.evaluate(EnvironmentSteps(15))
        assert manager.get_agent().option == 1, way
        manager.train_and_act(EnvironmentSteps(9))
        assert manager.get_agent().option == 4, f"{way}: two of the episodes before were evaluated"
        path = manager.save_checkpoint()
        again = overriding_graph(way, overrides, tmp_path / way / "again", schedule_parameters=schedule(100))
        again.restore_checkpoint(path, continue_run=True)
        again.train_and_act(EnvironmentSteps(1))
        assert again.get_agent().option == 4, way
