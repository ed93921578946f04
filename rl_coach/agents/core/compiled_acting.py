"""Acting in a compiled loop. Agents share these pure functions."""

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
"""``act(key, networks, states, level)`` returns the actions [N, ...]. It is ``CompiledAgent.act`` for an agent without
a recurrent state."""
Evaluate = Callable[[Any, Networks, Arrays], Any]
"""``evaluate(key, networks, states)`` returns the actions [N, ...]. It is ``CompiledAgent.evaluate`` for an agent
without a recurrent state."""
Levels = Callable[[int, int], np.ndarray]
"""See ``CompiledAgent.levels``."""


class Exploration(NamedTuple):
    """Exploration in a compiled loop, for an agent without a recurrent state.

    :param act: chooses actions in heatup and training
    :param levels: gives the levels of exploration for ``act``
    :param evaluate: chooses actions in evaluations
    """

    act: Act
    levels: Levels
    evaluate: Evaluate


class ActsWithoutState:
    """``CompiledActing`` for an agent without a recurrent network: it returns the (empty) recurrent state unchanged."""

    def __init__(self, exploration: Exploration):
        self._exploration, self.levels = exploration, exploration.levels

    def act(self, key: Any, networks: Networks, states: Arrays, recurrent: Arrays, level: Any) -> tuple[Any, Arrays]:
        return self._exploration.act(key, networks, states, level), recurrent

    def evaluate(self, key: Any, networks: Networks, states: Arrays, recurrent: Arrays) -> tuple[Any, Arrays]:
        return self._exploration.evaluate(key, networks, states), recurrent


def at_level(act: Act, level: float) -> Evaluate:
    """The actions of ``act`` at a constant level, for evaluations in one copy of the environment."""
    levels = np.asarray([level], np.float32)
    return lambda key, networks, states: act(key, networks, states, levels)


def epsilon_greedy(ops: Any, random: Any, values: Callable[[Networks, Arrays], Any], mask_name: str | None) -> Act:
    """Epsilon-greedy actions, with the same probabilities as in ``EGreedy``: with probability epsilon a random possible
    action, otherwise one of the best actions.

    :param values: returns the values [N, A] in states after the filters
    :param mask_name: the observation that masks impossible actions; None if all are possible
    """

    def act(key: Any, networks: Networks, states: Arrays, level: Any) -> Any:
        q = values(networks, states)
        possible = ops.ones_like(q) if mask_name is None else ops.cast(allows(ops, states[mask_name]), "float32")
        # an impossible action must not be the best one
        best = ops.max(ops.where(possible > 0, q, -np.inf), axis=-1, keepdims=True)
        greedy = possible * ops.cast(q == best, "float32")
        uniform, greedy = (one / ops.sum(one, axis=-1, keepdims=True) for one in (possible, greedy))
        # one draw from the mixture of both distributions instead of a draw for each decision
        epsilon = level[:, None]
        # log 0 is -inf, so impossible actions are never drawn
        return random.categorical(key, ops.log(epsilon * uniform + (1.0 - epsilon) * greedy))

    return act


def additive_noise(
    ops: Any,
    random: Any,
    policy: Callable[[Networks, Arrays], Any],
    space: BoxActionSpace,
    is_share_of_range: bool,
) -> Act:
    """A policy's actions with the normal noise of ``AdditiveNoise``, clipped to the bounds of the space.

    The level is the standard deviation of the noise in each copy of the environment.

    :param policy: returns the actions [N, D] in states after the filters
    :param is_share_of_range: True: the level is a fraction of the space's range. False: the level is absolute
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
    """The exploration of an agent that first draws uniform actions, and later acts by its networks.

    The level has an additional last element: 1 for uniform actions, 0 for actions of the networks.

    :param exploration: chooses the actions once networks act
    :param space: a box with finite bounds
    :param acts_by_networks: False until the networks act
    """
    low, high = (np.asarray(bound, np.float32) for bound in (space.low, space.high))

    def either(key: Any, networks: Networks, states: Arrays, level: Any) -> Any:
        # both actions are computed, because a compiled step has no branch that depends on a value
        own, uniform = random.split(key)
        actions = exploration.act(own, networks, states, level[:-1])
        drawn = random.uniform(uniform, actions.shape, minval=low, maxval=high)
        return ops.where(level[-1] > 0, drawn, actions)

    def either_levels(ahead: int, steps: int) -> np.ndarray:
        is_uniform = np.full((steps, 1), not acts_by_networks(), np.float32)
        return np.concatenate([exploration.levels(ahead, steps), is_uniform], axis=1)

    return Exploration(either, either_levels, exploration.evaluate)


def schedule_ahead(schedule: Schedule, ahead: int, steps: int, num_copies: int, advances: bool) -> np.ndarray:
    """[steps, num_copies] float32, the values of a schedule in the next steps. Each step of each copy advances the
    schedule by one.

    :param ahead: number of environment steps that are planned but not yet counted by the schedule
    :param advances: False if the schedule does not advance, as in heatup
    """
    if not advances:
        return np.full((steps, num_copies), schedule.current_value, np.float32)
    values = schedule.values_at(schedule.num_steps + ahead, steps * num_copies)
    return values.astype(np.float32).reshape(steps, num_copies)


def why_exploration_is_not_compiled(parameters: AgentParameters, actions: ActionSpace, *kinds: type) -> str | None:
    """The reason why an agent's exploration policy cannot be part of a compiled loop; None if it can.

    :param actions: the environment's action space
    :param kinds: the supported parameter classes; subclasses of them are not supported, because they may override any
        method
    """
    exploration = fitting_exploration(parameters.exploration, actions)
    return None if type(exploration) in kinds else f"{type(exploration).__name__} has no compiled form"
