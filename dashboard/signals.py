"""The order in which the page lists signals: the most used signals come first."""

from __future__ import annotations

from collections.abc import Iterable

from rl_coach.runs.experiments import EVALUATION_REWARD, TRAINING_REWARD
from rl_coach.runs.signal_file import TIME_COLUMNS
from rl_coach.runs.system_metrics import METRICS

_FIRST = (
    EVALUATION_REWARD, TRAINING_REWARD, "Success Rate", "Episode Length", "Loss/Mean", "Entropy/Mean",
    "Kl Divergence/Mean", "Q/Mean", "Advantages/Mean", "Values/Mean", "Grads (unclipped)/Mean", "Epsilon",
    "Exploration", "Learning Rate/Mean",
)  # fmt: skip
_SELDOM = (*METRICS, "In Heatup", "Update Target Network", "ER #Transitions", "ER #Episodes", "Epoch")
_PLACE = {name: place for place, name in enumerate(_FIRST)}


def by_use(names: Iterable[str]) -> list[str]:
    """Sort signals by their usual importance: rewards, losses, other means, standard deviations, then counters."""
    return sorted(dict.fromkeys(names), key=_tier)


def _tier(name: str) -> tuple[int, int]:
    if name in _PLACE:
        return 0, _PLACE[name]
    if name in TIME_COLUMNS:
        return 6, 0
    if name in _SELDOM:
        return 5, 0
    if name.startswith("Shaped "):
        return 2, 0
    return {"Mean": 1, "Stdev": 3, "Max": 4, "Min": 4}.get(name.rpartition("/")[2], 2), 0
