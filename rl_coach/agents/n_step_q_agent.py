"""N-step Q-learning (Mnih et al. 2016, "Asynchronous methods for deep reinforcement learning", algorithm S2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rl_coach.agents.core.requirements import NetworkRequirement, Q
from rl_coach.agents.core.segments import SegmentSettings
from rl_coach.agents.policy_optimization_agent import PolicyOptimizationAgent
from rl_coach.agents.rules.q_learning import greedy_by_target, q_learning_rule
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.head_parameters import QHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, weighted_sum
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.core_types import Batch, EnvironmentSteps, n_step_returns
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.memories.episodic.single_episode_buffer import SingleEpisodeBufferParameters
from rl_coach.utilities.requirements import one_of, whole

N_STEP, ONE_STEP = "N-Step", "1-Step"


class NStepQNetworkParameters(FullyConnectedParameters):
    """The Q-network."""

    def __init__(self) -> None:
        super().__init__(QHeadParameters())
        self.async_training = True
        self.create_target_network = True


class NStepQAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of n-step Q-learning.

    :ivar num_steps_between_copying_online_weights_to_target: environment steps between two updates of the target
        network
    :ivar apply_gradients_every_x_episodes: number of episodes in one update; their gradients are added. With 1, each
        segment makes one update
    :ivar num_steps_between_gradient_updates: the largest number of steps in a segment
    :ivar targets_horizon: ``'N-Step'``: a target sums the rewards up to the end of the segment, then bootstraps.
        ``'1-Step'``: a target has one reward, then bootstraps
    """

    constraints = {"num_steps_between_gradient_updates": whole(1), "targets_horizon": one_of(N_STEP, ONE_STEP)}

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(10000)
        self.apply_gradients_every_x_episodes = 1
        self.num_steps_between_gradient_updates = 5
        self.targets_horizon = N_STEP


class NStepQAgentParameters(AgentParameters):
    """N-step Q-learning with epsilon-greedy exploration and without experience replay."""

    path = "rl_coach.agents.n_step_q_agent:NStepQAgent"
    algorithm: NStepQAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=NStepQAlgorithmParameters(),
            exploration=EGreedyParameters(),
            memory=SingleEpisodeBufferParameters(),
            networks={"main": NStepQNetworkParameters()},
        )


class NStepQAgent(ValueOptimizationAgent, PolicyOptimizationAgent):
    """Learns from each segment after it was played, with the targets y_t = r_t + ... + discount^(T - t) max_a
    Q_target(s_T, a).
    """

    network_requirements = {"main": NetworkRequirement((Q,), has_target=True)}
    learns_from_sequences = False
    explores_by_parameter = True

    def make_update_rule(self) -> UpdateRule:
        is_huber, mask_name, loss_weight = self.loss_settings
        # each of a segment's T rows has the weight 1 / T
        q_rule = q_learning_rule(is_huber, mask_name, greedy_by_target, False, loss_weight, mean=weighted_sum)

        def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
            update = q_rule(ops, networks, batch)
            return replace(update, signals={**update.signals, "Value Loss": update.losses["main"]})

        return rule

    def segment_settings(self) -> SegmentSettings:
        return replace(super().segment_settings(), updates_targets=True)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns of a segment. They contain, for each row, its n-step return and the state from which this return
        bootstraps."""
        discount, following = self.ap.algorithm.discount, batch.next_state_columns
        if self.ap.algorithm.targets_horizon == N_STEP:
            left = np.arange(len(batch), 0, -1)
            rewards = n_step_returns(batch.reward_column, discount)
            discounts = discount**left * (1.0 - batch.terminated_column[-1])
            following = {name: np.repeat(column[-1:], len(batch), axis=0) for name, column in following.items()}
        else:
            rewards, discounts = batch.reward_column, discount * (1.0 - batch.terminated_column)
        return {
            **super().learning_columns(batch),
            **{f"next_states/{name}": following[name] for name in self.update_loop.input_names},
            "rewards": np.asarray(rewards, np.float32),
            "discounts": np.asarray(discounts, np.float32),
        }
