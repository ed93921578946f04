"""Agents that a specification of another system describes."""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, ClassVar, Iterable, Mapping, Sequence, TypeVar, Union

import numpy as np

from rl_coach.agents.algorithms import plain_name
from rl_coach.base_parameters import AgentParameters
from rl_coach.own_loop import recorded
from rl_coach.own_loop.agent import DEFINITION_FILE, Agent, make_agent
from rl_coach.own_loop.forms import Actions, Parts, observation_space
from rl_coach.own_loop.graph import OwnLoopGraphManager
from rl_coach.own_loop.making import algorithm_parameters
from rl_coach.own_loop.places import row
from rl_coach.own_loop.spaces import space_as_data, space_from_data
from rl_coach.own_loop.spec_fields import Fields, read_spec, shown
from rl_coach.own_loop.spec_parts import Definition, Stack, set_optimizer
from rl_coach.utils import CoachError

ARGUMENTS = (
    "num_envs", "env_ids", "heatup_steps", "updates_itself", "seed", "framework", "experiment_path", "reward_threshold",
)  # fmt: skip
"""Arguments of ``make_agent`` that may stand beside a specification."""

Made = TypeVar("Made", bound="SpecAgent")

Reader = Callable[[Fields, Any], Definition]
"""Function of a specification and Gymnasium's space of the states."""

CommonReader = Callable[[AgentParameters, Fields, Any, str], tuple[Definition, Union[Stack, None]]]


def _plain_type(name: str) -> str:
    return plain_name(name).removesuffix("agent")


@dataclass(frozen=True)
class Family:
    """A system whose specifications are understood.

    :param name: of the system
    :param readers: what reads a specification, by its ``type``
    :param states: keys that states are given under; the first is the present one
    :param actions: likewise for actions
    :param parts_of_states: the states from what is given for them
    :param parts_of_actions: likewise for actions
    :param common: reads the fields of all algorithms; its last argument names the network of ``network``
    :param updates_itself: agents learn in ``observe``
    """

    name: str
    readers: Mapping[str, Reader]
    states: tuple[str, ...]
    actions: tuple[str, ...]
    parts_of_states: Callable[[Any], Parts]
    parts_of_actions: Callable[[Any], Parts]
    common: CommonReader
    updates_itself: bool

    def agent(self, agent_class: type[Made], given: Any, additions: Mapping[str, Any]) -> Made:
        """The agent of a specification.

        :param agent_class: its class
        :param given: the specification; see ``Agent.from_spec``
        :param additions: keys that count instead of those of the specification, and arguments of ``make_agent``
        :raises CoachError: for bad input
        """
        document = {**read_spec(given), **{name: one for name, one in additions.items() if one is not None}}
        arguments = {name: document.pop(name) for name in ARGUMENTS if name in document}
        fields = Fields(document)
        states, actions = fields.get(*self.states), fields.get(*self.actions)
        for name, value in ((self.states[0], states), (self.actions[0], actions)):
            if value is None:
                raise CoachError(f"a spec of {self.name} needs {name}")
        space = observation_space(states, self.parts_of_states)
        plain = {name: one for name, one in document.items() if name not in (*self.states, *self.actions)}
        return self.made(agent_class, plain, space, Actions(self.parts_of_actions(actions)), arguments)

    def made(
        self,
        agent_class: type[Made],
        document: dict[str, Any],
        space: Any,
        actions: Actions,
        arguments: Mapping[str, Any],
    ) -> Made:
        """The agent of a specification without its states and actions.

        :param agent_class: its class
        :param space: Gymnasium's of the states
        :param arguments: of ``make_agent``
        :raises CoachError: for bad input
        """
        fields = Fields(document)
        definition = self._reader(fields)(fields, space)
        fields.finish()
        spec = Spec(self.name, document, space, actions, definition.buffer_size, dict(arguments))
        made = make_agent(
            definition.parameters, observation_space=space, action_space=actions.space,
            agent_class=partial(agent_class, spec=spec),
            **{"updates_itself": self.updates_itself, **definition.arguments, **arguments}, **definition.settings,
        )  # fmt: skip
        assert isinstance(made, agent_class)
        return made

    def _reader(self, fields: Fields) -> Reader:
        """The function that reads this type of specification. Types without a reader are read in general."""
        kind = fields.get("type")
        if not isinstance(kind, str):
            problem = "missing" if kind is None else f"the name of an algorithm, not {shown(kind)}"
            raise CoachError(f"the spec's 'type' is {problem}; there are {', '.join(self.readers)}")
        readers = {_plain_type(name): reader for name, reader in self.readers.items()}
        if reader := readers.get(_plain_type(kind)):
            return reader
        try:
            return partial(self._read_in_general, algorithm_parameters(re.sub("(?i)[-_]?agent$", "", kind)))
        except CoachError as error:
            raise CoachError(f"the spec's 'type': {error}") from None

    def _read_in_general(self, parameters: AgentParameters, fields: Fields, space: Any) -> Definition:
        """Read the fields that all algorithms have: discount, network and optimizer. ``finish`` refuses the others."""
        networks = parameters.network_wrappers
        first = next((name for name in ("main", "policy", "actor") if name in networks), next(iter(networks), ""))
        definition, _ = self.common(parameters, fields, space, first)
        set_optimizer(definition, fields.fields("optimizer", "optimizer_spec"), list(networks))
        return definition


