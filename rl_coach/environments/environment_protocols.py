"""Interfaces of environments for a level: a single environment, or several copies that are stepped together."""

from __future__ import annotations

from typing import Any, Callable, Protocol, Sequence

import numpy as np

from rl_coach.core_types import ActionType, EnvResponse, RunPhase
from rl_coach.environments.step_columns import StepColumns
from rl_coach.spaces import ActionSpace, ObservationSpace, RewardSpace, StateSpace


class SteppedEnvironment(Protocol):
    """Interface of an environment, or of a lower level, for the level that acts in it.

    :ivar env_id: the name of the environment
    :ivar training_steps: environment steps of heatup and training at the start of the current evaluation
    :ivar current_episode_steps_counter: steps of the episode in progress, if they are counted
    :ivar pictures_beside: the agent's pictures for videos; see ``AgentInterface.pictures_beside``
    """

    env_id: str
    phase: RunPhase
    training_steps: int
    current_episode_steps_counter: int
    pictures_beside: Callable[[int], list[np.ndarray]] | None

    @property
    def action_space(self) -> ActionSpace:
        """The actions that ``step`` accepts."""

    @property
    def last_env_response(self) -> EnvResponse | None:
        """The last answer of a step or a reset; None before the first."""

    @property
    def total_reward_in_current_episode(self) -> Any:
        """The sum of the rewards of the current episode."""

    def step(self, action: ActionType) -> EnvResponse:
        """Act once."""

    def reset_internal_state(self, force_environment_reset: bool = False) -> EnvResponse | None:
        """Begin an episode."""

    def handle_episode_ended(self) -> None:
        """Finish the episode that has just ended."""


class Simulator(Protocol):
    """Methods that a single environment and several copies have in common."""

    phase: RunPhase
    state_space: StateSpace
    goal_space: ObservationSpace | None
    reward_space: RewardSpace

    @property
    def action_space(self) -> ActionSpace:
        """The actions that a step accepts."""

    def get_target_success_rate(self) -> float:
        """The share of evaluation episodes that must succeed, 0 to 1."""

    def get_state(self) -> dict[str, Any]:
        """The counters and random streams, for a checkpoint."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from ``get_state``. Call a reset next."""

    def get_episode_state(self) -> dict[str, Any] | None:
        """The episode in progress; None if it cannot be saved."""

    def set_episode_state(self, state: dict[str, Any]) -> bool:
        """Repeat the episode. :return: True if the repeated episode reached the same state"""

    def close(self) -> None:
        """Release the simulator."""


class SimulatedEnvironment(SteppedEnvironment, Simulator, Protocol):
    """A single environment at the bottom of a graph."""

    def seed_episodes(self, seed: int) -> None:
        """Restart the random stream of the following episodes; does nothing if that is not possible."""


class CopiedEnvironment(Simulator, Protocol):
    """Several copies of one environment that are stepped together. Their episodes begin and end independently."""

    num_copies: int

    @property
    def waiting(self) -> np.ndarray:
        """[N] bool, True for a copy that begins its next episode in the next step, and ignores the action of this step.
        Until then, the caller does not begin an episode in this copy; it also ignores the copy's answer to this step.
        At least one copy is not waiting."""

    def begin_episodes(self, forced: dict[int, bool]) -> dict[int, EnvResponse]:
        """Begin an episode in some of the copies.

        :param forced: the numbers of these copies. The value is True to reset even if the simulator would continue
        :return: the first states, by the copy's number
        """

    def step_all(self, actions: Sequence[ActionType]) -> list[EnvResponse]:
        """Act once in each copy.

        :param actions: one action for each copy
        """

    def begin_columns(self, indices: np.ndarray, forced: np.ndarray) -> dict[str, np.ndarray]:
        """Begin an episode in some of the copies. The same as ``begin_episodes``, with arrays.

        :param indices: [K], the numbers of the copies
        :param forced: [K] bool, True to reset even if the simulator would continue
        :return: the first states by the observation's name, [K, ...] each
        """

    def step_columns(self, actions: np.ndarray | Sequence[ActionType]) -> StepColumns:
        """Act once in each copy. The same as ``step_all``, with arrays.

        :param actions: [N, ...], one action for each copy
        """
