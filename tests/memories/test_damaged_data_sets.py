"""Damaged files of data sets, through the command: each is read, or refused in one line."""

import json
import os
import pathlib
import pickle
import random
import zipfile

import numpy as np
import pytest

from rl_coach.coach import main
from rl_coach.core_types import Transition
from rl_coach.memories import data_set_files
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity
from tests.memories.test_coach_pickles import coach, pickled  # noqa: F401

BAD_INPUT = 2
TYPES = (b"O8", b"V8", b"f8", b"i4", b"M8[ns]", b"U3", b"c16")


def saved_memory(tmp_path):
    memory = EpisodicExperienceReplay((MemoryGranularity.Transitions, 100))
    for step in range(20):
        state, following = ({"observation": np.full(3, step + after, np.float32)} for after in (0, 1))
        info = {"all_action_probabilities": np.array([0.5, 0.5])}
        memory.store(Transition(state, step % 2, 1.0, following, game_over=step % 5 == 4, info=info))
    memory.save(tmp_path / "memory.npz")
    return tmp_path / "memory.npz"


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with flipped bits, other bytes, another type of numbers, or without its end."""
    kind, found = rng.randrange(4), bytearray(content)
    if kind == 0:
        return content[: rng.randrange(len(content))]
    if kind == 1:
        return content.replace(rng.choice([b"f4", b"f8", b"i8", b"u1"]), rng.choice(TYPES), rng.choice([1, -1]))
    for _ in range(rng.choice([1, 3, 20])):
        place = rng.randrange(len(found))
        found[place] = found[place] ^ (1 << rng.randrange(8)) if kind == 2 else rng.choice(b"\0\xff\x7f\x80rRb0.")
    return bytes(found)


def require_an_answer(place, capsys) -> None:
    """``coach dataset info`` prints what the file holds, or one line."""
    code = main(["dataset", "info", str(place)])
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("warning: ")]
    assert code in (0, BAD_INPUT) and len(lines) == (code == BAD_INPUT), lines


@pytest.mark.parametrize("form", ["csv", "npz", "p", "pkl"])
def test_a_damaged_file_is_read_or_refused_in_one_line(form, coach, tmp_path, capsys):  # noqa: F811
    rng, memory = random.Random(form), saved_memory(tmp_path)
    data_set_files.write(data_set_files.read(memory), tmp_path / "data.csv")
    contents = {
        "csv": [tmp_path / "data.csv"],
        "npz": [memory],
        "p": [pickled(coach, tmp_path, as_episodes=True, stacked=True, protocol=number) for number in (0, 2)],
        "pkl": [pickled(coach, tmp_path, as_episodes=False, protocol=number) for number in (4, 5)],
    }
    contents = {name: [pathlib.Path(file).read_bytes() for file in files] for name, files in contents.items()}
    for number in range(100):
        place = tmp_path / f"damaged.{form}"
        place.write_bytes(damaged(contents[form][number % len(contents[form])], rng))
        require_an_answer(place, capsys)


WRONG = (None, -1, 10**12, 2.5, True, "x", [], {}, {"__array__": "array_0"}, {"__constant__": ["array_0", [10**9]]})


def leaves(tree, path=()):
    """The paths of the values of a JSON tree."""
    for key, value in tree.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))


@pytest.mark.parametrize("value", WRONG, ids=str)
def test_a_saved_memory_with_wrong_content_is_read_or_refused_in_one_line(value, tmp_path, capsys):
    """The file itself is whole: another program wrote it."""
    memory = saved_memory(tmp_path)
    with zipfile.ZipFile(memory) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(str(np.load(memory)["tree"]))
    for path in leaves(tree):
        changed = json.loads(json.dumps(tree))
        inner = changed
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        place = tmp_path / "wrong.npz"
        with zipfile.ZipFile(place, "w") as archive:
            for name, content in members.items():
                with archive.open(name, "w") as file:
                    if name == "tree.npy":
                        np.save(file, np.asarray(json.dumps(changed)))
                    else:
                        file.write(content)
        require_an_answer(place, capsys)


def test_a_damaged_data_set_of_minari_is_read_or_refused_in_one_line(tmp_path, monkeypatch, capsys):
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    data_set_files.write(data_set_files.read(saved_memory(tmp_path)), "minari:case/one-v0")
    rng, files = random.Random(1), [path for path in (tmp_path / "minari").rglob("*") if path.is_file()]
    contents = {path: path.read_bytes() for path in files}
    for number in range(60):
        for path, content in contents.items():
            path.write_bytes(content)
        path = files[number % len(files)]
        path.write_bytes(damaged(contents[path], rng) if contents[path] else b"")
        require_an_answer("minari:case/one-v0", capsys)


@pytest.mark.parametrize("form", ["csv", "npz", "p"])
def test_pipes_devices_and_directories_are_refused(form, tmp_path, capsys):
    """Reading a pipe or a device may never end."""
    places = [tmp_path / f"{name}.{form}" for name in ("pipe", "device", "directory")]
    os.mkfifo(places[0])
    places[1].symlink_to("/dev/zero")
    places[2].mkdir()
    for place in places:
        assert main(["dataset", "info", str(place)]) == BAD_INPUT
        assert capsys.readouterr().err == f"coach: cannot read '{place}': it is not a regular file\n"
    assert main(["dataset", "info", f"a\0.{form}"]) == BAD_INPUT


HEADER = "episode_id,action,reward,state_feature_0"


@pytest.mark.parametrize(
    "content, message",
    [
        (f"{HEADER}\n0,0,1,0\n0,0,1e39,0\n0,0,1,0\n", "the reward of step 1 is not finite as float32"),
        (f"{HEADER}\n0,0,1,1e300\n0,0,1,0\n", "the state 'observation' of step 0 is not finite as float32"),
        (",".join(map(str, range(200_000))) + "\n" + "1," * 199_999 + "1\n", "has no column 'episode_id'"),
    ],
)
def test_odd_tables_are_refused_in_one_line(content, message, tmp_path, capsys):
    (tmp_path / "odd.csv").write_text(content)
    assert main(["dataset", "info", str(tmp_path / "odd.csv")]) == BAD_INPUT
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_a_data_set_that_minari_cannot_hold_leaves_nothing(coach, tmp_path, monkeypatch, capsys):  # noqa: F811
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    step, place = coach.Transition(), tmp_path / "large.p"
    observation = {"observation": np.ones(2, np.float32)}
    step.state, step.next_state, step.action, step.reward = observation, observation, 2**63, 1.0
    step.game_over, step.info = True, {}
    place.write_bytes(pickle.dumps([step], protocol=2))
    assert main(["dataset", "convert", str(place), "minari:case/large-v0"]) == BAD_INPUT
    assert "cannot write the Minari data set 'case/large-v0'" in capsys.readouterr().err
    assert not (tmp_path / "minari" / "case" / "large-v0").exists()
