"""Work on many cells in forked processes, each of which has what its parent imported, and the state of no other cell."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import sys
import traceback
from typing import Any, Callable, Iterable, Iterator

_SECONDS = 300


def results(work: Callable[[Any], Any], items: Iterable[Any], workers: int) -> Iterator[tuple[Any, Any]]:
    """What ``work`` gives for each item, with the item, as it comes; an error as its text."""
    fork, left, running = multiprocessing.get_context("fork"), list(items)[::-1], {}
    while left or running:
        while left and len(running) < workers:
            item = left.pop()
            receiver, sender = fork.Pipe(False)
            process = fork.Process(target=_work, args=(work, item, sender))
            process.start()
            sender.close()
            running[receiver] = (item, process)
        ready = multiprocessing.connection.wait(list(running), _SECONDS)
        for receiver in ready or list(running)[:1]:
            item, process = running.pop(receiver)
            try:
                result = receiver.recv() if ready else f"it has not ended after {_SECONDS} s"
            except EOFError:
                result = f"its process died: {process.exitcode}"
            if not ready:
                process.terminate()
            process.join()
            yield item, result


def _work(work: Callable[[Any], Any], item: Any, sender: Any) -> None:
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
        os.dup2(nowhere.fileno(), sys.stderr.fileno())
    try:
        result = work(item)
    except Exception:
        result = traceback.format_exc(limit=-6)
    sender.send(result)
