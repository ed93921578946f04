"""Prioritized replay that never removes demonstrations (Hester et al. 2018, "Deep Q-learning from demonstrations")."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from rl_coach.core_types import Batch
from rl_coach.logger import screen
from rl_coach.memories.memory import MemoryGranularity, MemoryParameters
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplay
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.schedules import ConstantSchedule, Schedule
from rl_coach.utilities.files import write_data
from rl_coach.utilities.requirements import exactly, number, pair, schedule, whole

IS_DEMONSTRATION = "is_demonstration"
REWARDS_AHEAD, STEPS_AHEAD, TERMINATED_AHEAD = "ahead/rewards", "ahead/steps", "ahead/terminated"
STATE_AHEAD = "ahead/state/"


class DemonstrationReplayParameters(MemoryParameters):
    """Parameters of prioritized replay with demonstrations. The defaults are the paper's.

    :ivar max_size: largest number of the agent's own transitions; demonstrations are not counted
    :ivar alpha: exponent of the priorities: 0 samples uniformly, 1 in proportion to the errors
    :ivar beta: correction of the bias of prioritized sampling: 0 is no correction, 1 the full correction. The
        value is a ``Schedule``. It advances by one with each call of ``sample``
    :ivar epsilon: number added to the errors of the agent's own transitions
    :ivar demonstration_epsilon: number added to the errors of demonstrations. With a larger number, demonstrations are
        sampled more often
    :ivar n_step: largest number of rewards, from each transition on, that a batch contains
    """

    constraints = {
        "max_size": pair(
            exactly(MemoryGranularity.Transitions), whole(1, 10**15), "(MemoryGranularity.Transitions, 1000000)"
        ),
        "alpha": number(0),
        "beta": schedule(number(0)),
        "epsilon": number(above=0),
        "demonstration_epsilon": number(above=0),
        "n_step": whole(1),
    }
    path = "rl_coach.memories.non_episodic.demonstration_replay:DemonstrationReplay"

    def __init__(self) -> None:
        super().__init__()
        self.max_size = (MemoryGranularity.Transitions, 1000000)
        self.alpha: float = 0.4
        self.beta: Schedule = ConstantSchedule(0.6)
        self.epsilon: float = 0.001
        self.demonstration_epsilon: float = 1
        self.n_step = 10


class DemonstrationReplay(PrioritizedExperienceReplay):
    """A prioritized replay memory with two parts: demonstrations, which are never removed, and the agent's newest
    transitions. A sample draws from both parts in proportion to the priorities.

    Agents store whole episodes, so a batch can also contain the steps after each transition:

    - ``info('is_demonstration')`` [B] float32: 1 for a demonstration, else 0
    - ``info('ahead/rewards')`` [B, n]: the reward of this step and of the next steps, 0 after the end of the episode
    - ``info('ahead/steps')`` [B]: the number of these steps within the episode
    - ``info('ahead/terminated')`` [B] bool: True if the last of these steps terminated the episode
    - ``info('ahead/state/NAME')`` [B, ...]: the observation after the last of these steps

    ``info('idx')`` is negative for a demonstration.

    The parameters are the same as in ``DemonstrationReplayParameters``.

    :param beta: a ``Schedule``; None is ``ConstantSchedule(0.6)``
    :param n_step: n, the largest number of rewards in ``info('ahead/rewards')``
    """

    stores_episodes = True
    keeps_demonstrations = True
    max_n_step = 1

    def __init__(
        self,
        max_size: tuple[MemoryGranularity, int],
        alpha: float = 0.4,
        beta: Schedule | None = None,
        epsilon: float = 0.001,
        demonstration_epsilon: float = 1.0,
        n_step: int = 10,
    ):
        super().__init__(max_size, alpha, ConstantSchedule(0.6) if beta is None else beta, epsilon)
        self._demonstration_epsilon = demonstration_epsilon
        self._n_step = n_step
        # empty; 1 is the smallest size of a memory
        self._kept = self._replay_for(1)

    def _replay_for(self, capacity: int) -> PrioritizedExperienceReplay:
        size = (MemoryGranularity.Transitions, capacity)
        replay = PrioritizedExperienceReplay(size, self.alpha, epsilon=self._demonstration_epsilon)
        replay.seed(0)  # checkpoints contain this random stream, so it must be the same in each run
        return replay

    @property
    def num_demonstrations(self) -> int:
        """The number of demonstrations."""
        return self._kept.length()

    def keep_as_demonstrations(self) -> None:
        """Turn all stored transitions into demonstrations, in addition to earlier demonstrations."""
        if not self._store.length:
            return
        if self.num_removed:
            screen.warning(
                f"only the newest {self._store.length} of {self.num_removed + self._store.length} demonstrations fit "
                f"into the memory: raise memory.max_size"
            )
        both = self._both()
        self._kept = self._replay_for(both.length)
        self._kept.store_columns(both.chunk())
        self.clean()

    def _both(self) -> TransitionStore:
        """A copy of all transitions, demonstrations first."""
        both = TransitionStore(capacity=None)
        for store in (self._kept._store, self._store):
            both.extend(store.chunk())
        return both

    def length(self) -> int:
        """The number of stored transitions, including demonstrations."""
        return super().length() + self.num_demonstrations

    def num_transitions(self) -> int:
        return super().num_transitions() + self.num_demonstrations

    def transitions_at(self, positions: np.ndarray) -> Batch:
        """The transitions at positions [N]: first the demonstrations, then the agent's own, each oldest first."""
        is_own = positions >= self.num_demonstrations
        kept = self._kept.transitions_at(positions[~is_own])
        own = super().transitions_at(positions[is_own] - self.num_demonstrations)
        order = np.argsort(np.argsort(is_own, kind="stable"))
        return Batch.joined([part for part in (kept, own) if len(part)] or [own])[order]

    def mean_reward(self) -> float:
        both = self._both()
        return float(both.rewards.values[both.all_rows()].mean()) if both.length else float("nan")

    def save(self, file_path: str | os.PathLike) -> None:
        """Write all transitions to one ``.npz`` file of columns, demonstrations first. ``load`` stores them as the
        agent's own.

        :raises CoachError: if the file cannot be written
        """
        write_data(file_path, {"store": self._both().get_state()})

    def sample(self, size: int) -> Batch:
        """Sample ``size`` transitions. The sum of all priorities is divided into ``size`` equal segments, and one
        transition is drawn from each.

        :raises CoachError: if the memory is empty
        """
        if not self.length():
            self._refuse_sampling(size)
        kept, own = self._kept._sums.total_value(), self._sums.total_value()
        # the numbers are sorted in ascending order
        points = (self.rng.random(size) + np.arange(size)) / size * (kept + own)
        # without own transitions, rounding must not lead to one
        split = int(np.searchsorted(points, kept)) if own else size
        # of both parts, so that the largest weight in the whole memory is 1
        smallest = min(self._kept._minimum.value(), self._minimum.value())
        parts: list[Batch] = []
        of_kept, of_own = points[:split] / (kept or 1), (points[split:] - kept) / (own or 1)
        for memory, fractions in ((self._kept, of_kept), (self, of_own)):
            if len(fractions):
                rows, values = memory._sums.sample(fractions)
                weights = (values / smallest) ** -self.beta.current_value
                parts.append(self._batch_of(memory, rows, weights.astype(np.float32)))
        self.beta.step()
        return Batch.joined(parts)

    def _batch_of(self, memory: PrioritizedExperienceReplay, rows: np.ndarray, weights: np.ndarray) -> Batch:
        is_kept = memory is self._kept
        about = {
            "idx": -1 - rows if is_kept else rows,
            "weight": weights,
            IS_DEMONSTRATION: np.full(len(rows), is_kept, np.float32),
        }
        return memory._store.batch(rows, about | _ahead(memory._store, rows, self._n_step))

    def update_priorities(self, indices: np.ndarray, error_values: np.ndarray) -> None:
        is_kept = indices < 0
        self._kept.update_priorities(-1 - indices[is_kept], error_values[is_kept])
        super().update_priorities(indices[~is_kept], error_values[~is_kept])
        self.maximal_priority = max(self.maximal_priority, self._kept.maximal_priority)

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "demonstrations": self._kept.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._kept = self._replay_for(state["demonstrations"]["store"]["capacity"])
        self._kept.set_state(state["demonstrations"])


def _ahead(store: TransitionStore, rows: np.ndarray, n_step: int) -> dict[str, np.ndarray]:
    """The info columns ``ahead/...`` by name, for the ``n_step`` steps from each of the rows [B] on."""
    positions = (rows - store.first_serial) % store.capacity
    window = positions[:, None] + np.arange(n_step)  # [B, n]
    at = store.rows(np.minimum(window, store.length - 1))
    ends = store.game_overs[at]
    is_within = (window < store.length) & (np.cumsum(ends, axis=1) - ends == 0)
    steps = is_within.sum(axis=1)
    last = at[np.arange(len(rows)), steps - 1]
    return {
        REWARDS_AHEAD: np.where(is_within, store.rewards.values[at], 0).astype(np.float32),
        STEPS_AHEAD: steps,
        TERMINATED_AHEAD: store.terminateds[last],
        **{f"{STATE_AHEAD}{name}": column.take(last)[1] for name, column in store.observations.items()},
    }
