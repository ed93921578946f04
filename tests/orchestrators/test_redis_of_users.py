"""``coach -dc -dcp FILE`` with a Redis of the user: each form of address and password, through the command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from urllib.parse import quote

import pytest

from rl_coach.coach import BAD_INPUT
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis, find_redis_server
from rl_coach.orchestrators.private_directory import private_directory
from tests.orchestrators.distributed_runs import SMALL, TOO_LONG, wait_until
from tests.orchestrators.test_local_run import start

pytestmark = pytest.mark.faults

PASSWORD = "p@ss:w/rd#1% \u00e9?"


class Redis:
    """A redis-server of a user. :param settings: lines of its configuration"""

    def __init__(self, directory, *settings):
        self.port = EmbeddedRedis(directory).port
        (directory / "redis.conf").write_text("\n".join([*settings, 'save ""', f"dir {directory}"]).format(self.port))
        self.log = directory / "redis.txt"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [find_redis_server(), str(directory / "redis.conf")], stdout=log, stderr=log
            )
        wait_until(lambda: "ready to accept" in self.log.read_text().lower() or self._has_ended(), "a redis-server")

    def _has_ended(self):
        assert self.process.poll() is None, self.log.read_text()
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def has_tls():
    """True if the redis-server here was built with TLS: others do not know ``tls-port``."""
    probe = subprocess.run(
        [find_redis_server(), "-"], input=b"port 0\ntls-port 0\n", capture_output=True, timeout=TOO_LONG
    )
    return b"FATAL CONFIG" not in probe.stdout + probe.stderr


@pytest.fixture
def certificates(tmp_path):
    """A directory with ``ca.pem``, and a key and a certificate of it for 127.0.0.1."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes certificates, is not installed")
    if not has_tls():
        pytest.skip("this redis-server was built without TLS")
    commands = [
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=tests",
        "req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=redis",
        "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile names",
    ]
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for command in commands:
        subprocess.run(["openssl", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def train(directory, *lines, **environment):
    """Make a short run with these lines in the section [coach]. :return: (exit code, text)"""
    (directory / "run.ini").write_text("[coach]\n" + "\n".join(lines) + "\n")
    short = SMALL.replace("10000000", "100")
    run = start(directory, "-dcp", "run.ini", "-f", "jax", "-cp", short, "--nocolor", **environment)
    text = run.communicate(timeout=TOO_LONG)[0]
    return run.returncode, text


def check_trained(directory, code, text):
    """The run came to its end by itself, and no password is in what it wrote or printed."""
    assert code == 0, text
    (totals,) = directory.glob("*/*/distributed.json")
    assert json.loads(totals.read_text())["stored"] >= 150
    written = [file.read_text(errors="replace") for file in directory.glob("*/*/*.json")]
    assert not any(PASSWORD in part or quote(PASSWORD, safe="") in part for part in (text, *written))
    assert not list(directory.glob("coach-distributed-*")), "the passwords are gone"


def requirepass():
    return f'requirepass "{PASSWORD}"'


@pytest.mark.parametrize("way", ["url", pytest.param("file", marks=pytest.mark.slow)])
def test_a_password_may_be_in_the_url_or_in_a_file(way, tmp_path):
    with Redis(tmp_path, "port {}", requirepass()) as redis:
        (tmp_path / "password.txt").write_text(f"{PASSWORD}\n")
        lines = {
            "url": [f"redis_url = redis://:{quote(PASSWORD, safe='')}@127.0.0.1:{redis.port}/3"],
            "file": [f"redis_url = redis://localhost:{redis.port}", f"redis_password_file = {tmp_path}/password.txt"],
        }[way]
        check_trained(tmp_path, *train(tmp_path, *lines))


@pytest.mark.slow
def test_a_redis_may_know_its_users_by_name(tmp_path):
    rights = "~coach:* +@all"
    with Redis(tmp_path, "port {}", f'user "meandyou" on ">{PASSWORD}" {rights}', "user default off") as redis:
        url = f"redis://meandyou:{quote(PASSWORD, safe='')}@127.0.0.1:{redis.port}"
        check_trained(tmp_path, *train(tmp_path, f"redis_url = {url}"))


@pytest.mark.slow
@pytest.mark.parametrize("has_password", [False, True])
def test_a_redis_may_listen_on_a_socket_of_the_machine(has_password, tmp_path):
    # a path in a test's own directory is longer than the 107 bytes that a socket may have
    with tempfile.TemporaryDirectory() as short:
        settings = ["port 0", f"unixsocket {short}/redis.sock", *([requirepass()] if has_password else [])]
        with Redis(tmp_path, *settings):
            user = f":{quote(PASSWORD, safe='')}@" if has_password else ""
            check_trained(tmp_path, *train(tmp_path, f"redis_url = unix://{user}{short}/redis.sock?db=2"))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["files of the url", "certificates of the system"])
def test_a_redis_may_be_reached_by_tls_alone(way, certificates, tmp_path):
    """With certificates of clients, as Debian's redis-server asks for."""
    asks = "yes" if way == "files of the url" else "no"
    settings = [
        "port 0", "tls-port {}", f"tls-ca-cert-file {certificates}/ca.pem", f"tls-cert-file {certificates}/cert.pem",
        f"tls-key-file {certificates}/key.pem", f"tls-auth-clients {asks}", requirepass(),
    ]  # fmt: skip
    with Redis(tmp_path, *settings) as redis:
        url = f"rediss://:{quote(PASSWORD, safe='')}@127.0.0.1:{redis.port}/0"
        files = f"?ssl_ca_certs={certificates}/ca.pem"
        files += f"&ssl_certfile={certificates}/cert.pem&ssl_keyfile={certificates}/key.pem"
        if way == "files of the url":
            found = train(tmp_path, f"redis_url = {url}{files}")
        else:
            found = train(tmp_path, f"redis_url = {url}", SSL_CERT_FILE=str(certificates / "ca.pem"))
        check_trained(tmp_path, *found)


@pytest.mark.slow
def test_a_certificate_that_nobody_trusts_is_refused(certificates, tmp_path):
    settings = [
        "port 0", "tls-port {}", f"tls-ca-cert-file {certificates}/ca.pem", f"tls-cert-file {certificates}/cert.pem",
        f"tls-key-file {certificates}/key.pem", "tls-auth-clients no",
    ]  # fmt: skip
    with Redis(tmp_path, *settings) as redis:
        code, text = train(tmp_path, f"redis_url = rediss://127.0.0.1:{redis.port}")
    assert code == BAD_INPUT and f"no Redis at 127.0.0.1:{redis.port}: " in text and "CERTIFICATE_VERIFY_FAILED" in text


@pytest.mark.parametrize("given", ["", ":wrong@"])
def test_a_password_that_is_missing_or_wrong_is_one_line(given, tmp_path):
    with Redis(tmp_path, "port {}", requirepass()) as redis:
        code, text = train(tmp_path, f"redis_url = redis://{given}127.0.0.1:{redis.port}")
    refused = "the password" if given else "to work without a password"
    assert code == BAD_INPUT, text
    (line,) = [line for line in text.splitlines() if "coach: " in line]
    assert f"coach: Redis at 127.0.0.1:{redis.port} refuses {refused}: " in line


def test_a_second_private_directory_of_a_process_leaves_the_first_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with private_directory() as first:
        (first / "password").write_text("mine")
        with private_directory() as second:
            assert (first / "password").read_text() == "mine" and first != second
        other = "from rl_coach.orchestrators.private_directory import private_directory as own\nwith own(): pass"
        subprocess.run([sys.executable, "-c", other], check=True, timeout=TOO_LONG)
        assert (first / "password").read_text() == "mine" and not second.exists()
    assert list(tmp_path.iterdir()) == []
