from __future__ import annotations

import json
import os
import pathlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors.numpy import load_file

from rl_coach import checkpoint
from rl_coach.checkpoint import (
    CheckpointFilenameParser,
    CheckpointState,
    CheckpointStateFile,
    CheckpointStateReader,
    CheckpointStateUpdater,
    SingleCheckpoint,
    _filter_checkpoint_files,
    checkpoint_name,
    find_checkpoint,
    get_checkpoint_state,
    keep_checkpoints,
    load_checkpoint,
    mark_best,
    save_checkpoint,
)
from rl_coach.saver import Saver, SaverCollection
from rl_coach.utils import CoachError

STATE = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "rng": np.random.default_rng(3).bit_generator.state,
    "nested": {"list": [1, None, "text", np.array([True, False])], "a/b": np.zeros(0), "scalar": np.array(2.5)},
    "nested/list": 1e-300,
}


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def save(directory, number=0, state=STATE):
    return save_checkpoint(directory, f"{number}_Step-{number * 10}.ckpt", state, {"graph": "g"})


def test_what_is_saved_is_loaded(tmp_path):
    state, manifest = load_checkpoint(save(tmp_path))
    assert same(STATE, state)
    assert manifest["graph"] == "g" and manifest["format_version"] == checkpoint.FORMAT_VERSION
    state["weights"][0, 0] = 7  # loaded arrays can be written to


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | arrays_of.arrays(
        st.sampled_from([np.bool_, np.uint8, np.int64, np.float16, np.float32, np.float64]),
        arrays_of.array_shapes(min_dims=0, max_side=3),
        elements={"allow_nan": False},
    )
)
keys = st.text(min_size=1, max_size=4).filter(lambda key: key != "__array__")


@settings(max_examples=25, deadline=None)
@given(state=st.dictionaries(keys, leaves | st.lists(leaves, max_size=2) | st.dictionaries(keys, leaves, max_size=2)))
def test_any_state_of_arrays_and_plain_values_comes_back(tmp_path_factory, state):
    assert same(state, load_checkpoint(save(tmp_path_factory.mktemp("any"), state=state))[0])


def test_arrays_that_are_not_contiguous_or_of_another_byte_order(tmp_path):
    array = np.arange(12, dtype=">f8").reshape(3, 4).T[::2]
    loaded = load_checkpoint(save(tmp_path, state={"a": array}))[0]["a"]
    assert np.array_equal(loaded, array) and loaded.dtype == np.float64


def test_the_arrays_are_a_safetensors_file(tmp_path):
    arrays = load_file(os.path.join(save(tmp_path), checkpoint.ARRAYS_FILE))
    assert np.array_equal(arrays["weights"], STATE["weights"])


@pytest.mark.parametrize(
    "state, message",
    [
        ({"a": {"b": object()}}, "'a/b' is a object"),
        ({"a": [{1: 2}]}, "'a/0' has keys"),
        ({"names": np.array(["x"])}, "'names' is an array of <U1"),
    ],
)
def test_what_cannot_be_saved_is_named_and_leaves_nothing(tmp_path, state, message):
    with pytest.raises(TypeError, match=message):
        save(tmp_path, state=state)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", [checkpoint.ARRAYS_FILE, checkpoint.STATE_FILE])
def test_truncated_changed_and_missing_files_are_named(tmp_path, name):
    path = pathlib.Path(save(tmp_path)) / name
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(CoachError, match=f"{name}' has {len(content) - 1} bytes, but its manifest says {len(content)}"):
        load_checkpoint(path.parent)
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(CoachError, match=f"{name}' was changed"):
        load_checkpoint(path.parent)
    path.unlink()
    with pytest.raises(CoachError, match=f"{name}' is missing"):
        load_checkpoint(path.parent)


def test_a_damaged_or_newer_manifest_is_an_error(tmp_path):
    manifest = pathlib.Path(save(tmp_path)) / checkpoint.MANIFEST_FILE
    good = json.loads(manifest.read_text())
    manifest.write_text("{")
    with pytest.raises(CoachError, match="damaged"):
        load_checkpoint(manifest.parent)
    manifest.write_text(json.dumps({**good, "format_version": 99}))
    with pytest.raises(CoachError, match="format 99"):
        load_checkpoint(manifest.parent)
    manifest.write_text(json.dumps({**good, "files": {}}))
    with pytest.raises(CoachError, match="does not list"):
        load_checkpoint(manifest.parent)
    manifest.unlink()
    with pytest.raises(CoachError, match="not a checkpoint: it has no manifest"):
        load_checkpoint(manifest.parent)


