"""Mixed Monte Carlo (Bellemare et al. 2016, "Unifying count-based exploration and intrinsic motivation", section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.core.requirements import MemoryRequirement, NetworkRequirement, Q
from rl_coach.agents.ddqn_agent import greedy_by_online
from rl_coach.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from rl_coach.agents.rules.q_learning import allowed_values, q_learning_update
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank, select
from rl_coach.core_types import Batch
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utilities.requirements import FRACTION


class MixedMonteCarloAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of mixed Monte Carlo.

    :ivar monte_carlo_mixing_rate: share of the return in the target; 0 gives double DQN, 1 learns from the returns
        alone
    """

    constraints = {"monte_carlo_mixing_rate": FRACTION}

    def __init__(self) -> None:
        super().__init__()
        self.monte_carlo_mixing_rate = 0.1


class MixedMonteCarloAgentParameters(DQNAgentParameters):
    """Mixed Monte Carlo with the settings of DQN, except the memory: it stores whole episodes with their returns."""

    algorithm_names = ("MMC", "MixedMonteCarlo")
    path = "rl_coach.agents.mmc_agent:MixedMonteCarloAgent"
    algorithm: MixedMonteCarloAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = MixedMonteCarloAlgorithmParameters()
        self.memory = EpisodicExperienceReplayParameters()


def mixed_monte_carlo_rule(
    mixing_rate: float, is_huber: bool, mask_name: str | None, loss_weight: float = 1.0
) -> UpdateRule:
    """The loss of Q-learning with the targets y = (1 - m) (r + discount_t Q_target(s', argmax_a Q(s', a))) + m G.

    ``extra['returns']`` G is [B], the discounted rewards up to the episode's end.

    :param mixing_rate: m
    :param is_huber: True: Huber loss. False: squared error
    :param mask_name: the observation that masks actions, if there is one
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, actions=batch.actions, rewards=batch.rewards, discounts=batch.discounts)
        assert_rank(1, returns=batch.extra.get("returns"), weights=batch.weights)
        main = networks["main"]
        q_tm1 = main.online(batch.states)[0]["q"]
        q_t = main.target(batch.next_states)[0]["q"]
        q_t_online = allowed_values(ops, main.online(batch.next_states)[0]["q"], batch.next_states, mask_name)
        one_step = batch.rewards + batch.discounts * select(ops, q_t, greedy_by_online(ops, q_t_online, q_t, batch))
        target_tm1 = (1.0 - mixing_rate) * one_step + mixing_rate * batch.extra["returns"]
        return q_learning_update(ops, target_tm1, q_tm1, batch, is_huber, loss_weight)

    return rule


def columns_with_returns(columns: dict[str, np.ndarray], batch: Batch) -> dict[str, np.ndarray]:
    """The columns and ``extra/returns`` [B]: the returns that an episodic memory computes."""
    return {**columns, "extra/returns": np.asarray(batch.n_step_discounted_rewards(), np.float32)}


class MixedMonteCarloAgent(ValueOptimizationAgent):
    """Double DQN that mixes each target with the return of the episode."""

    memory_requirement = MemoryRequirement.RETURNS
    network_requirements = {"main": NetworkRequirement((Q,), has_target=True)}
    learns_from_stored_states = True
    max_n_step = 0

    def make_update_rule(self) -> UpdateRule:
        return mixed_monte_carlo_rule(self.ap.algorithm.monte_carlo_mixing_rate, *self.loss_settings)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        return columns_with_returns(super().learning_columns(batch), batch)
