"""Ready-made callbacks for common tasks."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from rl_coach.callbacks.callback import Callback, RunView
from rl_coach.core_types import RunPhase, VideoDumpFilter
from rl_coach.runs import histogram_file
from rl_coach.runs.checkpoint_schedule import CheckpointSchedule
from rl_coach.utils import CoachError

_MOST_ACTIONS = 10_000


def _at_least(smallest: float, **values: float) -> None:
    for name, value in values.items():
        if not value >= smallest:
            raise CoachError(f"{name} is {value}: it must be {smallest} or more")


class StopOnReward(Callback):
    """Stops the run after an evaluation with a mean reward of at least ``reward``.

    :param reward: the mean reward of an evaluation's episodes
    """

    def __init__(self, reward: float):
        self.reward = reward

    def on_evaluation_end(self, run: RunView) -> None:
        if run.stop_reason is None and run.last_evaluation is not None and run.last_evaluation >= self.reward:
            run.stop(f"evaluation reward {run.last_evaluation:,.6g} >= {self.reward:,.6g}", has_reached_target=True)


class StopOnPlateau(Callback):
    """Stops the run when the reward of evaluations no longer improves.

    :param evaluations: the run stops after this number of consecutive evaluations without improvement
    :param improvement: an evaluation is an improvement if its reward is larger than the reward of the last improvement
        plus ``improvement``; the first evaluation is always an improvement
    """

    def __init__(self, evaluations: int = 10, improvement: float = 0.0):
        _at_least(1, evaluations=evaluations)
        _at_least(0, improvement=improvement)
        self.evaluations, self.improvement = evaluations, improvement
        self._best, self._without = -math.inf, 0

    def on_evaluation_end(self, run: RunView) -> None:
        assert run.last_evaluation is not None
        if run.last_evaluation > self._best + self.improvement:
            self._best, self._without = run.last_evaluation, 0
            return
        self._without += 1
        if self._without >= self.evaluations:
            run.stop(f"{self._without} evaluations in a row were not better than {self._best + self.improvement:,.6g}")

    def get_state(self) -> dict[str, Any]:
        return {"best": self._best, "without": self._without}

    def set_state(self, state: dict[str, Any]) -> None:
        self._best, self._without = state["best"], state["without"]


class SaveEvery(Callback):
    """Saves a checkpoint after every ``steps`` steps of training.

    :param steps: environment steps; steps of heatup do not count
    """

    def __init__(self, steps: int):
        _at_least(1, steps=steps)
        self.steps = steps
        self._schedule: CheckpointSchedule | None = None

    def on_run_start(self, run: RunView) -> None:
        self._schedule = CheckpointSchedule(run.trained, self.steps)

    def on_step(self, run: RunView) -> None:
        if self._schedule is None:  # a user's own loop does not call on_run_start
            self.on_run_start(run)
        elif self._schedule.is_due():
            self._schedule.restart()
            run.save()


class FilmEvaluations(Callback):
    """Writes the first episode of an evaluation as a GIF, to the directory ``gifs`` of the run.

    :param every: film one of every ``every`` evaluations; 1 films each evaluation
    """

    def __init__(self, every: int = 1):
        _at_least(1, every=every)
        self.every = every
        self._held = 0
        self._filter = _FirstEpisode()

    def on_creation(self, graph_manager: Any) -> None:
        visualization = graph_manager.visualization_parameters
        visualization.dump_gifs, visualization.video_dump_filters = True, [self._filter]

    def on_phase(self, run: RunView) -> None:
        if run.phase is RunPhase.TEST:
            self._filter.films = self._held % self.every == 0
            self._held += 1

    def on_episode_end(self, run: RunView) -> None:
        self._filter.films = False

    def get_state(self) -> dict[str, Any]:
        return {"held": self._held}

    def set_state(self, state: dict[str, Any]) -> None:
        self._held = state["held"]


class Histograms(Callback):
    """Records the distributions of actions and weights after each evaluation, for the dashboard.

    The distribution of actions contains the last 10,000 actions of training since the last evaluation. With several
    copies of the environment, only the actions of one copy are recorded. A compiled loop records no actions. Each array
    of a network's weights has a separate distribution.
    """

    def __init__(self) -> None:
        self._actions: dict[str, deque[np.ndarray]] = {}

    def on_step(self, run: RunView) -> None:
        if run.phase is not RunPhase.TRAIN:
            return
        for name, agent in run.agents.items():
            chosen = getattr(agent, "last_action_info", None)
            if chosen is not None:
                self._actions.setdefault(name, deque(maxlen=_MOST_ACTIONS)).append(_numbers(chosen.action))

    def on_evaluation_end(self, run: RunView) -> None:
        values = {f"{name}: actions": np.concatenate(actions) for name, actions in self._actions.items()}
        self._actions = {}
        for name, agent in run.agents.items():
            for network, wrapper in getattr(agent, "networks", {}).items():
                for place, weights in enumerate(wrapper.online_network.get_weights()):
                    shape = " × ".join(map(str, np.shape(weights)))
                    values[f"{name}: {network}, array {place} ({shape or 'one number'})"] = weights
        histogram_file.append(run.experiment_path, run.steps, values)


def _numbers(action: Any) -> np.ndarray:
    """All numbers of an action, also of an action with parts (a tuple or dict), as one array [N]."""
    if isinstance(action, Mapping):
        action = tuple(action.values())
    return np.concatenate([_numbers(part) for part in action]) if isinstance(action, tuple) else np.ravel(action)


class _FirstEpisode(VideoDumpFilter):
    """Selects an episode if ``films`` is True at its start."""

    def __init__(self) -> None:
        self.films = False

    def should_dump(self, episode_terminated: bool = False, **kwargs: Any) -> bool:
        return self.films or episode_terminated


class NotebookProgress(Callback):
    """Shows one line with the progress in a Jupyter notebook. The line is updated after each evaluation and after every
    ``episodes`` training episodes.

    :param episodes: number of training episodes between two updates of the line
    """

    def __init__(self, episodes: int = 10):
        _at_least(1, episodes=episodes)
        self.episodes = episodes
        self._display: Any = None

    def on_run_start(self, run: RunView) -> None:
        from IPython.display import display

        self._display = display({"text/plain": self._line(run)}, raw=True, display_id=True)

    def on_episode_end(self, run: RunView) -> None:
        if run.phase is RunPhase.TRAIN and run.episodes % self.episodes == 0:
            self._show(run)

    def on_evaluation_end(self, run: RunView) -> None:
        self._show(run)

    def on_run_end(self, run: RunView) -> None:
        self._show(run)

    def _show(self, run: RunView) -> None:
        self._display.update({"text/plain": self._line(run)}, raw=True)

    @staticmethod
    def _line(run: RunView) -> str:
        parts = [f"{run.steps:,} steps", f"{run.episodes:,} episodes"]
        if run.episode_reward is not None:
            parts.append(f"last reward {run.episode_reward:,.6g}")
        if run.last_evaluation is not None:
            parts.append(f"evaluation {run.last_evaluation:,.6g} (best {run.best_evaluation:,.6g})")
        return ", ".join(parts)