class Killed(BaseException):
    """Ends the process, as far as the code under test can tell."""


def test_a_kill_at_any_system_call_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    """Each call that reaches the disk is the last one in turn; nothing that cleans up runs after a kill."""
    calls = {"mkdir": os.mkdir, "fsync": os.fsync, "replace": os.replace}
    monkeypatch.setattr(checkpoint.shutil, "rmtree", lambda *arguments, **keywords: None)
    monkeypatch.setattr(pathlib.Path, "unlink", lambda *arguments, **keywords: None)
    survived = 0
    for last_call in range(12):
        directory = tmp_path / str(last_call)
        save(directory, 0)
        done = iter(range(last_call))

        def dying(call, done=done):
            def run(*arguments, **keywords):
                if next(done, None) is None:
                    raise Killed
                return call(*arguments, **keywords)

            return run

        for name, call in calls.items():
            monkeypatch.setattr(checkpoint.os, name, dying(call))
        try:
            save(directory, 1)
            survived += 1
        except Killed:
            pass
        for name, call in calls.items():
            monkeypatch.setattr(checkpoint.os, name, call)
        assert same(STATE, load_checkpoint(find_checkpoint(directory))[0])
        assert all(c.num in (0, 1) for c in CheckpointStateReader(str(directory)).get_all())
        for found in CheckpointStateReader(str(directory)).get_all():
            load_checkpoint(directory / found.name)
    assert 0 < survived < 12


def test_leftovers_of_a_killed_save_are_removed_by_the_next_one(tmp_path):
    (tmp_path / ".saving-1").mkdir()
    save(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".coach_checkpoint", "0_Step-0.ckpt"]


def test_a_failed_rename_leaves_nothing_half_written(tmp_path, monkeypatch):
    save(tmp_path, 0)

    def failing(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.os, "replace", failing)
    with pytest.raises(OSError):
        save(tmp_path, 1)
    assert sorted(os.listdir(tmp_path)) == [".coach_checkpoint", "0_Step-0.ckpt"]
    assert find_checkpoint(tmp_path).endswith("0_Step-0.ckpt")


def test_a_checkpoint_is_never_overwritten(tmp_path):
    save(tmp_path)
    with pytest.raises(FileExistsError):
        save(tmp_path)


def test_finding_a_checkpoint(tmp_path):
    directory = tmp_path / "checkpoint"
    for number in range(11):
        save(directory, number)
    newest = str(directory / "10_Step-100.ckpt")
    assert find_checkpoint(tmp_path) == newest
    assert find_checkpoint(directory) == newest
    assert find_checkpoint(directory / "2_Step-20.ckpt") == str(directory / "2_Step-20.ckpt")
    assert find_checkpoint(directory / "2_Step-20.ckpt" / "state.json") == str(directory / "2_Step-20.ckpt")
    (directory / ".coach_checkpoint").unlink()
    assert find_checkpoint(directory) == newest
    with pytest.raises(CoachError, match="no such file"):
        find_checkpoint(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CoachError, match="no checkpoint in"):
        find_checkpoint(tmp_path / "empty")


def test_the_newest_and_the_best_are_kept(tmp_path):
    for number in range(6):
        save(tmp_path, number)
    keep_checkpoints(tmp_path, 0)
    assert len(CheckpointStateReader(str(tmp_path)).get_all()) == 6
    mark_best(tmp_path, "1_Step-10.ckpt")
    keep_checkpoints(tmp_path, 2)
    assert [c.num for c in CheckpointStateReader(str(tmp_path)).get_all()] == [1, 4, 5]


class Weights(Saver):
    path = "main_level.agent.main.online"

    def save(self, sess, save_path):
        pathlib.Path(save_path).write_text("weights")
        return [save_path]


