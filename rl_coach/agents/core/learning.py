"""The part of an agent that chooses the time and the experience of its updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, SupportsFloat

from rl_coach.agents.core.rollout import Rollout
from rl_coach.core_types import EnvironmentEpisodes, PlayUnit

if TYPE_CHECKING:
    from rl_coach.agents.core.experience import ExperienceChunk


class Learning:
    """Decides when an agent learns, selects the experience, and sets the number of updates.

    :ivar segment_steps: the largest number of steps in a segment, for an agent that learns from segments of episodes;
        None if it learns from the memory
    :ivar rollout: holds the steps of several actors until the agent learns from them (only once); None if it learns
        from the memory, or from each actor separately
    :ivar num_players: the number of other processes that play; 1 if this process plays
    """

    segment_steps: int | None = None
    rollout: Rollout | None = None
    num_players = 1

    @property
    def needs_newest_policy(self) -> bool:
        """True if the agent can only learn from steps of the newest policy."""
        raise NotImplementedError(f"{type(self).__name__} must define needs_newest_policy")

    def is_due(self) -> bool:
        """True if ``learn`` would make an update now. The call changes no state."""
        raise NotImplementedError(f"{type(self).__name__} must define is_due")

    def learn(self, updates_left: int | None = None) -> SupportsFloat:
        """Make the updates that are due.

        :param updates_left: the largest number of updates that the run may still make; None for no limit
        :return: the loss; its conversion to float may wait for the updates
        """
        raise NotImplementedError(f"{type(self).__name__} must define learn")

    def left_to_play(self) -> tuple[int, PlayUnit]:
        """The number of steps, episodes or segments that other processes must still play for the next update."""
        raise NotImplementedError(f"{type(self).__name__} must define left_to_play to learn from other processes")

    def require_fitting(self, played: ExperienceChunk) -> None:
        """Check that experience of another process has the data that learning needs.

        :raises CoachError: if data are missing
        """

    def take_in(self, played: ExperienceChunk) -> None:
        """Keep experience of another process for a later update. The memory holds the transitions already."""

    def get_state(self) -> dict[str, Any]:
        """The experience outside of the memory that waits for an update, as plain data."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that ``get_state`` returned. :param state: the whole state of the agent"""


class PhaseLearning(Learning):
    """Learns from the memory in phases. A phase follows a number of steps or episodes.

    A subclass makes the updates of a phase in ``learn``.

    :param agent: the agent; its settings and its episodes are read at each use, because they may change during a run

    :ivar start: begins the phases that are due, and returns the number of their updates; its argument is the largest
        number of updates that the run may still make, None for no limit
    """

    def __init__(self, agent: Any):
        self._agent = agent
        self.start: Callable[[int | None], int] = agent.clock.start_phases

    @property
    def needs_newest_policy(self) -> bool:
        return bool(self._agent.is_on_policy)

    def is_due(self) -> bool:
        return self._agent.clock.is_due(self._is_in_episode) and self._agent.memory.length() > 0

    def _is_in_episode(self) -> bool:
        """True while a training phase must wait for the end of an episode."""
        agent = self._agent
        # the episodes of several copies or processes do not end together, so the agent does not wait for their ends
        is_cut = agent.is_played_elsewhere or (agent.parallel is not None and agent.is_on_policy)
        return not is_cut and not agent.episode.buffer.is_complete

    def left_to_play(self) -> tuple[int, PlayUnit]:
        clock, period = self._agent.clock, self._agent.ap.algorithm.num_consecutive_playing_steps
        unit = PlayUnit.EPISODES if isinstance(period, EnvironmentEpisodes) else PlayUnit.STEPS
        played = clock.episodes if unit is PlayUnit.EPISODES else clock.steps
        return max(0, period.num_steps - (played - clock.last_phase)), unit


class NoLearning(PhaseLearning):
    """Makes no updates, and is never due."""

    def is_due(self) -> bool:
        return False

    def learn(self, updates_left: int | None = None) -> SupportsFloat:
        return 0.0
