"""The algorithms by name. The list is read from the classes of this package, so a new agent file needs no entry."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import textwrap
from dataclasses import dataclass
from typing import Any, Iterator

from rl_coach import agents
from rl_coach.architectures.components import component_class
from rl_coach.architectures.heads import HEADS, Head
from rl_coach.base_parameters import AgentParameters
from rl_coach.spaces import ActionSpace, BoxActionSpace, DiscreteActionSpace
from rl_coach.utils import CoachError, did_you_mean

_SUFFIX = "AgentParameters"
_LONGEST_NAME = 80
_AS_IN = "it is '{}' with {}: from rl_coach.presets.tuned.{} import agent_params, then make_agent(agent_params, env)"
_VARIANTS = {
    "CrossQ": _AS_IN.format("SAC", "settings", "Pendulum_CrossQ"),
    "DroQ": "it is 'SAC' with the network settings of docs/algorithms/soft_actor_critic.md",
    "HER": "give 'DQN', 'DDPG' or 'TD3' a memory with hindsight, as the preset BitFlip_DQN_HER does",
    "MaskablePPO": "it is 'PPO' with action_mask=True",
    "RecurrentPPO": _AS_IN.format("PPO", "an LSTM", "CartPole_RecurrentPPO"),
    "SimbaV2": _AS_IN.format("SAC", "settings", "Pendulum_SimbaV2"),
    "TQC": _AS_IN.format("SAC", "settings", "Pendulum_TQC"),
}
"""Algorithms of Stable-Baselines3 and its extensions that are settings of another algorithm here, not classes."""


@dataclass(frozen=True)
class NamedAlgorithm:
    """An algorithm and its names.

    :param names: the usual name, then other names
    :param parameters: the class of its parameters; for ``Composite``, the class of the agent
    :param about: one sentence that describes it, for ``coach algorithms`` and messages
    """

    names: tuple[str, ...]
    parameters: type
    about: str


@functools.cache
def known_algorithms() -> tuple[NamedAlgorithm, ...]:
    """All algorithms, in alphabetical order. The first call imports all agents, which takes about 0.1 s."""
    modules = [module.name for module in pkgutil.iter_modules(agents.__path__, f"{agents.__name__}.")]
    found = [one for name in modules if name.endswith("_agent") for one in _algorithms_of(name)]
    return tuple(sorted(found, key=lambda algorithm: algorithm.names[0].lower()))


def _algorithms_of(name: str) -> Iterator[NamedAlgorithm]:
    module = importlib.import_module(name)
    own = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name]
    # a subclass does not inherit the names: it is another algorithm
    found = [one for one in own if issubclass(one, AgentParameters) or "algorithm_names" in vars(one)]
    for one in found:
        names = vars(one).get("algorithm_names", (one.__name__.removesuffix(_SUFFIX),))
        text = (module if len(found) == 1 else one).__doc__ or ""
        yield NamedAlgorithm(names, one, " ".join(text.partition("\n\n")[0].split()))


def plain_name(name: str) -> str:
    """A name in small letters, without hyphens, underscores and other signs. Names are compared in this form."""
    return re.sub(r"[\W_]", "", name).lower()


def find_algorithm(name: str) -> NamedAlgorithm:
    """The algorithm with a name.

    :raises CoachError: if the name is unknown; the message names the most similar name
    """
    name = textwrap.shorten(name, _LONGEST_NAME, placeholder="...")  # keeps the messages short
    wanted, known = plain_name(name), known_algorithms()
    for algorithm in known:
        if wanted in map(plain_name, algorithm.names):
            return algorithm
    for variant, advice in _VARIANTS.items():
        if wanted == plain_name(variant):
            raise CoachError(f"there is no algorithm '{name}': {advice}")
    suggestion = did_you_mean(plain_name(name), [one for algorithm in known for one in algorithm.names])
    raise CoachError(f"there is no algorithm '{name}'{suggestion} ('coach algorithms' lists all names)")


_KINDS: dict[str, type[ActionSpace]] = {"discrete": DiscreteActionSpace, "continuous": BoxActionSpace}
_WELL_KNOWN = ("SAC", "TD3", "DDPG", "DQN", "Rainbow", "ClippedPPO", "A2C")
"""Algorithms to suggest, if they support the kind of actions."""


def kinds_of_actions(parameters: AgentParameters) -> list[str]:
    """The kinds of actions that all heads of the networks and the exploration policy support: ``"discrete"``,
    ``"continuous"``, both or none."""
    heads = [head.path for network in parameters.network_wrappers.values() for head in network.heads_parameters]
    supported = [getattr(component_class(one, HEADS, Head), "supported_actions", (ActionSpace,)) for one in heads]
    exploration: Any = parameters.exploration
    if isinstance(exploration, dict):
        supported.append(tuple(exploration))
    return [name for name, kind in _KINDS.items() if all(issubclass(kind, one) for one in supported)]


def unmet_by_actions(parameters: AgentParameters, actions: ActionSpace, level: str) -> Iterator[str]:
    """Yield a message if the agent does not support the actions, with the names of agents that do.

    :param actions: after the output filter
    :param level: the level's name, for the message
    """
    kind = next((name for name, space in _KINDS.items() if isinstance(actions, space)), None)
    known = kinds_of_actions(parameters)
    if kind is None or not known or kind in known:
        return
    fitting = [name for name in _WELL_KNOWN if kind in kinds_of_actions(find_algorithm(name).parameters())]
    names = {algorithm.parameters: algorithm.names[0] for algorithm in known_algorithms()}
    name = names.get(type(parameters), type(parameters).__name__.removesuffix(_SUFFIX))
    yield (
        f"{name} is for {known[0]} actions. {level} has {kind} actions: use "
        f"{', '.join(fitting[:-1])} or {fitting[-1]}, or an output filter that maps the actions"
    )
