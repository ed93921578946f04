"""Files that others damaged or made up: one line that names the file, nothing read beyond what it holds."""

from __future__ import annotations

import json
import os
import pathlib
import struct

import numpy as np
import pytest

from rl_coach.checkpoint import (
    ARRAYS_FILE,
    MANIFEST_FILE,
    best_checkpoint,
    find_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from rl_coach.coach import BAD_INPUT, main
from rl_coach.policy import Policy
from rl_coach.utilities.safe_reading import read_json
from rl_coach.utils import CoachError

pytestmark = pytest.mark.faults

GARBAGE = [b"", b"\x00\xff\xfe", b"[]", b"null", b"{", b"[" * 100_000, b"..", b"/etc", b"a/b", b"x" * 5000, b"a\nb"]


@pytest.fixture
def checkpoint(tmp_path) -> pathlib.Path:
    return pathlib.Path(save_checkpoint(tmp_path / "checkpoint", "1_Step-10.ckpt", {"a": np.ones(3)}, {"steps": 10}))


def assert_one_line(caught, name):
    assert "\n" not in str(caught.value) and name in str(caught.value)


@pytest.mark.parametrize("garbage", GARBAGE)
def test_the_file_that_names_the_newest_checkpoint(checkpoint, garbage):
    (checkpoint.parent / ".coach_checkpoint").write_bytes(garbage)
    try:
        assert find_checkpoint(checkpoint.parent) == str(checkpoint)
    except CoachError as error:
        assert ".coach_checkpoint" in str(error)


@pytest.mark.parametrize("garbage", GARBAGE)
def test_the_file_that_names_the_best(checkpoint, garbage):
    (checkpoint.parent / ".best_checkpoint").write_bytes(garbage)
    try:
        best_checkpoint(checkpoint.parent)
    except CoachError as error:
        assert ".best_checkpoint" in str(error)


@pytest.mark.parametrize(
    "garbage",
    [
        *GARBAGE, b"{}", b'{"format_version": "1", "files": {}}', b'{"format_version": 1, "files": []}',
        b'{"format_version": 1, "files": {"/etc/passwd": {"size": 1, "sha256": ""}}}',
        b'{"format_version": 1, "files": {"../x": {"size": 1, "sha256": ""}}}',
        b'{"format_version": 1, "files": {"arrays.safetensors": 1, "state.json": 2}}',
    ],
)  # fmt: skip
def test_manifests(checkpoint, garbage):
    (checkpoint / MANIFEST_FILE).write_bytes(garbage)
    with pytest.raises(CoachError) as caught:
        load_checkpoint(checkpoint)
    assert_one_line(caught, MANIFEST_FILE)


def forge(checkpoint: pathlib.Path, content: bytes) -> None:
    """Put other arrays there, with a manifest that says that this is right."""
    import hashlib

    (checkpoint / ARRAYS_FILE).write_bytes(content)
    manifest = json.loads((checkpoint / MANIFEST_FILE).read_text())
    manifest["files"][ARRAYS_FILE] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (checkpoint / MANIFEST_FILE).write_text(json.dumps(manifest))


def safetensors(header: object, length: int | None = None) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text


@pytest.mark.parametrize(
    "content",
    [
        b"", b"abc", safetensors({}, length=2**60), safetensors([]), safetensors({"a": 3}), safetensors({"b": {}}),
        safetensors({"a": {"dtype": "F64", "shape": [10**15], "data_offsets": [0, 8 * 10**15]}}),
        safetensors({"a": {"dtype": "F64", "shape": [10**15], "data_offsets": [0, 0]}}),
        safetensors({"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 8]}}) + b"12345678",
        safetensors({"a": {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]}}) + b"12345678",
        safetensors({"a": {"dtype": "F64", "shape": [1], "data_offsets": [-8, 0]}}) + b"12345678",
    ],
)  # fmt: skip
def test_arrays_that_claim_what_is_not_there(checkpoint, content):
    forge(checkpoint, content)
    with pytest.raises(CoachError) as caught:
        load_checkpoint(checkpoint)
    assert_one_line(caught, checkpoint.name)


def test_names_that_are_too_long():
    for read in (find_checkpoint, Policy.load):
        with pytest.raises(CoachError) as caught:
            read("n" * 300)
        assert_one_line(caught, "no checkpoint at 'nnn")


@pytest.mark.parametrize("kind", ["device", "pipe", "directory", "loop"])
def test_what_is_no_regular_file(tmp_path, kind):
    file = tmp_path / "file.json"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    else:
        file.symlink_to("/dev/zero" if kind == "device" else file)
    with pytest.raises(CoachError) as caught:
        read_json(file)
    assert_one_line(caught, "file.json")


def test_size_before_reading(tmp_path):
    file = tmp_path / "file.json"
    with open(file, "wb") as sparse:
        sparse.truncate(10**12)
    with pytest.raises(CoachError, match="has 1,000,000,000,000 bytes"):
        read_json(file)


RECORDS = [
    b'{"arguments": [], "evaluate_only": false, "resumed": []}',
    b'{"arguments": {"preset": 5}, "evaluate_only": false, "resumed": []}',
]


@pytest.mark.parametrize("garbage", [*GARBAGE, *RECORDS])
def test_records_of_experiments(tmp_path, garbage, capsys):
    (tmp_path / "experiment.json").write_bytes(garbage)
    assert main(["--resume", str(tmp_path)]) == BAD_INPUT
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "experiment.json" in error


@pytest.mark.parametrize("garbage", [*GARBAGE, b"{}", b'{"format_version": 1, "sha256": "", "policy": {}}'])
def test_policies(tmp_path, garbage):
    (tmp_path / "policy.json").write_bytes(garbage)
    with pytest.raises(CoachError) as caught:
        Policy.load(tmp_path)
    assert_one_line(caught, "policy.json")


def test_a_policy_that_is_a_link_to_a_device(tmp_path):
    (tmp_path / "policy.json").symlink_to("/dev/zero")
    with pytest.raises(CoachError, match=r"not a regular file|no policy"):
        Policy.load(tmp_path)


LONG = "a" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p", "directory.py"], ["-p", "."], ["-p", ".."], ["-p", "/"], ["-p", "binary.py"], ["-p", "latin.py"],
        ["-p", LONG], ["-p", f"{LONG}.py"], ["-p", "a\0.py"], ["-p", "/dev/null"], ["-p", "two\nlines"],
        ["-p", "raises.py"], ["-p", "deep.py"], ["-p", "CartPole_PG", "-e", "a/../../x"],
        ["-p", "CartPole_PG", "-e", LONG], ["-p", "CartPole_PG", "-et", "classes.py:Other"],
        ["-p", "CartPole_PG", "-et", "classes.py:number"], ["-p", "CartPole_PG", "-et", "classes.py:fails"],
        ["-p", "CartPole_PG", "-et", "binary.py:x"], ["-p", "CartPole_PG", "-et", "os:path"],
        ["-p", "CartPole_PG", "-et", "rl_coach.exploration_policies.e_greedy:EGreedyParameters"],
        ["-p", "CartPole_PG", "-ept", "rl_coach.environments.gym_environment:Atari"],
        ["-p", "CartPole_PG", "-ept", "classes.py:Other"], ["-p", "CartPole_PG", "-ept", "raises.py:x"],
        ["-p", "CartPole_PG", "-ept", "..:x"], ["-p", "CartPole_PG", "-ept", f"{LONG}.py:x"],
    ],
    ids=lambda arguments: " ".join(arguments)[:50].replace("\0", "0"),
)  # fmt: skip
def test_mistakes_on_the_command_line(tmp_path, monkeypatch, capsys, arguments):
    work = tmp_path / "work"
    (work / "directory.py").mkdir(parents=True)
    (work / "binary.py").write_bytes(bytes(range(256)))
    (work / "latin.py").write_bytes(b"a = '\xff'\n")
    (work / "raises.py").write_text("raise RuntimeError('two\\nlines')\n")
    (work / "deep.py").write_text("from rl_coach.schedules import LinearSchedule\n\nLinearSchedule(1, 0, 0)\n")
    (work / "classes.py").write_text(
        "class Other:\n    def __init__(self, a): pass\n\nnumber = 3\n\ndef fails():\n    return 1 / 0\n"
    )
    monkeypatch.chdir(work)
    assert main(arguments) == BAD_INPUT
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "Traceback" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["work"]
    if arguments[-1] in ("raises.py", "deep.py"):
        assert f"{arguments[-1]}:{3 if 'deep' in arguments[-1] else 1}: " in error
    if arguments[-1] == "classes.py:fails":
        assert "classes.py:7: ZeroDivisionError" in error
