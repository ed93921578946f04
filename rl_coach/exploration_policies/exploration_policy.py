"""Base classes of all exploration policies."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.base_parameters import Parameters
from rl_coach.core_types import RunPhase
from rl_coach.policy.action_choice import ActionChoice
from rl_coach.policy.drawing import allowed_actions, of_each_part, require_allowed
from rl_coach.spaces import (
    ActionSpace,
    BoxActionSpace,
    DiscreteActionSpace,
    GoalsSpace,
    MultiDiscreteActionSpace,
    Space,
)
from rl_coach.utilities.episode_state import KeepsEpisodeState
from rl_coach.utilities.overrides import OverrideTable, coachs_class, why_not_on_fast_path
from rl_coach.utils import CoachError, dynamic_import_and_instantiate_module_from_params

ActionAndProbabilities = tuple[int, np.ndarray]

OVERRIDES = OverrideTable(
    {"action_choice": ("get_action",), "draws_by_probabilities": ("get_action",), "get_actions": ("get_action",)}
)
"""The attributes that a subclass does not inherit if it overrides ``get_action``. The subclass must define them too."""

_ALLOWED = frozenset({
    "action_choice", "advance", "get_control_param", "get_schedules", "get_state", "reset", "resume", "seed",
    "set_state", "set_worker", "suspend", "take_schedules",
})  # fmt: skip
"""The methods that a user may override without a new ``action_choice``, because they do not choose actions."""


def choice_override(policy: Any) -> str | None:
    """The name, as ``Class.method``, of a user's method that may make the policy choose differently from its
    ``action_choice``. None if the user's class has none of these methods.
    """
    return why_not_on_fast_path(policy, _ALLOWED, "action_choice")


def deployed_choice(policy: ExplorationPolicy) -> ActionChoice | None:
    """The rule by which the policy chooses after deployment, without exploration; None if the choice cannot be exported
    as a rule."""
    chooses_otherwise = choice_override(policy) is not None or OVERRIDES.is_replaced(policy, "action_choice")
    return None if chooses_otherwise else policy.action_choice()


def draws_by_probabilities(policy: ExplorationPolicy) -> bool:
    """True if the policy treats the agent's predictions as probabilities."""
    return policy.draws_by_probabilities and not OVERRIDES.is_replaced(policy, "draws_by_probabilities")


def chooses_in_columns(policy: ExplorationPolicy) -> bool:
    """True if ``get_actions`` of the policy's class in Coach chooses the same actions as its ``get_action``."""
    return policy.acts_in_columns and not OVERRIDES.is_replaced(coachs_class(type(policy)), "get_actions")


def fitting_exploration(parameters: Any, action_space: ActionSpace) -> Any:
    """The ``ExplorationParameters`` of an agent for an action space; None if the dict has no parameters for this action
    space.

    :param parameters: ``ExplorationParameters``, or a dict of them by the class of the action space
    """
    if not isinstance(parameters, dict):
        return parameters
    kind = DiscreteActionSpace if isinstance(action_space, MultiDiscreteActionSpace) else type(action_space)
    return next((one for space, one in parameters.items() if issubclass(kind, space)), None)


def make_exploration_policy(parameters: Any, action_space: ActionSpace, agent: str) -> Any:
    """The exploration policy of an agent.

    :param parameters: ``ExplorationParameters``, or a dict of them by the class of the action space
    :param agent: the name of the agent, for messages
    :raises CoachError: if no parameters fit this action space
    """
    given, parameters = parameters, fitting_exploration(parameters, action_space)
    if parameters is None:
        known = ", ".join(space.__name__ for space in given)
        raise CoachError(
            f"agent '{agent}' has exploration for {known}, not for {type(action_space).__name__}: "
            f"choose another agent, or an output filter that maps the actions"
        )
    parameters.action_space = action_space
    policy = dynamic_import_and_instantiate_module_from_params(parameters)
    parameters.action_space = None
    return policy


class ExplorationParameters(Parameters):
    """Choice of an exploration policy, with its parameters.

    :ivar action_space: the agent's action space, filled in when the agent is built
    """

    path = "rl_coach.exploration_policies.exploration_policy:ExplorationPolicy"

    def __init__(self) -> None:
        self.action_space: Any = None


