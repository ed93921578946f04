"""Draws discrete actions by a softmax of their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.core_types import RunPhase
from rl_coach.exploration_policies.exploration_policy import (
    ActionAndProbabilities,
    DiscreteActionExplorationPolicy,
    ExplorationParameters,
)
from rl_coach.policy.action_choice import SoftmaxChoice
from rl_coach.policy.drawing import allowed_actions, sample_action
from rl_coach.schedules import Schedule
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.requirements import number, schedule

COLDEST = 1e-30


class BoltzmannParameters(ExplorationParameters):
    """A softmax over the actions' values.

    :ivar temperature_schedule: the temperature, which must be set. Near 0, the policy is greedy; with a large
        temperature, it is uniform
    """

    constraints = {"temperature_schedule": schedule(number(above=0))}
    path = "rl_coach.exploration_policies.boltzmann:Boltzmann"

    def __init__(self) -> None:
        super().__init__()
        self.temperature_schedule: Schedule | None = None


class Boltzmann(DiscreteActionExplorationPolicy):
    """Draws an action with probabilities proportional to exp(Q(s, a) / temperature), in every phase.

    :param action_space: discrete
    :param temperature_schedule: the temperature, as in ``BoltzmannParameters``
    """

    episode_attributes = ()
    schedule_names = ("temperature_schedule",)

    def __init__(self, action_space: ActionSpace, temperature_schedule: Schedule):
        super().__init__(action_space)
        if temperature_schedule is None:
            raise self._refuse("temperature_schedule is not set; set it, for example to ConstantSchedule(1.0)")
        self.temperature_schedule = temperature_schedule

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> ActionAndProbabilities:
        """Draw an action. :param action_values: [A]"""
        values = np.asarray(action_values, dtype=np.float64).reshape(-1)
        highest = values.max() if action_mask is None else values[allowed_actions(action_mask)].max()
        temperature = max(self.temperature_schedule.current_value, COLDEST)
        # no exponent is above 0, so that nothing overflows; masked actions get no weight below
        weights = np.exp(np.minimum((values - highest) / temperature, 0.0))
        if self.phase == RunPhase.TRAIN:
            self.temperature_schedule.step()
        return sample_action(weights, self.rng, action_mask)

    def action_choice(self) -> SoftmaxChoice:
        return SoftmaxChoice(float(self.temperature_schedule.current_value))

    def get_control_param(self) -> float:
        """The temperature."""
        return self.temperature_schedule.current_value
