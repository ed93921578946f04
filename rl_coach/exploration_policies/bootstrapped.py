"""Exploration with one of several Q heads. The head is drawn at random for each episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.core_types import RunPhase
from rl_coach.exploration_policies.e_greedy import EGreedy, EGreedyParameters
from rl_coach.exploration_policies.exploration_policy import ExplorationParameters
from rl_coach.policy.action_choice import VotingChoice, votes
from rl_coach.schedules import LinearSchedule, Schedule
from rl_coach.spaces import ActionSpace, DiscreteActionSpace
from rl_coach.utilities.requirements import FRACTION, whole


class BootstrappedParameters(EGreedyParameters):
    """Parameters of bootstrapped exploration: one Q head chooses all actions of an episode, by epsilon-greedy.

    :ivar architecture_num_q_heads: number of Q heads of the network
    :ivar bootstrapped_data_sharing_probability: the probability that a head learns from a transition; with 1, each head
        learns from all transitions
    """

    constraints = {"architecture_num_q_heads": whole(1), "bootstrapped_data_sharing_probability": FRACTION}
    path = "rl_coach.exploration_policies.bootstrapped:Bootstrapped"

    def __init__(self) -> None:
        super().__init__()
        self.architecture_num_q_heads = 10
        self.bootstrapped_data_sharing_probability = 1.0
        self.epsilon_schedule = LinearSchedule(1, 0.01, 1000000)


class Bootstrapped(EGreedy):
    """Deep exploration (Osband et al. 2016, "Deep Exploration via Bootstrapped DQN", algorithm 1): in training, the
    head that ``select_head`` drew chooses all actions of an episode; in other phases the heads vote.
    ``BootstrappedParameters`` explains the other arguments.

    :param action_space: discrete
    :ivar selected_head: the head of this episode
    :ivar last_action_values: [A], the values from which the last action was chosen; None if the action was random
    """

    episode_attributes = ("selected_head", "current_random_value")

    own_state: tuple[str, ...] = (*EGreedy.own_state, "selected_head")
    supported_actions: tuple[type, ...] = (DiscreteActionSpace,)
    advice_on_actions = "Q heads need discrete actions; discretize them or choose another policy"

    def __init__(
        self,
        action_space: ActionSpace,
        epsilon_schedule: Schedule,
        evaluation_epsilon: float,
        architecture_num_q_heads: int,
        continuous_exploration_policy_parameters: ExplorationParameters | None = None,
    ):
        super().__init__(action_space, epsilon_schedule, evaluation_epsilon, continuous_exploration_policy_parameters)
        self.num_heads = architecture_num_q_heads
        self.selected_head = 0
        self.last_action_values: Any = None

    def select_head(self) -> None:
        """Draw the head that chooses the next actions."""
        self.selected_head = int(self.rng.integers(self.num_heads))

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> Any:
        """Choose an action. :param action_values: [heads, A], or None if the action will be random"""
        if action_values is not None:
            heads = np.reshape(action_values, (self.num_heads, -1))
            training = self.phase == RunPhase.TRAIN
            mask = None if action_mask is None else np.asarray(action_mask)[None]
            action_values = heads[self.selected_head] if training else votes(heads[None], mask)[0]
        self.last_action_values = action_values
        return super().get_action(action_values, action_mask)

    def action_choice(self) -> VotingChoice:
        return VotingChoice(float(self.evaluation_epsilon))

    def get_control_param(self) -> int:
        """The head of this episode."""
        return self.selected_head

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "selected_head": self.selected_head}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.selected_head = state["selected_head"]
