"""An episode in progress: everything that belongs to one episode of one agent, and nothing that outlives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

import numpy as np

from rl_coach.agents.core.segments import SegmentStart
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import ActionInfo, Episode, RunPhase, StateType
from rl_coach.utilities import plain_data
from rl_coach.utilities.dynamic_import import class_path


@dataclass
class EpisodeReport:
    """An episode that has ended, as the process that played it reports it to the one that records it.

    :param phase: the phase that it was played in
    :param length: actions taken
    :param reward: the sum of the environment's rewards
    :param shaped_reward: the sum of the rewards after filtering
    :param signals: samples that were gathered while acting, by the signal's name; empty where it was played in the
        process that records it, which has them
    """

    phase: RunPhase
    length: int
    reward: Any
    shaped_reward: Any
    signals: dict[str, list] = field(default_factory=dict)


class EpisodeInProgress:
    """State of the episode that an agent is in.

    An agent has one at a time. Others are put aside whole: those in the other copies of its environment, the training
    episode during an evaluation, and the one that a checkpoint holds. An agent that keeps more for an episode names a
    subclass as its ``episode_class`` and adds fields in ``__init__``: none can be forgotten, for all of them are
    fields of this object.

    :param algorithm: the agent's, which says how returns are summed

    :ivar curr_state: the observations to act on, filtered
    :ivar incoming_goal: the goal that the level above set, if there is one
    :ivar is_tested: the agent pursues it without exploring; see ``Directive``
    :ivar last_action_info: the last action, as the agent chose it
    :ivar acted_from: the recurrent network's state before the last action, where it is stored with each step
    :ivar buffer: the transitions so far, or since the episode was last cut
    :ivar num_stored: number of them that a memory of single transitions has
    :ivar steps: actions taken
    :ivar total_reward: the rewards of the environment so far
    :ivar total_shaped_reward: the rewards after filtering so far
    :ivar return_before: the discounted return of what was cut off the buffer
    :ivar discount_before: the discount of what follows it
    :ivar filter_histories: state of the input filters in the episode; set while it is put aside, as are
        ``exploration`` (the exploration policy's part), ``recurrent_states`` (by network) and ``attributes`` (those
        of the agent that its ``reset_internal_state`` changes)
    """

    is_tested = False  # of the class: checkpoints of earlier releases have episodes without it

    def __init__(self, algorithm: AlgorithmParameters):
        self.curr_state: StateType = {}
        self.incoming_goal: np.ndarray | None = None
        self.last_action_info: ActionInfo | None = None
        self.acted_from: dict[str, np.ndarray] = {}
        self.buffer = new_buffer(algorithm)
        self.num_stored = 0
        self.steps = 0
        self.total_reward: Any = 0.0
        self.total_shaped_reward: Any = 0.0
        self.return_before, self.discount_before = 0.0, 1.0
        self.filter_histories: Any = None
        self.exploration: Any = None
        self.recurrent_states: dict[str, Any] | None = None
        self.attributes: dict[str, Any] = {}

    def about_buffer(self) -> dict[str, Any]:
        """Plain data that another process needs to learn from the buffer, beside its transitions."""
        return {}

    def begin_buffer(self, algorithm: AlgorithmParameters, recurrent_state: Mapping[str, np.ndarray]) -> None:
        """Cut off what has been played: what follows is for a buffer of its own.

        :param recurrent_state: that of the agent's recurrent network; empty where there is none
        """
        self.buffer = new_buffer(algorithm)

    def report(self, phase: RunPhase) -> EpisodeReport:
        """The episode in figures. :param phase: the phase that it was played in"""
        return EpisodeReport(phase, self.steps, self.total_reward, self.total_shaped_reward)


class SegmentedEpisode(EpisodeInProgress):
    """An episode that is learned from in segments while it is played.

    :ivar num_before: number of steps that were cut off the buffer
    :ivar num_learned: number of steps of the buffer that have been learned from
    :ivar state_before_segment: the state of a recurrent network before the first step of the segment that is played
        now; empty in an episode's first, which starts at zero
    """

    def __init__(self, algorithm: AlgorithmParameters):
        super().__init__(algorithm)
        self.num_before = 0
        self.num_learned = 0
        self.state_before_segment: dict[str, Any] = {}

    def about_buffer(self) -> dict[str, Any]:
        return SegmentStart(self.num_before, self.buffer.is_complete, self.state_before_segment).plain()

    def begin_buffer(self, algorithm: AlgorithmParameters, recurrent_state: Mapping[str, np.ndarray]) -> None:
        self.num_before += self.buffer.length()
        self.num_learned = 0
        self.state_before_segment = dict(recurrent_state)
        super().begin_buffer(algorithm, recurrent_state)


def new_buffer(algorithm: AlgorithmParameters) -> Episode:
    """An empty buffer that sums returns as the algorithm wants them."""
    bootstraps = getattr(algorithm, "bootstrap_total_return_from_old_policy", False)
    return Episode(algorithm.discount, bootstraps, algorithm.n_step)


# The second name is where the class stood when checkpoints of it were first written.
_NAMES = {EpisodeInProgress: "EpisodeInProgress", SegmentedEpisode: "rl_coach.agents.episode:SegmentedEpisode"}


def let_checkpoints_hold(episode_class: type[EpisodeInProgress]) -> None:
    """Let episodes of a class be part of what checkpoints hold."""
    name = _NAMES.get(episode_class, class_path(episode_class))
    plain_data.register(episode_class, name=name)
