"""Protection of the dashboard: the page runs only its own scripts, and the server refuses requests of other sites."""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote, urlsplit

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.routing import Matcher, Rule
from tornado.web import Application, OutputTransform, RequestHandler

_WILDCARDS = {"0.0.0.0", "::", ""}
_SCRIPT = re.compile(rb"<script(?=[\s>])", re.IGNORECASE)
_POLICY = (
    "default-src 'none'",
    # Panel loads each of the page's own components as a module from a blob.
    "script-src 'self' blob: 'nonce-{nonce}'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "media-src 'self'",
    "font-src 'self' data:",
    # es-module-shims reads these blobs.
    "connect-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)


def known_hosts(address: str, named: Iterable[str] = ()) -> set[str]:
    """The host names that the server accepts: the names of this machine, the server's address, and further names.

    :param address: the address that the server listens on
    :param named: further names
    """
    names = {"localhost", "127.0.0.1", "::1", address, *(name.strip("[]") for name in named)}
    if address in _WILDCARDS:
        names |= {socket.gethostname(), socket.getfqdn(), *_addresses()}
    return {name.lower() for name in names} - _WILDCARDS


def _addresses() -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    except OSError:
        return set()


def origins(hosts: Iterable[str]) -> list[str]:
    """The origins of pages that may connect to the server: the given hosts with any port, so that SSH forwarding
    works."""
    return [f"[{host}]:*" if ":" in host else f"{host}:*" for host in sorted(hosts)]


def protect(application: Application, hosts: set[str]) -> None:
    """Refuse malformed requests and requests to other host names, and add a content security policy to each page.

    :param application: the server's application
    :param hosts: the accepted host names
    """
    told = {"status": 403, "text": "The dashboard does not accept this host name: start it with --allow-host NAME."}
    rules = [
        Rule(_OtherHost(hosts), _Refusal, told),
        Rule(_Malformed(), _Refusal, {"status": 404, "text": "Not found."}),
    ]
    application.default_router.rules[:0] = rules
    application.add_transform(_Policy)


class _OtherHost(Matcher):
    """Matches requests under a host name that the server does not accept.

    A foreign site can let its host name point to this machine (DNS rebinding). Then the browser treats the site's
    scripts as scripts of the page. Only the host name shows that they are foreign.
    """

    def __init__(self, hosts: set[str]):
        self._hosts = hosts

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Return an empty dictionary to refuse a request, and None to accept it."""
        return None if host_of(request.headers.get("Host", "")) in self._hosts else {}


class _Malformed(Matcher):
    """Matches requests that make the handlers of Tornado, Bokeh and Panel fail: a zero byte in a path, a name that
    begins with a dot, or a query that is not UTF-8. OPTIONS requests of other sites are refused, too."""

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Return an empty dictionary to refuse a request, and None to accept it."""
        path = unquote(request.path)
        try:
            unquote(request.query, errors="strict")
        except UnicodeDecodeError:
            return {}
        is_malformed = "\0" in path or "/." in path.replace("\\", "/") or request.method == "OPTIONS"
        return {} if is_malformed else None


def host_of(header: str) -> str:
    """The name in a Host header, without its port; empty if it is not a name."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


class _Refusal(RequestHandler):
    def initialize(self, status: int, text: str) -> None:
        self._refused = status, text

    def prepare(self) -> None:
        status, text = self._refused
        self.set_status(status)
        self.set_header("Content-Type", "text/plain")
        self.finish(f"{text}\n")


class _Policy(OutputTransform):
    """Adds the security headers to each response. The scripts of a page get a random number. Scripts that are added to
    the page later do not have this number, and the browser blocks them."""

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """The response with its headers."""
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "no-referrer"
        if headers.get("Content-Type", "").startswith("text/html"):
            nonce = secrets.token_urlsafe(16)
            headers["Content-Security-Policy"] = "; ".join(_POLICY).format(nonce=nonce)
            chunk = _SCRIPT.sub(b'<script nonce="%s"' % nonce.encode(), chunk)
            if "Content-Length" in headers:
                headers["Content-Length"] = str(len(chunk))
        return status_code, headers, chunk
