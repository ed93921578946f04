"""Views of the page that the server stores: views that are too long for an address, and views that users have saved."""

from __future__ import annotations

import hashlib
import pathlib
import threading
from collections.abc import Mapping
from urllib.parse import parse_qs, quote, unquote, urlencode

LONGEST_QUERY = 400
"""The largest length of a view in an address. For a longer view, the address contains only a name."""
VIEWS_FILE = ".views"
LONGEST_NAME = 80
_NAME = "view"
_SAVED = "saved:"
_LARGEST_VIEW = 1 << 16
_MOST_VIEWS = 5000


class Addresses:
    """Stores views of pages as query strings, by name.

    :ivar saved: the query strings of the views that users have saved, by the names that users have given

    :param path: a file with a line for each view, so that links remain valid. Without a file, links are valid as long
        as the server runs
    """

    def __init__(self, path: pathlib.Path | None = None):
        self._path = path
        self._lock = threading.Lock()
        stored = _read(path) if path is not None else {}
        self.saved: Mapping[str, str] = {
            unquote(name.removeprefix(_SAVED)): query
            for name, query in stored.items()
            if name.startswith(_SAVED) and query.startswith("?")
        }
        views = [(name, query) for name, query in stored.items() if not name.startswith(_SAVED)]
        self._views = dict(views[-_MOST_VIEWS:])

    def shortened(self, query: str) -> str:
        """A short query string for the same view. :param query: the query string, which begins with ``?``"""
        if not LONGEST_QUERY < len(query) <= _LARGEST_VIEW:
            return query
        name = hashlib.sha256(query.encode()).hexdigest()[:12]
        with self._lock:
            if name not in self._views:
                self._views[name] = query
                self._views = dict(list(self._views.items())[-_MOST_VIEWS:])
                self._append(f"{name} {query}\n")
        return f"?{urlencode({_NAME: name})}"

    def save(self, name: str, query: str | None) -> None:
        """Save a view under a name.

        :param name: the name
        :param query: the query string, which begins with ``?``; None removes the view
        """
        name = " ".join(name.split())[:LONGEST_NAME]
        if not name or (query is not None and len(query) > _LARGEST_VIEW):
            return
        with self._lock:
            others = {other: view for other, view in self.saved.items() if other != name}
            self.saved = others if query is None else {**others, name: query}
            self._append(f"{_SAVED}{quote(name, safe='')} {query or '-'}\n")

    def whole(self, query: str) -> str | None:
        """The full query string of a view; None if ``query`` contains an unknown name."""
        names = parse_qs(query.lstrip("?")).get(_NAME)
        return query if names is None else self._views.get(names[-1])

    def _append(self, line: str) -> None:
        if self._path is None:
            return
        try:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(line)
        except OSError:  # a read-only directory: links are valid as long as the server runs
            self._path = None


def _read(path: pathlib.Path) -> dict[str, str]:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(" ") for line in lines)
    return {name: query for name, _, query in pairs if query.startswith("?") or name.startswith(_SAVED)}
