"""The process that computes the compiled loops of several seeds in one program, seen from inside and from outside.

Each seed has a process of its own too, with its display, its CSV, its evaluations and its checkpoints: it plans the
calls of its loop and writes down what they have done (``LoopOfSeeds``). The calls of all seeds are made at once, when
all have asked for one. If some are behind, as after runs that were stopped, these go on alone until all are level.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import deque
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Sequence

import numpy as np

from rl_coach.utilities.stop_signals import held_back

LOG_FILE = "program.log"
_SECONDS_BETWEEN_LOOKS = 0.001
"""While a call is computed whose record a seed waits for. Waiting for the call instead would keep the next one, which
other seeds are about to ask for, from being under way when it ends."""


class SeedsServer:
    """Answers what the seeds ask for, until all of them have ended.

    :param listening: the socket that seeds connect to
    :param parent: tells the names of seeds whose processes have ended, and ends itself with them
    :param names: of the seeds; each has the row of its place
    :param program: computes them: a ``JaxCompiledSeeds``
    """

    def __init__(self, listening: socket.socket, parent: Connection, names: Sequence[str], program: Any):
        self._listening, self._parent, self._program = listening, parent, program
        self._names, self._awaited = list(names), set(names)
        self._rows: dict[Connection, int] = {}
        # a seed asks for the next call while others have not asked for this one
        self._asked: dict[Connection, deque[tuple]] = {}
        self._agreed: list[Connection] = []  # those that make the next call
        self._calls: dict[Connection, deque[Any]] = {}  # whose records have not been read
        self._reading: set[Connection] = set()
        self._of_one_seed = {
            "begin": program.begin,
            "begin_episodes": program.begin_episodes,
            "results": program.results,
            "output_names": program.output_names,
            "leaves": program.leaves,
            "set_leaves": program.set_leaves,
        }

    def serve(self) -> None:
        """Answer until all seeds, or the process that started this one, have ended."""
        while self._awaited or self._rows:
            sources: list[Any] = [self._listening, self._parent, *self._rows]
            is_computing = any(self._calls[seed] for seed in self._reading)
            for source in wait(sources, _SECONDS_BETWEEN_LOOKS if is_computing else None):
                if source is self._listening:
                    self._accept()
                elif source is not self._parent:
                    self._hear(source)  # type: ignore[arg-type]
                elif not self._hear_parent():
                    return
            while not self._awaited and self._may_go_on():
                self._run() if self._agreed else self._agree()
            self._answer_readers()

    def _accept(self) -> None:
        connection = Connection(self._listening.accept()[0].detach())
        try:
            (name,) = connection.recv()
        except (EOFError, ConnectionError):
            return  # it has ended already, which the parent tells
        self._awaited.discard(name)
        self._rows[connection] = self._names.index(name)
        self._asked[connection], self._calls[connection] = deque(), deque()

    def _hear_parent(self) -> bool:
        """:return: False if it has ended"""
        try:
            self._awaited.discard(self._parent.recv())
        except EOFError:
            return False
        return True

    def _hear(self, seed: Connection) -> None:
        try:
            message = seed.recv()
        except (EOFError, ConnectionError):
            self._forget(seed)
            return
        if message[0] in ("agree", "run"):
            self._asked[seed].append(message)
        elif message[0] == "read":
            self._reading.add(seed)
        else:
            self._reply(seed, self._done(self._rows[seed], *message))

    def _forget(self, seed: Connection) -> None:
        for known in (self._rows, self._asked, self._calls):
            known.pop(seed)
        self._reading.discard(seed)
        self._agreed = [one for one in self._agreed if one is not seed]
        seed.close()

    def _done(self, row: int, what: str, *values: Any) -> Any:
        """:return: the answer, an error that the seed is to raise included"""
        try:
            return self._of_one_seed[what](row, *values)
        except ValueError as error:
            return error

    def _may_go_on(self) -> bool:
        """True if all have asked who are to agree on a number of steps, or who have agreed."""
        return bool(self._rows) and all(self._asked[seed] for seed in self._agreed or self._rows)

    def _agree(self) -> None:
        """Tell those that are behind how many steps they make, until the next seed's place at most."""
        asked = {seed: messages[0] for seed, messages in self._asked.items()}
        places = sorted({place for _, _, place in asked.values()})
        self._agreed = [seed for seed, (_, _, place) in asked.items() if place == places[0]]
        steps = min(asked[seed][1] for seed in self._agreed)
        if len(places) > 1:
            steps = min(steps, places[1] - places[0])
        for seed in list(self._agreed):
            self._asked[seed].popleft()
            self._reply(seed, steps)

    def _run(self) -> None:
        """Make the call that seeds have agreed on. Their plans are equal, for their schedules are, except where these
        are in episodes: then each plan's call is made for those who want it."""
        asked = {seed: self._asked[seed].popleft() for seed in self._agreed}
        for seed, (_, _, variables) in asked.items():
            if variables is not None:
                self._program.set_variables(self._rows[seed], variables)
        self._agreed, left = [], {seed: plan for seed, (_, plan, _) in asked.items()}
        while left:
            plan = next(iter(left.values()))
            seeds = [seed for seed, one in left.items() if _are_equal(one, plan)]
            call = self._program.run(plan, [row for seed, row in self._rows.items() if seed not in seeds])
            for seed in seeds:
                del left[seed]
                self._calls[seed].append(call)

    def _answer_readers(self) -> None:
        for seed in list(self._reading):
            # the oldest call; one that has not been made waits for the other seeds
            if self._calls[seed] and self._calls[seed][0].is_ready:
                self._reading.remove(seed)
                self._reply(seed, self._calls[seed].popleft().of(self._rows[seed]))

    @staticmethod
    def _reply(seed: Connection, answer: Any) -> None:
        with contextlib.suppress(ConnectionError):  # it has ended, which is heard next
            seed.send(answer)


