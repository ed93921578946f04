"""Timing of an agent's training: counts of steps, episodes and updates, and the times of phases and target updates."""

from __future__ import annotations

import math
from typing import Callable

from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, StepMethod, TrainingSteps

# number of updates; for longer periods, a call can end where targets are due and is still fast
LONGEST_PERIOD_WITHIN_CALLS = 10


class TrainingClock:
    """Counts steps, episodes and updates, and says when training phases and updates of target networks are due.

    A training phase follows ``num_consecutive_playing_steps`` and makes ``num_consecutive_training_steps`` updates.
    Target networks are updated every ``num_steps_between_copying_online_weights_to_target`` environment steps, episodes
    or updates. If nothing is played while the agent learns, this number always counts updates.

    :param algorithm: the settings; they are read at each call, so that they may change during a run

    :ivar plays: False if nothing is played while the agent learns
    :ivar steps: environment steps of heatup and training so far
    :ivar updates: updates of the networks so far
    :ivar minibatches: number of minibatch updates of an agent that learns in epochs. For this agent, ``updates`` counts
        a training phase as 1
    :ivar steps_at_once: environment steps that are counted together: the copies of the environment that step at once,
        or the steps of the largest chunk
    :ivar last_phase: the count of steps, or of episodes, at the last training phase
    :ivar last_target_update: the count at the last update of the targets, in the unit of the targets' period
    """

    def __init__(self, algorithm: AlgorithmParameters):
        self._algorithm = algorithm
        self.plays = True
        self.steps = 0
        self.episodes = 0
        self.updates = 0
        self.minibatches = 0
        self.steps_at_once = 1
        self.last_phase = 0
        self.last_target_update = 0

    def is_due(self, in_episode: Callable[[], bool] = lambda: False) -> bool:
        """True if enough steps or episodes were played since the last training phase.

        :param in_episode: returns True while a training phase must wait for an episode in progress; called only if the
            algorithm acts for full episodes
        """
        period = self._algorithm.num_consecutive_playing_steps
        if isinstance(period, EnvironmentSteps):
            waits = self._algorithm.act_for_full_episodes and in_episode()
            return self.steps - self.last_phase >= period.num_steps and not waits
        return self.episodes - self.last_phase >= period.num_steps

    def start_phases(self, updates_left: int | None = None) -> int:
        """Begin the training phases that are due, and measure the next period from here. If several steps are counted
        at once, several phases can be due.

        :param updates_left: the largest number of updates that the run may still make; None for no limit
        :return: the number of updates of all these phases
        """
        period, phases = self._algorithm.num_consecutive_playing_steps, 1
        if isinstance(period, EnvironmentEpisodes):
            self.last_phase = self.episodes
        elif self.steps_at_once == 1:
            self.last_phase = self.steps
        else:
            # not divided by 0: a period of 0 means that nothing is played
            phases, rest = divmod(self.steps - self.last_phase, max(1, period.num_steps))
            if phases > self.most_phases:
                phases, rest = 1, 0  # the steps before training began cause a single phase
            self.last_phase = int(self.steps - rest)
        updates = phases * self._algorithm.num_consecutive_training_steps
        # a setting may be a NumPy number, which JSON cannot store
        return int(updates if updates_left is None else min(updates, updates_left))

    def take_phases(self, planned: TrainingClock) -> None:
        """Copy the times of the last phase and of the last target update from a clock that planned ahead."""
        self.last_phase, self.last_target_update = planned.last_phase, planned.last_target_update

    @property
    def most_phases(self) -> int:
        """The largest number of training phases that can be due at once."""
        period = self._algorithm.num_consecutive_playing_steps
        if self.steps_at_once == 1 or isinstance(period, EnvironmentEpisodes):
            return 1
        return -(-self.steps_at_once // max(1, period.num_steps))

    @property
    def target_period(self) -> StepMethod:
        """The time between two updates of the targets: environment steps, episodes, or updates of the networks."""
        period = self._algorithm.num_steps_between_copying_online_weights_to_target
        return period if self.plays or isinstance(period, TrainingSteps) else TrainingSteps(period.num_steps)

    @property
    def _updates_targets_within_calls(self) -> bool:
        """True if targets are updated after every 2 to 10 updates. Then a compiled call of many updates also updates
        the targets, because calls of so few updates would be slow."""
        period = self.target_period
        return isinstance(period, TrainingSteps) and period.num_steps in range(2, LONGEST_PERIOD_WITHIN_CALLS + 1)

    def target_updates(self, updates: int) -> list[bool] | None:
        """A list for the next updates: True if targets are updated after the update. None if targets are updated after
        each update."""
        if not self._updates_targets_within_calls:
            return None
        period = self.target_period.num_steps
        first = self.updates - self.last_target_update + 1
        return [number % period == 0 for number in range(first, first + updates)]

    def updates_before_targets(self, updates: int) -> tuple[int, bool]:
        """The number of updates that one compiled call can make, at most ``updates``; and True if it also updates the
        targets. Otherwise the call ends when targets are due, and the caller updates them."""
        period = self._algorithm.num_steps_between_copying_online_weights_to_target
        if self.plays and isinstance(period, EnvironmentSteps):
            return updates, self._algorithm.num_consecutive_training_steps == 1 and period.num_steps <= 1
        if self.plays and isinstance(period, EnvironmentEpisodes):
            return updates, False
        if period.num_steps <= 1 or self._updates_targets_within_calls:
            return updates, True
        due_in = math.ceil(period.num_steps) - (self.updates - self.last_target_update)
        return min(updates, max(1, due_in)), False

    def targets_due(self) -> bool:
        """True if the targets must be updated now. True also starts the next period."""
        period = self._algorithm.num_steps_between_copying_online_weights_to_target
        if isinstance(period, TrainingSteps) or not self.plays:
            now = self.updates
        else:
            now = self.episodes if isinstance(period, EnvironmentEpisodes) else self.steps
        if now - self.last_target_update < period.num_steps:
            return False
        # a call may have made more updates after its last update of the targets
        passed = (now - self.last_target_update) % period.num_steps if self._updates_targets_within_calls else 0
        self.last_target_update = now - passed
        return True

    @property
    def optimizer_steps(self) -> int:
        """The number of optimizer steps so far; each minibatch is one step."""
        return self.minibatches or self.updates

    def get_state(self) -> dict[str, int]:
        """The counts at the last phase and at the last target update, and the number of minibatches."""
        return {
            "last_phase": self.last_phase,
            "last_target_update": self.last_target_update,
            "minibatches": self.minibatches,
        }

    def set_state(self, state: dict[str, int]) -> None:
        """Restore a state that ``get_state`` returned."""
        self.last_phase, self.last_target_update = state["last_phase"], state["last_target_update"]
        self.minibatches = state.get("minibatches", 0)
