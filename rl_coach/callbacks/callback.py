"""The base class of callbacks, and their view of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Protocol, Sequence

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, TotalStepsCounter, TrainingSteps

if TYPE_CHECKING:
    from rl_coach.runs.progress import Progress


class Run(Protocol):
    """Attributes that ``RunView`` reads. A graph manager has them."""

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
    """A run as callbacks see it. They can read values and make requests. Requests are carried out between two steps.

    :param run: the graph manager

    :ivar episode_reward: the total reward of the last ended episode, in any phase; None before the first
    :ivar row: the signals of the last written row, by name; with several agents the names begin with the
        agent's name
    :ivar stop_reason: the reason why a callback stops the run; None if no callback stops it
    :ivar steps_before: ``steps`` at the last call of the same method
    :ivar has_reached_target: the run stops because the last evaluation was good enough
    :ivar has_asked: there may be a request; each step of training checks only this attribute
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
        """The present phase of the run."""
        return self._run.phase

    @property
    def steps(self) -> int:
        """Environment steps of training so far; steps of heatup do not count."""
        return self.trained[EnvironmentSteps]

    def every(self, n: int) -> bool:
        """True if ``steps`` has reached a multiple of ``n`` since the last call of the same method.

        Use it instead of ``run.steps % n == 0``: with several copies of the environment, ``steps`` grows by more than 1
        and skips most multiples. In ``on_step`` it is True once for each n steps of training, if n is not smaller than
        the number of copies.

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
        """Training steps so far: updates of the networks; with PPO training phases, in batch RL epochs."""
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

        :raises CoachError: if there is no checkpoint, there are several agents, or the folder is not empty
        """
        self._run.export_policy(directory)

    def stop(self, reason: str = "", has_reached_target: bool = False) -> None:
        """End training after the present step, with the usual evaluation, checkpoint and summary.

        :param reason: the printed reason
        :param has_reached_target: the last evaluation was good enough. It is biased by this choice, so the
            run ends with an evaluation in new episodes
        """
        self.has_reached_target = has_reached_target
        self.stop_reason, self.has_asked = reason or "a callback has asked for it", True

    def evaluate(self) -> None:
        """Evaluate after the present step of training, for the schedule's ``evaluation_steps``."""
        self.wants_evaluation = self.has_asked = True

    def save(self) -> None:
        """Save a checkpoint after the present step of training."""
        self.wants_checkpoint = self.has_asked = True

    def log(self, name: str, value: float) -> None:
        """Record a number. Each row of the first agent's CSV has its statistics: ``name/Mean`` and others.

        :param name: name of the signal
        """
        self.logged.append((name, float(value)))


class Callback:
    """Base of all callbacks. Override the methods that you need; each gets the run in its present state.

    Give callbacks to a preset (``graph_manager.callbacks``), to ``CoachInterface(callbacks=...)``, to ``Agent.learn``,
    or by ``--callback module:Class(argument=value)``. In a distributed run they are called in the trainer, where a step
    is a chunk of experience that a worker has sent. If workers share weights (``-n``), the first worker calls them.

    An exception ends the run with a checkpoint and an error that names the callback.
    """

    def on_creation(self, graph_manager: Any) -> None:
        """Called before the graph is built; it may change the graph manager's parameters."""

    def on_run_start(self, run: RunView) -> None:
        """Called once when training begins or is resumed, before the heatup."""

    def on_run_end(self, run: RunView) -> None:
        """Called once when training has ended, for any reason. The last checkpoint of a complete run exists then. An
        interrupted run may have no last checkpoint."""

    def on_phase(self, run: RunView) -> None:
        """Called when ``run.phase`` has changed."""

    def on_step(self, run: RunView) -> None:
        """Called after each step of the environment, in every phase; with several copies, after a step of all."""

    def on_episode_end(self, run: RunView) -> None:
        """Called when an episode has ended, in every phase; ``run.episode_reward`` is its reward."""

    def on_update(self, run: RunView) -> None:
        """Called after each training phase, which makes one or more updates."""

    def on_evaluation_end(self, run: RunView) -> None:
        """Called after each evaluation; ``run.evaluation_rewards`` has the rewards of its episodes."""

    def on_row(self, run: RunView) -> None:
        """Called when a row of the CSV is complete, after the end of the next episode; ``run.row`` contains the row."""

    def on_new_best(self, run: RunView) -> None:
        """Called after ``on_evaluation_end``, if no evaluation before was as good; also after the first one."""

    def on_checkpoint(self, run: RunView) -> None:
        """Called when a checkpoint has been written; ``run.checkpoint`` is its path."""

    def get_state(self) -> dict[str, Any]:
        """Return all state that the callback needs after a resume, as plain data. By default the state is empty."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned."""
