from __future__ import annotations

import os

import pytest

from rl_coach.runs import annotations as run_annotations
from rl_coach.runs.annotations import Annotation, move_to_trash, take_back
from rl_coach.utils import CoachError


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "CartPole" / "run" / "worker_0.csv"
    path.parent.mkdir(parents=True)
    path.write_text("Episode #\n1\n")
    return path


def test_what_is_said_is_kept_beside_the_run(run):
    assert run_annotations.read(run) == Annotation()
    run_annotations.write(run, {"name": " the  good\none ", "tags": ["a", " b ", "a", ""], "note": "x\ny"})
    run_annotations.write(run, {"archived": True})
    assert run_annotations.read(run) == Annotation("the good one", ("a", "b"), "x\ny", True)
    other = run.with_name("worker_1.csv")
    run_annotations.write(other, {"note": "second"})
    assert run_annotations.read(run).name == "the good one" and run_annotations.read(other).note == "second"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"worker_0": 3}', '{"worker_0": {"tags": "ab", "archived": "yes"}}'])
def test_what_is_damaged_says_nothing(run, text):
    (run.parent / run_annotations.ANNOTATIONS_FILE).write_text(text)
    assert run_annotations.read(run) == Annotation()


def test_only_what_a_run_has_can_be_said(run):
    with pytest.raises(CoachError, match="no 'colour'"):
        run_annotations.write(run, {"colour": "red"})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_one_line(run):
    run.parent.chmod(0o500)
    with pytest.raises(CoachError, match="cannot be written"):
        run_annotations.write(run, {"note": "x"})


def test_the_trash_gives_back(run, tmp_path):
    moved = move_to_trash([run.parent], tmp_path)
    assert not run.exists() and moved[0][1].is_relative_to(tmp_path / ".trash")
    assert (moved[0][1] / run.name).read_text() == "Episode #\n1\n"
    run.parent.mkdir(parents=True)
    with pytest.raises(CoachError, match="exists again"):
        take_back(moved)
    run.parent.rmdir()
    take_back(moved)
    assert run.is_file()


def test_nothing_outside_is_moved_and_what_was_moved_comes_back(run, tmp_path):
    outside = tmp_path.parent / "outside"
    for path in (outside, tmp_path, tmp_path / ".." / "outside"):
        with pytest.raises(CoachError, match="is not below"):
            move_to_trash([run.parent, path], tmp_path)
        assert run.is_file()
    with pytest.raises(CoachError, match="cannot be moved"):
        move_to_trash([run.parent, tmp_path / "missing"], tmp_path)
    assert run.is_file()
