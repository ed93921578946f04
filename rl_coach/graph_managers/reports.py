"""Reports on a graph's run: the lines of its display while it goes on, and the summary at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, StepMethod, TrainingSteps
from rl_coach.graph_managers.schedule_parameters import PLURALS
from rl_coach.runs.evaluation import EvaluationStatistics
from rl_coach.runs.progress import Goal, Progress, Status
from rl_coach.runs.summary import Counts, Summary

if TYPE_CHECKING:
    from rl_coach.graph_managers.graph_manager import GraphManager


class Reports:
    """Tells how far a run is and what came of it.

    :param graph: the graph that runs
    """

    def __init__(self, graph: GraphManager):
        self._graph = graph
        self._shown: tuple[RunPhase, ...] = (RunPhase.HEATUP, RunPhase.TRAIN)
        self._wanted: dict[RunPhase, tuple[int, StepMethod]] = {}

    def show_only_evaluation(self) -> None:
        """Count evaluation alone; what came with the checkpoint is of the run that trained."""
        self._shown = (RunPhase.TEST,)
        self._graph.progress.set_state(Progress().get_state())
        self._graph.run_status.evaluation = {}

    def expect(self, phase: RunPhase, steps: StepMethod) -> None:
        """A phase begins. :param steps: its length"""
        self._wanted[phase] = (self._graph.total_steps_counters[phase][type(steps)], steps)

    def status(self) -> Status:
        """Progress of the run so far."""
        graph = self._graph
        shown = [graph.total_steps_counters[phase] for phase in self._shown]
        return Status(
            phase=graph.phase,
            episodes=shown[-1][EnvironmentEpisodes],
            steps=sum(counter[EnvironmentSteps] for counter in shown),
            updates=shown[-1][TrainingSteps] if graph.can_train else 0,
            goal=self._goal(),
            evaluation_steps=graph.total_steps_counters[RunPhase.TEST][EnvironmentSteps],
            others=tuple(graph.other_fields()),
        )

    def _goal(self) -> Goal | None:
        """End of the present phase."""
        graph, task = self._graph, self._graph.task_parameters
        if graph.phase is RunPhase.TRAIN:
            return graph.improvement.goal(task.apply_stop_condition)
        if graph.phase not in self._wanted:
            return None
        start, steps = self._wanted[graph.phase]
        unit = type(steps)
        total = None if task.evaluate_only == 0 else steps.num_steps
        return Goal(graph.current_step_counter[unit] - start, total, PLURALS[unit])

    def print_summary(self, counted: Counts, evaluation: EvaluationStatistics | None = None) -> None:
        """Say what came of the run.

        :param counted: what it trained, or evaluated
        :param evaluation: its figures, where it did nothing else
        """
        graph = self._graph
        Summary(
            progress=graph.progress,
            counted=counted,
            heatup=Counts.of(graph.total_steps_counters[RunPhase.HEATUP]),
            evaluation=evaluation,
            experiment_path=str(graph.task_parameters.experiment_path),
            has_tensorboard=graph.visualization_parameters.tensorboard,
            playback_hint=graph.playback_hint,
        ).print()
