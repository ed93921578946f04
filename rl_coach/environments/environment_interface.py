"""Interface that environments and level managers share."""

from __future__ import annotations

from typing import Any

from rl_coach.core_types import ActionType, EnvResponse, RunPhase
from rl_coach.spaces import ActionSpace


class EnvironmentInterface:
    """Interface of environments: a phase, an action space, steps and resets.

    :ivar env_id: name of the environment
    :ivar current_episode_steps_counter: number of steps of the episode in progress, if it is counted
    """

    env_id = ""
    current_episode_steps_counter = 0

    def __init__(self) -> None:
        self._phase = RunPhase.UNDEFINED

    @property
    def phase(self) -> RunPhase:
        """Current phase of the run. Steps and episodes are counted in all phases except ``UNDEFINED``."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        self._phase = value

    @property
    def action_space(self) -> ActionSpace:
        """The actions that ``step`` accepts."""
        raise NotImplementedError(f"{type(self).__name__} has no action space")

    def get_random_action(self) -> ActionType:
        """A random action of the action space."""
        raise NotImplementedError(f"{type(self).__name__} does not draw random actions")

    def seed_episodes(self, seed: int) -> None:
        """Restart the random stream of the following episodes; does nothing if that is not possible."""

    def step(self, action: ActionType) -> EnvResponse | None:
        """Act once."""
        raise NotImplementedError(f"{type(self).__name__} does not define step")

    def reset_internal_state(self, force_environment_reset: bool = False) -> EnvResponse | None:
        """Begin a new episode.

        :param force_environment_reset: reset even if the simulator would continue (a game with lives left)
        """
        raise NotImplementedError(f"{type(self).__name__} does not define reset_internal_state")


def is_native(state: dict[str, Any]) -> bool:
    """True for a saved state of ``native`` copies, which are one vector environment."""
    return "num_episodes" in state


def num_copies_in(state: dict[str, Any]) -> int | None:
    """The number of copies of an environment in a saved state of a simulator; None if the state does not contain the
    number, as in older checkpoints of ``native`` copies.
    """
    return state.get("num_copies") if is_native(state) else sum(name.isdigit() for name in state) or 1
