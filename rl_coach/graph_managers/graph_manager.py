"""The control loop: heatup, then training and evaluation in turn until the schedule is through."""

from __future__ import annotations

import contextlib
import copy
import os
import random
import signal
import threading
import time
from typing import Any, Iterator

import numpy as np

from rl_coach.base_parameters import Parameters, TaskParameters, VisualizationParameters
from rl_coach.checkpoint import (
    CHECKPOINT_DIRECTORY,
    CheckpointStateReader,
    checkpoint_name,
    find_checkpoint,
    keep_checkpoints,
    load_checkpoint,
    mark_best,
    save_checkpoint,
)
from rl_coach.core_types import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    EnvResponse,
    RunPhase,
    StepMethod,
    TotalStepsCounter,
    TrainingSteps,
)
from rl_coach.graph_managers.checkpointing import CheckpointSchedule, check_fit, check_preset, fits_of
from rl_coach.installation import is_installed
from rl_coach.level_manager import LevelManager
from rl_coach.logger import screen
from rl_coach.policy.export import checkpoint_files
from rl_coach.runs.evaluation import EvaluationStatistics
from rl_coach.runs.notebook import directory_html
from rl_coach.runs.progress import SECONDS_BETWEEN_REDRAWS, Progress, Status, duration
from rl_coach.runs.status import FINISHED, RUNNING, RunStatus
from rl_coach.utils import CoachError, TrainingError, program

_UNITS: dict[str, type[StepMethod]] = {
    unit.__name__: unit for unit in (EnvironmentSteps, EnvironmentEpisodes, TrainingSteps)
}
_ONE_STEP = EnvironmentSteps(1)


class ScheduleParameters(Parameters):
    """How long each part of a run is, in ``EnvironmentSteps``, ``EnvironmentEpisodes`` or ``TrainingSteps``.

    :ivar heatup_steps: acting at random before training; 0 for none
    :ivar evaluation_steps: the length of an evaluation; 0 for none. Counted in steps, the last episode is finished.
    :ivar steps_between_evaluation_periods: training between two evaluations
    :ivar improve_steps: training in all
    """

    def __init__(self) -> None:
        self.heatup_steps: Any = None
        self.evaluation_steps: Any = None
        self.steps_between_evaluation_periods: Any = None
        self.improve_steps: Any = None


class HumanPlayScheduleParameters(ScheduleParameters):
    """Play until interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.heatup_steps = EnvironmentSteps(0)
        self.evaluation_steps = EnvironmentEpisodes(0)
        self.steps_between_evaluation_periods = EnvironmentEpisodes(100000000)
        self.improve_steps = TrainingSteps(10000000000)


class SimpleScheduleWithoutEvaluation(ScheduleParameters):
    """Train, neither heatup nor evaluation.

    :param improve_steps: training in all; None for ``TrainingSteps(10000000000)``
    """

    def __init__(self, improve_steps: StepMethod | None = None):
        super().__init__()
        self.heatup_steps = EnvironmentSteps(0)
        self.evaluation_steps = EnvironmentEpisodes(0)
        self.steps_between_evaluation_periods = improve_steps or TrainingSteps(10000000000)
        self.improve_steps = improve_steps or TrainingSteps(10000000000)


class SimpleSchedule(ScheduleParameters):
    """Train and evaluate in turn, without heatup.

    :param improve_steps: training in all; None for ``TrainingSteps(10000000000)``
    :param steps_between_evaluation_periods: training between two evaluations; None for ``EnvironmentEpisodes(50)``
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


