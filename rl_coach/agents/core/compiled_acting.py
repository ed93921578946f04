"""Acting in a compiled loop, as pure functions which agents share."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from rl_coach.architectures.compiled_loop import Arrays, Networks
from rl_coach.architectures.policies import allows
from rl_coach.base_parameters import AgentParameters
from rl_coach.exploration_policies.exploration_policy import fitting_exploration
from rl_coach.schedules import Schedule
from rl_coach.spaces import ActionSpace, BoxActionSpace

Act = Callable[[Any, Networks, Arrays, Any], Any]
"""As ``CompiledAgent.act``, of an agent that remembers nothing: ``act(key, networks, states, level)`` gives the
actions."""
Evaluate = Callable[[Any, Networks, Arrays], Any]
"""As ``CompiledAgent.evaluate``, of an agent that remembers nothing: ``evaluate(key, networks, states)`` gives the
actions."""
Levels = Callable[[int, int], np.ndarray]
"""See ``CompiledAgent.levels``."""


class Exploration(NamedTuple):
    """Exploration in a compiled loop, of an agent that remembers nothing.

    :param act: in heatup and training
    :param levels: what ``act`` needs
    :param evaluate: in evaluations
    """

    act: Act
    levels: Levels
    evaluate: Evaluate


class ActsWithoutState:
    """``CompiledActing`` of an agent that remembers nothing: the recurrent state stays as it is."""

    def __init__(self, exploration: Exploration):
        self._exploration, self.levels = exploration, exploration.levels

    def act(self, key: Any, networks: Networks, states: Arrays, recurrent: Arrays, level: Any) -> tuple[Any, Arrays]:
        return self._exploration.act(key, networks, states, level), recurrent

    def evaluate(self, key: Any, networks: Networks, states: Arrays, recurrent: Arrays) -> tuple[Any, Arrays]:
        return self._exploration.evaluate(key, networks, states), recurrent


def at_level(act: Act, level: float) -> Evaluate:
    """Actions in evaluations, as ``act`` chooses them in one copy at a level that stays."""
    levels = np.asarray([level], np.float32)
    return lambda key, networks, states: act(key, networks, states, levels)


def epsilon_greedy(ops: Any, random: Any, values: Callable[[Networks, Arrays], Any], mask_name: str | None) -> Act:
    """Actions as ``EGreedy`` chooses them: the best, ties at random, or with probability epsilon any that is possible.

    :param values: the values [N, A] in states as networks see them
    :param mask_name: the observation that says which actions are possible, None for none
    """

    def act(key: Any, networks: Networks, states: Arrays, level: Any) -> Any:
        q = values(networks, states)
        possible = ops.ones_like(q) if mask_name is None else ops.cast(allows(ops, states[mask_name]), "float32")
        best = ops.max(ops.where(possible > 0, q, -np.inf), axis=-1, keepdims=True)
        greedy = possible * ops.cast(q == best, "float32")
        uniform, greedy = (one / ops.sum(one, axis=-1, keepdims=True) for one in (possible, greedy))
        epsilon = level[:, None]
        return random.categorical(key, ops.log(epsilon * uniform + (1.0 - epsilon) * greedy))

    return act


def additive_noise(
    ops: Any,
    random: Any,
    policy: Callable[[Networks, Arrays], Any],
    space: BoxActionSpace,
    is_share_of_range: bool,
) -> Act:
    """A policy's actions with the noise of ``AdditiveNoise``, within the bounds of the space.

    The level has the standard deviation in each copy of the environment.

    :param policy: the actions [N, D] in states as networks see them
    :param is_share_of_range: deviations are shares of the space's range
    """
    low, high = (np.asarray(bound, np.float32) for bound in (space.low, space.high))
    unit = high - low if is_share_of_range else np.ones_like(low)

    def act(key: Any, networks: Networks, states: Arrays, level: Any) -> Any:
        actions = policy(networks, states)
        noise = level[:, None] * unit * random.normal(key, actions.shape)
        return ops.minimum(ops.maximum(actions + noise, low), high)

    return act


def uniform_at_first(
    ops: Any, random: Any, exploration: Exploration, space: BoxActionSpace, acts_by_networks: Callable[[], bool]
) -> Exploration:
    """The exploration of an agent whose actions are drawn uniformly as long as its networks do not act.

    :param exploration: how it acts by its networks
    :param space: a box with bounds
    :param acts_by_networks: False as long as its networks do not act
    """
    low, high = (np.asarray(bound, np.float32) for bound in (space.low, space.high))

    def either(key: Any, networks: Networks, states: Arrays, level: Any) -> Any:
        own, uniform = random.split(key)
        actions = exploration.act(own, networks, states, level[:-1])
        drawn = random.uniform(uniform, actions.shape, minval=low, maxval=high)
        return ops.where(level[-1] > 0, drawn, actions)

    def either_levels(ahead: int, steps: int) -> np.ndarray:
        is_uniform = np.full((steps, 1), not acts_by_networks(), np.float32)
        return np.concatenate([exploration.levels(ahead, steps), is_uniform], axis=1)

    return Exploration(either, either_levels, exploration.evaluate)


def schedule_ahead(schedule: Schedule, ahead: int, steps: int, num_copies: int, advances: bool) -> np.ndarray:
    """[steps, num_copies] float32, a schedule's values in the next steps, each of which advances it in each copy.

    :param ahead: environment steps before them that are not counted yet
    :param advances: False if the schedule stands still
    """
    if not advances:
        return np.full((steps, num_copies), schedule.current_value, np.float32)
    values = schedule.values_at(schedule.num_steps + ahead, steps * num_copies)
    return values.astype(np.float32).reshape(steps, num_copies)


def why_exploration_is_not_compiled(parameters: AgentParameters, actions: ActionSpace, *kinds: type) -> str | None:
    """The reason why an agent's exploration cannot be part of a compiled loop, None if it can.

    :param parameters: the agent's
    :param actions: the environment's
    :param kinds: the parameters of the explorations that can; those of subclasses cannot
    """
    exploration = fitting_exploration(parameters.exploration, actions)
    return None if type(exploration) in kinds else f"{type(exploration).__name__} has no compiled form"
