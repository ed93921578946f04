"""A saver of one network's weights."""

from __future__ import annotations

from typing import Any

from rl_coach.architectures.network_state import NetworkState
from rl_coach.saver import Saver
from rl_coach.utilities import files, plain_data
from rl_coach.utils import CoachError


class NetworkSaver(Saver):
    """Writes a network's weights and buffers to a separate safetensors file.

    :param path: the path relative to the path of the checkpoint
    :param state: the network's state
    :param groups: the groups of arrays to write, such as ``weights``
    """

    # a checkpoint skips this saver, because the state of the graph contains the same weights
    is_in_state = True

    def __init__(self, path: str, state: NetworkState, groups: tuple[str, ...]):
        self._path = path
        self._states = {"": (state, groups)}

    @property
    def path(self) -> str:
        return self._path

    def save(self, sess: Any, save_path: str) -> list[str]:
        arrays = {
            f"{owner}{group}.{number}": array
            for owner, (state, groups) in self._states.items()
            for group in groups
            for number, array in plain_data.numbered(state.arrays(group)).items()
        }
        files.write_synced(save_path, plain_data.safetensors_chunks(arrays))
        return [save_path]

    def restore(self, sess: Any, restore_path: str) -> None:
        """Load the weights from a file that ``save`` has written.

        :raises CoachError: if the file is damaged, or belongs to another network
        """
        try:
            with open(restore_path, "rb") as file:
                arrays = plain_data.read_safetensors(file)
            for owner, (state, groups) in self._states.items():
                for group in groups:
                    prefix = f"{owner}{group}."
                    found = {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
                    state.set_arrays(group, plain_data.in_order(found))
        except plain_data.DAMAGE as error:
            raise CoachError(f"'{restore_path}' does not contain the weights of this network: {error}") from error

    def merge(self, other: Saver) -> None:
        assert isinstance(other, NetworkSaver)
        for state, groups in other._states.values():
            self._states[f"{len(self._states)}."] = (state, groups)
