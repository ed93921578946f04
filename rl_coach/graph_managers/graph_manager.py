"""The control loop: heatup, then training and evaluation in turn until the end of the schedule."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import pathlib
import time
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from rl_coach.architectures.native_messages import quiet_native_code
from rl_coach.base_parameters import AgentParameters, ScheduleParameters, TaskParameters, VisualizationParameters
from rl_coach.callbacks.callback import Callback, RunView
from rl_coach.core_types import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    EnvResponse,
    RunPhase,
    StepMethod,
    TotalStepsCounter,
    TrainingSteps,
)
from rl_coach.data_stores.data_store import DataStore
from rl_coach.environments.reward_ranges import range_of_episodes
from rl_coach.graph_managers.checkpointing import GraphCheckpoints, GraphState
from rl_coach.graph_managers.clean_ending import LastCheckpoint, ending_cleanly
from rl_coach.graph_managers.compat import CoachNames, take_deprecated_names
from rl_coach.graph_managers.improvement import Improvement
from rl_coach.graph_managers.memory_requirements import network_requirements, replay_requirement, total_memory, unmet_by
from rl_coach.graph_managers.reports import Reports
from rl_coach.graph_managers.run_callbacks import RunCallbacks
from rl_coach.graph_managers.run_seeds import RunSeeds, evaluation_seed
from rl_coach.graph_managers.schedule_parameters import (
    PARTS,
    HumanPlayScheduleParameters,
    SimpleSchedule,
    SimpleScheduleWithoutEvaluation,
)
from rl_coach.level_manager import LevelManager
from rl_coach.logger import Logger, screen
from rl_coach.memories.backend.wire import pack, unpack
from rl_coach.runs.evaluation import FRESH_EPISODES, EvaluationStatistics
from rl_coach.runs.live_region import Fields
from rl_coach.runs.notebook import directory_html
from rl_coach.runs.progress import SECONDS_BETWEEN_REDRAWS, Progress, Status
from rl_coach.runs.status import RunStatus
from rl_coach.runs.summary import Counts, Summary
from rl_coach.utilities.errors import refuse
from rl_coach.utilities.requirements import PART_OF_FILE_NAME, Constrained, check, settings_below, steps, whole
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utils import CoachError

__all__ = [
    "GraphManager",
    "HumanPlayScheduleParameters",
    "ScheduleParameters",
    "SimpleSchedule",
    "SimpleScheduleWithoutEvaluation",
]

ENDLESS_EPISODE = 100_000
"""Coach warns of an episode with this number of steps, and does not wait for its end. Episodes of Atari games have at
most 27,000 steps."""


class GraphManager(CoachNames, Constrained):
    """Contains the levels of a graph and runs them through the phases of a schedule.

    A subclass creates its levels and environments in ``_create_graph``, which ``create_graph`` calls.
    Steps, episodes and updates are counted for each phase.

    :param name: the graph's name, part of the names of its files
    :param schedule_params: the length of each part of the run
    :param vis_params: settings of rendering, videos and log files

    :ivar callbacks: the user's callbacks; see ``rl_coach.callbacks``
    :ivar data_store: the store that checkpoints and signals are copied to; None copies nothing
    :ivar checkpoints_to_keep: number of the newest checkpoints that are kept, in addition to the best; 0 keeps all
    :ivar playback_hint: the command that plays the trained agent, for the summary
    :ivar resume_hint: the command that continues this run after an interruption
    :ivar prints_summary: print a summary of the results at the end
    :ivar prints_only_counts: of the summary, print only the line with the counts of episodes, steps and updates
    :ivar other_fields: returns more fields for the display; called a few times a second
    :ivar evaluation_rewards: the total reward of each episode of the last evaluation
    :ivar reset_required: True if the next step begins an episode
    :ivar force_next_reset: True if the next reset also resets a simulator that could continue its episode, such as a
        game with lives left
    :ivar can_train: True if this process trains and an agent of the graph can be trained
    :cvar training_steps_are: the name of the schedule's training steps in the plural, such as ``updates``
    """

    agent_params: Any  # only in a graph of one agent
    training_steps_are = "updates"

    constraints = {
        "heatup_steps": steps(EnvironmentSteps, EnvironmentEpisodes),
        "evaluation_steps": steps(EnvironmentSteps, EnvironmentEpisodes),
        "steps_between_evaluation_periods": steps(EnvironmentSteps, EnvironmentEpisodes, TrainingSteps, low=1),
        "improve_steps": steps(EnvironmentSteps, EnvironmentEpisodes, TrainingSteps),
        "checkpoints_to_keep": whole(0),
        "name": PART_OF_FILE_NAME,
    }

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
        self.callbacks: list[Callback] = []
        self.playback_hint: str | None = None
        self.resume_hint: str | None = None
        self.prints_summary = True
        self.prints_only_counts = False
        self.graph_logger = Logger()
        self.progress = Progress()
        self.run_status = RunStatus(None)
        self.stop_signals = stop_signals
        self.other_fields: Callable[[], Fields] = tuple
        self.evaluation_rewards: list[float] = []
        self._phase = RunPhase.UNDEFINED
        self._counts = self.total_steps_counters[RunPhase.UNDEFINED].counters
        self.improvement = Improvement(self.total_steps_counters[RunPhase.TRAIN], self.training_steps_are)
        self.checkpoints = self._make_checkpoints()
        self.seeds: RunSeeds | None = None
        self._training_episode_is_over = True
        self.force_next_reset = True
        self.can_train = True
        self.data_store: DataStore | None = None
        self._is_played = False
        self._reports = Reports(self.total_steps_counters, self.improvement, self._uncounted_updates)
        self._continues = False
        self._is_episode_kept = False
        self._warned_of_endless_episode = False
        self._attention_at = 0.0
        self._shown_phase = RunPhase.UNDEFINED
        self._evaluations_in_place = 0
        self._reached_target: str | None = None
        self._run_callbacks = self._make_run_callbacks()

    def set_schedule_params(self, schedule_params: ScheduleParameters) -> None:
        """Replace the schedule."""
        self.heatup_steps = schedule_params.heatup_steps
        self.evaluation_steps = schedule_params.evaluation_steps
        self.steps_between_evaluation_periods = schedule_params.steps_between_evaluation_periods
        self.improve_steps = schedule_params.improve_steps

    # building

    def create_graph(self, task_parameters: TaskParameters | None = None) -> GraphManager:
        """Build the levels. Then restore the checkpoint that the task parameters name, if any.

        :param task_parameters: settings of this run, such as the framework, the seed and the experiment directory; None
            for the defaults
        :return: this graph manager
        :raises CoachError: if a parameter has a value that cannot be used
        """
        self.task_parameters = TaskParameters() if task_parameters is None else copy.copy(task_parameters)
        take_deprecated_names(self.task_parameters)
        self._run_callbacks = self._make_run_callbacks()
        self._run_callbacks.create(self)
        check(self)
        if self.task_parameters.checkpoint_keep is not None:
            self.checkpoints_to_keep = self.task_parameters.checkpoint_keep
        self.seeds = RunSeeds(self.task_parameters.seed)
        self.task_parameters.seed = self.seeds.seed
        self.seeds.seed_global_generators(0)
        screen.announce(f"Creating graph - name: {type(self).__name__}")
        framework = self.task_parameters.framework_type.name
        with screen.waiting_for(f"building the graph on {framework}"), quiet_native_code():
            self.level_managers, self.environments = self._create_graph(self.task_parameters)
        self.seeds.seed_global_generators(1)
        self.top_level_manager = self.level_managers[0]
        refuse(self._unmet_by_replay())
        self.checkpoints = self._make_checkpoints()
        self._reports.stops_early = self.task_parameters.apply_stop_condition
        self._reports.reward = self._reward_of_success()
        environment = self.level_managers[-1].real_environment
        self.progress.reward_range = None if environment is None else range_of_episodes(environment)
        self._reports.is_endless = self.task_parameters.num_evaluation_steps == 0
        self.task_parameters.checkpoint_save_dir = self.checkpoints.directory
        self.can_train = self.task_parameters.role.trains and any(level.can_train for level in self.level_managers)
        self._is_played = any(level.agent.is_person for level in self.level_managers)
        for level in self.level_managers:
            level.connect(self.name, self.documentation, self.stop_signals.stop_if_asked)
            level.phase = self._phase
        self.setup_logger()
        if self.task_parameters.checkpoint_restore_path is not None:
            self.restore_checkpoint(continue_run=self.task_parameters.resume)
        return self

    def _make_run_callbacks(self) -> RunCallbacks:
        callbacks = self.callbacks if self.is_first_trainer else []
        return RunCallbacks(callbacks, RunView(self), lambda name: self._first_agent.register_signal(name))

    @property
    def _first_agent(self) -> Any:
        return next(iter(self.level_managers[0].agents.values()))

    def _let_callbacks_have_rows(self) -> None:
        agents = [(name, agent) for level in self.level_managers for name, agent in level.agents.items()]
        for name, agent in agents if self._run_callbacks.exist else ():
            prefix = f"{name}/" if len(agents) > 1 else ""
            agent.listen_to_rows(functools.partial(self._run_callbacks.row_written, prefix))

    def export_policy(self, directory: str) -> None:
        """Write the policy of the newest checkpoint into a new folder, as ``coach export`` does.

        :param directory: the path of the folder
        :raises CoachError: if there is no checkpoint, there are several agents, or the folder is not empty
        """
        from rl_coach.policy import export

        if self.last_checkpoint_path is None:
            raise CoachError("there is no checkpoint yet, so there is no policy to export")
        export.export(self.last_checkpoint_path, directory)

    def use_callbacks(self, callbacks: Sequence[Callback]) -> None:
        """Replace the callbacks, before or after the graph is created."""
        self.callbacks = list(callbacks)
        self._run_callbacks = self._make_run_callbacks()

    def _reward_of_success(self) -> float | None:
        """The reward that each episode of an evaluation must reach to meet the stop condition. None if only some of the
        episodes must reach a reward, or if the environment has no success reward."""
        environment = self.level_managers[-1].real_environment
        if environment is None or environment.get_target_success_rate() < 1.0:
            return None
        return environment.reward_space.reward_success_threshold

    def _uncounted_updates(self) -> int:
        agents = [level.agent for level in self.level_managers]
        return sum(agent.optimizer_steps - agent.training_iteration for agent in agents)

    def verify_graph_was_created(self) -> None:
        """Create the graph with the default task parameters if it does not exist."""
        if self.top_level_manager is None:
            self.create_graph()

    @property
    def parameters_by_stream(self) -> dict[str, AgentParameters]:
        """The parameters of the agents that learn, by the names of their streams of chunks. A graph of one agent has
        one stream with an empty name."""
        return {"": self.agent_params}

    @property
    def _agents_parameters(self) -> dict[str, AgentParameters]:
        """The agents' parameters by their paths in ``-cp``."""
        return {path: one for path, one in settings_below(self) if isinstance(one, AgentParameters)}

    def unmet(self) -> Iterator[str]:
        """A message if networks and batches need more memory than the machine has."""
        for path, parameters in self._agents_parameters.items():
            yield from unmet_by(total_memory(), network_requirements(parameters, path))

    def _unmet_by_replay(self) -> Iterator[str]:
        """A message for each agent with a replay memory that would not fit into the machine's memory."""
        paths = {id(parameters): path for path, parameters in self._agents_parameters.items()}
        for agent in (agent for level in self.level_managers for agent in level.agents.values()):
            path = paths.get(id(getattr(agent, "ap", None)))
            if path is not None:
                yield from unmet_by(
                    total_memory(), replay_requirement(agent, (self.heatup_steps, self.improve_steps), path)
                )

    def _make_checkpoints(self) -> GraphCheckpoints:
        counter = self.total_steps_counters[RunPhase.TRAIN]
        as_seen: dict[str, Any] | None = getattr(getattr(self, "env_params", None), "as_seen", lambda: None)()
        return GraphCheckpoints(self.name, self.task_parameters, counter, self.level_managers, self.advanced, as_seen)

    def _create_graph(self, task_parameters: TaskParameters) -> tuple[list[LevelManager], list[Any]]:
        """Build and return the levels, the top level first, and their environments."""
        raise NotImplementedError(f"{type(self).__name__} must override _create_graph, which builds its levels")

    @property
    def seed(self) -> int | None:
        """The run's seed, given or drawn; None before the graph is created."""
        return None if self.seeds is None else self.seeds.seed

    def spawn_seed(self) -> np.random.SeedSequence:
        """Draw a new seed for a component. Only for use during ``create_graph``."""
        assert self.seeds is not None
        return self.seeds.spawn()

    def setup_logger(self) -> None:
        """Open the agents' files, and write the parameters to a file next to them."""
        # several workers share one directory; only the first writes the run's status
        is_told = self.visualization_parameters.dump_csv and not self.task_parameters.task_index
        self.run_status = RunStatus(
            self.task_parameters.experiment_path if is_told else None,
            lambda: self.progress.report(self.status()),
        )
        for level in self.level_managers:
            level.setup_logger()
        if self.visualization_parameters.dump_parameters_documentation:
            task = self.task_parameters
            self.graph_logger.set_logger_filenames(
                task.experiment_path, logger_prefix=self.name, task_id=task.task_index, resume=task.resume
            )
            self.graph_logger.dump_documentation(self.documentation())

    def documentation(self) -> dict[str, Any]:
        """All parameters of the run."""
        return {
            "graph": {"name": self.name, "class": type(self).__name__},
            "seed": self.seed,
            "schedule": {part: repr(getattr(self, part)) for part in PARTS},
            "task": self.task_parameters,
            "visualization": self.visualization_parameters,
        }

    # phases and counters

    @property
    def phase(self) -> RunPhase:
        """The current phase of the run."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        if value is self._phase:
            return
        evaluated = self._phase is RunPhase.TEST
        if value is RunPhase.TEST:
            self._training_episode_is_over = self.reset_required
            self.require_reset()
        trained = sum(self.total_steps_counters[phase][EnvironmentSteps] for phase in (RunPhase.HEATUP, RunPhase.TRAIN))
        for level in self.level_managers:
            level.training_steps = trained
            level.phase = value
        if evaluated:
            shared = any(level.shares_environment_with_evaluation for level in self.level_managers)
            self.reset_required = self.force_next_reset = self._training_episode_is_over or shared
        self._phase = value
        if value not in (RunPhase.UNDEFINED, self._shown_phase):
            self._attention_at = 0.0  # show the new phase right after its first step
        self._counts = self.total_steps_counters[value].counters
        if self._run_callbacks.exist and value is not RunPhase.UNDEFINED:
            self._run_callbacks.call("on_phase")

    @contextlib.contextmanager
    def phase_context(self, phase: RunPhase) -> Iterator[None]:
        """Set the phase, and restore the previous phase at the end."""
        before = self._phase
        self.phase = phase
        try:
            yield
        finally:
            self.phase = before

    @property
    def current_step_counter(self) -> TotalStepsCounter:
        """The counters of the current phase."""
        return self.total_steps_counters[self._phase]

    def get_current_episodes_count(self) -> int:
        """Number of training episodes that have ended."""
        return self.total_steps_counters[RunPhase.TRAIN][EnvironmentEpisodes]

    # acting and training

    def require_reset(self) -> None:
        """Begin a new episode with the next step, even if the simulator could continue its episode."""
        self.reset_required = self.force_next_reset = True

    def reset_internal_state(self, force_environment_reset: bool = False) -> None:
        """Begin an episode in the environment and for the agents.

        :param force_environment_reset: reset the simulator even if it could continue its episode (a game with lives
            left)
        """
        self.verify_graph_was_created()
        self.reset_required = self.force_next_reset = False
        for level in self.level_managers:
            level.reset_environment(force_environment_reset)
        for level in self.level_managers:
            level.reset_internal_state()

    def handle_episode_ended(self) -> None:
        """Count an episode that has ended, and let all levels complete it."""
        self._count_episode(self.episode_reward())
        for level in self.level_managers:
            level.handle_episode_ended()

    def _count_episode(self, reward: float) -> None:
        self._counts[EnvironmentEpisodes] += 1
        if self._phase is RunPhase.TRAIN:
            self.progress.add_episode(reward)
        if self._run_callbacks.exist:
            self._run_callbacks.episode_ended(reward)

    def episode_reward(self) -> float:
        """The total reward of the current episode; of all agents if the level has several."""
        return float(np.sum(self.level_managers[-1].total_reward_in_current_episode))

    def act(self, steps: StepMethod, wait_for_full_episodes: bool = False) -> None:
        """Act in the environment.

        :param steps: the number of steps or episodes
        :param wait_for_full_episodes: continue until the last episode ends. This has no effect if several copies of the
            environment play at once, or if the episode already has ``ENDLESS_EPISODE`` steps
        """
        self.verify_graph_was_created()
        counts, unit = self._counts, type(steps)
        end = counts[unit] + steps.num_steps
        waits = wait_for_full_episodes and self.top_level_manager.has_one_episode
        self._bound_steps([unit(end)])
        while counts[unit] < end or (waits and not self.reset_required and not self._is_episode_endless()):
            self._step()
            self.stop_signals.stop_if_asked()

    def _bound_steps(self, ends: Sequence[StepMethod], until_checkpoint: bool = False) -> None:
        """Limit the number of steps that the top level may take in one call: it stops at the first of some counts.

        :param ends: counts of the current phase
        :param until_checkpoint: also stop at the count of the next checkpoint
        """
        counts, schedule = self._counts, self.checkpoints.schedule

        def left(unit: type[StepMethod]) -> int | None:
            at = [end.num_steps for end in ends if type(end) is unit]
            if until_checkpoint and (due := schedule.next_count(unit)) is not None:
                at.append(due)
            return min(at) - counts[unit] if at else None

        self.top_level_manager.left = left

    def _is_episode_endless(self) -> bool:
        return self.level_managers[-1].active_environment.current_episode_steps_counter >= ENDLESS_EPISODE

    def _step(self) -> None:
        """Step the top level. Begin an episode first if one is required."""
        if self.reset_required:
            self.begin_step()
        bottom = self.level_managers[-1]
        before = bottom.environment_steps
        response = self.top_level_manager.step(None)
        self.end_step(response, bottom.environment_steps - before)

    # A step in two halves, for a user's loop that steps the environment itself. The loop calls ``begin_step``, lets the
    # levels choose an action, steps its environment, gives the response to the levels, and calls ``end_step``.

    def begin_step(self) -> None:
        """Begin an episode in the environment and for the agents if the last episode has ended.

        :raises CoachError: if this process does not act
        """
        self.verify_graph_was_created()
        if self.reset_required:
            role = self.task_parameters.role
            if not (role.acts or self.top_level_manager.is_fed):
                raise CoachError(f"graph '{self.name}' does not act: its task's role is {role.value}")
            self.reset_internal_state(self.force_next_reset)

    def end_step(self, response: EnvResponse, steps: int) -> None:
        """Count a step that the levels have processed, and complete the episodes that ended with this step.

        :param response: the environment's response; with several copies, the response of any copy
        :param steps: number of environment steps
        """
        top = self.top_level_manager
        # An agent that learns only from demonstrations takes no steps. Count one step, so that the schedule has an end.
        self._counts[EnvironmentSteps] += steps if top.is_fed else steps or 1
        if top.ended_rewards:
            for reward in top.ended_rewards:
                self._count_episode(reward)
            top.ended_rewards = []
        if top.episode_over:
            self.handle_episode_ended()
            self.reset_required = True
            # If the agent ended the episode, the environment would continue it without a forced reset.
            self.force_next_reset = not response.game_over
        if self._run_callbacks.hear_steps:
            self._run_callbacks.call("on_step")
        if time.monotonic() >= self._attention_at:
            self.attend()

    def attend(self) -> None:
        """Show the progress on the screen and in ``status.json``. The control loop calls this method a few times a
        second. A loop that waits between two steps must call the method while it waits."""
        self._attention_at = time.monotonic() + SECONDS_BETWEEN_REDRAWS
        self._shown_phase = self._phase_or_last
        self.progress.update(self.status())
        self._warn_of_endless_episode()
        if self.progress.is_running:
            self.run_status.keep_alive()

    @property
    def _phase_or_last(self) -> RunPhase:
        return self._shown_phase if self._phase is RunPhase.UNDEFINED else self._phase

    def status(self) -> Status:
        """Progress of the run so far."""
        return self._reports.status(self._phase_or_last, self.can_train, self.other_fields())

    def _warn_of_endless_episode(self) -> None:
        if self._warned_of_endless_episode or not self._is_episode_endless():
            return
        self._warned_of_endless_episode = True
        environment = self.level_managers[-1].active_environment
        screen.warning(
            f"level '{environment.env_id}', step {environment.current_episode_steps_counter}: the episode has not "
            f"ended; set a limit of steps if it should end"
        )

    def train(self) -> None:
        """Let the agents learn if training is due. Updates of the networks count as training steps; for PPO, a training
        phase counts as one step. If there are no networks to train, or another process trains, each call counts as one
        training step.
        """
        if self._phase is not RunPhase.TRAIN:
            with self.phase_context(RunPhase.TRAIN):
                self.train()
            return
        counts = self._counts
        if not self.can_train:
            counts[TrainingSteps] += 1
            return
        end, before = self.improvement.end_in_updates, counts[TrainingSteps]
        for level in self.level_managers:
            counts[TrainingSteps] += level.train(None if end is None else end - counts[TrainingSteps])
        if self._run_callbacks.hear_updates and counts[TrainingSteps] > before:
            self._run_callbacks.call("on_update")

    def should_train(self) -> bool:
        """True if the next call of ``train`` would let an agent learn."""
        return any(level.should_train() for level in self.level_managers)

    def heatup(self, steps: StepMethod) -> None:
        """Act to fill the memory, in whole episodes.

        :param steps: the smallest number of steps or episodes
        """
        self.verify_graph_was_created()
        if steps.num_steps <= 0:
            return
        screen.announce(f"{self.name}: Starting heatup")
        self._reports.expect(RunPhase.HEATUP, steps)
        with self.phase_context(RunPhase.HEATUP):
            if not self._is_episode_kept:
                self.require_reset()
            self.act(steps, wait_for_full_episodes=True)
            self.force_next_reset = True

    def train_and_act(self, steps: StepMethod) -> None:
        """Act and learn in turn. An episode that is in progress continues. Afterwards the graph is still in the phase
        ``TRAIN``.

        :param steps: the exact number of steps, episodes or updates; training ends earlier at the end of
            ``improve_steps``
        """
        self.verify_graph_was_created()
        if steps.num_steps <= 0:
            return
        self.phase = RunPhase.TRAIN
        counts, unit = self._counts, type(steps)
        end = counts[unit] + steps.num_steps
        last = self.improvement.end or unit(end)
        last_unit, last_end = type(last), last.num_steps
        # read once, because each step of the loop uses them
        saves, signals, callbacks = self.checkpoints.schedule.is_regular, self.stop_signals, self._run_callbacks
        ends = [unit(end), last]
        self._bound_steps(ends, until_checkpoint=True)
        while counts[unit] < end and counts[last_unit] < last_end:
            self._step()
            self.train()
            if saves:
                self.occasionally_save_checkpoint()
            if signals.asked is not None:
                signals.stop_if_asked()
            if callbacks.view.has_asked:
                callbacks.carry_out(lambda: self.evaluate(self.evaluation_steps), self.save_checkpoint)
                self._bound_steps(ends, until_checkpoint=True)  # an evaluation has replaced the bounds
                if callbacks.wants_stop:
                    return

    def sync(self) -> None:
        """Let the agents load the newest weights."""
        self.verify_graph_was_created()
        for level in self.level_managers:
            level.sync()

    def evaluate(self, steps: StepMethod) -> bool:
        """Evaluate the agents.

        :param steps: the exact number of episodes; or the smallest number of steps, in whole episodes
        :return: True if the run should stop, because the success rate is reached or a callback has asked for it
        """
        self.verify_graph_was_created()
        if steps.num_steps <= 0:
            return self._run_callbacks.wants_stop
        with self.evaluation() as rewards:
            self._reports.expect(RunPhase.TEST, steps)
            self.progress.begin_evaluation(self.status())
            try:
                self._evaluation_episodes(steps, rewards)
            finally:
                self.progress.end_evaluation()
        self.improvement.evaluation_held()
        if self.progress.has_improved and self.improvement.end is not None and self.checkpoints.schedule.is_regular:
            self.save_checkpoint()
        return self.should_stop()

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[list[float]]:
        """A context for an evaluation. The caller plays the episodes. Training continues afterwards as if there had
        been no evaluation. An evaluation is undone if no episode was completed or an exception was raised.

        :return: an empty list; the caller appends the total reward of each episode
        """
        self.verify_graph_was_created()
        rewards: list[float] = []
        before = [level.evaluation_state() for level in self.level_managers]
        counts_before = dict(self.total_steps_counters[RunPhase.TEST].counters)
        assert self.seed is not None
        with self.phase_context(RunPhase.TEST):
            self.sync()
            trained = self.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps]
            seed = evaluation_seed(self.seed, trained, self._evaluations_in_place)
            for level, child in zip(self.level_managers, seed.spawn(len(self.level_managers))):
                level.seed_evaluation(child)
            try:
                yield rewards
            except BaseException:
                self._undo_evaluation(before, counts_before)
                raise
            if rewards:
                self.progress.add_evaluation(float(np.mean(rewards)), len(rewards), self.status())
            else:
                self._undo_evaluation(before, counts_before)
        self.evaluation_rewards = rewards
        if self._run_callbacks.exist and rewards:
            self._run_callbacks.call("on_evaluation_end")
            if self.progress.has_improved:
                self._run_callbacks.call("on_new_best")

    def _evaluation_episodes(self, steps: StepMethod, rewards: list[float]) -> None:
        counts, unit = self._counts, type(steps)
        end = counts[unit] + steps.num_steps
        while counts[unit] < end:
            self.act(EnvironmentEpisodes(1))
            rewards.append(self.episode_reward())
            self.progress.add_evaluation_episode(rewards[-1])
            self.sync()

    def _undo_evaluation(self, before: list[Any], counts_before: dict[type[StepMethod], int]) -> None:
        """Undo an interrupted evaluation, so that the evaluation can be repeated."""
        self.total_steps_counters[RunPhase.TEST].counters.update(counts_before)
        for level, state in zip(self.level_managers, before):
            level.undo_evaluation(state)

    def should_stop(self) -> bool:
        """True if a callback has asked to stop, or if the stop condition applies and each agent's success rate has
        reached its target.
        """
        return self.reason_to_stop() is not None

    def reason_to_stop(self) -> str | None:
        """The reason why training ends before the end of its schedule, as a message; None if training does not end."""
        if (reason := self._run_callbacks.view.stop_reason) is not None:
            return f"training stops: {reason}"
        if self._reached_target is not None:  # the evaluation in new episodes need not reach the target again
            return self._reached_target
        is_solved = self.task_parameters.apply_stop_condition and all(
            level.should_stop() for level in self.level_managers
        )
        return self._success() if is_solved else None

    def _success(self) -> str:
        last, target = self.progress.last_evaluation, self._reports.reward
        if last is None or target is None or last < target:  # an agent may have another measure of success
            return "solved: the success rate has reached its target"
        is_own = getattr(getattr(self, "env_params", None), "custom_reward_threshold", None) is not None
        origin = ", which the preset sets (env_params.custom_reward_threshold)" if is_own else ""
        return f"solved: evaluation reward {last:.5g} reached the target {target:.5g}{origin}"

    # runs

    def run(self) -> None:
        """Train or evaluate, as the task parameters say, and close the graph."""
        try:
            evaluated = self.task_parameters.num_evaluation_steps
            if evaluated is None:
                self.improve()
            else:
                self._evaluate_only(evaluated)
        finally:
            self.close()

    def improve(self) -> None:
        """Run heatup, then training and evaluation in turn. Training ends after ``improve_steps`` or when the stop
        condition is met. At the end, the run evaluates, writes a checkpoint and prints a summary. If a person plays,
        the run ends when the person leaves, and only prints the summary.

        :raises TrainingError: if a loss is not finite; the run's state is saved in the checkpoint directory, under a
            name that is not restored as the newest checkpoint
        """
        self.verify_graph_was_created()
        checkpoint = None if self._is_played else self._last_checkpoint()
        with self._ending_cleanly(checkpoint):
            self.sync()
            self._run_callbacks.view.stop_reason = self._reached_target = self.progress.steps_to_target = None
            self._run_callbacks.view.has_reached_target = False
            self._let_callbacks_have_rows()
            self._run_callbacks.call("on_run_start")
            self._run_callbacks.check_states()  # before any training could be lost
            self._heat_up_and_begin()
            screen.announce(f"Starting to improve {self.name} task index {self.task_parameters.task_index or 0}")
            self.improvement.set_end(self.improve_steps)
            if self.improvement.is_over:
                screen.warning(f"{self.improve_steps!r} are done already: set more improve_steps to continue")
                return
            while not self.improvement.is_over:
                self.train_and_act(self.improvement.left_of_period(self.steps_between_evaluation_periods))
                if self.evaluate(self.evaluation_steps):
                    if reason := self.reason_to_stop():  # a subclass may stop without this reason
                        screen.success(reason)
                    if self._has_reached_target():
                        self._evaluate_afresh(reason)
                    break
                self.improvement.evaluation_held()
            if checkpoint is not None:
                checkpoint.save()
        self._print_summary_of_training()

    def _has_reached_target(self) -> bool:
        """True if training has ended because the last evaluation reached its target."""
        view = self._run_callbacks.view
        return view.has_reached_target if view.stop_reason is not None else self.task_parameters.apply_stop_condition

    def _evaluate_afresh(self, reason: str | None) -> None:
        """Evaluate in new episodes. The last evaluation is biased, because training stopped when its reward was high.

        :param reason: the reason why training has ended
        """
        self._reached_target = reason
        self.progress.steps_to_target = self.status().steps
        unit, episodes = type(self.evaluation_steps), self.evaluation_steps.num_steps
        most = max(FRESH_EPISODES, episodes) if unit is EnvironmentEpisodes else FRESH_EPISODES
        screen.announce(f"Evaluating in {most} new episodes: the evaluation that stopped training is biased")
        self._evaluations_in_place += 1
        try:
            self.evaluate(EnvironmentEpisodes(most))
        finally:
            self._evaluations_in_place -= 1

    def _print_summary_of_training(self) -> None:
        trained = Counts.of(self.total_steps_counters[RunPhase.TRAIN])
        # if nothing is trained, training steps count calls, not updates
        updates = trained.updates + self._uncounted_updates() if self.can_train else 0
        self._print_summary(dataclasses.replace(trained, updates=updates, epochs=self.improvement.epochs))

    def _last_checkpoint(self) -> LastCheckpoint | None:
        """The object that writes the checkpoint at the end of training; None if another process writes checkpoints."""
        if not self.writes_checkpoints:
            return None
        return LastCheckpoint(
            write=self.save_checkpoint,
            write_elsewhere=lambda: self.checkpoints.save_elsewhere(self.get_state(), self.progress.last_evaluation),
            resume_hint=self.resume_hint,
            print_summary=self._print_summary_of_training,
        )

    def _ending_cleanly(self, checkpoint: LastCheckpoint | None = None) -> contextlib.AbstractContextManager[None]:
        self.checkpoints.schedule.restart()
        return ending_cleanly(
            self.progress, self.run_status, self.stop_signals, self._leave, checkpoint, self._is_played
        )

    def _leave(self) -> None:
        """Reset the phase and the end of training after a run, and write the agents' pending rows."""
        is_training = self.improvement.end is not None
        self.improvement.clear_end()
        self.phase = RunPhase.UNDEFINED
        self.flush()
        if is_training:
            self._run_callbacks.end()

    def _heat_up_and_begin(self) -> None:
        """Run heatup, or the rest of heatup in a resumed run. Then begin training."""
        if not self._continues:
            self.improvement.forget()
            self._is_episode_kept = False
        if not self.improvement.has_begun:
            self._heat_up()
            self.improvement.begin()
        self._continues = self._is_episode_kept = False

    def _heat_up(self) -> None:
        unit, steps = type(self.heatup_steps), self.heatup_steps.num_steps
        done = self.total_steps_counters[RunPhase.HEATUP][unit] if self._continues else 0
        if done < steps or not self._is_episode_kept:
            self.heatup(unit(steps - done))
        else:
            with self.phase_context(RunPhase.HEATUP):
                self.act(unit(0), wait_for_full_episodes=True)
                self.force_next_reset = True

    def _evaluate_only(self, num_steps: int) -> None:
        """Evaluate without training.

        :param num_steps: the smallest number of environment steps, in whole episodes; 0 evaluates until interrupted
        """
        self._show_only_evaluation()
        rewards: list[float] = []
        try:
            with self._ending_cleanly():
                while True:
                    self.evaluate(EnvironmentSteps(num_steps) if num_steps else EnvironmentEpisodes(1))
                    rewards += self.evaluation_rewards
                    self.run_status.evaluation = dataclasses.asdict(self._statistics(rewards))
                    if num_steps:
                        break
                    self._evaluations_in_place += 1
        finally:
            if rewards:
                steps = self.total_steps_counters[RunPhase.TEST][EnvironmentSteps]
                self._print_summary(Counts(len(rewards), steps, 0), self._statistics(rewards))

    def _statistics(self, rewards: Sequence[float]) -> EvaluationStatistics:
        return EvaluationStatistics.of(rewards, self.progress.reward_range)

    def _show_only_evaluation(self) -> None:
        """Count only evaluation. The counts in the checkpoint belong to the run that trained."""
        self._reports.shown = (RunPhase.TEST,)
        self.total_steps_counters[RunPhase.TEST] = TotalStepsCounter()
        self.progress.set_state(Progress().get_state())
        self.run_status.evaluation = {}

    def keep_evaluating(self) -> None:
        """Evaluate the newest weights again and again until the stop condition is met. A worker that only evaluates
        runs this loop."""
        self.verify_graph_was_created()
        self._show_only_evaluation()
        with self._ending_cleanly():
            while not self.evaluate(self.evaluation_steps):
                self._evaluations_in_place += 1
                self.attend()
                self.stop_signals.stop_if_asked()

    def _print_summary(self, counted: Counts, evaluation: EvaluationStatistics | None = None) -> None:
        """Print the results of the run.

        :param counted: the counts of training, or of evaluation if the run did not train
        :param evaluation: the statistics of a run that only evaluates; None for training
        """
        if self.prints_summary:
            Summary(
                progress=self.progress,
                counted=counted,
                heatup=Counts.of(self.total_steps_counters[RunPhase.HEATUP]),
                evaluation=evaluation,
                is_played=self._is_played,
                experiment_path=str(self.task_parameters.experiment_path),
                has_tensorboard=self.visualization_parameters.tensorboard,
                playback_hint=self.playback_hint,
                videos=[] if evaluation is None else self._evaluation_videos(),
            ).print(self.prints_only_counts)

    def _evaluation_videos(self) -> list[pathlib.Path]:
        environments = (level.evaluation_environment for level in self.level_managers)
        return [video for one in environments if one is not None for video in getattr(one, "videos", ())]

    def _repr_html_(self) -> str:
        return directory_html(self.task_parameters.experiment_path)

    def policy_document(self) -> bytes:
        """The current policy of the top level's agent, for a process that acts with this policy."""
        return pack(self.top_level_manager.agent.acting_policy())

    def take_policy_document(self, document: bytes) -> None:
        """Act with the policy that ``policy_document`` returned in another process. Only for a graph that does not
        learn."""
        self.top_level_manager.agent.take_policy(unpack(document))

    def flush(self) -> None:
        """Write the agents' pending rows."""
        for level in self.level_managers:
            level.agent.close()

    def close(self) -> None:
        """Write pending rows and close the environments."""
        for level in self.level_managers:
            level.close()

    # checkpoints

    @property
    def is_first_trainer(self) -> bool:
        """True if this process trains and is the first of the training processes."""
        return not self.task_parameters.task_index and self.task_parameters.role.trains

    @property
    def writes_checkpoints(self) -> bool:
        """True if this process saves the run's state."""
        return self.is_first_trainer

    def advanced(self) -> tuple[str, int]:
        """Unit and count of the run's progress, for the names of checkpoints: environment steps of training. A graph
        that takes no steps returns another unit, such as ``("Epoch", 3)``."""
        return "Step", self.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps]

    @property
    def checkpoint_dir(self) -> str:
        """The directory of the checkpoints."""
        return self.checkpoints.directory

    @property
    def last_checkpoint_path(self) -> str | None:
        """The path of the newest checkpoint; None before the first."""
        return self.checkpoints.last_path

    def occasionally_save_checkpoint(self) -> None:
        """Save a checkpoint if one is due."""
        is_between_episodes = self.reset_required or not self.top_level_manager.has_one_episode
        if self.checkpoints.schedule.is_due(is_between_episodes):
            self.save_checkpoint()

    def save_checkpoint(self, failed: bool = False) -> str | None:
        """Write a checkpoint that can continue the run exactly. A full disk does not end the run.

        :param failed: True if training has failed; then the state is saved for inspection, not as the newest checkpoint
        :return: the checkpoint's path; None if the checkpoint could not be written, or another process writes
            checkpoints
        """
        self.verify_graph_was_created()
        self.checkpoints.schedule.restart()
        if not self.writes_checkpoints:
            return None
        with screen.waiting_for("saving a checkpoint", comes_again=True):
            state, last, best = self.get_state(), self.progress.last_evaluation, self.progress.best_evaluation
            is_best = last is not None and best is not None and last >= best
            path = self.checkpoints.save(state, last, is_best, self.checkpoints_to_keep, failed)
            if path is not None and not failed:
                self._checkpoint_saved(path, state)
        if self.data_store is not None:
            try:
                self.data_store.save_to_store()
            except (OSError, CoachError) as error:  # missing access rights may be temporary, too
                screen.warning(f"{error}; Coach tries again at the next checkpoint")
        if self._run_callbacks.exist and path is not None and not failed:
            self._run_callbacks.call("on_checkpoint")
            self._run_callbacks.raise_failure_of_state()
        return path

    def _checkpoint_saved(self, path: str, state: dict[str, Any]) -> None:
        """Called after a checkpoint with this state, the result of ``get_state``, has been saved."""
        self.purge_memory_backend()

    @property
    def _state(self) -> GraphState:
        assert self.seeds is not None
        counters = self.total_steps_counters
        return GraphState(counters, self.level_managers, self.progress, self.improvement, self.seeds)

    def get_state(self) -> dict[str, Any]:
        """The state of the run. Another run can continue exactly from this state."""
        callbacks = self._run_callbacks.get_state() if self._run_callbacks.exist else None
        state = self._state.get(self.reset_required, self.force_next_reset)
        return {**state, "callbacks": callbacks} if callbacks else state

    def set_state(self, state: dict[str, Any], with_episode: bool = False) -> None:
        """Restore the state that ``get_state`` returned.

        :param with_episode: True continues the episode that was in progress, if any; False begins a new episode
        """
        self._state.set(state)
        self._run_callbacks.set_state(state.get("callbacks", {}))
        self.require_reset()
        if with_episode:
            self.reset_required, self.force_next_reset = self._state.resume_episode(state)
            self._is_episode_kept = not self.reset_required
        self.checkpoints.schedule.restart()

    def restore_checkpoint(self, path: str | None = None, continue_run: bool = False) -> None:
        """Restore a checkpoint.

        :param path: a checkpoint, one of its files, or the directory of checkpoints or of an experiment (the newest
            checkpoint is restored); None uses the task's ``checkpoint_restore_path``
        :param continue_run: True: continue the same run, without heatup; ``improve_steps`` include the training so far.
            False: train ``improve_steps`` from here
        :raises CoachError: if the checkpoint does not exist, is damaged, belongs to another preset, or does not fit
            this graph
        """
        self.verify_graph_was_created()
        path, state = self.checkpoints.load(path)
        # set_state may fail halfway, when parts of the graph have changed already
        before = self.get_state()
        try:
            self.set_state(state, continue_run)
        except (ArithmeticError, LookupError, ValueError, TypeError, AttributeError) as error:
            self.set_state(before)
            raise CoachError(f"the checkpoint '{path}' does not fit this graph: {error}") from error
        self.checkpoints.restore_additions(path)
        self._continues = continue_run