@dataclass(frozen=True)
class Spec:
    """All that an agent was made of.

    :param family: the system's name
    :param document: the specification without states and actions
    :param space: Gymnasium's of the states
    :param actions: the actions
    :param buffer_size: steps after which an episode is cut; None for no limit
    :param arguments: further arguments of ``make_agent``
    """

    family: str
    document: dict[str, Any]
    space: Any
    actions: Actions
    buffer_size: int | None
    arguments: dict[str, Any]


class SpecAgent(Agent):
    """An agent of a specification. Its actions have the form that the specification gives them.

    :param graph: as for ``Agent``, as the others
    :param spec: what it was made of

    :cvar family: the system that its specifications are of
    :ivar env_names: names of its environments
    """

    family: ClassVar[Family]

    def __init__(
        self,
        graph: OwnLoopGraphManager,
        env_ids: Sequence[Any] = (0,),
        updates_itself: bool = True,
        definition: Mapping[str, Any] | None = None,
        *,
        spec: Spec,
    ):
        super().__init__(graph, env_ids, updates_itself, definition)
        self.spec = spec
        self.env_names = list(env_ids)

    @classmethod
    def from_spec(cls: type[Made], spec: Any = None, kwargs: Mapping[str, Any] | None = None, **additions: Any) -> Made:
        return cls.family.agent(cls, {} if spec is None else spec, {**(kwargs or {}), **additions})

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
        return super().update(None if batch is None else self._chosen(batch))

    def import_observations(self, data: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> int:
        return super().import_observations(self._chosen(data))

    def _chosen(self, data: Any) -> Any:
        """Recorded steps with actions as the agent chooses them."""
        from_user = self.spec.actions.from_user
        if not isinstance(data, Mapping):
            return [{**one, "actions": from_user(one["actions"])} if "actions" in one else one for one in data]
        if not {"actions", "rewards"} <= set(data):
            return data
        count = len(data["rewards"])
        return {**data, "actions": [from_user(row(data["actions"], number, count)) for number in range(count)]}

    # files

    def _definition_to_save(self) -> dict[str, Any]:
        """The specification itself, which ``save`` writes."""
        spec, seed = self.spec, self.graph_manager.seed
        written = {
            "family": spec.family,
            "document": recorded.as_json(spec.document, "the spec"),
            "space": space_as_data(spec.space),
            "actions": spec.actions.as_data(),
            "arguments": recorded.as_json({**spec.arguments, "seed": seed}, "the arguments"),
        }
        return {**recorded.plain_definition({}, self.graph_manager), "spec": written}

    def _restore(self, path: str | pathlib.Path) -> None:
        """Go on from what ``save`` wrote."""
        recorded.read_definition(pathlib.Path(path) / DEFINITION_FILE)
        self.graph_manager.restore_checkpoint(str(path), continue_run=True)
        self._policy = None


def agent_of_saved(agent_class: type[SpecAgent], saved: Mapping[str, Any], given: Mapping[str, Any]) -> SpecAgent:
    """The agent of what ``SpecAgent.save`` wrote.

    :param agent_class: the class of agents of its system
    :param saved: the specification
    :param given: arguments that count instead of those that were saved
    :raises CoachError: it is damaged
    """
    try:
        parts = (dict(saved["document"]), saved["space"], saved["actions"], dict(saved["arguments"]))
    except (LookupError, TypeError, ValueError) as error:
        raise CoachError(f"the saved spec is damaged: {error}") from error
    document, space, actions, arguments = parts
    actions = Actions.from_data(actions)
    return agent_class.family.made(agent_class, document, space_from_data(space), actions, {**arguments, **given})
