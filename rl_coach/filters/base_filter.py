"""The base of all filters."""

from __future__ import annotations

import pathlib
from typing import Any, Union

from rl_coach.utilities.episode_state import KeepsEpisodeState
from rl_coach.utilities.files import read_data, write_data
from rl_coach.utilities.plain_data import State
from rl_coach.utils import CoachError


class Filter(KeepsEpisodeState):
    """Base of all filters, which change observations, rewards or actions.

    :param name: name under which the filter's state is kept
    """

    def __init__(self, name: str | None = None):
        self.name = name

    def set_name(self, name: str) -> None:
        """Rename the filter."""
        self.name = name

    @property
    def remembers_episode(self) -> bool:
        """True if the filter remembers the episode in progress: it defines ``reset``, which forgets it."""
        return type(self).reset is not KeepsEpisodeState.reset

    def filter(self, *args: Any, **kwargs: Any) -> Any:
        """The filtered value. Each kind of filter defines its arguments and its result.

        Filters of observations and rewards have the argument ``update_internal_state``. If it is True, a filter updates
        its statistics or its history.
        """
        raise NotImplementedError(f"{type(self).__name__} does not filter")

    def set_device(self, device: Any, memory_backend_params: Any = None, mode: str = "numpy") -> None:
        """Set the connection over which statistics are shared.

        :param device: not used, filters compute with NumPy
        :param memory_backend_params: connection over which workers share samples, None for statistics of this process
        :param mode: not used, as ``device``
        """

    def take_gathered(self) -> State:
        """Statistics gathered since the last call, for ``merge_gathered`` in another process; the first call
        starts the gathering. Empty for a filter without statistics that can be added up."""
        return {}

    def merge_gathered(self, gathered: State) -> None:
        """Add the statistics that the same filter has gathered in another process.

        :raises CoachError: if the statistics belong to another filter
        """
        if gathered:
            raise CoachError(f"the {type(self).__name__} has no statistics that could be added up")

    def get_state(self) -> State:
        """State that must be kept to continue exactly; empty for a filter without one."""
        return {}

    def set_state(self, state: State) -> None:
        """Restore the state that ``get_state`` returned.

        :raises CoachError: if the state belongs to another filter
        """
        if state:
            raise CoachError(f"the checkpoint has a state for the {type(self).__name__}, which has no state")

    def save_state_to_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        """Write the state, if there is one, to ``<prefix>.npz``."""
        state = self.get_state()
        if state:
            write_data(pathlib.Path(checkpoint_dir) / f"{checkpoint_prefix}.npz", state)

    def restore_state_from_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        """Restore the state from the file that ``save_state_to_checkpoint`` wrote.

        :raises CoachError: if the file is missing, damaged or of another filter
        """
        if self.get_state():
            self.set_state(read_data(pathlib.Path(checkpoint_dir) / f"{checkpoint_prefix}.npz", "a filter's state"))