class ExplorationPolicy(KeepsEpisodeState):
    """Base class of exploration policies. A policy chooses an action from the agent's predictions for the current
    state.

    :param action_space: the agent's action space
    :cvar schedule_names: the names of the attributes that are schedules
    :cvar own_state: the entries of ``get_state`` that belong to this process: random draws, and the episode in progress
    :ivar phase: phase of the run; many policies explore in TRAIN and choose the best action in TEST
    :ivar rng: the generator of the policy's random numbers
    :ivar tells_all_probabilities: True: ``get_action`` returns the probabilities of the whole policy. False: a policy
        with two ways to choose, such as ``EGreedy``, returns the probabilities of the way that it used
    :cvar draws_by_probabilities: True if the agent's predictions are probabilities, not values of actions
    :cvar draws_from_features: True if the policy also needs the features of the network's last layer. In the
        predictions, the features follow the mean
    :cvar acts_in_columns: True if ``get_actions`` chooses for many actors in one pass
    :cvar num_heads: number of Q heads that predict the values
    :cvar supported_actions: the classes of action spaces that the policy supports
    :cvar advice_on_actions: advice in the error for an action space of another class
    :raises CoachError: if the class of the action space is not supported
    """

    supported_actions: tuple[type, ...] = (Space,)
    advice_on_actions = ""
    draws_from_features = False
    num_heads = 1
    draws_by_probabilities = False
    acts_in_columns = False
    schedule_names: tuple[str, ...] = ()
    own_state: tuple[str, ...] = ("rng",)

    def __init__(self, action_space: ActionSpace):
        self.phase = RunPhase.HEATUP
        self.action_space = action_space
        self.rng = np.random.default_rng()
        self.tells_all_probabilities = False
        if not isinstance(action_space, self.supported_actions):
            raise self._refuse(self.advice_on_actions)

    def seed(self, seed: Any) -> None:
        """Restart the random stream from an int or a ``SeedSequence``."""
        self.rng = np.random.default_rng(seed)

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> Any:
        """Choose an action.

        :param action_values: the agent's predictions: a value or a probability for each discrete action; the mean [D]
            of continuous actions, or a list of the mean and, if the agent learns it, the standard deviation; None if
            ``requires_action_values`` returned False
        :param action_mask: [A] of 0 and 1, the allowed discrete actions; None allows all. The argument is only passed
            if the environment has masks, so a policy without this argument works with other environments. Continuous
            actions have no masks
        :return: for discrete actions, the action and the probabilities [A] from which it was chosen, one-hot for the
            best action; for continuous actions, the action [D], not clipped to the space
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not choose actions; set exploration to a policy, such as EGreedyParameters()"
        )

    def get_actions(
        self, action_values: Callable[[], Any], count: int, action_masks: np.ndarray | None = None
    ) -> np.ndarray:
        """Choose the actions of several actors in one pass, with the same rule as ``get_action``. Only policies with
        ``acts_in_columns`` implement this method.

        :param action_values: returns the agent's predictions [N, ...]; not called if no action depends on them
        :param count: N, the number of actors
        :param action_masks: [N, A] of 0 and 1, as in ``get_action``
        :return: [N] discrete actions, or [N, D] continuous actions
        """
        raise NotImplementedError(f"{type(self).__name__} chooses one action at a time")

    def advance(self, steps: int) -> None:
        """Advance the schedules, in TRAIN, by steps that another process played. For the steps of this process,
        ``get_action`` advances them."""
        if self.phase == RunPhase.TRAIN:
            for name in self.schedule_names:
                getattr(self, name).advance(steps)

    def set_worker(self, index: int, num_workers: int) -> None:
        """Set the number of this worker, for policies that explore differently in each worker. ``get_state`` does not
        include the number, so a state from the trainer does not change it.

        :param index: from 0 to ``num_workers`` - 1
        """

    def action_choice(self) -> ActionChoice | None:
        """The rule by which the policy chooses after deployment, without exploration; None if there is no rule. Call
        ``deployed_choice`` instead: it also checks that no subclass overrides the choice.
        """
        return None

    def change_phase(self, phase: RunPhase) -> None:
        """Set the phase of the run."""
        self.phase = phase

    def requires_action_values(self) -> bool:
        """False if the next action does not depend on predictions, so that the network need not run for it."""
        return True

    def get_control_param(self) -> Any:
        """The value of the signal ``Epsilon``, such as epsilon, a temperature or the size of the noise. The CSV
        contains the mean of an array. The default is 0."""
        return 0

    def get_state(self) -> dict[str, Any]:
        """The state that a checkpoint must hold to continue exactly."""
        schedules = {name: getattr(self, name).get_state() for name in self.schedule_names}
        return {"rng": self.rng.bit_generator.state, **schedules}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned.

        :raises CoachError: if the state belongs to another kind of policy
        """
        try:
            self._restore(state)
        except CoachError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise CoachError(
                f"the exploration state in the checkpoint does not fit {type(self).__name__}: {error!r}"
            ) from error

    def get_schedules(self) -> dict[str, Any]:
        """The state of the schedules. They advance with the steps of the whole run, which any process may play."""
        return {name: value for name, value in self.get_state().items() if name not in self.own_state}

    def take_schedules(self, schedules: dict[str, Any]) -> None:
        """Set the schedules to the state that ``get_schedules`` of another process returned."""
        self.set_state({**self.get_state(), **schedules})

    def _restore(self, state: dict[str, Any]) -> None:
        self.rng.bit_generator.state = state["rng"]  # in place: several actors may share the generator
        for name in self.schedule_names:
            getattr(self, name).set_state(state[name])

    def _refuse(self, reason: str) -> CoachError:
        """The error that says why the action space is refused; ``reason`` ends with what to do."""
        return CoachError(f"{type(self).__name__} cannot explore {type(self.action_space).__name__}: {reason}")


