import pathlib

import pytest

from rl_coach.saver import Saver, SaverCollection


class Text(Saver):
    """Writes a text of its own; two of one path are written one after the other."""

    def __init__(self, path, text):
        self._path = path
        self.text = text

    @property
    def path(self):
        return self._path

    def save(self, sess, save_path):
        pathlib.Path(save_path).write_text(self.text)
        return [save_path]

    def restore(self, sess, restore_path):
        self.text = pathlib.Path(restore_path).read_text()

    def merge(self, other):
        self.text += other.text


def texts(savers):
    return {saver.path: saver.text for saver in savers}


def test_savers_of_one_path_are_one():
    savers = SaverCollection(Text("a", "1"))
    savers.add(Text("a", "2"))
    savers.add(Text("b", "3"))
    assert texts(savers) == {"a": "12", "b": "3"}
    other = SaverCollection(Text("b", "4"))
    other.add(Text("", "5"))
    savers.update(other)
    assert texts(savers) == {"a": "12", "b": "34", "": "5"}


def test_what_is_saved_is_restored(tmp_path):
    prefix = str(tmp_path / "checkpoint-01")
    savers = SaverCollection(Text("main-network", "weights"))
    savers.add(Text("", "all"))
    assert savers.save(None, prefix) == [f"{prefix}.main-network", prefix]
    restored = SaverCollection(Text("main-network", ""))
    restored.restore(None, prefix)
    assert texts(restored) == {"main-network": "weights"}


def test_a_saver_that_does_not_save_says_so():
    with pytest.raises(NotImplementedError, match="Saver does not define its path"):
        SaverCollection(Saver())
