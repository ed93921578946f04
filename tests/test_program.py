"""How programs are called that were installed with Coach."""

from __future__ import annotations

import sys

import pytest

from rl_coach.utils import program


@pytest.fixture
def installation(tmp_path, monkeypatch):
    """An interpreter in ``bin`` below the working directory, with a program ``coach`` beside it."""
    (tmp_path / "bin").mkdir()
    for name in ("python", "coach"):
        (tmp_path / "bin" / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_by_its_path_where_its_name_does_not_find_it(installation):
    assert program("coach") == "bin/coach"


def test_by_its_full_path_from_elsewhere(installation, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert program("coach") == str(installation / "bin" / "coach")


def test_by_its_name_where_that_finds_it(installation, monkeypatch):
    monkeypatch.setenv("PATH", str(installation / "bin"))
    assert program("coach") == "coach"


def test_by_its_path_where_its_name_finds_another(installation, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("other")
    (other / "coach").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(other))
    assert program("coach") == "bin/coach"


def test_by_its_name_where_it_is_not_installed(installation):
    assert program("dashboard") == "dashboard"