class DiscreteActionExplorationPolicy(ExplorationPolicy):
    """A policy that chooses one of the actions of a ``DiscreteActionSpace``."""

    supported_actions: tuple[type, ...] = (DiscreteActionSpace,)
    advice_on_actions = (
        "the actions are not discrete; choose a policy for continuous actions, such as AdditiveNoiseParameters(), or "
        "add a BoxDiscretization to the output_filter"
    )


class ContinuousActionExplorationPolicy(ExplorationPolicy):
    """A policy that chooses a point of a ``BoxActionSpace`` or a ``GoalsSpace``."""

    supported_actions: tuple[type, ...] = (BoxActionSpace, GoalsSpace)
    advice_on_actions = (
        "the actions are not continuous; choose a policy for discrete actions, such as EGreedyParameters() or "
        "CategoricalParameters()"
    )

    def _mean_and_std(self, action_values: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """The mean and the agent's own standard deviation, if it has one, both of the action space's shape."""
        mean, *learned = action_values if isinstance(action_values, (list, tuple)) else [action_values]
        shape = tuple(self.action_space.shape)
        return np.reshape(mean, shape), np.reshape(learned[0], shape) if learned else None


def best_action(
    values: np.ndarray, rng: np.random.Generator, action_mask: np.ndarray | None = None
) -> ActionAndProbabilities:
    """The allowed action with the highest value, and its one-hot probabilities [A]. Ties are broken at random.

    :param values: [A]
    :param action_mask: [A] of 0 and 1, None allows all
    :raises CoachError: if no action is allowed
    """
    probabilities = np.zeros(values.size)
    allowed = None if action_mask is None else allowed_actions(action_mask)
    candidates = values if allowed is None else values[allowed]
    best = int(candidates.argmax())
    is_best = candidates == candidates[best]
    if np.count_nonzero(is_best) > 1:
        ties = np.flatnonzero(is_best)
        best = int(ties[rng.integers(ties.size)])
    action = best if allowed is None else int(allowed[best])
    probabilities[action] = 1.0
    return action, probabilities


def best_actions(values: np.ndarray, rng: np.random.Generator, action_masks: np.ndarray | None = None) -> np.ndarray:
    """[N], the allowed action with the highest value in each row. Ties are broken at random.

    :param values: [N, A]
    :param action_masks: [N, A] of 0 and 1, None allows all
    :raises CoachError: if a row allows no action
    """
    if values.ndim == 3:
        return of_each_part(lambda rows, masks: best_actions(rows, rng, masks), values, action_masks)
    best, is_tied = best_and_tied(values, action_masks)
    for row in np.flatnonzero(is_tied):
        best[row] = best_action(values[row], rng, None if action_masks is None else action_masks[row])[0]
    return best


def best_and_tied(values: np.ndarray, action_masks: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """[N], the first of the best allowed actions in each row; and [N], True if another allowed action has the same
    value.

    :param values: [N, A]
    :param action_masks: [N, A] of 0 and 1, None allows all
    :raises CoachError: if a row allows no action
    """
    if action_masks is not None:
        allowed = action_masks > 0
        require_allowed(allowed)
        values = np.where(allowed, values, -np.inf)
    is_best = values == values.max(axis=1, keepdims=True)
    return values.argmax(axis=1), np.count_nonzero(is_best, axis=1) > 1
