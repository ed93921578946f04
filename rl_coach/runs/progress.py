"""The progress of a run: a live display on a terminal, plain lines everywhere else."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from typing import Any, Sequence

from rl_coach.core_types import RunPhase
from rl_coach.logger import ScreenLogger, screen
from rl_coach.runs.live_region import Columns, Fields

SECONDS_BETWEEN_REDRAWS = 0.25
SECONDS_BETWEEN_LINES = 10.0
_EPISODES_IN_MEAN = 100
_SECONDS_IN_RATE = 30.0
_LONGEST_ETA = 30 * 24 * 3600.0
_NO_END = "no limit: Ctrl-C stops the run"
_UNTIL_STOP_CONDITION = "until the stop condition is met"
_AS_GOOD_AS_ENDLESS = 10**9


@dataclasses.dataclass(frozen=True)
class Goal:
    """End of the current part of a run.

    :param done: the amount that is done
    :param total: the whole amount; None if it is unknown
    :param unit: the unit of both, in the plural
    :param may_end_before: the part also ends when the stop condition is met
    :param reward: the reward that each episode of an evaluation must reach for the stop condition; None if it is
        unknown
    """

    done: int
    total: int | None
    unit: str
    may_end_before: bool = False
    reward: float | None = None

    @property
    def is_endless(self) -> bool:
        """True if the part continues until it is stopped. Presets express this by a huge number of steps."""
        return self.total is None or self.total >= _AS_GOOD_AS_ENDLESS

    @property
    def fraction(self) -> float:
        """The share that is done, 0 to 1."""
        return 0.0 if self.total is None else min(1.0, self.done / max(1, self.total))

    def __str__(self) -> str:
        return f"{self.done:,} {self.unit}" if self.total is None else f"{self.done:,} of {self.total:,} {self.unit}"


@dataclasses.dataclass(frozen=True)
class Status:
    """State of a run.

    :param phase: the current phase, or the last phase after the run; ``UNDEFINED`` before the first phase
    :param episodes: training episodes ended
    :param steps: environment steps taken, in heatup and training
    :param updates: updates of the networks
    :param goal: the end of the current heatup, training or evaluation; None if it is unknown
    :param evaluation_steps: environment steps taken in all evaluations
    :param others: further names and values to show, such as the state of workers
    :param epochs: passes over a data set; 0 without a data set
    :param training: the end of training, also during an evaluation; None while nothing trains
    """

    phase: RunPhase
    episodes: int
    steps: int
    updates: int
    goal: Goal | None = None
    evaluation_steps: int = 0
    others: Fields = ()
    epochs: int = 0
    training: Goal | None = None

    @property
    def activity(self) -> str:
        """The name of the phase, for the display."""
        return "Starting" if self.phase is RunPhase.UNDEFINED else self.phase.value


class Rate:
    """A counter's speed over the last half minute."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=256)

    def sample(self, count: float) -> None:
        """Store the current value of the counter."""
        now = time.monotonic()
        self._samples.append((now, count))
        while len(self._samples) > 2 and now - self._samples[0][0] > _SECONDS_IN_RATE:
            self._samples.popleft()

    def skip(self, seconds: float) -> None:
        """Do not count the last ``seconds`` seconds."""
        self._samples = deque(((at + seconds, count) for at, count in self._samples), maxlen=self._samples.maxlen)

    @property
    def per_second(self) -> float | None:
        """The speed in counts per second; None with fewer than two samples."""
        if len(self._samples) < 2:
            return None
        (first_at, first), (last_at, last) = self._samples[0], self._samples[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else 0.0


class NoDisplay:
    """A display that shows nothing, for programs. Programs read the lines of ``event_lines``."""

    def show(self, fields: Fields) -> None:
        """Show the state of one run."""
        self.show_table([(name, (value,)) for name, value in fields])

    def show_table(self, columns: Columns) -> None:
        """Show the states of several runs, one line for each run."""

    def say(self, line: str) -> None:
        """Print a line that stays."""

    def close(self) -> None:
        """Remove the display; printed lines stay."""


class PlainLines(NoDisplay):
    """Progress as printed lines: one line every ten seconds, and the lines of ``say``."""

    def __init__(self, screen_logger: ScreenLogger):
        self._screen = screen_logger
        self._shown_at = time.monotonic()

    def show_table(self, columns: Columns) -> None:
        rows = list(zip(*(cells for _, cells in columns)))
        if time.monotonic() - self._shown_at >= SECONDS_BETWEEN_LINES * max(1, len(rows)):
            self._shown_at = time.monotonic()
            for cells in rows:
                self.say(line_of([(name, cell) for (name, _), cell in zip(columns, cells)]))

    def say(self, line: str) -> None:
        self._shown_at = time.monotonic()
        self._screen.print(line)


class LiveDisplay(NoDisplay):
    """Progress at the bottom of a terminal, redrawn a few times a second. Printed lines scroll above it."""

    def __init__(self, screen_logger: ScreenLogger):
        self._screen = screen_logger
        self._region = screen_logger.region
        self._region.open()

    def show_table(self, columns: Columns) -> None:
        self._region.show(columns)

    def say(self, line: str) -> None:
        self._screen.print(line)

    def close(self) -> None:
        self._region.show(())
        self._region.close()


def display_on(screen_logger: ScreenLogger) -> NoDisplay:
    """The display that suits the screen: a program, a terminal, or a file."""
    if screen_logger.is_read_by_programs:
        return NoDisplay()
    return LiveDisplay(screen_logger) if screen_logger.is_live else PlainLines(screen_logger)


class Progress:
    """Shows the progress of a run. Call ``update`` a few times a second, not at each step.

    :param screen_logger: the screen that shows the progress

    :ivar has_improved: the newest evaluation is better than all earlier evaluations
    :ivar steps_to_target: environment steps until an evaluation reached the target and ended training; None before
    :ivar reward_range: the smallest and the largest total reward of an episode; None if they are unknown
    """

    def __init__(self, screen_logger: ScreenLogger = screen):
        self._screen = screen_logger
        self._waited = screen_logger.seconds_waited
        self._display: NoDisplay | None = None
        self._started = time.monotonic()
        self._seconds_before = 0.0
        self._rewards: deque[float] = deque(maxlen=_EPISODES_IN_MEAN)
        self._steps, self._fraction = Rate(), Rate()
        self._phase = RunPhase.UNDEFINED
        self._evaluation: _Evaluation | None = None
        self.last_evaluation: float | None = None
        self.best_evaluation: float | None = None
        self.has_improved = False
        self.steps_to_target: int | None = None
        self.reward_range: tuple[float, float] | None = None

    @property
    def is_running(self) -> bool:
        """True while the progress is shown."""
        return self._display is not None

    @property
    def seconds(self) -> float:
        """Seconds since the start of the run, not counting breaks."""
        return self._seconds_before + time.monotonic() - self._started

    def get_state(self) -> dict[str, Any]:
        """The state that a resumed run continues with."""
        return {
            "last_evaluation": self.last_evaluation,
            "best_evaluation": self.best_evaluation,
            "rewards": list(self._rewards),
            "seconds": self.seconds,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned."""
        self.last_evaluation, self.best_evaluation = state["last_evaluation"], state["best_evaluation"]
        self._rewards = deque(state["rewards"], maxlen=_EPISODES_IN_MEAN)
        self._seconds_before, self._started = state["seconds"], time.monotonic()
        self._steps, self._fraction = Rate(), Rate()  # speeds from before the restore belong to other steps

    def start(self) -> None:
        """Begin to show the progress."""
        self._started = time.monotonic()
        self._display = display_on(self._screen)

    def stop(self) -> None:
        """End the display. Lines that are printed later appear below it."""
        if self._display is not None:
            self._display.close()
            self._display = None

    def add_episode(self, reward: float) -> None:
        """Count a training episode. :param reward: the episode's total reward"""
        self._rewards.append(reward)

    def begin_evaluation(self, status: Status) -> None:
        """Show the evaluation until ``end_evaluation``."""
        self._evaluation = _Evaluation(status.evaluation_steps)
        self.update(status)

    def add_evaluation_episode(self, reward: float) -> None:
        """Count an episode of the evaluation. :param reward: the episode's total reward"""
        if self._evaluation is not None:
            self._evaluation.rewards.append(reward)

    def end_evaluation(self) -> None:
        """End the evaluation. Its time does not count for the speed of training."""
        if self._evaluation is not None:
            self._steps.skip(time.monotonic() - self._evaluation.began)
            self._evaluation = None

    def add_evaluation(self, reward: float, episodes: int, status: Status) -> None:
        """Store and print the result of an evaluation. :param reward: the evaluation's mean reward"""
        self.has_improved = self.best_evaluation is None or reward > self.best_evaluation
        self.last_evaluation = reward
        self.best_evaluation = reward if self.best_evaluation is None else max(self.best_evaluation, reward)
        if self._display is not None:
            count = "1 episode" if episodes == 1 else f"{episodes:,} episodes"
            place = f"epoch {status.epochs:,}" if status.epochs else f"step {status.steps:,}"
            self._display.say(
                f"evaluation {last_and_best(reward, self.best_evaluation)} over {count} | {place} | "
                f"time {duration(self.seconds)}"
            )

    def update(self, status: Status) -> None:
        """Show the state of the run."""
        if self._display is not None:
            self._display.show(self.fields(status))

    def report(self, status: Status) -> dict[str, Any]:
        """The state of the run as plain values, for ``status.json``. A reward is None before it is known.

        ``done`` and ``total`` measure the progress of the heatup or of the training, in the unit of the schedule. In
        an evaluation between two parts of the training, they still measure the training. If the run only evaluates,
        they measure the evaluation. ``total`` is None if the run has no end.
        """
        goal = status.training or status.goal
        return {
            "phase": status.activity,
            "episodes": status.episodes,
            "steps": status.steps,
            "steps_per_second": self._steps.per_second,
            "updates": status.updates,
            "mean_reward": sum(self._rewards) / len(self._rewards) if self._rewards else None,
            "last_evaluation": self.last_evaluation,
            "best_evaluation": self.best_evaluation,
            "steps_to_target": self.steps_to_target,
            "reward_range": self.reward_range,
            "seconds": self.seconds,
            "done": goal.done if goal else None,
            "total": goal.total if goal and not goal.is_endless else None,
        }

    def fields(self, status: Status) -> Fields:
        """The state of the run as names and values."""
        evaluation = self._evaluation
        rewards: Sequence[float] = self._rewards if evaluation is None else evaluation.rewards
        if evaluation is None:
            episode, steps, rate = status.episodes, status.steps, self._steps
            # waits, such as compilations, do not count for the speed
            waited, self._waited = self._screen.seconds_waited - self._waited, self._screen.seconds_waited
            for one in (self._steps, self._fraction):
                one.skip(waited)
        else:
            episode, rate = len(rewards) + 1, evaluation.rate
            steps = status.evaluation_steps - evaluation.first_step
        rate.sample(steps)
        speed = "-" if rate.per_second is None else f"{rate.per_second:,.0f}"
        fields = [("", status.activity), ("episode", f"{episode:,}"), ("steps", f"{steps:,}"), ("steps/s", speed)]
        if evaluation is None:
            fields.append(("updates", f"{status.updates:,}"))
            if status.epochs:
                fields.append(("epochs", f"{status.epochs:,}"))
        if rewards:
            fields.append(("reward", f"{rewards[-1]:.5g} (mean {sum(rewards) / len(rewards):.5g})"))
        fields.append(("time", duration(self.seconds)))
        if status.goal is not None and evaluation is None:
            fields += self._goal_fields(status.phase, status.goal)
        elif status.goal is not None:
            fields.append(("done", str(status.goal)))
        if newest := last_and_best(self.last_evaluation, self.best_evaluation):
            fields.append(("evaluation", newest))
        return [*fields, *status.others]

    def _goal_fields(self, phase: RunPhase, goal: Goal) -> list[tuple[str, str]]:
        if phase is not self._phase:
            self._phase, self._fraction = phase, Rate()
        self._fraction.sample(goal.fraction)
        speed = self._fraction.per_second
        if goal.is_endless:
            done = [("done", str(goal))] if goal.total is None else []
            return [*done, ("left", self._until(goal) if goal.may_end_before else _NO_END)]
        fields = [("done", str(goal))]
        if speed and speed > 0 and (1 - goal.fraction) / speed <= _LONGEST_ETA:
            fields.append(("left", f"at most {duration((1 - goal.fraction) / speed)}"))
        return fields

    def _until(self, goal: Goal) -> str:
        """The condition that ends an endless run."""
        if goal.reward is None:
            return _UNTIL_STOP_CONDITION
        now = "" if self.last_evaluation is None else f" (now {self.last_evaluation:.5g})"
        return f"until evaluations reach {goal.reward:.5g}{now}"


class _Evaluation:
    """The current evaluation."""

    def __init__(self, first_step: int):
        self.first_step = first_step
        self.began = time.monotonic()
        self.rate = Rate()
        self.rewards: list[float] = []


def line_of(fields: Fields) -> str:
    """Fields as one line."""
    return " | ".join(f"{name} {value}".strip() for name, value in fields)


def last_and_best(last: float | None, best: float | None) -> str:
    """The last and the best evaluation as text, such as ``200 (best 200)``; empty without an evaluation so far."""
    return "" if last is None or best is None else f"{last:.5g} (best {best:.5g})"


def duration(seconds: float) -> str:
    """``"1:02:03"``, or ``"2:03"`` below an hour."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
