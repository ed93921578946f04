"""Callbacks: user code that a run calls at its steps, episodes, updates, evaluations and checkpoints."""

from rl_coach.callbacks.callback import Callback, RunView
from rl_coach.callbacks.ready_made import (
    FilmEvaluations,
    Histograms,
    NotebookProgress,
    SaveEvery,
    StopOnPlateau,
    StopOnReward,
)
from rl_coach.callbacks.tracking import TrackMlflow, TrackWandb

__all__ = [
    "Callback",
    "FilmEvaluations",
    "Histograms",
    "NotebookProgress",
    "RunView",
    "SaveEvery",
    "StopOnPlateau",
    "StopOnReward",
    "TrackMlflow",
    "TrackWandb",
]
