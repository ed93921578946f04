"""The progress of a run, for its display and for ``status.json``."""

from __future__ import annotations

import dataclasses
from typing import Callable, Mapping

from rl_coach.core_types import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    RunPhase,
    StepMethod,
    TotalStepsCounter,
    TrainingSteps,
)
from rl_coach.graph_managers.improvement import Improvement
from rl_coach.graph_managers.schedule_parameters import PLURALS
from rl_coach.runs.live_region import Fields
from rl_coach.runs.progress import Goal, Status


class Reports:
    """Computes the progress of a run.

    :param counters: the counters of each phase
    :param improvement: counts the training that is done and left
    :param more_updates: returns the number of updates that training steps do not count, such as updates of minibatches

    :ivar shown: the phases to show; for an evaluation of a checkpoint, only the evaluation
    :ivar stops_early: True if training also ends when the stop condition is met
    :ivar reward: the evaluation reward at which training stops; None if this reward is not known
    :ivar is_endless: True if evaluation continues until the user interrupts it
    """

    def __init__(
        self,
        counters: Mapping[RunPhase, TotalStepsCounter],
        improvement: Improvement,
        more_updates: Callable[[], int] = lambda: 0,
    ):
        self._counters = counters
        self._improvement = improvement
        self._more_updates = more_updates
        self.shown: tuple[RunPhase, ...] = (RunPhase.HEATUP, RunPhase.TRAIN)
        self.stops_early = False
        self.reward: float | None = None
        self.is_endless = False
        self._wanted: dict[RunPhase, tuple[int, StepMethod]] = {}

    def expect(self, phase: RunPhase, steps: StepMethod) -> None:
        """Record that a phase begins. :param steps: the length of the phase"""
        self._wanted[phase] = (self._counters[phase][type(steps)], steps)

    def status(self, phase: RunPhase, counts_updates: bool, others: Fields = ()) -> Status:
        """Progress of the run so far.

        :param phase: the current phase
        :param counts_updates: True if training steps are updates of networks
        :param others: more fields of the display
        """
        shown = [self._counters[one] for one in self.shown]
        return Status(
            phase=phase,
            episodes=shown[-1][EnvironmentEpisodes],
            steps=sum(counter[EnvironmentSteps] for counter in shown),
            updates=self._updates() if counts_updates else 0,
            goal=self._goal(phase),
            training=None if phase is RunPhase.HEATUP else self._improvement.goal(self.stops_early),
            evaluation_steps=self._counters[RunPhase.TEST][EnvironmentSteps],
            others=tuple(others),
            epochs=self._improvement.epochs,
        )

    def _updates(self) -> int:
        phase = self.shown[-1]
        return self._counters[phase][TrainingSteps] + (self._more_updates() if phase is RunPhase.TRAIN else 0)

    def _goal(self, phase: RunPhase) -> Goal | None:
        """The end of the current phase, and how much of the phase is done."""
        if phase is RunPhase.TRAIN:
            goal = self._improvement.goal(self.stops_early)
            return goal and dataclasses.replace(goal, reward=self.reward)
        if phase not in self._wanted:
            return None
        start, steps = self._wanted[phase]
        unit = type(steps)
        total = None if self.is_endless else steps.num_steps
        return Goal(self._counters[phase][unit] - start, total, PLURALS[unit])
