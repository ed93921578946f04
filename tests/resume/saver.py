"""A process that does nothing but load the newest checkpoint and save the next, until it is killed.

``python saver.py DIRECTORY BYTES``: prints ``saving N`` before and ``saved N`` after each save.
"""

from __future__ import annotations

import sys

import numpy as np

from rl_coach.checkpoint import (
    CheckpointStateReader,
    checkpoint_name,
    find_checkpoint,
    keep_checkpoints,
    load_checkpoint,
    mark_best,
    save_checkpoint,
)


def content(number: int, size: int) -> dict:
    """Checkpoint ``number``: a memory of ``size`` bytes, and what tells whether all of it is of one save."""
    rows = np.full(size // 8, number, np.int64)
    rows[::3] += np.arange(len(rows[::3]))
    return {"number": number, "memory": {"rows": rows, "sum": int(rows.sum())}, "weights": np.full(1000, number, "f4")}


def check(state: dict) -> int:
    """:return: the checkpoint's number
    :raises AssertionError: it is not whole
    """
    number, rows = state["number"], state["memory"]["rows"]
    assert rows.sum() == state["memory"]["sum"] == content(number, rows.nbytes)["memory"]["sum"]
    assert (state["weights"] == number).all()
    return number


def main(directory: str, size: int) -> None:
    number = check(load_checkpoint(find_checkpoint(directory))[0])
    while True:
        # as a run does: a kill between a checkpoint's last rename and its naming as the newest leaves it there
        number = max(number, CheckpointStateReader(directory).get_all()[-1].num) + 1
        state = content(number, size)
        print("saving", number, flush=True)
        path = save_checkpoint(directory, checkpoint_name(number, number * 10), state, {"number": number})
        if number % 5 == 0:
            mark_best(directory, path.rpartition("/")[2])
        keep_checkpoints(directory, 2)
        print("saved", number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