class GraphManager:
    """Holds the levels of a graph and runs them through the phases of a schedule.

    A subclass says in ``_create_graph`` which levels and environments there are; ``create_graph`` then builds them.
    Steps, episodes and updates are counted for each phase.

    :param name: the graph's name, part of the names of its files
    :param schedule_params: how long each part of the run is
    :param vis_params: what is shown and written

    :ivar checkpoints_to_keep: how many of the newest checkpoints stay besides the best; 0 for all
    :ivar playback_hint: how the user can play the trained agent back, for the summary
    :ivar resume_hint: how the user can go on with this run, for one that is interrupted
    :ivar prints_summary: say at the end what came of the run
    :ivar evaluation_rewards: the total reward of each episode of the last evaluation
    """

    def __init__(
        self, name: str, schedule_params: ScheduleParameters, vis_params: VisualizationParameters | None = None
    ):
        self.name = name
        self.visualization_parameters = VisualizationParameters() if vis_params is None else vis_params
        self.set_schedule_params(schedule_params)
        self.task_parameters = TaskParameters()
        self.level_managers: list[LevelManager] = []
        self.environments: list[Any] = []
        self.top_level_manager: Any = None
        self.total_steps_counters = {phase: TotalStepsCounter() for phase in RunPhase}
        self.reset_required = True
        self.checkpoints_to_keep = 5
        self.playback_hint: str | None = None
        self.resume_hint: str | None = None
        self.prints_summary = True
        self.seed: int | None = None
        self.progress = Progress()
        self.run_status = RunStatus(None)
        self.last_checkpoint_path: str | None = None
        self.evaluation_rewards: list[float] = []
        self._phase = RunPhase.UNDEFINED
        self._counts = self.total_steps_counters[RunPhase.UNDEFINED].counters
        self._seeds = np.random.SeedSequence()
        self._global_seeds: list[np.random.SeedSequence] = []
        self._parked_reset_required = True
        self._force_next_reset = True
        self._bottom_level: Any = None
        self._can_train = True
        self._is_played = False
        self._improve_start: dict[type[StepMethod], int] | None = None
        self._improve_end: StepMethod | None = None
        self._shown_phases: tuple[RunPhase, ...] = (RunPhase.HEATUP, RunPhase.TRAIN)
        self._continues = False
        self._next_checkpoint_number = 0
        self._checkpoints: CheckpointSchedule = CheckpointSchedule(
            self.task_parameters, self.total_steps_counters[RunPhase.TRAIN]
        )
        self._next_evaluation: int | None = None
        self._is_episode_kept = False
        self._warned_of_lost_episodes = False
        self._attention_at = 0.0
        self._stop_signal: int | None = None
        self._stopped_between_steps = False
        self._told: set[str] = set()

    def set_schedule_params(self, schedule_params: ScheduleParameters) -> None:
        """Take another schedule."""
        self.heatup_steps = schedule_params.heatup_steps
        self.evaluation_steps = schedule_params.evaluation_steps
        self.steps_between_evaluation_periods = schedule_params.steps_between_evaluation_periods
        self.improve_steps = schedule_params.improve_steps

    # building

    def create_graph(self, task_parameters: TaskParameters | None = None) -> GraphManager:
        """Build the levels, and go on from the checkpoint that the task names, if it does.

        :return: this graph manager
        :raises CoachError: something in the parameters cannot be used
        """
        self.task_parameters = TaskParameters() if task_parameters is None else copy.copy(task_parameters)
        self._check_schedule()
        self._checkpoints = CheckpointSchedule(self.task_parameters, self.total_steps_counters[RunPhase.TRAIN])
        if self.task_parameters.checkpoint_keep is not None:
            self.checkpoints_to_keep = self.task_parameters.checkpoint_keep
        self._seed_everything()
        self.level_managers, self.environments = self._create_graph(self.task_parameters)
        self._seed_global_generators(1)
        self.top_level_manager = self.level_managers[0]
        self._bottom_level = self.level_managers[-1]
        self._can_train = any(level.can_train for level in self.level_managers)
        self._is_played = any(agent.is_person for level in self.level_managers for agent in level.agents.values())
        for level in self.level_managers:
            level.parent_graph_manager = self
        self.phase = RunPhase.UNDEFINED
        self.setup_logger()
        if self.task_parameters.checkpoint_restore_path is not None:
            self.restore_checkpoint(continue_run=self.task_parameters.resume)
        return self

    def _create_graph(self, task_parameters: TaskParameters) -> tuple[list[LevelManager], list[Any]]:
        """Build the levels, the topmost first, and their environments."""
        raise NotImplementedError(f"{type(self).__name__} does not say which levels it has")

    def _check_schedule(self) -> None:
        for name in ("heatup_steps", "evaluation_steps", "steps_between_evaluation_periods", "improve_steps"):
            steps = getattr(self, name)
            if type(steps) not in _UNITS.values():
                raise CoachError(f"{name} of graph '{self.name}' is {steps!r}; it counts in {', '.join(_UNITS)}")
        for name in ("heatup_steps", "evaluation_steps"):
            if isinstance(getattr(self, name), TrainingSteps):
                raise CoachError(f"{name} of graph '{self.name}' cannot count TrainingSteps: nothing is trained then")
        if self.steps_between_evaluation_periods.num_steps <= 0:
            raise CoachError(f"steps_between_evaluation_periods of graph '{self.name}' must be at least 1")

    def _seed_everything(self) -> None:
        """Seed Python's and NumPy's global generators for the user's code; all that is Coach's gets streams of its
        own through ``spawn_seed``."""
        self.seed = self.task_parameters.seed
        if self.seed is None:
            self.seed = int(np.random.SeedSequence().generate_state(1)[0])
            self.task_parameters.seed = self.seed
        self._seeds = np.random.SeedSequence(self.seed)
        self._global_seeds = self._seeds.spawn(2)
        self._seed_global_generators(0)

    def _seed_global_generators(self, number: int) -> None:
        """Once before the levels are built and once after, for libraries draw from them while they are loaded."""
        for_python, for_numpy = (int(seed.generate_state(2)[number]) for seed in self._global_seeds)
        random.seed(for_python)
        np.random.seed(for_numpy)

    def spawn_seed(self) -> np.random.SeedSequence:
        """The seed of one more component. The same run asks in the same order, so it gets the same seeds."""
        return self._seeds.spawn(1)[0]

    def verify_graph_was_created(self) -> None:
        """:raises CoachError: ``create_graph`` has not been called"""
        if self.top_level_manager is None:
            raise CoachError(f"graph '{self.name}' has no levels yet: call create_graph() first")

    def setup_logger(self) -> None:
        """Open the agents' files, and write the parameters beside them."""
        # of several workers in one directory, the first speaks for the run
        is_told = self.visualization_parameters.dump_csv and not self.task_parameters.task_index
        self.run_status = RunStatus(self.task_parameters.experiment_path if is_told else None)
        for level in self.level_managers:
            level.setup_logger()
        if not self.visualization_parameters.dump_parameters_documentation:
            return
        documentation = self.documentation()
        for level in self.level_managers:
            for agent in level.agents.values():
                agent_logger = getattr(agent, "agent_logger", None)
                if agent_logger is not None:
                    agent_logger.dump_documentation(documentation)

    def documentation(self) -> dict[str, Any]:
        """All parameters of the run."""
        return {
            "graph": {"name": self.name, "class": type(self).__name__},
            "seed": self.seed,
            "schedule": {
                "heatup_steps": repr(self.heatup_steps),
                "evaluation_steps": repr(self.evaluation_steps),
                "steps_between_evaluation_periods": repr(self.steps_between_evaluation_periods),
                "improve_steps": repr(self.improve_steps),
            },
            "task": self.task_parameters,
            "visualization": self.visualization_parameters,
        }

    # phases and counters

    @property
    def phase(self) -> RunPhase:
        """What the run is doing."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        evaluated = self._phase is RunPhase.TEST
        if value is RunPhase.TEST and not evaluated:
            self._parked_reset_required = self.reset_required
            self.reset_required = self._force_next_reset = True
        for level in self.level_managers:
            level.phase = value
        if evaluated and value is not RunPhase.TEST:
            shared = any(level.shares_environment_with_evaluation for level in self.level_managers)
            self.reset_required = self._force_next_reset = self._parked_reset_required or shared
        self._phase = value
        self._counts = self.total_steps_counters[value].counters

    @contextlib.contextmanager
    def phase_context(self, phase: RunPhase) -> Iterator[None]:
        """Be in a phase, and return to the one before."""
        before = self._phase
        self.phase = phase
        try:
            yield
        finally:
            self.phase = before

    @property
    def current_step_counter(self) -> TotalStepsCounter:
        """The counters of the present phase."""
        return self.total_steps_counters[self._phase]

    def get_current_episodes_count(self) -> int:
        """Training episodes that have ended."""
        return self.total_steps_counters[RunPhase.TRAIN][EnvironmentEpisodes]

    # acting and training

    def reset_internal_state(self, force_environment_reset: bool = False) -> None:
        """Begin an episode, in the environment and for the agents.

        :param force_environment_reset: begin anew even where the simulator would go on (a game with lives left)
        """
        self.verify_graph_was_created()
        self.reset_required = self._force_next_reset = False
        for level in self.level_managers:
            level.reset_environment(force_environment_reset)
        for level in self.level_managers:
            level.reset_internal_state()

    def handle_episode_ended(self) -> None:
        """Count an episode that has ended, and have everyone close its books."""
        self._counts[EnvironmentEpisodes] += 1
        if self._phase is RunPhase.TRAIN:
            self.progress.add_episode(self._episode_reward())
        for level in self.level_managers:
            level.handle_episode_ended()

    def _episode_reward(self) -> float:
        return float(np.sum(self._bottom_level.episode_reward))

    def act(self, steps: StepMethod, wait_for_full_episodes: bool = False) -> None:
        """Act in the environment.

        :param steps: how long
        :param wait_for_full_episodes: go on to the end of the last episode, where there is one at a time
        """
        if steps is _ONE_STEP:
            self._step()
            return
        self.verify_graph_was_created()
        counts, unit = self._counts, type(steps)
        end = counts[unit] + steps.num_steps
        waits = wait_for_full_episodes and self.top_level_manager.has_one_episode
        while counts[unit] < end or (waits and not self.reset_required):
            self._step()
            self.stop_if_asked()

    def _step(self) -> EnvResponse:
        """One step of the top level, at an episode's start also the reset, at its end also the bookkeeping."""
        if self.reset_required:
            self.reset_internal_state(self._force_next_reset)
        top, bottom = self.top_level_manager, self._bottom_level
        before = bottom.environment_steps
        response = top.step(None)
        # where an agent only imitates no step is taken; it counts as one, so that a schedule in steps has an end
        self._counts[EnvironmentSteps] += (bottom.environment_steps - before) or 1
        if top.episode_over:
            self._end_episode(response)
        if time.monotonic() >= self._attention_at:
            self._attend()
        return response

    def _end_episode(self, response: EnvResponse) -> None:
        self.handle_episode_ended()
        self.reset_required = True
        # where the agent, not the environment, ended the episode, the environment would only go on
        self._force_next_reset = not response.game_over

    def _attend(self) -> None:
        """What is done a few times a second, between two steps: show the progress, on the screen and to others."""
        self._attention_at = time.monotonic() + SECONDS_BETWEEN_REDRAWS
        self.progress.update(self._status())
        if self.progress.is_running:
            self.run_status.keep_alive()

    def stop_if_asked(self) -> None:
        """Called where a step is complete, the training that belongs to it included; and where one waits for a person.

        :raises KeyboardInterrupt: Ctrl-C was pressed
        :raises SystemExit: SIGTERM came
        """
        if self._stop_signal is not None:
            self._stopped_between_steps = True
            raise _exception_of(self._stop_signal)

    def train(self) -> None:
        """Let the agents learn, if the time has come for them. Updates of the networks count as training steps; where
        there is nothing to train, calls do."""
        if self._phase is not RunPhase.TRAIN:
            with self.phase_context(RunPhase.TRAIN):
                self.train()
            return
        counts = self._counts
        for level in self.level_managers:
            end = self._improve_end
            at_most = end.num_steps - counts[TrainingSteps] if isinstance(end, TrainingSteps) else None
            counts[TrainingSteps] += level.train(at_most)
        if not self._can_train:
            counts[TrainingSteps] += 1

    def should_train(self) -> bool:
        """Whether the next call of ``train`` would let an agent learn."""
        return any(level.should_train() for level in self.level_managers)

    def heatup(self, steps: StepMethod) -> None:
        """Act to fill the memory: at least ``steps``, in whole episodes."""
        self.verify_graph_was_created()
        if steps.num_steps <= 0:
            return
        with self.phase_context(RunPhase.HEATUP):
            if not self._is_episode_kept:
                self.reset_required = self._force_next_reset = True
            self.act(steps, wait_for_full_episodes=True)
            self._force_next_reset = True

    def train_and_act(self, steps: StepMethod) -> None:
        """Act and learn in turn for exactly ``steps``, at most as long as ``improve`` wants. An episode that is in
        progress goes on."""
        self.verify_graph_was_created()
        if steps.num_steps <= 0:
            return
        with self.phase_context(RunPhase.TRAIN):
            counts, unit = self._counts, type(steps)
            end = counts[unit] + steps.num_steps
            last = self._improve_end or type(steps)(end)
            last_unit, last_end = type(last), last.num_steps
            while counts[unit] < end and counts[last_unit] < last_end:
                self.act(_ONE_STEP)
                self.train()
                self.occasionally_save_checkpoint()
                self.stop_if_asked()

    def sync(self) -> None:
        """Have the agents take the newest weights."""
        self.verify_graph_was_created()
        for level in self.level_managers:
            level.sync()

    def evaluate(self, steps: StepMethod) -> bool:
        """Evaluate for exactly that many episodes, or for at least that many steps in whole episodes.

        :return: whether the run should stop, because the success rate is reached
        """
        self.verify_graph_was_created()
        if steps.num_steps <= 0:
            return False
        rewards: list[float] = []
        before = [level.evaluation_state() for level in self.level_managers]
        counts_before = dict(self.total_steps_counters[RunPhase.TEST].counters)
        with self.phase_context(RunPhase.TEST):
            self.sync()
            try:
                self._evaluation_episodes(steps, rewards)
            except BaseException:
                self._undo_evaluation(before, counts_before)
                raise
            best = self.progress.best_evaluation
            reward = float(np.mean(rewards))
            self.progress.add_evaluation(reward, len(rewards), self._status())
        self.evaluation_rewards = rewards
        self._next_evaluation = None
        if self._improve_end is not None and self._checkpoints.is_regular and (best is None or reward > best):
            self.save_checkpoint()
        return self.should_stop()

    def _undo_evaluation(self, before: list[Any], counts_before: dict[type[StepMethod], int]) -> None:
        """Leave no trace of an evaluation that was broken off, so that it can be held again."""
        self.total_steps_counters[RunPhase.TEST].counters.update(counts_before)
        for level, state in zip(self.level_managers, before):
            level.discard_evaluation()
            level.undo_evaluation(state)

    def _evaluation_episodes(self, steps: StepMethod, rewards: list[float]) -> None:
        counts, unit = self._counts, type(steps)
        end = counts[unit] + steps.num_steps
        while counts[unit] < end:
            self.act(EnvironmentEpisodes(1))
            rewards.append(self._episode_reward())
            self.sync()

    def should_stop(self) -> bool:
        """Whether the stop condition applies and holds: every agent's success rate has reached the target."""
        return self.task_parameters.apply_stop_condition and all(level.should_stop() for level in self.level_managers)

    # runs

    def run(self) -> None:
        """Do what the task parameters ask for, training or evaluation, and close the graph."""
        try:
            if self.task_parameters.evaluate_only is None:
                self.improve()
            else:
                self._evaluate_only(self.task_parameters.evaluate_only)
        finally:
            self.close()

    def improve(self) -> None:
        """Heatup, then training and evaluation in turn, for exactly ``improve_steps`` of training or until the stop
        condition holds. Ends with an evaluation, a checkpoint and a summary; where a person acts, whenever they leave,
        with the summary alone.

        :raises TrainingError: a loss is not finite; the run's state then lies in the checkpoint directory, beside the
            good checkpoints
        """
        self.verify_graph_was_created()
        with self._running(saves_checkpoints=not self._is_played):
            self.sync()
            start = self._heat_up_and_start()
            counts = self.total_steps_counters[RunPhase.TRAIN].counters
            unit = type(self.improve_steps)
            end = start[unit] + self.improve_steps.num_steps
            self._improve_end = unit(end)
            if counts[unit] >= end and self._next_evaluation is None:
                screen.warning(f"{self.improve_steps!r} are done already: ask for more improve_steps to go on")
                return
            while counts[unit] < end or self._next_evaluation is not None:
                self.train_and_act(self._left_of_period(start))
                if self.evaluate(self.evaluation_steps):
                    screen.success("the stop condition holds: every agent's success rate has reached its target")
                    break
                self._next_evaluation = None
            if not self._is_played:
                self.save_checkpoint()
        self._summarize()

    def _heat_up_and_start(self) -> dict[type[StepMethod], int]:
        """Heatup, or what is left of it where a run goes on.

        :return: the training counters from which ``improve_steps`` count
        """
        if not self._continues:
            self._improve_start, self._next_evaluation, self._is_episode_kept = None, None, False
        if self._improve_start is None:
            self._heat_up()
            self._improve_start = dict(self.total_steps_counters[RunPhase.TRAIN].counters)
        self._continues = self._is_episode_kept = False
        return self._improve_start

    def _heat_up(self) -> None:
        unit, steps = type(self.heatup_steps), self.heatup_steps.num_steps
        done = self.total_steps_counters[RunPhase.HEATUP][unit] if self._continues else 0
        if done < steps or not self._is_episode_kept:
            self.heatup(unit(steps - done))
        else:
            with self.phase_context(RunPhase.HEATUP):
                self.act(unit(0), wait_for_full_episodes=True)
                self._force_next_reset = True

    def _left_of_period(self, start: dict[type[StepMethod], int]) -> StepMethod:
        """What is left of the present period between evaluations, 0 where its evaluation alone is left. Periods are
        counted from the start of improving, so that a resumed run evaluates where an uninterrupted one does."""
        unit, length = type(self.steps_between_evaluation_periods), self.steps_between_evaluation_periods.num_steps
        now = self.total_steps_counters[RunPhase.TRAIN][unit]
        if self._next_evaluation is None:
            self._next_evaluation = now + length - (now - start[unit]) % length
        return unit(self._next_evaluation - now)

    def _evaluate_only(self, num_steps: int) -> None:
        """:param num_steps: environment steps, in whole episodes; 0 goes on until interrupted"""
        self._shown_phases = (RunPhase.TEST,)
        self.run_status.evaluation = {}
        rewards: list[float] = []
        try:
            with self._running(saves_checkpoints=False):
                while True:
                    self.evaluate(EnvironmentSteps(num_steps) if num_steps else EnvironmentEpisodes(1))
                    rewards += self.evaluation_rewards
                    self.run_status.evaluation = EvaluationStatistics.of(rewards).as_dict()
                    if num_steps:
                        break
        finally:
            if rewards:
                self._summarize_evaluation(rewards)

    def _summarize_evaluation(self, rewards: list[float]) -> None:
        if self.prints_summary:
            screen.success(f"evaluation: {EvaluationStatistics.of(rewards)}")
            screen.print(f"experiment: {self.task_parameters.experiment_path}")

    @contextlib.contextmanager
    def _running(self, saves_checkpoints: bool) -> Iterator[None]:
        """Show the progress, and end cleanly whatever happens: the display closed, signals written, a checkpoint
        saved, and how it ended said in ``status.json``."""
        self._checkpoints.restart()
        self._stopped_between_steps = False
        self.progress.start()
        self.run_status.set(RUNNING)
        try:
            with self._ending_cleanly(saves_checkpoints):
                yield
        except BaseException as error:
            self.run_status.set_by(error)
            raise
        self.run_status.set(FINISHED)

    @contextlib.contextmanager
    def _ending_cleanly(self, saves_checkpoints: bool) -> Iterator[None]:
        try:
            with self._stopping_between_steps():
                yield
        except (KeyboardInterrupt, SystemExit) as stop:
            # a second signal comes in the middle of a step: what lies in memory then is not worth keeping
            self.progress.stop()
            if saves_checkpoints and self._stopped_between_steps:
                self._save_after_interrupt()
            if not (self._is_played and isinstance(stop, KeyboardInterrupt)):
                raise
        except TrainingError:
            if saves_checkpoints:
                self.save_checkpoint(failed=True)
            raise
        finally:
            self._improve_end = None
            self.progress.stop()
            self.flush()

    @contextlib.contextmanager
    def _stopping_between_steps(self) -> Iterator[None]:
        """The first Ctrl-C or SIGTERM stops the run between two steps, the second one at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            self._stop_signal = None

    def _on_signal(self, number: int, frame: Any) -> None:
        if self._stop_signal is not None:
            raise _exception_of(number)
        self._stop_signal = number
        if not self._is_played:
            screen.warning("stopping after this step; once more to exit at once, without a checkpoint")

    def _save_after_interrupt(self) -> None:
        path = self.save_checkpoint()
        if path is not None:
            screen.warning(f"interrupted; saved {path}")
            if self.resume_hint:
                screen.print(f"go on with it: {self.resume_hint}")

    def _status(self) -> Status:
        shown = [self.total_steps_counters[phase] for phase in self._shown_phases]
        return Status(
            phase=self._phase,
            episodes=shown[-1][EnvironmentEpisodes],
            steps=sum(counter[EnvironmentSteps] for counter in shown),
            updates=shown[-1][TrainingSteps] if self._can_train else 0,
            fraction=self._fraction_done(),
        )

    def _fraction_done(self) -> float:
        if self._improve_end is None or self._improve_start is None:
            return 0.0
        unit = type(self._improve_end)
        start, end = self._improve_start[unit], self._improve_end.num_steps
        return (self.total_steps_counters[RunPhase.TRAIN][unit] - start) / max(1, end - start)

    def _summarize(self) -> None:
        if not self.prints_summary:
            return
        status, progress = self._status(), self.progress
        if progress.last_evaluation is not None:
            best = f" (best {progress.best_evaluation:.5g})" if progress.best_evaluation is not None else ""
            screen.success(f"evaluation reward {progress.last_evaluation:.5g}{best}")
        screen.print(
            f"{status.episodes:,} episodes, {status.steps:,} steps, {status.updates:,} updates "
            f"in {duration(progress.seconds)}"
        )
        screen.print(f"experiment: {self.task_parameters.experiment_path}")
        if is_installed("panel"):
            screen.print(f"look at it: {program('dashboard')} --experiment_dir {self.task_parameters.experiment_path}")
        if self.playback_hint:
            screen.print(f"play it back: {self.playback_hint}")

    def _repr_html_(self) -> str:
        return directory_html(self.task_parameters.experiment_path)

    def flush(self) -> None:
        """Write what the agents have not written yet."""
        for level in self.level_managers:
            for agent in level.agents.values():
                agent.close()

    def close(self) -> None:
        """Write what is left and close the environments."""
        for level in self.level_managers:
            level.close()

    # checkpoints

    @property
    def checkpoint_dir(self) -> str:
        """Where checkpoints are written: the task's directory for them, or ``checkpoint`` of the experiment's."""
        task = self.task_parameters
        return str(task.checkpoint_save_dir or os.path.join(str(task.experiment_path), CHECKPOINT_DIRECTORY))

    def occasionally_save_checkpoint(self) -> None:
        """Save a checkpoint if one is due."""
        if self._checkpoints.is_due(self.reset_required):
            self.save_checkpoint()

    def save_checkpoint(self, failed: bool = False) -> str | None:
        """Write all that is needed to go on exactly. A full disk does not end the run.

        :param failed: training has failed: keep the state for a look at it, but never as the newest checkpoint
        :return: the checkpoint's path; None if it could not be written, or if another worker writes checkpoints
        """
        self.verify_graph_was_created()
        self._checkpoints.restart()
        if self.task_parameters.task_index:
            return None
        try:
            state = self.get_state()
            attachments = {} if failed else self._attachments()
            name = self._checkpoint_name(failed)
            path = save_checkpoint(self.checkpoint_dir, name, state, self._manifest(), attachments)
            if not failed:
                self._tidy_checkpoints(os.path.basename(path))
        except OSError as error:
            screen.warning(f"no checkpoint was saved in '{self.checkpoint_dir}': {error.strerror}; the last one stands")
            return None
        self.last_checkpoint_path = path
        self._warn_of_lost_episode(state)
        return path

    def _warn_of_lost_episode(self, state: dict[str, Any]) -> None:
        lost = not self.reset_required and any(level["episode"] is None for level in state["levels"].values())
        if lost and not self._warned_of_lost_episodes:
            self._warned_of_lost_episodes = True
            screen.warning("this episode cannot be saved half-way: a run resumed from here begins a new one")

    def _attachments(self) -> dict[str, bytes]:
        """What a checkpoint carries for those who deploy what was trained."""
        about = {name: value for name, value in self._manifest().items() if name != "fits"}
        files, troubles = checkpoint_files(self.level_managers, about, self.task_parameters.export_onnx_graph)
        for trouble in troubles:
            if trouble not in self._told:
                screen.warning(trouble)
                self._told.add(trouble)
        return files

    def _checkpoint_name(self, failed: bool) -> str:
        """A name with a number above that of any checkpoint that is there."""
        there = CheckpointStateReader(self.checkpoint_dir).get_all()
        number = self._next_checkpoint_number = max([self._next_checkpoint_number, *(c.num + 1 for c in there)])
        self._next_checkpoint_number += 1
        name = checkpoint_name(number, self.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps])
        return name.replace(".ckpt", ".failed") if failed else name

    def _tidy_checkpoints(self, name: str) -> None:
        """Remember the checkpoint as the best if no evaluation was better than its last one; remove old ones."""
        last, best = self.progress.last_evaluation, self.progress.best_evaluation
        if last is not None and best is not None and last >= best:
            mark_best(self.checkpoint_dir, name)
        keep_checkpoints(self.checkpoint_dir, self.checkpoints_to_keep)

    def _manifest(self) -> dict[str, Any]:
        counter = self.total_steps_counters[RunPhase.TRAIN]
        return {
            "graph": self.name,
            "preset": self.task_parameters.preset,
            "framework": self.task_parameters.framework_type.name,
            "steps": counter[EnvironmentSteps],
            "episodes": counter[EnvironmentEpisodes],
            "updates": counter[TrainingSteps],
            "evaluation_reward": self.progress.last_evaluation,
            "fits": self._fits(),
        }

    def _fits(self) -> dict[str, str]:
        return fits_of(self.level_managers, self.task_parameters)

    def get_state(self) -> dict[str, Any]:
        """All that is needed to go on exactly."""
        return {
            "seed": self.seed,
            "counters": {
                phase.name: {unit.__name__: count for unit, count in counter.counters.items()}
                for phase, counter in self.total_steps_counters.items()
            },
            "improve_start": self._improve_start
            and {unit.__name__: count for unit, count in self._improve_start.items()},
            "next_evaluation": self._next_evaluation,
            "reset_required": [self.reset_required, self._force_next_reset],
            "levels": {level.name: level.get_state() for level in self.level_managers},
            "progress": self.progress.get_state(),
            "python_random": _plain_lists(random.getstate()),
            "numpy_random": np.random.get_state(legacy=False),
        }

    def set_state(self, state: dict[str, Any], with_episode: bool = False) -> None:
        """Go on from ``get_state``.

        :param with_episode: in the middle of the episode, if there was one; otherwise with a new one
        """
        self.seed = state["seed"]
        for phase, counts in state["counters"].items():
            for unit, count in counts.items():
                self.total_steps_counters[RunPhase[phase]][_UNITS[unit]] = count
        start = state["improve_start"]
        self._improve_start = start and {_UNITS[unit]: count for unit, count in start.items()}
        for level in self.level_managers:
            level.set_state(state["levels"][level.name])
        self._next_evaluation = state["next_evaluation"]
        self.progress.set_state(state["progress"])
        version, internal, gauss_next = state["python_random"]
        random.setstate((version, tuple(internal), gauss_next))
        np.random.set_state(state["numpy_random"])
        self.reset_required = self._force_next_reset = True
        if with_episode:
            self._resume_episode(state)
        self._checkpoints.restart()

    def _resume_episode(self, state: dict[str, Any]) -> None:
        is_over, is_forced = state["reset_required"]
        if is_over:
            self._force_next_reset = is_forced
            return
        levels = {level: state["levels"][level.name] for level in self.level_managers}
        # the environment stands at the bottom; if it cannot go on, no level does
        resumed = all(level.resume_saved_episode(saved) for level, saved in reversed(levels.items()))
        self._is_episode_kept = resumed
        self.reset_required = self._force_next_reset = not resumed
        if not resumed:
            screen.warning("the episode in which the checkpoint was saved cannot be taken up again: a new one begins")

    def restore_checkpoint(self, path: str | None = None, continue_run: bool = False) -> None:
        """Go on from a checkpoint.

        :param path: a checkpoint, one of its files, a directory of checkpoints or an experiment's, of which the newest
            is taken; None takes the task's ``checkpoint_restore_path``
        :param continue_run: it is the same run that goes on: no heatup, and ``improve_steps`` count what was trained
            before; otherwise ``improve_steps`` are trained from here
        :raises CoachError: there is none, it is damaged, of another preset, or does not fit this graph
        """
        self.verify_graph_was_created()
        path = path or self.task_parameters.checkpoint_restore_path
        if path is None:
            raise CoachError("no checkpoint to restore: name one, or set checkpoint_restore_path")
        path = find_checkpoint(path)
        state, manifest = load_checkpoint(path)
        check_preset(path, self.task_parameters.preset, manifest.get("preset"))
        check_fit(path, self._fits(), manifest.get("fits", {}))
        self._set_state_or_nothing(path, state, continue_run)
        self._continues = continue_run

    def _set_state_or_nothing(self, path: str, state: dict[str, Any], with_episode: bool) -> None:
        """Take a state, or stay as before if any part of it cannot be taken."""
        before = self.get_state()
        try:
            self.set_state(state, with_episode)
        except (CoachError, ArithmeticError, LookupError, ValueError, TypeError, AttributeError) as error:
            self.set_state(before)
            raise CoachError(f"the checkpoint '{path}' does not fit this graph: {error}") from error


def _exception_of(signal_number: int) -> BaseException:
    return KeyboardInterrupt() if signal_number == signal.SIGINT else SystemExit(128 + signal_number)


def _plain_lists(value: Any) -> Any:
    return [_plain_lists(item) for item in value] if isinstance(value, tuple) else value
