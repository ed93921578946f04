"""Deep Q-learning from demonstrations (Hester et al. 2018)."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.ddqn_agent import DDQNAgent, DDQNAgentParameters
from rl_coach.agents.dqn_agent import DQNAlgorithmParameters
from rl_coach.agents.rules.demonstrations import demonstration_rule
from rl_coach.architectures.head_parameters import DuelingQHeadParameters
from rl_coach.architectures.update import UpdateRule
from rl_coach.core_types import Batch, TrainingSteps
from rl_coach.memories.non_episodic.demonstration_replay import (
    IS_DEMONSTRATION,
    REWARDS_AHEAD,
    STATE_AHEAD,
    STEPS_AHEAD,
    TERMINATED_AHEAD,
    DemonstrationReplay,
    DemonstrationReplayParameters,
)
from rl_coach.utilities.requirements import number, whole
from rl_coach.utils import CoachError

_UPDATES_BETWEEN_STOPS = 100


class DQfDAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of deep Q-learning from demonstrations; the defaults are the paper's.

    :ivar pretraining_updates: updates on the demonstrations alone, before the agent acts in training; 0 for none
    :ivar n_step_weight: lambda_1, weight of the n-step loss; 0 uses the one-step loss only
    :ivar supervised_weight: lambda_2, weight of the large margin loss on demonstrations; 0 for no imitation
    :ivar margin: the value of a demonstrated action should exceed all other values by this number
    """

    constraints = {
        "pretraining_updates": whole(0),
        "n_step_weight": number(0),
        "supervised_weight": number(0),
        "margin": number(0),
    }

    def __init__(self) -> None:
        super().__init__()
        # counted in updates, because the agent plays no steps during the pretraining
        self.num_steps_between_copying_online_weights_to_target = TrainingSteps(10000)
        self.pretraining_updates = 750000
        self.n_step_weight: float = 1
        self.supervised_weight: float = 1
        self.margin: float = 0.8


class DQfDAgentParameters(DDQNAgentParameters):
    """Double DQN with a dueling network and replay of the demonstrations in ``memory.load_memory_from_file_path``."""

    path = "rl_coach.agents.dqfd_agent:DQfDAgent"
    algorithm: DQfDAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = DQfDAlgorithmParameters()
        self.memory = DemonstrationReplayParameters()
        main = self.network_wrappers["main"]
        main.heads_parameters = [DuelingQHeadParameters()]
        main.l2_regularization = 1e-5


class DQfDAgent(DDQNAgent):
    """Double DQN that learns from demonstrations before it acts, and then from demonstrations and its own steps.

    :ivar pretraining_done: number of pretraining updates so far. If the run was restored from a checkpoint, the updates
        before it count too
    """

    network_requirements = DDQNAgent.network_requirements
    counters = (*DDQNAgent.counters, "pretraining_done")

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.pretraining_done = 0

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        if not self.memory.keeps_demonstrations:
            yield (
                f"agent '{self.name}' needs a memory that never removes demonstrations, and "
                f"{type(self.memory).__name__} removes them: set memory to DemonstrationReplayParameters()"
            )

    def load_memory_from_file(self) -> None:
        """Fill the memory with the recorded transitions of ``load_memory_from_file_path``. The memory never removes
        these demonstrations."""
        super().load_memory_from_file()
        if isinstance(self.memory, DemonstrationReplay):  # a rollout worker has another memory, without demonstrations
            self.memory.keep_as_demonstrations()

    def before_training(self) -> None:
        """Learn from the demonstrations alone; make only the remaining updates in a resumed run.

        :raises CoachError: if there are no demonstrations for the pretraining
        """
        if not self.memory.num_demonstrations and self.ap.algorithm.pretraining_updates:
            raise CoachError(
                f"agent '{self.name}' has no demonstrations to begin with: set memory.load_memory_from_file_path, "
                f"for example to a replay_buffer.npz that --play has recorded"
            )
        while (left := self.ap.algorithm.pretraining_updates - self.pretraining_done) > 0:
            updates = min(left, _UPDATES_BETWEEN_STOPS)
            self.update_loop.learn(updates)
            self.pretraining_done += updates
            self.stop_if_asked()

    def make_update_rule(self) -> UpdateRule:
        algorithm, (_, mask_name, loss_weight) = self.ap.algorithm, self.loss_settings
        weights = algorithm.n_step_weight, algorithm.supervised_weight
        return demonstration_rule(super().make_update_rule(), *weights, algorithm.margin, mask_name, loss_weight)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns, filters = super().learning_columns(batch), self.pre_network_filter
        discount, steps = self.ap.algorithm.discount, batch.info(STEPS_AHEAD)
        ahead = batch.info(REWARDS_AHEAD)
        rewards = filters.filter_rewards(ahead.ravel(), False).reshape(ahead.shape)
        # rewards after the end of an episode count as 0, also if a filter changes 0 to another number
        discounts = discount ** np.arange(ahead.shape[1]) * (np.arange(ahead.shape[1]) < steps[:, None])
        states = {name: batch.info(STATE_AHEAD + name) for name in self.update_loop.input_names}
        states = filters.filter_columns(states, False)
        columns["extra/rewards_ahead"] = (rewards * discounts).sum(axis=1).astype(np.float32)
        columns["extra/discounts_ahead"] = (discount**steps * ~batch.info(TERMINATED_AHEAD)).astype(np.float32)
        columns["extra/is_demonstration"] = batch.info(IS_DEMONSTRATION)
        return columns | {f"extra/state_ahead/{name}": state for name, state in states.items()}
