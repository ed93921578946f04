"""Work on cells in forked processes: each has what its parent imported, and the state of no other cell."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import multiprocessing
import multiprocessing.connection
import os
import sys
import traceback
from typing import Any, Callable, Iterable, Iterator

_SECONDS = 1200
_IMPORTED_LATE = ("keras", "onnx", "onnxruntime", "pettingzoo", "rl_coach.architectures.onnx_predictor")


def results(work: Callable[[Any], Any], items: Iterable[Any], workers: int) -> Iterator[tuple[Any, Any]]:
    """Each item with the result of ``work``, in any order. An error is a text."""
    for name in _IMPORTED_LATE:  # once, before the forks
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    fork, left, running = multiprocessing.get_context("fork"), iter(items), {}
    while True:
        for item in itertools.islice(left, workers - len(running)):
            receiver, sender = fork.Pipe(False)
            process = fork.Process(target=_work, args=(work, item, sender))
            process.start()
            sender.close()
            running[receiver] = (item, process)
        if not running:
            return
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
    for child in multiprocessing.active_children():  # copies of the environment, which a cell leaves open
        child.kill()
