"""The comparison with other libraries: what one of them fails at costs nothing of what the others gave."""

from __future__ import annotations

import cProfile
import json

import pytest

from benchmarks import __main__ as comparison
from benchmarks import transport
from benchmarks.measured import BenchmarkError, Measured
from benchmarks.parts import PARTS, by_part


@pytest.fixture
def compare(monkeypatch, capsys):
    """Runs the comparison on given measurements: what it prints, what it reports, and how it exits."""

    def run(measure, *flags):
        monkeypatch.setattr(comparison, "in_own_process", measure)
        monkeypatch.setattr("sys.argv", ["benchmarks", *flags])
        code = 0
        try:
            comparison.main()
        except SystemExit as stop:
            code = stop.code
        printed = capsys.readouterr()
        return printed.out, printed.err, code

    return run


def test_the_table_has_the_median_of_all_rounds(compare):
    speeds = iter([100.0, 50.0, 300.0, 40.0, 200.0, 60.0])
    table, progress, code = compare(
        lambda *_: Measured(next(speeds), 1.5, 2.0, 400.0), "W2", "--libraries", "tensorflow,sb3", "--rounds", "3"
    )
    assert code == 0
    rows = {name: row.split("│") for row in table.splitlines() for name in ("tensorflow", "sb3") if name in row}
    ours, theirs = ([cell.strip() for cell in rows[name]] for name in ("tensorflow", "sb3"))
    assert ours[3:6] == ["200", "100 to 300", "1.00"] and theirs[3:6] == ["50", "40 to 60", "4.00"]
    assert "W2, round 3 of 3: sb3: 60 steps/s" in progress


def test_a_library_that_fails_is_left_out_and_said_at_the_end(compare):
    def measure(library, work, scale):
        if library == "sb3":
            raise BenchmarkError("sb3 failed on W5: OpenCV is not installed")
        return None if library == "sbx" else Measured(10.0, 1.0, 1.0, 1.0)

    printed, progress, code = compare(measure, "W5", "--json", "--rounds", "2", "--libraries", "tensorflow,sb3,sbx")
    assert list(json.loads(printed)["W5"]) == ["tensorflow"]
    assert len(json.loads(printed)["W5"]["tensorflow"]) == 2
    assert code == "sb3 failed on W5: OpenCV is not installed"
    assert progress.count("sb3: failed, see the end") == 1
    assert progress.count("sbx: not installed, or not for it") == 2


def test_a_profile_says_which_part_takes_how_long():
    clock = [0.0]
    functions: dict = {"clock": clock}
    for path, source in (
        ("numpy/helper.py", "def take(seconds): clock[0] += seconds"),
        ("rl_coach/memories/store.py", "def sample(): take(3.0)"),
        ("gymnasium/envs/one.py", "def step(): take(1.0)"),
        ("rl_coach/agents/agent.py", "def act(): sample(); step(); take(2.0)"),
    ):
        exec(compile(source, path, "exec"), functions)
    profiler = cProfile.Profile(lambda: clock[0])
    profiler.runcall(functions["act"])
    expected = dict.fromkeys(PARTS, 0.0) | {"memory": 3.0, "environment": 1.0, "filters and bookkeeping": 2.0}
    assert by_part(profiler) == pytest.approx(expected)


WAYS = [
    (transport.PICKLES, "vectors"), (transport.CHUNKS, "vectors"), (transport.CHUNKS, "frames"),
    (transport.BARE, "frames"),
]  # fmt: skip


@pytest.mark.parametrize("way, kind", WAYS)
def test_transitions_arrive_by_every_way(way, kind):
    assert transport.rate(way, kind, rows=8, seconds=0.1) > 0
