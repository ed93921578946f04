"""Acts at random now and then, and greedily otherwise."""

from __future__ import annotations

import copy
from typing import Any, Callable, Mapping

import numpy as np

from rl_coach.core_types import RunPhase
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.exploration_policy import (
    ActionAndProbabilities,
    ExplorationParameters,
    ExplorationPolicy,
    best_action,
    best_actions,
    best_and_tied,
    deployed_choice,
)
from rl_coach.policy.action_choice import ActionChoice, GreedyChoice
from rl_coach.policy.drawing import sample_action
from rl_coach.schedules import LinearSchedule, Schedule
from rl_coach.spaces import ActionSpace, BoxActionSpace, DiscreteActionSpace, MultiDiscreteActionSpace
from rl_coach.utilities.requirements import FRACTION, schedule
from rl_coach.utils import dynamic_import_and_instantiate_module_from_params


class EGreedyParameters(ExplorationParameters):
    """A random action with probability epsilon.

    :ivar epsilon_schedule: the probability in training; 0 is greedy, 1 is random
    :ivar evaluation_epsilon: the probability in evaluation
    :ivar continuous_exploration_policy_parameters: parameters of the policy that replaces the greedy action
        if actions are continuous
    """

    constraints = {"epsilon_schedule": schedule(FRACTION), "evaluation_epsilon": FRACTION}
    path = "rl_coach.exploration_policies.e_greedy:EGreedy"

    def __init__(self) -> None:
        super().__init__()
        self.epsilon_schedule: Schedule = LinearSchedule(0.5, 0.01, 50000)
        self.evaluation_epsilon = 0.05
        self.continuous_exploration_policy_parameters: Any = AdditiveNoiseParameters()


