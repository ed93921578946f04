"""A simulated Hugging Face Hub on this machine: the answers that its client asks for when it uploads and downloads.

The tests have no network and no account, so no genuine Hub can be asked. The client is the genuine one.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import threading
from typing import Any, Iterator


class Hub:
    """What the simulated Hub holds.

    :ivar repositories: contents of files, by their names, by the name of the repository
    :ivar private: the repositories that were made private
    :ivar downloads: the names of the files that were downloaded
    """

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: set[str] = set()
        self.downloads: list[str] = []
        self.address = ""

    def revision(self, repository: str) -> str:
        """The commit of a repository: a hash of what it holds."""
        contents = sorted(self.repositories[repository].items())
        return hashlib.sha1(repr(contents).encode()).hexdigest()


@contextlib.contextmanager
def running_hub() -> Iterator[Hub]:
    """A simulated Hub that listens on this machine."""
    hub = Hub()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("_HubAnswers", (_Answers,), {"hub": hub}))
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Answers(http.server.BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Print nothing."""

    def _answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _json(self, document: Any, status: int = 200, **headers: str) -> None:
        self._answer(json.dumps(document).encode(), status, **headers)

    def _missing(self) -> None:
        self._json({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while length := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(length))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def do_POST(self) -> None:
        body = self._body()
        if self.headers.get("Authorization") != "Bearer hf_right":
            return self._json({"error": "Invalid username or password."}, 401)
        path = self.path.partition("?")[0]
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        repository = "/".join(path.split("/")[3:5])
        if "/preupload/" in path:
            files = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                     for one in json.loads(body)["files"]]  # fmt: skip
            return self._json({"files": files})
        if "/commit/" in path:
            return self._commit(repository, body)
        self._missing()

    def _create(self, asked: dict[str, Any]) -> None:
        name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
        self.hub.repositories.setdefault(name, {})
        if asked.get("private") or asked.get("visibility") == "private":
            self.hub.private.add(name)
        self._json({"url": f"{self.hub.address}/{name}", "name": name, "id": name})

    def _commit(self, repository: str, body: bytes) -> None:
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                self.hub.repositories[repository][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        revision = self.hub.revision(repository)
        url = f"{self.hub.address}/{repository}/commit/{revision}"
        self._json({"success": True, "commitOid": revision, "commitUrl": url, "hookOutput": ""})

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        api = path.startswith("/api/models/")
        parts = path.split("/")[3:] if api else path.split("/")[1:]
        repository = "/".join(parts[:2])
        if repository not in self.hub.repositories:
            return self._missing()
        files, revision = self.hub.repositories[repository], self.hub.revision(repository)
        if api and parts[2:3] == ["tree"]:
            tree = [{"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    for name, data in files.items()]  # fmt: skip
            return self._json(tree)
        if api:
            entries = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
            about = {"id": repository, "modelId": repository, "sha": revision, "private": False, "siblings": entries}
            return self._json(about)
        name = "/".join(parts[4:])
        if name not in files:
            return self._json({"error": "Entry not found"}, 404, X_Error_Code="EntryNotFound")
        if self.command == "GET":
            self.hub.downloads.append(name)
        tag = hashlib.sha1(files[name]).hexdigest()
        self._answer(files[name], ETag=f'"{tag}"', X_Repo_Commit=revision, Content_Type="application/octet-stream")

    do_HEAD = do_GET
