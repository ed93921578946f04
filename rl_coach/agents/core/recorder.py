"""Records of an agent: the rows of its CSVs, and the lines on the screen that programs read."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.core.episode import EpisodeReport
from rl_coach.agents.core.signals import RowUnit
from rl_coach.core_types import RunPhase
from rl_coach.logger import screen
from rl_coach.runs.event_lines import log_episode


class Recorder:
    """Writes the rows of an agent with its ``signals``, and prints the lines of its episodes."""

    def __init__(self, agent: Any):
        self._agent = agent
        self._last_row = 0

    def open_files(self) -> None:
        """Choose the files for the rows. An agent without task parameters writes no files."""
        agent = self._agent
        task = agent.ap.task_parameters
        if task is not None:
            stem = ".".join((*agent.owners[:2], *agent.full_name_id.split("/")))
            agent.signals.open_files(task, agent.ap.visualization, stem, agent.run_parameters)

    def write_episode(self, report: EpisodeReport) -> None:
        """Write the row of an episode."""
        agent = self._agent
        agent.signals.write_episode(report, self._counts(report.phase), agent.clock.episodes)

    def report(self, report: EpisodeReport) -> None:
        """Write the row of an episode that another process or ``ColumnActors`` played, and print its line."""
        self.write_episode(report)
        if screen.is_read_by_programs and self._agent.ap.is_a_highest_level_agent:
            self.print_episode(report)

    def print_episode(self, report: EpisodeReport) -> None:
        """Print an episode as a line of text for programs that read the output, such as log analysers."""
        agent = self._agent
        task = agent.ap.task_parameters
        log_episode(
            report.phase,
            agent.full_name_id,
            None if task is None else task.task_index,
            agent.clock.episodes,
            # a sum, because the environment's own reward may be an array, also if a filter makes one number of it
            float(np.sum(report.reward)),
            agent.exploration_policy.get_control_param() if agent.explores_by_parameter else None,
            agent.clock.steps,
            agent.clock.updates,
        )

    def begin_phase(self, present: RunPhase, new: RunPhase) -> None:
        """Begin an evaluation if the new phase is ``TEST``. Otherwise write the results of the evaluation that has
        ended."""
        agent = self._agent
        is_announced = agent.ap.is_a_highest_level_agent
        if new is RunPhase.TEST:
            if is_announced and present is not RunPhase.TEST:
                screen.announce(f"{agent.name}: Starting evaluation phase")
            agent.signals.begin_evaluation()
            return
        mean_reward = agent.signals.end_evaluation(self.row_number)
        if is_announced and mean_reward is not None:
            screen.announce(
                f"{agent.name}: Finished evaluation phase. Success rate = {round(agent.get_success_rate(), 2)}, "
                f"Avg Total Reward = {round(mean_reward, 2)}"
            )

    def write_step(self) -> None:
        """Write the row of one step to the in-episode CSV."""
        agent = self._agent
        accumulated = {"Shaped Accumulated Reward": agent.episode.total_shaped_reward}
        agent.signals.write_step(agent.episode.steps, {**self._counts(agent.phase), **accumulated})

    @property
    def row_number(self) -> int:
        """The number of the newest complete row: the number of episodes, epochs or updates so far."""
        agent = self._agent
        if agent.row_unit is RowUnit.EPISODE:
            return int(agent.clock.episodes)
        if agent.row_unit is RowUnit.EPOCH:
            return agent.batches.epoch or 0
        # Rounded down: a call of several updates may pass the end of a row.
        return int(agent.clock.updates // agent.updates_per_row * agent.updates_per_row)

    def write_row_if_due(self) -> None:
        """Write the row of an epoch, or of a number of updates, once it is complete."""
        agent = self._agent
        if (number := self.row_number) > self._last_row:
            self._last_row = number
            agent.signals.write_row(number, self._counts(RunPhase.TRAIN), agent.batches.epoch)

    def skip_written_rows(self) -> None:
        """Write only rows after the newest complete one. The run that saved the checkpoint wrote the others."""
        self._last_row = self.row_number

    def _counts(self, phase: RunPhase) -> dict[str, Any]:
        agent = self._agent
        return {
            "Training Iter": agent.clock.updates,
            "In Heatup": int(phase is RunPhase.HEATUP),
            "Total steps": agent.clock.steps,
            "Epsilon": _mean(agent.exploration_policy.get_control_param()),
            **agent.experience.counts,
        }


def _mean(numbers: Any) -> float:
    # each row calls this, and np.mean takes 10 us for one number
    return float(numbers) if isinstance(numbers, (int, float)) else float(np.mean(numbers))
