"""A stand-in for S3: an HTTP server on loopback that keeps objects of one bucket in memory. It checks no signatures,
but refuses requests that carry another access key."""

from __future__ import annotations

import datetime
import email.utils
import hashlib
import http.server
import threading
import urllib.parse
from typing import Iterator
from xml.sax.saxutils import escape

ACCESS_KEY, SECRET_KEY = "stand-in", "hush"
BUCKET = "runs"


class StandInS3:
    """The server; the block's end stops it.

    :ivar objects: content and time of change by key
    :ivar fails: requests are answered with ``failure``, a status and the code of an error
    """

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, datetime.datetime]] = {}
        self.requests: list[str] = []
        self.fails, self.failure = False, (503, "SlowDown")
        store = self

        class Handler(_Handler):
            s3 = store

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> StandInS3:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    s3: StandInS3
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing on the terminal."""

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        _, bucket, *rest = urllib.parse.unquote(url.path).split("/", 2)
        key = rest[0] if rest else ""
        body = self._body()
        self.s3.requests.append(f"{self.command} {key}")
        if self.s3.fails:
            self._refuse(*self.s3.failure)
        elif f"Credential={ACCESS_KEY}/" not in self.headers.get("Authorization", ""):
            self._refuse(403, "InvalidAccessKeyId")
        elif bucket != BUCKET:
            self._refuse(404, "NoSuchBucket")
        else:
            self._serve(key, urllib.parse.parse_qs(url.query), body)

    do_PUT = do_DELETE = do_HEAD = do_GET

    def _serve(self, key: str, query: dict[str, list[str]], body: bytes) -> None:
        if self.command == "PUT":
            now = datetime.datetime.now(datetime.timezone.utc)
            self.s3.objects[key] = body, now
            self._answer(200, b"", ETag=f'"{hashlib.md5(body).hexdigest()}"')
        elif self.command == "DELETE":
            self.s3.objects.pop(key, None)
            self._answer(204, b"")
        elif not key and self.command == "HEAD":
            self._answer(200, b"")
        elif not key:
            self._list(query["prefix"][0])
        elif key not in self.s3.objects:
            self._refuse(404, "NoSuchKey")
        else:
            content, changed = self.s3.objects[key]
            self._answer(200, content, **{"Last-Modified": email.utils.format_datetime(changed, usegmt=True)})

    def _list(self, prefix: str) -> None:
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size>"
            f"<LastModified>{changed.strftime('%Y-%m-%dT%H:%M:%S.%fZ')}</LastModified></Contents>"
            for key, (content, changed) in sorted(self.s3.objects.items())
            if key.startswith(prefix)
        )
        answer = f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
        self._answer(200, answer.encode())

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return b"".join(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
