"""Requirements on experience that another process sends. They are checked before an agent changes anything.

Any process that can write to a trainer's Redis can send it a message. A wrong message must not end the run, and must
not make the agent store more than it needs.
"""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.agents.core.sequences import STORED_STATE
from rl_coach.core_types import Batch, RunPhase
from rl_coach.memories.backend.wire import UNREADABLE
from rl_coach.memories.columns import FrameStacks
from rl_coach.space_values import first_misfit
from rl_coach.spaces import ActionMaskSpace, BoxActionSpace, SpacesDefinition
from rl_coach.utilities.errors import refuse
from rl_coach.utilities.sound_values import is_count, is_finite
from rl_coach.utils import CoachError

_LEARNED_FROM = ("all_action_probabilities", "action_value", "state_value", "max_action_value", STORED_STATE)
# limits on info, so that a message cannot fill the memory
_MOST_INFO_COLUMNS, _MOST_INFO_BYTES = 256, 1 << 16


def require_sound(
    played: ExperienceChunk,
    spaces: SpacesDefinition,
    stores_episodes: bool,
    most_steps_ahead: int,
    has_priorities: bool = False,
) -> None:
    """Check that received experience is consistent in itself and fits the agent's spaces.

    :param spaces: the spaces of stored transitions
    :param stores_episodes: True if the memory stores whole episodes: each row must then belong to an episode
    :param most_steps_ahead: number of steps that a message may count beyond its transitions, which follow later
    :param has_priorities: True: each transition must have a first priority. False: no transition may have a priority
    :raises CoachError: if the experience is not readable or does not fit
    """
    try:
        refuse(_unmet_by_counts(played, stores_episodes, most_steps_ahead, has_priorities))
        refuse(_unmet_by_reports(played, spaces))
        if played.columns is not None:
            refuse(_unmet_by_columns(played.columns, spaces))
    except UNREADABLE as error:
        if isinstance(error, CoachError):
            raise
        # the wrong types of a message fail in many ways, and each of them must become one error that callers know
        raise CoachError(f"the received experience is not readable: {type(error).__name__} {error}") from error


def _unmet_by_reports(played: ExperienceChunk, spaces: SpacesDefinition) -> Iterator[str]:
    for report in played.reports:
        if report.phase not in (RunPhase.HEATUP, RunPhase.TRAIN) or not is_count(report.length) or not report.length:
            yield f"the experience has an episode that is not valid: {report.length!r} steps in phase {report.phase}"
        for reward in (report.reward, report.shaped_reward):
            if not is_finite(reward) or np.size(reward) > max(1, spaces.reward.num_elements):
                yield f"the experience has an episode with a reward of {str(reward)[:40]!r}, which is not valid"


def _unmet_by_counts(
    played: ExperienceChunk, stores_episodes: bool, most_steps_ahead: int, has_priorities: bool
) -> Iterator[str]:
    steps, lengths = played.steps, played.episode_lengths
    rows = 0 if played.columns is None else len(played.columns)
    if not is_count(steps) or not 0 < steps <= rows + most_steps_ahead:
        yield f"the experience counts {steps!r} steps, but the number of its rows is {rows}"
    if not all(is_count(length) and length for length in lengths) or sum(lengths) > rows:
        yield f"the experience has episodes of {str(lengths)[:40]} steps, which do not fit its {rows} rows"
    if stores_episodes and rows and not sum(lengths) == rows == steps:
        yield f"the experience counts {steps} steps, {sum(lengths)} in whole episodes, but has {rows} rows"
    if len(played.segment_starts) not in (0, len(lengths)):
        yield f"the experience has {len(played.segment_starts)} segment_starts for {len(lengths)} episodes"
    priorities, expected = 0 if played.priorities is None else len(played.priorities), rows if has_priorities else 0
    if priorities != expected:
        yield f"the experience has {priorities} priorities, but the agent needs {expected}"
    if len(played.reports) > steps:
        yield f"the experience has {len(played.reports)} episodes that ended in only {steps} steps"


def _unmet_by_columns(columns: Batch, spaces: SpacesDefinition) -> Iterator[str]:
    observed = spaces.state.sub_spaces
    for state in (columns.state_columns, columns.next_state_columns):
        if state.keys() != observed.keys():
            yield f"the experience has the observations {sorted(state)}, but the agent has {sorted(observed)}"
        for name, column in state.items():
            shape = column.observation_shape if isinstance(column, FrameStacks) else column.shape[1:]
            if shape != (expected := tuple(map(int, observed[name].shape))):
                yield f"observation '{name}' has shape {shape}, not {expected}"
            elif isinstance(observed[name], ActionMaskSpace) and (misfit := first_misfit(observed[name], column)):
                yield f"observation '{name}' is {misfit.text}"
    rewards = columns.reward_column
    if rewards.shape[1:] and int(np.prod(rewards.shape[1:])) != spaces.reward.num_elements:
        yield f"the experience has rewards of shape {rewards.shape[1:]}, unlike the environment's rewards"
    if columns.n_step_column is not None and not np.all(columns.n_step_column >= 1):
        yield "the experience has rewards that are sums over 0 steps"
    if columns.return_column is not None and not is_finite(np.ma.compressed(columns.return_column)):
        yield "the experience has returns that are not finite"
    yield from _unmet_by_actions(columns.action_column, spaces)
    yield from _unmet_by_info(columns.info_columns)


def _unmet_by_actions(actions: np.ndarray, spaces: SpacesDefinition) -> Iterator[str]:
    space: Any = spaces.action
    if isinstance(space, BoxActionSpace):
        if actions.shape[1:] not in ((), tuple(space.shape)):
            yield f"the experience has actions of shape {actions.shape[1:]}, unlike the action space"
        if not np.isfinite(actions).all():
            yield "the experience has actions that are not finite"
    elif (misfit := first_misfit(space, actions)) is not None:
        yield f"the experience has an action {misfit.text}"


def _unmet_by_info(info: dict[str, Any]) -> Iterator[str]:
    if len(info) > _MOST_INFO_COLUMNS:
        yield f"the experience has {len(info)} columns of info, more than the limit"
    for name, column in info.items():
        values = np.ma.compressed(column) if isinstance(column, np.ma.MaskedArray) else column
        # updates read these columns, and one NaN would spoil the weights
        if name.startswith(_LEARNED_FROM) and not is_finite(values):
            yield f"info '{name}' is not finite"
        if column.nbytes // len(column) > _MOST_INFO_BYTES:
            yield f"info '{name}' has {column.nbytes // len(column):,} bytes in each row, more than the limit"
