"""Chunks arrive as they were sent, and nothing else arrives."""

from __future__ import annotations

import contextlib
import pickle

import msgpack
import numpy as np
import pytest

from rl_coach.core_types import Batch
from rl_coach.memories.backend import wire
from rl_coach.memories.backend.wire import Chunk, ChunkError, EncodedChunk, decode
from rl_coach.memories.columns import FrameStacks

ROWS = 5


def columns(**changes):
    rng = np.random.default_rng(0)
    settings = {
        "states": {"observation": rng.normal(size=(ROWS, 4)).astype(np.float32)},
        "actions": np.arange(ROWS),
        "rewards": rng.normal(size=ROWS),
        "game_overs": np.array([0, 0, 1, 0, 0], bool),
        "next_states": {"observation": rng.normal(size=(ROWS, 4)).astype(np.float32)},
        "terminateds": np.zeros(ROWS, bool),
        **changes,
    }
    return Batch.from_columns(**settings)


def sent(batch, run="run", number=3, first=2, **about):
    chunk = Chunk(run, "worker-0.a", number, first, (7, 8), 9, ROWS, [3], batch, about)
    fields = EncodedChunk(chunk).fields(first)
    return {name: bytes(value) for name, value in fields.items()}


def test_what_arrives_is_what_was_sent():
    batch = columns(
        returns=np.ma.MaskedArray([1.0, 0.0, np.nan, 3.0, 4.0], [0, 1, 0, 0, 0]), n_steps=np.full(ROWS, 3, np.int32),
        info={"value": np.arange(ROWS) / 2, "text": np.array(["a"] * ROWS)},
    )  # fmt: skip
    found = decode(sent(batch, filters={"mean": np.arange(3.0)}), "run")
    assert (found.sender, found.number, found.first, found.policy, found.updates) == ("worker-0.a", 3, 2, (7, 8), 9)
    assert found.episode_lengths == [3] and found.steps == ROWS
    arrived = found.columns
    np.testing.assert_array_equal(arrived.state_columns["observation"], batch.state_columns["observation"])
    np.testing.assert_array_equal(arrived.next_state_columns["observation"], batch.next_state_columns["observation"])
    for name in ("action_column", "reward_column", "game_over_column", "terminated_column", "return_column"):
        mine, theirs = getattr(arrived, name), getattr(batch, name)
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype
    assert np.ma.getmaskarray(arrived.return_column).tolist() == [False, True, False, False, False]
    np.testing.assert_array_equal(arrived.n_step_column, batch.n_step_column)
    assert list(arrived.info_columns) == ["value"], "numbers travel, texts stay"
    np.testing.assert_array_equal(found.about["filters"]["mean"], np.arange(3.0))


def test_frames_are_sent_once():
    frames = np.random.default_rng(1).integers(0, 255, (ROWS + 4, 84, 84), dtype=np.uint8)
    indices = np.arange(ROWS)[:, None] + np.arange(4)
    stacks = FrameStacks(frames, indices, -1), FrameStacks(frames, indices + 1, -1)
    batch = columns(states={"observation": stacks[0]}, next_states={"observation": stacks[1]})
    fields = sent(batch)
    assert sum(map(len, fields.values())) < frames.nbytes + 2000
    arrived = decode(fields, "run").columns
    np.testing.assert_array_equal(np.asarray(arrived.state_columns["observation"]), np.asarray(stacks[0]))
    np.testing.assert_array_equal(np.asarray(arrived.next_state_columns["observation"]), np.asarray(stacks[1]))


def test_an_entry_that_some_transitions_lack_stays_missing():
    values = np.ma.MaskedArray(np.arange(ROWS * 2.0).reshape(ROWS, 2), np.repeat([[1], [0], [1], [0], [0]], 2, axis=1))
    arrived = decode(sent(columns(info={"value": values})), "run").columns.info_columns["value"]
    np.testing.assert_array_equal(np.ma.getmaskarray(arrived), np.ma.getmaskarray(values))


def test_steps_without_transitions_travel_too():
    assert decode(sent(None), "run").columns is None


def changed(**changes):
    fields = sent(columns())
    header = {**wire.unpack(fields[b"header"]), **changes}
    return {**fields, b"header": wire.pack(header)}


