"""The comparison of agents that learn from fixed data: its table, and the scores that it keeps."""

from __future__ import annotations

import sys

from benchmarks import offline
from benchmarks.offline import COMPARISONS, Comparison, Score
from rl_coach.command_line import preset_catalogue


def test_each_comparison_is_of_a_preset_and_data_that_there_are():
    presets = preset_catalogue.list_all_presets()
    assert all(one.preset in presets and one.data in presets for one in COMPARISONS)


def test_what_has_a_score_is_not_trained_again_and_the_table_has_all(tmp_path, monkeypatch):
    trained: list[tuple[str, int]] = []

    def score_of(comparison: Comparison, data: object, seed: int) -> float:
        trained.append((comparison.preset, seed))
        return -100.0 - seed

    monkeypatch.setattr(offline, "scorer", lambda library: score_of)
    results, page = tmp_path / "scores.jsonl", tmp_path / "page.md"
    page.write_text(f"before\n{offline.BEGIN}\nold\n{offline.END}\nafter", encoding="utf-8")
    for seeds in ("0", "0,1"):
        arguments = ["offline", "--only", "IQL", "--seeds", seeds, "--results", str(results)]
        monkeypatch.setattr(sys, "argv", arguments)
        offline.main()
    assert trained == [("Pendulum_IQL_BatchRL", 0), ("Pendulum_IQL_BatchRL", 1)]
    monkeypatch.setattr(sys, "argv", ["offline", "--table", "--results", str(results), "--page", str(page)])
    offline.main()
    text = page.read_text(encoding="utf-8")
    assert "| `Pendulum_IQL_BatchRL` | Coach | 4,000 | 0, 1 | -100, -101 | -100.5 ± 0.7071 |" in text
    assert text.startswith("before") and text.endswith("after") and "old" not in text


def test_a_single_score_has_no_deviation():
    assert "| -99 |" in offline.table([Score("A", "d3rlpy", 0, 10, -99.0, "2026-01-01")])
