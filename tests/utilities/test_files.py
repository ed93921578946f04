import os
import pathlib

import numpy as np
import pytest

from rl_coach.utilities import files
from rl_coach.utilities.files import check_file, read_data, replaced, summary, write_data, write_synced, write_text
from rl_coach.utilities.plain_data import UnsavableError
from rl_coach.utils import CoachError


def test_a_file_is_replaced_whole(tmp_path):
    write_text(tmp_path / "a", "old ü")
    write_text(tmp_path / "a", "new", synced=False)
    assert (tmp_path / "a").read_text() == "new" and os.listdir(tmp_path) == ["a"]


def test_a_failure_leaves_what_was_there(tmp_path):
    write_text(tmp_path / "a", "old")
    with pytest.raises(RuntimeError), replaced(tmp_path / "a") as file:
        file.write(b"half")
        raise RuntimeError
    assert (tmp_path / "a").read_text() == "old" and os.listdir(tmp_path) == ["a"]


def test_it_is_on_the_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(files.os, "fsync", lambda descriptor: calls.append("sync"))
    replace = os.replace
    monkeypatch.setattr(files.os, "replace", lambda *names: (calls.append("rename"), replace(*names)))
    write_text(tmp_path / "a", "text")
    assert calls == ["sync", "rename", "sync"]


def test_data_goes_through_a_file(tmp_path):
    write_data(tmp_path / "a.npz", {"mean": np.arange(3), "count": 2})
    back = read_data(tmp_path / "a.npz", "a state")
    assert back["mean"].tolist() == [0, 1, 2] and back["count"] == 2


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(UnsavableError):
        write_data(tmp_path / "a.npz", {"a": object()})
    assert os.listdir(tmp_path) == []
    with pytest.raises(CoachError, match=r"cannot write '.*a\.npz': No such file"):
        write_data(tmp_path / "none" / "a.npz", {})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CoachError, match=r"no file '.*gone\.npz'"):
        read_data(tmp_path / "gone.npz", "a state")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "damaged.npz").write_bytes(content)
    with pytest.raises(CoachError, match=r"damaged\.npz' is not a state, or it is damaged"):
        read_data(tmp_path / "damaged.npz", "a state")


def test_every_byte_is_checked(tmp_path):
    path: pathlib.Path = tmp_path / "model"
    expected = write_synced(path, [b"some", b"thing"])
    assert expected == summary(b"something")
    check_file(path, expected, "policy", "list")
    for content, message in [(b"somethin", "has 8 bytes, but its list says 9"), (b"Something", "was changed")]:
        path.write_bytes(content)
        with pytest.raises(CoachError, match=f"the policy's file '.*model' {message}"):
            check_file(path, expected, "policy", "list")
    path.unlink()
    with pytest.raises(CoachError, match=r"the policy's file '.*model' is missing"):
        check_file(path, expected, "policy", "list")
