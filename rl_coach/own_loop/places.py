"""The environments of a user's loop by name and by number."""

from __future__ import annotations

from typing import Any, Hashable, Sequence

import numpy as np

from rl_coach.utils import CoachError, choose_from


class Places:
    """Finds the numbers of environments by their names.

    :param names: the names of the environments, in order
    """

    def __init__(self, names: Sequence[Any]):
        self._names = list(names)
        self._indices = {name: index for index, name in enumerate(self._names)}

    def name(self, index: int) -> str:
        """The name of an environment, for messages."""
        return "the environment" if len(self._names) == 1 else f"environment {self._names[index]!r}"

    def is_batch(self, env_ids: Any) -> bool:
        """True if the arguments for these environments have a row for each environment."""
        return (env_ids is None and len(self._names) > 1) or isinstance(env_ids, (list, tuple, range, np.ndarray))

    def indices(self, env_ids: Any) -> list[int]:
        """The numbers of environments.

        :param env_ids: a list of names, or one name; None for all
        :raises CoachError: if an environment does not exist, or is named twice
        """
        if env_ids is None:
            return list(range(len(self._names)))
        named = list(env_ids) if self.is_batch(env_ids) else [env_ids]
        for name in named:
            if not isinstance(name, Hashable) or name not in self._indices:
                raise CoachError(f"there is no environment {name!r}{choose_from(str(name), map(str, self._names))}")
        if len(set(named)) < len(named):
            raise CoachError(f"env_ids contains an environment twice: {named}")
        return [self._indices[name] for name in named]
