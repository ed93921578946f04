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
# only runs on recorded data have values here, but Coach's CSV always has these columns
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
        """Count an episode. :param success_threshold: the smallest reward of a success; None if no episode counts as a
        success
        """
        reward = float(np.sum(report.reward))
        self.episodes += 1
        self.reward += reward
        self.shaped_reward += float(np.sum(report.shaped_reward))
        if success_threshold is not None and reward >= success_threshold:
            self.successes += 1


class Signals:
    """Records the signals of an agent, and writes their statistics into the rows of its CSV.

    A signal is a list of samples. A row has the statistics of the samples since the last row. The row of an episode is
    opened when the episode ends. It is closed when the next episode begins, an evaluation starts or the run stops. So
    updates after an episode belong to its row, and each statistic is computed once. If rows stand for epochs or updates
    instead, ``write_row`` writes them, and episodes write no rows.

    :param writes_steps: True: also write a row for each step
    :param period: write to the file after this number of rows
    :param row_unit: the unit of a row: an episode, an epoch or a number of updates

    :ivar reports: episodes that another process will record; None if this process records them
    :ivar logger: the CSV with the rows
    :ivar step_logger: the CSVs with a row for each step, one file for each episode
    :ivar is_row_open: True if a row is open: an episode has ended, and the next episode has not begun
    :ivar evaluation: the sums of the evaluation in progress
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
        """Create a signal.

        :param per_episode: True: write the signal's statistics to each row of the agent's CSV (an episode, an epoch or
            some updates)
        :param per_step: True: write the signal's last value to the row of each step
        """
        signal = Signal(name)
        if per_episode:
            self.episode_signals.append(signal)
        if per_step:
            self.step_signals.append(signal)
        return signal

    def use_for_rule(self, name: str, signal: Signal) -> None:
        """Record the update rule's signal ``name`` in an existing signal."""
        self._rule_signals[name] = signal

    def add_learning(self, result: LearningResult) -> None:
        """Record the signals of an update rule. The values are not read here, so that nothing waits for the update."""
        for name in result.signal_names:
            self._rule_signal(name).add_sample(LazyArray(partial(_signal_of, result, name)))

    def _rule_signal(self, name: str) -> Signal:
        if name not in self._rule_signals:
            self._rule_signals[name] = self.register(name)
        return self._rule_signals[name]

    def note_target_update(self) -> None:
        """Record an update of the target networks, in the present episode's row and in the next step's row."""
        # Two flags, because the row of an episode and the row of a step are written at different times.
        self._are_targets_updated = self._are_targets_updated_since_step = True

    # rows

    def write_episode(self, report: EpisodeReport, counts: Mapping[str, Any], episode: int) -> None:
        """Open the row of an episode that has ended, and write the rows before it to the file.

        :param counts: the first columns of the row
        :param episode: the number of the episode and of its row
        """
        if self.reports is not None:
            # A worker sends the samples, not their statistics: statistics of several processes cannot be combined
            # exactly.
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
        """Write the whole row of an epoch, or of a number of updates. The row has the statistics of the samples since
        the last row. The results of a later evaluation are added to this row. Its columns are those of an episode's
        row.

        :param number: the number of the epoch, or of the updates so far; it increases from row to row
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
        """Open a row, and close the row before it. Samples belong to the new row until this row is closed.

        :param number: the number of the row: of the episode or the epoch, or of the updates so far
        """
        self.close_row()
        self.logger.set_current_time(number)
        self.logger.create_signal_values({**columns, "Update Target Network": int(self._are_targets_updated)})
        self._are_targets_updated = False
        self.logger.update_wall_clock_time(number)
        # an evaluation may have written its results into this row before
        self.logger.create_signal_values(_NOT_KNOWN_YET, overwrite=False)
        # at the opening of the row, so that the header has the columns from the start
        new = self.episode_signals[self._num_announced :]
        self.logger.add_columns(column for signal in new for column in signal.columns)
        self._num_announced = len(self.episode_signals)
        self.is_row_open = True
        if number % self._period == 0:
            self.logger.dump_output_csv()

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
        """Set the number of updates in the open row, because a training phase belongs to the episode before it."""
        self.logger.create_signal_value("Training Iter", updates)

    def begin_episode(self, episode: int, writes_steps: bool = False) -> None:
        """Close the open row, and forget the samples of the last episode.

        :param episode: the number of episodes that have ended
        :param writes_steps: True: write rows for the steps of the new episode
        """
        self.close_row()
        # the samples of an epoch's row come from all its episodes, so they are kept
        for signal in self.episode_signals if self._rows_are_episodes else ():
            signal.reset()
        for signal in self.step_signals:
            signal.reset()
        if writes_steps:
            self.step_logger.set_episode_idx(episode)

    def write_step(self, step: int, counts: Mapping[str, Any]) -> None:
        """Write the row of one step.

        :param step: the number of the step within the episode
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
        """Begin to count the episodes of an evaluation."""
        self.evaluation = Evaluation()

    def end_evaluation(self, row: int) -> float | None:
        """Write the mean results of the evaluation, if it had an episode.

        :param row: the number of the row to which the results belong
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
        """Remove and return all samples, and close the open row. ``take_up_samples`` restores them."""
        self.close_row()
        samples = [signal.values for signal in self.episode_signals + self.step_signals]
        for signal in self.episode_signals + self.step_signals:
            signal.reset()
        return samples

    def take_up_samples(self, samples: list[list]) -> None:
        """Restore the samples that ``put_samples_aside`` returned."""
        for signal, values in zip(self.episode_signals + self.step_signals, samples):
            signal.values = values

    # state

    def get_state(self) -> dict[str, Any]:
        """The rows that are not written yet, and the samples that no row has yet."""
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
        """Restore a state that ``get_state`` returned.

        :param with_unwritten: True: also restore the unwritten rows and the samples for the next row
        """
        self.logger.set_state(state["logger"])
        # a rule's signals are made at its first update, so they may not exist yet
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

        :param stem: the common part of the files' names: graph, level and agent
        :param run_parameters: returns the parameters that TensorBoard shows with the signals
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
        """Continue to write rows for the steps of the episode in progress. Call ``set_state`` before.

        :param episode: the number of episodes that have ended
        """
        self.step_logger.set_episode_idx(episode)
        self.step_logger.set_state(self._saved_steps)

    def _all_signals(self) -> list[Signal]:
        return list(dict.fromkeys(self.episode_signals + self.step_signals))

    def close(self) -> None:
        """Complete the open row, write all rows to the files, and close the files."""
        self.close_row()
        self.logger.close()
        self.step_logger.close()


def _signal_of(result: LearningResult, name: str) -> np.ndarray:
    return result.signals[name]
