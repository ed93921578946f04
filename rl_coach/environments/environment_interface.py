"""What an agent's surroundings look like from above: an environment, or a level manager that wraps one."""

from __future__ import annotations

from rl_coach.core_types import ActionType, EnvResponse, RunPhase
from rl_coach.spaces import ActionSpace


class EnvironmentInterface:
    """Something that can be acted on: it has a phase, an action space, steps and resets."""

    def __init__(self) -> None:
        self._phase = RunPhase.UNDEFINED

    @property
    def phase(self) -> RunPhase:
        """What the run is doing now; statistics are kept in all phases but ``UNDEFINED``."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        self._phase = value

    @property
    def action_space(self) -> ActionSpace:
        """The actions that ``step`` takes."""
        raise NotImplementedError(f"{type(self).__name__} has no action space")

    def get_random_action(self) -> ActionType:
        """A random action of the action space."""
        raise NotImplementedError(f"{type(self).__name__} draws no random actions")

    def seed_episodes(self, seed: int) -> None:
        """Begin the random stream of the episodes that follow anew; does nothing where that cannot be done."""

    def step(self, action: ActionType) -> EnvResponse | None:
        """Act once."""
        raise NotImplementedError(f"{type(self).__name__} cannot be acted on")

    def reset_internal_state(self, force_environment_reset: bool = False) -> EnvResponse | None:
        """Begin a new episode.

        :param force_environment_reset: begin anew even where the simulator would go on (a game with lives left)
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be reset")
