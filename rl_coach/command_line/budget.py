"""``--budget 20min``: measure the speed of training, then train for the number of steps that fits into the time."""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterator

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.graph_managers.graph_manager import GraphManager
from rl_coach.logger import screen
from rl_coach.runs.record import joined_settings, settings_in
from rl_coach.schedules import ConstantSchedule, HalvingSchedule, LinearSchedule, Schedule
from rl_coach.utilities.requirements import settings_below
from rl_coach.utilities.stop_signals import BudgetOver, stop_signals
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.base_parameters import TaskParameters

_SHARE_OF_MEASURING, _LEAST_SECONDS_OF_MEASURING = 0.05, 4.0
_SHARE_OF_PREPARING = 0.5
_SHARE_OF_ENDING = 0.02
_SHARE_PLANNED = 0.9
"""The share of the time that is planned, because the machine may be slower than during the measurement."""
_SECONDS_OF_START_AND_END = 3.0
_LEAST_ROUNDS = 3
_ENDLESS = 10**9
_DIGITS = 3


class _IsMeasured(Exception):
    """Raised to end the measurement."""


@dataclass
class Speed:
    """The measured times of a preset, in seconds.

    :param preparing: seconds to build the graph, for heatup, and for the first training with its compilation
    :param per_step: seconds of an environment step with its training
    :param per_evaluation: seconds of an evaluation with the longest possible episodes
    :param steps_between_evaluations: number of environment steps between two evaluations
    :param per_checkpoint: seconds to save a checkpoint
    """

    preparing: float
    per_step: float
    per_evaluation: float
    steps_between_evaluations: float
    per_checkpoint: float

    @property
    def ending(self) -> float:
        """The seconds that are reserved for the end of the run."""
        return _SECONDS_OF_START_AND_END + 3 * self.per_checkpoint

    def steps_in(self, seconds: float) -> int:
        """The number of training steps that fit into a time, rounded down to three digits.

        :param seconds: the time, which includes the evaluations
        """
        left = _SHARE_PLANNED * (seconds - self.preparing - self.ending) - self.per_evaluation
        steps = int(max(0.0, left) / (self.per_step + self.per_evaluation / self.steps_between_evaluations))
        unit = 10 ** max(0, len(str(steps)) - _DIGITS)
        return steps // unit * unit


def run(graph_manager: Any, args: argparse.Namespace, launcher: Any, began: float) -> None:
    """Measure the speed of training, and train for the number of steps that fits into the time. If the machine becomes
    slower, the run ends earlier.

    :param graph_manager: the preset's graph manager with the flags applied, before ``create_graph``
    :param launcher: a ``CoachLauncher``
    :param began: the start of the program, in the time of ``time.monotonic``
    :raises CoachError: if the time is too short, ``-cp`` sets ``improve_steps``, or the graph learns from a data set
    """
    if any(path.rpartition(".")[2] == "improve_steps" for path, _ in settings_in(args.custom_parameter or "")):
        raise CoachError("--budget sets improve_steps: leave it out of -cp")
    if type(graph_manager).train_and_act is not GraphManager.train_and_act:
        raise CoachError(
            f"--budget does not work with {type(graph_manager).__name__}, which does not train for environment steps: "
            f"leave out --budget, and set improve_steps with -cp"
        )
    settings: list[tuple[str, Schedule, int]] = []
    fixed: list[tuple[str, Schedule, int]] = []
    for path, schedule in _schedules(graph_manager):
        length = _length_if_it_follows(graph_manager, path, schedule)
        (settings if length else fixed).append((path, schedule, length))
    end, total = began + args.budget, graph_manager.improve_steps.num_steps
    speed = _measured(launcher.get_graph_manager_from_args(args), args, launcher, began)
    steps = speed.steps_in(end - time.monotonic())
    if steps < 1:
        raise CoachError(
            f"--budget: {args.budget} s are too short: after the measurement, the preparation "
            f"({speed.preparing:.0f} s), an evaluation and the end of the run, no time is left to train"
        )
    texts = [f"improve_steps=EnvironmentSteps({steps})"]
    texts += [f"{path}={_text(schedule, max(1, round(length * steps / total)))}" for path, schedule, length in settings]
    screen.print(f"--budget: {steps:,} steps fit ({1 / speed.per_step:,.0f} a second)")
    if settings:
        screen.print(f"--budget: schedules that were fitted to the number of steps: {_names(settings)}")
    if fixed:
        screen.print(f"--budget: schedules that were not fitted, because they do not end with the run: {_names(fixed)}")
    args.custom_parameter = joined_settings(args.custom_parameter, "; ".join(texts))
    fitted = launcher.get_graph_manager_from_args(args)
    try:
        with stop_signals.ending_after(end - speed.ending - _SHARE_OF_ENDING * args.budget - time.monotonic()):
            launcher.run_graph_manager(fitted, args)
    except BudgetOver:
        done = fitted.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps]
        screen.warning(f"--budget: the time ended at step {done:,} of {steps:,}; continue the run with --resume")


def _names(found: list[tuple[str, Schedule, int]]) -> str:
    return ", ".join(path for path, _, _ in found)


def _schedules(graph_manager: Any) -> Iterator[tuple[str, Schedule]]:
    """The schedules of a preset that are not constant, with their paths in ``-cp``."""
    for path, holder in settings_below(graph_manager):
        for name, value in vars(holder).items():
            ends = (value.initial_value, getattr(value, "final_value", None)) if isinstance(value, Schedule) else (0, 0)
            if ends[0] != ends[1] and not isinstance(value, ConstantSchedule):
                yield f"{path}.{name}".lstrip("."), value


