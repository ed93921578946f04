"""An episode in progress: the state that belongs to one episode of one agent and ends with it."""

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
    """The results of an episode that has ended. The process that played it sends them to the process that records them.

    :param phase: the phase in which the episode was played
    :param length: number of actions
    :param reward: the sum of the environment's rewards
    :param shaped_reward: the sum of the rewards after filtering
    :param signals: samples from acting, by the signal's name; empty if one process plays and records
    """

    phase: RunPhase
    length: int
    reward: Any
    shaped_reward: Any
    signals: dict[str, list] = field(default_factory=dict)


class EpisodeInProgress:
    """State of the episode that an agent is in.

    An agent acts in one episode at a time. Its other episodes are saved as whole objects: the episodes of the other
    copies of its environment, the training episode during an evaluation, and the episode in a checkpoint. An agent that
    needs more state sets ``episode_class`` to a subclass and adds fields in ``__init__``. No field can be forgotten,
    because the whole object is saved.

    :param algorithm: the agent's algorithm parameters; they say how returns are summed

    :ivar curr_state: the observations to act on, filtered
    :ivar incoming_goal: the goal that the level above set, if there is one
    :ivar is_tested: True if the agent pursues this goal without exploration; see ``Directive``
    :ivar last_action_info: the last action, as the agent chose it
    :ivar acted_from: the recurrent network's state before the last action, if it is stored with each step
    :ivar buffer: the transitions so far, or since the last cut
    :ivar num_stored: number of transitions of ``buffer`` that a memory of single transitions holds already
    :ivar steps: number of actions
    :ivar total_reward: the sum of the environment's rewards so far
    :ivar total_shaped_reward: the sum of the rewards after filtering so far
    :ivar return_before: the discounted return of the steps before ``buffer``, which were cut off
    :ivar discount_before: the discount of the first reward in ``buffer``
    :ivar filter_histories: the input filters' state of the episode; only set while the episode is saved
    :ivar exploration: the exploration policy's state of the episode; only set while the episode is saved
    :ivar recurrent_states: recurrent states by network; only valid while the episode is saved or another actor acts
    :ivar attributes: the agent's attributes that ``episode_attributes`` names; only valid while the episode is saved or
        another actor acts
    """

    is_tested = False  # a class attribute, because episodes in checkpoints of earlier releases do not have it

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
        """Plain data, in addition to the transitions, that another process needs to learn from the buffer."""
        return {}

    def begin_buffer(self, algorithm: AlgorithmParameters, recurrent_state: Mapping[str, np.ndarray]) -> None:
        """Continue the episode with an empty buffer. The caller has stored the steps so far.

        :param recurrent_state: the present state of the agent's recurrent network; empty without such a network
        """
        self.buffer = new_buffer(algorithm)

    def report(self, phase: RunPhase) -> EpisodeReport:
        """The results of the episode. :param phase: the phase in which it was played"""
        return EpisodeReport(phase, self.steps, self.total_reward, self.total_shaped_reward)


class SegmentedEpisode(EpisodeInProgress):
    """An episode for an agent that learns from segments of it while it is in progress.

    :ivar num_before: number of steps before ``buffer``, which were cut off
    :ivar num_learned: number of steps of ``buffer`` that the agent has learned from
    :ivar state_before_segment: the recurrent state before the first step of the present segment; empty in the first
        segment of an episode, which starts at zero
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
    """An empty buffer with the algorithm's discount, n-step and bootstrap settings."""
    bootstraps = getattr(algorithm, "bootstrap_total_return_from_old_policy", False)
    return Episode(algorithm.discount, bootstraps, algorithm.n_step)


# Checkpoints contain these names, so they do not change. The second name has the class's module in earlier releases.
_NAMES = {EpisodeInProgress: "EpisodeInProgress", SegmentedEpisode: "rl_coach.agents.episode:SegmentedEpisode"}


def let_checkpoints_hold(episode_class: type[EpisodeInProgress]) -> None:
    """Register a class of episodes for checkpoints."""
    name = _NAMES.get(episode_class, class_path(episode_class))
    plain_data.register(episode_class, name=name)
