"""Serves the GIFs and videos of runs, and no other files."""

from __future__ import annotations

import os
import pathlib
from typing import Any
from urllib.parse import quote

from tornado.web import HTTPError, StaticFileHandler

from rl_coach.runs.experiments import VIDEO_DIRECTORIES

SUFFIXES = (".gif", ".mp4", ".webm")


class MediaHandler(StaticFileHandler):
    """Serves the files ``<run>/gifs/*`` and ``<run>/videos/*`` in the experiments directory.

    Requests for other files are refused with 403, also requests that leave the directory by a link or ``..``.
    """

    def initialize(self, path: str, *args: Any, **kwargs: Any) -> None:
        super().initialize(os.path.realpath(path), *args, **kwargs)

    def validate_absolute_path(self, root: str, absolute_path: str) -> str | None:
        """The path of the file to serve.

        :raises HTTPError: with 403 for a path that is not allowed, with 404 if the file does not exist
        """
        real = pathlib.Path(os.path.realpath(absolute_path))
        if not is_media(real, pathlib.Path(root)):
            raise HTTPError(403, "%s is not a video in the experiments directory", self.path)
        return super().validate_absolute_path(root, str(real))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write the error in one line."""
        self.set_header("Content-Type", "text/plain")
        self.finish(f"{status_code}: {self._reason}\n")


def is_media(path: pathlib.Path, root: pathlib.Path) -> bool:
    """True if a resolved path is a GIF or a video of a run in ``root``."""
    return path.is_relative_to(root) and path.suffix in SUFFIXES and path.parent.name in VIDEO_DIRECTORIES


def url_of(path: pathlib.Path, root: pathlib.Path) -> str:
    """The address of a GIF or a video, relative to the page."""
    return "media/" + quote(pathlib.PurePath(os.path.relpath(path, root)).as_posix())
