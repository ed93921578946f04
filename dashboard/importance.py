"""The importance of settings for a result. A random forest predicts the result from the settings; the importance of a
setting is the forest's use of this setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rl_coach.installation import is_installed, missing_package

FEWEST_RUNS = 8
_TREES = 300
_MOST_SETTINGS = 40
_MOST_OF_IT = 0.5
_CAUTION = (
    "Each bar is the share of a setting in the predictions of a random forest. The forest knows only these runs and "
    "shows no causes. Settings that often change together split their importance. If settings always change together, "
    "only one is shown."
)


@dataclass(frozen=True)
class Importance:
    """The importance of settings, from a random forest.

    :param shares: the importance of each setting, the largest first, with the sum 1; empty if it cannot be computed
    :param text: a text about the reliability of the shares, or the reason why there are none
    """

    shares: Mapping[str, float] = field(default_factory=dict)
    text: str = ""


def importance(runs: Sequence[Mapping[str, Any]], names: Sequence[str], result: str) -> Importance:
    """Compute the importance of settings for a result.

    :param runs: for each run, its settings and results by name: numbers, words, or None for missing values
    :param names: the settings; if several settings always change together, only the first is used
    :param result: the name of the result; runs without a number for this result are not used
    """
    if not is_installed("sklearn"):
        return Importance(text=f"No importance: {missing_package(ModuleNotFoundError(name='sklearn'))}")
    known = [run for run in runs if isinstance(run.get(result), (int, float))]
    if len(known) < FEWEST_RUNS:
        return Importance(text=f"Importance needs {FEWEST_RUNS} runs with this result; there are {len(known)}.")
    columns = _distinct({name: codes([run.get(name) for run in known]) for name in names})
    scores = np.array([float(run[result]) for run in known])
    if not columns or np.ptp(scores) == 0:
        return Importance(text="No importance: these runs have equal settings or equal results.")
    from sklearn.ensemble import RandomForestRegressor  # takes a second

    forest = RandomForestRegressor(_TREES, random_state=0, oob_score=True, min_samples_leaf=2)
    forest.fit(np.stack(list(columns.values()), axis=1), scores)
    shares = dict(zip(columns, map(float, forest.feature_importances_)))
    ranked = dict(sorted(shares.items(), key=lambda item: -item[1]))
    return Importance(ranked, f"{_trust(float(forest.oob_score_), len(known))} {_CAUTION}")


def _trust(explained: float, runs: int) -> str:
    """A text about the reliability of the shares.

    :param explained: the explained share of the variance for runs that a tree was not trained on; 0 or less if the
        forest predicts nothing
    :param runs: number of runs
    """
    if explained <= 0:
        return f"Do not trust these shares: in {runs} runs, these settings do not predict the result."
    weak = "" if explained >= _MOST_OF_IT else " Most of the result comes from something else, such as the seed."
    return f"In {runs} runs, these settings predict {explained:.0%} of the result's variance.{weak}"


def codes(values: Sequence[Any]) -> np.ndarray:
    """Values as numbers, float64 [runs]. Numbers are unchanged, words become their alphabetical rank, and missing
    values become a number below all others."""
    there = [value for value in values if value is not None]
    if all(isinstance(value, (int, float)) for value in there):
        lowest = min(map(float, there), default=0.0) - 1.0
        return np.array([lowest if value is None else float(value) for value in values])
    place = {word: float(number) for number, word in enumerate(sorted({str(value) for value in there}))}
    return np.array([-1.0 if value is None else place[str(value)] for value in values])


def _distinct(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns that have different values. If several columns divide the runs in the same way, only the first is
    kept. The number of columns is limited."""
    found: dict[bytes, str] = {}
    for name, values in columns.items():
        order = np.unique(values, return_inverse=True)[1]
        if order.max(initial=0) > 0:
            found.setdefault(order.astype(np.int64).tobytes(), name)
    return {name: columns[name] for name in list(found.values())[:_MOST_SETTINGS]}
