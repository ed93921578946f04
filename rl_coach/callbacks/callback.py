"""The base class of callbacks, and their view of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Protocol, Sequence

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, TotalStepsCounter, TrainingSteps

if TYPE_CHECKING:
    from rl_coach.runs.progress import Progress


class Run(Protocol):
    """The attributes of a graph manager that ``RunView`` reads."""

    progress: Progress
    evaluation_rewards: list[float]
    task_parameters: Any

    @property
    def level_managers(self) -> Sequence[Any]: ...

    @property
    def total_steps_counters(self) -> Mapping[RunPhase, TotalStepsCounter]: ...

    @property
    def phase(self) -> RunPhase: ...

    @property
    def seed(self) -> int | None: ...

    @property
    def last_checkpoint_path(self) -> str | None: ...

    def export_policy(self, directory: str) -> None: ...


class RunView:
    """The part of a run that callbacks can use. Callbacks can read values, and ask for an evaluation, a checkpoint or
    the end of the run. Requests are carried out between two steps.

    :param run: the graph manager

    :ivar episode_reward: the total reward of the last ended episode, in any phase; None before the first
    :ivar row: the signals in the last written row of the CSV, by name; with several agents, the names begin with the
        agent's name
    :ivar stop_reason: the reason why a callback stops the run; None if no callback stops it
    :ivar steps_before: ``steps`` at the previous call of the callback's method that runs now, such as ``on_step``
    :ivar has_reached_target: True if the run stops because the last evaluation was good enough
    :ivar has_asked: True if there may be a request; each step of training checks only this attribute
    """

    def __init__(self, run: Run):
        self._run = run
        self.episode_reward: float | None = None
        self.row: Mapping[str, Any] = {}
        self.stop_reason: str | None = None
        self.has_reached_target = False
        self.wants_evaluation = self.wants_checkpoint = self.has_asked = False
        self.logged: list[tuple[str, float]] = []
        self.steps_before = 0

    @property
    def phase(self) -> RunPhase:
        """The current phase of the run."""
        return self._run.phase

    @property
    def steps(self) -> int:
        """Environment steps of training so far; steps of heatup do not count."""
        return self.trained[EnvironmentSteps]

    @property
    def total_steps(self) -> int:
        """Environment steps of heatup and training so far, the column ``Total steps`` of the CSV."""
        return self._run.total_steps_counters[RunPhase.HEATUP][EnvironmentSteps] + self.steps

    def every(self, n: int) -> bool:
        """True if ``steps`` has reached a multiple of ``n`` since the previous call of the callback's method.

        Use this method instead of ``run.steps % n == 0``: with several copies of the environment, ``steps`` grows by
        more than 1 and skips most multiples. In ``on_step`` the result is True once for each n steps of training, if n
        is not smaller than the number of copies.

        :param n: number of steps, 1 or more
        :raises ValueError: if ``n`` is below 1
        """
        if n < 1:
            raise ValueError(f"run.every({n!r}): n must be 1 or more")
        return self.steps // n > self.steps_before // n

    @property
    def episodes(self) -> int:
        """Episodes of training that have ended."""
        return self.trained[EnvironmentEpisodes]

    @property
    def updates(self) -> int:
        """Training steps so far. A training step is an update of the networks; for PPO it is a training phase, and for
        a graph that learns from a data set it is an epoch."""
        return self.trained[TrainingSteps]

    @property
    def trained(self) -> TotalStepsCounter:
        """The counts of training so far by their units, such as ``EnvironmentSteps``."""
        return self._run.total_steps_counters[RunPhase.TRAIN]

    @property
    def evaluation_rewards(self) -> tuple[float, ...]:
        """The total reward of each episode of the last evaluation; empty before the first."""
        return tuple(self._run.evaluation_rewards)

    @property
    def last_evaluation(self) -> float | None:
        """The mean reward of the last evaluation; None before the first."""
        return self._run.progress.last_evaluation

    @property
    def best_evaluation(self) -> float | None:
        """The best mean reward of an evaluation; None before the first."""
        return self._run.progress.best_evaluation

    @property
    def checkpoint(self) -> str | None:
        """The path of the newest checkpoint; None before the first."""
        return self._run.last_checkpoint_path

    @property
    def experiment_path(self) -> str:
        """The directory of the run."""
        return str(self._run.task_parameters.experiment_path)

    @property
    def agents(self) -> dict[str, Any]:
        """The run's agents by their names."""
        return {name: agent for level in self._run.level_managers for name, agent in level.agents.items()}

    @property
    def seed(self) -> int | None:
        """The run's seed."""
        return self._run.seed

    def export_policy(self, directory: str) -> None:
        """Write the policy of the newest checkpoint into a new folder, as ``coach export`` does.

        :param directory: the path of the folder
        :raises CoachError: if there is no checkpoint, there are several agents, or the folder is not empty
        """
        self._run.export_policy(directory)

    def stop(self, reason: str = "", has_reached_target: bool = False) -> None:
        """End training after the current step, with the usual evaluation, checkpoint and summary.

        :param reason: the reason, which is printed
        :param has_reached_target: True if the run stops because the last evaluation was good enough. Such an evaluation
            is biased, so the run ends with an evaluation in new episodes
        """
        self.has_reached_target = has_reached_target
        self.stop_reason, self.has_asked = reason or "a callback has asked for it", True

    def evaluate(self) -> None:
        """Evaluate after the current step of training. The evaluation has the length ``evaluation_steps``."""
        self.wants_evaluation = self.has_asked = True

    def save(self) -> None:
        """Save a checkpoint after the current step of training."""
        self.wants_checkpoint = self.has_asked = True

    def log(self, name: str, value: float) -> None:
        """Record a number for the first agent's CSV. A row of the CSV contains statistics of the numbers since the last
        row, in the columns ``name/Mean`` and others.

        :param name: name of the signal
        :param value: the number
        """
        self.logged.append((name, float(value)))


