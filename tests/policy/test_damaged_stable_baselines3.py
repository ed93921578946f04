"""``coach import sb3`` answers any other file in one line, and executes nothing of it."""

from __future__ import annotations

import io
import os
import pathlib
import pickle
import zipfile
from typing import Any

import numpy as np
import pytest

from rl_coach.coach import main
from rl_coach.policy import Policy
from tests.frameworks import FRAMEWORK

torch = pytest.importorskip("torch", reason="what it reads is PyTorch's: pip install torch")

PRESET = "tuned/CartPole_PPO"
NO_POLICY = "is not a file that model.save of Stable-Baselines3 has written: "
NOT_READ = f"{NO_POLICY}policy.pth is damaged, or contains other data than a dict of tensors"


def weights(units: int = 64) -> dict[str, torch.Tensor]:
    """What the policy of a pole has, by the names that Stable-Baselines3 gives."""
    shapes = {}
    for body, head, outputs in (("policy_net", "action_net", 2), ("value_net", "value_net", 1)):
        shapes[f"mlp_extractor.{body}.0"] = (units, 4)
        shapes[f"mlp_extractor.{body}.2"] = (units, units)
        shapes[head] = (outputs, units)
    made = {}
    for number, (name, shape) in enumerate(shapes.items()):
        made[f"{name}.weight"] = torch.full(shape, 0.01 * number)
        made[f"{name}.bias"] = torch.zeros(shape[:1])
    return made


def file_of(content: Any) -> bytes:
    """What PyTorch writes for this content."""
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


def archive(directory: pathlib.Path, policy: bytes, name: str = "policy.pth") -> pathlib.Path:
    path = directory / "model.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("data", "{}")
        written.writestr(name, policy)
    return path


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def imported(file: pathlib.Path) -> int:
    return main(["import", "sb3", str(file), "-p", PRESET, "-f", FRAMEWORK.name, "-e", "imported"])


def refused(file: pathlib.Path, expected: str, capsys: Any) -> None:
    """The import ends with one line and leaves no experiment."""
    capsys.readouterr()
    assert imported(file) == 2
    (line,) = (one for one in capsys.readouterr().err.splitlines() if "model.zip" in one)
    assert expected in line
    directory = file.parent / "experiments" / "imported"
    assert not directory.exists() or not any(directory.iterdir())


def test_a_whole_file_is_taken(tmp_path):
    assert imported(archive(tmp_path, file_of(weights()))) == 0
    (experiment,) = (tmp_path / "experiments" / "imported").iterdir()
    assert Policy.load(experiment).act(np.zeros(4, np.float32)) in (0, 1)


def test_a_missing_file_is_named(tmp_path, capsys):
    refused(tmp_path / "model.zip", "model.zip' cannot be read: No such file or directory", capsys)


class Attack:
    """Pickled, it makes a directory where it is loaded."""

    def __reduce__(self):
        return os.mkdir, ("executed",)


@pytest.mark.parametrize(
    "policy",
    [
        b"",
        b"no format of PyTorch",
        file_of(weights())[:5000],
        file_of(weights()).replace(b"storage", b"stora_e"),
        pickle.dumps(weights()),
        pickle.dumps({"a": Attack()}),
        file_of({"a": Attack()}),
        file_of([1, 2]),
        file_of({"mlp_extractor.policy_net.0.weight": 3.0}),
    ],
    ids=["empty", "text", "cut", "renamed", "pickle", "attack", "attack_in_pth", "list", "numbers"],
)
def test_a_damaged_policy_is_refused(policy, tmp_path, capsys):
    refused(archive(tmp_path, policy), NOT_READ, capsys)
    assert not (tmp_path / "executed").exists()


def test_a_damaged_archive_is_refused(tmp_path, capsys):
    file = archive(tmp_path, file_of(weights()))
    whole = file.read_bytes()
    start = whole.index(b"policy.pth") + len(b"policy.pth")
    damaged = [whole[:300], b"", b"text", whole[: start + 20] + bytes(40) + whole[start + 60 :]]
    for content in damaged:
        file.write_bytes(content)
        refused(file, NO_POLICY, capsys)


def test_an_archive_of_other_things_is_refused(tmp_path, capsys):
    refused(archive(tmp_path, b"", "a.txt"), "it contains no policy.pth", capsys)


def test_other_shapes_and_names_are_refused(tmp_path, capsys):
    refused(archive(tmp_path, file_of(weights(32))), "has layers 4x32 32 32x32 32 32x1 1 4x32", capsys)
    transposed = weights() | {"action_net.weight": torch.zeros(64, 2)}
    refused(archive(tmp_path, file_of(transposed)), "but network 'main' of the preset has 4x64 64 64x64 64", capsys)
    deep = weights() | {"action_net.weight": torch.zeros(2, 64, 1)}
    refused(archive(tmp_path, file_of(deep)), "has layers 4x64 64 64x64 64", capsys)
    less = {name: array for name, array in weights().items() if not name.startswith("action_net")}
    refused(archive(tmp_path, file_of(less)), "has no weights 'action_net', which the preset's agent needs", capsys)
    refused(archive(tmp_path, file_of({1: torch.zeros(2)})), "has no weights for the agent's head", capsys)
