"""Modules that others import only when they use them."""

from __future__ import annotations

import importlib
import sys

import pytest

from rl_coach.utilities.dynamic_import import hidden_modules, imported_at_first_use, short_dynamic_import
from rl_coach.utils import CoachError


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """``drawing`` needs ``pictures``, which only one of its functions uses."""
    (tmp_path / "pictures.py").write_text("colour = 'red'")
    (tmp_path / "drawing.py").write_text("import pictures as p\n\ndef draw():\n    return p.colour\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("pictures", "drawing"):
        sys.modules.pop(name, None)


def test_a_module_is_imported_when_it_is_used(modules):
    with imported_at_first_use("pictures"):
        drawing = importlib.import_module("drawing")
    assert "pictures" not in sys.modules
    assert drawing.draw() == "red" and "pictures" in sys.modules


def test_others_import_it_as_always(modules):
    with imported_at_first_use("pictures"):
        drawing = importlib.import_module("drawing")
    pictures = importlib.import_module("pictures")
    pictures.colour = "blue"
    assert drawing.draw() == "blue" and type(pictures) is type(sys)


def test_one_that_is_used_while_others_are_imported_is_imported_then(modules, tmp_path):
    (tmp_path / "drawing.py").write_text("import pictures\n\nfirst = pictures.colour\n")
    with imported_at_first_use("pictures"):
        assert importlib.import_module("drawing").first == "red"
    assert sys.modules["pictures"].colour == "red" and type(sys.modules["pictures"]) is type(sys)


def test_one_that_is_hidden_is_missing_until_then(modules):
    with hidden_modules("pictures"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("drawing")
    assert importlib.import_module("drawing").draw() == "red"


def test_modules_of_the_current_directory_are_found_last(tmp_path, monkeypatch):
    (tmp_path / "found_here.py").write_text("import beside_it\nnumber = beside_it.number\n")
    (tmp_path / "beside_it.py").write_text("number = 7\n")
    (tmp_path / "csv.py").write_text("mine = True\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert short_dynamic_import("found_here:number") == 7
    assert sys.path[-1] == str(tmp_path) and short_dynamic_import("csv:DictReader")
    for missing in ("not_here_either", "found_here.sub"):
        with pytest.raises(ModuleNotFoundError, match=missing):
            short_dynamic_import(f"{missing}:number")
    for name in ("found_here", "beside_it"):
        sys.modules.pop(name, None)


def test_a_module_that_fails_is_one_line(tmp_path):
    file = tmp_path / "fails.py"
    file.write_text("1 / 0\n")
    with pytest.raises(CoachError, match=r"fails.py:1: ZeroDivisionError: division by zero"):
        short_dynamic_import(f"{file}:number")


def test_one_that_is_imported_already_stays(modules):
    pictures = importlib.import_module("pictures")
    with imported_at_first_use("pictures"):
        assert importlib.import_module("drawing").p is pictures
    with hidden_modules("pictures"):
        assert importlib.import_module("pictures") is pictures
    assert sys.modules["pictures"] is pictures