def _length_if_it_follows(graph_manager: Any, path: str, schedule: Schedule) -> int:
    """The length of a schedule that ends with the run; 0 for other schedules. The schedule of a learning rate counts
    updates or training phases.
    """
    end = graph_manager.improve_steps
    length = {LinearSchedule: "decay_steps", HalvingSchedule: "steps"}.get(type(schedule))
    if length is None or type(end) is not EnvironmentSteps or end.num_steps >= _ENDLESS:
        return 0
    lengths = [float(end.num_steps)]
    algorithm = getattr(getattr(graph_manager, "agent_params", None), "algorithm", None)
    if path.endswith("learning_rate") and algorithm is not None:
        phases = end.num_steps / max(1, algorithm.num_consecutive_playing_steps.num_steps)
        lengths += [phases, phases * algorithm.num_consecutive_training_steps]
    own = getattr(schedule, length)
    return own if any(abs(own - one) <= 1 for one in lengths) else 0


def _text(schedule: Any, length: int) -> str:
    """A schedule with another length, as a value for ``-cp``."""
    halvings = f", {schedule.half_lives!r}" if isinstance(schedule, HalvingSchedule) else ""
    return f"{type(schedule).__name__}({schedule.initial_value!r}, {schedule.final_value!r}, {length}{halvings})"


@dataclass
class _Watch:
    """Records times and counts a few times a second, and ends the measurement.

    :param graph_manager: the graph that trains
    :param seconds: the shortest time to measure
    :ivar notes: the records: the seconds without compilations, the environment steps and the updates. There is a record
        for each increase of the updates
    """

    graph_manager: GraphManager
    seconds: float
    notes: list[tuple[float, int, int]] = field(default_factory=list)

    def __call__(self) -> tuple:
        """Add a record if there were new updates. :return: (), no further fields for the display"""
        counts = self.graph_manager.total_steps_counters[RunPhase.TRAIN]
        now = time.monotonic() - screen.seconds_waited
        if counts[TrainingSteps] > (self.notes[-1][2] if self.notes else 0):
            self.notes.append((now, counts[EnvironmentSteps], counts[TrainingSteps]))
            if len(self.notes) > _LEAST_ROUNDS and now - self.notes[0][0] >= self.seconds:
                raise _IsMeasured
        return ()


def _measured(graph_manager: GraphManager, args: argparse.Namespace, launcher: Any, began: float) -> Speed:
    """Measure the times of a preset in a short run. The files of this run are deleted.

    :raises CoachError: if the time is too short
    """
    started = time.monotonic()
    watch = _Watch(graph_manager, max(_LEAST_SECONDS_OF_MEASURING, _SHARE_OF_MEASURING * args.budget))
    graph_manager.callbacks = []
    graph_manager.other_fields = watch
    visualization = graph_manager.visualization_parameters
    for name in ("dump_csv", "dump_parameters_documentation", "tensorboard", "render", "dump_gifs", "dump_mp4"):
        setattr(visualization, name, False)
    with tempfile.TemporaryDirectory() as folder, stop_signals.listening():
        task: TaskParameters = launcher.create_task_parameters(graph_manager, args)
        task.experiment_path, task.checkpoint_save_dir = folder, folder
        try:
            with stop_signals.ending_after(_SHARE_OF_PREPARING * args.budget - (started - began)):
                graph_manager.create_graph(task)
                graph_manager.heatup(graph_manager.heatup_steps)
                graph_manager.train_and_act(EnvironmentSteps(_ENDLESS))
        except _IsMeasured:
            pass
        except BudgetOver:
            raise CoachError(f"--budget: {args.budget} s are too short to measure the speed of training") from None
        (first_time, first_step, _), (last_time, last_step, _) = watch.notes[0], watch.notes[-1]
        graph_manager.other_fields = tuple
        speed = Speed(
            first_time + screen.seconds_waited - started,
            (last_time - first_time) / max(1, last_step - first_step),
            *_evaluation(graph_manager),
            _seconds_of(graph_manager.save_checkpoint),
        )
        graph_manager.close()
    return speed


def _evaluation(graph_manager: GraphManager) -> tuple[float, float]:
    """The seconds of an evaluation with the longest episodes, and the environment steps between two evaluations."""
    length, period = graph_manager.evaluation_steps, graph_manager.steps_between_evaluation_periods
    trained, tested = (graph_manager.total_steps_counters[phase] for phase in (RunPhase.TRAIN, RunPhase.TEST))
    share = trained[EnvironmentSteps] / max(1, trained[type(period)])
    if not length.num_steps:
        return 0.0, period.num_steps * share
    graph_manager.evaluate(EnvironmentEpisodes(1))  # not measured, because it includes compilation
    before = tested[EnvironmentSteps]
    seconds = _seconds_of(lambda: graph_manager.evaluate(EnvironmentEpisodes(1)))
    steps = tested[EnvironmentSteps] - before
    environment = graph_manager.level_managers[-1].evaluation_environment
    specification = getattr(getattr(environment, "env", None), "spec", None)
    longest = getattr(specification, "max_episode_steps", None) or 2 * steps
    in_all = longest * length.num_steps if isinstance(length, EnvironmentEpisodes) else length.num_steps + longest
    return seconds / steps * in_all, period.num_steps * share


def _seconds_of(call: Callable[[], Any]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began