class Exploit:
    def __reduce__(self):
        raise AssertionError("it was unpickled")


def frames_that_are_not_there():
    stack = FrameStacks(np.zeros((2, 3, 3), np.uint8), np.full((ROWS, 4), 1), -1)
    fields = sent(columns(states={"observation": stack}, next_states={"observation": stack}))
    bad = {
        name: np.full(ROWS * 4, 9, np.uint16).tobytes() if len(value) == ROWS * 8 else value
        for name, value in fields.items()
    }
    return bad


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "garbage"),
        ({b"header": b"\xc1"}, "garbage"),
        ({b"header": b""}, "garbage"),
        ({b"header": pickle.dumps(Exploit)}, "garbage"),
        ({b"header": msgpack.packb([1, 2])}, "garbage"),
        ({b"header": msgpack.packb({"run": "run"})}, "garbage"),
        ({b"header": msgpack.packb({"run": "other"})}, "another run"),
        (changed(number=0, first=0), "garbage"),
        (changed(number=1, first=2), "garbage"),
        (changed(steps=-3), "garbage"),
        (changed(steps=10**9), "garbage"),
        (changed(sender=""), "garbage"),
        (changed(sender=5), "garbage"),
        (changed(policy=[1]), "garbage"),
        (changed(columns=[["reward", "|O", [5]]]), "garbage"),
        (changed(columns=[["reward", "<f8", [5, -1]]]), "garbage"),
        (changed(columns=[["reward", "<f8", [10**6]]]), "garbage"),
        (changed(columns=[["reward", "<f4", [40]]]), "garbage"),
        (changed(columns=[["reward", "(2,3)f8", [1]]]), "garbage"),
        (changed(columns="x" * 100), "garbage"),
        (frames_that_are_not_there(), "garbage"),
        ({**sent(None), b"9": bytes(wire.MOST_BYTES + 1)}, "too large"),
        (sent(None, run="other"), "another run"),
    ],
)  # fmt: skip
def test_what_is_no_chunk_is_refused_by_its_reason(fields, reason):
    with pytest.raises(ChunkError) as refusal:
        decode(fields, "run")
    assert refusal.value.reason == reason


def test_too_many_rows_are_refused():
    rows = wire.MOST_ROWS + 1
    many = Batch.from_columns(
        {"observation": np.zeros((rows, 1), np.uint8)}, np.zeros(rows, np.uint8), np.zeros(rows), np.zeros(rows, bool),
        {"observation": np.zeros((rows, 1), np.uint8)},
    )  # fmt: skip
    with pytest.raises(ChunkError, match="too large"):
        sent(many)
    fields = sent(columns())
    header = wire.unpack(fields[b"header"])
    header["columns"] = [[path, dtype, [rows, *shape[1:]], *rest] for path, dtype, shape, *rest in header["columns"]]
    larger = {name: bytes(len(buffer) // ROWS * rows) for name, buffer in fields.items()}
    with pytest.raises(ChunkError, match="too large"):
        decode({**larger, b"header": wire.pack(header)}, "run")


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e30])
def test_what_the_trainer_would_refuse_is_not_encoded(number):
    """Nobody would acknowledge it, so its sender would wait without end."""
    with pytest.raises(ChunkError, match="column 'reward' has NaN or infinite numbers"):
        sent(columns(rewards=np.full(ROWS, number)))
    frames = {"observation": np.zeros((ROWS, wire.MOST_BYTES // ROWS), np.uint8)}
    with pytest.raises(ChunkError, match="too large: 64 MB, at most 64 MB"):
        sent(columns(states=frames))


@pytest.mark.parametrize("seed", range(200))
def test_no_damaged_byte_does_anything_but_be_refused_or_change_a_number(seed):
    rng = np.random.default_rng(seed)
    fields = sent(columns(), filters={"mean": np.arange(3.0)})
    header = bytearray(fields[b"header"])
    for _ in range(3):
        header[rng.integers(len(header))] = rng.integers(256)
    with contextlib.suppress(ChunkError):
        decode({**fields, b"header": bytes(header)}, "run")
