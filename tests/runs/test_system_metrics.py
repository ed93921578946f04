from __future__ import annotations

import csv
import sys

import pytest

from rl_coach.runs import system_metrics
from rl_coach.runs.status import RUNNING, RunStatus
from rl_coach.runs.system_metrics import METRICS, SYSTEM_FILE, SystemMetrics


def rows_of(directory):
    with open(directory / SYSTEM_FILE) as file:
        return list(csv.DictReader(file))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processor and memory are read from /proc")
def test_each_status_adds_a_row_and_a_resumed_run_continues(tmp_path):
    held = bytearray(100_000_000)
    for start in (0.0, 60.0):
        reports = iter([{"seconds": start}, {"seconds": start + 30}])
        status = RunStatus(tmp_path, reports.__next__)
        status.set(RUNNING)
        status.set(RUNNING)
    rows = rows_of(tmp_path)
    assert [float(row["Wall-Clock Time"]) for row in rows] == [0.0, 0.5, 1.0, 1.5]
    assert all(0 <= float(row["Processor (%)"] or 0) <= 100 for row in rows)
    assert all(float(row["Memory (MB)"]) > len(held) / 1e6 for row in rows)


def test_a_system_that_reports_nothing_has_no_file_and_a_gpu_is_a_column(tmp_path, monkeypatch):
    monkeypatch.setattr(system_metrics, "_processor_times", lambda: (0, 0))
    monkeypatch.setattr(system_metrics, "_memory", lambda: None)
    monkeypatch.setattr(system_metrics, "_gpu", lambda: (None, None))
    SystemMetrics(tmp_path).write(60.0)
    assert not (tmp_path / SYSTEM_FILE).exists()
    monkeypatch.setattr(system_metrics, "_gpu", lambda: (75.0, 2048.0))
    SystemMetrics(tmp_path).write(60.0)
    assert rows_of(tmp_path) == [{"Wall-Clock Time": "1.00000", **dict(zip(METRICS, ("", "", "75.0", "2048.0")))}]
