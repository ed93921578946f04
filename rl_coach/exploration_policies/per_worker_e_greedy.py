"""Epsilon-greedy exploration with a different epsilon for each worker (Horgan et al. 2018, "Distributed prioritized
experience replay", section 4.1)."""

from __future__ import annotations

import numpy as np

from rl_coach.core_types import RunPhase
from rl_coach.exploration_policies.e_greedy import EGreedy, EGreedyParameters
from rl_coach.exploration_policies.exploration_policy import ExplorationParameters
from rl_coach.schedules import ConstantSchedule, Schedule
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.requirements import number


class PerWorkerEGreedyParameters(EGreedyParameters):
    """A random action with probability epsilon^(1 + alpha i / (N - 1)) in worker i of N.

    :ivar epsilon_schedule: epsilon, the probability of worker 0 in training; 0 is greedy, 1 is random in all workers
    :ivar epsilon_alpha: alpha; 0 gives all workers the same probability, with a large alpha only few workers explore
    """

    constraints = {"epsilon_alpha": number(0)}
    path = "rl_coach.exploration_policies.per_worker_e_greedy:PerWorkerEGreedy"

    def __init__(self) -> None:
        super().__init__()
        self.epsilon_schedule = ConstantSchedule(0.4)
        self.epsilon_alpha = 7.0


class PerWorkerEGreedy(EGreedy):
    """``EGreedy`` that uses epsilon^(1 + alpha i / (N - 1)) in worker i = 0 … N - 1. A single process is worker 0 and
    uses epsilon itself. In evaluation, all workers use the same epsilon.

    :param action_space: discrete or a box
    :param epsilon_schedule: the probability of worker 0 in training; 0 is greedy, 1 is random
    :param evaluation_epsilon: the probability in evaluation
    :param continuous_exploration_policy_parameters: as in ``EGreedy``
    :param epsilon_alpha: alpha; 0 gives all workers the same probability
    """

    def __init__(
        self,
        action_space: ActionSpace,
        epsilon_schedule: Schedule,
        evaluation_epsilon: float,
        continuous_exploration_policy_parameters: ExplorationParameters | None = None,
        epsilon_alpha: float = 7.0,
    ):
        super().__init__(action_space, epsilon_schedule, evaluation_epsilon, continuous_exploration_policy_parameters)
        self.epsilon_alpha = epsilon_alpha
        self._exponent = 1.0

    def set_worker(self, index: int, num_workers: int) -> None:
        self._exponent = 1 + self.epsilon_alpha * index / max(1, num_workers - 1)

    def _epsilon(self) -> float:
        return super()._epsilon() if self.phase is RunPhase.TEST else super()._epsilon() ** self._exponent

    def _epsilons(self, count: int) -> np.ndarray:
        epsilons = super()._epsilons(count)  # outside of TRAIN, they come from _epsilon
        return epsilons**self._exponent if self.phase is RunPhase.TRAIN else epsilons

    def requires_action_values(self) -> bool:
        return self.current_random_value >= self._epsilon() or self._random_action_requires_values()
