"""EnvPool's environments as vector environments of Gymnasium. EnvPool's threads step the copies together."""

from __future__ import annotations

from typing import Any

import envpool
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rl_coach.environments.gym_levels import ENVPOOL
from rl_coach.space_values import rows_at
from rl_coach.utilities.errors import CoachError, nearest, suggested


class EnvPoolCopies(VectorEnv):
    """A vector environment of EnvPool with episodes that begin only in ``reset``. EnvPool itself begins an episode in a
    step, and ignores the action of this step.

    The pool is made in the first reset, because its constructor takes the seed.

    :param name: an id of EnvPool, such as ``Pong-v5``
    :param num_envs: number of copies
    :param settings: keyword arguments of ``envpool.make``
    :raises CoachError: if EnvPool does not have the level, or refuses the settings
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.DISABLED}

    def __init__(self, name: str, num_envs: int, settings: dict[str, Any]):
        if name not in envpool.list_all_envs():
            alike = suggested(f"{ENVPOOL}:{one}" for one in nearest(name, envpool.list_all_envs()))
            raise CoachError(f"EnvPool has no level '{name}'{alike}")
        self._arguments = {**settings, "task_id": name, "env_type": "gymnasium", "num_envs": num_envs}
        self.num_envs = num_envs
        self._pool = self._make()
        self.single_observation_space = self._pool.observation_space
        self.single_action_space = self._pool.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._observations: Any = None

    def _make(self, **settings: Any) -> Any:
        try:
            return envpool.make(**self._arguments, **settings)
        except (AssertionError, TypeError, KeyError, ValueError) as error:
            raise CoachError(
                f"EnvPool cannot make '{self._arguments['task_id']}' with "
                f"env_params.additional_simulator_parameters: {' '.join(str(error).split())}"
            ) from error

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all copies, or in the copies of ``options["reset_mask"]``, [N].

        :param seed: seed of the first copy; the other copies use the following numbers
        """
        if seed is not None:
            self._pool.close()
            self._pool = self._make(seed=seed % 2**31)
        mask = np.ones(self.num_envs, np.bool_) if options is None else options["reset_mask"]
        indices = np.flatnonzero(mask).astype(np.int32)
        observations, infos = self._pool.reset(indices)
        order = np.asarray(infos["env_id"])  # the copies may answer in any order
        if mask.all():
            self._observations = rows_at(observations, np.argsort(order))
        else:
            self._observations = _with_rows(self._observations, order, observations)
        return self._observations, {}

    def step(self, actions: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        self._observations, rewards, terminated, truncated, infos = self._pool.step(actions)
        return self._observations, rewards, terminated, truncated, _own_infos(infos, self.num_envs)

    def close_extras(self, **arguments: Any) -> None:
        """Stop the pool's threads."""
        self._pool.close()


def _with_rows(observations: Any, indices: np.ndarray, rows: Any) -> Any:
    """The observations with some rows replaced. :param indices: [K], the rows' numbers :param rows: [K, ...] at the
    leaves"""
    if isinstance(observations, dict):
        return {name: _with_rows(part, indices, rows[name]) for name, part in observations.items()}
    changed = observations.copy()
    changed[indices] = rows
    return changed


def _own_infos(infos: dict[str, Any], count: int) -> dict[str, np.ndarray]:
    """The infos of the environment, without EnvPool's own numbers."""
    return {
        name: column
        for name, column in infos.items()
        if isinstance(column, np.ndarray) and len(column) == count and name not in ("env_id", "elapsed_step")
    }