def test_what_savers_wrote_is_the_newest_checkpoint(tmp_path):
    """Programs for Coach save a collection under a checkpoint's name, and then name it in the state file."""
    updater = CheckpointStateUpdater(str(tmp_path))
    for number in range(3):
        name = f"{number}_Step-{10 * number}.ckpt"
        (written,) = SaverCollection(Weights()).save(None, str(tmp_path / name))
        assert written == str(tmp_path / f"{name}.main_level.agent.main.online")
        updater.update(SingleCheckpoint(number, name))
    for optional in (True, False):
        reader = CheckpointStateReader(str(tmp_path), checkpoint_state_optional=optional)
        assert reader.get_latest() == SingleCheckpoint(2, "2_Step-20.ckpt")
    # without a file that begins with the name and a dot, there is no such checkpoint
    os.remove(written)
    (tmp_path / "2_Step-20.ckpting").touch()
    assert CheckpointStateReader(str(tmp_path), checkpoint_state_optional=False).get_latest() is None
    keep_checkpoints(tmp_path, 1)
    assert not list(tmp_path.glob("0_Step-0.ckpt*"))


@pytest.mark.parametrize(
    "filename, number, name",
    [
        ("12_Step-340.ckpt", 12, "12_Step-340.ckpt"),
        ("12_Step-340.ckpt.meta", 12, "12_Step-340.ckpt"),
        ("model.ckpt-7", 7, "model.ckpt-7"),
        ("model.ckpt", None, None),
        (".saving-12_Step-340.ckpt", None, None),
        ("model.onnx", None, None),
    ],
)
def test_the_number_of_a_checkpoint(filename, number, name):
    parsed = CheckpointFilenameParser().parse(filename)
    assert (parsed and (parsed.num, parsed.name)) == (None if name is None else (number, name))


def test_the_files_of_checkpoints_are_counted_once():
    files = ["10_Step-9.ckpt.index", "2_Step-5.ckpt.index", "2_Step-5.ckpt.meta", "checkpoint", "model.onnx"]
    assert [str(one) for one in _filter_checkpoint_files(files)] == ["2_Step-5.ckpt", "10_Step-9.ckpt"]
    assert [one.num for one in _filter_checkpoint_files(files, sort_by_num=False)] == [10, 2]


def test_the_state_file_of_coach(tmp_path):
    state_file = CheckpointStateFile(str(tmp_path))
    assert not state_file.exists() and state_file.read() is None
    assert get_checkpoint_state(str(tmp_path)) is None
    updater = CheckpointStateUpdater(str(tmp_path))
    for number in range(2):
        (tmp_path / f"{number}_Step-5.ckpt").mkdir()
        updater.update(SingleCheckpoint(number, f"{number}_Step-5.ckpt"))
    assert (tmp_path / ".coach_checkpoint").read_text() == "1_Step-5.ckpt"
    assert state_file.read() == SingleCheckpoint(1, "1_Step-5.ckpt")
    state = get_checkpoint_state(str(tmp_path), all_checkpoints=True)
    assert isinstance(state, CheckpointState)
    assert [c.num for c in state.all_checkpoints] == [0, 1]
    assert state.last_checkpoint.num == 1
    assert state.model_checkpoint_path == str(tmp_path / "1_Step-5.ckpt")
    assert len(get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths) == 1


def test_without_a_state_file_a_reader_may_insist_on_one(tmp_path):
    (tmp_path / "3_Step-5.ckpt").mkdir()
    assert CheckpointStateReader(str(tmp_path)).get_latest().num == 3
    insisting = CheckpointStateReader(str(tmp_path), checkpoint_state_optional=False)
    assert insisting.get_latest() is None and insisting.get_all() == []
    CheckpointStateUpdater(str(tmp_path)).update(SingleCheckpoint(3, "3_Step-5.ckpt"))
    assert insisting.get_all() == [SingleCheckpoint(3, "3_Step-5.ckpt")]


@pytest.mark.parametrize("unit", ["Step", "Epoch", "Update"])
def test_a_checkpoint_is_named_after_what_advanced(unit, tmp_path):
    name = checkpoint_name(12, 3400, unit)
    assert name == f"12_{unit}-3400.ckpt" and CheckpointFilenameParser().parse(name) == SingleCheckpoint(12, name)
    path = save_checkpoint(tmp_path, name, {"a": 1}, {})
    assert find_checkpoint(tmp_path) == path
