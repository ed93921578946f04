"""Signals of an agent: samples, the rows that their statistics are written to, and results of evaluations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Callable, Mapping

import numpy as np

from rl_coach.agents.core.episode import EpisodeReport
from rl_coach.architectures.learner import LearningResult
from rl_coach.base_parameters import TaskParameters, VisualizationParameters
from rl_coach.core_types import RunPhase
from rl_coach.logger import EpisodeLogger, Logger
from rl_coach.utilities import plain_data
from rl_coach.utils import LazyArray, Signal

_EVALUATION_COLUMNS = ("Evaluation Reward", "Shaped Evaluation Reward", "Success Rate")
# written by what learns from recorded data; Coach's CSV has them always
_OFFLINE_COLUMNS = (
    "Epoch", "Inverse Propensity Score", "Direct Method Reward", "Doubly Robust", "Weighted Importance Sampling",
    "Sequential Doubly Robust",
)  # fmt: skip
_NOT_KNOWN_YET = dict.fromkeys(_EVALUATION_COLUMNS + _OFFLINE_COLUMNS, np.nan)


class RowUnit(Enum):
    """The unit of a row in an agent's CSV."""

    EPISODE = "episode"
    EPOCH = "epoch"
    UPDATES = "updates"


@dataclass
class Evaluation:
    """The episodes of an evaluation so far."""

    episodes: int = 0
    successes: int = 0
    reward: float = 0.0
    shaped_reward: float = 0.0

    def add(self, report: EpisodeReport, success_threshold: float | None) -> None:
        """Count an episode. :param success_threshold: the reward of a success, None if there is none"""
        reward = float(np.sum(report.reward))
        self.episodes += 1
        self.reward += reward
        self.shaped_reward += float(np.sum(report.shaped_reward))
        if success_threshold is not None and reward >= success_threshold:
            self.successes += 1


