"""The works with several seeds, as presets: ``coach -p benchmarks/seeds_preset.py:W13``."""

from __future__ import annotations

from benchmarks.coach_side import graph_of
from benchmarks.works import WORKS

W13, W13d = graph_of(WORKS["W13"]), graph_of(WORKS["W13d"])
