"""Agents that are described by a specification of another system."""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Iterable, Iterator, Mapping, Sequence, TypeVar

import numpy as np

from rl_coach.agents import recorded_steps
from rl_coach.base_parameters import AgentParameters, running_framework
from rl_coach.command_line.setting_data import setting_as_json
from rl_coach.environments.space_data import space_as_data, space_from_data
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.own_loop import saved
from rl_coach.own_loop.agent import DEFINITION_FILE, Agent, make_agent
from rl_coach.own_loop.forms import Actions, Parts, observation_space, with_bounds
from rl_coach.own_loop.making import algorithm_parameters
from rl_coach.own_loop.spec_parts import Definition, set_optimizer
from rl_coach.own_loop.spec_table import Row, apply_rows
from rl_coach.utilities.spec_fields import Fields, plain, read_spec, shown, underscored
from rl_coach.utils import CoachError, did_you_mean

ARGUMENTS = (
    "num_envs", "env_ids", "action_mask", "heatup_steps", "updates_itself", "seed", "framework", "num_devices",
    "experiment_path", "reward_threshold",
)  # fmt: skip
"""Arguments of ``make_agent`` that can be given together with a specification."""

Made = TypeVar("Made", bound="SpecAgent")


class NoMeaning(CoachError, AttributeError):
    """Error for a name of another system that Coach does not support. It recommends a replacement."""


