"""Savers write files for a user's own classes next to a checkpoint."""

from __future__ import annotations

from typing import Any, Iterator


class Saver:
    """Base class of savers. A saver saves and restores values under a path.

    The argument ``sess`` of its methods is always None; it exists because TensorFlow 1 had sessions.

    :cvar is_in_state: True if the graph's state contains the same values; then a checkpoint skips this saver
    """

    is_in_state = False

    @property
    def path(self) -> str:
        """The path relative to the path of the checkpoint. Two savers with the same path are merged."""
        raise NotImplementedError(f"{type(self).__name__} does not define its path")

    def save(self, sess: Any, save_path: str) -> list[str]:
        """Save the values under the full path. :return: the paths of all files written"""
        raise NotImplementedError(f"{type(self).__name__} does not save")

    def restore(self, sess: Any, restore_path: str) -> None:
        """Restore the values from the files that ``save`` has written. :param restore_path: the full path"""
        raise NotImplementedError(f"{type(self).__name__} does not restore")

    def merge(self, other: Saver) -> None:
        """Add the values of another saver with the same path to this saver."""
        raise NotImplementedError(f"{type(self).__name__} cannot be merged")


class SaverCollection:
    """Savers, one for each path. :param saver: the first saver; None for an empty collection"""

    def __init__(self, saver: Saver | None = None):
        self._savers: dict[str, Saver] = {}
        if saver is not None:
            self.add(saver)

    def add(self, saver: Saver) -> None:
        """Add a saver, or merge it into the saver with the same path."""
        if saver.path in self._savers:
            self._savers[saver.path].merge(saver)
        else:
            self._savers[saver.path] = saver

    def update(self, other: SaverCollection) -> None:
        """Add all savers of another collection."""
        for saver in other:
            self.add(saver)

    def save(self, sess: Any, save_path: str) -> list[str]:
        """Let all savers save.

        :param save_path: beginning of all full paths; each saver appends ``.path``, or nothing if its path is empty
        :return: the paths of all files written
        """
        return [file for saver in self for file in saver.save(sess, _full_path(save_path, saver))]

    def restore(self, sess: Any, restore_path: str) -> None:
        """Let all savers restore their values from the files that ``save`` has written.

        :param restore_path: beginning of all full paths
        """
        for saver in self:
            saver.restore(sess, _full_path(restore_path, saver))

    def __iter__(self) -> Iterator[Saver]:
        return iter(self._savers.values())


def _full_path(prefix: str, saver: Saver) -> str:
    return f"{prefix}.{saver.path}" if saver.path else prefix
