"""Acting in a compiled loop, as pure functions which agents share."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.architectures.update import NetworkView
from rl_coach.base_parameters import AgentParameters
from rl_coach.exploration_policies.exploration_policy import fitting_exploration
from rl_coach.spaces import ActionSpace

Act = Callable[[Any, dict[str, NetworkView], dict[str, Any], Any], Any]
"""See ``CompiledAgent.act``."""


def epsilon_greedy(
    ops: Any, random: Any, values: Callable[[dict[str, NetworkView], dict[str, Any]], Any], mask_name: str | None
) -> Act:
    """Actions as ``EGreedy`` chooses them: the best, ties at random, or with probability epsilon any that is possible.

    :param values: the values [N, A] in states as networks see them
    :param mask_name: the observation that says which actions are possible, None for none
    """

    def act(key: Any, networks: dict[str, NetworkView], states: dict[str, Any], level: Any) -> Any:
        q = values(networks, states)
        possible = ops.ones_like(q) if mask_name is None else ops.cast(states[mask_name] > 0, "float32")
        best = ops.max(ops.where(possible > 0, q, -np.inf), axis=-1, keepdims=True)
        greedy = possible * ops.cast(q == best, "float32")
        uniform, greedy = (one / ops.sum(one, axis=-1, keepdims=True) for one in (possible, greedy))
        epsilon = level[:, None]
        return random.categorical(key, ops.log(epsilon * uniform + (1.0 - epsilon) * greedy))

    return act


def why_exploration_is_not_compiled(parameters: AgentParameters, actions: ActionSpace, *kinds: type) -> str | None:
    """The reason why an agent's exploration cannot be part of a compiled loop, None if it can.

    :param parameters: the agent's
    :param actions: the environment's
    :param kinds: the parameters of the explorations that can; those of subclasses cannot
    """
    exploration = fitting_exploration(parameters.exploration, actions)
    return None if type(exploration) in kinds else f"{type(exploration).__name__} has no compiled form"
