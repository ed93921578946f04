"""A cache of parsed columns and summaries on disk, so that no CSV is parsed twice.

The cache is in the user's cache directory, and may be deleted at any time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pathlib
import tempfile
from typing import Any

import pyarrow as pa

from rl_coach.runs.signal_file import SignalFile
from rl_coach.utilities import files
from rl_coach.utilities.safe_reading import read_json_if_whole

SMALLEST_FILE_BYTES = 1 << 19
"""The smallest size of a CSV that is cached. A smaller CSV is parsed faster than it is found in the cache."""
LARGEST_CACHE_BYTES = 4 << 30


def default_directory() -> pathlib.Path:
    """``rl_coach/dashboard`` in the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "rl_coach" / "dashboard"


class ColumnCache:
    """A cache with an Arrow file of the parsed columns for each CSV, and a JSON file with the summaries of all runs.

    If the directory cannot be written, the cache stores nothing. This is not an error.

    :param directory: the directory of all caches
    :param root: the experiments directory; each experiments directory has a separate cache
    """

    def __init__(self, directory: str | os.PathLike, root: str | os.PathLike):
        self.directory = pathlib.Path(directory) / _digest(os.path.abspath(root))
        self._bytes = files.keep_newest(self.directory, LARGEST_CACHE_BYTES, "*.arrow")

    def _file(self, path: str | os.PathLike) -> pathlib.Path:
        return self.directory / f"{_digest(os.fspath(path))}.arrow"

    def read(self, path: str | os.PathLike) -> SignalFile:
        """The reader of a CSV, with the cached columns if there are any."""
        try:
            with pa.memory_map(str(self._file(path))) as source:
                table = pa.ipc.open_file(source).read_all()
        except (OSError, pa.ArrowInvalid):
            return SignalFile(path)
        metadata = table.schema.metadata or {}
        if b"offset" not in metadata:
            return SignalFile(path)
        seam = base64.b64decode(metadata[b"seam"])
        file = SignalFile.from_table(path, table.replace_schema_metadata(None), int(metadata[b"offset"]), seam)
        file.left_out = int(metadata.get(b"left_out", 0))
        return file

    def write(self, file: SignalFile) -> None:
        """Store the columns of a CSV, if the CSV is large enough and the cache has room."""
        if file.table is None or file.offset < SMALLEST_FILE_BYTES:
            return
        if self._bytes + file.nbytes > LARGEST_CACHE_BYTES:
            return
        metadata = {
            "offset": str(file.offset),
            "left_out": str(file.left_out),
            "seam": base64.b64encode(file.seam).decode(),
        }
        table = file.table.combine_chunks().replace_schema_metadata(metadata)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        self._bytes += self._put(self._file(file.path), sink.getvalue())

    def read_summaries(self) -> dict[str, Any]:
        """The stored summaries by the CSV's path; empty if there are none or the file is damaged."""
        return read_json_if_whole(self.directory / "summaries.json")

    def write_summaries(self, summaries: dict[str, Any]) -> None:
        """Store the summaries of all runs."""
        self._put(self.directory / "summaries.json", json.dumps(summaries).encode())

    def _put(self, path: pathlib.Path, data: Any) -> int:
        """Write a file atomically, so that another dashboard does not read an incomplete file.

        :return: number of bytes written; 0 if the file cannot be written
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.directory, suffix=".part", delete=False) as file:
                file.write(data)
            os.replace(file.name, path)
        except OSError:
            return 0
        return len(data)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]
