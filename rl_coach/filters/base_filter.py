"""The base of all filters."""

from __future__ import annotations

import pathlib
from typing import Any, Union

from rl_coach.utilities.files import read_data, write_data
from rl_coach.utilities.plain_data import State
from rl_coach.utils import CoachError


class Filter:
    """Turns what passes through into something else.

    :param name: tells the filter's state apart from that of others
    """

    def __init__(self, name: str | None = None):
        self.name = name

    def set_name(self, name: str) -> None:
        """Rename the filter."""
        self.name = name

    def reset(self) -> None:
        """A new episode starts: forget what belongs to the one before."""

    def suspend(self) -> Any:
        """What belongs to the episode in progress, for ``resume`` to take up again after an episode in between."""
        return None

    def resume(self, suspended: Any) -> None:
        """Go on with the episode that ``suspend`` parked."""

    @property
    def remembers_episode(self) -> bool:
        """Whether the filter keeps something of the episode in progress: then it has a ``reset`` to forget it."""
        return type(self).reset is not Filter.reset

    def filter(self, *args: Any, **kwargs: Any) -> Any:
        """What comes out for what goes in; each kind of filter says what that is.

        Filters of what the agent sees take ``update_internal_state``: whether a filter that keeps statistics or a
        history learns from this.
        """
        raise NotImplementedError(f"{type(self).__name__} does not filter")

    def set_device(self, device: Any, memory_backend_params: Any = None, mode: str = "numpy") -> None:
        """Say where shared statistics travel.

        :param device: not used, filters compute with NumPy
        :param memory_backend_params: how workers share samples, None for statistics of this process
        :param mode: not used, as ``device``
        """

    def get_state(self) -> State:
        """What must be kept to continue exactly; empty for a filter without a state."""
        return {}

    def set_state(self, state: State) -> None:
        """Continue from what ``get_state`` gave.

        :raises CoachError: the state is not one of this filter's
        """
        if state:
            raise CoachError(f"the checkpoint has a state for the {type(self).__name__}, which keeps none")

    def save_state_to_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        """Write the state, if there is one, to ``<prefix>.npz``."""
        state = self.get_state()
        if state:
            write_data(pathlib.Path(checkpoint_dir) / f"{checkpoint_prefix}.npz", state)

    def restore_state_from_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        """Read what ``save_state_to_checkpoint`` wrote.

        :raises CoachError: the file is missing, damaged or of another filter
        """
        if self.get_state():
            self.set_state(read_data(pathlib.Path(checkpoint_dir) / f"{checkpoint_prefix}.npz", "a filter's state"))
