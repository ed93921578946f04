"""The command ``dashboard``: serve the page for a directory of experiments."""

from __future__ import annotations

import argparse
import asyncio
import errno
import logging
import os
import signal
import subprocess
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.server.server import Server
from tornado.ioloop import IOLoop, PeriodicCallback
from tornado.websocket import WebSocketClosedError

from rl_coach.command_line.arguments import Parser
from rl_coach.runs.status import process_is_gone
from rl_coach.utils import CoachError

from .cache import ColumnCache, default_directory
from .media import MediaHandler
from .page import Page
from .protection import known_hosts, origins, protect
from .store import Store
from .view import TABS

DEFAULT_PORT = 12345
_PORTS_TRIED = 100
_NUM_PORTS = 65536
_LEFT_AFTER_SECONDS = 20
_ONLY_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
_HERE = Path(__file__).parent


class _Parser(Parser):
    def about_word(self, word: str) -> str:
        return f"{super().about_word(word)}; did you mean -d {word}?"


def arguments(command_line: Sequence[str] | None = None, program: str = "dashboard") -> argparse.Namespace:
    """Read the command line.

    :param command_line: the arguments; None uses the arguments of this process
    :param program: the program's name, for messages
    :raises CoachError: if an argument is unknown, or does not accept its value
    """
    parser = _Parser(program, "Show Coach's runs in a browser.", "")
    parser.add_argument(
        "-d", "--experiment_dir", metavar="DIR", help="show all runs in this directory (default: ./experiments)"
    )
    parser.add_argument(
        "-f", "--experiment_files", metavar="CSV", nargs="+", default=[], help="show only these signal CSVs"
    )
    parser.add_argument("--tab", choices=TABS, default="", metavar="TAB", help=f"open on {', '.join(TABS)}")
    parser.add_argument(
        "-p",
        "--port",
        type=int,
        default=None,
        help=f"the port (default: {DEFAULT_PORT}); if it is in use, the next free port",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1, this machine only)"
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="accept requests to this host name, in addition to the names of this machine",
    )
    parser.add_argument(
        "--edit",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="allow users to name, tag, archive and delete runs (default: only if no other machine can open the page)",
    )
    parser.add_argument(
        "--open", action=argparse.BooleanOptionalAction, default=True, help="open the page in a browser"
    )
    parser.add_argument("--no-cache", action="store_true", help="do not use the user's cache directory")
    parser.add_argument("--while-process", type=int, metavar="PID", help=argparse.SUPPRESS)
    return parser.parse_args(command_line)


def main(command_line: Sequence[str] | None = None, program: str = "dashboard") -> int:
    """Run ``dashboard`` or ``coach dashboard``. :return: the exit code"""
    try:
        options = arguments(command_line, program)
        root, files = _where(options.experiment_dir, options.experiment_files)
        serve(
            root,
            files,
            options.host,
            options.port,
            show=options.open,
            tab=options.tab,
            cached=not options.no_cache,
            while_process=options.while_process,
            allowed=options.allow_host,
            editable=options.host in _ONLY_THIS_MACHINE if options.edit is None else options.edit,
        )
    except CoachError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


def run(arguments: Sequence[str]) -> int:
    """``coach dashboard``: serve the dashboard until interrupted. :return: the exit code"""
    return main(arguments, "coach dashboard")


def open_dashboard(experiment_path: str | os.PathLike) -> subprocess.Popen:
    """Show a directory of experiments in the browser, and return at once.

    A separate process serves the page, only on this machine. So training does not slow down, and the page stays open
    after training. The separate process ends when this process has ended and no page is open.

    :param experiment_path: the directory
    :return: the separate process
    """
    command = [sys.executable, "-m", __name__, "--experiment_dir", os.fspath(experiment_path)]
    return subprocess.Popen([*command, "--while-process", str(os.getpid())])


def serve(
    root: Path,
    files: Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int | None = None,
    show: bool = False,
    tab: str = "",
    cached: bool = True,
    while_process: int | None = None,
    allowed: Sequence[str] = (),
    editable: bool = True,
) -> None:
    """Serve the page until interrupted.

    :param root: the directory of experiments
    :param files: show only these CSVs; empty shows all CSVs
    :param host: the address to listen on
    :param port: the port; None for the default. If the port is in use, the next free port is used and printed
    :param show: True opens a browser
    :param tab: the tab of the page that is shown first; empty for the first tab
    :param cached: True stores parsed columns in the user's cache directory
    :param while_process: the id of a process; the server ends when this process has ended and no page is open
    :param allowed: host names that are accepted, in addition to the names of this machine
    :param editable: True allows users to name, tag, archive and delete runs
    :raises CoachError: if the host is not an address of this machine, the port is not a port number, or no port is free
    """
    store = Store(root, files, ColumnCache(default_directory(), root) if cached else None, editable)
    server, port = make_server(store, host, port, allowed)
    _stop_on_sigterm(server)
    _keep_quiet_about_closed_tabs(server)
    address = f"http://{'localhost' if host in ('127.0.0.1', '0.0.0.0', '::') else host}:{port}/"
    address += f"?tab={tab}" if tab else ""
    print(f"The dashboard of {root} is at {address} (Ctrl+C ends it)", flush=True)
    if show:
        server.io_loop.add_callback(webbrowser.open, address)
    if while_process is not None:
        watch = PeriodicCallback(lambda: _end_if_left(server, while_process), _LEFT_AFTER_SECONDS * 1000)
        server.io_loop.add_callback(watch.start)
    store.start()
    try:
        server.start()
        server.io_loop.start()
    finally:
        server.stop()
        store.stop()


