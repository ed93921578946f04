"""The books of an agent: its signals, the row of each episode, the rows of steps, and what evaluations came to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from rl_coach.agents.core.episode import EpisodeReport
from rl_coach.architectures.learner import LearningResult
from rl_coach.base_parameters import TaskParameters, VisualizationParameters
from rl_coach.core_types import RunPhase
from rl_coach.logger import EpisodeLogger, Logger, screen
from rl_coach.runs.event_lines import log_episode
from rl_coach.utilities import plain_data
from rl_coach.utils import LazyArray, Signal

if TYPE_CHECKING:
    from rl_coach.agents.agent import Agent

_EVALUATION_COLUMNS = ("Evaluation Reward", "Shaped Evaluation Reward", "Success Rate")
# written by what learns from recorded data; Coach's CSV has them always
_OFFLINE_COLUMNS = (
    "Epoch", "Inverse Propensity Score", "Direct Method Reward", "Doubly Robust", "Weighted Importance Sampling",
    "Sequential Doubly Robust",
)  # fmt: skip


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


class Books:
    """Records what an agent does.

    A signal is a list of samples. An episode's row is opened when it ends and closed when the next one begins, an
    evaluation starts or the run stops: what is learned after an episode belongs to its row, and each statistic is
    computed once.

    :param agent: whose books they are

    :ivar reports: episodes that another process will take down; None where this one does
    :ivar writes_steps: steps are written too; in several environments, those in the first
    :ivar logger: the CSV with a row for each episode
    :ivar step_logger: the CSVs with a row for each step, one for each episode
    :ivar evaluation: the evaluation in progress
    :ivar last_success_rate: the share of successes in the last evaluation
    """

    def __init__(self, agent: Agent):
        self._agent = agent
        self.reports: list[EpisodeReport] | None = None
        self.writes_steps = agent.ap.visualization.dump_in_episode_signals
        self.logger = Logger()
        self.step_logger = EpisodeLogger()
        self.episode_signals: list[Signal] = []
        self.step_signals: list[Signal] = []
        self.evaluation = Evaluation()
        self.last_success_rate = 0.0
        self._rule_signals: dict[str, Signal] = {}
        self._num_announced = 0
        self._saved_steps: dict[str, Any] = {}
        self._is_row_open = False
        self._are_targets_updated = False

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
        """Record that target networks were updated, in the row of the episode in which it happens."""
        self._are_targets_updated = True

    # the row of an episode

    def write_episode(self, report: EpisodeReport) -> None:
        """Open the row of an episode that has ended, and write those before it to the file."""
        if self.reports is not None:
            samples: dict[str, list] = {
                signal.name: [signal.flat()] for signal in self.episode_signals if signal.values
            }
            self.reports.append(replace(report, signals=samples))
            return
        self.close_row()
        agent, log = self._agent, self.logger.create_signal_value
        self.logger.set_current_time(agent.current_episode)
        for name, value in self._counts(report.phase).items():
            log(name, value)
        training = report.phase is RunPhase.TRAIN
        log("ER #Transitions", agent.memory.num_transitions())
        log("ER #Episodes", agent.memory.length())
        log("Episode Length", report.length)
        log("Shaped Training Reward", report.shaped_reward if training else np.nan)
        log("Training Reward", report.reward if training else np.nan)
        log("Update Target Network", int(self._are_targets_updated))
        self._are_targets_updated = False
        self.logger.update_wall_clock_time(agent.current_episode)
        for name in _EVALUATION_COLUMNS + _OFFLINE_COLUMNS:
            log(name, np.nan, overwrite=False)
        for signal in self.episode_signals:
            signal.values.extend(report.signals.get(signal.name, ()))
        self._announce_statistics()
        self._is_row_open = True
        if agent.current_episode % agent.ap.visualization.dump_signals_to_csv_every_x_episodes == 0:
            self.logger.dump_output_csv()

    def print_episode(self, report: EpisodeReport | None = None) -> None:
        """Print the line of an episode that has ended, for programs that read it.

        :param report: the episode; the agent's present one if not given
        """
        agent = self._agent
        report = report or agent.episode.report(agent.phase)
        task = agent.ap.task_parameters
        log_episode(
            report.phase,
            agent.full_name_id,
            None if task is None else task.task_index,
            agent.current_episode,
            float(np.sum(report.reward)),
            agent.exploration_policy.get_control_param() if agent.explores_by_parameter else None,
            agent.total_steps_counter,
            agent.training_iteration,
        )

    def _counts(self, phase: RunPhase) -> dict[str, Any]:
        agent = self._agent
        return {
            "Training Iter": agent.training_iteration,
            "In Heatup": int(phase is RunPhase.HEATUP),
            "Total steps": agent.total_steps_counter,
            "Epsilon": float(np.mean(agent.exploration_policy.get_control_param())),
        }

    def _announce_statistics(self) -> None:
        """Give the statistics their columns when the row is opened, so that the header has them from the start."""
        new = self.episode_signals[self._num_announced :]
        self.logger.add_columns(f"{signal.name}/{name}" for signal in new for name in Signal.STATISTICS)
        self._num_announced = len(self.episode_signals)

    def close_row(self) -> None:
        """Complete the row of the episode that ended last with the statistics of its signals."""
        if not self._is_row_open:
            return
        self._is_row_open = False
        log = self.logger.create_signal_value
        if self._are_targets_updated:
            log("Update Target Network", 1)
            self._are_targets_updated = False
        for signal in self.episode_signals:
            for name, value in signal.get_statistics().items():
                log(f"{signal.name}/{name}", value)

    def note_learning_rate(self, learning_rate: float) -> None:
        """Record a training phase; if it follows an episode that has just ended, it belongs to that one's row."""
        self._agent.curr_learning_rate.add_sample(learning_rate)
        if self._is_row_open:
            self.logger.create_signal_value("Training Iter", self._agent.training_iteration)

    def begin_episode(self) -> None:
        """Forget the samples of the episode before."""
        self.close_row()
        for signal in self.episode_signals:
            signal.reset()
        for signal in self.step_signals:
            signal.reset()
        if self.writes_steps:
            self.step_logger.set_episode_idx(self._agent.current_episode)

    # the rows of steps

    def write_step(self, step: int) -> None:
        """Write the row of one step. :param step: its number within the episode"""
        self.step_logger.set_current_time(step)
        log = self.step_logger.create_signal_value
        for name, value in self._counts(self._agent.phase).items():
            log(name, value)
        for signal in self.step_signals:
            log(signal.name, signal.get_last_value())
        self.step_logger.dump_output_csv()

    # evaluations

    def end_evaluation(self, is_complete: bool) -> None:
        """Write the means of the evaluation, if there was one, and count anew.

        :param is_complete: otherwise it is forgotten
        """
        done = self.evaluation
        if is_complete and done.episodes:
            self.last_success_rate = done.successes / done.episodes
            values = (done.reward / done.episodes, done.shaped_reward / done.episodes, self.last_success_rate)
            for name, value in zip(_EVALUATION_COLUMNS, values):
                self.logger.create_signal_value(name, value, time=self._agent.current_episode)
            self._announce_evaluation(values[0])
        self.evaluation = Evaluation()

    def _announce_evaluation(self, mean_reward: float) -> None:
        if self._agent.ap.is_a_highest_level_agent:
            screen.announce(
                f"{self._agent.name}: Finished evaluation phase. Success rate = {round(self.last_success_rate, 2)}, "
                f"Avg Total Reward = {round(mean_reward, 2)}"
            )

    def put_samples_aside(self) -> list[list]:
        """The samples of all signals, for ``take_up_samples`` after an evaluation. The open row is closed."""
        self.close_row()
        return [signal.values for signal in self.episode_signals + self.step_signals]

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
            "is_row_open": self._is_row_open,
            "are_targets_updated": self._are_targets_updated,
            "last_success_rate": self.last_success_rate,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``."""
        self.logger.set_state(state["logger"])
        for name in state["rule_signals"]:
            self._rule_signal(name)
        for signal, samples in zip(self._all_signals(), plain_data.restore(state["samples"])):
            signal.values = samples
        self._saved_steps = state["step_logger"]
        self._is_row_open = state["is_row_open"]
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

    def resume_steps(self) -> None:
        """Go on with the rows of steps of the episode that was in progress; ``set_state`` came before."""
        self.step_logger.set_episode_idx(self._agent.current_episode)
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
