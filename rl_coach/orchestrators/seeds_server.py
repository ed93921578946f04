"""The process that computes the compiled loops of several seeds in one program, and the class that starts this process.

Each seed also has its own process, with a display, a CSV, evaluations and checkpoints. The seed's process requests
the calls of its loop and records their results (``LoopOfSeeds``). A call computes all seeds at once, after all seeds
have requested it. If some seeds have made fewer steps, for example because their runs were stopped, only these seeds
continue until all seeds have made the same number of steps.
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
"""The pause while a call is computed and a seed waits for its results. A longer wait would delay the next call."""


class SeedsServer:
    """Answers the requests of the seeds until all seeds have ended.

    :param listening: the socket that the seeds' processes connect to
    :param parent: the connection to the parent process, which sends the names of seeds that have ended
    :param names: names of the seeds, in the order of their rows in the program's arrays
    :param program: the program of all seeds: a ``JaxCompiledSeeds``
    """

    def __init__(self, listening: socket.socket, parent: Connection, names: Sequence[str], program: Any):
        self._listening, self._parent, self._program = listening, parent, program
        self._names, self._awaited = list(names), set(names)
        self._unnamed: list[Connection] = []  # seeds that have connected and have not sent their names
        self._rows: dict[Connection, int] = {}
        # a seed may request several calls before the other seeds have requested the first of these calls
        self._asked: dict[Connection, deque[tuple]] = {}
        self._agreed: list[Connection] = []  # the seeds of the next call
        self._calls: dict[Connection, deque[Any]] = {}  # calls with records that are not read yet
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
        """Answer requests until all seeds have ended, or the parent process has ended."""
        while self._awaited or self._rows:
            sources: list[Any] = [self._listening, self._parent, *self._unnamed, *self._rows]
            is_computing = any(self._calls[seed] for seed in self._reading)
            for source in wait(sources, _SECONDS_BETWEEN_LOOKS if is_computing else None):
                if source is self._listening:
                    self._unnamed.append(Connection(self._listening.accept()[0].detach()))
                elif source in self._unnamed:
                    self._hear_name(source)
                elif source is not self._parent:
                    self._hear(source)  # type: ignore[arg-type]
                elif not self._hear_parent():
                    return
            while not self._awaited and self._may_go_on():
                self._run() if self._agreed else self._agree()
            self._answer_readers()

    def _hear_name(self, seed: Connection) -> None:
        self._unnamed.remove(seed)
        try:
            (name,) = seed.recv()
        except (EOFError, ConnectionError):
            seed.close()
            return  # the seed's process has ended already; the parent reports its end
        self._awaited.discard(name)
        self._rows[seed] = self._names.index(name)
        self._asked[seed], self._calls[seed] = deque(), deque()

    def _hear_parent(self) -> bool:
        """Read a message of the parent. :return: False if the parent has ended"""
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
        """Carry out a request of a seed. :return: the result, or an error that the seed's process raises"""
        try:
            return self._of_one_seed[what](row, *values)
        except ValueError as error:
            return error

    def _may_go_on(self) -> bool:
        """True if all seeds of the next call have requested it. Before these seeds are chosen, all seeds must have made
        a request."""
        return bool(self._rows) and all(self._asked[seed] for seed in self._agreed or self._rows)

    def _agree(self) -> None:
        """Choose the seeds of the next call, and its number of steps. These are the seeds with the fewest steps so far.
        The call ends at the latest where these seeds have as many steps as another seed."""
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
        """Make the call of the chosen seeds. Their plans are usually equal, because their schedules are equal. If
        schedules count episodes, plans may differ. Then there is a call for each plan."""
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
            # send the results of the oldest call, if it is computed
            if self._calls[seed] and self._calls[seed][0].is_ready:
                self._reading.remove(seed)
                self._reply(seed, self._calls[seed].popleft().of(self._rows[seed]))

    @staticmethod
    def _reply(seed: Connection, answer: Any) -> None:
        with contextlib.suppress(ConnectionError):  # the seed has ended; its connection shows that next
            seed.send(answer)


def _are_equal(one: Any, other: Any) -> bool:
    """True for equal trees of arrays."""
    if isinstance(one, tuple):
        return all(map(_are_equal, one, other))
    return np.array_equal(one, other)


class SeedsProcess:
    """A context with a process that computes several seeds. The process ends with the context.

    :param directory: the experiment directory, for the output of the process
    :param command: the command of ``coach`` that runs ``SeedsServer``
    :param flags: flags of ``coach`` that build the graph of a seed
    :param names: the names of the seeds
    :ivar address: the value of ``--seeds_program`` for the seeds' processes
    """

    def __init__(self, directory: pathlib.Path, command: str, flags: Sequence[str], names: Sequence[str]):
        self._place = tempfile.mkdtemp(prefix="coach-")  # private, and short enough for a socket's path
        self.address = os.path.join(self._place, "seeds")
        self._log, self._command = directory / LOG_FILE, command
        self._flags, self._names = list(flags), list(names)

    def __enter__(self) -> SeedsProcess:
        ours, theirs = Pipe()
        self._connection = ours
        # seeds may connect now, and wait until the process is ready
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
        """Report a seed that has ended or will not start."""
        self._tell(name)

    def _tell(self, message: Any) -> None:
        with contextlib.suppress(ConnectionError):  # the process has ended already
            self._connection.send(message)

    def __exit__(self, *error: Any) -> None:
        self._connection.close()
        self._process.kill()  # it has nothing to save, and does not react to signals while it compiles
        self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)