class EGreedy(ExplorationPolicy):
    """A random action with probability epsilon, otherwise the best action: the discrete action with the highest value,
    or the action that a continuous policy draws.

    Continuous actions are random in training only (Peng et al. 2017, "DeepLoco", section 6). The policy decides in
    advance if the next action is random, because a random action needs no prediction.

    :param action_space: discrete, a box, or several discrete parts. With parts, the best action has the best choice of
        each part
    :param epsilon_schedule: the probability in training; 0 is greedy, 1 is random
    :param evaluation_epsilon: the probability in evaluation
    :param continuous_exploration_policy_parameters: parameters of the policy for actions of a box that are not random;
        the default is ``AdditiveNoiseParameters()``
    """

    episode_attributes: tuple[str, ...] | None = ()
    schedule_names = ("epsilon_schedule",)
    supported_actions: tuple[type, ...] = (DiscreteActionSpace, MultiDiscreteActionSpace, BoxActionSpace)
    advice_on_actions = "the actions are neither discrete nor a box; add an action filter"
    own_state: tuple[str, ...] = ("rng", "current_random_value")

    def __init__(
        self,
        action_space: ActionSpace,
        epsilon_schedule: Schedule,
        evaluation_epsilon: float,
        continuous_exploration_policy_parameters: ExplorationParameters | None = None,
    ):
        super().__init__(action_space)
        self.epsilon_schedule = epsilon_schedule
        self.evaluation_epsilon = evaluation_epsilon
        self.continuous_exploration_policy: Any = None
        if isinstance(action_space, BoxActionSpace):
            self.continuous_exploration_policy = dynamic_import_and_instantiate_module_from_params(
                continuous_exploration_policy_parameters or AdditiveNoiseParameters(),
                extra_kwargs={"action_space": action_space},
            )
        # its own stream of random actions: other users of the space must not disturb it
        self._random_actions = copy.copy(action_space)
        self._random_actions.rng = self.rng
        self.current_random_value = self.rng.random()

    def seed(self, seed: Any) -> None:
        super().seed(seed)
        self._random_actions.rng = self.rng
        if self.continuous_exploration_policy is not None:
            self.continuous_exploration_policy.seed(int(self.rng.integers(2**63)))
        self.current_random_value = self.rng.random()

    def _epsilon(self) -> float:
        return self.evaluation_epsilon if self.phase == RunPhase.TEST else self.epsilon_schedule.current_value

    def requires_action_values(self) -> bool:
        # called twice in each step, so inlined: a call of _epsilon would be slower
        epsilon = self.evaluation_epsilon if self.phase is RunPhase.TEST else self.epsilon_schedule.current_value
        return self.current_random_value >= epsilon or self._random_action_requires_values()

    def _random_action_requires_values(self) -> bool:
        if self.continuous_exploration_policy is not None:
            return self.phase != RunPhase.TRAIN
        return self.tells_all_probabilities and isinstance(self.action_space, DiscreteActionSpace)

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> Any:
        """Choose an action.

        :param action_values: [A] values, [K, M] of K parts, or the continuous policy's input; None if the action is
            random
        :return: for continuous actions, the action; for discrete actions, the action and probabilities [A]. These are
            uniform if the action was random, and one-hot if the best action was chosen. With
            ``tells_all_probabilities``, they are the probabilities of epsilon-greedy
        """
        action: Any
        if not self.requires_action_values():
            action = self._explore(action_mask)
        elif self.continuous_exploration_policy is not None:
            action = self.continuous_exploration_policy.get_action(action_values)
        elif isinstance(self.action_space, MultiDiscreteActionSpace):
            action = self._best_of_each_part(np.asarray(action_values), action_mask)
        elif self.tells_all_probabilities:
            action = self._mixed_choice(np.ravel(action_values), action_mask)
        else:
            action = best_action(np.ravel(action_values), self.rng, action_mask)
        self.step_epsilon()
        return action

    @property
    def acts_in_columns(self) -> bool:  # type: ignore[override]
        """True for discrete actions, unless ``tells_all_probabilities`` is True."""
        return isinstance(self.action_space, DiscreteActionSpace) and not self.tells_all_probabilities

    def get_actions(
        self, action_values: Callable[[], Any], count: int, action_masks: np.ndarray | None = None
    ) -> np.ndarray:
        """Draws the same random numbers as ``count`` calls of ``get_action``."""
        drawn, draw = self.current_random_value, self.rng.random
        actions: list[int] = []
        values, best, is_tied = None, actions, actions
        for row, epsilon in enumerate(self._epsilons(count).tolist()):
            mask = None if action_masks is None else action_masks[row]
            if drawn < epsilon:
                actions.append(self._random_discrete_action(mask)[0])
            else:
                if values is None:
                    values = np.asarray(action_values())
                    best, is_tied = (column.tolist() for column in best_and_tied(values, action_masks))
                # only a tie needs a random number
                actions.append(best_action(values[row], self.rng, mask)[0] if is_tied[row] else best[row])
            drawn = draw()
        self.current_random_value = drawn
        return np.asarray(actions, np.int64)

    def _epsilons(self, count: int) -> np.ndarray:
        """[count] float64, the epsilons of the next actions. In TRAIN, the schedule advances by ``count`` steps."""
        if self.phase != RunPhase.TRAIN:
            return np.full(count, self._epsilon())
        return self.epsilon_schedule.next_values(count)

    def _mixed_choice(self, values: np.ndarray, action_mask: np.ndarray | None) -> ActionAndProbabilities:
        epsilon = self._epsilon()
        best, _ = best_action(values, self.rng, action_mask)
        action, uniform = self._random_discrete_action(action_mask)
        greedy = ((values == values[best]) & (uniform > 0)).astype(np.float64)  # ties break at random
        probabilities = epsilon * uniform + (1 - epsilon) * greedy / greedy.sum()
        return (action if self.current_random_value < epsilon else best), probabilities

    def _explore(self, action_mask: np.ndarray | None) -> Any:
        if self.continuous_exploration_policy is not None:
            return self._random_actions.sample()
        if isinstance(self.action_space, MultiDiscreteActionSpace):
            drawn = self._random_actions.sample_with_info(action_mask)
            return drawn.action, drawn.all_action_probabilities
        return self._random_discrete_action(action_mask)

    def _best_of_each_part(self, values: np.ndarray, action_mask: np.ndarray | None) -> ActionAndProbabilities:
        action = best_actions(values[None], self.rng, None if action_mask is None else action_mask[None])[0]
        return action, np.eye(values.shape[1])[action]

    def _random_discrete_action(self, action_mask: np.ndarray | None) -> ActionAndProbabilities:
        num_actions = self.action_space.num_actions  # type: ignore[attr-defined]
        if action_mask is not None:
            return sample_action(np.ones(num_actions), self.rng, action_mask)
        return int(self.rng.integers(num_actions)), np.full(num_actions, 1.0 / num_actions)

    def step_epsilon(self) -> None:
        """Advance the schedule, in TRAIN, and draw whether the next action will be random."""
        if self.phase == RunPhase.TRAIN:
            self.epsilon_schedule.step()
        self.current_random_value = self.rng.random()

    def advance(self, steps: int) -> None:
        super().advance(steps)
        if self.continuous_exploration_policy is not None:
            self.continuous_exploration_policy.advance(steps)

    def action_choice(self) -> ActionChoice | None:
        if self.continuous_exploration_policy is not None:
            return deployed_choice(self.continuous_exploration_policy)
        return GreedyChoice(float(self.evaluation_epsilon))

    def change_phase(self, phase: RunPhase) -> None:
        super().change_phase(phase)
        if self.continuous_exploration_policy is not None:
            self.continuous_exploration_policy.change_phase(phase)

    def reset(self) -> None:
        if self.continuous_exploration_policy is not None:
            self.continuous_exploration_policy.reset()

    def for_another_actor(self) -> EGreedy:
        continuous = self.continuous_exploration_policy
        twin = None if continuous is None else continuous.for_another_actor()
        policy = super().for_another_actor()
        if twin is not continuous:
            policy = copy.copy(self) if policy is self else policy
            policy.continuous_exploration_policy = twin
        if policy is not self:
            policy.current_random_value = self.rng.random()
        return policy

    @property
    def keeps_no_episode_state(self) -> bool:
        continuous = self.continuous_exploration_policy
        return super().keeps_no_episode_state and (continuous is None or continuous.keeps_no_episode_state)

    def episode_state(self) -> Any:
        """The state of the episode. Each actor with its own policy also draws its own ``current_random_value``."""
        if self.keeps_no_episode_state:
            return None
        state, continuous = super().episode_state() or {}, self.continuous_exploration_policy
        if continuous is not None:
            state["continuous_exploration_policy"] = continuous.episode_state()
        return {**state, "current_random_value": self.current_random_value}

    def set_episode_state(self, state: Any) -> None:
        if self.continuous_exploration_policy is not None:
            # older checkpoints have only the state of the continuous policy
            own = dict(state) if isinstance(state, Mapping) and "current_random_value" in state else {}
            of_continuous = own.pop("continuous_exploration_policy", None) if own else state
            self.continuous_exploration_policy.set_episode_state(of_continuous)
            state = own
        super().set_episode_state(state)

    def get_control_param(self) -> Any:
        """Epsilon, or the continuous policy's parameter."""
        if self.continuous_exploration_policy is not None:
            return self.continuous_exploration_policy.get_control_param()
        return self._epsilon()

    def get_state(self) -> dict[str, Any]:
        state = {**super().get_state(), "current_random_value": self.current_random_value}
        if self.continuous_exploration_policy is not None:
            state["continuous_exploration_policy"] = self.continuous_exploration_policy.get_state()
        return state

    def get_schedules(self) -> dict[str, Any]:
        continuous = self.continuous_exploration_policy
        nested = {} if continuous is None else {"continuous_exploration_policy": continuous.get_schedules()}
        return {**super().get_schedules(), **nested}

    def take_schedules(self, schedules: dict[str, Any]) -> None:
        own = dict(schedules)
        if self.continuous_exploration_policy is not None:
            self.continuous_exploration_policy.take_schedules(own.pop("continuous_exploration_policy"))
        super().take_schedules(own)

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._random_actions.rng = self.rng
        self.current_random_value = state["current_random_value"]
        if self.continuous_exploration_policy is not None:
            self.continuous_exploration_policy.set_state(state["continuous_exploration_policy"])


class EGreedyOfPartsParameters(EGreedyParameters):
    """Each part of an action, such as the action of a player of a team, is random with probability epsilon."""

    path = "rl_coach.exploration_policies.e_greedy:EGreedyOfParts"


class EGreedyOfParts(EGreedy):
    """``EGreedy`` for actions of several parts. Each part is random or the best, independently of the others."""

    supported_actions = (MultiDiscreteActionSpace,)

    def requires_action_values(self) -> bool:
        return True

    def _best_of_each_part(self, values: np.ndarray, action_mask: np.ndarray | None) -> Any:
        best, one_hot = super()._best_of_each_part(values, action_mask)
        is_random, drawn = self.rng.random(len(values)) < self._epsilon(), self._explore(action_mask)
        return np.where(is_random, drawn[0], best), np.where(is_random[:, None], drawn[1], one_hot)
