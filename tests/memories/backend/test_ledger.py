"""The books of trainer and worker agree whatever happens to chunks on their way."""

from __future__ import annotations

import random
from collections import deque

import numpy as np
import pytest

from rl_coach.core_types import Batch
from rl_coach.memories.backend.ledger import Ledger, Outbox, Verdict
from rl_coach.memories.backend.wire import Chunk, EncodedChunk, unpack

NEXT, DUPLICATE, GAP = Verdict.NEXT, Verdict.DUPLICATE, Verdict.GAP


def chunk(number, steps=10):
    return EncodedChunk(Chunk("run", "worker-0.a", number, number, (1, 1), 0, steps))


@pytest.mark.parametrize(
    ("arrivals", "verdicts"),
    [
        ([(1, 1), (2, 1), (3, 2)], [NEXT, NEXT, NEXT]),
        ([(1, 1), (1, 1)], [NEXT, DUPLICATE]),
        ([(2, 1)], [GAP]),
        ([(1, 1), (3, 2), (2, 2), (3, 2)], [NEXT, GAP, NEXT, NEXT]),
        ([(2, 1), (1, 1), (2, 1)], [GAP, NEXT, NEXT]),
        ([(7, 7)], [NEXT]),  # a trainer that went back to a checkpoint: 1 to 6 were acknowledged before
        ([(8, 7)], [GAP]),
        ([(7, 7), (6, 6)], [NEXT, DUPLICATE]),
    ],
)
def test_a_chunk_is_taken_when_it_is_its_senders_next(arrivals, verdicts):
    ledger, found = Ledger(), []
    for number, first in arrivals:
        found.append(ledger.judge("worker-0.a", number, first))
        if found[-1] is NEXT:
            ledger.settle("worker-0.a", number, stored=10)
    assert found == verdicts
    assert ledger.stored == 10 * verdicts.count(NEXT)


def test_a_worker_that_is_started_again_is_another_sender():
    ledger = Ledger()
    ledger.settle("worker-0.a", 57, stored=10)
    assert ledger.judge("worker-0.b", 1, 1) is NEXT


def test_the_books_go_on_from_a_checkpoint():
    ledger, other = Ledger(), Ledger()
    ledger.settle("worker-0.a", 3, stored=10)
    ledger.settle("worker-0.a", 4, discarded=5)
    other.set_state(ledger.get_state())
    assert (other.stored, other.discarded) == (10, 5)
    assert other.judge("worker-0.a", 4, 4) is DUPLICATE and other.judge("worker-0.a", 5, 5) is NEXT


def test_an_outbox_is_full_at_its_window_and_empties_by_receipts():
    outbox = Outbox(2)
    outbox.add(chunk(1))
    assert not outbox.is_full
    outbox.add(chunk(2, steps=7))
    assert outbox.is_full and outbox.steps == 17
    outbox.acknowledge(1)
    assert not outbox.is_full and outbox.steps == 7 and outbox.acknowledged == 10
    outbox.acknowledge(1)  # an old receipt once more
    assert outbox.acknowledged == 10
    outbox.acknowledge(2)
    assert outbox.steps == 0 and outbox.next_number == 3


def test_what_was_sent_is_sent_once_until_it_has_to_be_sent_again():
    outbox = Outbox(4)
    outbox.add(chunk(1))
    outbox.add(chunk(2))
    assert sent(outbox) == [(1, 1), (2, 1)]
    outbox.sent()
    assert sent(outbox) == []
    outbox.add(chunk(3))
    outbox.acknowledge(1)
    assert sent(outbox) == [(3, 2)]
    outbox.send_again()
    assert sent(outbox) == [(2, 2), (3, 2)]


def sent(outbox):
    headers = [unpack(fields[b"header"]) for fields in outbox.to_send()]
    return [(header["number"], header["first"]) for header in headers]


@pytest.mark.parametrize("seed", range(30))
def test_totals_agree_whatever_is_lost_repeated_and_reordered(seed):
    """A stream that drops, repeats and swaps entries, and forgets everything now and then."""
    rng = random.Random(seed)
    ledger, outbox, stream = Ledger(), Outbox(4), deque()
    taken_numbers, made = [], 0
    for turn in range(400):
        if not outbox.is_full and turn < 350:
            made += 1
            outbox.add(chunk(outbox.next_number, steps=made))
        stream.extend(unpack(fields[b"header"]) for fields in outbox.to_send())
        outbox.sent()
        disturb(rng, stream) if turn < 350 else None
        is_gap = False
        for _ in range(rng.randint(0, 5)):
            if not stream:
                break
            header = stream.popleft()
            verdict = ledger.judge(header["sender"], header["number"], header["first"])
            is_gap |= verdict is GAP
            if verdict is NEXT:
                is_kept = rng.random() < 0.9
                steps = header["steps"]
                ledger.settle(
                    header["sender"], header["number"], stored=steps * is_kept, discarded=steps * (not is_kept)
                )
                taken_numbers.append(header["number"])
        if ledger.accounts and rng.random() < 0.7:
            outbox.acknowledge(ledger.accounts["worker-0.a"].last)
        if is_gap or rng.random() < 0.1 or turn >= 350:
            outbox.send_again()
    outbox.acknowledge(ledger.accounts["worker-0.a"].last)
    assert taken_numbers == list(range(1, made + 1)), "each once, in order"
    assert outbox.steps == 0
    assert outbox.acknowledged == ledger.stored + ledger.discarded == made * (made + 1) // 2


def disturb(rng, stream):
    fate = rng.random()
    if fate < 0.1:
        stream.clear()
    elif fate < 0.2 and stream:
        del stream[rng.randrange(len(stream))]
    elif fate < 0.3 and stream:
        stream.append(stream[rng.randrange(len(stream))])
    elif fate < 0.4 and len(stream) > 1:
        i = rng.randrange(len(stream) - 1)
        stream[i], stream[i + 1] = stream[i + 1], stream[i]


def test_a_chunk_knows_its_size():
    rows = np.zeros((3, 4), np.float32)
    ends = np.zeros(3, bool)
    columns = Batch.from_columns({"observation": rows}, np.zeros(3, np.int64), np.zeros(3), ends, {"observation": rows})
    encoded = EncodedChunk(Chunk("run", "w", 1, 1, (1, 1), 0, 3, [3], columns))
    assert encoded.size == 2 * 48 + 24 + 24 + 3 + 3