class Signals:
    """Records what an agent does.

    A signal is a list of samples. A row has the statistics of the samples since the row before. That of an episode is
    opened when the episode ends and closed when the next one begins, an evaluation starts or the run stops: what is
    learned after an episode belongs to its row, and each statistic is computed once. Where rows are not of episodes but
    of epochs or of updates, ``write_row`` writes each, and episodes write none.

    :param writes_steps: write a row for each step too
    :param period: write rows to the file after so many of them
    :param row_unit: what a row is about

    :ivar reports: episodes that another process will record; None where this one does
    :ivar logger: the CSV with a row for each episode
    :ivar step_logger: the CSVs with a row for each step, one for each episode
    :ivar is_row_open: an episode has ended, and the next has not begun
    :ivar evaluation: the evaluation in progress
    :ivar last_success_rate: the share of successes in the last evaluation
    """

    def __init__(self, writes_steps: bool = False, period: int = 1, row_unit: RowUnit = RowUnit.EPISODE):
        self.reports: list[EpisodeReport] | None = None
        self.writes_steps = writes_steps
        self.logger = Logger()
        self.step_logger = EpisodeLogger()
        self.episode_signals: list[Signal] = []
        self.step_signals: list[Signal] = []
        self.evaluation = Evaluation()
        self.last_success_rate = 0.0
        self._period = period
        self._rows_are_episodes = row_unit is RowUnit.EPISODE
        self._rule_signals: dict[str, Signal] = {}
        self._num_announced = 0
        self._saved_steps: dict[str, Any] = {}
        self.is_row_open = False
        self._are_targets_updated = False
        self._are_targets_updated_since_step = False
        self.loss = self.register("Loss")
        self.learning_rate = self.register("Learning Rate")
        self.gradients = self.register("Grads (unclipped)")
        self.reward = self.register("Reward", per_episode=False, per_step=True)
        self.shaped_reward = self.register("Shaped Reward", per_episode=False, per_step=True)
        self.discounted_return = self.register("Discounted Return")

    def register(self, name: str, per_episode: bool = True, per_step: bool = False) -> Signal:
        """A new signal: with statistics over each episode, with its value at each step, or both."""
        signal = Signal(name)
        if per_episode:
            self.episode_signals.append(signal)
        if per_step:
            self.step_signals.append(signal)
        return signal

    def use_for_rule(self, name: str, signal: Signal) -> None:
        """Let a signal that is there take the samples of the update rule's signal of that name."""
        self._rule_signals[name] = signal

    def add_learning(self, result: LearningResult) -> None:
        """Record the signals of an update rule; nothing is computed yet."""
        for name in result.signal_names:
            self._rule_signal(name).add_sample(LazyArray(partial(_signal_of, result, name)))

    def _rule_signal(self, name: str) -> Signal:
        if name not in self._rule_signals:
            self._rule_signals[name] = self.register(name)
        return self._rule_signals[name]

    def note_target_update(self) -> None:
        """Record that target networks were updated, in the row of the episode in which it happens, and in that of the
        next step."""
        self._are_targets_updated = self._are_targets_updated_since_step = True

    # rows

    def write_episode(self, report: EpisodeReport, counts: Mapping[str, Any], episode: int) -> None:
        """Open the row of an episode that has ended, and write those before it to the file.

        :param counts: the first columns of the row
        :param episode: its number, which is the row's
        """
        if self.reports is not None:
            samples: dict[str, list] = {
                signal.name: [signal.flat()] for signal in self.episode_signals if signal.values
            }
            self.reports.append(replace(report, signals=samples))
            return
        training = report.phase is RunPhase.TRAIN
        if self._rows_are_episodes:
            self.open_row(
                episode,
                {
                    **counts,
                    "Episode Length": report.length,
                    "Shaped Training Reward": report.shaped_reward if training else np.nan,
                    "Training Reward": report.reward if training else np.nan,
                },
            )
        for signal in self.episode_signals:
            signal.values.extend(report.signals.get(signal.name, ()))

    def write_row(self, number: int, counts: Mapping[str, Any], epoch: int | None) -> None:
        """Write the whole row of an epoch, or of a number of updates. It has the statistics of what was sampled since
        the row before, and the results of an evaluation that follows. Its columns are those of an episode's row.

        :param number: of the epoch, or of the updates so far; the numbers of rows increase
        :param counts: the first columns of the row
        :param epoch: the number of complete passes over a data set; None if there are no passes
        """
        unknown = dict.fromkeys(("Episode Length", "Shaped Training Reward", "Training Reward"), np.nan)
        self.open_row(number, {**counts, **unknown})
        self.logger.create_signal_value("Epoch", np.nan if epoch is None else epoch)
        self.close_row()
        for signal in self.episode_signals:
            signal.reset()

    def open_row(self, number: int, columns: Mapping[str, Any]) -> None:
        """Begin a row, which takes in what is sampled until it is closed; the row before it is closed.

        :param number: of the episode, the epoch or the updates that the row is of
        """
        self.close_row()
        self.logger.set_current_time(number)
        self.logger.create_signal_values({**columns, "Update Target Network": int(self._are_targets_updated)})
        self._are_targets_updated = False
        self.logger.update_wall_clock_time(number)
        self.logger.create_signal_values(_NOT_KNOWN_YET, overwrite=False)
        self._announce_statistics()
        self.is_row_open = True
        if number % self._period == 0:
            self.logger.dump_output_csv()

    def _announce_statistics(self) -> None:
        """Give the statistics their columns when the row is opened, so that the header has them from the start."""
        new = self.episode_signals[self._num_announced :]
        self.logger.add_columns(column for signal in new for column in signal.columns)
        self._num_announced = len(self.episode_signals)

    def close_row(self) -> None:
        """Complete the open row, if there is one, with the statistics of the signals."""
        if not self.is_row_open:
            return
        self.is_row_open = False
        if self._are_targets_updated:
            self.logger.create_signal_value("Update Target Network", 1)
            self._are_targets_updated = False
        statistics: dict[str, float | str] = {}
        for signal in self.episode_signals:
            statistics |= signal.get_statistics()
        self.logger.create_signal_values(statistics)

    def note_updates(self, updates: int) -> None:
        """Record all updates so far in the row that is open: a training phase belongs to the episode before it."""
        self.logger.create_signal_value("Training Iter", updates)

    def begin_episode(self, episode: int, writes_steps: bool = False) -> None:
        """Forget the samples of the episode before.

        :param episode: the number of those that have ended
        :param writes_steps: the steps of this one get rows
        """
        self.close_row()
        # samples of an epoch are of all its episodes; those of steps are the last one's
        for signal in self.episode_signals if self._rows_are_episodes else ():
            signal.reset()
        for signal in self.step_signals:
            signal.reset()
        if writes_steps:
            self.step_logger.set_episode_idx(episode)

    def write_step(self, step: int, counts: Mapping[str, Any]) -> None:
        """Write the row of one step.

        :param step: its number within the episode
        :param counts: the first columns of the row
        """
        self.step_logger.set_current_time(step)
        log = self.step_logger.create_signal_value
        for name, value in counts.items():
            log(name, value)
        log("Update Target Network", int(self._are_targets_updated_since_step))
        self._are_targets_updated_since_step = False
        for signal in self.step_signals:
            log(signal.name, signal.get_last_value())
        self.step_logger.dump_output_csv()

    # evaluations

    def begin_evaluation(self) -> None:
        """Forget the episodes of an evaluation so far."""
        self.evaluation = Evaluation()

    def end_evaluation(self, row: int) -> float | None:
        """Write the means of the evaluation, if there was one, and count anew.

        :param row: the number of the row that they belong to
        :return: the mean reward; None if no episode has ended
        """
        done, self.evaluation = self.evaluation, Evaluation()
        if not done.episodes:
            return None
        self.last_success_rate = done.successes / done.episodes
        values = (done.reward / done.episodes, done.shaped_reward / done.episodes, self.last_success_rate)
        for name, value in zip(_EVALUATION_COLUMNS, values):
            self.logger.create_signal_value(name, value, time=row)
        return values[0]

    def put_samples_aside(self) -> list[list]:
        """The samples of all signals, for ``take_up_samples`` after an evaluation. The open row is closed."""
        self.close_row()
        samples = [signal.values for signal in self.episode_signals + self.step_signals]
        for signal in self.episode_signals + self.step_signals:
            signal.reset()
        return samples

    def take_up_samples(self, samples: list[list]) -> None:
        """Go on with samples that were put aside."""
        for signal, values in zip(self.episode_signals + self.step_signals, samples):
            signal.values = values

    # state

    def get_state(self) -> dict[str, Any]:
        """The rows that are not yet written and the samples that are not yet read."""
        return {
            "logger": self.logger.get_state(),
            "step_logger": self.step_logger.get_state(),
            "rule_signals": list(self._rule_signals),
            "samples": plain_data.flatten([list(signal.read()) for signal in self._all_signals()]),
            "is_row_open": self.is_row_open,
            "are_targets_updated": self._are_targets_updated,
            "last_success_rate": self.last_success_rate,
        }

    def set_state(self, state: dict[str, Any], with_unwritten: bool = True) -> None:
        """Go on from ``get_state``.

        :param with_unwritten: also with the rows that were not yet written and the samples for the next
        """
        self.logger.set_state(state["logger"])
        for name in state["rule_signals"]:
            self._rule_signal(name)
        if with_unwritten:
            for signal, samples in zip(self._all_signals(), plain_data.restore(state["samples"])):
                signal.values = samples
        else:
            self.logger.leave_out_rows()
        self._saved_steps = state["step_logger"]
        self.is_row_open = state["is_row_open"]
        self._are_targets_updated = state["are_targets_updated"]
        self.last_success_rate = state["last_success_rate"]

    def open_files(
        self,
        task: TaskParameters,
        visualization: VisualizationParameters,
        stem: str,
        run_parameters: Callable[[], dict[str, Any]],
    ) -> None:
        """Choose the files.

        :param stem: the common part of their names: graph, level and agent
        :param run_parameters: gives the parameters that TensorBoard shows beside the signals
        """
        place, number = task.experiment_path, task.task_index
        if visualization.dump_csv:
            self.logger.set_logger_filenames(
                place, stem, number, resume=task.resume, tensorboard=visualization.tensorboard
            )
            if visualization.tensorboard:
                self.logger.set_hyper_parameters(run_parameters())
        if self.writes_steps:
            self.step_logger.set_logger_filenames(place, stem, number)

    def resume_steps(self, episode: int) -> None:
        """Go on with the rows of steps of the episode that was in progress; ``set_state`` came before.

        :param episode: the number of those that have ended
        """
        self.step_logger.set_episode_idx(episode)
        self.step_logger.set_state(self._saved_steps)

    def _all_signals(self) -> list[Signal]:
        return list(dict.fromkeys(self.episode_signals + self.step_signals))

    def close(self) -> None:
        """Write everything."""
        self.close_row()
        self.logger.close()
        self.step_logger.close()


def _signal_of(result: LearningResult, name: str) -> np.ndarray:
    return result.signals[name]
