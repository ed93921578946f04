from __future__ import annotations

import http.client
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

pytest.importorskip("panel")

from rl_coach.dashboard import app
from rl_coach.dashboard.app import arguments, main, make_server
from rl_coach.dashboard.store import Store
from tests.dashboard.runs import write_gif, write_run


def test_flags():
    options = arguments([])
    assert (options.experiment_dir, options.host, options.port, options.open) == (None, "127.0.0.1", None, True)
    options = arguments(["-d", "runs", "-f", "a.csv", "b.csv", "--port", "80", "--host", "0.0.0.0", "--no-open"])
    assert (options.experiment_dir, options.experiment_files) == ("runs", ["a.csv", "b.csv"])
    assert (options.host, options.port, options.open) == ("0.0.0.0", 80, False)
    assert arguments([]).tab == "" and arguments(["--tab", "compare"]).tab == "compare"


def test_only_this_machine_may_edit_unless_told_otherwise():
    assert arguments([]).edit is None and arguments(["--edit"]).edit and not arguments(["--no-edit"]).edit
    assert arguments(["--allow-host", "a", "--allow-host", "b"]).allow_host == ["a", "b"]


def test_coach_dashboard_is_the_same_program(tmp_path):
    command = [sys.executable, "-m", "rl_coach.coach", "dashboard"]
    told = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert told.startswith("usage: coach dashboard") and "--experiment_dir" in told
    failed = subprocess.run([*command, "-f", "missing.csv"], capture_output=True, text=True, cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (2, "coach dashboard: no file 'missing.csv'\n")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["-f", "missing.csv"], "no file 'missing.csv'"),
        (["-d", "nothere"], "dashboard: no directory 'nothere'"),
        (["experiments"], "unknown argument 'experiments'; did you mean -d experiments?"),
        (["--prot", "80"], "unknown flag '--prot'; did you mean '--port'"),
        (["-d", __file__], "is a file; show it with --experiment_files"),
        (["--host", "256.0.0.1", "--no-open"], "cannot listen on '256.0.0.1'"),
        (["--port", "70000", "--no-open"], "--port is 70000; it must be from 0 to 65535"),
        (["--port", "-5", "--no-open"], "--port is -5; it must be from 0 to 65535"),
    ],
)
def test_a_users_mistake_is_one_line(flags, said, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(flags) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_port_in_use_gives_the_next_free_one_and_says_so(tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server, got = make_server(Store(tmp_path), "127.0.0.1", port)
        server.stop()
        assert got > port
        assert f"Port {port} is in use or not allowed; using port {got}" in capsys.readouterr().out


def test_no_free_port_is_said(tmp_path, monkeypatch):
    def refuse(*given):
        raise OSError(app.errno.EADDRINUSE, "in use")

    monkeypatch.setattr(app, "_listen", refuse)
    with pytest.raises(app.CoachError, match="no port from 5000 to 5099 is free"):
        make_server(Store(tmp_path), "127.0.0.1", 5000)


def test_pages_of_this_machine_may_connect_under_any_port(tmp_path):
    server, _ = make_server(Store(tmp_path), "127.0.0.1", 0)
    server.stop()
    assert {"localhost:*", "127.0.0.1:*"} <= server._tornado.websocket_origins
    assert not any(origin.startswith("*") for origin in server._tornado.websocket_origins)


def ask(address, path):
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.putrequest("GET", path)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_media_are_served_and_all_else_is_refused(tmp_path, start_dashboard):
    root = tmp_path / "experiments"
    path = write_run(root, "CartPole_DQN", "21_11_2026-10_30", rows=3)
    gif = write_gif(path, "episode")
    (tmp_path / "gifs").mkdir()
    outside = tmp_path / "gifs" / "secret.gif"
    outside.write_bytes(b"secret")
    gif.with_name("link.gif").symlink_to(outside)
    address = start_dashboard(root).address
    run = "/media/CartPole_DQN/21_11_2026-10_30"
    assert ask(address, f"{run}/gifs/episode.gif") == (200, gif.read_bytes())
    for refused in (
        "/media/../gifs/secret.gif",
        "/media/%2e%2e/gifs/secret.gif",
        "/media//etc/passwd",
        f"{run}/gifs/../../../../../gifs/secret.gif",
        f"{run}/gifs/link.gif",
        f"{run}/{path.name}",
        f"{run}/gifs",
    ):
        status, body = ask(address, refused)
        assert status in (403, 404), refused
        assert b"secret" not in body and b"Episode #" not in body


def test_it_ends_when_it_is_terminated_even_if_its_terminal_has_gone(tmp_path, start_dashboard):
    process = start_dashboard(tmp_path).process
    process.stdout.close()
    process.terminate()
    assert process.wait(60) == 0


def test_the_dashboard_of_a_run_ends_once_it_is_left(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    def serve():
        server, _ = make_server(Store(tmp_path), "127.0.0.1", 0)
        server.io_loop.add_callback(app._end_if_left, server, process.pid)
        server.io_loop.start()
        server.stop()

    with ThreadPoolExecutor(1) as pool:  # a browser of another test may have an event loop running in this thread
        pool.submit(serve).result(60)


def test_coach_opens_it_in_a_process_of_its_own(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command: started.append(command))
    app.open_dashboard(tmp_path)
    assert arguments(started[0][3:]).experiment_dir == str(tmp_path)
    assert started[0][1:3] == ["-m", "rl_coach.dashboard.app"]
