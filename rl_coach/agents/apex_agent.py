"""Ape-X DQN (Horgan et al. 2018, "Distributed prioritized experience replay")."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.ddqn_agent import DDQNAgent, DDQNAgentParameters
from rl_coach.agents.dqn_agent import DQNAlgorithmParameters
from rl_coach.agents.rules.q_learning import allowed_values
from rl_coach.architectures.head_parameters import DuelingQHeadParameters
from rl_coach.core_types import Batch, TrainingSteps
from rl_coach.exploration_policies.per_worker_e_greedy import PerWorkerEGreedyParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.utilities.sound_values import LARGEST


class ApexDQNAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of Ape-X DQN; the defaults are the paper's (appendix C).

    :ivar n_step: number of rewards in a target before the bootstrapped value; 1 gives one-step targets
    """

    def __init__(self) -> None:
        super().__init__()
        self.n_step = 3
        self.num_steps_between_copying_online_weights_to_target = TrainingSteps(2500)


class ApexDQNAgentParameters(DDQNAgentParameters):
    """Double DQN with a dueling network, n-step returns, prioritized replay, and an epsilon for each worker."""

    algorithm_names = ("ApexDQN", "Ape-X")
    path = "rl_coach.agents.apex_agent:ApexDQNAgent"
    algorithm: ApexDQNAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = ApexDQNAlgorithmParameters()
        self.exploration = PerWorkerEGreedyParameters()
        self.memory = PrioritizedExperienceReplayParameters()
        self.memory.max_size = (MemoryGranularity.Transitions, 2_000_000)
        main = self.network_wrappers["main"]
        main.heads_parameters = [DuelingQHeadParameters()]
        main.batch_size = 512


class ApexDQNAgent(DDQNAgent):
    """Double DQN with initial priorities from the process that plays. The network of this process computes the
    priorities of new transitions. Other agents give new transitions the largest priority so far.
    """

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.experience.prioritize = self.first_priorities

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        if not self.memory.takes_first_priorities:
            yield (
                f"agent '{self.name}' stores transitions with priorities, but its memory, "
                f"{type(self.memory).__name__}, has no priorities: set memory to "
                f"PrioritizedExperienceReplayParameters()"
            )

    def first_priorities(self, batch: Batch) -> np.ndarray:
        """The first priorities [B] of n-step transitions: |r + discount_t max_a Q(s', a) - Q(s, a)|. One call predicts
        for all of them.

        A process that plays has the newest online network that it received and no target network, so the online
        network gives both values (algorithm 1 of the paper).
        """
        main, filters = self.networks["main"], self.pre_network_filter
        states, next_states = (
            filters.filter_columns({name: np.asarray(column) for name, column in columns.items()}, False)
            for columns in (batch.state_columns, batch.next_state_columns)  # a chunk has frames, which become arrays
        )
        inputs = {name: np.concatenate([states[name], next_states[name]]) for name in main.input_names}
        q = main.online_network.predict(inputs, outputs=self._q_outputs).astype(np.float64)
        q_tm1, q_t = np.split(q, 2)
        q_t = allowed_values(np, q_t, next_states, self.spaces.action_mask_name)
        rewards = filters.filter_rewards(batch.reward_column, False)
        discounts = self.ap.algorithm.discount ** batch.n_steps() * (1.0 - batch.terminated_column)
        chosen = q_tm1[np.arange(len(batch)), batch.action_column.astype(np.int64)]
        errors = np.abs(rewards + discounts * q_t.max(axis=1) - chosen)
        # also replaces NaN, because the trainer would refuse it; a loss that is not finite is reported in the update
        return np.where(errors <= LARGEST, errors, LARGEST)
