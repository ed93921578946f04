"""Upper confidence bounds (UCB): a bonus for actions to which several Q heads give different values."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.exploration_policies.bootstrapped import BootstrappedParameters
from rl_coach.exploration_policies.e_greedy import EGreedy
from rl_coach.exploration_policies.exploration_policy import ExplorationParameters
from rl_coach.policy.action_choice import EnsembleMeanChoice
from rl_coach.schedules import LinearSchedule, PieceWiseSchedule, Schedule
from rl_coach.spaces import ActionSpace, DiscreteActionSpace
from rl_coach.utilities.requirements import number


class UCBParameters(BootstrappedParameters):
    """Prefers actions about which the Q heads disagree. With probability epsilon, the action is random.

    :ivar lamb: weight of the standard deviation over the heads; 0 uses the mean alone
    """

    constraints = {"lamb": number()}
    path = "rl_coach.exploration_policies.ucb:UCB"

    def __init__(self) -> None:
        super().__init__()
        self.epsilon_schedule = PieceWiseSchedule(
            [
                (LinearSchedule(1, 0.1, 1000000), EnvironmentSteps(1000000)),
                (LinearSchedule(0.1, 0.01, 4000000), EnvironmentSteps(4000000)),
            ]
        )
        self.lamb = 0.1


class UCB(EGreedy):
    """In training, the action with the highest mean + lambda * standard deviation over the heads; otherwise the action
    with the highest mean (Chen et al. 2017, "UCB Exploration via Q-Ensembles", algorithm 2).
    ``UCBParameters`` explains the other arguments.

    :param action_space: discrete
    :ivar std: [A], the standard deviation over the heads at the last action that was not random
    :ivar last_action_values: [A], the values from which this action was chosen
    """

    supported_actions: tuple[type, ...] = (DiscreteActionSpace,)
    advice_on_actions = "Q heads need discrete actions; discretize them or choose another policy"

    def __init__(
        self,
        action_space: ActionSpace,
        epsilon_schedule: Schedule,
        evaluation_epsilon: float,
        architecture_num_q_heads: int,
        lamb: float,
        continuous_exploration_policy_parameters: ExplorationParameters | None = None,
    ):
        super().__init__(action_space, epsilon_schedule, evaluation_epsilon, continuous_exploration_policy_parameters)
        self.num_heads = architecture_num_q_heads
        self.lamb = lamb
        self.std: Any = 0
        self.last_action_values: Any = None

    def select_head(self) -> None:
        """Do nothing: all heads count at every step."""

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> Any:
        """Choose an action. :param action_values: [heads, A], or None if the action will be random"""
        if action_values is not None:
            heads = np.reshape(action_values, (self.num_heads, -1))
            action_values = heads.mean(axis=0)
            if self.phase == RunPhase.TRAIN:
                self.std = heads.std(axis=0)
                action_values = action_values + self.lamb * self.std
            self.last_action_values = action_values
        return super().get_action(action_values, action_mask)

    def action_choice(self) -> EnsembleMeanChoice:
        return EnsembleMeanChoice(float(self.evaluation_epsilon))

    def get_control_param(self) -> float:
        """The mean standard deviation among the heads in training, otherwise 0."""
        return float(np.mean(self.std)) if self.phase == RunPhase.TRAIN else 0.0
