"""``make docs``: the site builds without a warning, and the reference has the public classes on it."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed: pip install '.[docs]'")
def test_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for page, name in {
        "coach": "CoachInterface",
        "agents": "DQNAgentParameters",
        "memories": "ExperienceReplayParameters",
        "filters": "ObservationStackingFilter",
        "exploration": "EGreedyParameters",
        "policy": "Policy",
    }.items():
        assert name in (tmp_path / "site" / "reference" / page / "index.html").read_text(), page
    for page in ("tutorials/compare_settings", "from_stable_baselines3", "troubleshooting"):
        assert (tmp_path / "site" / page / "index.html").exists(), page
    agents = (tmp_path / "site" / "reference" / "agents" / "index.html").read_text()
    parts = [agents.index(f'<h2 id="{part}">') for part in ("to-call", "to-override", "internal")]
    assert parts == sorted(parts)
    benchmarks = (tmp_path / "site" / "benchmarks" / "index.html").read_text()
    assert "images/curves/tuned-CartPole_PPO.svg" in benchmarks
    assert (tmp_path / "site" / "images" / "curves" / "tuned-CartPole_PPO.svg").exists()


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*"):
        if page.suffix in (".md", ".ipynb"):
            assert f"- {page.relative_to(ROOT / 'docs').as_posix()}\n" in navigation, page
