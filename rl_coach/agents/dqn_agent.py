"""Deep Q-learning (Mnih et al. 2015, "Human-level control through deep reinforcement learning")."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rl_coach.agents.core.overrides import is_replaced
from rl_coach.agents.core.requirements import NetworkRequirement, Q
from rl_coach.agents.rules.q_learning import (
    SelectActions,
    allowed_values,
    greedy_by_target,
    q_learning_rule,
    selected_before,
)
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.head_parameters import QHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.update import UpdateRule
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.core_types import Batch, EnvironmentSteps
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.schedules import LinearSchedule
from rl_coach.utilities.requirements import FLAG


class DQNAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of DQN.

    :ivar num_steps_between_copying_online_weights_to_target: environment steps between two updates of the target
        network
    :ivar num_consecutive_playing_steps: steps between two training phases
    :ivar discount: weight of later rewards. With 0, only the next reward counts; with 1, all rewards count equally
    """

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(10000)
        self.num_consecutive_playing_steps = EnvironmentSteps(4)
        self.discount = 0.99
        self.supports_parameter_noise = True


class DQNNetworkParameters(FullyConnectedParameters):
    """The Q-network."""

    constraints = {"should_get_softmax_probabilities": FLAG}

    def __init__(self) -> None:
        super().__init__(QHeadParameters())
        self.replace_mse_with_huber_loss = True
        self.create_target_network = True
        self.should_get_softmax_probabilities = False


class DQNAgentParameters(AgentParameters):
    """DQN with epsilon-greedy exploration and uniform replay."""

    path = "rl_coach.agents.dqn_agent:DQNAgent"
    algorithm: DQNAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=DQNAlgorithmParameters(),
            exploration=EGreedyParameters(),
            memory=ExperienceReplayParameters(),
            networks={"main": DQNNetworkParameters()},
        )
        self.exploration.epsilon_schedule = LinearSchedule(1, 0.1, 1000000)
        self.exploration.evaluation_epsilon = 0.05


class DQNAgent(ValueOptimizationAgent):
    """Q-learning with a replay memory and a target network."""

    network_requirements = {"main": NetworkRequirement((Q,), has_target=True)}
    bootstrap_actions: tuple[SelectActions, bool] = (greedy_by_target, False)
    learns_from_stored_states = True
    supports_curiosity = True

    @cached_property
    def learns_one_by_one(self) -> bool:  # type: ignore[override]
        """True if a subclass selects the next actions of the targets from predictions before the update."""
        return is_replaced(self, "bootstrap_actions")

    def select_actions(self, next_states: dict[str, np.ndarray], q_st_plus_1: np.ndarray) -> np.ndarray:
        """[B], the actions to bootstrap from.

        :param next_states: [B, ...] by name
        :param q_st_plus_1: [B, A], the target network's values, very low for masked actions
        """
        return np.argmax(q_st_plus_1, axis=1)

    def make_update_rule(self) -> UpdateRule:
        is_huber, mask_name, loss_weight = self.loss_settings
        actions, needs_online = (selected_before, False) if self.learns_one_by_one else self.bootstrap_actions
        return q_learning_rule(is_huber, mask_name, actions, needs_online, loss_weight)

    def columns_of_networks(self, batch: Batch) -> dict[str, np.ndarray]:
        main, mask_name = self.networks["main"], self.spaces.action_mask_name
        next_states = batch.next_states(main.input_names)
        q_t = allowed_values(np, main.target_network.predict(next_states), batch.next_state_columns, mask_name)
        return {"extra/next_actions": np.asarray(self.select_actions(next_states, q_t), np.int32)}
