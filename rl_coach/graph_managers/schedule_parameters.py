"""The lengths of a run's parts, their units, and ready-made schedules for presets."""

from __future__ import annotations

from rl_coach.base_parameters import ScheduleParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, StepMethod, TrainingSteps

UNITS: dict[str, type[StepMethod]] = {
    unit.__name__: unit for unit in (EnvironmentSteps, EnvironmentEpisodes, TrainingSteps)
}
"""The units that a schedule counts in, by name."""

PLURALS: dict[type[StepMethod], str] = {
    EnvironmentSteps: "steps", EnvironmentEpisodes: "episodes", TrainingSteps: "updates",
}  # fmt: skip
"""Names of these units in the plural, for messages."""

PARTS = ("heatup_steps", "evaluation_steps", "steps_between_evaluation_periods", "improve_steps")


class HumanPlayScheduleParameters(ScheduleParameters):
    """Play until interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.heatup_steps = EnvironmentSteps(0)
        self.evaluation_steps = EnvironmentEpisodes(0)
        self.steps_between_evaluation_periods = EnvironmentEpisodes(100000000)
        self.improve_steps = TrainingSteps(10000000000)


class SimpleScheduleWithoutEvaluation(ScheduleParameters):
    """Train without heatup and evaluation.

    :param improve_steps: the length of training; None for ``TrainingSteps(10000000000)``
    """

    def __init__(self, improve_steps: StepMethod | None = None):
        super().__init__()
        self.heatup_steps = EnvironmentSteps(0)
        self.evaluation_steps = EnvironmentEpisodes(0)
        self.steps_between_evaluation_periods = improve_steps or TrainingSteps(10000000000)
        self.improve_steps = improve_steps or TrainingSteps(10000000000)


class SimpleSchedule(ScheduleParameters):
    """Train and evaluate in turn, without heatup.

    :param improve_steps: the length of training; None for ``TrainingSteps(10000000000)``
    :param steps_between_evaluation_periods: the training between two evaluations; None for ``EnvironmentEpisodes(50)``
    :param evaluation_steps: the length of an evaluation; None for ``EnvironmentEpisodes(5)``
    """

    def __init__(
        self,
        improve_steps: StepMethod | None = None,
        steps_between_evaluation_periods: StepMethod | None = None,
        evaluation_steps: StepMethod | None = None,
    ):
        super().__init__()
        self.heatup_steps = EnvironmentSteps(0)
        self.evaluation_steps = evaluation_steps or EnvironmentEpisodes(5)
        self.steps_between_evaluation_periods = steps_between_evaluation_periods or EnvironmentEpisodes(50)
        self.improve_steps = improve_steps or TrainingSteps(10000000000)
