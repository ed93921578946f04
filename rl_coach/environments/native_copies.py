"""Several copies of one environment as one vector environment of Gymnasium, stepped with arrays."""

from __future__ import annotations

import copy
from typing import Any, Callable, Mapping, Sequence

import numpy as np
from gymnasium.vector import VectorEnv

from rl_coach.core_types import ActionType, EnvResponse, RunPhase
from rl_coach.environments.environment_copies import EnvironmentCopies
from rl_coach.environments.environment_interface import is_native
from rl_coach.environments.gym_environment import GymEnvironment
from rl_coach.environments.gym_spaces import simulator_columns
from rl_coach.environments.step_columns import InfoColumns, StepColumns, info_rows, masked_where_absent
from rl_coach.environments.vector_levels import final_of, with_joined_masks
from rl_coach.utilities.user_code import environment_error
from rl_coach.utils import CoachError, TrainingError


class RestorableVectorEnv(VectorEnv):
    """A vector environment that can save its episodes in progress."""

    def get_state(self) -> dict[str, Any]:
        """The simulators and their random streams, as plain data and arrays."""
        raise NotImplementedError(f"{type(self).__name__} does not return its state")

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from ``get_state``."""
        raise NotImplementedError(f"{type(self).__name__} cannot restore a state")

    def set_single(self, index: int, single: GymEnvironment) -> None:
        """Let a copy continue the episode of a single environment of the same level, with its random stream.

        :param index: the copy
        """
        raise NotImplementedError(f"{type(self).__name__} cannot restore the states of single environments")


class NativeCopies(EnvironmentCopies):
    """Copies that are one vector environment. One call with an array of actions steps all of them.

    An episode begins only in ``reset`` with a ``reset_mask``, not in a later step. The answer to the last action
    therefore has the last observation of the episode, and no action is lost for a reset.

    :param example: an ordinary environment of the level, which describes the copies and is not stepped
    :param simulator: the vector environment
    :param copies_arrays: True if the simulator may overwrite arrays of earlier answers; they are then copied
    :raises TrainingError: in any call, if the simulator fails
    """

    def __init__(self, example: GymEnvironment, simulator: VectorEnv, copies_arrays: bool = False):
        self._copies_arrays = copies_arrays
        self._example, self._simulator = example, simulator
        self._saved = simulator if isinstance(simulator, RestorableVectorEnv) else None
        self._next_seed = example.seed
        self._num_episodes = 0
        self._states: dict[str, np.ndarray] = {}
        self._infos: dict[str, np.ndarray] = {}
        super().__init__([lambda: example] * simulator.num_envs)

    def begin_episodes(self, forced: dict[int, bool]) -> dict[int, EnvResponse]:
        indices = np.array(list(forced))
        states = self.begin_columns(indices, np.array(list(forced.values())))
        infos = {name: column[indices] for name, column in self._infos.items()}
        nothing = np.zeros(len(indices), np.bool_)
        first = StepColumns(states, np.zeros(len(indices)), nothing, nothing, infos, self._goals(states))
        return dict(zip(forced, first.responses()))

    def begin_columns(self, indices: np.ndarray, forced: np.ndarray) -> dict[str, np.ndarray]:
        if len(ended := self._games_to_reset(indices, forced)):
            self._reset(ended)
        return {name: column[indices] for name, column in self._states.items()}

    def _games_to_reset(self, indices: np.ndarray, forced: np.ndarray) -> np.ndarray:
        """The copies to reset now. :param indices: as in ``begin_columns`` :param forced: as in ``begin_columns``"""
        return indices

    def _reset(self, indices: np.ndarray) -> None:
        if self._next_seed is None:
            mask = np.zeros(self.num_copies, np.bool_)
            mask[indices] = True
            answer = self._ask(self._simulator.reset, options=None if mask.all() else {"reset_mask": mask})
        else:  # all copies are seeded together, before their first episodes
            answer = self._ask(self._simulator.reset, seed=self._seed_from(self._next_seed))
        self._take(*answer)
        self._next_seed = None
        self._num_episodes += len(indices)

    def _seed_from(self, number: int) -> int:
        """A seed for the simulator. Its copies also use the following numbers."""
        return number

    def step_all(self, actions: Sequence[ActionType]) -> list[EnvResponse]:
        return self.step_columns(actions).responses()

    def step_columns(self, actions: np.ndarray | Sequence[ActionType]) -> StepColumns:
        rewards, terminated, truncated = self._step(self._array_of(actions))
        terminated = np.array(terminated, np.bool_)
        truncated = np.array(truncated, np.bool_) & ~terminated
        states, infos = self._after_step(terminated | truncated)
        return StepColumns(states, np.array(rewards, np.float64), terminated, truncated, infos, self._goals(states))

    def _after_step(self, ended: np.ndarray) -> tuple[dict[str, np.ndarray], Mapping[str, np.ndarray]]:
        """The states after the actions, and their infos. :param ended: [N] bool, True if the copy's episode has
        ended"""
        return self._states, self._infos

    def _step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Act in all copies. :return: rewards, terminated and truncated, [N] each"""
        observations, rewards, terminated, truncated, infos = self._ask(self._simulator.step, actions)
        if self._copies_arrays:
            observations, infos = copy.deepcopy((observations, infos))
        self._take(observations, infos)
        return rewards, terminated, truncated

    def _take(self, observations: Any, infos: dict[str, Any]) -> None:
        self._infos = _info_columns(infos)
        self._states = self._example.state_columns(observations, self._infos, self.num_copies)

    def _goals(self, states: dict[str, np.ndarray]) -> np.ndarray | None:
        return None if self.goal_space is None else states["desired_goal"]

    def _array_of(self, actions: np.ndarray | Sequence[ActionType]) -> Any:
        """The actions in the simulator's form, [N, ...] at the leaves of tuples and dicts."""
        columns = simulator_columns(self._action_space, actions)
        if isinstance(columns, (tuple, dict)):
            return columns
        return np.asarray(columns, self._simulator.single_action_space.dtype)

    def _ask(self, method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        try:
            return method(*arguments, **keywords)
        except Exception as error:
            raise self._failure(environment_error(error)) from error

    def _failure(self, reason: str) -> TrainingError:
        return TrainingError(f"the vector environment of '{self._example.env_id}' failed: {reason}")

    def get_state(self) -> dict[str, Any]:
        """The copies' random states for a checkpoint, and their episodes if the simulator can save them."""
        return {
            "next_seed": self._next_seed,
            "num_copies": self.num_copies,
            "num_episodes": self._num_episodes,
            "action_space": self._action_space.rng.bit_generator.state,
            "simulator": None if self._saved is None else self._saved.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned; call ``begin_episodes`` next.

        :raises CoachError: if the state belongs to another kind of copies
        """
        if not is_native(state):
            self._take_singles(self._in_order(state), self._example.set_state)
            return
        self._num_episodes = state["num_episodes"]
        self._action_space.rng.bit_generator.state = state["action_space"]
        if self._saved is not None:
            self._next_seed = state["next_seed"]
            self._saved.set_state(state["simulator"])
        elif self._example.seed is not None:
            # not the seed of the run's first episodes
            self._next_seed = self._example.seed + self._num_episodes

    def get_episode_state(self) -> dict[str, Any] | None:
        return None if self._saved is None or self._next_seed is not None else self.get_state()

    def _take_singles(self, states: list[dict[str, Any]], restore: Callable[[dict[str, Any]], Any]) -> bool:
        """Continue from the states of ``sync`` copies. The function ``restore`` restores each of them in the ordinary
        environment, or returns False. :return: False if ``restore`` has returned False"""
        if self._saved is None:
            raise CoachError(
                "the saved environments were not stepped with env_params.vectorization 'native': set "
                "env_params.vectorization to the value of the saved run"
            )
        self._num_episodes = 0
        for index, state in enumerate(states):
            if restore(state) is False:
                return False
            self._saved.set_single(index, self._example)
            self._num_episodes += self._example.episode_idx
            if index == 0:
                self._next_seed = self._example.get_state()["next_seed"]
                drawn = self._action_space.rng.bit_generator.state
        self._action_space.rng.bit_generator.state = drawn  # the agent draws from the space of the first copy
        return True

    def set_episode_state(self, state: dict[str, Any]) -> bool:
        if not is_native(state):
            return self._take_singles(self._in_order(state), self._example.set_episode_state)
        self.set_state(state)
        return True

    def close(self) -> None:
        self._simulator.close()
        self._example.close()

    def _tell_phase(self, value: RunPhase) -> None:
        """Do nothing: a vector environment does the same in all phases."""


class SelfResettingCopies(NativeCopies):
    """Copies of a simulator that begins episodes by itself, so a copy needs no reset after the end of an episode.

    :ivar begun: [N] bool, True if the simulator has begun the copy's next episode
    """

    def __init__(self, example: GymEnvironment, simulator: VectorEnv, copies_arrays: bool = True):
        super().__init__(example, simulator, copies_arrays)
        self.begun = np.zeros(self.num_copies, np.bool_)

    def _games_to_reset(self, indices: np.ndarray, forced: np.ndarray) -> np.ndarray:
        unfinished = indices[~self.begun[indices]]
        if len(unfinished) and len(indices) < self.num_copies and self._next_seed is None:
            raise self._failure(
                "it begins episodes by itself, so a copy cannot cut its episode off and begin another; make the "
                "environment with the autoreset mode DISABLED"
            )
        self.begun[indices] = False
        return indices if len(unfinished) else unfinished


class SameStepCopies(SelfResettingCopies):
    """Copies in the autoreset mode SAME_STEP. The step that ends an episode returns the first observation of the next
    episode; its infos contain the last observation as ``final_obs``."""

    def _take(self, observations: Any, infos: dict[str, Any]) -> None:
        super()._take(observations, infos)
        self._given = infos

    def _after_step(self, ended: np.ndarray) -> tuple[dict[str, np.ndarray], Mapping[str, np.ndarray]]:
        self.begun = ended
        if not ended.any():
            return self._states, self._infos
        states = {name: column.copy() for name, column in self._states.items()}
        rows: list[dict[str, Any]] = info_rows(self._infos, self.num_copies)
        for index in np.flatnonzero(ended):
            observation, rows[index] = self._ask(final_of, self._given, index)
            for name, value in self._example.state_of(observation, rows[index]).items():
                states[name][index] = value
        return states, InfoColumns.of(rows)


class NextStepCopies(SelfResettingCopies):
    """Copies in the autoreset mode NEXT_STEP. The step after the end of an episode begins the next episode, and ignores
    its action. The copy is waiting until this step."""

    def __init__(self, example: GymEnvironment, simulator: VectorEnv, copies_arrays: bool = True):
        super().__init__(example, simulator, copies_arrays)
        self._waiting = np.zeros(self.num_copies, np.bool_)

    @property
    def waiting(self) -> np.ndarray:
        return self._waiting & ~self._waiting.all()

    def _games_to_reset(self, indices: np.ndarray, forced: np.ndarray) -> np.ndarray:
        if self._waiting.all() and self._next_seed is None:  # no copy acts in this step, so no action is lost
            self.step_columns(np.array([self._action_space.default_action] * self.num_copies))
        elif len(indices) == self.num_copies:
            self._waiting = np.zeros(self.num_copies, np.bool_)
        return super()._games_to_reset(indices, forced)

    def _after_step(self, ended: np.ndarray) -> tuple[dict[str, np.ndarray], Mapping[str, np.ndarray]]:
        self.begun |= self._waiting
        self._waiting = ended
        return super()._after_step(ended)


def _info_columns(infos: dict[str, Any]) -> dict[str, np.ndarray]:
    """The infos of a vector environment that are arrays, masked for copies without a value. In the infos, the array
    ``_NAME`` is True for each copy with a value of ``NAME``."""
    return {
        name: masked_where_absent(column, infos[f"_{name}"]) if f"_{name}" in infos else column
        for name, column in with_joined_masks(infos).items()
        if isinstance(column, np.ndarray) and not (name.startswith("_") and name[1:] in infos)
    }
