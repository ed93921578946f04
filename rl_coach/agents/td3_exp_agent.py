"""TD3 that explores without a reward: by the novelty of what it sees, towards goals that it sets itself, or at random.

Agents and their settings, by the module that Coach has them in.
"""

from __future__ import annotations

import numpy as np

from rl_coach.agents.td3_exp_parameters import (
    RandomAgentParameters,
    RNDNetworkParameters,
    TD3ExplorationAgentParameters,
    TD3ExplorationAlgorithmParameters,
    TD3GoalBasedAgentParameters,
    TD3IntrinsicRewardAgentParameters,
)
from rl_coach.agents.td3_exploration_agent import TD3ExplorationAgent
from rl_coach.agents.td3_goal_based_agent import TD3GoalBasedAgent
from rl_coach.core_types import Batch

__all__ = [
    "RNDNetworkParameters",
    "RandomAgent",
    "RandomAgentParameters",
    "TD3ExplorationAgent",
    "TD3ExplorationAgentParameters",
    "TD3ExplorationAlgorithmParameters",
    "TD3GoalBasedAgent",
    "TD3GoalBasedAgentParameters",
    "TD3IntrinsicRewardAgent",
    "TD3IntrinsicRewardAgentParameters",
]


class TD3IntrinsicRewardAgent(TD3ExplorationAgent):
    """Its reward is novelty, divided by the deviation of novelty's discounted sum (Burda et al. 2018, section 2.4)."""

    max_n_step = 1

    def handle_self_supervised_reward(self, batch: Batch) -> Batch:
        rewarded = Batch(batch)
        rewarded.reward_column = (self.calculate_novelty(batch) / self.rnd_stats.std[0]).astype(np.float32)
        return rewarded


class RandomAgent(TD3ExplorationAgent):
    """Acts as its exploration policy does, at random by default, and learns nothing but novelty."""

    memory_need = TD3ExplorationAgent.memory_need

    def train(self) -> float:
        return 0.0
