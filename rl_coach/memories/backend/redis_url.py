"""Addresses of Redis: ``redis://``, ``rediss://`` (with TLS) and ``unix://`` (a socket on this machine)."""

from __future__ import annotations

import re
from typing import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

FORMS = "redis://host:port/database, rediss:// for TLS, or unix:///path/of/socket?db=0"
_SCHEMES = ("redis", "rediss", "unix")
TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")
_BOOLEAN = f"(?i:{'|'.join((*_YES, *_NO))})"
_QUERY: Mapping[str, str] = {
    "db": r"\d+",
    **dict.fromkeys(TLS_FILES, r".+"),
    "ssl_cert_reqs": r"none|optional|required",
    "ssl_check_hostname": _BOOLEAN,
}
"""The settings that an address may have after ``?``, and a pattern for the values of each setting."""


def mistake(url: str) -> str | None:
    """Describe the mistake in an address; None if there is no mistake. The text contains no password."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        return f"allowed: {FORMS}"
    try:
        parts = urlsplit(url)
        # Python checks the port only when it is read.
        _ = parts.port
    except ValueError:
        return f"allowed: {FORMS}; in a password, write special characters as codes, for example %40 for @"
    # A '/', '?' or '#' in a password ends the host too early, and the '@' is then in a later part.
    if parts.fragment or "@" in parts.path + parts.query:
        return "in a password, write special characters as codes, for example %23 for # and %2F for /"
    if scheme == "unix":
        if parts.hostname or not parts.path.startswith("/") or len(parts.path) == 1:
            return "allowed: the absolute path of a socket, for example unix:///run/redis/redis.sock"
    elif not parts.hostname or not re.fullmatch(r"/?\d*", parts.path):
        return f"allowed: {FORMS}"
    allowed = [name for name in _QUERY if name == "db" or scheme == "rediss"]
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in allowed:
            hint = "; write the password into redis_password_file, or before the host" if name == "password" else ""
            return f"no setting '{name}' after '?'; allowed with {scheme}://: {', '.join(allowed)}{hint}"
        if not re.fullmatch(_QUERY[name], value):
            return f"'{name}' after '?' has a value that is not allowed"
    given = dict(parse_qsl(parts.query))
    if "ssl_keyfile" in given and "ssl_certfile" not in given:
        return "'ssl_keyfile' after '?' needs 'ssl_certfile', the certificate of this key"
    if given.get("ssl_cert_reqs") == "none" and given.get("ssl_check_hostname", "no").lower() in _YES:
        return "'ssl_check_hostname' after '?' has no effect with ssl_cert_reqs=none: leave one of them out"
    return None


def without_password(url: str) -> str:
    """An address without its password. The user name stays."""
    scheme, _, rest = url.partition("://")
    user = urlsplit(url).username
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    place = rest[authority.rfind("@") + 1 :]
    return f"{scheme}://{f'{user}@' if user else ''}{place}"


def password_of(url: str) -> str | None:
    """The password in an address, decoded; None if there is no password."""
    found = urlsplit(url).password
    return unquote(found) if found else None


def hidden(text: str) -> str:
    """Hide everything in a text that may be a password. The text need not be a valid address."""
    # Hides everything up to the last @, because a password may contain @.
    return re.sub(r"(password=)[^&#]*", r"\1...", re.sub(r"://.*@", "://...@", text))


def place_of(url: str) -> str:
    """The host and port, or the path of a socket, for messages."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or unquote(parts.path) or url


def files_of(url: str) -> dict[str, str]:
    """The paths of the TLS files in an address (certificate authorities, certificate, key), by setting."""
    return {name: value for name, value in parse_qsl(urlsplit(url).query) if name in TLS_FILES}
