"""Timing of an agent's training: it counts, and says what is due."""

from __future__ import annotations

import math
from typing import Callable

from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, StepMethod, TrainingSteps

LONGEST_PERIOD_WITHIN_CALLS = 10


class TrainingClock:
    """Counts steps, episodes and updates, and says when training phases and updates of target networks are due.

    A training phase follows ``num_consecutive_playing_steps`` and makes ``num_consecutive_training_steps`` updates;
    targets are updated every ``num_steps_between_copying_online_weights_to_target``. Its number counts updates, in
    place of environment steps or episodes, if nothing is played while the agent learns.

    :param algorithm: the settings; they are read at each question, so that they may change while a run goes on

    :ivar plays: False if nothing is played while the agent learns
    :ivar steps: environment steps of heatup and training so far
    :ivar episodes: episodes so far
    :ivar updates: updates of the networks so far
    :ivar minibatches: updates on minibatches, of phases that count as one update each
    :ivar steps_at_once: environment steps that are counted together, because that many copies of the environment are
        stepped at once or steps arrive in chunks
    :ivar last_phase: the count of steps, or of episodes, at the last training phase
    :ivar last_target_update: the count, of the kind of the targets' period, at the last update of the targets
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
        """True if the playing steps since the last training phase are over.

        :param in_episode: True while an episode is in progress that a phase has to wait for; asked only if the
            algorithm acts for full episodes
        """
        period = self._algorithm.num_consecutive_playing_steps
        if isinstance(period, EnvironmentSteps):
            waits = self._algorithm.act_for_full_episodes and in_episode()
            return self.steps - self.last_phase >= period.num_steps and not waits
        return self.episodes - self.last_phase >= period.num_steps

    def start_phases(self, updates_left: int | None = None) -> int:
        """Begin the training phases that are due, of which there can be several where several steps are counted at
        once, and count anew from here.

        :param updates_left: the most updates that are wanted, None for no limit
        :return: number of updates that they make
        """
        period, phases = self._algorithm.num_consecutive_playing_steps, 1
        if isinstance(period, EnvironmentEpisodes):
            self.last_phase = self.episodes
        elif self.steps_at_once == 1:
            self.last_phase = self.steps
        else:
            phases, rest = divmod(self.steps - self.last_phase, max(1, period.num_steps))
            if phases > self.most_phases:
                phases, rest = 1, 0  # the steps before training began are not caught up with
            self.last_phase = int(self.steps - rest)
        updates = phases * self._algorithm.num_consecutive_training_steps
        # a setting may be a number of NumPy, which JSON does not take
        return int(updates if updates_left is None else min(updates, updates_left))

    def take_phases(self, planned: TrainingClock) -> None:
        """Take the times of the last phase and of the last update of the targets from a clock that went ahead."""
        self.last_phase, self.last_target_update = planned.last_phase, planned.last_target_update

    @property
    def most_phases(self) -> int:
        """Number of training phases that can be due at once."""
        period = self._algorithm.num_consecutive_playing_steps
        if self.steps_at_once == 1 or isinstance(period, EnvironmentEpisodes):
            return 1
        return -(-self.steps_at_once // max(1, period.num_steps))

    @property
    def target_period(self) -> StepMethod:
        """The steps between two updates of the targets."""
        period = self._algorithm.num_steps_between_copying_online_weights_to_target
        return period if self.plays or isinstance(period, TrainingSteps) else TrainingSteps(period.num_steps)

    @property
    def _updates_targets_within_calls(self) -> bool:
        """True if targets are updated after every few updates: a call makes those of targets too then."""
        period = self.target_period
        return isinstance(period, TrainingSteps) and period.num_steps in range(2, LONGEST_PERIOD_WITHIN_CALLS + 1)

    def target_updates(self, updates: int) -> list[bool] | None:
        """For each of the next updates, True if targets are updated after it; None: after each of them."""
        if not self._updates_targets_within_calls:
            return None
        period = self.target_period.num_steps
        first = self.updates - self.last_target_update + 1
        return [number % period == 0 for number in range(first, first + updates)]

    def updates_before_targets(self, updates: int) -> tuple[int, bool]:
        """Number of updates that one call can make before targets are due, and True if the call updates them too.

        :param updates: number of updates wanted
        """
        period = self.target_period
        if isinstance(period, EnvironmentSteps):
            return updates, self._algorithm.num_consecutive_training_steps == 1 and period.num_steps <= 1
        if isinstance(period, EnvironmentEpisodes):
            return updates, False
        if period.num_steps <= 1 or self._updates_targets_within_calls:
            return updates, True
        due_in = math.ceil(period.num_steps) - (self.updates - self.last_target_update)
        return min(updates, max(1, due_in)), False

    def targets_due(self) -> bool:
        """True if the targets are to be updated now; if so, the time counts anew."""
        period = self.target_period
        if isinstance(period, TrainingSteps):
            now = self.updates
        else:
            now = self.episodes if isinstance(period, EnvironmentEpisodes) else self.steps
        if now - self.last_target_update < period.num_steps:
            return False
        passed = (now - self.last_target_update) % period.num_steps if self._updates_targets_within_calls else 0
        self.last_target_update = now - passed
        return True

    @property
    def optimizer_steps(self) -> int:
        """Updates of the networks so far, each minibatch counted."""
        return self.minibatches or self.updates

    def get_state(self) -> dict[str, int]:
        """The counts at the last phase and the last update of the targets, and the minibatches."""
        return {
            "last_phase": self.last_phase,
            "last_target_update": self.last_target_update,
            "minibatches": self.minibatches,
        }

    def set_state(self, state: dict[str, int]) -> None:
        """Go on from ``get_state``."""
        self.last_phase, self.last_target_update = state["last_phase"], state["last_target_update"]
        self.minibatches = state.get("minibatches", 0)
