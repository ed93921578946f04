"""MiniGrid's task of memory: the agent sees the object at the start, and only the same object has a reward."""

from __future__ import annotations

import pytest

from rl_coach.installation import install_command

pytest.importorskip("minigrid", reason=f"MiniGrid is not installed: {install_command('minigrid')}")

from minigrid.core.actions import Actions
from minigrid.core.constants import OBJECT_TO_IDX

from rl_coach.environments.toy_problems.minigrid_memory import minigrid_memory
from rl_coach.environments.vector_levels import make_simulator

LEFT_OF_THE_AGENT = (2, 6)
"""The column and the row of the 7 x 7 visible cells. The agent is in the middle of the last row."""


@pytest.mark.parametrize("seed", range(6))
def test_the_object_is_next_to_the_start_and_leads_to_the_reward(seed):
    env = minigrid_memory()
    observation, _ = env.reset(seed=seed)
    assert env.observation_space.shape == (980,) and {*observation.tolist()} == {0, 1}
    column, row = LEFT_OF_THE_AGENT
    kind = observation.reshape(7, 7, 20)[column, row, : len(OBJECT_TO_IDX)].argmax()
    start, upper = (env.unwrapped.grid.get(*place) for place in ((1, 2), (5, 1)))
    assert kind == OBJECT_TO_IDX[start.type] in (OBJECT_TO_IDX["key"], OBJECT_TO_IDX["ball"])
    for turn in (Actions.left, Actions.right):
        env.reset(seed=seed)
        *others, (_, reward, has_ended, _, _) = [
            env.step(one) for one in [Actions.forward] * 4 + [turn, Actions.forward]
        ]
        assert has_ended and not any(other[2] for other in others)
        is_right = (turn is Actions.left) == (upper.type == start.type)
        assert reward == pytest.approx((1 - 0.9 * 6 / 245) * is_right)


def test_it_draws_images():
    env = make_simulator(f"{minigrid_memory.__module__}:{minigrid_memory.__name__}", {}, 1, "rgb_array")
    env.reset(seed=0)
    assert env.render().ndim == 3
