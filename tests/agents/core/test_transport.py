"""What one process tells another about its episodes, without an agent; and what a trainer refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.chunk_requirements import require_sound
from rl_coach.agents.core.episode import EpisodeReport
from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.agents.core.transport import about_played, played_in
from rl_coach.core_types import Batch, RunPhase, Transition
from rl_coach.memories.backend.wire import Chunk, ChunkError, pack, unpack
from rl_coach.spaces import (
    ActionMaskSpace,
    BoxActionSpace,
    DiscreteActionSpace,
    MultiDiscreteActionSpace,
    RewardSpace,
    SpacesDefinition,
    StateSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError

SPACES = SpacesDefinition(
    state=StateSpace({"observation": VectorObservationSpace(2)}), goal=None, action=DiscreteActionSpace(3),
    reward=RewardSpace(1),
)  # fmt: skip


def batch(action: int = 2, rows: int = 2, shape: int = 2, info: dict[str, Any] | None = None) -> Batch:
    state = {"observation": np.ones(shape, np.float32)}
    return Batch([Transition(state, action, 1.0, state, game_over=row == rows - 1, info=info) for row in range(rows)])


def chunk(about: dict[str, Any]) -> Chunk:
    return Chunk("run", "worker", 1, 1, ("run", 1), 1, 2, [2], batch(), about)  # type: ignore[arg-type]


def report(**changes: Any) -> EpisodeReport:
    return replace(EpisodeReport(RunPhase.TRAIN, 2, 3.0, 1.5, {"Q": [np.array([1.0, 2.0])]}), **changes)


def test_reports_arrive_as_they_were_sent():
    found = played_in(chunk(about_played([report()], [{"place": 0}], {"input_filter": {"a": 1}})))
    assert (found.steps, found.episode_lengths, found.segment_starts) == (2, [2], [{"place": 0}])
    assert found.filters == {"input_filter": {"a": 1}}
    (one,) = found.reports
    assert (one.phase, one.length, one.reward, one.shaped_reward) == (RunPhase.TRAIN, 2, 3.0, 1.5)
    assert one.signals["Q"][0].tolist() == [1, 2]


def test_priorities_arrive_as_they_were_sent():
    found = played_in(chunk(unpack(pack(about_played([], [], {}, np.array([0.5, 2.0**32]))))))
    assert found.priorities is not None and found.priorities.tolist() == [0.5, 2.0**32]
    assert played_in(chunk(about_played([], [], {}))).priorities is None


@pytest.mark.parametrize(
    "about",
    [
        {"more": 1}, {"reports": {}}, {"reports": [["TRAIN", 2]]}, {"reports": [["LUNCH", 2, 1.0, 1.0, {}]]},
        {"filters": {"memory": {}}}, {"segment_starts": 3}, {"waited": 2.0}, {"waited": "long"},
        {"reports": [["TRAIN", 2, 1.0, 1.0, {"Q": [np.ones((2, 2))]}]]},
        {"priorities": [1.0, 1.0]}, {"priorities": None}, {"priorities": np.ones((2, 1))},
        {"priorities": np.array([1.0, np.nan])}, {"priorities": np.array([1.0, np.inf])},
        {"priorities": np.array([1.0, -1e-9])}, {"priorities": np.array([1.0, 2.0**33])},
    ],
)  # fmt: skip
def test_anything_else_is_refused(about):
    with pytest.raises(ChunkError, match="garbage"):
        played_in(chunk(about))


def test_what_fits_the_agent_is_taken():
    require_sound(ExperienceChunk(2, [2], batch(), [report()]), SPACES, True, 0)
    require_sound(ExperienceChunk(2, [2], batch(), priorities=np.ones(2)), SPACES, True, 0, has_priorities=True)
    require_sound(ExperienceChunk(2), SPACES, False, 3, has_priorities=True)  # their transitions come later
    require_sound(ExperienceChunk(5, [], batch()), SPACES, False, 3)


@pytest.mark.parametrize(
    "changes, stores_episodes, reason",
    [
        ({"steps": 0}, False, "counts 0 steps, but the number of its rows is 2"),
        ({"steps": 6}, False, "counts 6 steps, but the number of its rows is 2"),
        ({"episode_lengths": [3]}, False, "episodes of .3. steps"),
        ({"episode_lengths": [1]}, True, "1 in whole episodes"),
        ({"segment_starts": [{}, {}]}, False, "2 segment_starts for 1 episodes"),
        ({"reports": [report(reward=np.nan)]}, False, "reward of 'nan'"),
        ({"reports": [report(length=0)]}, False, "not valid: 0 steps in phase"),
        ({"reports": [report(phase=RunPhase.TEST)]}, False, "in phase"),
        ({"priorities": np.ones(2)}, False, "2 priorities, but the agent needs 0"),
        ({"columns": batch(action=3)}, False, "an action 3, but the action space has the whole numbers 0 to 2"),
        ({"columns": batch(shape=3)}, False, "has shape .3,., not .2,."),
        ({"columns": batch(info={"action_value": np.inf})}, False, "'action_value' is not finite"),
    ],
)
def test_what_does_not_fit_is_named(changes, stores_episodes, reason):
    with pytest.raises(CoachError, match=reason):
        require_sound(replace(ExperienceChunk(2, [2], batch()), **changes), SPACES, stores_episodes, 3)


MASK = ActionMaskSpace((2, 3), [3, 2])
OF_PARTS = SpacesDefinition(
    StateSpace({"observation": VectorObservationSpace(2), "action_mask": MASK}), None,
    MultiDiscreteActionSpace([3, 2]), RewardSpace(1),
)  # fmt: skip
OF_BOX = SpacesDefinition(SPACES.state, None, BoxActionSpace(2, -1, 1), RewardSpace(1))


def chosen(action: Any, mask: Any = None) -> ExperienceChunk:
    masks = {} if mask is None else {"action_mask": mask}
    state = {"observation": np.ones(2, np.float32), **masks}
    return ExperienceChunk(1, [1], Batch([Transition(state, np.asarray(action), 1.0, state, game_over=True)]))


@pytest.mark.parametrize(
    "action, reason",
    [
        ([3, 0], "element 0 is 3"), ([-1, 0], "element 0 is -1"), ([0, 2], "element 1 is 2"),
        ([0.5, 0], "element 0 is 0.5"), ([0, np.nan], "element 1 is nan"), ([0], "of the shape 1"), (4, "of the shape"),
    ],
)  # fmt: skip
def test_each_part_of_a_received_action_is_a_choice(action, reason):
    require_sound(chosen([2, 1], MASK.of_all()), OF_PARTS, True, 0)
    with pytest.raises(CoachError, match=f"an action {reason}.* the action space has 2 choices"):
        require_sound(chosen(action, MASK.of_all()), OF_PARTS, True, 0)


def test_received_masks_and_continuous_actions_are_numbers_that_updates_can_use():
    with pytest.raises(CoachError, match="observation 'action_mask' is element 1 is 7"):
        require_sound(chosen([2, 1], np.array([[1, 7, 1], [1, 1, 0]])), OF_PARTS, True, 0)
    require_sound(chosen([1.5, -3.0]), OF_BOX, True, 0)  # noise leaves the box, and only the environment clips it
    with pytest.raises(CoachError, match="actions that are not finite"):
        require_sound(chosen([np.inf, 0.0]), OF_BOX, True, 0)


@pytest.mark.parametrize("priorities", [None, np.ones(0), np.ones(1), np.ones(3)])
def test_each_transition_has_its_priority(priorities):
    with pytest.raises(CoachError, match="priorities, but the agent needs 2"):
        require_sound(ExperienceChunk(2, [2], batch(), priorities=priorities), SPACES, True, 0, has_priorities=True)
