"""Savers: what a class of the user's own writes beside a checkpoint, and collections of them."""

from __future__ import annotations

from typing import Any, Iterator


class Saver:
    """Base of what saves and restores something under a path.

    ``sess`` in its methods is the session of frameworks that have one, None elsewhere.

    :cvar is_in_state: a graph's checkpoint holds the same anyway, so that it does not save this
    """

    is_in_state = False

    @property
    def path(self) -> str:
        """The path relative to the checkpoint's. Two savers of one path are merged into one."""
        raise NotImplementedError(f"{type(self).__name__} does not define its path")

    def save(self, sess: Any, save_path: str) -> list[str]:
        """Save.

        :param save_path: the whole path
        :return: the paths of all files written
        """
        raise NotImplementedError(f"{type(self).__name__} does not save")

    def restore(self, sess: Any, restore_path: str) -> None:
        """Restore what ``save`` wrote."""
        raise NotImplementedError(f"{type(self).__name__} does not restore")

    def merge(self, other: Saver) -> None:
        """Take over what another saver of the same path saves."""
        raise NotImplementedError(f"{type(self).__name__} cannot be merged")


class SaverCollection:
    """Savers, one for each path.

    :param saver: the first one
    """

    def __init__(self, saver: Saver | None = None):
        self._savers: dict[str, Saver] = {}
        if saver is not None:
            self.add(saver)

    def add(self, saver: Saver) -> None:
        """Add a saver, or merge it into the one of the same path."""
        if saver.path in self._savers:
            self._savers[saver.path].merge(saver)
        else:
            self._savers[saver.path] = saver

    def update(self, other: SaverCollection) -> None:
        """Add all savers of another collection."""
        for saver in other:
            self.add(saver)

    def save(self, sess: Any, save_path: str) -> list[str]:
        """Have all of them save.

        :param save_path: common beginning of their whole paths; each appends ``.path``, one with an empty path nothing
        :return: the paths of all files written
        """
        return [file for saver in self for file in saver.save(sess, _full_path(save_path, saver))]

    def restore(self, sess: Any, restore_path: str) -> None:
        """Have all of them restore what ``save`` wrote."""
        for saver in self:
            saver.restore(sess, _full_path(restore_path, saver))

    def __iter__(self) -> Iterator[Saver]:
        return iter(self._savers.values())


def _full_path(prefix: str, saver: Saver) -> str:
    return f"{prefix}.{saver.path}" if saver.path else prefix