class Callback:
    """Base class of callbacks. Override the methods that you need. Each method gets a ``RunView`` of the run.

    Pass callbacks to a preset (``graph_manager.callbacks``), to ``CoachInterface(callbacks=...)``, to ``Agent.learn``,
    or with ``--callback module:Class(argument=value)``. In a distributed run the trainer calls the callbacks, and a
    step is a chunk of experience that a worker has sent. If several workers share weights (``-n``), the first worker
    calls the callbacks.

    If a callback raises an exception, the run saves a checkpoint and ends with an error that names the callback.
    """

    def on_creation(self, graph_manager: Any) -> None:
        """Called before the graph is built. The method may change the graph manager's parameters."""

    def on_run_start(self, run: RunView) -> None:
        """Called once when training begins or is resumed, before heatup."""

    def on_run_end(self, run: RunView) -> None:
        """Called once when training has ended, for any reason. The last checkpoint of a complete run exists then. An
        interrupted run may have no last checkpoint."""

    def on_phase(self, run: RunView) -> None:
        """Called when ``run.phase`` has changed."""

    def on_step(self, run: RunView) -> None:
        """Called after each step of the environment, in every phase. With several copies of the environment, called
        once for a step of all copies."""

    def on_episode_end(self, run: RunView) -> None:
        """Called when an episode has ended, in every phase; ``run.episode_reward`` is its reward."""

    def on_update(self, run: RunView) -> None:
        """Called after each training phase, which makes one or more updates."""

    def on_evaluation_end(self, run: RunView) -> None:
        """Called after each evaluation; ``run.evaluation_rewards`` has the rewards of its episodes."""

    def on_row(self, run: RunView) -> None:
        """Called when a row of the CSV is complete, after the end of the next episode; ``run.row`` contains the row."""

    def on_new_best(self, run: RunView) -> None:
        """Called after ``on_evaluation_end`` if the evaluation was better than all earlier evaluations. The first
        evaluation is always a new best."""

    def on_checkpoint(self, run: RunView) -> None:
        """Called when a checkpoint has been written; ``run.checkpoint`` is its path."""

    def get_state(self) -> dict[str, Any]:
        """Return the state that the callback needs in a resumed run, as plain data. By default the state is empty."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned."""
