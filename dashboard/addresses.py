"""Short addresses of long views: the server stores the view, and the address contains only its name."""

from __future__ import annotations

import hashlib
import pathlib
import threading
from urllib.parse import parse_qs, urlencode

LONGEST_QUERY = 400
"""The largest number of characters of a view in the address itself."""
VIEWS_FILE = ".views"
_NAME = "view"
_LARGEST_VIEW = 1 << 16
_MOST_VIEWS = 5000


class Addresses:
    """The views that pages have shown, by their names.

    :param path: a file with a line for each view, so that links remain valid; without it they are valid as
        long as the server runs
    """

    def __init__(self, path: pathlib.Path | None = None):
        self._path = path
        self._lock = threading.Lock()
        self._views = dict(list(_read(path).items())[-_MOST_VIEWS:]) if path is not None else {}

    def shortened(self, query: str) -> str:
        """A short query for the same view. :param query: begins with ``?``"""
        if not LONGEST_QUERY < len(query) <= _LARGEST_VIEW:
            return query
        name = hashlib.sha256(query.encode()).hexdigest()[:12]
        with self._lock:
            if name not in self._views:
                self._views[name] = query
                self._views = dict(list(self._views.items())[-_MOST_VIEWS:])
                self._append(f"{name} {query}\n")
        return f"?{urlencode({_NAME: name})}"

    def whole(self, query: str) -> str | None:
        """The full query of a view; None for an unknown name."""
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
    return {name: query for name, _, query in pairs if query.startswith("?")}
