"""Double DQN (van Hasselt et al. 2016, "Deep Reinforcement Learning with Double Q-learning")."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.dqn_agent import DQNAgent, DQNAgentParameters
from rl_coach.architectures.update import LearningBatch


class DDQNAgentParameters(DQNAgentParameters):
    """Double DQN, with the settings of DQN."""

    algorithm_names = ("DDQN", "DoubleDQN")
    path = "rl_coach.agents.ddqn_agent:DDQNAgent"


def greedy_by_online(ops: Any, q_online: Any, q_target: Any, batch: LearningBatch) -> Any:
    """argmax_a of the online network's Q [B, A]. The target network then gives this action's value (equation 4)."""
    return ops.argmax(q_online, axis=-1)


class DDQNAgent(DQNAgent):
    """The online network chooses the next action, and the target network computes its value."""

    bootstrap_actions = (greedy_by_online, True)

    def select_actions(self, next_states: dict[str, np.ndarray], q_st_plus_1: np.ndarray) -> np.ndarray:
        return np.argmax(self.networks["main"].online_network.predict(next_states), axis=1)