def _are_equal(one: Any, other: Any) -> bool:
    """True for trees of arrays that hold the same numbers."""
    if isinstance(one, tuple):
        return all(map(_are_equal, one, other))
    return np.array_equal(one, other)


class SeedsProcess:
    """The process from outside: it begins here and ends, at the latest, when the context is left.

    :param directory: of the experiment, for what it prints
    :param command: the command of ``coach`` that is the process
    :param flags: of ``coach``, which build the graph of any of the seeds
    :param names: of the seeds
    :ivar address: what the processes of the seeds get as ``--seeds_program``
    """

    def __init__(self, directory: pathlib.Path, command: str, flags: Sequence[str], names: Sequence[str]):
        self._place = tempfile.mkdtemp(prefix="coach-")  # for its owner only, and short enough for a socket's path
        self.address = os.path.join(self._place, "seeds")
        self._log, self._command = directory / LOG_FILE, command
        self._flags, self._names = list(flags), list(names)

    def __enter__(self) -> SeedsProcess:
        ours, theirs = Pipe()
        self._connection = ours
        # seeds may connect at once, and wait there until the process is ready
        with socket.socket(socket.AF_UNIX) as listening, open(self._log, "ab") as log, theirs, held_back():
            listening.bind(self.address)
            listening.listen(len(self._names))
            handles = (listening.fileno(), theirs.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rl_coach", self._command, *map(str, handles)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                pass_fds=handles,
            )  # fmt: skip
        self._tell((self._flags, self._names))
        return self

    def has_ended(self, name: str) -> None:
        """A seed's process has ended, or is not started at all."""
        self._tell(name)

    def _tell(self, message: Any) -> None:
        with contextlib.suppress(ConnectionError):  # its seeds have ended, or its loop is not compiled
            self._connection.send(message)

    def __exit__(self, *error: Any) -> None:
        self._connection.close()
        self._process.kill()  # it has nothing to save, and hears nothing while it compiles
        self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)