def _stop_on_sigterm(server: Server) -> None:
    """Stop the server after SIGTERM. Bokeh's own handler prints a line first. If the terminal was closed, this print
    fails, and the server would not stop."""
    loop: Any = server.io_loop
    if sys.platform != "win32":
        loop.asyncio_loop.add_signal_handler(signal.SIGTERM, loop.stop)


def _keep_quiet_about_closed_tabs(server: Server) -> None:
    """Ignore errors that occur when data are sent to a tab that was closed."""
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), WebSocketClosedError):
            loop.default_exception_handler(context)

    loop: Any = server.io_loop
    loop.asyncio_loop.set_exception_handler(handle)


def _end_if_left(server: Server, process: int) -> None:
    if process_is_gone(process) and not server.get_sessions():
        server.io_loop.stop()


def make_server(store: Store, host: str, port: int | None, allowed: Sequence[str] = ()) -> tuple[Server, int]:
    """Make a server that listens. :return: the server and its port"""
    wanted = DEFAULT_PORT if port is None else port
    if not 0 <= wanted < _NUM_PORTS:
        raise CoachError(f"--port is {wanted}; it must be from 0 to {_NUM_PORTS - 1}")
    tried = range(wanted, min(wanted + _PORTS_TRIED, _NUM_PORTS)) if wanted else range(1)
    for candidate in tried:
        try:
            server = _listen(store, host, candidate, allowed)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            raise CoachError(f"cannot listen on '{host}': {error.strerror or error}") from None
        got = server.port or candidate
        if candidate != wanted:
            print(f"Port {wanted} is in use or not allowed; using port {got}", flush=True)
        return server, got
    raise CoachError(f"no port from {wanted} to {tried[-1]} is free: choose another port with --port")


def _listen(store: Store, host: str, port: int, allowed: Sequence[str]) -> Server:
    server = pn.io.server.get_server(
        {"/": lambda: _new_page(store)},
        port=port,
        address=host,
        title={"/": "Coach"},
        extra_patterns=[(r"/media/(.*)", MediaHandler, {"path": str(store.root)})],
        show=False,
        start=False,
        # Remove the sessions of closed tabs soon, but let a tab reconnect after a lost connection.
        check_unused_sessions_milliseconds=5000,
        unused_session_lifetime_milliseconds=15000,
    )
    # Bokeh's option does not accept a wildcard for the port, although its check of origins does.
    application = server._tornado
    hosts = known_hosts(host, allowed)
    application.websocket_origins.update(origins(hosts))
    protect(application, hosts)
    return server


class _Template(pn.Template):
    def __repr__(self) -> str:
        """A short text. Panel computes this text at each addition to the template, and its default takes 0.1 s."""
        return type(self).__name__


def _new_page(store: Store) -> pn.Template:
    store.rest()
    IOLoop.current().add_callback(store.go_on)
    query = pn.state.location.search if pn.state.location else ""
    page = Page(store, query)
    template = _Template((_HERE / "page.html").read_text())
    template.add_variable("page_css", (_HERE / "page.css").read_text())
    template.add_variable("root_title", str(store.root))
    for name in ("bar", "controls", "table", "tabs", "shown", "cover"):
        template.add_panel(name, getattr(page, name))
    page.look()
    pn.state.onload(page.begin)
    pn.state.on_session_destroyed(lambda context: page.close())
    return template


def _where(directory: str | None, files: Sequence[str]) -> tuple[Path, list[str]]:
    missing = [file for file in files if not os.path.isfile(file)]
    if missing:
        raise CoachError(f"no file '{missing[0]}'")
    if directory and not os.path.exists(directory):
        raise CoachError(f"no directory '{directory}'")
    if directory and os.path.isfile(directory):
        raise CoachError(f"'{directory}' is a file; show it with --experiment_files {directory}")
    if directory or not files:
        return Path(directory or "experiments").expanduser().absolute(), list(files)
    return Path(os.path.commonpath([os.path.dirname(os.path.abspath(file)) for file in files])), list(files)


if __name__ == "__main__":
    sys.exit(main())
