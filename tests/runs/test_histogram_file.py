from __future__ import annotations

import numpy as np

from rl_coach.runs import histogram_file
from rl_coach.runs.histogram_file import HISTOGRAM_FILE, NUM_BINS, append, histogram, read


def test_whole_numbers_have_a_bin_each_and_others_equal_bins():
    assert histogram(np.array([0, 2, 2, 3])) == {"low": 0.0, "high": 3.0, "counts": [1, 0, 2, 1]}
    assert histogram(np.array([[7.0]])) == {"low": 7.0, "high": 7.0, "counts": [1]}
    found = histogram(np.array([0.5, np.nan, np.inf, 1.0, 2.5]))
    assert (found["low"], found["high"], len(found["counts"]), sum(found["counts"])) == (0.5, 2.5, NUM_BINS, 3)
    assert len(histogram(np.arange(1000))["counts"]) == NUM_BINS
    assert histogram(np.array([np.nan])) is None and histogram(np.array([])) is None


def test_what_is_appended_is_read_and_damaged_lines_are_left_out(tmp_path, monkeypatch):
    assert read(tmp_path) == {}
    append(tmp_path, 200, {"weights": np.array([1.0, 2.0]), "nothing": np.array([])})
    append(tmp_path, 100, {"weights": np.array([5.0])})
    with open(tmp_path / HISTOGRAM_FILE, "a") as file:
        for line in ("{", "[1]", '{"steps": "x", "histograms": {}}', '{"steps": 1, "histograms": [1]}',
                     '{"steps": 1, "histograms": {"weights": {"low": 0, "high": 1, "counts": ["a"]}}}',
                     '{"steps": NaN, "histograms": {"weights": {"low": 0, "high": 1, "counts": [1]}}}'):  # fmt: skip
            file.write(f"{line}\n")
    first = {"steps": 100.0, "low": 5.0, "high": 5.0, "counts": [1.0]}
    assert read(tmp_path) == {"weights": [first, {"steps": 200.0, "low": 1.0, "high": 2.0, "counts": [1.0, 1.0]}]}
    monkeypatch.setattr(histogram_file, "_MOST_LINES", 4)
    assert len(read(tmp_path)["weights"]) == 1  # every second of eight lines