def without_meaning(system: str, names: Mapping[str, str], holder: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module or an object, for names of the system that Coach does not support.

    :param system: the name of the system
    :param names: the replacement that the error recommends for each name
    :param holder: the module or object, for the error about other names
    """

    def get(name: str) -> Any:
        if name in names:
            raise NoMeaning(f"Coach does not support {system}'s {name}: {names[name]}")
        raise AttributeError(f"{holder} has no attribute '{name}'")

    return get


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of another system.

    :param parameters: makes Coach's parameters from the specification
    :param rows: one ``Row`` for each key of the specification
    :param complete: called with the definition and the specification, after the rows
    :param needs_numbers: the algorithm needs continuous actions; discrete choices become numbers that are rounded
    :param needs_bounds: the algorithm needs bounded actions; an action without bounds gets the bounds -1 and 1
    """

    parameters: Callable[[Fields], AgentParameters]
    rows: Sequence[Row]
    complete: Callable[[Definition, Fields], None] | None = None
    needs_numbers: bool = False
    needs_bounds: bool = False


def made_of(name: str) -> Callable[[Fields], AgentParameters]:
    """The function ``parameters`` of an algorithm with the same parameters for each specification. :param name: the
    name of Coach's algorithm"""
    return lambda fields: algorithm_parameters(name)


def act_at_random(put_network: Callable[[Definition, Fields], Any]) -> Callable[[Definition, Fields], None]:
    """The function ``complete`` of an agent that never leaves the heatup, and learns nothing."""

    def complete(definition: Definition, fields: Fields) -> None:
        put_network(definition, fields)
        definition.arguments.update(heatup_steps=10**18, updates_itself=False)

    return complete


@dataclass(frozen=True)
class General:
    """The settings of a system for all algorithms. Algorithms that the system does not have use only these settings.

    :param rows: the settings, one ``Row`` for each key of the system's specification
    :param optimizer: the key of the specification that describes the optimizer
    :param put_network: function that sets the layers of a network, by the network's name
    """

    rows: Sequence[Row]
    optimizer: str
    put_network: Callable[[Definition, Fields, str], Any]

    def algorithm(self, parameters: AgentParameters) -> Algorithm:
        """An algorithm of Coach that the system does not have."""

        def complete(definition: Definition, fields: Fields) -> None:
            names = list(parameters.network_wrappers)
            for name in ("main", "policy", "actor"):
                if name in names:
                    self.put_network(definition, fields, name)
            set_optimizer(definition, fields.fields(self.optimizer), names)

        return Algorithm(lambda fields: parameters, self.rows, complete)


@dataclass(frozen=True)
class Family:
    """The description of a system. Coach uses it to read the system's specifications.

    :param name: the name of the system
    :param algorithms: the algorithms by the ``type`` of a specification
    :param states: keys of the states; the first key is the current name, the others are older names
    :param actions: keys of the actions
    :param positional: names of the positional arguments of an agent's class
    :param parts_of_states: reads the states
    :param parts_of_actions: reads the actions
    :param updates_itself: True if agents learn in ``observe``
    :param general: settings for all algorithms
    """

    name: str
    algorithms: Mapping[str, Algorithm]
    states: tuple[str, ...]
    actions: tuple[str, ...]
    positional: tuple[str, ...]
    parts_of_states: Callable[[Any], Parts]
    parts_of_actions: Callable[[Any], Parts]
    updates_itself: bool
    general: General

    def algorithm(self, document: Mapping[str, Any]) -> Algorithm:
        """The algorithm of a specification: an algorithm of the system, or another one of Coach.

        :raises CoachError: if Coach does not have the algorithm; the error names the nearest
        """
        kind, given = self.kind(document), document.get("type")
        if kind is not None:
            return self.algorithms[kind]
        if not isinstance(given, str):
            problem = "missing" if given is None else f"{shown(given)}, not the name of an algorithm"
            raise CoachError(f"the spec's 'type' is {problem}; choose from {', '.join(self.algorithms)}")
        try:
            return self.general.algorithm(algorithm_parameters(re.sub("(?i)[-_]?agent$", "", given)))
        except CoachError as error:
            suggestion = did_you_mean(given, self.algorithms)
            reason = f"{shown(given)} is not supported{suggestion}" if suggestion else error
            raise CoachError(f"the spec's 'type': {reason}") from None

    def kind(self, document: Mapping[str, Any]) -> str | None:
        """The key in ``algorithms`` for the ``type`` of a specification; None if it is a type of another system."""
        given = document.get("type")
        if not isinstance(given, str):
            return None
        names = {plain(one): one for one in self.algorithms}
        bare = plain(given).removesuffix("_agent")
        return names.get(plain(given)) or names.get(bare) or names.get(f"{bare}_agent")


@dataclass(frozen=True)
class Spec:
    """All data that an agent was made from.

    :param family: the system's name
    :param document: the specification without states and actions
    :param space: the Gymnasium space of the states
    :param actions: the actions
    :param buffer_size: number of steps after which an episode is cut; None for no limit
    :param first_update: number of steps before the first update
    :param arguments: further arguments of ``make_agent``
    """

    family: str
    document: dict[str, Any]
    space: Any
    actions: Actions
    buffer_size: int | None
    first_update: int
    arguments: dict[str, Any]


class SpecAgent(Agent):
    """An agent that is made from a specification of another system. Its actions have the form of the specification.

    :param positional: arguments in the order of the system's classes (the states, the actions, and so on), or one dict
        with the whole specification
    :param settings: keys of the specification, and the arguments of ``make_agent`` from ``action_mask`` to
        ``reward_threshold``
    :raises CoachError: if an argument is wrong

    :cvar family: the system of its specifications
    :cvar kind: the ``type`` of its specifications; None for any
    :cvar attributes: functions that compute attributes of the system, by name
    :cvar without_meaning: by name, the replacement for attributes of the system that Coach does not support
    :cvar not_called_in_loops: methods of the system that Coach's loops, such as ``Runner``, do not call
    :ivar env_names: the names of the agent's environments
    """

    family: ClassVar[Family]
    kind: ClassVar[str | None] = None
    attributes: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    without_meaning: ClassVar[Mapping[str, str]] = {}
    not_called_in_loops: ClassVar[tuple[str, ...]] = ("observe",)

    def __getattr__(self, name: str) -> Any:
        if name in self.attributes:
            return self.attributes[name](self)
        return without_meaning(self.family.name, self.without_meaning, f"'{type(self).__name__}' object")(name)

    def __init__(self, *positional: Any, **settings: Any):
        names = self.family.positional
        if len(positional) > len(names):
            raise CoachError(f"{type(self).__name__} takes at most {len(names)} positional arguments")
        is_spec = len(positional) == 1 and self.family.states[0] in settings
        given = read_spec(positional[0]) if is_spec else dict(zip(names, positional))
        if twice := sorted(given.keys() & settings.keys()) if not is_spec else []:
            raise CoachError(f"{type(self).__name__} received two values for '{twice[0]}'")
        self._make({**given, **{name: one for name, one in settings.items() if one is not None}})

    @classmethod
    def from_spec(cls: type[Made], spec: Any = None, kwargs: Mapping[str, Any] | None = None, **additions: Any) -> Made:
        changes = {name: one for name, one in {**(kwargs or {}), **additions}.items() if one is not None}
        if isinstance(spec, str) and plain(spec) in {plain(one) for one in cls.family.algorithms}:
            spec = {"type": spec}
        document = {**read_spec({} if spec is None else spec), **changes}
        chosen = cls._class_for(document)
        made = chosen.__new__(chosen)
        if chosen.__init__ is SpecAgent.__init__:
            made._make(document)
        else:
            made.__init__(**document)  # type: ignore[misc]  # a subclass may replace ``__init__``
        return made

    @classmethod
    def _class_for(cls: type[Made], document: Mapping[str, Any]) -> type[Made]:
        """The class for a specification: the subclass for its algorithm if this class has one, otherwise this class."""
        if cls.kind is not None or "kind" not in vars(cls):
            return cls
        kind = cls.family.kind(document)
        return next((one for one in cls._below() if kind is not None and one.kind == kind), cls)

    @classmethod
    def _below(cls: type[Made]) -> Iterator[type[Made]]:
        """The subclasses of this class in its own module."""
        for one in cls.__subclasses__():
            if one.__module__ == cls.__module__:
                yield one
                yield from one._below()

    @classmethod
    def thin(cls: type[Made], name: str, kind: str, about: str) -> type[Made]:
        """A subclass for one algorithm, in the module of this class."""
        return type(name, (cls,), {"kind": kind, "__doc__": about, "__module__": cls.__module__})

    @classmethod
    def from_file(cls: type[Made], filename: Any, **additions: Any) -> Made:
        """The same as ``from_spec``, for a file with JSON or YAML."""
        return cls.from_spec(pathlib.Path(filename), **additions)

    @classmethod
    def create(cls: type[Made], agent: Any = None, environment: Any = None, **additions: Any) -> Made:
        """The same as ``from_spec``. :param environment: an environment that has the spaces of states and actions"""
        if environment is not None:
            for key in (self_states := cls.family.states[0], cls.family.actions[0]):
                names = (key, "observation_space" if key == self_states else "action_space")
                found = next((getattr(environment, one) for one in names if hasattr(environment, one)), None)
                additions.setdefault(key, found() if callable(found) else found)
        return cls.from_spec(agent, **additions)

    def _make(self, document: dict[str, Any]) -> None:
        """Initialize this agent from a specification with its states and actions."""
        family, document = self.family, underscored(document)
        if self.kind is not None:
            given = document.get("type")
            if given is not None and family.kind(document) != self.kind:
                raise CoachError(
                    f"the spec's type is {shown(given)}, and {type(self).__name__} needs the type '{self.kind}': "
                    f"change the type, or use Agent.from_spec"
                )
            document = {"type": self.kind, **document}
        algorithm = family.algorithm(document)
        arguments = {name: document.pop(name) for name in ARGUMENTS if name in document}
        if arguments.get("env_ids") is not None:
            arguments["env_ids"] = list(arguments["env_ids"])  # ``save`` writes a list, but no range or generator
        fields = Fields(document)
        states, actions = fields.get(*family.states), fields.get(*family.actions)
        for name, value in ((family.states[0], states), (family.actions[0], actions)):
            if value is None:
                raise CoachError(f"a spec of {family.name} needs {name}")
        rest = {name: one for name, one in document.items() if name not in (*family.states, *family.actions)}
        try:
            space = observation_space(states, family.parts_of_states)
            parts = family.parts_of_actions(actions)
            parts = with_bounds(parts) if algorithm.needs_bounds else parts
            self._become(rest, space, Actions(parts, algorithm.needs_numbers), arguments)
        except RecursionError:
            raise CoachError("the spec is nested too deeply") from None

    def _become(self, document: dict[str, Any], space: Any, actions: Actions, arguments: Mapping[str, Any]) -> None:
        """Initialize this agent from a specification without its states and actions."""
        family, fields = self.family, Fields(document)
        algorithm = family.algorithm(document)
        fields.get("type")
        definition = Definition(algorithm.parameters(fields), space=space)
        given = definition.parameters.exploration
        for exploration in given.values() if isinstance(given, dict) else [given]:
            if isinstance(exploration, AdditiveNoiseParameters) and not actions.is_bounded:
                exploration.noise_as_percentage_from_action_space = False
        apply_rows(algorithm.rows, definition, fields)
        if algorithm.complete is not None:
            algorithm.complete(definition, fields)
        fields.finish()
        limits = (definition.buffer_size, definition.first_update)
        self.spec = Spec(family.name, document, space, actions, *limits, dict(arguments))
        make_agent(
            definition.parameters, observation_space=space, action_space=actions.space, agent_class=self._begin,
            **{
                "updates_itself": family.updates_itself, "framework": running_framework(), **definition.arguments,
                **arguments,
            },
            **definition.settings,
        )  # fmt: skip

    def _begin(self, graph: Any, env_ids: Sequence[Any], updates_itself: bool, definition: Mapping[str, Any]) -> Agent:
        Agent.__init__(self, graph, env_ids, updates_itself, definition)
        self.env_names = list(env_ids)
        return self

    @property
    def _learns_now(self) -> bool:
        return super()._learns_now and self.total_steps >= self.spec.first_update

    def act(self, states: Any, env_ids: Any = None, deterministic: bool = False, infos: Any = None) -> Any:
        chosen = super().act(states, env_ids, deterministic, infos)
        to_user = self.spec.actions.to_user
        return [to_user(one) for one in chosen] if self._is_batch(env_ids) else to_user(chosen)

    def predict(self, states: Any, deterministic: bool = True, infos: Any = None) -> Any:
        chosen, actions = super().predict(states, deterministic, infos), self.spec.actions
        if np.ndim(chosen) == len(actions.space.shape):
            return actions.to_user(chosen)
        return [actions.to_user(one) for one in chosen]

    def update(self, batch: Mapping[str, Any] | None = None) -> float:
        return super().update(None if batch is None else self._chosen(renamed(batch)))

    def get_td_loss(self, batch: Mapping[str, Any]) -> recorded_steps.Loss:
        """The loss of a batch and of each of its rows, as ``update`` computes it, without an update."""
        columns, core = self.columns_of(batch), self._core
        _, result = core.update_loop.learner.gradients(columns, core.learning_scalars())
        loss = sum(float(one[0]) for one in result.losses.values())
        return recorded_steps.Loss.of(core, loss, result, len(columns["rewards"]))

    def columns_of(self, batch: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The columns of a batch that the update rule receives."""
        loop = self._core.update_loop
        given = recorded_steps.batch(self._core, self._environments[0], self._chosen(renamed(batch)))
        return loop.columns(loop.filtered(given, False))

    def import_observations(  # the argument has the name of both systems
        self, observations: Mapping[str, Any] | Iterable[Mapping[str, Any]]
    ) -> int:
        return super().import_observations(self._chosen(renamed(observations)))

    def _chosen(self, data: Any) -> Any:
        """Recorded steps with actions in the agent's form."""
        from_user, steps = self.spec.actions.from_user, recorded_steps.steps_of(data)
        return [{**one, "actions": from_user(one["actions"])} if "actions" in one else one for one in steps]

    # files

    def _definition_to_save(self) -> dict[str, Any]:
        """The specification itself, which ``save`` writes."""
        spec, seed = self.spec, self.graph_manager.seed
        written = {
            "family": spec.family,
            "document": setting_as_json(spec.document, "the spec"),
            "space": space_as_data(spec.space),
            "actions": spec.actions.as_data(),
            "as_numbers": spec.actions.as_numbers,
            "arguments": setting_as_json({**spec.arguments, "seed": seed}, "the arguments"),
        }
        return {**saved.plain_definition({}, self.graph_manager), "spec": written}

    def _restore(self, path: str | pathlib.Path) -> None:
        """Continue from files that ``save`` wrote."""
        definition = saved.read_definition(pathlib.Path(path) / DEFINITION_FILE)
        self.graph_manager.restore_checkpoint(str(path), continue_run=True)
        self._set_loop_state(definition["loop"])
        self._policy = None


_COLUMNS = {
    "state": "states", "action": "actions", "reward": "rewards", "terminal": "terminals", "next_state": "next_states",
    "preprocessed_states": "states", "preprocessed_next_states": "next_states",
}  # fmt: skip


def renamed(data: Any) -> Any:
    """Recorded steps with Coach's names of columns. The given names may be from TensorForce or RLgraph.

    :param data: columns, or a dict for each step
    :raises CoachError: if the data have another form, a column occurs twice, or the data contain the state of a
        recurrent network
    """
    if not isinstance(data, Mapping):
        if isinstance(data, (str, bytes)) or not hasattr(data, "__iter__"):
            raise CoachError(f"recorded steps must be dicts, not {shown(data)}")
        steps = list(data)
        if others := [one for one in steps if not isinstance(one, Mapping)]:
            raise CoachError(f"a recorded step must be a dict, not {shown(others[0])}")
        return [renamed(one) for one in steps]
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name in ("internal", "internals"):
            refuse_internals(value)
            continue
        present = _COLUMNS.get(str(name), str(name))
        if present in found:
            raise CoachError(f"the recorded steps have '{present}' twice")
        found[present] = value
    return found


def refuse_internals(internals: Any) -> None:
    """Check that no state of a recurrent network is given.

    :raises CoachError: if the state of a recurrent network is given
    """
    if internals is not None and np.size(internals):
        raise CoachError("internals are not supported: the agent keeps its recurrent state itself")


def agent_of_saved(agent_class: type[SpecAgent], written: Mapping[str, Any], given: Mapping[str, Any]) -> SpecAgent:
    """The agent that ``SpecAgent.save`` wrote.

    :param agent_class: the class of the system's agents
    :param written: the specification
    :param given: arguments that replace saved arguments
    :raises CoachError: if the specification is damaged
    """
    try:
        parts = (dict(written["document"]), written["space"], written["actions"], dict(written["arguments"]))
    except (LookupError, TypeError, ValueError) as error:
        raise CoachError(f"the saved spec is damaged: {error}") from error
    document, space, actions, arguments = parts
    chosen = agent_class._class_for(document)
    made = chosen.__new__(chosen)
    found = Actions.from_data(actions, bool(written.get("as_numbers")))
    made._become(document, space_from_data(space), found, {**arguments, **given})
    return made
