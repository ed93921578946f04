"""The base class of all filters."""

from __future__ import annotations

import pathlib
from typing import Any, Union

from rl_coach.utilities.episode_state import KeepsEpisodeState
from rl_coach.utilities.files import read_data, write_data
from rl_coach.utilities.plain_data import State
from rl_coach.utils import CoachError


class Filter(KeepsEpisodeState):
    """Base class of all filters. A filter changes observations, rewards or actions.

    :param name: the name of the filter's state in checkpoints
    """

    def __init__(self, name: str | None = None):
        self.name = name

    def set_name(self, name: str) -> None:
        """Rename the filter."""
        self.name = name

    @property
    def remembers_episode(self) -> bool:
        """True if the filter stores data of the episode in progress. Such a filter defines ``reset``, which clears the
        data.
        """
        return type(self).reset is not KeepsEpisodeState.reset

    @property
    def has_statistics(self) -> bool:
        """True if the filter has statistics over several episodes. A filter that also stores data of the episode
        overrides this."""
        return bool(self.get_state()) and not self.remembers_episode

    def filter(self, *args: Any, **kwargs: Any) -> Any:
        """Filter a value. Each kind of filter defines its arguments and its result.

        Filters of observations and rewards have the argument ``update_internal_state``. If it is True, the filter
        updates its statistics or its history of the episode.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define filter")

    def set_device(self, device: Any, memory_backend_params: Any = None, mode: str = "numpy") -> None:
        """Set the connection over which workers share statistics.

        :param device: ignored, because filters compute with NumPy
        :param memory_backend_params: the connection; None for statistics of this process only
        :param mode: ignored, for the same reason
        """

    def take_gathered(self) -> State:
        """Return the statistics gathered since the last call, for ``merge_gathered`` in another process. The first call
        starts the gathering. The result is empty if the filter has no statistics that can be added up.
        """
        return {}

    def merge_gathered(self, gathered: State) -> None:
        """Add statistics that a copy of this filter has gathered in another process.

        :raises CoachError: if the statistics belong to another filter
        """
        if gathered:
            raise CoachError(f"a {type(self).__name__} has no statistics that can be added up")

    def get_state(self) -> State:
        """The state for a checkpoint, from which a resumed run continues exactly; empty for a filter without a
        state.
        """
        return {}

    def set_state(self, state: State) -> None:
        """Restore the state that ``get_state`` returned.

        :raises CoachError: if the state belongs to another filter
        """
        if state:
            raise CoachError(
                f"the checkpoint has a state for a {type(self).__name__}, but this filter has none: use the filters of "
                "the saved run"
            )

    def save_state_to_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        """Write the state to ``<prefix>.npz``. A filter without a state writes no file."""
        state = self.get_state()
        if state:
            write_data(pathlib.Path(checkpoint_dir) / f"{checkpoint_prefix}.npz", state)

    def restore_state_from_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        """Restore the state from the file that ``save_state_to_checkpoint`` wrote.

        :raises CoachError: if the file is missing or damaged, or belongs to another filter
        """
        if self.get_state():
            self.set_state(read_data(pathlib.Path(checkpoint_dir) / f"{checkpoint_prefix}.npz", "a filter's state"))
