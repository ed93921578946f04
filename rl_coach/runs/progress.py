"""The progress of a run: a display that redraws itself on a terminal, plain lines everywhere else."""

from __future__ import annotations

import dataclasses
import math
import time
from collections import deque
from typing import Any

from rl_coach.core_types import RunPhase
from rl_coach.logger import ScreenLogger, screen

SECONDS_BETWEEN_REDRAWS = 0.25
SECONDS_BETWEEN_LINES = 10.0
_EPISODES_IN_MEAN = 100
_SECONDS_IN_RATE = 30.0
_LONGEST_ETA = 30 * 24 * 3600.0


@dataclasses.dataclass
class Status:
    """Where a run stands.

    :param phase: what it is doing
    :param episodes: training episodes ended
    :param steps: environment steps taken, in heatup and training
    :param updates: updates of the networks
    :param fraction: the share of the schedule that is done, 0 to 1
    """

    phase: RunPhase
    episodes: int
    steps: int
    updates: int
    fraction: float


class Progress:
    """Shows where a run stands. ``update`` is called a few times a second at most, never once per step.

    :param screen_logger: where it is shown
    """

    def __init__(self, screen_logger: ScreenLogger = screen):
        self._screen = screen_logger
        self._live: Any = None
        self._shown_at = -math.inf
        self._started = time.monotonic()
        self._seconds_before = 0.0
        self._rewards: deque[float] = deque(maxlen=_EPISODES_IN_MEAN)
        self._samples: deque[tuple[float, int, float]] = deque(maxlen=256)
        self.last_evaluation: float | None = None
        self.best_evaluation: float | None = None
        self.is_running = False

    @property
    def seconds(self) -> float:
        """Since the start of the run, not counting breaks."""
        return self._seconds_before + time.monotonic() - self._started

    def get_state(self) -> dict[str, Any]:
        """What a resumed run shows and goes by."""
        return {
            "last_evaluation": self.last_evaluation,
            "best_evaluation": self.best_evaluation,
            "rewards": list(self._rewards),
            "seconds": self.seconds,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``."""
        self.last_evaluation, self.best_evaluation = state["last_evaluation"], state["best_evaluation"]
        self._rewards = deque(state["rewards"], maxlen=_EPISODES_IN_MEAN)
        self._seconds_before, self._started = state["seconds"], time.monotonic()

    def start(self) -> None:
        """Begin to show."""
        self._started = time.monotonic()
        self._shown_at = self._started
        self.is_running = True
        if self._screen.is_live:
            from rich.live import Live

            self._live = Live(console=self._screen.console, auto_refresh=False, transient=True)
            self._live.start()

    def stop(self) -> None:
        """End the display; what is printed later stands below it."""
        self.is_running = False
        if self._live is not None:
            self._live.stop()
            self._live = None

    def add_episode(self, reward: float) -> None:
        """A training episode has ended with that total reward."""
        self._rewards.append(reward)

    def add_evaluation(self, reward: float, episodes: int, status: Status) -> None:
        """An evaluation has ended with that mean reward."""
        self.last_evaluation = reward
        self.best_evaluation = reward if self.best_evaluation is None else max(self.best_evaluation, reward)
        if not self.is_running:
            return
        self._sample(status)
        status = dataclasses.replace(status, phase=RunPhase.TEST)
        if self._live is None:
            episodes_text = "1 episode" if episodes == 1 else f"{episodes} episodes"
            self._print(f"{self.line(status)} | over {episodes_text}")

    def update(self, status: Status) -> None:
        """Show the state of the run, if it is time to."""
        if not self.is_running:
            return
        self._sample(status)
        if self._live is not None:
            self._live.update(self._table(status), refresh=True)
        elif time.monotonic() - self._shown_at >= SECONDS_BETWEEN_LINES:
            self._print(self.line(status))

    def line(self, status: Status) -> str:
        """The state of the run as one line."""
        return " | ".join(f"{name} {value}" if name else value for name, value in self._fields(status))

    def _print(self, line: str) -> None:
        self._shown_at = time.monotonic()
        self._screen.print(line)

    def _sample(self, status: Status) -> None:
        now = time.monotonic()
        self._samples.append((now, status.steps, status.fraction))
        while len(self._samples) > 2 and now - self._samples[0][0] > _SECONDS_IN_RATE:
            self._samples.popleft()

    def _per_second(self, column: int) -> float:
        first, last = self._samples[0], self._samples[-1]
        seconds = last[0] - first[0]
        return (last[column] - first[column]) / seconds if seconds > 0 else 0.0

    def _fields(self, status: Status) -> list[tuple[str, str]]:
        fields = [
            ("", status.phase.value),
            ("episode", f"{status.episodes:,}"),
            ("steps", f"{status.steps:,}"),
            ("steps/s", f"{self._per_second(1):,.0f}" if len(self._samples) > 1 else "-"),
            ("updates", f"{status.updates:,}"),
        ]
        if self._rewards:
            mean = sum(self._rewards) / len(self._rewards)
            fields.append(("reward", f"{self._rewards[-1]:.5g} (mean {mean:.5g})"))
        fields.append(("time", duration(self.seconds)))
        eta = self._eta(status.fraction)
        if eta:
            fields.append(("left", f"at most {eta}"))
        if self.last_evaluation is not None and self.best_evaluation is not None:
            fields.append(("evaluation", f"{self.last_evaluation:.5g} (best {self.best_evaluation:.5g})"))
        return fields

    def _eta(self, fraction: float) -> str:
        speed = self._per_second(2) if len(self._samples) > 1 else 0.0
        if speed <= 0 or fraction >= 1 or (1 - fraction) / speed > _LONGEST_ETA:
            return ""
        return duration((1 - fraction) / speed)

    def _table(self, status: Status) -> Any:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        fields = self._fields(status)
        for _ in fields:
            table.add_column(no_wrap=True)
        table.add_row(*(f"[dim]{name}[/dim]" if name else "" for name, _ in fields))
        table.add_row(*(f"[bold]{value}[/bold]" for _, value in fields))
        return table


def duration(seconds: float) -> str:
    """``"1:02:03"``, or ``"2:03"`` below an hour."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
